"""Own adapters by pair, steps and rival: `python docs/results/interference/own_adapters/others.py [RUNS]`.

With the folder of the runs of others.toml, others.csv is written from their records first. The table is
computed from it, from the scores of ../built-in (1,400 steps) and ../twice (2,800), and from arms.csv. The
unit is the pretraining seed. On a different kind of CPU a seed is a different draw: embeddings are compared
with the own adapters of arms.csv ("adapter again"), trained on the same kinds of CPU, all others with the
adapters of their study. Differences are paired by seed, with a 95 % t interval and an uncorrected p.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from scipy.stats import t, ttest_1samp

HERE = Path(__file__).parent
PAIRS = {"qaa+qad": "far", "qaa+qab": "near"}
EARLIER = {
    ("built-in", "joint"): ("far", "joint", 1400),
    ("built-in", "adapter"): ("far", "adapter", 1400),
    ("twice", "joint, twice"): ("far", "joint", 2800),
    ("twice", "adapter, twice"): ("far", "adapter", 2800),
}
"""Encoders of earlier studies, and what they are called here."""

AGAIN = "adapter again"
"""The own adapters of arms.csv: far ones of seeds 3 to 5 and near ones are of the second kind of core."""

KEYS = ["pair", "modules", "steps", "language", "seed"]


def write(runs: Path) -> None:
    """Write the scores of source-only models by pair, modules and steps, from the records of runs."""
    from isogloss.reports.measurements import read_measurements

    rows = read_measurements(runs).frame("scores")
    rows = rows[rows["main"].eq(True) & (rows["method"] == "source-only")]
    rows = rows.assign(
        pair=rows["encoder.languages"].map(PAIRS),
        modules=rows["encoder.modules"].replace("", "joint"),
        steps=rows["encoder.method.steps"].astype(int),
        seed=rows["encoder.seed"].astype(int),
        score=rows["score"].round(6),
    )
    rows[[*KEYS, "score"]].drop_duplicates(KEYS).sort_values(KEYS).to_csv(HERE / "others.csv", index=False)


def scores() -> pd.DataFrame:
    """Return percent [pair modules steps language, seed], earlier studies included."""
    tables = [pd.read_csv(HERE / "others.csv")]
    for (study, encoder), system in EARLIER.items():
        rows = pd.read_csv(HERE.parent / study / "rows-scores.csv")
        rows = rows[(rows["encoder"] == encoder) & (rows["task"] == "upos") & (rows["method"] == "qaa-qad")]
        tables.append(rows.assign(**dict(zip(KEYS[:3], system, strict=True)))[[*KEYS, "score"]])
    arms = pd.read_csv(HERE / "arms.csv").rename(columns={"encoder.seed": "seed"})
    arms = arms[(arms["task"] == "upos") & (arms["arm"] == "own adapters") & (arms["change"] == "none")]
    tables.append(arms.assign(modules=AGAIN, steps=2800)[[*KEYS, "score"]])
    rows = pd.concat(tables)
    apart = rows.groupby(KEYS)["score"].agg(lambda group: group.max() - group.min()).max()
    print(f"encoders made again: their scores differ by {apart:.6f} at most")
    return 100 * rows.drop_duplicates(KEYS).pivot_table(index=KEYS[:-1], columns="seed", values="score")


def lines() -> Iterator[str]:
    """Yield a line for each system and language, with what own adapters are above it at equal steps."""
    table = scores()
    for (pair, modules, steps, language), row in table.iterrows():
        text = f"{pair} {steps} {language}: {modules}: {row.mean():.1f} ± {row.std():.1f} (n = {row.count()})"
        adapters = (pair, AGAIN if modules == "embedding" else "adapter", steps, language)
        apart = (table.loc[adapters] - row).dropna() if adapters in table.index else row[:0]
        if modules not in ("adapter", AGAIN) and len(apart) > 1:
            half = t.ppf(0.975, len(apart) - 1) * apart.sem()
            low, high, p = apart.mean() - half, apart.mean() + half, ttest_1samp(apart, 0).pvalue
            text += (
                f"; own adapters {apart.mean():+.1f} [{low:.1f}, {high:.1f}], p = {p:.2g} (n = {len(apart)})"
            )
        yield text


if __name__ == "__main__":
    if sys.argv[1:]:
        write(Path(sys.argv[1]))
    print("\n".join(lines()))
