"""Verdicts on the papers' claims: each claim is a list of checks with intervals, and one verdict follows.

**supported**: every check lies significantly in its range. That all do is an intersection of tests, each at 5
%, whose level is 5 % without a correction (Berger 1982). **contradicted**: a check lies significantly
outside, after Holm's correction over all checks of the claim, since one is enough. **mixed**: one check
contradicts the claim, and one supports it after the same correction. **differs from print**: a check lies
significantly outside bounds that are this project's, where the paper prints words such as "around 55°". **not
tested**: a part was not measured. **undecided**: all was measured, but not all is significant; the smallest
effect that would have been detected, at the corrected level, is reported. Significance is judged over the
unit that the claim is about, and over recorded predictions of examples.

A few seeds without a failure give little evidence about the rate of failures, and one failure in five runs
can undo a gain. So a verdict over seeds is conditional on runs that did not fail, and reports the failure
rate that the seeds exclude.
"""

import json
import math
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, distribution
from operator import itemgetter
from pathlib import Path
from typing import Literal, get_args

import pandas as pd

from isogloss.core import VERSION
from isogloss.core.errors import ConfigError, one_line
from isogloss.core.languages import is_built_in
from isogloss.core.untrusted import convert_json, parse_json, read_regular
from isogloss.metrics.estimates import LEVEL, Estimate, RandomEffects, random_effects
from isogloss.metrics.significance import holm
from isogloss.reports.checks import Check, choose_deciding_checks
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import and_list, count

Verdict = Literal["contradicted", "mixed", "differs from print", "not tested", "undecided", "supported"]
"""Verdicts by priority: the first one that a check has is the verdict of its claim. A single check is never
mixed."""

CLAIMS_FILE = "tables/claims.json"
"""The verdicts of a report, for programs and for `isogloss claims diff`."""

MOST_LISTED = 6
"""Maximum languages that a scope names. With more, it has their number."""


Rule = Callable[[Measurements], list[Check]]
"""Returns the checks of a claim. Empty if the measurements do not concern it."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim of a paper, its place in the paper, and the rule that judges it."""

    id: str
    """A short name that no other claim has."""
    where: str
    says: str
    rule: str
    needs: Sequence[str] = ("scores",)
    """Frames without which the claim is not listed."""
    test: Rule
    threshold: str = ""
    """Source of its thresholds: the paper, or this project following the paper's words."""
    ranges: Sequence[Mapping[str, float]] = ()
    """Other ranges (above, below) for which its verdict is reported, where its threshold is our own."""
    code: str = ""
    """Difference of the authors' released code from the paper that affects the claim."""
    title: str = ""
    """The title of the paper or study that makes the claim."""
    subject: str = ""
    """A short name of the source for names of files. Default: its title."""


def source_commit() -> str:
    """Return the commit of this package's code, if it is a checkout or pip installed it from git.

    Otherwise "".
    """
    git = ("git", "-C", str(Path(__file__).parent))
    with suppress(OSError, subprocess.CalledProcessError):
        run = partial(subprocess.run, check=True, capture_output=True, text=True)
        # A checkout of something else, around an environment, holds no commit of this package.
        run([*git, "ls-files", "--error-unmatch", Path(__file__).name])
        return str(run([*git, "describe", "--always", "--abbrev=40", "--dirty"]).stdout).strip()
    with suppress(PackageNotFoundError, ValueError, KeyError):
        origin = json.loads(distribution("isogloss").read_text("direct_url.json") or "{}")
        return str(origin["vcs_info"]["commit_id"])
    return ""


@dataclass(frozen=True, kw_only=True)
class ClaimOutcome:
    """A claim with its verdict and its findings in words."""

    claim: Claim
    verdict: Verdict
    found: str
    checks: Sequence[Check] = ()
    p_holm: Sequence[float] = ()
    """P of each check after Holm's correction over the checks of the claim. nan if it is not judged."""
    seeds: int = 0
    """Fewest seeds of a judged check. 0 if seeds are not the units, or nothing was decided."""

    @property
    def failures_excluded(self) -> float:
        """Failure rate above which 95 % of studies with these seeds see one. 0 without seeds."""
        return 1 - LEVEL ** (1 / self.seeds) if self.seeds else 0.0

    @property
    def condition(self) -> str:
        """The condition of the verdict, that no run fails, in words. Empty if seeds are not its units."""
        if not self.seeds:
            return ""
        rate = f"{100 * self.failures_excluded:.0f} %"
        median = "of the median seed, " if any(check.of_median for check in self.checks) else ""
        return (
            f"{median}given no failure in {self.seeds} seeds, which excludes a rate of failures above {rate}"
        )

    @property
    def over_tasks(self) -> list[tuple[str, RandomEffects, Check]]:
        """Each statement that several comparisons check, with its mean over them and one of the checks."""
        several: dict[str, list[Check]] = {}
        for check in self.checks:
            if check.judged and check.statement and _has_error(check):
                several.setdefault(check.statement, []).append(check)
        return [
            (statement, _pool_checks(checks), checks[0])
            for statement, checks in several.items()
            if len(checks) > 1
        ]

    @property
    def by_range(self) -> list[tuple[Mapping[str, float], Verdict]]:
        """Verdicts that other ranges of the claim would give."""
        return [(ends, weigh_checks(with_range(self.checks, ends))[0]) for ends in self.claim.ranges]

    @property
    def to_decide(self) -> list[tuple[int, Check]]:
        """Checks that would decide an undecided claim if their numbers are true, each with its units.

        One check outside its range is enough, else all undecided ones have to be inside. Empty where the
        claim is decided, or no number of units decides it.
        """
        if self.verdict != "undecided":
            return []
        tests = sum(not math.isnan(p_holm) for p_holm in self.p_holm)
        judged_checks = zip(self.checks, self.p_holm, strict=True)
        open_checks = [
            check for check, p in judged_checks if check.judged and _verdict(check, p) == "undecided"
        ]
        check_units = [(check.units_to_decide(tests), check) for check in open_checks]
        possible = [(max(units, len(check.values) + 1), check) for units, check in check_units if units]
        outside = [(units, check) for units, check in possible if not check.inside]
        if outside:
            return [min(outside, key=itemgetter(0))]
        return possible if len(possible) == len(check_units) else []

    @property
    def deciding(self) -> Check | None:
        """Check that determines the verdict. None without checks, as in a summary.

        Among several checks with the verdict, it is the most significant contradiction, or else the least
        significant check, which would have to change last.
        """
        deciding_verdict = "contradicted" if self.verdict == "mixed" else self.verdict
        candidates = [
            (check, p_holm)
            for check, p_holm in zip(self.checks, self.p_holm, strict=True)
            if check.judged and _verdict(check, p_holm) == deciding_verdict
        ]
        if not candidates:
            return None
        if deciding_verdict == "contradicted":
            return min(candidates, key=itemgetter(1))[0]
        return max(candidates, key=_insignificance)[0]


def judge(claims: Iterable[Claim], measurements: Measurements) -> list[ClaimOutcome]:
    """Judge every claim that the measurements are about."""
    scope = scope_of(measurements)
    claim_checks = [
        (claim, claim.test(measurements))
        for claim in claims
        if all(measurements.has_rows(name) for name in claim.needs)
    ]
    return [judge_checks(claim, checks, scope) for claim, checks in claim_checks if checks]


def scope_of(measurements: Measurements) -> str:
    """Return the encoders and languages common to all verdicts, in words: "in …, on …: "."""
    models = measurements.models
    if models.empty:
        return ""
    shape = ["vocabulary", "positions", "dim", "layers", "feed_forward"]
    pretrained_here = models[(models["encoder.kind"] == "pretrain") & (models["encoder.name"] == "")]
    shapes = pretrained_here.reindex(columns=[f"encoder.{name}" for name in shape]).dropna().astype(float)
    shapes = shapes.set_axis(shape, axis=1)
    layers = shapes["layers"] * (4 * shapes["dim"] ** 2 + 2 * shapes["dim"] * shapes["feed_forward"])
    weights = (shapes["dim"] * (shapes["vocabulary"] + shapes["positions"]) + layers) / 1e6
    sizes = dict.fromkeys(f"{size:.1f}" for size in sorted(weights))
    names = sorted(set(models["encoder.name"]) - {""})
    encoders = [*names, *([f"encoders of {and_list(sizes)} M parameters"] if sizes else [])]
    texts = [*models["source"], *models["target"], *measurements.frame("scores")["language"]]
    codes = sorted({part for text in texts for part in text.split("+")} - {""})
    built_in = "built-in languages, which share one world"
    code_list = and_list(codes) if len(codes) <= MOST_LISTED else f"{len(codes)} languages"
    languages = (
        built_in if codes and all(is_built_in(language_code) for language_code in codes) else code_list
    )
    parts = [f"in {and_list(encoders)}"] if encoders else []
    parts += [f"on {languages}"] if codes else []
    return f"{', '.join(parts)}: " if parts else ""


def judge_checks(claim: Claim, checks: Sequence[Check], scope: str = "") -> ClaimOutcome:
    """Judge a claim by its checks. ``scope`` begins its finding."""
    checks = sorted(choose_deciding_checks(checks), key=lambda check: not check.judged)
    verdict, corrected_p = weigh_checks(checks)
    is_decided = verdict not in ("not tested", "undecided")
    units = [len(check.values) for check in checks if check.judged and "seed" in check.unit and check.values]
    outcome = ClaimOutcome(
        claim=claim,
        verdict=verdict,
        found="",
        checks=checks,
        p_holm=corrected_p,
        seeds=min(units, default=0) if is_decided else 0,
    )
    tests = sum(not math.isnan(p_holm) for p_holm in corrected_p)
    findings = [_finding(check, p_holm, tests) for check, p_holm in zip(checks, corrected_p, strict=True)]
    findings += [
        f"mean over {estimate.studies} comparisons {check.written(estimate.mean)} "
        f"[{check.written(estimate.low)}, {check.written(estimate.high)}]"
        for _, estimate, check in outcome.over_tasks
    ]
    if outcome.to_decide:
        most_units, check = max(outcome.to_decide, key=itemgetter(0))
        units_text = count(most_units, check.unit, "families" if check.unit == "family" else "")
        findings.append(f"{units_text} would decide, if these numbers are true")
    findings += [outcome.condition] if outcome.condition else []
    return replace(outcome, found=scope + "; ".join(findings))


def with_range(checks: Sequence[Check], ends: Mapping[str, float]) -> list[Check]:
    """Return the checks, with other limits for the numbers that are judged."""
    lower_end = ends.get("above", -math.inf)
    upper_end = ends.get("below", math.inf)
    return [replace(check, above=lower_end, below=upper_end) if check.judged else check for check in checks]


def weigh_checks(checks: Sequence[Check]) -> tuple[Verdict, list[float]]:
    """Return the verdict that checks lead to, and the p of each after Holm's correction."""
    p_values = [check.p_value if check.judged and check.values else math.nan for check in checks]
    corrected_p = holm(p_values)
    verdicts = [
        (_verdict(check, p_holm), p_holm)
        for check, p_holm in zip(checks, corrected_p, strict=True)
        if check.judged
    ]
    worst_verdict = min((verdict for verdict, _ in verdicts), key=get_args(Verdict).index)
    supports = any(p_holm < LEVEL and verdict == "supported" for verdict, p_holm in verdicts)
    return "mixed" if worst_verdict == "contradicted" and supports else worst_verdict, corrected_p


def _has_error(check: Check) -> bool:
    """Return whether a check is of a mean with a standard error, so that it can be pooled with others."""
    if len(check.values) < 2:
        return False
    return isinstance(check.estimate, Estimate) and check.estimate.error > 0


def _pool_checks(checks: Sequence[Check]) -> RandomEffects:
    estimates = [check.estimate for check in checks if isinstance(check.estimate, Estimate)]
    return random_effects(
        [estimate.mean for estimate in estimates], [estimate.error for estimate in estimates]
    )


CHECKED = (
    *("claim", "verdict", "about", "mean", "low", "high", "above", "below", "unit", "units"),
    *("examples", "p", "p_holm", "smallest_seen", "judged", "printed", "note"),
)
"""The columns of checks."""


def check_rows(outcomes: Sequence[ClaimOutcome]) -> pd.DataFrame:
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
            row |= {"examples": check.comparison.examples if check.comparison else check.examples}
            rows.append(row | {"judged": check.judged, "printed": check.printed, "note": check.note})
    return pd.DataFrame(rows, columns=list(CHECKED))


def claims_content(outcomes: Sequence[ClaimOutcome], measurements: Measurements) -> dict[str, object]:
    """Return the verdicts as JSON: what is published, what the authors' code does, what was found here."""
    checks = check_rows(outcomes).astype(object)
    checks = checks.where(checks.notna(), None)
    return {
        **{
            "title": measurements.title,
            "recipe": measurements.recipe,
            "command": measurements.command,
            "scale": measurements.scale,
        },
        **{"version": VERSION, "commit": source_commit()},
        "claims": [
            {
                **{"id": claim.id, "paper": claim.title, "where": claim.where},
                **{"published": claim.says, "code": claim.code, "rule": claim.rule},
                "threshold": claim.threshold,
                **{"verdict": outcome.verdict, "given": outcome.condition, "here": outcome.found},
                "over_tasks": _describe_means_over_tasks(outcome),
                "by_range": [dict(ends) | {"verdict": verdict} for ends, verdict in outcome.by_range],
                "to_decide": [
                    {"units": units, "unit": check.unit, "about": check.about}
                    for units, check in outcome.to_decide
                ],
                "checks": checks[checks["claim"] == claim.id].drop(columns="claim").to_dict("records"),
            }
            for outcome in outcomes
            for claim in [outcome.claim]
        ],
    }


def _describe_means_over_tasks(outcome: ClaimOutcome) -> list[dict[str, object]]:
    """Return the mean of each statement over its comparisons, scaled as in the text."""
    return [
        {
            **{
                "statement": statement,
                "comparisons": estimate.studies,
                "between": check.scale * estimate.between,
            },
            **{name: check.scale * getattr(estimate, name) for name in ("mean", "low", "high")},
        }
        for statement, estimate, check in outcome.over_tasks
    ]


@dataclass(frozen=True)
class JudgedClaim:
    """A claim as a file of verdicts has it."""

    id: str
    rule: str
    verdict: str
    checks: list[dict[str, object]]


@dataclass(frozen=True)
class JudgedClaims:
    """A file of verdicts."""

    claims: list[JudgedClaim]


def read_verdicts(path: Path) -> dict[str, JudgedClaim]:
    """Return the verdicts in a file, or in a folder of runs with a report, by claim."""
    file = path / CLAIMS_FILE if path.is_dir() else path
    try:
        return {
            claim.id: claim for claim in convert_json(JudgedClaims, parse_json(read_regular(file))).claims
        }
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{file}: expected verdicts on claims ({one_line(error)}). Write them: isogloss report DIR."
        ) from error


def changed_verdicts(first_folder: Path, second: Path) -> list[dict[str, str]]:
    """Return the claims whose verdict differs between two files or folders, with the checks that differ."""
    sides = read_verdicts(first_folder), read_verdicts(second)
    changes = []
    for key in sorted({*sides[0], *sides[1]}):
        claims = [side.get(key) for side in sides]
        verdicts = [claim.verdict if claim else "not listed" for claim in claims]
        if verdicts[0] != verdicts[1]:
            rules = {claim.rule for claim in claims if claim}
            reasons = ["another rule"] if len(rules) > 1 else []
            reasons += _changed_checks(*(claim.checks if claim else [] for claim in claims))
            row = {"claim": key, "before": verdicts[0], "after": verdicts[1]}
            changes.append({**row, "why": "; ".join(reasons)})
    return changes


def _changed_checks(
    first_checks: Sequence[Mapping[str, object]], second: Sequence[Mapping[str, object]]
) -> list[str]:
    """Describe the checks with a changed verdict by their subjects, and count those with only new numbers.

    If no check has a changed verdict, as after a correction over different checks, all changed checks are
    listed.
    """
    sides = [{str(check["about"]): check for check in side} for side in (first_checks, second)]
    words = [{label: _check_in_words(check) for label, check in side.items()} for side in sides]
    verdicts = [
        {label: (check["verdict"], check.get("judged")) for label, check in side.items()} for side in sides
    ]
    differ = [key for key in dict.fromkeys([*words[0], *words[1]]) if words[0].get(key) != words[1].get(key)]
    turned_keys = [key for key in differ if verdicts[0].get(key) != verdicts[1].get(key)] or differ
    changes = [f"{key}: {words[0].get(key, 'absent')} → {words[1].get(key, 'absent')}" for key in turned_keys]
    other_count = len(differ) - len(turned_keys)
    return (
        [*changes, f"{other_count} more with other numbers and the same verdict"] if other_count else changes
    )


def _check_in_words(check: Mapping[str, object]) -> str:
    mean, low, high = (
        f"{value:.2f}" if isinstance(value := check.get(name), int | float) else "–"
        for name in ("mean", "low", "high")
    )
    suffix = "" if check.get("judged", True) else ", not judged"
    return f"{mean} [{low}, {high}] {check.get('verdict')}{suffix}"


def _verdict(check: Check, p_holm: float) -> Verdict:
    """Return the verdict of one check. Support is tested before Holm's correction, contradiction after it."""
    if not check.values:
        return "not tested"
    significant = (check.p_value if check.inside or not check.judged else p_holm) < LEVEL
    if not (significant and check.typical):
        return "undecided"
    if check.inside:
        return "supported"
    return "differs from print" if check.printed else "contradicted"


def _insignificance(candidate: tuple[Check, float]) -> float:
    """Return the p of a check. A single unit has none, and gets the greatest."""
    check, _ = candidate
    p = check.p_value if check.values else math.nan
    return math.inf if math.isnan(p) else p


def _finding(check: Check, p_holm: float, tests: int) -> str:
    text = _numbers(check, p_holm, tests) if check.values else check.about
    text = text if check.judged else f"not judged: {text}"
    return f"{text} (not judged: {check.note})" if check.note else text


def _numbers(check: Check, p_holm: float, tests: int) -> str:
    """Write mean, interval, every p, the units, and the smallest detectable effect."""
    estimate = check.estimate
    n = len(check.values)
    format_value = check.written
    comparison = check.comparison
    if n < 2:
        return f"{check.text} (one {check.unit}: says nothing about others)"
    p = f"p = {p_text(check.p_value)} over {check.unit}s"
    if comparison and comparison.examples:
        p = f"p = {p_text(comparison.p_units)} over {check.unit}s, "
        p += f"{p_text(comparison.p_examples)} over examples, {p_text(check.p_value)} over both"
    if check.examples is not None:
        p += (
            f" and {check.examples} examples"
            if check.examples
            else ", on these examples alone (the runs stored no answers)"
        )
    correction_text = [f"{p_text(p_holm)} of {tests} tests"] if tests > 1 and check.judged else []
    parts = [
        f"{check.text} [{format_value(estimate.low)}, {format_value(estimate.high)}]",
        p,
        *correction_text,
        f"n = {n}",
    ]
    verdict = _verdict(check, p_holm)
    if verdict == "undecided":
        smallest = estimate.smallest_seen(LEVEL / max(tests, 1))
        effect = f"effects from {format_value(smallest)} on would have been seen"
        parts.append(effect if math.isfinite(smallest) else f"{n} {check.unit}s are too few to decide")
    if verdict == "differs from print":
        parts.append(f"the paper prints “{check.printed}”")
    return ", ".join(parts)


def p_text(value: float) -> str:
    """Write a p-value with three decimals. A dash for nan."""
    if math.isnan(value):
        return "–"
    return "<0.001" if value < 0.001 else f"{value:.3f}"
