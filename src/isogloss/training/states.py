"""States of encoders: of sentences, as the mean of their subwords' states, and of words."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, get_args

import torch
from jaxtyping import Float, Int
from torch import Tensor

from isogloss.core.errors import ConfigError, ModelError, check_named
from isogloss.encoders.added.active_language import active_language
from isogloss.encoders.families import longest_text
from isogloss.encoders.family import Model, Tokenizer
from isogloss.encoders.sentence_parts import has_sentence_parts, sentence_parts_of
from isogloss.encoders.subwords import (
    SplitWords,
    pad_rows,
    padding_mask,
    padding_of,
    split_words,
    text_frame,
    tokenize,
)
from isogloss.training.length_batches import in_batches
from isogloss.training.precision import release_memory, scoring

Pooling = Literal["model"]
"""The vector of a text: what the encoder's folder of sentence-transformers makes."""

Take = Callable[[list[int], Float[Tensor, "layer batch subword dim"]], None]
"""Consumes a batch: the numbers of its texts and their states; those of padding are meaningless."""


def encoder_states(
    model: Model,
    texts: Sequence[Sequence[int]],
    take: Take,
    *,
    layers: Sequence[int],
    padding: int,
    precision: str,
) -> None:
    """Pass the states of texts to ``take`` in batches, in float32, on the encoder's device.

    Layer 0 is the embeddings, -1 the last. ``padding`` is the number of the subword that fills up a batch.
    """
    check_layers(model.config.num_hidden_layers, layers)
    model.eval()
    encoder: Any = model.base_model
    with scoring(encoder, precision) as device:
        for numbers in in_batches([len(text) for text in texts]):
            rows = [texts[number] for number in numbers]
            ids, mask = pad_rows(rows, padding), padding_mask([*map(len, rows)])
            inputs = {"input_ids": ids.to(device), "attention_mask": mask.to(device)}
            states = encoder(**inputs, output_hidden_states=True).hidden_states
            take(numbers, torch.stack([states[layer].float() for layer in layers]))
    release_memory()


def layers_once(model: Model, layers: Sequence[int]) -> tuple[int, ...]:
    """Return layers without repetitions, such as -1 after 12 of 12; ConfigError for an unknown one."""
    last = model.config.num_hidden_layers
    check_layers(last, layers)
    named: dict[int, int] = {}
    for layer in layers:
        named.setdefault(layer % (last + 1), layer)
    return tuple(named.values())


def check_layers(last: int, layers: Sequence[int]) -> None:
    """Raise ConfigError for a layer that an encoder of ``last`` layers does not have."""
    for layer in layers:
        if not -last - 1 <= layer <= last:
            raise ConfigError(
                f"no layer {layer}: this encoder has {last} layers: use 0 (the embeddings) to {last}, or -1 "
                f"(the last)."
            )


def sentence_states(
    model: Model,
    tokenizer: Tokenizer,
    texts: Sequence[str],
    *,
    layers: Sequence[int] = (-1,),
    limit: int = 128,
    precision: str = "auto",
) -> Float[Tensor, "layer sentence dim"]:
    """Return the mean of each text's states in some layers, special subwords left out, on the CPU.

    Layer 0 is the embeddings, -1 the last. A text is cut after ``limit`` subwords, or at the
    encoder's last position; one without subwords is all zeros. ModelError where states are not finite.
    """
    limit = min(limit, longest_text(model))
    options = {"truncation": True, "max_length": limit, "return_special_tokens_mask": True}
    encoded = tokenize(tokenizer, list(texts), **options)
    padding = padding_of(tokenizer)
    ids = [subwords or [padding] for subwords in encoded["input_ids"]]  # An empty text that nothing frames.
    words = [[1 - special for special in mask] or [0] for mask in encoded["special_tokens_mask"]]
    by_text: list[Tensor] = [torch.empty(0)] * len(texts)

    def pool(numbers: list[int], states: Float[Tensor, "layer batch subword dim"]) -> None:
        real = pad_rows([words[number] for number in numbers], 0)
        weights = real.to(states.device, states.dtype).unsqueeze(2)
        pooled = (states * weights).sum(dim=2) / weights.sum(dim=1).clamp(min=1)
        for number, vectors in zip(numbers, pooled.cpu().unbind(dim=1), strict=True):
            by_text[number] = vectors

    encoder_states(model, ids, pool, layers=layers, padding=padding, precision=precision)
    return check_finite(torch.stack(by_text, dim=1))


def encode_with_own_pooling(
    model: Model, tokenizer: Tokenizer, texts: Sequence[str], options: "StateOptions"
) -> Float[Tensor, "layer sentence width"]:
    """Return the vectors that the encoder's folder of sentence-transformers makes of texts, on the CPU.

    ModelError where it makes none; ConfigError for other layers than the last.
    """
    last = model.config.num_hidden_layers
    if [layer % (last + 1) for layer in options.layers] != [last]:
        raise ConfigError(
            f'pooling = "model": it pools layer {last}, the last, and layers '
            f"{', '.join(map(str, options.layers))} are asked for. Ask for {last}, or leave pooling out."
        )
    parts = sentence_parts_of(model.base_model)
    limit = min(options.limit, parts.limit or options.limit, longest_text(model))
    ids = tokenizer([parts.text(text) for text in texts], truncation=True, max_length=limit)["input_ids"]
    by_text: list[Tensor] = [torch.empty(0)] * len(ids)

    def pool(numbers: list[int], states: Float[Tensor, "layer batch subword dim"]) -> None:
        mask = padding_mask([len(ids[number]) for number in numbers]).to(states.device)
        for number, vector in zip(numbers, parts.vectors(states[0], mask).cpu(), strict=True):
            by_text[number] = vector

    padding = padding_of(tokenizer)
    precision = options.precision
    encoder_states(model, ids, pool, layers=(-1,), padding=padding, precision=precision)
    return check_finite(torch.stack(by_text).unsqueeze(0))


OTHER_POOLING = (
    "{name}: the vectors measured are means of states, special subwords left out, not those that the "
    'encoder\'s folder of sentence-transformers makes. Set pooling = "model" for these.'
)


def pooling_warning(model: Model, name: str) -> str:
    """Return a warning if a measurement ignores the pooling of an encoder's folder; else an empty text."""
    if not has_sentence_parts(model.base_model):
        return ""
    return OTHER_POOLING.format(name=name)


def check_finite(states: Float[Tensor, "layer text dim"]) -> Float[Tensor, "layer text dim"]:
    """Return states; ModelError unless all are finite."""
    if not bool(states.isfinite().all()):
        raise ModelError(
            "states of texts are not finite. Check that the encoder was trained to an end, or measure it in "
            "float32."
        )
    return states


Words = Literal["average", "first", "last"]
WORDS: tuple[str, ...] = get_args(Words)
"""Ways to represent a word by its subwords."""


def word_states(
    model: Model,
    tokenizer: Tokenizer,
    sentences: Sequence[Sequence[str]],
    *,
    layers: Sequence[int] = (-1,),
    words: str = "average",
    precision: str = "auto",
) -> list[Float[Tensor, "layer word dim"]]:
    """Return the states of each sentence's words in some layers, where the encoder is.

    Layer 0 is the embeddings, -1 the last. A sentence is cut at the encoder's last position: states are
    returned of words that end before the cut, nearly always all.
    """
    check_named("word states", "way to make a word of its subwords", WORDS, words)
    opening, closing = text_frame(tokenizer)
    room = longest_text(model) - len(opening) - len(closing)
    split = [cut(sentence, room) for sentence in split_words(sentences, tokenizer)]
    by_sentence: list[Tensor] = [torch.empty(0)] * len(sentences)

    def aggregate(numbers: list[int], states: Float[Tensor, "layer batch subword dim"]) -> None:
        width = states.shape[2]
        parts = [split[number] for number in numbers]
        first, count = (
            torch.tensor(side, dtype=torch.long) for side in _word_spans(parts, width, len(opening))
        )
        vectors = _AGGREGATED[words](states.flatten(1, 2), first.to(states.device), count.to(states.device))
        sizes = [part.words[-1] + 1 if part.words else 0 for part in parts]
        for number, of_words in zip(numbers, torch.split(vectors, sizes, dim=1), strict=True):
            by_sentence[number] = of_words

    padding = padding_of(tokenizer)
    texts = [[*opening, *sentence.subwords, *closing] or [padding] for sentence in split]
    encoder_states(model, texts, aggregate, layers=layers, padding=padding, precision=precision)
    return by_sentence


def cut(sentence: SplitWords, room: int) -> SplitWords:
    """Drop words that do not end within the first ``room`` subwords."""
    if len(sentence.subwords) <= room:
        return sentence
    end = max(room, 0)
    while end and sentence.words[end] == sentence.words[end - 1]:
        end -= 1
    return SplitWords(sentence.subwords[:end], sentence.words[:end])


def _word_spans(sentences: Sequence[SplitWords], width: int, opening: int) -> tuple[list[int], list[int]]:
    """Return the first index of each word in rows of ``width``, and the number of its subwords.

    Each row opens with ``opening`` special subwords.
    """
    first: list[int] = []
    count: list[int] = []
    for row, sentence in enumerate(sentences):
        starts = sentence.first()
        first += [row * width + opening + start for start in starts]
        count += [end - start for start, end in pairwise([*starts, len(sentence.words)])]
    return first, count


Rows = Float[Tensor, "layer row dim"]
WordRows = Float[Tensor, "layer word dim"]


def _average(states: Rows, first: Int[Tensor, " word"], count: Int[Tensor, " word"]) -> WordRows:
    total = states[:, first]
    for offset in range(1, int(count.max()) if len(count) else 0):  # No atomic additions: reproducible sums.
        longer = count > offset
        total[:, longer] += states[:, first[longer] + offset]
    return total / count.unsqueeze(1)


_AGGREGATED: dict[str, Callable[[Rows, Tensor, Tensor], WordRows]] = {
    "average": _average,
    "first": lambda states, first, _: states[:, first],
    "last": lambda states, first, count: states[:, first + count - 1],
}


@dataclass(frozen=True, kw_only=True)
class StateOptions:
    """The layers, length and precision of states."""

    layers: tuple[int, ...]
    """0 is the embeddings, -1 the last layer."""
    limit: int
    """Subwords after which a text is cut."""
    precision: str = "auto"
    pooling: Pooling | None = None
    """How a sentence's vector is made; None for the mean of its states, special subwords left out."""


def compute_language_states(
    loaded: tuple[Model, Tokenizer], texts: Sequence[str], language: str, options: StateOptions
) -> Float[Tensor, "layer sentence dim"]:
    """Return one vector for each sentence, with the encoder's modules for ``language`` active."""
    model, tokenizer = loaded
    with active_language(model, language):
        if options.pooling == "model":
            return encode_with_own_pooling(model, tokenizer, texts, options)
        return sentence_states(
            model,
            tokenizer,
            texts,
            layers=options.layers,
            limit=options.limit,
            precision=options.precision,
        )
