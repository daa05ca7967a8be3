"""Write the effects of swapped parts: `python docs/results/module_swap/table.py [RUNS [OTHER]]`.

With RUNS, the folder of recipe.toml, rows.csv is written from its records first; with OTHER, the folder of
other_targets.toml, rows-other.csv. effects.csv follows from rows.csv and, for the control of a different
seed, other_seed.csv (`other_seed.py`): the mean change of the target score in points over all targets and
seeds, with a 95 % interval in which both vary. effects-other.csv is the same for the other targets.
effects-all.csv has the intervals over all eight targets, seeds averaged.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from isogloss.features.comparing.two_ways import two_way_estimate
from isogloss.metrics.estimates import mean_std

HERE = Path(__file__).parent
KEYS = ["task", "target", "seed", "end", "changed", "part", "change", "language"]
CHANGES = {
    ("bilingual", "swap", "start"): "gain",
    ("bilingual", "random", "start"): "gain, random",
    ("longer", "swap", "start"): "gain, longer on the source",
    ("bilingual", "swap", "end"): "loss",
    ("bilingual", "random", "end"): "loss, random",
    ("other seed", "swap", "start"): "gain, source-only of the next seed",
}
"""Names of effects, by the second model of the measurement, the kind of change, and the changed model."""

DIFFERENCES = {
    "feed-forward − attention": (["feed-forward"], ["attention"]),
    "layers 1, 2 − layers 3, 4": (["layer 1", "layer 2"], ["layer 3", "layer 4"]),
    "all − sum of layers": (["all"], ["layer 1", "layer 2", "layer 3", "layer 4"]),
    "source − target, all": (["all"], []),
}
"""Comparisons of the plan: sums of changes of parts, subtracted."""


def write_rows(runs: str, file: str) -> None:
    """Write the scores of all changes into a file."""
    import isogloss

    measurements = isogloss.read(runs).measurements
    labels = {key: label for label, ids in measurements.methods.items() for key in ids}
    rows = measurements.frame("module-swap")
    target = rows["run"].map(rows[rows["role"] == "target"].groupby("run")["language"].first())
    rows = rows.assign(target=target, end=rows["end"].map(labels))
    rows = rows[[*KEYS, "before", "score"]].sort_values(KEYS)
    rows.round(5).to_csv(HERE / file, index=False)


def estimate(values: pd.Series) -> tuple[int, float, float, float]:
    """Return count and mean over targets and seeds, and the mean's 95 % interval if both are samples.

    Where a pair is missing, its seed is not used.
    """
    grid = pd.DataFrame(values.unstack("seed")).dropna(axis=1).to_numpy(dtype=np.float64)
    result = two_way_estimate(grid)
    return grid.size, result.mean, result.low, result.high


def read_changes(*files: str) -> pd.DataFrame:
    """Return the change of each score in points, with its name and the role of the language."""
    rows = pd.concat([pd.read_csv(HERE / name) for name in files])
    kinds = zip(rows["end"], rows["change"], rows["changed"], strict=True)
    side = (rows["language"] == rows["target"]).map({True: "target", False: "source"})
    rows = rows.assign(
        effect=[CHANGES.get(kind, "") for kind in kinds],
        side=side,
        points=100 * (rows["score"] - rows["before"]),
    )
    return rows[rows["effect"] != ""]


def list_effects(changes: pd.DataFrame) -> pd.DataFrame:
    """Return mean and interval of each effect of a part, and its share of the whole difference."""
    whole = changes[(changes["part"] == "all") & (changes["effect"] == "gain")]
    wholes = {
        key: estimate(group.set_index(["target", "seed"])["points"])[1]
        for key, group in whole.groupby(["task", "side"])
    }
    table = []
    for (task, effect, side, part), group in changes.groupby(["task", "effect", "side", "part"], sort=False):
        count, mean, low, high = estimate(group.set_index(["target", "seed"])["points"])
        table.append((task, effect, side, part, count, mean, low, high, mean / wholes[task, side]))
    table += list_differences(changes, wholes)
    columns = ["task", "effect", "side", "part", "pairs", "points", "low", "high", "share"]
    return pd.DataFrame(table, columns=columns).round(3)


def list_differences(
    changes: pd.DataFrame, wholes: Mapping[tuple[str, str], float]
) -> list[tuple[object, ...]]:
    """Return the comparisons of the plan, paired by target and seed."""
    table: list[tuple[object, ...]] = []
    swaps = changes[changes["effect"].isin(["gain", "loss"])]
    for (task, effect), group in swaps.groupby(["task", "effect"], sort=False):
        points = group.pivot_table(index=["side", "target", "seed"], columns="part", values="points")
        target, source = (pd.DataFrame(points.xs(side, level="side")) for side in ("target", "source"))
        for name, (parts, subtracted) in DIFFERENCES.items():
            values = target[parts].sum(axis=1) - target[subtracted].sum(axis=1)
            if not subtracted:
                values = source[parts].sum(axis=1) - values
            count, mean, low, high = estimate(values)
            share = mean / wholes[task, "target"]
            table.append((task, effect, "target", name, count, mean, low, high, share))
    return table


def list_over_targets(changes: pd.DataFrame) -> pd.DataFrame:
    """Return the effects in the target over targets, seeds averaged, and the comparisons of the plan."""
    table = []
    target_changes = changes[
        (changes["side"] == "target") & changes["effect"].isin(["gain", "loss", "gain, random"])
    ]
    for (task, effect), group in target_changes.groupby(["task", "effect"], sort=False):
        points = group.pivot_table(index="target", columns="part", values="points")
        for name, (parts, subtracted) in DIFFERENCES.items():
            if subtracted:
                points[name] = points[parts].sum(axis=1) - points[subtracted].sum(axis=1)
        for part, values in points.items():
            summary = mean_std(values.tolist())
            table.append((task, effect, part, summary.n, summary.mean, summary.low, summary.high))
    columns = ["task", "effect", "part", "targets", "points", "low", "high"]
    return pd.DataFrame(table, columns=columns).round(3)


if __name__ == "__main__":
    for folder, file in zip(sys.argv[1:], ("rows.csv", "rows-other.csv"), strict=False):
        write_rows(folder, file)
    own_changes = read_changes("rows.csv", "other_seed.csv")
    list_effects(own_changes).to_csv(HERE / "effects.csv", index=False)
    if (HERE / "rows-other.csv").exists():
        other_changes = read_changes("rows-other.csv")
        list_effects(other_changes).to_csv(HERE / "effects-other.csv", index=False)
        all_changes = pd.concat([own_changes, other_changes])
        list_over_targets(all_changes).to_csv(HERE / "effects-all.csv", index=False)
