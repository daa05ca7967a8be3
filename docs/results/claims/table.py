"""Write README.md from the checks of claims: `python docs/results/claims/table.py [RUNS [CLAIM ...]]`.

With RUNS, a folder of runs with its report, its checks (of the claims named, or of all) take the place of
those in checks.csv that are about the same, and verdicts follow from all checks of a claim together. A
check of RUNS that says less of its models than several of those is added: rename it in its tables/checks.csv.
"""

import math
import re
import sys
from pathlib import Path
from typing import get_args

import pandas as pd

from isogloss.metrics.estimates import LEVEL
from isogloss.metrics.significance import holm
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

Every check of the claims of all four papers, at built-in scale. It is the command of
[papers](../../papers.md#all-claims-from-one-command), but not made in one folder: X-Mixup in NLI
([x_mixup](../x_mixup/README.md)) and with eight targets (2m,
[eight_targets.toml](../x_mixup/eight_targets.toml)), the adjustment's NLI
([adjustment](../adjustment/README.md)) and [interference](../interference/README.md) were made later in
folders of their own, with Holm's correction over all checks of a claim. Written by
`python docs/results/claims/table.py` from [checks.csv](checks.csv), which the report makes.

A check is a number with its 95 % interval and the range that the claim gives it. p is of the bound that
decides, after Holm's correction over the claim's checks. A claim is **supported** where all its checks are,
**contradicted** where one is; what chance can explain is *undecided*
([why](../../decisions/0011-four-verdicts.md)), and then the last column has the smallest effect that four of
five such studies would have seen. Differences of scores are in points. What contradicts 4d zero-shot is of
encoders that have hardly begun to transfer: own feed-forward layers do as the paper claims after
[twice the steps](../interference/README.md#twice-the-steps).
"""


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


def parts(about: str) -> tuple[str, str]:
    """Split what a check is about: of which models, and what, without the numbers that it remarks on."""
    where, what = about.split(": ", 1) if ": " in about else ("", about)
    return where, re.sub(r"[-+]?\d+\.\d+", "#", re.sub(r"( [(][^)]*[)]|, [0-9.]+)$", "", what))


def named_as(old: pd.DataFrame, about: str) -> str:
    """Name a check as the one of the same task, source and kind, if there is one; alone it says less."""
    where, what = parts(about)
    alike = {
        one for one, other in old["about"].map(parts) if other == what and {*where.split()} <= {*one.split()}
    }
    return about.replace(where, alike.pop(), 1) if len(alike) == 1 else about


def merged(ours: pd.DataFrame, theirs: pd.DataFrame) -> pd.DataFrame:
    """Put their checks in the place of ours about the same, and judge every claim that they touch again."""
    found = []
    for claim, old in ours.groupby("claim", sort=False):
        new = theirs[theirs["claim"] == claim]
        new = new[new["mean"].notna()]  # What one folder lacks, others have.
        new = new.assign(about=[named_as(old, about) for about in new["about"]])
        kept = old[~old["about"].map(parts).isin(new["about"].map(parts))]
        found.append(judged(pd.concat([kept, new])) if len(new) else old)
    found += [judged(new) for claim, new in theirs.groupby("claim") if claim not in set(ours["claim"])]
    return pd.concat(found).sort_values("claim", kind="stable")


def judged(checks: pd.DataFrame) -> pd.DataFrame:
    """Judge the checks of one claim, with Holm's correction over all of them."""
    known = checks["p"].notna()
    checks.loc[known, "p_holm"] = holm([*checks.loc[known, "p"]])
    above, below = checks["above"].fillna(-math.inf), checks["below"].fillna(math.inf)
    within = (above < checks["mean"]) & (checks["mean"] < below)
    sure = within.map({True: "supported", False: "contradicted"})
    verdict = sure.where(checks["p_holm"] < LEVEL, "undecided")
    return checks.assign(verdict=verdict.where(checks["mean"].notna(), "not tested"))


def main() -> None:
    """Write the page."""
    checks = pd.read_csv(CHECKS)
    if sys.argv[1:]:
        theirs = pd.read_csv(Path(sys.argv[1]) / "tables" / "checks.csv")
        checks = merged(checks, theirs[theirs["claim"].isin(sys.argv[2:] or theirs["claim"])])
        checks.to_csv(CHECKS, index=False)
    order = get_args(Verdict)
    verdicts = {
        claim.id: min(checks[checks["claim"] == claim.id]["verdict"], key=order.index)
        for claim in CLAIMS
        if claim.id in set(checks["claim"])
    }
    found = [" ".join(key for key, verdict in verdicts.items() if verdict == one) for one in order]
    lines = [HEAD, f"| {' | '.join(order)} |", "|---" * len(order) + "|", f"| {' | '.join(found)} |"]
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
