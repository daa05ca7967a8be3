"""The alignment model of fast_align: a lexicon, and a liking for the diagonal (Dyer et al. 2013, Sec. 2).

Word j of m in one language comes from word i of n in the other, or from none, with
p(i) ∝ exp(−λ|i/n − j/m|) and p(none) = p₀; so its posterior is p(i)·t(f_j|e_i), normalised.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

NONE = 0
"""Number of the word that stands for no word; others count from 1, unknown ones are below 0."""

UNSEEN = 1e-9
"""Probability of two words that were never seen together, as in fast_align."""

CELLS = 1_000_000
"""Pairs of words that are looked up at once."""

Words = NDArray[np.int64]


@dataclass(frozen=True)
class Lexicon:
    """t(f|e) for words by number: pairs of words as one sorted number each, and their probabilities."""

    keys: NDArray[np.int64]
    probabilities: NDArray[np.float32]

    @classmethod
    def of(cls, given: Words, made: Words, probabilities: NDArray[np.float32]) -> "Lexicon":
        """Make a lexicon from entries in any order."""
        keys = word_pairs(given, made)
        order = np.argsort(keys)
        return cls(keys[order], probabilities[order])

    def of_keys(self, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        """Look up pairs of words."""
        found = np.full(len(keys), UNSEEN)
        if len(self.keys):
            places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
            there = self.keys[places] == keys
            found[there] = self.probabilities[places[there]]
        return found


def joint(
    lexicon: Lexicon, pairs: Sequence[tuple[Words, Words]], *, tension: float, none: float
) -> Iterator[NDArray[np.float64]]:
    """Give for each pair (given words e, made words f) the matrix p(i)·t(f_j|e_i) [made, 1 + given].

    Column 0 is no word. ``tension`` is λ, ``none`` is p₀.
    """
    for start, stop in _chunks(pairs):
        chunk = pairs[start:stop]
        cells = [word_pairs(np.insert(given, 0, NONE)[None, :], made[:, None]) for given, made in chunk]
        values = lexicon.of_keys(np.concatenate([keys.ravel() for keys in cells]))
        ends = np.cumsum([keys.size for keys in cells])[:-1]
        for keys, part in zip(cells, np.split(values, ends), strict=True):
            yield part.reshape(keys.shape) * prior(keys.shape[1] - 1, keys.shape[0], tension, none)


def best_links(probabilities: NDArray[np.float64]) -> dict[tuple[int, int], float]:
    """Return for each made word j that has one its best given word i, as (i, j), with the posterior."""
    best = probabilities.argmax(axis=1)
    highest = probabilities[np.arange(len(best)), best] / probabilities.sum(axis=1)
    linked = np.flatnonzero(best != 0)
    return {(int(best[j]) - 1, int(j)): float(highest[j]) for j in linked}


@lru_cache(maxsize=8192)
def prior(given: int, made: int, tension: float, none: float) -> NDArray[np.float64]:
    """Return p(none) and p(i) of every made word [made, 1 + given], before the words are seen."""
    away = np.abs(np.arange(1, given + 1)[None, :] / given - np.arange(1, made + 1)[:, None] / made)
    near = np.exp(-tension * away)
    before = np.empty((made, 1 + given))
    before[:, 0] = none
    before[:, 1:] = (1 - none) * near / near.sum(axis=1, keepdims=True)
    return before


def word_pairs(given: Words, made: Words) -> NDArray[np.int64]:
    """Return pairs of words as one number each."""
    return given * (1 << 32) + made


def words_of_pairs(keys: NDArray[np.int64]) -> tuple[Words, Words]:
    """Return the two words of each pair; neither is unknown."""
    return keys >> 32, keys & ((1 << 32) - 1)


def _chunks(pairs: Sequence[tuple[Words, Words]]) -> Iterator[tuple[int, int]]:
    start = cells = 0
    for place, (given, made) in enumerate(pairs):
        size = (1 + len(given)) * len(made)
        if cells + size > CELLS and place > start:
            yield start, place
            start, cells = place, 0
        cells += size
    if start < len(pairs):
        yield start, len(pairs)
