"""Choosing among models where the target has no labels: one rule, fixed beforehand, and how sure it is.

Of candidates c in a language l, with signals s_k of several kinds that need no labels there and rise with the
score (of one kind are those that say much the same, as a mean confidence and a mean entropy do):

    R(c, l) = mean over kinds of mean over k of (s_k(c, l) - mean over c) / std over c
    y(c, l) = a + b E(l) + g R(c, l) + u(l) + v(c, l)

The candidate of the highest R is chosen, and y is the score predicted for it. E(l) is the mean over
candidates of what they estimate their scores to be; a and b come from the means of the languages with
labels, g >= 0 from the differences within these. The unit of replication is the language: the error of u
has as many degrees of freedom as languages with labels, less two. What the choice gains over a candidate
drawn at random has an interval of its own, from how far g R was off in each of these languages, found
without it. Where that interval reaches 0 the answer is "don't know".
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isogloss.metrics.estimates import LEVEL, t_quantile

Array = npt.NDArray[np.float64]

MIN_LABELLED_LANGUAGES = 3
"""Languages with labels from which scores and gains can be predicted."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """A predicted number with its 95 % interval; nan where there are too few languages with labels."""

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan

    def among_scores(self) -> "Prediction":
        """Clip the prediction and its interval to [0, 1]."""
        return Prediction(*(min(1.0, max(0.0, bound)) for bound in (self.value, self.low, self.high)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The decision for one language."""

    choice: int
    """Index of the chosen candidate."""
    score: Prediction
    """Its score."""
    gain: Prediction
    """Its score minus the candidates' mean."""

    @property
    def known(self) -> bool:
        """Whether the gain's interval lies above 0; else the answer is "don't know"."""
        return self.gain.low > 0


def standardised(signal: Array) -> Array:
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

    It is rounded, so that candidates that differ by rounding alone are equal, and the first is chosen.
    """
    return _mean([_mean([standardised(signal) for signal in signals]) for signals in kinds]).round(9)


def _mean(tables: Sequence[Array]) -> Array:
    """Return the mean of the numbers that are not nan; nan if all are."""
    stacked = np.stack(tables)
    present = ~np.isnan(stacked)
    counts = present.sum(axis=0)
    sums = np.where(present, stacked, 0.0).sum(axis=0)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def decide(
    ranked: Array, estimated: Array, scores: Array, language: int, labelled: Sequence[int]
) -> Decision:
    """Decide for one language from the scores of labelled ones.

    ``ranked`` [candidate language] is R, ``estimated`` [language] is E, ``scores`` [candidate language] are
    read in the ``labelled`` languages alone.
    """
    if language in labelled:
        raise ValueError(f"language {language} is among the labelled ones: its labels would decide")
    choice = int(np.nanargmax(ranked[:, language]))
    advantage = float(ranked[choice, language] - np.nanmean(ranked[:, language]))
    if len(labelled) < MIN_LABELLED_LANGUAGES:
        return Decision(choice=choice, score=Prediction(), gain=Prediction())
    slope, within = _within(ranked, scores, labelled)
    means = np.array([np.nanmean(scores[:, other]) for other in labelled])
    level, error, freedom = _between(estimated[list(labelled)], means, float(estimated[language]))
    score = _interval(level + slope * advantage, math.hypot(error, within), freedom).among_scores()
    return Decision(choice=choice, score=score, gain=_gain(ranked, scores, labelled, slope * advantage))


def leave_one_out(ranked: Array, estimated: Array, scores: Array) -> dict[int, Decision]:
    """Decide for each language with scores as if it had none, by the others that have some."""
    labelled = labelled_languages(ranked, scores)
    return {
        language: decide(
            ranked, estimated, scores, language, [other for other in labelled if other != language]
        )
        for language in labelled
    }


def labelled_languages(ranked: Array, scores: Array) -> list[int]:
    """Return the languages in which at least two ranked candidates have scores, and all that are ranked."""
    ranked_cells, scored_cells = ~np.isnan(ranked), ~np.isnan(scores)
    return [
        language
        for language in range(ranked.shape[1])
        if ranked_cells[:, language].sum() > 1
        and not (ranked_cells[:, language] & ~scored_cells[:, language]).any()
    ]


def regret(scores: Array, language: int, choice: int, candidates: Array) -> float:
    """Return the best score of the ``candidates`` (a mask [candidate]) minus that of the choice."""
    return float(scores[candidates, language].max() - scores[choice, language])


def _centred(values: Array, mask: Array) -> Array:
    return np.asarray(values[mask] - values[mask].mean(), dtype=np.float64)


def _within(ranked: Array, scores: Array, labelled: Sequence[int]) -> tuple[float, float]:
    """Return g, and the standard deviation of v, over the candidates of the known languages."""
    masks = {language: ~np.isnan(ranked[:, language]) for language in labelled}
    x, y = (
        np.concatenate([_centred(values[:, language], mask) for language, mask in masks.items()])
        for values in (ranked, scores)
    )
    square = float(x @ x)
    slope = max(0.0, float(x @ y) / square) if square > 0 else 0.0
    rest = y - slope * x
    return slope, math.sqrt(float(rest @ rest) / max(1, len(x) - len(labelled) - 1))


def _between(estimated: Array, means: Array, at: float) -> tuple[float, float, int]:
    """Return a + b E at a language, the standard error of predicting its mean, and the degrees of freedom."""
    n, centre = len(means), float(estimated.mean())
    x, y = estimated - centre, means - means.mean()
    square = float(x @ x)
    if not square > 1e-12 or math.isnan(at):  # Nothing is estimated, or the same everywhere.
        return float(means.mean()), math.sqrt(float(y @ y) / (n - 1) * (1 + 1 / n)), n - 1
    slope = float(x @ y) / square
    rest = y - slope * x
    spread = float(rest @ rest) / (n - 2) * (1 + 1 / n + (at - centre) ** 2 / square)
    return float(means.mean()) + slope * (at - centre), math.sqrt(spread), n - 2


def _gain(ranked: Array, scores: Array, labelled: Sequence[int], predicted: float) -> Prediction:
    """Return the predicted gain, with how far such predictions were off in each known language left out."""
    off = []
    for language in labelled:
        slope, _ = _within(ranked, scores, [other for other in labelled if other != language])
        mask = ~np.isnan(ranked[:, language])
        choice = int(np.nanargmax(ranked[:, language]))
        advantage = float(ranked[choice, language] - ranked[mask, language].mean())
        off.append(float(scores[choice, language] - scores[mask, language].mean()) - slope * advantage)
    n = len(off)
    error = float(np.std(off, ddof=1)) * math.sqrt(1 + 1 / n)
    return _interval(predicted + float(np.mean(off)), error, n - 1)


def _interval(value: float, error: float, freedom: int) -> Prediction:
    half = t_quantile(1 - LEVEL / 2, freedom) * error
    return Prediction(value, value - half, value + half)
