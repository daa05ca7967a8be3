"""What a paper claims, held against the measurements: checks with intervals, and one verdict from all.

**supported**: every check lies, beyond chance, where the claim puts it. **contradicted**: one lies, beyond
chance, elsewhere. **not tested**: a part was not measured. **undecided**: all was measured, and chance could
explain it; the smallest effect that these runs could have seen is said. Chance is judged over the unit of
replication the claim is about, and over examples where predictions were kept, after Holm's correction over
all checks of a claim.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from isogloss.metrics.crossed import LEVEL, Estimate, crossed
from isogloss.metrics.significance import holm
from isogloss.reports.comparison import Comparison
from isogloss.reports.measurements import Measurements

Verdict = Literal["supported", "contradicted", "undecided", "not tested"]

PAPERS = {
    1: "Zero-shot Cross-lingual Transfer is Under-specified Optimization",
    2: "Enhancing Cross-lingual Transfer by Manifold Mixup",
    3: "The Impact of Cross-Lingual Adjustment of Contextual Word Representations on Zero-Shot Transfer",
    4: "On Negative Interference in Multilingual Models",
}


@dataclass(frozen=True, kw_only=True)
class Found:
    """A number that is no mean over units (a correlation, say): it brings its own interval and test."""

    mean: float
    low: float
    high: float
    test: Callable[[float], float]
    """The two-sided p of the true number being a bound."""
    smallest_seen: float

    def p_value(self, bound: float = 0.0) -> float:
        """Return the p of this bound."""
        return self.test(bound)


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing a claim says: a mean over units of replication that lies in a range."""

    about: str
    """What the numbers are, in words: "upos qad: x-mixup − translate-train"."""
    values: Sequence[float] = ()
    """One for each unit; none where it was not measured, and then ``about`` says what is missing."""
    above: float = -math.inf
    below: float = math.inf
    excluded: float = math.nan
    """The paper's effect, stated beforehand: an interval on this side of it contradicts the claim too."""
    unit: str = "seed"
    scale: float = 100
    """What numbers are multiplied by when they are written: 100 for points."""
    digits: int = 1
    comparison: Comparison | None = None
    """Where the values are differences of scores: it knows the examples too."""
    found: Found | None = None
    """Where the number is not the values' mean; they only say how many units there are."""
    beside: str = ""
    """What was found besides, and decides nothing."""

    @property
    def estimate(self) -> Estimate | Found:
        """The mean with its error."""
        if self.found:
            return self.found
        return self.comparison.estimate if self.comparison else crossed(self.values)

    @property
    def inside(self) -> bool:
        """Tell whether the mean lies where the claim puts it."""
        return self.above < self.estimate.mean < self.below

    @property
    def p_value(self) -> float:
        """The p of the nearer end of the range: how easily chance puts the mean on this side of it."""
        ends = [end for end in (self.above, self.below) if math.isfinite(end)]
        found = [self.estimate.p_value(end) for end in ends]
        crossed_ends = [p for p, end in zip(found, ends, strict=True) if not self._keeps(end)]
        return max(crossed_ends or found)

    def written(self, value: float) -> str:
        """Write a number of this check."""
        return f"{self.scale * value:.{self.digits}f}".replace("-", "−")

    def _keeps(self, end: float) -> bool:
        return self.estimate.mean > end if end == self.above else self.estimate.mean < end


def check_of(comparison: Comparison | None, about: str, *, unit: str = "seed", **bounds: float) -> Check:
    """Return the check that a comparison stands for; without one, that it was not measured."""
    if comparison is None:
        return Check(about=f"{about}: not measured")
    found = Check(about=about, values=comparison.values, unit=unit, comparison=comparison)
    return replace(found, **bounds)  # type: ignore[arg-type]


def check_over(about: str, values: Iterable[float], *, unit: str = "seed", **bounds: float) -> list[Check]:
    """Return the check of plain numbers, one for each unit, told with two decimals; none without any."""
    one = Check(about=about, values=[float(value) for value in values], unit=unit, scale=1, digits=2)
    return [replace(one, **bounds)] if one.values else []  # type: ignore[arg-type]


def missing(what: str) -> list[Check]:
    """Return the check of what was not measured."""
    return [Check(about=f"{what}: not measured")]


def with_beside(checks: Sequence[Check], beside: Sequence[str]) -> list[Check]:
    """Say with the last check what was found besides, and decides nothing."""
    return [*checks[:-1], replace(checks[-1], beside="; ".join(beside))]


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A sentence of a paper, where it stands there, and the rule it is judged by."""

    id: str
    paper: int
    where: str
    says: str
    rule: str
    needs: tuple[str, ...]
    """Frames without which there is nothing to judge, so that the claim is not listed."""
    test: Callable[[Measurements], list[Check]]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A claim with its verdict, and what was found in words."""

    claim: Claim
    verdict: Verdict
    found: str
    checks: Sequence[Check] = field(default_factory=tuple)


def judge(claims: Sequence[Claim], m: Measurements) -> list[Outcome]:
    """Judge every claim that the measurements are about."""
    asked = [claim for claim in claims if all(len(m.frame(name)) for name in claim.needs)]
    tested = [(claim, claim.test(m)) for claim in asked]
    return [_outcome(claim, checks) for claim, checks in tested if checks]


def _outcome(claim: Claim, checks: Sequence[Check]) -> Outcome:
    measured = [one for one in checks if one.values]
    known = [one for one in measured if not math.isnan(one.p_value)]
    corrected = dict(zip(map(id, known), holm([one.p_value for one in known]) if known else [], strict=True))
    verdicts = [verdict_of(one, corrected.get(id(one), math.nan)) for one in checks]
    order: tuple[Verdict, ...] = ("contradicted", "not tested", "undecided", "supported")
    said = [_said(one, corrected.get(id(one), math.nan), len(known)) for one in checks]
    return Outcome(
        claim=claim,
        verdict=next(one for one in order if one in verdicts),
        found="; ".join(
            f"{text} (beside, it decides nothing: {one.beside})" if one.beside else text
            for text, one in zip(said, checks, strict=True)
        ),
        checks=checks,
    )


def verdict_of(check: Check, p_holm: float) -> Verdict:
    """Return the verdict of one check, given its p after correction."""
    if not check.values:
        return "not tested"
    if p_holm < LEVEL:
        return "supported" if check.inside else "contradicted"
    if not math.isnan(check.excluded) and len(check.values) > 1:
        beyond = (
            check.estimate.high < check.excluded
            if check.excluded > 0
            else check.estimate.low > check.excluded
        )
        if beyond:
            return "contradicted"
    return "undecided"


def _said(check: Check, p_holm: float, tests: int) -> str:
    """Write a check: mean, interval, every p, the units, and what could have been seen."""
    if not check.values:
        return check.about
    one, n, number = check.estimate, len(check.values), check.written
    if n < 2:
        return f"{check.about} {number(one.mean)} (one {check.unit}: says nothing about others)"
    parts = [f"{check.about} {number(one.mean)} [{number(one.low)}, {number(one.high)}]"]
    comparison = check.comparison
    if comparison and comparison.examples:
        parts.append(
            f"p = {p_text(comparison.p_units)} over {check.unit}s, {p_text(comparison.p_examples)} over "
            f"examples, {p_text(check.p_value)} over both"
        )
    else:
        parts.append(f"p = {p_text(check.p_value)} over {check.unit}s")
    parts += [f"{p_text(p_holm)} of {tests} tests"] if tests > 1 else []
    parts.append(f"n = {n}")
    if not p_holm < LEVEL:
        parts.append(f"effects from {number(one.smallest_seen)} on would have been seen")
    return ", ".join(parts)


def p_text(value: float) -> str:
    """Write a p-value."""
    if math.isnan(value):
        return "–"
    return "<.0001" if value < 0.0001 else f"{value:.4f}" if value < 0.01 else f"{value:.2f}"
