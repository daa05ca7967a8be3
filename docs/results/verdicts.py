"""Write verdicts.md from the checks of the four papers' claims: `python docs/results/verdicts.py [RUNS]`.

With RUNS, the folder of the command in docs/papers.md, claims/checks.csv is copied from its report first.
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
CHECKS = HERE / "claims" / "checks.csv"

HEAD = """# Verdicts

Every check of every claim of the four papers, on the built-in languages: made by the command in
[papers](../papers.md#all-claims-from-one-command), judged by its report, written by
`python docs/results/verdicts.py` from [checks.csv](claims/checks.csv).

A check is a number with its 95 % interval and the range that the claim gives it. p is of the bound that
decides, after Holm's correction over the claim's checks. A claim is **supported** where all its checks are,
**contradicted** where one is; what chance can explain is *undecided*
([why](../decisions/0011-four-verdicts.md)), and then the last column has the smallest effect that four of
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
        cells[1:5] = [f"{number(row['mean'])} [{low}, {high}]", bounds(row), p_text(row["p_holm"])]
        cells[4] = f"{row['units']:.0f} {row['unit']}s"
        cells[6] = number(row["smallest_seen"]) if row["verdict"] == "undecided" else ""
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Write the page."""
    if sys.argv[1:]:
        CHECKS.parent.mkdir(exist_ok=True)
        shutil.copyfile(Path(sys.argv[1]) / "tables" / "checks.csv", CHECKS)
    checks = pd.read_csv(CHECKS)
    order = get_args(Verdict)
    lines = [HEAD]
    for paper, title in PAPERS.items():
        lines += [f"\n## {title}\n"]
        for claim in (one for one in CLAIMS if one.paper == paper):
            own = checks[checks["claim"] == claim.id]
            verdict = min(own["verdict"], key=order.index) if len(own) else "not tested"
            lines += [f"\n**{claim.id} {verdict}**: {claim.says} ({claim.where})\n"]
            if len(own):
                lines += [
                    "| check | found | claimed | p | n | | would have seen |",
                    "|---|---|---|---|---|---|---|",
                ]
                lines += [line(row) for _, row in own.iterrows()]
    (HERE / "verdicts.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
