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
isogloss run --out runs/claims papers/under-specified/claims papers/x-mixup/claims-pos \\
    papers/adjustment/claims-ner papers/adjustment/claims-qa docs/results/claims/nli.toml \\
    docs/results/claims/interference.toml papers/interference/table-4
```

Every check of the claims of all four papers, at built-in scale. It is the command of
[papers](../../papers.md#all-claims-from-one-command) but for these: X-Mixup in NLI has four seeds of
eight, and the systems that 2i and 2k compare ([nli_claims.toml](../x_mixup/nli_claims.toml)), the
adjustment's NLI three seeds ([nli.toml](nli.toml)), interference four seeds of six
([interference.toml](interference.toml)), a third language one. X-Mixup in NLI, and in the adjustment's
NLI fewer translations and [CLS] alone (3b and 3i), were made later in folders of their own, with Holm's
correction over all checks of a claim. Written by `python docs/results/claims/table.py` from
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
        seen = row["verdict"] == "undecided" and pd.notna(row["smallest_seen"])
        cells[6] = number(row["smallest_seen"]) if seen else ""
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Write the page."""
    if sys.argv[1:]:
        shutil.copyfile(Path(sys.argv[1]) / "tables" / "checks.csv", CHECKS)
    checks = pd.read_csv(CHECKS)
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
