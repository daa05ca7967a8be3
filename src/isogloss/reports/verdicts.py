"""What a paper claims, held against the measurements: checks with intervals, and one verdict from all.

**supported**: every check lies, beyond chance, where the claim puts it. **contradicted**: one lies, beyond
chance, elsewhere. **not tested**: a part was not measured. **undecided**: all was measured, and chance could
explain it; the smallest effect these runs could have seen is said. Chance is judged over the unit that the
claim is about, and over kept predictions of examples, after Holm's correction over all checks of a claim.
"""

import math
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any, Literal, get_args

from isogloss.metrics.estimates import LEVEL, Estimate, crossed_estimate
from isogloss.metrics.significance import holm
from isogloss.reports.comparison import Comparison
from isogloss.reports.measurements import Measurements

Verdict = Literal["contradicted", "not tested", "undecided", "supported"]
"""The first that one of its checks has is that of a claim."""

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


Bounds = Mapping[str, Any]
"""Where a claim puts a number, above and below; and scale and digits, where it is written otherwise."""

HELPS: Bounds = {"above": 0.0}
HURTS: Bounds = {"below": 0.0}
AS_BEFORE: Bounds = {"above": -0.01, "below": 0.01}
"""Within a point, said beforehand: what is not significant may yet be large."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing a claim says: a mean over units of replication that lies in a range."""

    about: str
    """What the numbers are, in words: "upos qad: x-mixup − translate-train"."""
    values: Sequence[float] = ()
    """One for each unit; none where it was not measured, and then ``about`` says what is missing."""
    above: float = -math.inf
    below: float = math.inf
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
        return self.found or (self.comparison.estimate if self.comparison else crossed_estimate(self.values))

    @property
    def p_value(self) -> float:
        """The p of the nearer end of the range: how easily chance puts the mean on this side of it."""
        one = self.estimate
        ends = [(self.above, one.mean > self.above), (self.below, one.mean < self.below)]
        found = [(one.p_value(end), kept) for end, kept in ends if math.isfinite(end)]
        return max([p for p, kept in found if not kept] or [p for p, _ in found])

    @property
    def told(self) -> str:
        """What the number is, and the number."""
        return f"{self.about} {self.written(self.estimate.mean)}"

    def written(self, value: float) -> str:
        """Write a number of this check."""
        return f"{self.scale * value:.{self.digits}f}".replace("-", "−")


def check_of(
    found: Comparison | Iterable[float] | None, about: str, bounds: Bounds, unit: str = "seed"
) -> Check:
    """Return the check of a comparison, of a number for each unit (two decimals), or of what is missing."""
    if isinstance(found, Comparison):
        return Check(about=about, values=found.values, comparison=found, unit=unit, **bounds)
    if not (values := [float(one) for one in (() if found is None else found)]):
        return not_measured(about)
    return Check(about=about, values=values, unit=unit, **{"scale": 1, "digits": 2, **bounds})


def not_measured(about: str) -> Check:
    """Return the check of what was not measured."""
    return Check(about=f"{about}: not measured")


def with_beside(checks: Sequence[Check], beside: Sequence[str]) -> list[Check]:
    """Say with the last check what was found besides, and decides nothing."""
    return [*checks[:-1], replace(checks[-1], beside="; ".join(beside))]


Test = Callable[[Measurements], list[Check]]
"""What judges a claim: the things that it says, measured."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A sentence of a paper, where it stands there, and the rule it is judged by."""

    id: str
    """The paper's number and a letter."""
    where: str
    says: str
    rule: str
    needs: Sequence[str] = ()
    """Frames without which there is nothing to judge, so that the claim is not listed."""
    test: Test

    @property
    def paper(self) -> int:
        """The number of the paper."""
        return int(self.id[0])


def claims(tests: Mapping[str, Test]) -> tuple[Claim, ...]:
    """Return the claims of ``claims.toml`` with what judges each; KeyError for one that nothing judges."""
    return tuple(Claim(id=key, test=tests[key], **said) for key, said in words_of("claims").items())


def words_of(table: str) -> dict[str, dict[str, Any]]:
    """Return a TOML table that lies beside this file; a text of several lines becomes one."""
    words = tomllib.loads((files("isogloss.reports") / f"{table}.toml").read_text(encoding="utf-8"))
    return {
        key: {name: " ".join(one.split()) if isinstance(one, str) else one for name, one in said.items()}
        for key, said in words.items()
    }


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A claim with its verdict, and what was found in words."""

    claim: Claim
    verdict: Verdict
    found: str
    checks: Sequence[Check] = ()


def judge(claims: Sequence[Claim], m: Measurements) -> list[Outcome]:
    """Judge every claim that the measurements are about."""
    tested = [(claim, claim.test(m)) for claim in claims if all(len(m.frame(one)) for one in claim.needs)]
    return [_outcome(claim, checks) for claim, checks in tested if checks]


def _outcome(claim: Claim, checks: Sequence[Check]) -> Outcome:
    p_values = [one.p_value if one.values else math.nan for one in checks]
    known = [p for p in p_values if not math.isnan(p)]
    after = iter(holm(known) if known else [])
    judged = [(one, p if math.isnan(p) else next(after)) for one, p in zip(checks, p_values, strict=True)]
    found = "; ".join(_said(one, p_holm, len(known)) for one, p_holm in judged)
    verdicts = [_verdict(one, p_holm) for one, p_holm in judged]
    return Outcome(
        claim=claim, verdict=min(verdicts, key=get_args(Verdict).index), found=found, checks=checks
    )


def _verdict(check: Check, p_holm: float) -> Verdict:
    if not p_holm < LEVEL:
        return "undecided" if check.values else "not tested"
    return "supported" if check.above < check.estimate.mean < check.below else "contradicted"


def _said(check: Check, p_holm: float, tests: int) -> str:
    """Write a check, and what was found beside it."""
    text = _numbers(check, p_holm, tests) if check.values else check.about
    return f"{text} (beside, it decides nothing: {check.beside})" if check.beside else text


def _numbers(check: Check, p_holm: float, tests: int) -> str:
    """Write mean, interval, every p, the units, and what could have been seen."""
    one, n, number, by = check.estimate, len(check.values), check.written, check.comparison
    if n < 2:
        return f"{check.told} (one {check.unit}: says nothing about others)"
    p = f"p = {p_text(check.p_value)} over {check.unit}s"
    if by and by.examples:
        p = f"p = {p_text(by.p_units)} over {check.unit}s, {p_text(by.p_examples)} over examples, "
        p += f"{p_text(check.p_value)} over both"
    after = [f"{p_text(p_holm)} of {tests} tests"] if tests > 1 else []
    parts = [f"{check.told} [{number(one.low)}, {number(one.high)}]", p, *after, f"n = {n}"]
    if not p_holm < LEVEL:
        parts.append(f"effects from {number(one.smallest_seen)} on would have been seen")
    return ", ".join(parts)


def p_text(value: float) -> str:
    """Write a p-value."""
    if math.isnan(value):
        return "–"
    return "<.0001" if value < 0.0001 else f"{value:.4f}" if value < 0.01 else f"{value:.2f}"
