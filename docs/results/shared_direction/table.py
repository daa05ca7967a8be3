"""Is there a direction that no target was used for? `python docs/results/shared_direction/table.py [FOLDER]`.

It writes differences.csv from rows.csv: the direction (outside 1.0) minus each other arm, in points. A unit
is a language, with its mean over seeds; 95 % t intervals over languages, Holm over the tests of the plan, and
the exact p of sign flips. The last rows describe the gap closed and the cost in the source. With FOLDER,
where make_runs.py wrote the rows of each seed, it writes rows.csv first.
"""

import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pandas as pd

from isogloss.metrics.estimates import crossed_estimate
from isogloss.metrics.significance import holm

HERE = Path(__file__).parent
DIRECTION = "outside 1.0"
TESTED = ("source", "longer", "soup of source seeds", "soup of longer sources", "random", "joint")
DESCRIBED = ("outside 0.5", "own")


def flip_signs(values: Sequence[float]) -> float:
    """Return the exact two-sided p of the mean under all changes of signs."""
    observed = abs(sum(values)) - 1e-9
    sums = [
        abs(sum(sign * value for sign, value in zip(signs, values, strict=True)))
        for signs in product((1, -1), repeat=len(values))
    ]
    return sum(total >= observed for total in sums) / len(sums)


def describe(task: str, contrast: str, values: "pd.Series[float]", *, tested: bool) -> dict[str, object]:
    """Return the estimate over languages."""
    values = values.dropna()
    estimate = crossed_estimate(list(values))
    row = {"task": task, "what": contrast, "languages": len(values), "points": estimate.mean}
    row |= {"low": estimate.low, "high": estimate.high, "positive": int((values > 0).sum())}
    if tested:
        row |= {"p": estimate.p_value(), "p_signs": flip_signs(list(values))}
    return row


def differences(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the differences of the direction from all other arms."""
    table = []
    for task, task_rows in rows.groupby("task", sort=False):
        scores = task_rows.pivot_table(index="target", columns="arm", values="score")
        for arm in (*TESTED, *DESCRIBED):
            difference = scores[DIRECTION] - scores[arm]
            table.append(describe(task, arm, difference, tested=arm in TESTED))
        closed = (scores[DIRECTION] - scores["source"]) / (scores["own"] - scores["source"])
        table.append(describe(task, "share of the gap closed, percent", 100 * closed, tested=False))
        source = task_rows.pivot_table(index="target", columns="arm", values="source_score")
        start = task_rows[task_rows["arm"] == "source"]["source_score"].mean()
        table.append(describe(task, "change in the source", source[DIRECTION] - start, tested=False))
        cosines = task_rows.groupby("target")["cosine_with_own"].mean()
        table.append(describe(task, "cosine with the own direction", cosines, tested=False))
    frame = pd.DataFrame(table)
    is_test = frame["p"].notna()
    frame.loc[is_test, "p_holm"] = holm(list(frame.loc[is_test, "p"]))
    return frame.round(4)


if __name__ == "__main__":
    if sys.argv[1:]:
        tables = [pd.read_csv(path) for path in sorted(Path(sys.argv[1]).glob("?.csv"))]
        pd.concat(tables).to_csv(HERE / "rows.csv", index=False)
    differences(pd.read_csv(HERE / "rows.csv")).to_csv(HERE / "differences.csv", index=False)
