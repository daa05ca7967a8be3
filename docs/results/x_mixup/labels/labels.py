"""Whose labels, and what mixes: `python docs/results/x_mixup/labels/labels.py [RUNS]`.

With the folder of the runs scores.csv is written from their records first. The table is made of it and, where
systems are the same, of ../mixing/scores.csv. Differences are paired by seed, with a 95 % t interval, p not
corrected.
"""

import sys
from pathlib import Path

import pandas as pd
from scipy.stats import t, ttest_1samp

HERE = Path(__file__).parent
EARLIER = {
    "without mixing": "teacher 0.8 none",
    "by links, constant .5": "teacher 0.8 links",
    "translate-train": "teacher",
    "source-only": "source-only",
}
"""Systems of ../mixing that are those of this study, and what they are called here."""


def write(runs: Path) -> None:
    """Write what each model scores in the target, beside its translation where it was trained mixed."""
    from isogloss.reports.measurements import read_measurements

    m = read_measurements(runs)
    labels = {key: label for label, ids in m.methods.items() for key in ids}
    rows = m.frame("scores")
    rows = rows[rows["main"].eq(True) & rows["language"].isin(["qaa", "qad"])]
    rows = rows.assign(system=rows["model"].map(labels), score=(100 * rows["score"]).round(4))
    rows = rows[(rows["method"] != "x-mixup") | (rows["inputs"] == "paired")]
    keys = ["system", "seed", "language"]
    rows[[*keys, "score"]].sort_values(keys).to_csv(HERE / "scores.csv", index=False)


def scores(language: str) -> pd.DataFrame:
    """Return percent [system, seed]; the earlier study's must be equal where both have a seed."""
    rows = pd.read_csv(HERE / "scores.csv")
    table = rows[rows["language"] == language].pivot_table(index="system", columns="seed", values="score")
    earlier = pd.read_csv(HERE.parent / "mixing" / "scores.csv")
    earlier = earlier[(earlier["to"] == "qad") & earlier["system"].isin([*EARLIER])]
    side = "target" if language == "qad" else "source"
    answer = earlier[f"{side}, paired"].fillna(earlier[side])
    earlier = earlier.assign(system=earlier["system"].map(EARLIER), score=answer)
    before = earlier.pivot_table(index="system", columns="seed", values="score")
    apart = (table - before).abs().max().max()
    print(f"{language}: the largest difference from the earlier study is {apart:.4f}")
    return table.combine_first(before)


def line(table: pd.DataFrame, system: str, against: str) -> str:
    """Return a system's mean and its difference from another, by the seeds of both."""
    row, apart = table.loc[system].dropna(), (table.loc[system] - table.loc[against]).dropna()
    text = f"{system}: {row.mean():.1f} (n = {len(row)})"
    if system == against or len(apart) < 2:
        return text
    half = t.ppf(0.975, len(apart) - 1) * apart.sem()
    low, high, p = apart.mean() - half, apart.mean() + half, ttest_1samp(apart, 0).pvalue
    return f"{text}, − {against}: {apart.mean():+.1f} [{low:.1f}, {high:.1f}], p = {p:.2g}, n = {len(apart)}"


def main() -> None:
    """Print each system against the same training without mixing, and plain training by its labels."""
    for language in ("qad", "qaa"):
        table = scores(language)
        for system in table.index:
            labels, _, rest = system.partition(" ")
            without = f"{labels} {rest.split(' ')[0]} none" if rest else "source-only"
            print(line(table, system, without))
            if rest.endswith("none"):
                print("   ", line(table, system, labels))
        for system in ("projected", "projected 0.8 none", "projected 0.2 none"):
            print("   ", line(table, system, system.replace("projected", "teacher")))


if __name__ == "__main__":
    if sys.argv[1:]:
        write(Path(sys.argv[1]))
    main()
