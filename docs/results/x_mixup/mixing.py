"""Effects of mixing on the same training without it: `python docs/results/x_mixup/mixing.py [RUNS]`.

With the folder of the runs, mixing/scores.csv and mixing/link-attention.csv are written from their records
first. mixing/effects.csv is computed from the scores. Differences are paired by seed, with a 95 % t interval
and the difference that four of five such studies would detect.
"""

import sys
from pathlib import Path

import pandas as pd
from scipy.special import stdtr, stdtrit

from isogloss.metrics.significance import power_of
from isogloss.reports.measurements import Measurements, read_measurements

HERE = Path(__file__).parent / "mixing"
WITHOUT = "without mixing"
ADJUSTED = ", adjusted encoder"
BOTH = "mean"
"""In place of a target: the mean over both, seed by seed."""

AGAINST = {"from source-only": "from source-only, without mixing"}
"""Baselines of systems, if not the training without mixing on the same encoder."""


def scores(m: Measurements) -> pd.DataFrame:
    """Return the test accuracy of each model in its target and in the source, in percent."""
    labels = {key: label for label, ids in m.methods.items() for key in ids}
    rows = m.frame("scores")
    rows = rows[rows["main"].eq(True)]
    tables = []
    for target in ("qad", "qab"):
        to_target = rows[(rows["target"] == target) | (rows["method"] == "source-only")]
        to_target = to_target[to_target["language"].isin(["qaa", target])]
        side = to_target["language"].map({"qaa": "source", target: "target"})
        name = side + to_target["inputs"].map({"": "", "paired": ", paired"})
        encoder = to_target["encoder.adjusted"].map(lambda name: ADJUSTED if name else "")
        system_rows = to_target.assign(about=name, system=to_target["model"].map(labels) + encoder, to=target)
        tables.append(
            system_rows.pivot_table(index=["to", "system", "seed"], columns="about", values="score")
        )
    return (100 * pd.concat(tables)).dropna(subset="target").round(4).reset_index()


def link_attention(m: Measurements) -> pd.DataFrame:
    """Return attention and cosine of links in each layer of each measured encoder and model, in percent."""
    labels = {key: label for label, ids in m.methods.items() for key in ids}
    rows = m.frame("link-attention")
    what = rows["model"].map(labels).fillna("the encoder")
    what += rows["encoder.adjusted"].map(lambda name: ADJUSTED if name else "")
    shares = {column: (100 * rows[column]).round(1) for column in ("mass", "hits", "chance")}
    rows = rows.assign(model=what, trained_to=rows["target"], **shares)
    return rows[["model", "trained_to", "seed", "second", "look", "layer", "subwords", *shares]]


def answers(table: pd.DataFrame) -> pd.DataFrame:
    """Add what a system answers in the target, X-Mixup beside translations, and means over both targets."""
    table = table.assign(answer=table["target, paired"].fillna(table["target"]))
    mean = table.groupby(["system", "seed"])[["answer", "target", "source"]].agg(["mean", "count"])
    means = mean[mean[("answer", "count")] == 2].xs("mean", axis=1, level=1)
    return pd.concat([table, means.reset_index().assign(to=BOTH)])


def smallest_seen(std: float, seeds: int) -> float:
    """Return the difference that a paired t-test over seeds sees in four of five studies."""
    low, high = 0.0, 100 * std + 1e-9
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (middle, high) if power_of(middle, std, seeds) < 0.8 else (low, middle)
    return high


def effects(table: pd.DataFrame) -> pd.DataFrame:
    """Return, for each target and system, its difference from its baseline.

    Differences are of its answers, of the answers without translations ("alone_"), and of the source's
    ("source_").
    """
    table_rows = []
    for target, of_target in answers(table).groupby("to", sort=False):
        by = {system: rows.set_index("seed") for system, rows in of_target.groupby("system", sort=False)}
        for system, rows in by.items():
            plain, adjustment, _ = system.partition(ADJUSTED)
            against = AGAINST.get(plain, WITHOUT) + adjustment
            row = {"target": target, "system": system, "against": against, "seeds": len(rows)}
            row |= {
                "score": rows["answer"].mean(),
                "std": rows["answer"].std(),
                "source": rows["source"].mean(),
            }
            if against in by and system != against:
                for name, column in (("", "answer"), ("alone_", "target"), ("source_", "source")):
                    row |= difference((rows[column] - by[against][column]).dropna(), name)
            table_rows.append(row)
    return pd.DataFrame(table_rows).round(4)


def difference(differences: pd.Series, name: str) -> dict[str, float]:
    """Return the mean of paired differences, its interval, p, and the smallest difference seen."""
    count, error = len(differences), differences.std() / len(differences) ** 0.5
    half = float(stdtrit(count - 1, 0.975)) * error
    p = 2 * float(stdtr(count - 1, -abs(differences.mean() / error)))
    numbers = {
        "difference": differences.mean(),
        "low": differences.mean() - half,
        "high": differences.mean() + half,
        "p": p,
    }
    return {
        f"{name}{key}": value
        for key, value in (numbers | {"seen": smallest_seen(differences.std(), count)}).items()
    }


if __name__ == "__main__":
    if sys.argv[1:]:
        measured = read_measurements(Path(sys.argv[1]))
        scores(measured).to_csv(HERE / "scores.csv", index=False)
        link_attention(measured).to_csv(HERE / "link-attention.csv", index=False)
    effects(pd.read_csv(HERE / "scores.csv")).to_csv(HERE / "effects.csv", index=False)
