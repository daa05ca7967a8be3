"""Estimate the score of a model in a language without labels, with an interval, or say "don't know".

Other languages l have labels: the same model was scored there. Signals s_k are shares that need no labels,
such as the share of translated pairs with equal predictions (consistency), ATC and DoC
(``label_free``). S is the source, L(p) = log(p / (1 − p)) with p clipped to [0.02, 0.98].

    x_k(l) = L(s_k(l)) − L(s_k(S))                       the drop of a signal
    y(l)   = L(score(l)) − L(score(S))                   the drop of the score
    m_−f   = ridge regression of y on x without family f
    r(l)   = |y(l) − m_−f(l)(x(l))|
    high   = L⁻¹(L(score(S)) + Q), Q the smallest v with  Σ_{l: m_−f(l)(x) + r(l) ≤ v} w(l) / (K + 1) ≥ level

``low`` is the same with the sign turned; w(l) = 1 / (languages of l's family), so that each of the K families
counts once. This is the jackknife+ (Barber et al. 2021) over clusters (Dunn, Wasserman and Ramdas 2022; Lee,
Barber and Willett 2023). It covers at least 2·level − 1, in practice ``level``, *over targets drawn like the
known families*, not for one given target. Without signals the drops of the known languages remain: the
plain interval, which the signals have to improve.

``score_bound`` needs no other language. Translations have the same gold label on both sides, so the source's
accuracy s and the consistency c bound the accuracy a (Fréchet):

    max(0, s + c − 1) ≤ a ≤ min(s, c) + min(1 − s, 1 − c)
"""

import math
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from annotated_types import Gt, Lt
from pydantic import Strict

from isogloss.core.arguments import checks_arguments
from isogloss.core.errors import ConfigError, DataError
from isogloss.core.languages import UNKNOWN, language_facts
from isogloss.core.run_parts import Count, Positive, Share

CLIP = 0.02
"""Scores and signals nearer to 0 or 1 are moved here, so that logits are finite."""

RIDGE = 2.0
"""Penalty on the squared coefficients of standardised signals."""

OUTSIDE = 0.1
"""Share of a signal's range by which the target may lie beyond the known languages."""

LEVEL = 0.8
"""Default coverage. 95 % would need 19 families with labels."""

MIN_SOURCE_EXAMPLES = 200
"""Examples of the source below which its score is too uncertain to start from."""

SOURCE_IS_ITS_SCORE = ("atc", "doc")
"""Signals that equal the score in the source."""

CONSISTENCY = "consistency"
"""Signal that is 1 in the source: a text and itself have the same prediction."""

ONE_SIDED = 0.9
"""Confidence of each end of the two shares in ``score_bound``."""

CONTRADICTION = 1.64
"""Standard errors by which the consistency may lie below the interval."""

Level = Annotated[float, Strict(), Gt(0), Lt(1)]

Floats = npt.NDArray[np.float64]

Label = Hashable

Mask = npt.NDArray[np.bool_]

Regression = Callable[[Floats], Floats]
"""From drops of signals [language signal] to expected drops of scores [language]."""


@dataclass(frozen=True, kw_only=True, repr=False)
class ExpectedScore:
    """The score to expect in a language without labels. It prints as a sentence or two."""

    language: str
    value: float
    """nan without enough families, as are ``low`` and ``high``."""
    low: float
    high: float
    plain_low: float
    """Interval from the known languages' scores without any signal."""
    plain_high: float
    level: float
    families: int
    """Families of the known languages."""
    languages: int
    signals: tuple[str, ...]
    doubts: tuple[str, ...]
    """Reasons why the answer is "don't know". Empty if there are none."""

    @property
    def is_known(self) -> bool:
        """Whether there is no doubt."""
        return not self.doubts

    def __repr__(self) -> str:
        """State the expected score, or why it is not known."""
        labelled_languages = f"{self.languages} languages of {self.families} families"
        if self.doubts:
            return f"{self.language}: don't know ({'; '.join(self.doubts)}); {labelled_languages} have labels"
        low, high, plain_low, plain_high = (
            f"{100 * end:.1f}" for end in (self.low, self.high, self.plain_low, self.plain_high)
        )
        return (
            f"{self.language}: {100 * self.value:.1f}, {self.level:.0%} interval {low} to {high} "
            f"(without signals {plain_low} to {plain_high}); {labelled_languages} have labels"
        )


@checks_arguments
def expected_score(
    target: str,
    source: str,
    scores: Mapping[str, Share],
    signals: Mapping[str, Mapping[str, Share]] | None = None,
    *,
    families: Mapping[str, str] | None = None,
    level: Level = LEVEL,
    source_examples: Count | None = None,
    commonest_label: Share | None = None,
    pairs: Count = 0,
) -> ExpectedScore:
    """Estimate the score of one model in a target without labels, from languages that have some.

    ``scores`` are the scores of one model by language, from 0 to 1 and by one metric. They include its
    ``source``, on which it was trained, and each language with labels (at least 50 examples). The target's
    score is not read. ``signals`` name for each signal its values by language, 0 to 1, for the target and
    every language with a score. The source needs one except for atc and doc (its score) and consistency (1).
    ``families`` are the family of each language. Default: Glottolog's. ``level`` is the coverage: 0.8 needs 4
    families, 0.9 needs 9 and 0.95 needs 19. ``source_examples`` are the examples of the source's score and
    ``commonest_label`` is the share of its commonest label. Default: not checked. ``pairs`` are the
    translated pairs of the consistency. Default: it is exact.

    Raises ConfigError without the source's score, for a signal that a language lacks, and for a language of
    unknown family.

    Device: none. Cost: a regression per family.

    >>> scores = {"en": 0.9, "de": 0.8, "fi": 0.6, "tr": 0.55, "sw": 0.4, "ja": 0.45}
    >>> consistency = {"de": 0.85, "fi": 0.65, "tr": 0.6, "sw": 0.42, "ja": 0.5, "hu": 0.62}
    >>> expected_score("hu", "en", scores, {"consistency": consistency})
    hu: 56.9, 80% interval 42.8 to 65.9 (without signals 20.0 to 80.0); 5 languages of 5 families have labels
    >>> expected_score("hu", "en", {"en": 0.9, "de": 0.8, "sw": 0.4})
    hu: don't know (80% needs 4 families with labels, there are 2); 2 languages of 2 families have labels
    """
    signals = signals or {}
    _check_shares("scores", scores)
    if source not in scores:
        raise ConfigError(
            f"expected_score: scores has no {source!r}, the source. Give its score, from which the drops of "
            f"other languages are measured. There are: {', '.join(scores) or 'none'}."
        )
    labelled_languages = [language for language in scores if language not in (target, source)]
    base = float(logits(scores[source]))
    drops = _signal_drops(signals, scores, source=source, languages=[*labelled_languages, target])
    languages = Known(
        signals=drops[:-1],
        drops=logits([scores[language] for language in labelled_languages]) - base,
        families=_families(labelled_languages, families or {}),
    )
    count = len(set(languages.families))
    value = math.nan
    interval = signal_free_interval = (math.nan, math.nan)
    doubts = _doubt_source(scores[source], source_examples, commonest_label)
    if count < least_families(level):
        doubts.append(f"{level:.0%} needs {least_families(level)} families with labels, there are {count}")
    else:
        value = share_of(base + float(fit_ridge(languages)(drops[-1:])[0]))
        interval = _interval(languages, drops[-1], base, level)
        signal_free_interval = _interval(languages.without_signals(), drops[-1, :0], base, level)
        doubts += _doubt_signals(languages.signals, drops[-1], list(signals))
        if signals and interval[1] - interval[0] >= signal_free_interval[1] - signal_free_interval[0]:
            doubts.append("the signals say no more than the scores of the known languages")
        if CONSISTENCY in signals:
            doubts += _doubt_consistency(signals[CONSISTENCY][target], pairs, value, interval)
    return ExpectedScore(
        language=target,
        value=value,
        low=interval[0],
        high=interval[1],
        plain_low=signal_free_interval[0],
        plain_high=signal_free_interval[1],
        level=level,
        families=count,
        languages=len(labelled_languages),
        signals=tuple(signals),
        doubts=tuple(doubts),
    )


@dataclass(frozen=True)
class LabelConsistency:
    """Share of pairs to which a model gives one label, with its 80 % Wilson interval."""

    share: float
    low: float
    high: float
    pairs: int
    """Pairs of texts, or of linked words."""


@checks_arguments
def consistency(
    first: Sequence[Any], second: Sequence[Any], links: Sequence[Collection[tuple[int, int]]] | None = None
) -> LabelConsistency:
    """Return how often a model gives both sides of a translation the same label.

    Use it as a signal of ``expected_score`` and ``score_bound``. It predicts scores best among all signals
    without labels, and only it shows that a language has no transfer. It is no score: equal labels can be
    wrong.

    ``first`` are the labels predicted for each text in the source, or for each of its words, and ``second``
    those for its translation. ``links`` are the linked words of each pair (``isogloss.align``) if labels are
    of words. The interval then treats sentences as independent, but not the words of a sentence.

    Raises DataError for sides of different lengths, no pair, and a link beyond the words.

    Device: none. Cost: none.

    >>> consistency(["sports", "health", "travel"], ["sports", "health", "health"]).share
    0.6666666666666666
    >>> consistency([["DET", "NOUN"]], [["NOUN", "DET"]], [[(0, 1), (1, 0)]]).share
    1.0
    """
    if len(first) != len(second) or (links is not None and len(links) != len(first)):
        sizes = f"{len(first)} and {len(second)}" + (
            "" if links is None else f", and {len(links)} with links"
        )
        raise DataError(f"consistency: {sizes} pairs; both sides of every pair are needed, in one order.")
    if links is None:
        groups = [[label == other_label] for label, other_label in zip(first, second, strict=True)]
    else:
        groups = [
            _compare_words(index, words, other_words, word_links)
            for index, (words, other_words, word_links) in enumerate(zip(first, second, links, strict=True))
        ]
    groups = [group for group in groups if group]
    if not groups:
        raise DataError("consistency: no pair; give at least one, 100 or more for a useful interval.")
    count = sum(len(group) for group in groups)
    share = sum(sum(group) for group in groups) / count
    return LabelConsistency(share, *wilson_interval(share, _independent_count(groups, share)), count)


@checks_arguments
def score_bound(
    source_score: Share, source_examples: Positive, consistency: Share, pairs: Positive
) -> tuple[float, float]:
    """Bound the accuracy in a target from the accuracy in the source and the consistency on translations.

    Use it where no other language has labels. It holds for accuracy only, on texts whose translations have
    the same gold label, and is narrow only if both shares are high. ``source_score`` is a share of
    ``source_examples``, and ``consistency`` of ``pairs``. Both are taken at the ends of their one-sided 90 %
    Wilson intervals that widen the bound. Raises ConfigError for a share outside 0 to 1.

    Device: none. Cost: none.

    >>> [round(end, 2) for end in score_bound(0.95, 2000, 0.9, 500)]
    [0.82, 0.97]
    """
    source_low, source_high = wilson_interval(source_score, source_examples)
    low, high = wilson_interval(consistency, pairs)
    upper_bound = 1.0  # Where both intervals meet, every answer may be right and equal.
    if source_high < low:
        upper_bound = 1 - (low - source_high)
    elif high < source_low:
        upper_bound = 1 - (source_low - high)
    return max(0.0, source_low + low - 1), upper_bound


@checks_arguments
def wilson_interval(share: Share, count: Positive, one_sided: Level = ONE_SIDED) -> tuple[float, float]:
    """Return the Wilson interval of a share of ``count`` examples, with a one-sided confidence at each end.

    >>> [round(end, 3) for end in wilson_interval(0.5, 100)]
    [0.436, 0.564]
    """
    from scipy.special import ndtri

    z = float(ndtri(one_sided))
    centre = (share + z * z / (2 * count)) / (1 + z * z / count)
    margin = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count)) / (1 + z * z / count)
    return max(0.0, centre - margin), min(1.0, centre + margin)


def least_families(level: float = LEVEL) -> int:
    """Return the number of families below which an interval has no upper end.

    >>> [least_families(level) for level in (0.8, 0.9, 0.95)]
    [4, 9, 19]
    """
    return math.ceil(round(1 / (1 - level), 9)) - 1


@dataclass(frozen=True)
class Known:
    """Languages with labels: drops of signals [language signal], drops of scores and families [language]."""

    signals: Floats
    drops: Floats
    families: tuple[str, ...]

    def without_signals(self) -> "Known":
        """Return the languages without their signals."""
        return Known(self.signals[:, :0], self.drops, self.families)

    def select(self, languages: Mask) -> "Known":
        """Return a part of the languages."""
        families = tuple(
            name for name, is_selected in zip(self.families, languages, strict=True) if is_selected
        )
        return Known(self.signals[languages], self.drops[languages], families)

    @property
    def weights(self) -> Floats:
        """Weights [language] with which every family counts once."""
        return np.array([1 / self.families.count(name) for name in self.families])


def fit_ridge(languages: Known) -> Regression:
    """Fit the drops of scores to the drops of signals, each family with equal weight."""
    weights = languages.weights
    means = weights @ languages.signals / weights.sum()
    centred_signals = languages.signals - means
    deviations = np.sqrt(np.maximum(weights @ centred_signals**2 / weights.sum(), 1e-8))
    features = centred_signals / deviations
    mean_drop = weights @ languages.drops / weights.sum()
    penalty = RIDGE * np.eye(len(means))
    slopes = np.linalg.solve(
        features.T @ (weights[:, None] * features) + penalty,
        features.T @ (weights * (languages.drops - mean_drop)),
    )
    return lambda signals: np.asarray(mean_drop + (signals - means) / deviations @ slopes)


def logits(shares: npt.ArrayLike) -> Floats:
    """Return L of shares, which are moved away from 0 and 1 by CLIP."""
    clipped_shares = np.clip(np.asarray(shares, dtype=float), CLIP, 1 - CLIP)
    return np.asarray(np.log(clipped_shares / (1 - clipped_shares)))


def share_of(logit: float) -> float:
    """Return the share with a logit, which may be infinite."""
    return 0.5 * (1 + math.tanh(logit / 2))


def _compare_words(
    index: int, labels: Sequence[Label], other_labels: Sequence[Label], links: Collection[tuple[int, int]]
) -> list[bool]:
    """Return for each link whether both words have one label."""
    for word, other_word in links:
        if not (0 <= word < len(labels) and 0 <= other_word < len(other_labels)):
            raise DataError(
                f"consistency: links[{index}]: found ({word}, {other_word}); expected indices below "
                f"{len(labels)} and {len(other_labels)}, the numbers of words."
            )
    return [labels[word] == other_labels[other_word] for word, other_word in links]


def _independent_count(groups: Sequence[Sequence[bool]], share: float) -> int:
    """Return the number of independent pairs whose share has the variance of a share of grouped pairs.

    The variance of a ratio p of sums over n groups (Cochran 1977, Section 6.3) is n/(n − 1) Σ(e_g − p m_g)² /
    M², with e_g equal pairs of m_g in a group, and M in all. The number is between 1 and M.
    """
    count = sum(len(group) for group in groups)
    if count == len(groups):
        return count
    surplus = math.fsum((sum(group) - share * len(group)) ** 2 for group in groups)
    if surplus == 0 or len(groups) == 1:
        return len(groups)
    variance = len(groups) / (len(groups) - 1) * surplus / count**2
    return max(1, min(count, round(share * (1 - share) / variance)))


def _interval(languages: Known, signals: Floats, base: float, level: float) -> tuple[float, float]:
    """Return both ends of the jackknife+ interval by family, as shares."""
    families = np.array(languages.families)
    lows = np.empty(len(families))
    highs = np.empty(len(families))
    for family in dict.fromkeys(languages.families):
        inside = families == family
        predict = fit_ridge(languages.select(~inside))
        errors = np.abs(languages.drops[inside] - predict(languages.signals[inside]))
        expected = float(predict(signals[None])[0])
        lows[inside] = expected - errors
        highs[inside] = expected + errors
    shares = languages.weights / (len(set(languages.families)) + 1)
    low = -_quantile(-lows, shares, level)
    return share_of(base + low), share_of(base + _quantile(highs, shares, level))


def _quantile(values: Floats, weights: Floats, level: float) -> float:
    """Return the smallest value up to which the weights sum to ``level``. Infinite if they never do."""
    order = np.argsort(values)
    index = int(np.searchsorted(np.cumsum(weights[order]), level - 1e-12))
    return float(values[order][index]) if index < len(values) else math.inf


def _check_shares(name: str, shares: Mapping[str, float]) -> None:
    """Raise ConfigError for a value that is no share."""
    for language, share in shares.items():
        if not 0 <= share <= 1:
            raise ConfigError(
                f"expected_score: {name}, {language}: found {share}; expected a share from 0 to 1. Divide "
                f"percents by 100."
            )


def _families(languages: Sequence[str], families_given: Mapping[str, str]) -> tuple[str, ...]:
    """Return the family of each language, as given or from the table of facts."""
    families = tuple(
        families_given.get(language) or language_facts(language).family for language in languages
    )
    if unknown_languages := [
        language for language, name in zip(languages, families, strict=True) if name == UNKNOWN
    ]:
        raise ConfigError(
            f"expected_score: the family of {' and '.join(unknown_languages)} is unknown. Give it, as in "
            f"families={{{unknown_languages[0]!r}: 'Bantu'}}; languages of one family count as one."
        )
    return families


def _signal_drops(
    signals: Mapping[str, Mapping[str, float]],
    scores: Mapping[str, float],
    *,
    source: str,
    languages: Sequence[str],
) -> Floats:
    """Return x [language signal], the drops of signals from the source."""
    drops = np.empty((len(languages), len(signals)))
    for column, (name, shares) in enumerate(signals.items()):
        defaults = {source: 1.0} if name == CONSISTENCY else {}
        if name in SOURCE_IS_ITS_SCORE:
            defaults = {source: scores[source]}
        complete = {**defaults, **shares}
        if missing := [language for language in (source, *languages) if language not in complete]:
            raise ConfigError(
                f"expected_score: signal {name!r} has no value for {' and '.join(missing)}. Give one for the "
                f"target and every language with a score, or remove the signal."
            )
        _check_shares(name, complete)
        drops[:, column] = logits([complete[language] for language in languages]) - logits(complete[source])
    return drops


def _doubt_source(score: float, examples: int | None, commonest_label: float | None) -> list[str]:
    """Return reasons why the score of the source cannot be relied on."""
    doubts = []
    if examples is not None and examples < MIN_SOURCE_EXAMPLES:
        doubts.append(f"the source's score is over {examples} examples, fewer than {MIN_SOURCE_EXAMPLES}")
    if (
        commonest_label is not None
        and score <= wilson_interval(commonest_label, examples or MIN_SOURCE_EXAMPLES)[1]
    ):
        doubts.append(
            f"the source is not learned: {100 * score:.1f} is no better than always its commonest label "
            f"({100 * commonest_label:.1f})"
        )
    return doubts


def _doubt_signals(known_signals: Floats, target_signals: Floats, names: Sequence[str]) -> list[str]:
    """Return which signals of the target lie outside the range of the known languages."""
    slack = OUTSIDE * (known_signals.max(axis=0) - known_signals.min(axis=0))
    is_outside = (target_signals < known_signals.min(axis=0) - slack) | (
        target_signals > known_signals.max(axis=0) + slack
    )
    outside = [name for name, is_beyond in zip(names, is_outside, strict=True) if is_beyond]
    return [f"{' and '.join(outside)} of the target is beyond the known languages"] if outside else []


def _doubt_consistency(
    consistency: float, pairs: int, value: float, interval: tuple[float, float]
) -> list[str]:
    """Return whether the consistency itself is far below the interval, as in a language without transfer."""
    error = math.sqrt(consistency * (1 - consistency) / pairs) if pairs else 0.0
    if value - consistency <= (interval[1] - interval[0]) / 2 + CONTRADICTION * error:
        return []
    return [f"the consistency, {100 * consistency:.1f}, contradicts the expected {100 * value:.1f}"]
