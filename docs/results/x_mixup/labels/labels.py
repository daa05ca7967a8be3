"""Compare label sources and mixing inputs: `python docs/results/x_mixup/labels/labels.py [RUNS]`.

With the folder of the runs, scores.csv is written from their records first. The table is computed from it
and, where systems are the same, from ../mixing/scores.csv. Differences are paired by seed, with a 95 % t
interval and an uncorrected p.
"""

import sys
from pathlib import Path

import pandas as pd
from scipy.stats import t, ttest_1samp

HERE = Path(__file__).parent
EARLIER = {
    "without mixing": "teacher 0.8 none",
    "x-mixup": "teacher 0.8 attention learned",
    "by cosine": "teacher 0.8 cosine learned",
    "by links": "teacher 0.8 links learned",
    "by links, constant .5": "teacher 0.8 links",
    "translate-train": "teacher",
    "source-only": "source-only",
}
"""Systems of ../mixing that occur in this study, with their names here."""


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
    """Return percent [system, seed], filled with the earlier study's scores, and print the difference."""
    rows = pd.read_csv(HERE / "scores.csv")
    table = rows[rows["language"] == language].pivot_table(index="system", columns="seed", values="score")
    earlier = pd.read_csv(HERE.parent / "mixing" / "scores.csv")
    earlier = earlier[(earlier["to"] == "qad") & earlier["system"].isin([*EARLIER])]
    side = "target" if language == "qad" else "source"
    answer = earlier[f"{side}, paired"].fillna(earlier[side])
    earlier = earlier.assign(system=earlier["system"].map(EARLIER), score=answer)
    earlier_scores = earlier.pivot_table(index="system", columns="seed", values="score")
    apart = (table - earlier_scores).abs().max().max()
    print(f"{language}: the largest difference from the earlier study is {apart:.4f}")
    return table.combine_first(earlier_scores)


def line(table: pd.DataFrame, system: str, against: str) -> str:
    """Return a system's mean and its difference from another, by the seeds of both."""
    row = table.loc[system].dropna()
    text = f"{system}: {row.mean():.1f} (n = {len(row)})"
    apart = (table.loc[system] - table.loc[against]).dropna() if against in table.index else row[:0]
    if system == against or len(apart) < 2:
        return text
    half = t.ppf(0.975, len(apart) - 1) * apart.sem()
    low, high, p = apart.mean() - half, apart.mean() + half, ttest_1samp(apart, 0).pvalue
    return f"{text}, − {against}: {apart.mean():+.1f} [{low:.1f}, {high:.1f}], p = {p:.2g}, n = {len(apart)}"


def without_mixing(system: str) -> str:
    """Return the same training without mixing, or source-only for training only on translations."""
    labels, _, rest = system.partition(" ")
    return f"{labels} {rest.split(' ')[0]} none" if rest not in ("", "twice") else "source-only"


def main() -> None:
    """Print each system against the same training without mixing, translate-train, and other labels."""
    for language in ("qad", "qaa"):
        table = scores(language)
        for system in table.index:
            print(line(table, system, without_mixing(system)))
            for plain in (system.split(" ")[0], f"{system.split(' ')[0]} twice"):
                if " " in system and plain != system and plain in table.index:
                    print("   ", line(table, system, plain))
        for system in table.index[table.index.str.startswith("projected")]:
            if (other := system.replace("projected", "teacher")) in table.index:
                print("   ", line(table, system, other))


if __name__ == "__main__":
    if sys.argv[1:]:
        write(Path(sys.argv[1]))
    main()
