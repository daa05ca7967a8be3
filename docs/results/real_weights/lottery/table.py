"""Write the tests of the plan: `python docs/results/real_weights/lottery/table.py`.

arms.csv has the accuracy of each arm in each task and language, over seeds, in percent. tests.csv compares
each arm with the original encoder: the difference of the means in points, Welch's interval and test, by
language with Holm's correction, and the ratio of the standard deviations with a permutation test of the
absolute deviations from the arms' medians (Brown & Forsythe), over all ways to divide the seeds. Arms of
the third and fourth plan are paired by seed, with Holm's correction over their two tests of the mean.
"""

from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from isogloss.metrics.estimates import crossed_estimate, independent_estimate
from isogloss.metrics.significance import holm

HERE = Path(__file__).parent
TARGETS = ["de", "es", "ru", "vi"]
MEAN = "mean of four targets"
ORIGINAL = "original"
HEADS = ("probe", "head first", "zero head")
"""Arms by the label of their method, paired with the original by seed."""


def scores_of(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the accuracy in percent by arm and seed, with a column for each language."""
    arms = rows["encoder"].replace("causal", ORIGINAL)
    arms = arms.mask(rows["method"].str.contains("3 epochs"), "three epochs")
    arms = arms.mask(rows["method"].isin(HEADS), rows["method"])
    scores = 100 * rows.assign(arm=arms).pivot(index=["arm", "seed"], columns="language", values="score")
    return scores.assign(**{MEAN: scores[TARGETS].mean(axis=1)})


def compare_spreads(x: np.ndarray, y: np.ndarray) -> float:
    """Return the p-value of equal spreads, by all divisions of the absolute deviations into two groups."""
    deviations = np.concatenate([np.abs(x - np.median(x)), np.abs(y - np.median(y))])
    observed = abs(deviations[: len(x)].mean() - deviations[len(x) :].mean())
    total = deviations.sum()
    sums = np.array([sum(group) for group in combinations(deviations, len(x))])
    differences = np.abs(sums / len(x) - (total - sums) / len(y))
    return float((differences >= observed - 1e-12).mean())


def compare_with_original(scores: pd.DataFrame, arm: str) -> pd.DataFrame:
    """Return the tests of an arm, a row for each language and for the mean of the targets."""
    x, y = scores.loc[arm], scores.loc[ORIGINAL]
    rows = []
    for column in [MEAN, *TARGETS, "en"]:
        difference = (
            crossed_estimate(list(x[column] - y[column].reindex(x.index)))
            if arm in HEADS
            else independent_estimate(list(x[column]), list(y[column]))
        )
        rows.append(
            {
                **{"arm": arm, "seeds": len(x), "language": column},
                **{"difference": difference.mean, "low": difference.low, "high": difference.high},
                "p": difference.p_value(),
                "ratio of deviations": x[column].std() / y[column].std(),
                "p of spread": compare_spreads(x[column].to_numpy(), y[column].to_numpy()),
                "worst above best original": bool(x[column].min() > y[column].max()),
            }
        )
    table = pd.DataFrame(rows)
    in_targets = table["language"].isin(TARGETS)
    table.loc[in_targets, "p"] = holm(list(table.loc[in_targets, "p"]))
    if arm in HEADS:
        table.loc[0, ["p", "p of spread"]] = holm(list(table.loc[0, ["p", "p of spread"]]))
    return table


def main() -> None:
    """Write both tables."""
    rows = pd.read_csv(HERE / "rows.csv")
    arms_of_tasks = dict[str, pd.DataFrame]()
    tests_of_tasks = dict[str, pd.DataFrame]()
    for task in rows["task"].unique():
        scores = scores_of(rows[rows["task"] == task])
        long = scores.reset_index().melt(["arm", "seed"], var_name="language")
        arms = long.groupby(["arm", "language"])["value"].agg(["size", "mean", "std", "min", "max"])
        arms_of_tasks[task] = arms.rename(columns={"size": "seeds"})
        others = [arm for arm in scores.index.unique("arm") if arm != ORIGINAL]
        tests_of_tasks[task] = pd.concat([compare_with_original(scores, arm) for arm in others])
    arms = pd.concat(arms_of_tasks, names=["task"])
    arms.round(4).to_csv(HERE / "arms.csv")
    tests = pd.concat(tests_of_tasks, names=["task"]).droplevel(1).reset_index()
    tests.round(6).to_csv(HERE / "tests.csv", index=False)
    print(arms.round(1).to_string(), tests.round(4).to_string(index=False), sep="\n\n")


if __name__ == "__main__":
    main()
