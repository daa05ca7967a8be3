"""Sentences as rows: a word is represented by its first subword, long sentences become windows.

Each word is scored in exactly one row; ``merge`` puts a sentence together again before anything is decoded,
so that no entity is cut at a window's border.
"""

from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING

from isogloss.encoders.subwords import Window, special_subwords, split_words, windows
from isogloss.tasks.batch import EncodedRow

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

LIMIT = 128
"""Subwords of a row with the special ones (under-specified optimization, appendix)."""

OVERLAP = 64
"""Subwords that neighbouring windows share (the paper's released code)."""

SPECIAL = 2
"""One subword opens a text, one closes it."""


def sentence_rows(
    sentences: Sequence[Sequence[str]],
    gold: Sequence[tuple[int, ...]],
    tokenizer: "PreTrainedTokenizerFast",
    *,
    limit: int,
    overlap: int,
) -> list[EncodedRow]:
    """Encode sentences with one label number per word, or with ``()`` where there are no labels.

    Rows have at most ``limit`` subwords with the special ones; neighbouring windows share ``overlap``.
    Rows come in the order of sentences and words; sentences without words have none.
    """
    _check_overlap(limit, overlap)
    opening, closing = special_subwords(tokenizer)
    rows: list[EncodedRow] = []
    for example, (split, labels) in enumerate(zip(split_words(sentences, tokenizer), gold, strict=True)):
        first = split.first()
        for window in windows(len(split.subwords), limit=limit - SPECIAL, overlap=overlap):
            owned = _owned(first, window)
            if owned.start == owned.stop:
                continue  # Inside one endless word no first subword is owned: there is nothing to score.
            rows.append(
                EncodedRow(
                    example=example,
                    subwords=(opening, *split.subwords[window.start : window.stop], closing),
                    positions=tuple(1 + place - window.start for place in first[owned]),
                    words=tuple(range(owned.start, owned.stop)),
                    gold=labels[owned],
                )
            )
    return rows


def merge(lengths: Sequence[int], rows: Sequence[EncodedRow], values: Sequence[int]) -> list[list[int]]:
    """Put together, for each sentence of ``lengths`` words, the values at the places of all its rows.

    ``values`` has one entry per place, row after row. ValueError unless every word has exactly one.
    """
    missing = -1
    merged = [[missing] * length for length in lengths]
    flat = iter(values)
    for row in rows:
        words = merged[row.example]
        for word in row.words:
            words[word] = next(flat)
    places = sum(len(row.words) for row in rows)
    if places != len(values) or places != sum(lengths) or any(missing in words for words in merged):
        raise ValueError(
            f"{len(values)} values at {places} places for {sum(lengths)} words: decode all rows of all "
            f"examples together, each once."
        )
    return merged


def _owned(first: list[int], window: Window) -> slice:
    """Return the words whose first subword a window owns."""
    return slice(bisect_left(first, window.own_start), bisect_left(first, window.own_stop))


def _check_overlap(limit: int, overlap: int) -> None:
    if not 0 <= overlap < limit - SPECIAL:
        raise ValueError(
            f"rows of {limit} subwords, {SPECIAL} of them special, cannot overlap by {overlap}: "
            f"use an overlap of 0 to {limit - SPECIAL - 1}."
        )
