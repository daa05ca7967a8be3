"""Write README.md and verdicts.csv from the checks of claims.

    python docs/results/claims/table.py [RUNS CLAIM ...]

With RUNS, a folder of runs with its report, its checks of the given claims replace those in checks-again.csv.
Claims without rows in the other files are judged by the numbers in checks.csv.
"""

import math
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import pandas as pd

from isogloss.features.claims.four_papers import CLAIMS
from isogloss.metrics.estimates import LEVEL, Estimate, random_effects, t_quantile
from isogloss.metrics.ranks import trend_p_value
from isogloss.metrics.significance import holm
from isogloss.reports.checks import Check, Statistic
from isogloss.reports.verdicts import Claim, ClaimOutcome, Verdict

HERE = Path(__file__).parent
CHECKS = HERE / "checks.csv"
TASKS = ("upos", "ner", "nli", "qa", "parsing")
SIZES = 3
"""Sizes of bitext in the study of the third paper."""
MADE_AGAIN = HERE / "checks-again.csv"
COLUMNS = [
    "about",
    "mean",
    "low",
    "high",
    "above",
    "below",
    "p",
    "p_holm",
    "units",
    "unit",
    "verdict",
    "smallest_seen",
]

HEAD = """# Verdicts on the papers' claims

Which claims of the four papers hold on built-in languages, in encoders of 1.1 M parameters? {answer}

![Accuracy along Eq. 1: the source stays level where the targets rise](../../images/paths.svg)

*Claims 1a and 1b in the [quickstart](../quickstart/README.md): the source score stays
level and the target scores rise along Eq. 1.*

| verdict | claims |
|---|---|
{counts}

## Command

```
isogloss run --out runs/claims papers/under-specified/claims papers/x-mixup/claims-pos \\
    papers/x-mixup/claims-nli papers/adjustment/claims-ner papers/adjustment/claims-qa \\
    papers/adjustment/claims-nli papers/interference/claims papers/interference/table-4
python docs/results/claims/table.py
```

The [one command](../../papers.md#all-claims-from-one-command) makes 2,183 runs in one folder. `table.py`
writes this page and [verdicts.csv](verdicts.csv), which has every check with its interval, range, p-value,
verdict and detectable effect. It reads:

- [checks.csv](checks.csv): the checks in the report of the command;
- [checks-paper-1.csv](checks-paper-1.csv): paper 1, from the rows of
  [under_specified](../under_specified/README.md) (`python docs/results/claims/paper_1.py`), {seeds} seeds;
- [checks-rows.csv](checks-rows.csv): claims judged from stored scores, with intervals over seeds only
  (`python docs/results/claims/from_rows.py`);
- [checks-again.csv](checks-again.csv): 3c ([distances-ner.toml](distances-ner.toml) and its counterparts
  [for NLI](distances-nli.toml) and [for QA](distances-qa.toml): fifteen models, half an hour), 4b and 4c
  (twelve encoders of papers/interference/claims, 1.5 hours on two busy cores), 4i
  ([learning-speed.toml](learning-speed.toml): eighteen encoders, 2.6 hours of a core) and 4m
  (papers/interference/table-4: twelve encoders, 37 minutes; all encoders take equally many steps, so that a
  third language takes a third of them), and the NER part of 3j (papers/adjustment/claims-ner with twelve
  seeds, an hour).

Claims 1e, 1h, 3j and 4m were first judged with six, six, five and four seeds. The number of further seeds was
then taken from the last table of this page. Verdicts use all seeds; a second look raises their 5 % to about
8 %. The later seeds alone give the first paper's claims the same verdicts
(`python docs/results/claims/paper_1.py 6`).

Claim 2m comes from the study with [eight targets](../x_mixup/eight_targets.toml).

## How to read the tables

A check is a number with its 95 % interval and the range that the claim allows. [What the papers
claim](../../claims.md) lists each claim's rule, what the authors' code does, and which thresholds are ours,
and defines the verdicts. The tables show, for each claim, the check that decides, the mean of each statement
over its comparisons (random effects, with their number), and how many checks have which verdict. p-values are
corrected by Holm's method over the checks of a claim. Differences of scores are in points.

The last column has, for undecided claims, how many seeds each study would need to decide them in 80 % of
cases if the numbers here are the true ones, and the hours of one core for all of these seeds (“–”: no
number of seeds would). [The last table](#what-would-decide) has the commands.

A verdict over seeds assumes that no run failed: six seeds without a failure exclude failure rates above 39
%, five above 45 %, twelve above 22 %. [The court](../../../benchmarks/results/court.md) measures how often
noise receives each verdict."""

NOTES = {
    "1a": "Barrier and drop are shares of the bilingual score.",
    "1c": "By permutation, in points and on the logit scale.",
    "1e": "Slope at the source-only model; over fine-tuning seeds of two encoders.",
    "1f": "The paper prints “linearly”.",
    "1g": "The paper prints “around 55°”.",
    "1h": "By permutation, in points and on the logit scale.",
    "1k": "The source must be flat too.",
    "1l": "The grid has no point within 0.25 of the source-only model.",
    "2d": "Baseline of Table 5: unmixed in training and at inference; over seeds.",
    "2f": "Our threshold is 0.1.",
    "2j": "Baseline of Table 5: unmixed in training and at inference; over seeds.",
    "3c": "Cosine distance, which does not change with the scale of states.",
    "4a": "Equal steps, both languages; over seeds.",
    "4b": "Encoders with equal seeds are one unit.",
    "4c": "Encoders with equal seeds are one unit.",
    "4e": "All fields of Algorithm 1; over seeds.",
    "4g": "All fields of Algorithm 1; over seeds.",
    "4h": "Over seeds.",
    "4j": "Over seeds.",
    "4l": "Over seeds.",
}
"""Conditions under which a claim is judged here."""

HOURS = {
    "1": ("papers/under-specified/claims", 0.5 / 6),
    "2 upos": ("papers/x-mixup/claims-pos", 0.7 / 8),
    "2 nli": ("papers/x-mixup/claims-nli", 10.4 / 8),
    "3 ner": ("papers/adjustment/claims-ner", 0.8 / 5),
    "3 nli": ("papers/adjustment/claims-nli", 3.5 / 5),
    "3 qa": ("papers/adjustment/claims-qa", 2.7 / 5),
    "3c qa": ("docs/results/claims/distances-qa.toml", 0.5 / 15),
    "4": ("papers/interference/claims", 6.7 / 6),
    "4i": ("docs/results/claims/learning-speed.toml", 2.6 / 6),
    "4m": ("papers/interference/table-4", 0.5 / 4),
}
"""Recipe, and hours of one core for each seed, by claim or paper and task."""

SEEDS = {
    "papers/adjustment/": [*(f"adjust.{index}.seed" for index in range(4)), "grid.seeds"],
    "papers/interference/": ["pretrain.seed", "grid.seeds"],
}
"""Fields with seeds by the beginning of a recipe, where grid.seeds is not the only one."""

FEW_HOURS = 6.0
"""Studies that take fewer hours are listed with their commands."""

SCALES = {"2f": 100}
"""Factor of the numbers of claims that are shown in percent."""

KNOWN = {
    "4d": ("not tested", "The encoders are still learning: twice the steps halve their perplexity."),
    "4k": ("not tested", "No monolingual encoder overfits: its perplexity does not rise."),
    "2c": (
        "undecided",
        "The eight languages form two groups of related ones; within them ρ is 0.10 [−0.71, 0.79] "
        "for source-only and 0.00 [−0.75, 0.75] for translate-train (x_mixup/eight_targets).",
    ),
}
"""Claims whose condition is not met, with their verdict and the reason."""


def p_values(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the checks of a claim with today's p, from the sign test for units without any spread.

    Where all have the three sizes of bitext in the same order, p is from Page's trend test.
    """
    equal = rows["low"].eq(rows["high"]) & rows["units"].gt(1)
    p = rows["p"].mask(equal, 2.0 ** (1 - rows["units"]))
    order = equal & rows["about"].str.contains("ρ of translations") & rows["mean"].abs().eq(1)
    p = p.mask(order, [trend_p_value(SIZES, int(units or 0)) for units in rows["units"].fillna(0)])
    return rows.assign(p=p, p_holm=holm(list(p)))


def verdict_of(row: pd.Series) -> str:
    """Judge a check by today's rules."""
    if pd.isna(row["mean"]):
        return "not tested"
    inside = not row["mean"] <= row["above"] and not row["mean"] >= row["below"]
    if not (row["p"] if inside else row["p_holm"]) < LEVEL:
        return "undecided"
    if inside:
        return "supported"
    # A bound of 0 is the paper's, which says more or less; another one is this project's.
    papers = row["above"] == 0 or row["below"] == 0
    return "contradicted" if papers else "differs from print"


def claim_verdict(rows: pd.DataFrame) -> str:
    """Return the verdict of a claim from the verdicts of its checks."""
    worst_verdict = min(rows["verdict"], key=get_args(Verdict).index)
    supports = ((rows["p_holm"] < LEVEL) & (rows["verdict"] == "supported")).any()
    return "mixed" if worst_verdict == "contradicted" and supports else worst_verdict


@dataclass(frozen=True)
class JudgedClaim:
    """A claim's verdict, its condition and its checks."""

    verdict: str
    note: str
    checks: pd.DataFrame


def judge_claim(claim: str, reported_table: pd.DataFrame, judged_table: pd.DataFrame) -> JudgedClaim:
    """Judge a claim by its judged checks, or by the numbers of its reported ones."""
    if claim in KNOWN:
        return JudgedClaim(*KNOWN[claim], checks=reported_table)
    note = NOTES.get(claim, "")
    if len(judged_table):
        return JudgedClaim(claim_verdict(judged_table), note, judged_table)
    rows = p_values(reported_table)
    rows = rows.assign(verdict=[verdict_of(row) for _, row in rows.iterrows()])
    return JudgedClaim(claim_verdict(rows), note, rows)


def count_verdicts(rows: pd.DataFrame) -> str:
    """Return the number of checks with each verdict, as text."""
    verdicts = list(rows["verdict"])
    return ", ".join(f"{verdicts.count(name)} {name}" for name in get_args(Verdict) if name in verdicts)


def describe_deciding_check(rows: pd.DataFrame) -> str:
    """Describe the check that decides a claim, with its number and interval."""
    order = get_args(Verdict)
    ranks = rows["verdict"].map(order.index)
    row = rows.assign(rank=ranks).sort_values(["rank", "p"]).iloc[0]
    text = row["about"].replace("|", "/")
    if pd.isna(row["mean"]):
        return text
    return f"{text} {number(row['mean'])} [{number(row['low'])}, {number(row['high'])}]"


def checks_of(rows: pd.DataFrame) -> list[Check]:
    """Return the stored rows of a claim as checks."""
    return [make_check(row) for _, row in rows.iterrows()]


def make_check(row: pd.Series) -> Check:
    """Return a stored row as a check, whose error is from its interval."""
    if pd.isna(row["mean"]):
        return Check(about=row["about"])
    units = int(row["units"])
    ratio = "spread of" in row["about"]
    mean = float(row["mean"])
    high = float(row["high"])
    statistic: Estimate | Statistic
    if ratio or row["unit"] in ("language", "family"):
        statistic = Statistic(
            mean=mean,
            low=float(row["low"]),
            high=high,
            p_value=lambda _: float(row["p"]),
            smallest_seen=lambda _: float(row["smallest_seen"]),
        )
    else:
        error = (high - mean) / t_quantile(1 - LEVEL / 2, units - 1)
        statistic = Estimate(mean, error, error, units - 1, units, units - 1)
    ends = {name: float(row[name]) for name in ("above", "below") if not pd.isna(row[name])}
    return Check(
        about=row["about"],
        values=(mean,) * units,
        unit=row["unit"],
        statistic=statistic,
        ratio=ratio,
        **ends,
    )


def find_deciding_units(claim: Claim, result: JudgedClaim) -> list[tuple[int, Check]]:
    """Return the checks that would decide a claim, each with the number of its units."""
    rows = result.checks
    if claim.id in KNOWN or "p_holm" not in rows:
        return []
    outcome = ClaimOutcome(
        claim=claim,
        verdict=result.verdict,
        found="",
        checks=checks_of(rows),
        p_holm=list(rows["p_holm"]),
    )
    return outcome.to_decide


@dataclass(frozen=True)
class Study:
    """A study that would decide a claim, or a part of it."""

    recipe: str
    seeds: int
    hours: float
    """Hours of one core for all of its seeds: the models of earlier seeds are not kept."""

    @property
    def command(self) -> str:
        """Command that runs the study."""
        fields = next(
            (seed for start, seed in SEEDS.items() if self.recipe.startswith(start)), ["grid.seeds"]
        )
        seeds = " ".join(f"--set {field}=$SEEDS" for field in fields)
        return f"SEEDS=[$(seq -s, 0 {self.seeds - 1})]; isogloss run --out runs/more {self.recipe} {seeds}"


def find_studies(claim: str, decisive_checks: list[tuple[int, Check]]) -> list[Study]:
    """Return the studies that would decide a claim, each with the most seeds that one of its checks needs."""
    studies: dict[str, Study] = {}
    for units, check in decisive_checks:
        task = check.about.split(":")[0].split(" ")[0].strip(",")
        keys = (f"{claim} {task}", claim, f"{claim[0]} {task}", claim[0])
        recipe, hours = next(HOURS[key] for key in keys if key in HOURS)
        if "seed" in check.unit and (recipe not in studies or studies[recipe].seeds < units):
            studies[recipe] = Study(recipe, units, hours * units)
    return list(studies.values())


def describe_units(claim: str, decisive_checks: list[tuple[int, Check]]) -> str:
    """Write how many units would decide a claim, and the hours that they take."""
    if not decisive_checks:
        return "–"
    studies = find_studies(claim, decisive_checks)
    if not studies:
        return ", ".join(f"{units:,} {check.unit}s" for units, check in decisive_checks)
    seeds = " and ".join(f"{study.seeds:,}" for study in studies)
    return f"{seeds}; {write_hours(sum(study.hours for study in studies))}"


def write_hours(hours: float) -> str:
    """Write hours of one core."""
    return f"{hours:.1f} h" if hours < 10 else f"{hours:,.0f} h"


def name_statement(claim: str, description: str) -> str:
    """Return the statement of a check, without its task, languages and numbers."""
    text = description.split(": ")[0 if claim[0] == "4" else -1]
    text = re.sub(r" [(].*?[)]|[+−-]?[0-9]+[.][0-9]+(?: →)? ?", "", text)
    return text.replace(" ,", ",").strip(" ,").replace("|", "/")


def mean_over_comparisons(claim: str, rows: pd.DataFrame) -> str:
    """Write the mean of each statement that several comparisons of a claim check (random effects)."""
    statements: dict[tuple[str, float, float], list[Estimate]] = {}
    for check in checks_of(rows):
        if isinstance(check.statistic, Estimate) and check.statistic.error > 0:
            key = (name_statement(claim, check.about), check.above, check.below)
            statements.setdefault(key, []).append(check.statistic)
    parts = []
    for (statement, *_), estimates in statements.items():
        if len(estimates) > 1:
            values = random_effects(
                [estimate.mean for estimate in estimates], [estimate.error for estimate in estimates]
            )
            interval = f"[{number(values.low)}, {number(values.high)}]"
            parts.append(f"{statement} {number(values.mean)} {interval} ({values.studies})")
    return "; ".join(parts) or "–"


def judge_by_range(claim: Claim, rows: pd.DataFrame) -> list[str]:
    """Return the lines of a table of a claim's verdict by the range that it allows."""
    scale = SCALES.get(claim.id, 1)
    lines = []
    for ends in claim.ranges:
        moved_table = rows.assign(
            above=scale * ends.get("above", math.nan), below=scale * ends.get("below", math.nan)
        )
        moved_table["p"] = [check.p_value for check in checks_of(moved_table)]
        moved_table["p_holm"] = holm(list(moved_table["p"]))
        moved_table["verdict"] = [verdict_of(row) for _, row in moved_table.iterrows()]
        text = " and ".join(f"{name} {end:g}" for name, end in ends.items())
        lines.append(
            f"| {claim.id} | {text} | {count_verdicts(moved_table)} | {claim_verdict(moved_table)} |"
        )
    return lines


def number(value: float) -> str:
    """Write a number with as many digits as it deserves."""
    digits = 1 if abs(value) >= 10 else 2
    return f"{value:.{digits}f}".replace("-", "−")


def main() -> None:
    """Write the page and the table of all checks."""
    checks = pd.read_csv(CHECKS)
    if sys.argv[1:]:
        runs, *claims = sys.argv[1:]
        replace_checks(Path(runs), claims)
    judged_table = pd.concat(
        pd.read_csv(HERE / f"checks-{name}.csv") for name in ("paper-1", "rows", "again")
    )
    judged_table = judged_table[judged_table["judged"]]
    results = {
        claim.id: judge_claim(claim.id, *(rows[rows["claim"] == claim.id] for rows in (checks, judged_table)))
        for claim in CLAIMS
        if claim.id in set(checks["claim"])
    }
    (HERE / "README.md").write_text("\n".join(write_page(results)) + "\n", encoding="utf-8")
    tables = {key: result.checks.reindex(columns=COLUMNS) for key, result in results.items()}
    table = pd.concat(tables, names=["claim", "row"]).reset_index("claim")
    table["claim_verdict"] = table["claim"].map({key: result.verdict for key, result in results.items()})
    table.to_csv(HERE / "verdicts.csv", index=False, float_format="%.6g")


def replace_checks(runs: Path, claims: list[str]) -> None:
    """Replace the stored checks of some claims by checks of a folder of runs.

    Of tasks that the folder does not measure, the reported checks stay. All are corrected together.
    """
    stored_table = pd.read_csv(MADE_AGAIN)
    measured_table = pd.read_csv(runs / "tables" / "checks.csv")
    if not claims or set(claims) - set(measured_table["claim"]):
        sys.exit(f"{runs} has checks of {', '.join(measured_table['claim'].unique())}; name one or several")
    reported_table = pd.read_csv(CHECKS).assign(judged=True)
    tables = [stored_table[~stored_table["claim"].isin(claims)]]
    for claim in claims:
        rows = measured_table[measured_table["claim"].eq(claim) & measured_table["mean"].notna()]
        other_rows = reported_table[
            reported_table["claim"].eq(claim) & ~find_tasks(reported_table).isin(find_tasks(rows))
        ]
        rows = pd.concat([rows, other_rows])
        rows["p_holm"] = holm(list(rows["p"]))
        rows["verdict"] = [verdict_of(row) for _, row in rows.iterrows()]
        tables.append(rows.reindex(columns=list(stored_table)))
    pd.concat(tables).sort_values("claim", kind="stable").to_csv(MADE_AGAIN, index=False)


def find_tasks(rows: pd.DataFrame) -> "pd.Series[str]":
    """Return the task in the description of each check."""
    return rows["about"].str.extract(rf"\b({'|'.join(TASKS)})\b", expand=False).fillna("")


def write_page(results: Mapping[str, JudgedClaim]) -> list[str]:
    """Return the lines of the page."""
    verdicts = {
        claim.id: results[claim.id].verdict if claim.id in results else "not tested" for claim in CLAIMS
    }
    groups = {
        name: [key for key, verdict in verdicts.items() if verdict == name] for name in get_args(Verdict)
    }
    groups = {name: keys for name, keys in groups.items() if keys}
    counts = ", ".join(f"{len(keys)} {name}" for name, keys in groups.items())
    answer = f"Of {len(CLAIMS)} claims: {counts}. All built-in languages share one world."
    rows = "\n".join(f"| {name} | {', '.join(keys)} |" for name, keys in groups.items())
    lines = [HEAD.format(answer=answer, counts=rows, seeds=count_seeds())]
    for title in dict.fromkeys(claim.title for claim in CLAIMS):
        claims = [claim for claim in CLAIMS if claim.title == title]
        lines += [
            "",
            f"## {title}",
            "",
            "| | claim | deciding check | mean over comparisons | checks | verdict | seeds to decide |",
            "|---|---|---|---|---|---|---|",
        ]
        for claim in claims:
            text = f"{claim.says} ({claim.where})"
            cells = [claim.id, text, "–", "–", "–", verdicts[claim.id], "–"]
            if claim.id in results:
                result = results[claim.id]
                check = describe_deciding_check(result.checks)
                cells[2] = f"{check}. {result.note}" if result.note else check
                cells[3] = mean_over_comparisons(claim.id, result.checks)
                cells[4] = count_verdicts(result.checks)
                cells[6] = describe_units(claim.id, find_deciding_units(claim, result))
            lines.append(f"| {' | '.join(cells)} |")
    return [*lines, *write_ranges(results), *write_studies(results)]


def count_seeds() -> int:
    """Return the number of seeds in the kept rows of the first paper."""
    facts = pd.read_csv(HERE.parent / "under_specified" / "facts.csv")
    return int(facts.loc[facts["kind"] == "model", "seed"].nunique())


def write_ranges(results: Mapping[str, JudgedClaim]) -> list[str]:
    """Return the lines about verdicts by the threshold, where it is this project's."""
    lines = [
        "",
        "## Verdicts by threshold",
        "",
        "The thresholds of these claims are ours. Their verdicts with other ranges:",
        "",
        "| | allowed range | checks | verdict |",
        "|---|---|---|---|",
    ]
    for claim in CLAIMS:
        if claim.ranges and claim.id in results:
            lines += judge_by_range(claim, results[claim.id].checks)
    return lines


def write_studies(results: Mapping[str, JudgedClaim]) -> list[str]:
    """Return the lines about studies of a few hours that would decide a claim, shortest first."""
    studies_by_claim = {
        claim.id: find_studies(claim.id, find_deciding_units(claim, results[claim.id]))
        for claim in CLAIMS
        if claim.id in results
    }
    studies_by_claim = {key: studies for key, studies in studies_by_claim.items() if studies}
    hours = {key: sum(study.hours for study in studies) for key, studies in studies_by_claim.items()}
    few_keys = sorted((key for key in studies_by_claim if hours[key] < FEW_HOURS), key=hours.__getitem__)
    lines = [
        "",
        "## What would decide",
        "",
        f"More seeds would decide {len(studies_by_claim)} of the undecided claims, "
        f"{len(few_keys)} of them in less than {FEW_HOURS:g} hours of one core each.",
        "",
        "| claim | hours | command |",
        "|---|---|---|",
    ]
    lines += [
        f"| {key} | {study.hours:.1f} | `{study.command}` |"
        for key in few_keys
        for study in studies_by_claim[key]
    ]
    return lines


if __name__ == "__main__":
    main()
