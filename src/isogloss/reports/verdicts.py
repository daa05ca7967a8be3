"""Verdicts on the papers' claims: each claim is a list of checks with intervals, and one verdict follows.

**supported**: every check lies significantly in its range. That all do is an intersection of tests, each at
5 %, whose level is 5 % without a correction (Berger 1982). **contradicted**: a check lies significantly
outside, after Holm's correction over all checks of the claim, since one is enough. **mixed**: a check
contradicts, and another one supports the claim after the same correction. **not tested**: a part was not
measured. **undecided**: all was measured, but not all is significant; the smallest effect that would have
been detected, at the corrected level, is reported. Significance is judged over the unit that the claim is
about, and over recorded predictions of examples.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import pandas as pd

from isogloss.metrics.estimates import LEVEL
from isogloss.metrics.significance import holm
from isogloss.reports.checks import Check
from isogloss.reports.measurements import Measurements

Verdict = Literal["contradicted", "mixed", "not tested", "undecided", "supported"]
"""A check is never mixed; of the others, the first that a check has is the verdict of its claim."""

PAPERS = {
    1: "Zero-shot Cross-lingual Transfer is Under-specified Optimization",
    2: "Enhancing Cross-lingual Transfer by Manifold Mixup",
    3: "The Impact of Cross-Lingual Adjustment of Contextual Word Representations on Zero-Shot Transfer",
    4: "On Negative Interference in Multilingual Models",
}


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim of a paper, where it stands there, and the rule that judges it."""

    id: str
    """The paper's number and a letter."""
    where: str
    says: str
    rule: str
    needs: Sequence[str] = ("scores",)
    """Frames without which the claim is not listed."""
    test: Callable[[Measurements], list[Check]]
    """Returns the checks; none where the measurements are not about the claim."""
    title: str = ""
    """Whose claim it is, where a plug-in adds it: the title of a paper or a study."""

    @property
    def paper(self) -> int:
        """The number of the paper; 0 for one that a plug-in adds."""
        return 0 if self.title else int(self.id[0])


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A claim with its verdict and its findings in words."""

    claim: Claim
    verdict: Verdict
    found: str
    checks: Sequence[Check] = ()
    p_holm: Sequence[float] = ()
    """P of each check after Holm's correction over those of the claim; nan where it is not judged."""


def judge(claims: Iterable[Claim], m: Measurements) -> list[Outcome]:
    """Judge every claim that the measurements are about."""
    tested = [(claim, claim.test(m)) for claim in claims if all(map(m.has_rows, claim.needs))]
    return [_outcome(claim, checks) for claim, checks in tested if checks]


def _outcome(claim: Claim, checks: Sequence[Check]) -> Outcome:
    checks = sorted(checks, key=lambda check: not check.judged)
    p_values = [check.p_value if check.judged and check.values else math.nan for check in checks]
    tests = sum(not math.isnan(p) for p in p_values)
    corrected = [*zip(checks, holm(p_values), strict=True)]
    verdicts = [(_verdict(check, p_holm), p_holm) for check, p_holm in corrected if check.judged]
    worst = min((verdict for verdict, _ in verdicts), key=get_args(Verdict).index)
    supports = any(p_holm < LEVEL and verdict == "supported" for verdict, p_holm in verdicts)
    return Outcome(
        claim=claim,
        verdict="mixed" if worst == "contradicted" and supports else worst,
        found="; ".join(_finding(check, p_holm, tests) for check, p_holm in corrected),
        checks=checks,
        p_holm=[p_holm for _, p_holm in corrected],
    )


CHECKED = (
    *("claim", "verdict", "about", "mean", "low", "high", "above", "below", "unit", "units"),
    *("p", "p_holm", "smallest_seen", "judged", "note"),
)
"""The columns of checks."""


def check_rows(outcomes: Sequence[Outcome]) -> pd.DataFrame:
    """Return a row for each check: its verdict, number, 95 % interval, range, p, and smallest effect seen.

    Numbers are as in the text: points, where scores are compared.
    """
    rows: list[dict[str, object]] = []
    for outcome in outcomes:
        tests = sum(not math.isnan(p) for p in outcome.p_holm)
        for check, p_holm in zip(outcome.checks, outcome.p_holm, strict=True):
            row: dict[str, object] = {"claim": outcome.claim.id, "verdict": _verdict(check, p_holm)}
            row |= {"about": check.about, "unit": check.unit, "units": len(check.values)}
            if check.values:
                estimate = check.estimate
                numbers = {"mean": estimate.mean, "low": estimate.low, "high": estimate.high}
                numbers |= {"above": check.above, "below": check.below}
                numbers["smallest_seen"] = estimate.smallest_seen(LEVEL / max(tests, 1))
                row |= {name: check.scale * value for name, value in numbers.items() if math.isfinite(value)}
                row |= {"p": check.p_value, "p_holm": p_holm}
            rows.append(row | {"judged": check.judged, "note": check.note})
    return pd.DataFrame(rows, columns=[*CHECKED])


def _verdict(check: Check, p_holm: float) -> Verdict:
    """Return the verdict of one check: of support before Holm's correction, of contradiction after it."""
    if not check.values:
        return "not tested"
    inside = check.above < check.estimate.mean < check.below
    if not (check.p_value if inside or not check.judged else p_holm) < LEVEL:
        return "undecided"
    return "supported" if inside else "contradicted"


def _finding(check: Check, p_holm: float, tests: int) -> str:
    """Write a check with its note."""
    text = _numbers(check, p_holm, tests) if check.values else check.about
    text = text if check.judged else f"not judged: {text}"
    return f"{text} (not judged: {check.note})" if check.note else text


def _numbers(check: Check, p_holm: float, tests: int) -> str:
    """Write mean, interval, every p, the units, and the smallest detectable effect."""
    estimate, n, number, by = check.estimate, len(check.values), check.written, check.comparison
    if n < 2:
        return f"{check.text} (one {check.unit}: says nothing about others)"
    p = f"p = {p_text(check.p_value)} over {check.unit}s"
    if by and by.examples:
        p = f"p = {p_text(by.p_units)} over {check.unit}s, {p_text(by.p_examples)} over examples, "
        p += f"{p_text(check.p_value)} over both"
    after = [f"{p_text(p_holm)} of {tests} tests"] if tests > 1 and check.judged else []
    parts = [f"{check.text} [{number(estimate.low)}, {number(estimate.high)}]", p, *after, f"n = {n}"]
    if _verdict(check, p_holm) == "undecided":
        smallest = number(estimate.smallest_seen(LEVEL / max(tests, 1)))
        parts.append(f"effects from {smallest} on would have been seen")
    return ", ".join(parts)


def p_text(value: float) -> str:
    """Write a p-value."""
    if math.isnan(value):
        return "–"
    return "<.0001" if value < 0.0001 else f"{value:.4f}" if value < 0.01 else f"{value:.2f}"
