"""Write README.md from the checks of claims: `python docs/results/claims/table.py [RUNS [CLAIM ...]]`.

With RUNS, a folder of runs with its report, its checks take the place of those in checks.csv: of the claims
named, or of all. That of all claims tests no 2m; name it with the folder of eight targets afterwards.
"""

import math
import sys
from pathlib import Path
from typing import get_args

import pandas as pd

from isogloss.metrics.estimates import LEVEL
from isogloss.reports.report import CLAIMS
from isogloss.reports.verdicts import PAPERS, Verdict, p_text

HERE = Path(__file__).parent
CHECKS = HERE / "checks.csv"

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
[checks.csv](checks.csv), which the report makes, with Holm's correction over all checks of a claim.

A check is a number with its 95 % interval and the range that the claim gives it. p is of the bound that
decides, after Holm's correction over the claim's checks. A claim is **supported** where all its checks are,
**contradicted** where one is; what chance can explain is *undecided*
([why](../../decisions/0049-five-verdicts.md)), and then the last column has the smallest effect that four of
five such studies would have seen. Differences of scores are in points. What contradicts 4d zero-shot is of
encoders that have hardly begun to transfer: after
[twice the steps](../interference/README.md#twice-the-steps) own feed-forward layers do as the paper claims,
and it is adapters that contradict it.

The checks below follow the rules before [decision 0049](../../decisions/0049-five-verdicts.md).
"""

SAME_CHECKS = (
    *("1b", "1d", "1f", "1g", "1i", "2a", "2b", "2c", "2e", "2f", "2g", "2h", "2i", "2k", "2l", "2m"),
)
"""Claims whose checks are today what they were then, so that these numbers can be judged again."""

AGAIN = """## Judged again

By today's rules of a verdict ("supported" needs no correction, "mixed" is a verdict) where the checks are
what they were.
Of the other claims these numbers do not suffice, and the runs have to be reported again: slopes, barriers and
variances of paper 1 (1a, 1c, 1e, 1h, 1j, 1k, 1l), the baseline of Table 5 (2d, 2j), adjusting seeds as the
unit (paper 3), independent encoders, equal steps, and encoders that stopped learning or overfit (paper 4).

| claim | then | by today's rules | why |
|---|---|---|---|
"""


def verdict_of(row: pd.Series) -> str:
    """Judge a check by today's rules."""
    if pd.isna(row["mean"]):
        return "not tested"
    inside = not row["mean"] <= row["above"] and not row["mean"] >= row["below"]
    if not (row["p"] if inside else row["p_holm"]) < LEVEL:
        return "undecided"
    return "supported" if inside else "contradicted"


def judged_again(checks: pd.DataFrame, verdicts: dict[str, str]) -> list[str]:
    """Return a line for each claim whose checks are what they were, with the old and the new verdict."""
    lines, order = [], get_args(Verdict)
    for claim in (claim for claim in SAME_CHECKS if claim in verdicts):
        rows = checks[checks["claim"] == claim]
        each = [verdict_of(row) for _, row in rows.iterrows()]
        worst = min(each, key=order.index)
        supports = ((rows["p_holm"] < LEVEL) & (pd.Series(each, index=rows.index) == "supported")).any()
        today = "mixed" if worst == "contradicted" and supports else worst
        count = ", ".join(f"{each.count(verdict)} {verdict}" for verdict in order if verdict in each)
        why = "the same" if today == verdicts[claim] else f"of its checks {count}"
        lines.append(f"| {claim} | {verdicts[claim]} | {today} | {why} |")
    return lines


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
        low, high = ("–" if math.isnan(one) else number(one) for one in (row["low"], row["high"]))
        cells[1:4] = [f"{number(row['mean'])} [{low}, {high}]", bounds(row), p_text(row["p_holm"])]
        cells[4] = f"{row['units']:.0f} {row['unit']}s"
        seen = row["verdict"] == "undecided" and pd.notna(row["smallest_seen"])
        cells[6] = number(row["smallest_seen"]) if seen else ""
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Write the page."""
    checks = pd.read_csv(CHECKS)
    if sys.argv[1:]:
        theirs = pd.read_csv(Path(sys.argv[1]) / "tables" / "checks.csv")
        theirs = theirs[theirs["claim"].isin(sys.argv[2:] or theirs["claim"])]
        checks = pd.concat([checks[~checks["claim"].isin(theirs["claim"])], theirs])
        checks.sort_values("claim", kind="stable").to_csv(CHECKS, index=False)
    order = get_args(Verdict)
    verdicts = {
        claim.id: min(checks[checks["claim"] == claim.id]["verdict"], key=order.index)
        for claim in CLAIMS
        if claim.id in set(checks["claim"])
    }
    found = [" ".join(key for key, verdict in verdicts.items() if verdict == one) for one in order]
    lines = [HEAD, f"| {' | '.join(order)} |", "|---" * len(order) + "|", f"| {' | '.join(found)} |"]
    lines += ["", *AGAIN.rstrip().split("\n"), *judged_again(checks, verdicts)]
    for paper, title in PAPERS.items():
        judged = [one for one in CLAIMS if one.paper == paper and one.id in verdicts]
        lines += [f"\n## {title}\n"] if judged else []
        for claim in judged:
            lines += [f"\n**{claim.id} {verdicts[claim.id]}**: {claim.says} ({claim.where})\n"]
            lines += [
                "| check | found | claimed | p | n | | would have seen |",
                "|---|---|---|---|---|---|---|",
            ]
            lines += [line(row) for _, row in checks[checks["claim"] == claim.id].iterrows()]
    (HERE / "README.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
