"""Choose among models by one rule that is fixed beforehand, if the target has no labels.

Candidates c in a language l have signals s_k of several kinds, which need no labels there and rise with the
score. Similar signals, such as mean confidence and mean entropy, are of one kind.

    R(c, l) = mean over kinds of mean over k of (s_k(c, l) - mean over c) / std over c

The candidate with the highest R is chosen. R ranks candidates, but does not predict the level of their
scores: the same signals are 8 to 24 points above the scores as levels, by a different amount in each study.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


def standardise_signal(signal: Array) -> Array:
    """Return a signal [candidate language] with mean 0 and deviation 1 over each language's candidates.

    nan stays nan; where all candidates are equal they are 0.
    """
    table = np.array(signal, dtype=np.float64)
    result = np.full_like(table, np.nan)
    for column in range(table.shape[1]):
        present = ~np.isnan(table[:, column])
        values = table[present, column]
        if len(values):
            spread = values.std()
            result[present, column] = (values - values.mean()) / spread if spread > 1e-12 else 0.0
    return result


def rule(kinds: Iterable[Iterable[Array]]) -> Array:
    """Return R [candidate language]: the mean over kinds of their mean standardised signals.

    R is rounded, so that candidates with only rounding differences are equal, and the first is chosen.
    """
    return _mean([_mean([standardise_signal(signal) for signal in signals]) for signals in kinds]).round(9)


def best(rankings: Array, language: int) -> int:
    """Return the index of the candidate with the highest R in a language, the first of equals."""
    return int(np.nanargmax(rankings[:, language]))


def labelled_languages(rankings: Array, scores: Array) -> list[int]:
    """Return the languages in which at least two ranked candidates have scores, and all that are ranked."""
    ranked_cells, scored_cells = ~np.isnan(rankings), ~np.isnan(scores)
    return [
        language
        for language in range(rankings.shape[1])
        if ranked_cells[:, language].sum() > 1
        and not (ranked_cells[:, language] & ~scored_cells[:, language]).any()
    ]


def regret(scores: Array, language: int, choice: int, candidates: Mask) -> float:
    """Return the best score among ``candidates`` [candidate] minus the score of the choice."""
    return float(scores[candidates, language].max() - scores[choice, language])


def _mean(tables: Sequence[Array]) -> Array:
    """Return the mean of the numbers that are not nan. nan if all are."""
    stack = np.stack(tables)
    present = ~np.isnan(stack)
    counts = present.sum(axis=0)
    sums = np.where(present, stack, 0.0).sum(axis=0)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
