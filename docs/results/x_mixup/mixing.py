"""What mixing adds to the same training without it: `python docs/results/x_mixup/mixing.py [RUNS]`.

With the folder of the runs, mixing/scores.csv is written from their records first; mixing/effects.csv is made
of it alone. Differences are paired by seed, with a 95 % t interval and the difference that four of five such
studies would see.
"""

import sys
from pathlib import Path

import pandas as pd
from scipy.special import stdtr, stdtrit

from isogloss.metrics.power import power_of

HERE = Path(__file__).parent / "mixing"
WITHOUT = "without mixing"
AGAINST = {
    "from source-only, without mixing": WITHOUT,
    "from source-only": "from source-only, without mixing",
}
"""What a system is held against, where that is not the training without mixing."""


def scores(runs: str) -> pd.DataFrame:
    """Return the test accuracy of each model in its target and in the source, in percent."""
    import isogloss

    m = isogloss.read(runs).measurements
    labels = {key: label for label, ids in m.methods.items() for key in ids}
    rows = m.frame("scores")
    rows = rows[rows["main"].eq(True)]
    found = []
    for target in ("qad", "qab"):
        own = rows[(rows["target"] == target) | (rows["method"] == "source-only")]
        own = own[own["language"].isin(["qaa", target])]
        side = own["language"].map({"qaa": "source", target: "target"})
        name = side + own["inputs"].map({"": "", "paired": ", paired"})
        about = own.assign(about=name, system=own["model"].map(labels), to=target)
        found.append(about.pivot_table(index=["to", "system", "seed"], columns="about", values="score"))
    return (100 * pd.concat(found)).round(4).reset_index()


def answers(table: pd.DataFrame) -> pd.DataFrame:
    """Add what a system answers in the target: X-Mixup beside translations, the others alone."""
    return table.assign(answer=table["target, paired"].fillna(table["target"]))


def smallest_seen(std: float, seeds: int) -> float:
    """Return the difference that a paired t-test over seeds sees in four of five studies."""
    low, high = 0.0, 100 * std + 1e-9
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (middle, high) if power_of(middle, std, seeds) < 0.8 else (low, middle)
    return high


def effects(table: pd.DataFrame) -> pd.DataFrame:
    """Return for each target and system its difference from the system it is held against."""
    found = []
    for target, own in answers(table).groupby("to", sort=False):
        by = {system: rows.set_index("seed") for system, rows in own.groupby("system", sort=False)}
        for system, rows in by.items():
            against = AGAINST.get(system, WITHOUT)
            row = {"target": target, "system": system, "against": against, "seeds": len(rows)}
            row |= {
                "score": rows["answer"].mean(),
                "std": rows["answer"].std(),
                "source": rows["source"].mean(),
            }
            if against in by and system != against:
                for name, column in (("", "answer"), ("source_", "source")):
                    row |= difference((rows[column] - by[against][column]).dropna(), name)
            found.append(row)
    return pd.DataFrame(found).round(4)


def difference(each: pd.Series, name: str) -> dict[str, float]:
    """Return the mean of paired differences, its interval, p, and the smallest difference seen."""
    count, error = len(each), each.std() / len(each) ** 0.5
    half = float(stdtrit(count - 1, 0.975)) * error
    p = 2 * float(stdtr(count - 1, -abs(each.mean() / error)))
    numbers = {"difference": each.mean(), "low": each.mean() - half, "high": each.mean() + half, "p": p}
    return {
        f"{name}{key}": one for key, one in (numbers | {"seen": smallest_seen(each.std(), count)}).items()
    }


if __name__ == "__main__":
    if sys.argv[1:]:
        scores(sys.argv[1]).to_csv(HERE / "scores.csv", index=False)
    effects(pd.read_csv(HERE / "scores.csv")).to_csv(HERE / "effects.csv", index=False)
