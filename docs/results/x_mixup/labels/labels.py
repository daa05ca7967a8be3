"""Compare labels and mixing of X-Mixup: `python docs/results/x_mixup/labels/labels.py [RUNS]`.

With the folder of the runs scores.csv is written from their records first. The table comes from it and, where
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
"""Systems of ../mixing that are also systems of this study, and their names here."""


def write(runs: Path) -> None:
    """Write what each model scores in the target, with its translation where it was trained mixed."""
    from isogloss.reports.measurements import read_measurements

    measurements = read_measurements(runs)
    labels = {key: label for label, ids in measurements.methods.items() for key in ids}
    rows = measurements.frame("scores")
    rows = rows[rows["main"].eq(True) & rows["language"].isin(["qaa", "qad"])]
    rows = rows.assign(system=rows["model"].map(labels), score=(100 * rows["score"]).round(4))
    rows = rows[(rows["method"] != "x-mixup") | (rows["inputs"] == "paired")]
    keys = ["system", "seed", "language"]
    rows[[*keys, "score"]].sort_values(keys).to_csv(HERE / "scores.csv", index=False)


def scores(language: str) -> pd.DataFrame:
    """Return percent [system, seed]. The earlier study must have the same percent for the same seed."""
    rows = pd.read_csv(HERE / "scores.csv")
    table = rows[rows["language"] == language].pivot_table(index="system", columns="seed", values="score")
    earlier = pd.read_csv(HERE.parent / "mixing" / "scores.csv")
    earlier = earlier[(earlier["to"] == "qad") & earlier["system"].isin(list(EARLIER))]
    side = "target" if language == "qad" else "source"
    answer = earlier[f"{side}, paired"].fillna(earlier[side])
    earlier = earlier.assign(system=earlier["system"].map(EARLIER), score=answer)
    earlier_scores = earlier.pivot_table(index="system", columns="seed", values="score")
    distance = (table - earlier_scores).abs().max().max()
    print(f"{language}: the largest difference from the earlier study is {distance:.4f}")
    return table.combine_first(earlier_scores)


def line(table: pd.DataFrame, system: str, against: str, corrected_value: Mapping[str, float]) -> str:
    """Return a system's mean and its difference from a second system, by the seeds of both.

    ``corrected`` has the p of systems that are compared with the same training without mixing.
    """
    row = table.loc[system].dropna()
    text = f"{system}: {row.mean():.1f} (n = {len(row)})"
    gain = difference(table, system, against)
    if gain is None:
        return text
    p = f"p = {gain.p_value():.2g}"
    if against == without_mixing(system) and system in corrected_value:
        p += f" (Holm {corrected_value[system]:.2g} of {len(corrected_value)})"
    interval = f"{gain.mean:+.1f} [{gain.low:.1f}, {gain.high:.1f}]"
    return f"{text}, − {against}: {interval}, {p}, n = {gain.units}"


def difference(table: pd.DataFrame, system: str, against: str) -> Estimate | None:
    """Return the difference of two systems by the seeds of both. None for fewer than two."""
    if system == against or against not in table.index:
        return None
    distance = (table.loc[system] - table.loc[against]).dropna()
    return crossed_estimate(list(distance)) if len(distance) > 1 else None


def corrected_p_values(table: pd.DataFrame) -> dict[str, float]:
    """Return the p of each system minus the same training without mixing, after Holm's correction."""
    baselines = {system: without_mixing(system) for system in table.index}
    gains = {
        system: difference(table, system, baseline)
        for system, baseline in baselines.items()
        if baseline != "source-only"
    }
    p_values = {system: gain.p_value() for system, gain in gains.items() if gain}
    return dict(zip(p_values, holm(list(p_values.values())), strict=True))


def without_mixing(system: str) -> str:
    """Return the same training without mixing. For training only on translations this is source-only."""
    labels, _, remaining_parts = system.partition(" ")
    return (
        f"{labels} {remaining_parts.split(' ')[0]} none"
        if remaining_parts not in ("", "twice")
        else "source-only"
    )


def main() -> None:
    """Print each system against the same training without mixing, translate-train, and other labels."""
    for language in ("qad", "qaa"):
        table = scores(language)
        corrected_value = corrected_p_values(table)
        for system in table.index:
            print(line(table, system, without_mixing(system), corrected_value))
            for plain_part in (system.split(" ")[0], f"{system.split(' ')[0]} twice"):
                if " " in system and plain_part != system and plain_part in table.index:
                    print("   ", line(table, system, plain_part, corrected_value))
        for system in table.index[table.index.str.startswith("projected")]:
            if (other_text := system.replace("projected", "teacher")) in table.index:
                print("   ", line(table, system, other_text, corrected_value))


if __name__ == "__main__":
    if sys.argv[1:]:
        write(Path(sys.argv[1]))
    main()
