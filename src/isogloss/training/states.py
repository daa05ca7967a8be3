"""An encoder's states: of texts that are subwords already, one vector a sentence, one vector a word."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from isogloss.core.errors import ConfigError, unknown_name
from isogloss.encoders import family_of
from isogloss.encoders.subwords import SplitWords, special_subwords, split_words
from isogloss.training.evaluation import in_batches
from isogloss.training.precision import release_memory, scoring

Take = Callable[[list[int], Float[Tensor, "layer batch subword dim"]], None]
"""What becomes of a batch: the numbers of its texts and their states; those of padding mean nothing."""


def encoder_states(
    model: Any,
    texts: Sequence[Sequence[int]],
    take: Take,
    *,
    layers: Sequence[int],
    padding: int,
    precision: str,
) -> None:
    """Hand the states of texts over, batch by batch, in float32 where the encoder is.

    Layer 0 is the embeddings, -1 the last. ``padding`` is the number of the subword that fills up a batch.
    """
    check_layers(model, layers)
    model.eval()
    encoder: Any = model.base_model
    with scoring(encoder, precision) as device:
        for numbers in in_batches([len(text) for text in texts]):
            longest = max(len(texts[number]) for number in numbers)
            ids = torch.full((len(numbers), longest), padding)
            real = torch.zeros_like(ids)
            for row, number in enumerate(numbers):
                ids[row, : len(texts[number])] = torch.tensor(texts[number])
                real[row, : len(texts[number])] = 1
            given = {"input_ids": ids.to(device), "attention_mask": real.to(device)}
            states = encoder(**given, output_hidden_states=True).hidden_states
            take(numbers, torch.stack([states[layer].float() for layer in layers]))
    release_memory()


def check_layers(model: Any, layers: Sequence[int]) -> None:
    """Raise ConfigError for a layer that the encoder has not."""
    last = model.config.num_hidden_layers
    for layer in layers:
        if not -last - 1 <= layer <= last:
            raise ConfigError(
                f"no layer {layer}: this encoder has {last} layers: use 0 (the embeddings) to {last}, "
                f"or -1 (the last)."
            )


def sentence_states(
    model: Any,
    tokenizer: Any,
    texts: Sequence[str],
    *,
    layers: Sequence[int] = (-1,),
    limit: int = 128,
    precision: str = "auto",
) -> Float[Tensor, "layer sentence dim"]:
    """Return the mean of each text's states in some layers, special subwords left out, on the CPU.

    Layer 0 is the embeddings, -1 the last. A text is cut after ``limit`` subwords, or where the encoder has
    no more positions; one without subwords is all zeros.
    """
    limit = min(limit, family_of(model).longest_text(model.config))
    ids = tokenizer(list(texts), truncation=True, max_length=limit, return_special_tokens_mask=True)
    words = [[1 - special for special in mask] for mask in ids["special_tokens_mask"]]
    found: list[Tensor] = [torch.empty(0)] * len(texts)

    def pool(numbers: list[int], states: Float[Tensor, "layer batch subword dim"]) -> None:
        real = torch.zeros(states.shape[1:3])
        for row, number in enumerate(numbers):
            real[row, : len(words[number])] = torch.tensor(words[number], dtype=real.dtype)
        weights = real.to(states.device).unsqueeze(2)
        pooled = (states * weights).sum(dim=2) / weights.sum(dim=1).clamp(min=1)
        for number, vectors in zip(numbers, pooled.cpu().unbind(dim=1), strict=True):
            found[number] = vectors

    encoder_states(
        model,
        ids["input_ids"],
        pool,
        layers=layers,
        padding=tokenizer.pad_token_id,
        precision=precision,
    )
    return torch.stack(found, dim=1)


WORDS = ("average", "first", "last")
"""Which of its subwords stand for a word."""


def word_states(
    model: Any,
    tokenizer: Any,
    sentences: Sequence[Sequence[str]],
    *,
    layers: Sequence[int] = (-1,),
    words: str = "average",
    precision: str = "auto",
) -> list[Float[Tensor, "layer word dim"]]:
    """Return the states of each sentence's words in some layers, where the encoder is.

    Layer 0 is the embeddings, -1 the last. A sentence is cut where the encoder has no more positions: what is
    returned are the words that are whole before the cut, nearly always all.
    """
    check_words(words, "word states")
    opening, closing = special_subwords(tokenizer)
    room = family_of(model).longest_text(model.config) - 2
    split = [cut(one, room) for one in split_words(sentences, tokenizer)]
    found: list[Tensor] = [torch.empty(0)] * len(sentences)

    def aggregate(numbers: list[int], states: Float[Tensor, "layer batch subword dim"]) -> None:
        width = states.shape[2]
        parts = [split[number] for number in numbers]
        first, count = (torch.tensor(side, dtype=torch.long) for side in _places(parts, width))
        vectors = _AGGREGATED[words](states.flatten(1, 2), first.to(states.device), count.to(states.device))
        sizes = [_length(part) for part in parts]
        for number, own in zip(numbers, torch.split(vectors, sizes, dim=1), strict=True):
            found[number] = own

    texts = [[opening, *one.subwords, closing] for one in split]
    encoder_states(
        model, texts, aggregate, layers=layers, padding=tokenizer.pad_token_id, precision=precision
    )
    return found


def check_words(name: str, where: str) -> str:
    """Return the name of a way to make a word's state if it is known; ConfigError otherwise."""
    if name not in WORDS:
        raise unknown_name(where, "way to make a word of its subwords", name, WORDS)
    return name


def cut(sentence: SplitWords, room: int) -> SplitWords:
    """Leave out the words that are not whole within so many subwords."""
    if len(sentence.subwords) <= room:
        return sentence
    end = max(room, 0)
    while end and sentence.words[end] == sentence.words[end - 1]:
        end -= 1
    return SplitWords(sentence.subwords[:end], sentence.words[:end])


def _length(sentence: SplitWords) -> int:
    return sentence.words[-1] + 1 if sentence.words else 0


def _places(sentences: Sequence[SplitWords], width: int) -> tuple[list[int], list[int]]:
    """Return where each word of a batch of rows begins, after one special subword, and its subwords."""
    first: list[int] = []
    count: list[int] = []
    for row, sentence in enumerate(sentences):
        starts = sentence.first()
        first += [row * width + 1 + start for start in starts]
        count += [end - start for start, end in pairwise([*starts, len(sentence.words)])]
    return first, count


Rows = Float[Tensor, "layer row dim"]
Words = Float[Tensor, "layer word dim"]


def _average(states: Rows, first: Int[Tensor, " word"], count: Int[Tensor, " word"]) -> Words:
    total = states[:, first]
    for place in range(1, int(count.max()) if len(count) else 0):  # Places differ: equal sums every time.
        longer = count > place
        total[:, longer] += states[:, first[longer] + place]
    return total / count.unsqueeze(1)


def _first(states: Rows, first: Int[Tensor, " word"], count: Int[Tensor, " word"]) -> Words:  # noqa: ARG001
    return states[:, first]


def _last(states: Rows, first: Int[Tensor, " word"], count: Int[Tensor, " word"]) -> Words:
    return states[:, first + count - 1]


_AGGREGATED = {"average": _average, "first": _first, "last": _last}
