"""Compare NN-Rank with the rule of `choose --source`: `python docs/results/choosing/nearest.py [RUNS]`.

With RUNS, the folder of `nearest.toml`, its rows are written first. Regrets are computed from these rows and
from the scores of `sources-tags.csv`, in which nothing is trained again.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from sources import ALWAYS, HERE, Matrix, chance, matrix, rankings, regret_of

from isogloss.metrics.estimates import mean_std

ROWS = HERE / "nearest-tags.csv"
REGRETS = HERE / "nearest-tags-regret.csv"
MAIN = {"layer": 4, "neighbours": 5, "centred": False}
"""The setting that was fixed before: last layer, k = 5, not centred."""

GROUPS = (("qaa", "qab", "qac", "qad", "qae"), ("qaf", "qag", "qah", "qai"))
"""The two groups of the built-in languages. Languages of a group share most of their words."""

RULE = "rule"


def read_shares(runs: Path) -> pd.DataFrame:
    """Return the rows of the measurements of a folder."""
    import isogloss

    rows = isogloss.read(runs).frame("nearest-sources")
    columns = ["language", "candidate", *MAIN, "items", "share", "behind", "chosen"]
    rows = rows[columns].rename(columns={"language": "target", "candidate": "source"})
    return rows.sort_values([*MAIN, "target", "source"]).round(6)


def ways_to_choose(shares: pd.DataFrame, scores: pd.DataFrame) -> dict[str, Matrix]:
    """Return the values by target and source of NN-Rank in each setting, and of the ways of `sources.py`."""
    by_neighbours = {}
    for setting, rows in shares.groupby(list(MAIN)):
        layer, neighbours, centred = setting
        name = f"NN-Rank, layer {layer}, k = {neighbours}{', centred' if centred else ''}"
        by_neighbours[name] = matrix(rows, "share")
    main = "NN-Rank, layer {layer}, k = {neighbours}".format(**MAIN)
    plain_ways = rankings(scores, ALWAYS["tags"])
    compared = (RULE, f"always {ALWAYS['tags']}", "best in other targets", "random")
    return {
        main: by_neighbours.pop(main),
        **{name: plain_ways[name] for name in compared},
        **by_neighbours,
    }


def regrets(shares: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """Return the mean regret over targets of each way to choose, in points, and its excess over NN-Rank's.

    Intervals are Student's over targets. A source that is used for all is compared on the other targets.
    Within the group, only sources of the target's group are candidates.
    """
    points = matrix(scores, "score")
    targets = sorted(set(scores["target"]))
    group_of = {language: index for index, group in enumerate(GROUPS) for language in group}
    is_within = np.array([[group_of[x] == group_of[y] for y in targets] for x in targets])
    points_within = np.where(is_within, points, np.nan)
    ways = ways_to_choose(shares, scores)
    main, *_ = ways
    of_main = regret_of(points, ways[main])
    table = []
    for name, values in ways.items():
        is_counted = np.array([target != ALWAYS["tags"] or "always" not in name for target in targets])
        of_way = regret_of(points, values)[is_counted]
        mean = mean_std(list(of_way))
        more = mean_std(list(of_way - of_main[is_counted]))
        table.append(
            {
                "chosen by": name,
                "targets": mean.n,
                "regret": mean.mean,
                "low": mean.low,
                "high": mean.high,
                "worst": of_way.max(),
                "best chosen": int((of_way == 0).sum()),
                "more than NN-Rank": more.mean,
                "more low": more.low,
                "more high": more.high,
                "regret within the group": np.nan
                if "always" in name
                else regret_of(points_within, values).mean(),
                "p of chance": chance(points, values) if name.startswith("NN") or name == RULE else np.nan,
            }
        )
    columns = pd.DataFrame(table)
    return columns.round(2).assign(**{"p of chance": columns["p of chance"].round(4)})


def main() -> None:
    """Write the rows, where runs are given, and the regrets."""
    if len(sys.argv) > 1:
        read_shares(Path(sys.argv[1])).to_csv(ROWS, index=False)
    shares = pd.read_csv(ROWS)
    scores = pd.read_csv(HERE / "sources-tags.csv")
    table = regrets(shares, scores)
    table.to_csv(REGRETS, index=False)
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
