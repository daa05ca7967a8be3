"""How fast_align learns its lexicons: expectation maximisation (Dyer et al. 2013, Sec. 2.1).

Sentence pairs with as many words on each side are arrays [pair, made, given] of entries: the numbers of word
pairs that were seen together. Both directions read the same entries, and a round is a few operations on
arrays. The M-step has a Dirichlet prior α: t(f|e) = exp(ψ(c(e,f) + α) − ψ(Σ_f' c(e,f') + α)). The tension λ
stays what it is: adapted, as the program may do, it runs to its greatest value, and links are worse.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.aligners.diagonal_model import (
    NONE,
    UNSEEN,
    Lexicon,
    Words,
    prior,
    word_pairs,
    words_of_pairs,
)

CELLS = 1_000_000
"""Pairs of words that are looked at at once."""

Floats = NDArray[np.float64]

Block = NDArray[np.int32]
"""Entries of some pairs with as many words on each side: [pair, made, given]."""


@dataclass(frozen=True, kw_only=True)
class Training:
    """How lexicons are learned: rounds, λ, α, p₀."""

    rounds: int
    tension: float
    prior: float
    none: float


def learned(
    pairs: Sequence[tuple[Words, Words]], training: Training, on_progress: Callable[[int], None]
) -> tuple[Lexicon, Lexicon]:
    """Learn the lexicon of second words given first ones, and that of first words given second ones.

    No side may be without words. ``on_progress`` hears the rounds done, of both directions together.
    """
    keys, blocks = _seen_together(pairs)
    first, second = words_of_pairs(keys)
    turned = [block.transpose(0, 2, 1) for block in blocks]
    return (
        _direction(_Entries(first, second), blocks, training, on_progress),
        _direction(
            _Entries(second, first), turned, training, lambda done: on_progress(training.rounds + done)
        ),
    )


class _Entries(NamedTuple):
    """The words of every entry, in one direction."""

    given: Words
    made: Words


class _Table(NamedTuple):
    """A number for every entry, and one for every made word as a word that comes from none."""

    entries: Floats
    none: Floats


def _direction(
    entries: _Entries, blocks: Sequence[Block], training: Training, on_progress: Callable[[int], None]
) -> Lexicon:
    words = int(entries.made.max(initial=NONE)) + 1
    table = _Table(np.full(len(entries.made), UNSEEN), np.full(words, UNSEEN))
    for done in range(training.rounds):
        counts = _expected(table, entries.made, blocks, training)
        table = _maximised(counts, entries, training.prior)
        on_progress(done + 1)
    return _kept(table, entries)


def _expected(table: _Table, made: Words, blocks: Sequence[Block], training: Training) -> _Table:
    """Return how often every entry is expected to be a link (E-step)."""
    counts = _Table(np.zeros_like(table.entries), np.zeros_like(table.none))
    for block in blocks:
        before = prior(block.shape[2], block.shape[1], training.tension, training.none)
        own = made[block[:, :, 0]]
        of_none = table.none[own] * training.none
        links = table.entries[block] * before[:, 1:]
        total = links.sum(axis=2) + of_none
        links /= total[:, :, None]
        np.add.at(counts.entries, block.ravel(), links.ravel())
        np.add.at(counts.none, own.ravel(), (of_none / total).ravel())
    return counts


def _maximised(counts: _Table, entries: _Entries, alpha: float) -> _Table:
    """Make probabilities of expected counts (M-step)."""
    sums = np.bincount(entries.given, counts.entries) + alpha * np.bincount(entries.given)
    seen = np.bincount(entries.made, minlength=len(counts.none)) > 0
    of_none = counts.none.sum() + alpha * seen.sum()
    return _Table(
        _shares(counts.entries, sums[entries.given], alpha),
        np.where(seen, _shares(counts.none, of_none, alpha), UNSEEN),
    )


def _shares(counts: Floats, sums: Floats | np.float64, alpha: float) -> Floats:
    if not alpha:
        return np.maximum(counts, np.finfo(float).tiny) / np.maximum(sums, np.finfo(float).tiny)
    from scipy.special import digamma

    return np.asarray(np.exp(digamma(counts + alpha) - digamma(sums)))


def _kept(table: _Table, entries: _Entries) -> Lexicon:
    """Return the lexicon without the entries that are no likelier than words never seen together."""
    made, likely = np.flatnonzero(table.none > UNSEEN), table.entries > UNSEEN
    return Lexicon.of(
        np.concatenate((np.full(len(made), NONE), entries.given[likely])),
        np.concatenate((made, entries.made[likely])),
        np.concatenate((table.none[made], table.entries[likely])).astype(np.float32),
    )


def _seen_together(pairs: Sequence[tuple[Words, Words]]) -> tuple[NDArray[np.int64], list[Block]]:
    """Return all pairs of words that were seen together, sorted, and the blocks of their places there."""
    known, places = [], []
    for group in _groups(pairs):
        cells = [
            word_pairs(given[:, None, :], made[:, :, None])
            for given, made in ([np.array(side) for side in zip(*part, strict=True)] for part in group)
        ]
        keys, inverse = np.unique(np.concatenate([one.ravel() for one in cells]), return_inverse=True)
        known.append(keys)
        places.append((inverse.astype(np.int32), [one.shape for one in cells]))
    every = np.sort(np.concatenate(known))
    every = every[np.insert(every[1:] != every[:-1], 0, values=True)]
    blocks: list[Block] = []
    for own, (numbers, shapes) in zip(known, places, strict=True):
        entries: Block = np.searchsorted(every, own).astype(np.int32)[numbers]
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
        parts = zip(np.split(entries, ends), shapes, strict=True)
        blocks += [part.reshape(shape) for part, shape in parts]
    return every, blocks


def _groups(pairs: Sequence[tuple[Words, Words]]) -> Iterator[list[list[tuple[Words, Words]]]]:
    """Give lists of lists of pairs with as many words on each side; a group has some CELLS cells."""
    alike: dict[tuple[int, int], list[tuple[Words, Words]]] = {}
    for given, made in pairs:
        alike.setdefault((len(given), len(made)), []).append((given, made))
    group: list[list[tuple[Words, Words]]] = []
    cells = 0
    for sizes, those in alike.items():
        most = max(1, CELLS // (sizes[0] * sizes[1]))
        for start in range(0, len(those), most):
            group.append(those[start : start + most])
            cells += len(group[-1]) * sizes[0] * sizes[1]
            if cells >= CELLS:
                yield group
                group, cells = [], 0
    if group:
        yield group
