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
from isogloss.encoders.family import Model, Tokenizer, check_layers
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
""""model": the vectors of the encoder's sentence-transformers folder."""

Take = Callable[[list[int], Float[Tensor, "layer batch subword dim"]], None]
"""Consumes a batch: the indices of its texts, and their states. States at padding are meaningless."""


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

    Layer 0 is the embeddings, -1 the last. ``padding`` is the id of the padding subword.
    """
    check_layers(model.config.num_hidden_layers, layers)
    model.eval()
    encoder: Any = model.base_model
    with scoring(encoder, precision) as device:
        for indices in in_batches([len(text) for text in texts]):
            rows = [texts[index] for index in indices]
            ids = pad_rows(rows, padding)
            mask = padding_mask([len(row) for row in rows])
            inputs = {"input_ids": ids.to(device), "attention_mask": mask.to(device)}
            states = encoder(**inputs, output_hidden_states=True).hidden_states
            take(indices, torch.stack([states[layer].float() for layer in layers]))
    release_memory()


def layers_once(model: Model, layers: Sequence[int]) -> tuple[int, ...]:
    """Return layers without repetitions, such as -1 after 12 of 12.

    Raises ConfigError for an unknown layer.
    """
    count = model.config.num_hidden_layers
    check_layers(count, layers)
    layer_names: dict[int, int] = {}
    for layer in layers:
        layer_names.setdefault(layer % (count + 1), layer)
    return tuple(layer_names.values())


def sentence_states(
    model: Model,
    tokenizer: Tokenizer,
    texts: Sequence[str],
    *,
    layers: Sequence[int] = (-1,),
    limit: int = 128,
    precision: str = "auto",
) -> Float[Tensor, "layer sentence dim"]:
    """Return the mean of each text's states in some layers, without special subwords, on the CPU.

    Layer 0 is the embeddings, -1 the last. A text is cut after ``limit`` subwords, or at the encoder's last
    position. A text without subwords is all zeros. Raises ModelError if states are not finite.
    """
    limit = min(limit, longest_text(model))
    options = {"truncation": True, "max_length": limit, "return_special_tokens_mask": True}
    encoding = tokenize(tokenizer, list(texts), **options)
    padding = padding_of(tokenizer)
    ids = [subwords or [padding] for subwords in encoding["input_ids"]]  # An empty text that nothing frames.
    words = [[1 - special for special in mask] or [0] for mask in encoding["special_tokens_mask"]]
    text_vectors: list[Tensor] = [torch.empty(0)] * len(texts)

    def pool(indices: list[int], states: Float[Tensor, "layer batch subword dim"]) -> None:
        is_text = pad_rows([words[index] for index in indices], 0)
        weights = is_text.to(states.device, states.dtype).unsqueeze(2)
        means = (states * weights).sum(dim=2) / weights.sum(dim=1).clamp(min=1)
        for index, vectors in zip(indices, means.cpu().unbind(dim=1), strict=True):
            text_vectors[index] = vectors

    encoder_states(model, ids, pool, layers=layers, padding=padding, precision=precision)
    return check_finite(torch.stack(text_vectors, dim=1))


def encode_with_own_pooling(
    model: Model, tokenizer: Tokenizer, texts: Sequence[str], options: "StateOptions"
) -> Float[Tensor, "layer sentence width"]:
    """Return the vectors that the encoder's sentence-transformers folder defines for texts, on the CPU.

    Raises ModelError if it defines none, and ConfigError for layers other than the last.
    """
    last_layer = model.config.num_hidden_layers
    if [layer % (last_layer + 1) for layer in options.layers] != [last_layer]:
        raise ConfigError(
            f'pooling = "model" pools layer {last_layer}, the last, not layers '
            f"{', '.join(str(layer) for layer in options.layers)}. Use layer {last_layer}, or remove pooling."
        )
    parts = sentence_parts_of(model.base_model)
    limit = min(options.limit, parts.limit or options.limit, longest_text(model))
    ids = tokenizer([parts.text(text) for text in texts], truncation=True, max_length=limit)["input_ids"]
    text_vectors: list[Tensor] = [torch.empty(0)] * len(ids)

    def pool(indices: list[int], states: Float[Tensor, "layer batch subword dim"]) -> None:
        mask = padding_mask([len(ids[index]) for index in indices]).to(states.device)
        for index, vector in zip(indices, parts.vectors(states[0], mask).cpu(), strict=True):
            text_vectors[index] = vector

    padding = padding_of(tokenizer)
    precision = options.precision
    encoder_states(model, ids, pool, layers=(-1,), padding=padding, precision=precision)
    return check_finite(torch.stack(text_vectors).unsqueeze(0))


OTHER_POOLING = (
    "{name}: the measured vectors are means of states without special subwords, not those of the encoder's "
    'sentence-transformers folder. Set pooling = "model" for these.'
)


def pooling_warning(model: Model, name: str) -> str:
    """Return a warning if a measurement ignores the pooling of an encoder's folder, else ""."""
    if not has_sentence_parts(model.base_model):
        return ""
    return OTHER_POOLING.format(name=name)


def check_finite(states: Float[Tensor, "layer text dim"]) -> Float[Tensor, "layer text dim"]:
    """Return states unchanged. Raises ModelError unless all are finite."""
    if not bool(states.isfinite().all()):
        raise ModelError(
            "states of texts are not finite. Check that the encoder's training was finished, or measure in "
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
    """Return the states of each sentence's words in some layers, on the encoder's device.

    Layer 0 is the embeddings, -1 the last. A sentence is cut at the encoder's last position, and only words
    that end before the cut have states, which are nearly always all.
    """
    check_named("word states", "way to make a word of its subwords", WORDS, words)
    opening, closing = text_frame(tokenizer)
    room = longest_text(model) - len(opening) - len(closing)
    split = [cut(sentence, room) for sentence in split_words(sentences, tokenizer)]
    sentence_vectors: list[Tensor] = [torch.empty(0)] * len(sentences)

    def aggregate(indices: list[int], states: Float[Tensor, "layer batch subword dim"]) -> None:
        width = states.shape[2]
        parts = [split[index] for index in indices]
        starts, count = (
            torch.tensor(side, dtype=torch.long) for side in _word_spans(parts, width, len(opening))
        )
        vectors = _AGGREGATED[words](states.flatten(1, 2), starts.to(states.device), count.to(states.device))
        sizes = [part.words[-1] + 1 if part.words else 0 for part in parts]
        for index, word_vectors in zip(indices, torch.split(vectors, sizes, dim=1), strict=True):
            sentence_vectors[index] = word_vectors

    padding = padding_of(tokenizer)
    texts = [[*opening, *sentence.subwords, *closing] or [padding] for sentence in split]
    encoder_states(model, texts, aggregate, layers=layers, padding=padding, precision=precision)
    return sentence_vectors


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
    indices: list[int] = []
    counts: list[int] = []
    for row, sentence in enumerate(sentences):
        starts = sentence.first()
        indices += [row * width + opening + start for start in starts]
        counts += [end - start for start, end in pairwise([*starts, len(sentence.words)])]
    return indices, counts


Rows = Float[Tensor, "layer row dim"]
WordRows = Float[Tensor, "layer word dim"]


def _average(states: Rows, starts: Int[Tensor, " word"], counts: Int[Tensor, " word"]) -> WordRows:
    total = states[:, starts]
    for offset in range(
        1, int(counts.max()) if len(counts) else 0
    ):  # No atomic additions: reproducible sums.
        longer = counts > offset
        total[:, longer] += states[:, starts[longer] + offset]
    return total / counts.unsqueeze(1)


_AGGREGATED: dict[str, Callable[[Rows, Tensor, Tensor], WordRows]] = {
    "average": _average,
    "first": lambda states, starts, _: states[:, starts],
    "last": lambda states, starts, counts: states[:, starts + counts - 1],
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
    """"model" for the encoder's own pooling. Default: the mean of a sentence's states without special
    subwords."""


def compute_language_states(
    model_and_tokenizer: tuple[Model, Tokenizer], texts: Sequence[str], language: str, options: StateOptions
) -> Float[Tensor, "layer sentence dim"]:
    """Return one vector per sentence, with the encoder's modules for ``language`` active."""
    model, tokenizer = model_and_tokenizer
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
