"""Checks of the claims of four papers: correlations, trends, spreads over seeds, and independent groups."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from isogloss.core.languages import UNKNOWN, is_built_in, language_facts
from isogloss.data.generated import generated_languages
from isogloss.features.claims.spreads import compare_spreads, logits
from isogloss.metrics.estimates import (
    POWER,
    independent_estimate,
)
from isogloss.metrics.ranks import INTERVAL_Z, spearman_within, trend_p_value
from isogloss.reports.checks import ALMOST_ONE, Bounds, Check, Statistic, check_of, fisher_z

FEWEST_SEEDS = 3
"""The minimum number of seeds for a comparison of spreads."""

FEWEST_LANGUAGES = 8
"""With fewer, rank correlations are hardly ever significant: with five languages only ρ = 1."""

HURTS: Bounds = {"below": 0.0}

AS_BEFORE: Bounds = {"above": -0.01, "below": 0.01}
"""Within one point: an insignificant difference may yet be large, so equality needs bounds."""

SHARED_WORDS = 0.1
"""Built-in languages are near their source if they share this many of its words or more, else far."""

RATIO_LOST = 1.4
"""An effect is detected in 80 % of studies if it lies 1.4 half-widths of the interval from the bound."""

SPLITS = ("test", "dev")
"""Preferred split of comparisons that have several: the test split."""


def check_independent(
    ours: Iterable[float],
    theirs: Iterable[float],
    label: str,
    bounds: Bounds,
    unit: str = "seed",
    *,
    examples: tuple[float, int] = (0.0, 0),
) -> Check:
    """Return the check of a difference of two means over independent units, such as two encoders' seeds.

    It is Welch's test, without a p-value if a side has only one unit. ``examples`` are their standard error
    and number.
    """
    estimate = independent_estimate(list(ours), list(theirs))
    estimate = estimate.with_examples(*examples) if examples[1] else estimate
    return Check(
        about=label, values=(estimate.mean,) * estimate.units, unit=unit, statistic=estimate, **bounds
    )


def with_note(checks: Sequence[Check], notes: Sequence[str]) -> list[Check]:
    """Add to the last check findings that do not affect the verdict."""
    return [*checks[:-1], replace(checks[-1], note="; ".join(notes))]


def check_trend(
    numbers: Iterable[float] | None, conditions: int, label: str, bounds: Bounds, unit: str = "seed"
) -> Check:
    """Check that a score rises or falls over ordered conditions, by one rank correlation per unit.

    If all correlations are 1, or all are -1, the p-value is from Page's trend test.
    """
    check = check_of(numbers, label, bounds, unit)
    if len(check.values) < 2 or any(abs(value) < ALMOST_ONE for value in check.values):
        return check
    rho = check.values[0]
    p = trend_p_value(conditions, len(check.values))
    if any(value * rho < 0 for value in check.values):
        return check
    statistic = Statistic(
        mean=rho, low=rho, high=rho, p_value=lambda _: p, smallest_seen=lambda _: check.above
    )
    return replace(check, statistic=statistic)


def find_language_group(language_code: str) -> str:
    """Return the family of a language, or "" if it is unknown.

    Built-in languages are "near" or "far", by the words that they share with the source language.
    """
    if is_built_in(language_code):
        return "near" if generated_languages().share_of_common_words(language_code) >= SHARED_WORDS else "far"
    family = language_facts(language_code).family
    return "" if family == UNKNOWN else family


def check_correlation(
    label: str, x: "pd.Series[float]", y: "pd.Series[float]", bounds: Bounds, *, min_languages: int = 1
) -> list[Check]:
    """Check Spearman's ρ over languages, within groups of related languages or over the groups' means.

    Languages of one family are not independent draws. The correlation is computed within groups that have
    FEWEST_LANGUAGES languages or more, and else over the means of the groups. Empty for fewer than
    ``min_languages`` languages.
    """
    pairs = pd.concat([x, y], axis=1).dropna()
    if (n := len(pairs)) < min_languages:
        return []
    if n < FEWEST_LANGUAGES:
        return [
            Check(about=f"{label}: {n} languages, and fewer than {FEWEST_LANGUAGES} are too few, not tested")
        ]
    sides = [pairs.iloc[:, side] for side in range(2)]
    groups = pd.Series(
        [find_language_group(str(language_code)) for language_code in pairs.index], index=pairs.index
    )
    sizes = groups.map(groups.value_counts())
    group_count = groups.nunique()
    if (sizes > 1).sum() >= FEWEST_LANGUAGES:
        several = f", within {groups[sizes > 1].nunique()} groups of related languages"
        words = f"{label}{several if group_count > 1 else ''}"
        return [_check_correlation_within(words, sides[0], sides[1], groups, bounds, "language")]
    if group_count >= FEWEST_LANGUAGES:
        means = [side.groupby(groups).mean() for side in sides]
        no_groups = pd.Series("", index=means[0].index)
        return [
            _check_correlation_within(
                f"{label}, over families", means[0], means[1], no_groups, bounds, "family"
            )
        ]
    return [
        Check(
            about=f"{label}: {n} languages of {group_count} families; expected {FEWEST_LANGUAGES} families, "
            f"or as many languages that share one, not tested"
        )
    ]


def _check_correlation_within(
    label: str,
    x: "pd.Series[float]",
    y: "pd.Series[float]",
    groups: "pd.Series[str]",
    bounds: Bounds,
    unit: str,
) -> Check:
    """Check a correlation within groups, by Student's t against 0 and by Fisher's z against other bounds."""
    from scipy.special import ndtri

    summary = spearman_within(list(x), list(y), list(groups))
    if math.isnan(summary.rho):
        return Check(about=f"{label}: the same for every language, not tested")
    error = summary.error
    z = fisher_z(summary.rho)

    def p_value(bound: float) -> float:
        return summary.p_value if bound == 0 else math.erfc(abs(z - math.atanh(bound)) / error / math.sqrt(2))

    def smallest_seen(level: float) -> float:
        return math.tanh(error * float(ndtri(1 - level / 2) + ndtri(POWER)))

    low, high = (math.tanh(z + side * INTERVAL_Z * error) for side in (-1, 1))
    rho = Statistic(mean=summary.rho, low=low, high=high, p_value=p_value, smallest_seen=smallest_seen)
    format_bounds: Bounds = {"scale": 1, "digits": 2, **bounds}
    return Check(about=label, values=[0.0] * summary.items, statistic=rho, unit=unit, **format_bounds)


def check_spreads(
    label: str, wider: pd.DataFrame, narrower: pd.DataFrame, min_ratio: float, statement: str = ""
) -> list[Check]:
    """Check that one number varies more over the same seeds than another, by tables [seed column].

    In points by ``min_ratio``, and on the logit scale at all: near 100 % scores have little room to vary,
    which makes any other score look unsteady.
    """
    if len(seeds := wider.dropna().index.intersection(narrower.dropna().index)) < FEWEST_SEEDS:
        return [Check(about=f"{label}: fewer than {FEWEST_SEEDS} seeds, not measured", statement="points")]
    tables = [side.loc[seeds].to_numpy(dtype=float) for side in (wider, narrower)]
    return [
        _check_spread(label, "points", tables, min_ratio, statement),
        _check_spread(label, "logits", [logits(side) for side in tables], 1.0),
    ]


def _check_spread(
    label: str, scale: str, tables: Sequence[npt.NDArray[np.float64]], min_ratio: float, text: str = ""
) -> Check:
    """Check that the first of two tables of scores on a scale varies more over seeds than the second."""
    words = f"{label}, in {scale}"
    if not all(np.isfinite(table).all() for table in tables):
        return Check(about=f"{words}: a score of 0 or 100 % has no logit, not tested", statement=scale)
    spread_ratio = compare_spreads(*tables)
    if not math.isfinite(spread_ratio.ratio):
        problem = "every seed scores the same, a ratio needs a spread, not tested"
        return Check(about=f"{words}: {problem}", statement=scale)
    low, high = spread_ratio.interval()
    interval_factor = max(high / spread_ratio.ratio if spread_ratio.ratio else math.inf, 1.0)
    statistic = Statistic(
        mean=spread_ratio.ratio,
        low=low,
        high=high,
        p_value=spread_ratio.p_value,
        smallest_seen=lambda _: min_ratio * interval_factor**RATIO_LOST,
    )
    spreads = " / ".join(
        f"{(100 if scale == 'points' else 1) * side.mean():.2g}" for side in spread_ratio.distances
    )
    return Check(
        about=f"{words} ({spreads})",
        values=(spread_ratio.ratio,) * len(spread_ratio.distances[0]),
        statistic=statistic,
        above=min_ratio,
        scale=1,
        ratio=True,
        printed=text,
        statement=scale,
    )


def name_comparison(
    checks: Iterable[Check],
    comparison: str,
    *,
    statement: str = "",
    split: str = "",
    preference: Sequence[float] = (),
) -> list[Check]:
    """Name the comparison that checks belong to, and the preference among the checks of one comparison.

    ``comparison`` is equal for each split, metric, layer and distance; without a statement they keep their
    own.
    """
    order = SPLITS.index(split) if split in SPLITS else len(SPLITS)
    return [
        replace(
            check,
            compared=comparison,
            statement=statement or check.statement,
            preference=(order, *preference),
        )
        for check in checks
    ]
