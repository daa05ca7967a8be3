"""Write README.md from the checks of claims: `python docs/results/claims/table.py [RUNS CLAIM ...]`.

With RUNS, a folder of runs with its report, its checks of the claims named take the place of those in
checks-again.csv. checks.csv has those of all claims by the rules of then.
"""

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import pandas as pd

from isogloss.metrics.estimates import LEVEL
from isogloss.metrics.ranks import trend_p_value
from isogloss.metrics.significance import holm
from isogloss.reports.report import CLAIMS
from isogloss.reports.verdicts import PAPERS, Verdict, p_text

HERE = Path(__file__).parent
CHECKS = HERE / "checks.csv"
SIZES = 3
"""Sizes of bitext in the study of the third paper."""
MADE_AGAIN = HERE / "checks-again.csv"

HEAD = """# Checks of claims

```
isogloss run --out runs/claims papers/under-specified/claims papers/x-mixup/claims-pos \\
    papers/x-mixup/claims-nli papers/adjustment/claims-ner papers/adjustment/claims-qa \\
    papers/adjustment/claims-nli papers/interference/claims papers/interference/table-4
```

Every check of the claims of all four papers, at built-in scale, by the
[one command](../../papers.md#all-claims-from-one-command): 2,183 runs in one folder, in several sittings
(those of X-Mixup in NLI, the adjustment's NLI and interference were there from folders of their own: a run's
id is of all that decides what it makes). Only 2m is of another folder, with eight targets
([eight_targets.toml](../x_mixup/eight_targets.toml)). Written by `python docs/results/claims/table.py` from
[checks.csv](checks.csv), which the report makes, with Holm's correction over all checks of a claim, and from
[checks-paper-1.csv](checks-paper-1.csv) (`python docs/results/claims/paper_1.py`: the first paper's claims by
today's rules, from the rows of [under_specified](../under_specified/README.md)), and from
[checks-rows.csv](checks-rows.csv) (`python docs/results/claims/from_rows.py`: claims of others by today's
rules, from scores that are kept where the runs are gone; their chance is that of seeds alone), and from
[checks-again.csv](checks-again.csv) (what was made again: 4b and 4c, twelve encoders of
papers/interference/claims, joint ones of a far and a near pair with six seeds, in some 1.5 hours of a process
on two busy cores; 4i, [learning-speed.toml](learning-speed.toml), eighteen encoders, six joint, six with
adapters and six with meta-learned ones, 2.6 hours of an idle core; 4m,
papers/interference/table-4, eight encoders, half an hour of an idle core; 3c, the recipes of
[distances-ner.toml](distances-ner.toml), fifteen models of the original encoder, half an hour).

A check is a number with its 95 % interval and the range that the claim gives it. p is of the bound that
decides, after Holm's correction over the claim's checks. A claim is **supported** where all its checks are
(each at p < 0.05), **contradicted** where one is after the correction, **mixed** where another one supports
it; outside a threshold that is this project's, where the paper prints words, it **differs from print**. A
verdict over seeds holds given that no run failed: six seeds without a failure exclude a rate of failures
above 39 %, five above 45 %, twelve above 22 %. Of an interval whose check has a threshold of this project,
the ends say where the verdict turns: a threshold within it decides nothing. What chance can explain is
*undecided* ([why](../../decisions/0049-five-verdicts.md)), and then the last column has the smallest effect
that four of five such studies would have seen. Differences of scores are in points. How often noise gets a
verdict: [the court](../../../benchmarks/results/court.md).
All of it is of encoders of 1.1 M parameters, on built-in languages, which share one world.
"""

CHANGED = {
    "1a": "a rise is no fall: barrier and drop, as shares of the bilingual score",
    "1c": "by permutation, which takes no normal seeds, and on the logit scale, too: but for one encoder and "
    "task the targets vary no more than a ceiling explains",
    "1e": "slope at the source-only model, signed; two encoders that exist: their fine-tuning seeds",
    "1f": "the threshold of 0.9 is this project's, so what lies below it differs from “linearly”",
    "1g": "the range of 10 degrees is this project's, so what lies outside differs from “around 55°”",
    "1h": "by permutation, and on the logit scale, too, where nothing is seen",
    "1j": "as 1a: what was a fall is a rise",
    "1k": "the source has to be flat, too: in names it rises by 8.7 points per unit [4.4, 12.9]",
    "1l": "withdrawn: the grid has no point within 0.25 of the source-only model, and half of the way is no "
    "slope there; the plane's edge is the path of 1e",
    "2f": "the threshold of 0.1 is this project's",
    "2d": "the baseline of Table 5, without mixup in training and at inference; seeds alone",
    "2j": "the baseline of Table 5, without mixup in training and at inference; seeds alone",
    "4a": "equal steps and two languages alone; independent encoders; seeds alone",
    "3c": "cosine in place of a distance that changes with the scale of states, made again",
    "4b": "equal seeds are one unit, made again",
    "4c": "equal seeds are one unit, made again",
    "4e": "every field of Algorithm 1; independent encoders; seeds alone",
    "4g": "every field of Algorithm 1; independent encoders; seeds alone",
    "4h": "independent encoders; seeds alone",
    "4i": "independent encoders, made again",
    "4j": "independent encoders; seeds alone",
    "4l": "independent encoders; seeds alone",
    "4m": "independent encoders, made again",
}
"""Why checks are others than they were; "seeds alone": from rows without the answers of examples."""

KNOWN = {
    "4d": ("not tested", "its encoders are still learning: twice the steps halve their perplexity"),
    "4k": ("not tested", "no encoder alone overfits: its perplexity did not rise"),
    "2c": (
        "undecided",
        "the eight languages are two groups of related ones: within these ρ is 0.10 [−0.71, 0.79] of "
        "source-only and 0.00 [−0.75, 0.75] of translate-train (x_mixup/eight_targets); also in NLI",
    ),
}
"""Claims whose condition is known not to be met, with today's verdict."""

PAGE = """## What is published, what their code does, what is seen here

Verdicts are today's. *Here*: how many checks have which verdict, and the one that decides.

| | published | their code | whose threshold | here | verdict |
|---|---|---|---|---|---|
"""

AGAIN = """## Verdicts before and after

By the rules of then, and by today's: "supported" needs no correction, "mixed" and "differs from print" are
verdicts, units without any spread are tested by signs or Page's test, and some checks are others.

| claim | then | today | why |
|---|---|---|---|
"""


def p_values(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the checks of a claim with today's p: of units without any spread that of the sign test.

    Where all have the three sizes of bitext in the same order, that of Page's trend test.
    """
    equal = rows["low"].eq(rows["high"]) & rows["units"].gt(1)
    p = rows["p"].mask(equal, 2.0 ** (1 - rows["units"]))
    ordered = equal & rows["about"].str.contains("ρ of translations") & rows["mean"].abs().eq(1)
    p = p.mask(ordered, [trend_p_value(SIZES, int(units or 0)) for units in rows["units"].fillna(0)])
    return rows.assign(p=p, p_holm=holm([*p]))


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
    """Return the verdict of a claim from those of its checks."""
    worst = min(rows["verdict"], key=get_args(Verdict).index)
    supports = ((rows["p_holm"] < LEVEL) & (rows["verdict"] == "supported")).any()
    return "mixed" if worst == "contradicted" and supports else worst


@dataclass(frozen=True)
class Judged:
    """A claim's verdicts, then and today, and the checks that today's stands on."""

    then: str
    today: str
    why: str
    checks: pd.DataFrame


def judged(claim: str, then: pd.DataFrame, today: pd.DataFrame) -> Judged:
    """Return the verdicts of a claim."""
    verdict = min(then["verdict"], key=get_args(Verdict).index)
    if claim in KNOWN:
        return Judged(verdict, *KNOWN[claim], checks=then)
    if len(today):
        return Judged(verdict, claim_verdict(today), CHANGED.get(claim, "the same rule"), today)
    rows = p_values(then)
    rows = rows.assign(verdict=[verdict_of(row) for _, row in rows.iterrows()])
    after = claim_verdict(rows)
    why = "the same" if after == verdict else counted(rows)
    return Judged(verdict, after, CHANGED.get(claim, why), rows)


def counted(rows: pd.DataFrame) -> str:
    """Say how many checks have which verdict."""
    verdicts = [*rows["verdict"]]
    parts = [f"{verdicts.count(name)} {name}" for name in get_args(Verdict) if name in verdicts]
    return f"of {len(verdicts)} checks {', '.join(parts)}"


def seen_here(result: Judged) -> str:
    """Say what the checks of a claim have, and write the one that decides."""
    order = get_args(Verdict)
    rows = result.checks.sort_values(
        ["verdict", "p"], key=lambda column: column.map(order.index) if column.name == "verdict" else column
    )
    first = rows.iloc[0]
    ends = (
        ""
        if pd.isna(first["mean"])
        else f" {number(first['mean'])} [{number(first['low'])}, {number(first['high'])}]"
    )
    return f"{counted(rows)}; {first['about'].replace('|', '/')}{ends}"


def number(value: float) -> str:
    """Write a number with as many digits as it deserves."""
    digits = 1 if abs(value) >= 10 else 2
    return f"{value:.{digits}f}".replace("-", "−")


def bounds(row: pd.Series) -> str:
    """Write the range that a claim gives."""
    ends = [f"above {number(row['above'])}"] if pd.notna(row["above"]) else []
    ends += [f"below {number(row['below'])}"] if pd.notna(row["below"]) else []
    return ", ".join(ends)


def line(row: pd.Series) -> str:
    """Write a check as a row of the table."""
    cells = [row["about"].replace("|", "/"), "", "", "", "", row["verdict"], ""]
    if pd.notna(row["mean"]):
        low, high = ("–" if math.isnan(end) else number(end) for end in (row["low"], row["high"]))
        cells[1:4] = [f"{number(row['mean'])} [{low}, {high}]", bounds(row), p_text(row["p_holm"])]
        cells[4] = f"{row['units']:.0f} {row['unit']}s"
        undecided = row["verdict"] == "undecided" and pd.notna(row["smallest_seen"])
        cells[6] = number(row["smallest_seen"]) if undecided else ""
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Write the page."""
    checks = pd.read_csv(CHECKS)
    if sys.argv[1:]:
        runs, *claims = sys.argv[1:]
        again, theirs = pd.read_csv(MADE_AGAIN), pd.read_csv(Path(runs) / "tables" / "checks.csv")
        if not claims or set(claims) - set(theirs["claim"]):
            sys.exit(
                f"{runs} has checks of {', '.join(theirs['claim'].unique())}; name one or several of these"
            )
        theirs = theirs[theirs["claim"].isin(claims)].reindex(columns=[*again])
        again = pd.concat([again[~again["claim"].isin(claims)], theirs])
        again.sort_values("claim", kind="stable").to_csv(MADE_AGAIN, index=False)
    today = pd.concat(pd.read_csv(HERE / f"checks-{name}.csv") for name in ("paper-1", "rows", "again"))
    today = today[today["judged"]]
    results = {
        claim.id: judged(claim.id, *(rows[rows["claim"] == claim.id] for rows in (checks, today)))
        for claim in CLAIMS
        if claim.id in set(checks["claim"])
    }
    (HERE / "README.md").write_text("\n".join(page(results)) + "\n", encoding="utf-8")


def page(results: Mapping[str, Judged]) -> list[str]:
    """Return the lines of the page."""
    lines = [HEAD, *PAGE.rstrip().split("\n")]
    for claim in CLAIMS:
        result = results.get(claim.id)
        verdict = "not tested" if result is None else result.today
        here = "–" if result is None else seen_here(result)
        cells = (claim.id, f"{claim.says} ({claim.where})", claim.code, claim.threshold, here, verdict)
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", *AGAIN.rstrip().split("\n")]
    lines += [f"| {key} | {result.then} | {result.today} | {result.why} |" for key, result in results.items()]
    for paper, title in PAPERS.items():
        claims = [claim for claim in CLAIMS if claim.paper == paper and claim.id in results]
        lines += [f"\n## {title}\n"] if claims else []
        for claim in claims:
            result = results[claim.id]
            of_then = ", checks of then" if claim.id in KNOWN else ""
            lines += [f"\n**{claim.id} {result.today}{of_then}**: {claim.says} ({claim.where})\n"]
            lines += [
                "| check | seen | claimed | p | n | | would have seen |",
                "|---|---|---|---|---|---|---|",
            ]
            lines += [line(row) for _, row in result.checks.iterrows()]
    return lines


if __name__ == "__main__":
    main()
