"""Write the page of the court from its tables: `python benchmarks/court_page.py`.

Reads `court-before.csv` and `court.csv` in `benchmarks/results`, and their powers; writes `court.md` there.
"""

from pathlib import Path

import pandas as pd

RESULTS = Path(__file__).parent / "results"
BOTH = ("-before", "")
CONDITIONS = ["one in five fails, means equal", "skewed, mean at the bound"]
"""Worlds in which what a verdict takes for granted is not so."""
ALLOWED = 0.06
"""Share of draws that may support a claim that is false."""

HEAD = """# Claims before noise

`python benchmarks/court.py` draws the numbers that each claim's rule checks, in worlds where one of its
statements is false and the others
are true by far, and judges them as the rule does: how often is the claim supported? Where a claim has
several statements, the number is that of
the one that noise supports most often. 100 draws, and 500 where 4 % or more support it. Written by
`python benchmarks/court_page.py` from
[court-before.csv](court-before.csv), [court.csv](court.csv) and their powers.

| world | what varies over seeds |
|---|---|
| normal | normal, half of the variance common to all systems of a seed |
| heavy tails | Student's t with three degrees of freedom |
| some runs wild | normal, 15 % of runs six times as wide |
| ties | scores rounded to one example of a hundred |
| one in five fails, else equal | one run in five of our system loses 30 deviations; the others are equal |
| one in five fails, means equal | the others are so much better that the means are equal |
| one in five of both fails | runs of both systems fail |
| skewed | as scores just below 100 %, with the long tail on the side where the claim is false |
| skewed, tail where true | the same with the tail on the other side |
| skewed, mean at the bound | mean just outside of the range, median seed inside (1d 1f 1g 1k 2f 4b) |
| ceiling | equal spread on the logit scale, one side near 100 % (1c, 1h) |
| two families, four families | languages whose families differ in both numbers, and nothing else (2c, 2m) |

Numbers that are no differences of two systems (1d 1f 1g 1k 2f 4b) can be skewed, so these claims are about
the median seed, which then lies at the bound; elsewhere the mean does. Before, these claims were about the
mean, and the skewed numbers had a mean 0.1 standard deviations outside of the range.

**Where runs fail and the means are equal, no test of three or six seeds helps**: in 51 and 26 % of draws
no run has failed, and then there is a
gain. These verdicts read "supported, given no failure in 6 seeds, which excludes a rate of failures above
39 %". Fourteen seeds exclude one in five
(0.8^14 = 0.044). That world has a table of its own, and is about what the verdict takes for granted, not
about the rule. So has the mean at the bound: those verdicts read "of the median seed".

"""


def rates(table: pd.DataFrame, worlds: list[str]) -> list[str]:
    """Return the lines of a table of claims by worlds: percent supported with three and with six seeds."""
    shares = table.pivot_table(index="claim", columns=["world", "seeds"], values="supported", sort=False)
    lines = [f"| claim | {' | '.join(worlds)} |", f"|---|{'---|' * len(worlds)}"]
    for claim, row in shares.iterrows():
        cells = []
        for world in worlds:
            owner = [row.get((world, seeds), float("nan")) for seeds in (3, 6)]
            texts = [f"**{100 * share:.0f}**" if share > ALLOWED else f"{100 * share:.0f}" for share in owner]
            cells.append("–" if pd.isna(owner[0]) else ", ".join(texts))
        if any(cell != "–" for cell in cells):
            lines.append(f"| {claim} | {' | '.join(cells)} |")
    return lines


def powers(former: pd.DataFrame, table_after: pd.DataFrame) -> list[str]:
    """Return the lines of a table of power and of the effect that is seen in 80 % of draws."""
    lines = [
        "| claim | false | true | power, 3 and 6 seeds | before | seen in 80 %, 3 and 6 seeds | before |",
        "|---|---|---|---|---|---|---|",
    ]
    for claim, rows in table_after.groupby("claim", sort=False):
        earlier = former[former["claim"] == claim]
        cells = [", ".join(f"{100 * share:.0f} %" for share in row["power"]) for row in (rows, earlier)]
        detected_effects = [
            ", ".join("–" if pd.isna(value) else f"{value:.3g}" for value in row["detected"])
            for row in (rows, earlier)
        ]
        first_row = rows.iloc[0]
        ends = f"{first_row['false']:g} | {first_row['true']:g}"
        lines.append(
            f"| {claim} | {ends} | {cells[0]} | {cells[1]} | {detected_effects[0]} | {detected_effects[1]} |"
        )
    return lines


def high(table: pd.DataFrame) -> str:
    """Name the claims that are supported too often, by world."""
    wrong = table[(table["supported"] > ALLOWED) & ~table["world"].isin(CONDITIONS)]
    parts = [
        f"{world}: {' '.join(dict.fromkeys(rows['claim']))} (up to {100 * rows['supported'].max():.0f} %)"
        for world, rows in wrong.groupby("world", sort=False)
    ]
    return "; ".join(parts) or "none"


def main() -> None:
    """Write the page."""
    former, table_after = (pd.read_csv(RESULTS / f"court{name}.csv") for name in BOTH)
    worlds = [world for world in dict.fromkeys(table_after["world"]) if world not in CONDITIONS]
    lines = [
        HEAD + "## Supported where false, in percent (three seeds, six seeds)\n",
        f"Above 6 % (bold), before: {high(former)}.\n",
        f"Above 6 %, after: {high(table_after)}.\n",
        *("### After\n", *rates(table_after, worlds), "\n### Before\n", *rates(former, worlds)),
        "\n## Supported where a condition of the verdict is not met, in percent\n",
        'After, these verdicts say "given no failure in 3 (6) seeds", and "of the median seed".\n',
        *("### After\n", *rates(table_after, CONDITIONS), "\n### Before\n", *rates(former, CONDITIONS)),
        "\n## Power\n",
        "How often a claim is supported where all its statements are as true as *true* says (normal seeds, 1",
        "point of standard deviation), and the number of its first statement that 80 % of draws see; –",
        "where none up to eight times as far is. Spreads (1c, 1h) take six seeds.\n",
        *powers(*(pd.read_csv(RESULTS / f"court{name}-power.csv") for name in BOTH)),
    ]
    (RESULTS / "court.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
