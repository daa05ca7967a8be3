"""Compare mixing with the same training without it: `python docs/results/x_mixup/mixing.py [RUNS]`.

With the folder of the runs, mixing/scores.csv and mixing/link-attention.csv are written from their records
first; mixing/effects.csv follows from the scores. Differences are paired by seed, with a 95 % t interval,
p, p after Holm's correction over the column, and the difference that four of five such studies would see.
"""

import sys
from pathlib import Path

import pandas as pd

from isogloss.metrics.estimates import crossed_estimate
from isogloss.metrics.significance import holm, power_of
from isogloss.reports.measurements import Measurements, read_measurements

HERE = Path(__file__).parent / "mixing"
WITHOUT = "without mixing"
ADJUSTED = ", adjusted encoder"
BOTH = "mean"
"""In place of a target: the mean over both, seed by seed."""

AGAINST = {"from source-only": "from source-only, without mixing"}
"""System to compare with, unless it is the training without mixing on the same encoder."""


def scores(made_measurements: Measurements) -> pd.DataFrame:
    """Return the test accuracy of each model in its target and in the source, in percent."""
    labels = {key: label for label, ids in made_measurements.methods.items() for key in ids}
    rows = made_measurements.frame("scores")
    rows = rows[rows["main"].eq(True)]
    tables = []
    for target in ("qad", "qab"):
        target_row = rows[(rows["target"] == target) | (rows["method"] == "source-only")]
        target_row = target_row[target_row["language"].isin(["qaa", target])]
        side = target_row["language"].map({"qaa": "source", target: "target"})
        name = side + target_row["inputs"].map({"": "", "paired": ", paired"})
        encoder = target_row["encoder.adjusted"].map(lambda name: ADJUSTED if name else "")
        table = target_row.assign(about=name, system=target_row["model"].map(labels) + encoder, to=target)
        tables.append(table.pivot_table(index=["to", "system", "seed"], columns="about", values="score"))
    return (100 * pd.concat(tables)).dropna(subset="target").round(4).reset_index()


def link_attention(made_measurements: Measurements) -> pd.DataFrame:
    """Return the links that attention and cosine find in each layer of each encoder and model, in percent."""
    labels = {key: label for label, ids in made_measurements.methods.items() for key in ids}
    rows = made_measurements.frame("link-attention")
    kind = rows["model"].map(labels).fillna("the encoder")
    kind += rows["encoder.adjusted"].map(lambda name: ADJUSTED if name else "")
    shares = {column: (100 * rows[column]).round(1) for column in ("mass", "hits", "chance")}
    rows = rows.assign(model=kind, trained_to=rows["target"], **shares)
    return rows[["model", "trained_to", "seed", "second", "look", "layer", "subwords", *shares]]


def answers(table: pd.DataFrame) -> pd.DataFrame:
    """Add a system's answers in the target, X-Mixup's with translations, and means over both targets."""
    table = table.assign(answer=table["target, paired"].fillna(table["target"]))
    mean = table.groupby(["system", "seed"])[["answer", "target", "source"]].agg(["mean", "count"])
    means = mean[mean[("answer", "count")] == 2].xs("mean", axis=1, level=1)
    return pd.concat([table, means.reset_index().assign(to=BOTH)])


def smallest_seen(std: float, seeds: int) -> float:
    """Return the difference that a paired t-test over seeds sees in four of five studies."""
    low = 0.0
    high = 100 * std + 1e-9
    while high - low > 1e-4:
        middle_ratio = (low + high) / 2
        low, high = (middle_ratio, high) if power_of(middle_ratio, std, seeds) < 0.8 else (low, middle_ratio)
    return high


def effects(table: pd.DataFrame) -> pd.DataFrame:
    """Return for each target and system its difference from the system it is compared with.

    Differences of its answers, of the target without translations ("alone_"), and of the source ("source_").
    """
    table_rows = []
    for target, target_group in answers(table).groupby("to", sort=False):
        tables = {
            system: rows.set_index("seed") for system, rows in target_group.groupby("system", sort=False)
        }
        for system, rows in tables.items():
            plain_part, adjusted_part, _ = system.partition(ADJUSTED)
            against = AGAINST.get(plain_part, WITHOUT) + adjusted_part
            row = {"target": target, "system": system, "against": against, "seeds": len(rows)}
            row |= {
                "score": rows["answer"].mean(),
                "std": rows["answer"].std(),
                "source": rows["source"].mean(),
            }
            if against in tables and system != against:
                for name, column in (("", "answer"), ("alone_", "target"), ("source_", "source")):
                    row |= difference((rows[column] - tables[against][column]).dropna(), name)
            table_rows.append(row)
    table = pd.DataFrame(table_rows)
    for name in ("", "alone_", "source_"):
        table.insert(table.columns.get_loc(f"{name}p") + 1, f"{name}p_holm", holm(list(table[f"{name}p"])))
    return table.round(4)


def difference(differences: pd.Series, name: str) -> dict[str, float]:
    """Return the mean of paired differences, its interval, p, and the smallest difference seen."""
    gain = crossed_estimate(list(differences))
    numbers = {"difference": gain.mean, "low": gain.low, "high": gain.high, "p": gain.p_value()}
    numbers["seen"] = smallest_seen(differences.std(), len(differences))
    return {f"{name}{key}": value for key, value in numbers.items()}


if __name__ == "__main__":
    if sys.argv[1:]:
        measurements = read_measurements(Path(sys.argv[1]))
        scores(measurements).to_csv(HERE / "scores.csv", index=False)
        link_attention(measurements).to_csv(HERE / "link-attention.csv", index=False)
    effects(pd.read_csv(HERE / "scores.csv")).to_csv(HERE / "effects.csv", index=False)
