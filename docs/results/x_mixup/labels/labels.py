"""Whose labels, and what mixes: `python docs/results/x_mixup/labels/labels.py [RUNS]`.

With the folder of the runs scores.csv is written from their records first. The table is made of it and, where
systems are the same, of ../mixing/scores.csv. Differences are paired by seed, with a 95 % t interval, p, and
p after Holm's correction over all comparisons of a language with the same training without mixing.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from isogloss.metrics.estimates import Estimate, crossed_estimate
from isogloss.metrics.significance import holm

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
    earlier_scores = earlier.pivot_table(index="system", columns="seed", values="score")
    apart = (table - earlier_scores).abs().max().max()
    print(f"{language}: the largest difference from the earlier study is {apart:.4f}")
    return table.combine_first(earlier_scores)


def line(table: pd.DataFrame, system: str, against: str, corrected: Mapping[str, float]) -> str:
    """Return a system's mean and its difference from another, by the seeds of both.

    ``corrected`` has the p of systems that are compared with the same training without mixing.
    """
    row = table.loc[system].dropna()
    text = f"{system}: {row.mean():.1f} (n = {len(row)})"
    gain = difference(table, system, against)
    if gain is None:
        return text
    p = f"p = {gain.p_value():.2g}"
    if against == without_mixing(system) and system in corrected:
        p += f" (Holm {corrected[system]:.2g} of {len(corrected)})"
    interval = f"{gain.mean:+.1f} [{gain.low:.1f}, {gain.high:.1f}]"
    return f"{text}, − {against}: {interval}, {p}, n = {gain.units}"


def difference(table: pd.DataFrame, system: str, against: str) -> Estimate | None:
    """Return the difference of two systems by the seeds of both; None for fewer than two."""
    if system == against or against not in table.index:
        return None
    apart = (table.loc[system] - table.loc[against]).dropna()
    return crossed_estimate([*apart]) if len(apart) > 1 else None


def corrected_p_values(table: pd.DataFrame) -> dict[str, float]:
    """Return the p of each system minus the same training without mixing, after Holm's correction."""
    baselines = {system: without_mixing(system) for system in table.index}
    gains = {system: difference(table, system, of) for system, of in baselines.items() if of != "source-only"}
    p_values = {system: gain.p_value() for system, gain in gains.items() if gain}
    return dict(zip(p_values, holm([*p_values.values()]), strict=True))


def without_mixing(system: str) -> str:
    """Return the same training without mixing; of training on translations alone source-only."""
    labels, _, rest = system.partition(" ")
    return f"{labels} {rest.split(' ')[0]} none" if rest not in ("", "twice") else "source-only"


def main() -> None:
    """Print each system against the same training without mixing, translate-train, and other labels."""
    for language in ("qad", "qaa"):
        table = scores(language)
        corrected = corrected_p_values(table)
        for system in table.index:
            print(line(table, system, without_mixing(system), corrected))
            for plain in (system.split(" ")[0], f"{system.split(' ')[0]} twice"):
                if " " in system and plain != system and plain in table.index:
                    print("   ", line(table, system, plain, corrected))
        for system in table.index[table.index.str.startswith("projected")]:
            if (other := system.replace("projected", "teacher")) in table.index:
                print("   ", line(table, system, other, corrected))


if __name__ == "__main__":
    if sys.argv[1:]:
        write(Path(sys.argv[1]))
    main()
