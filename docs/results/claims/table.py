"""Write README.md from the checks of claims: `python docs/results/claims/table.py [RUNS]`.

With RUNS, a folder of runs with its report, checks.csv is copied from it first.
"""

import math
import shutil
import sys
from pathlib import Path
from typing import get_args

import pandas as pd

from isogloss.reports.report import CLAIMS
from isogloss.reports.verdicts import PAPERS, Verdict, p_text

HERE = Path(__file__).parent
CHECKS = HERE / "checks.csv"

HEAD = """# Checks of claims

```
isogloss run --out runs/claims papers/x-mixup/claims-pos papers/adjustment/claims-ner \\
    docs/results/claims/nli.toml
```

Every check of the claims of papers 2 and 3 that was made so far of the command in
[papers](../../papers.md#all-claims-from-one-command): X-Mixup in part of speech (eight seeds), adjustment in
named entities (five seeds, each with an adjusted encoder of its own) and, of claims-nli, the adjustment with
most translations and continual learning ([three](nli.toml)). Paper 1's are in
[under_specified](../under_specified/README.md), paper 4's, of an earlier study, in
[interference](../interference/README.md). Written by `python docs/results/claims/table.py` from
[checks.csv](checks.csv), which the report makes.

A check is a number with its 95 % interval and the range that the claim gives it. p is of the bound that
decides, after Holm's correction over the claim's checks. A claim is **supported** where all its checks are,
**contradicted** where one is; what chance can explain is *undecided*
([why](../../decisions/0011-four-verdicts.md)), and then the last column has the smallest effect that four of
five such studies would have seen. Differences of scores are in points.
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
        cells[6] = number(row["smallest_seen"]) if row["verdict"] == "undecided" else ""
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Write the page."""
    if sys.argv[1:]:
        shutil.copyfile(Path(sys.argv[1]) / "tables" / "checks.csv", CHECKS)
    checks = pd.read_csv(CHECKS)
    order = get_args(Verdict)
    lines = [HEAD]
    for paper, title in PAPERS.items():
        judged = [one for one in CLAIMS if one.paper == paper and one.id in set(checks["claim"])]
        lines += [f"\n## {title}\n"] if judged else []
        for claim in judged:
            own = checks[checks["claim"] == claim.id]
            verdict = min(own["verdict"], key=order.index)
            lines += [f"\n**{claim.id} {verdict}**: {claim.says} ({claim.where})\n"]
            if len(own):
                lines += [
                    "| check | found | claimed | p | n | | would have seen |",
                    "|---|---|---|---|---|---|---|",
                ]
                lines += [line(row) for _, row in own.iterrows()]
    (HERE / "README.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
