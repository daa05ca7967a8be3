"""Compare models whose head was trained first with others: `python docs/results/seed_parts/first.py [RUNS]`.

With RUNS, the folder of first_tags/ and first_names/, first-rows.csv is written from their records first. It
gives first.csv: mean and standard deviation over seeds of each arm, and the tests of the plan for head first
against two other arms, corrected over arms and tasks, separately for means and spreads.
"""

import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from isogloss.metrics.estimates import crossed_estimate
from isogloss.metrics.significance import holm

HERE = Path(__file__).parent
STUDIES = ("tags", "names")
SOURCE = "qaa"
TARGETS = "mean of targets"
ARMS = ("source-only", "six epochs", "probe", "head first")
TREATED = "head first"
AGAINST = ("source-only", "six epochs")
ROUNDS = 10_000


def write_rows(folder: Path) -> None:
    """Write the test scores of all arms and seeds, in percent."""
    import isogloss

    tables = []
    for study in STUDIES:
        measurements = isogloss.read(folder / f"first_{study}").measurements
        labels = {key: label for label, ids in measurements.methods.items() for key in ids}
        rows = measurements.frame("scores")
        rows = rows[rows["main"].eq(True)]
        rows = rows.assign(study=study, arm=rows["model"].map(labels), score=(100 * rows["score"]).round(4))
        tables.append(rows[["study", "arm", "seed", "language", "score"]])
    keys = ["study", "arm", "seed", "language"]
    pd.concat(tables).sort_values(keys).to_csv(HERE / "first-rows.csv", index=False)


def compare_spreads(first: npt.NDArray[np.float64], second: npt.NDArray[np.float64]) -> float:
    """Return the p of equal spreads, by permutations of the absolute deviations from the medians."""
    deviations = np.concatenate([np.abs(side - np.median(side)) for side in (first, second)])
    permuted = np.random.default_rng(0).permuted(np.tile(deviations, (ROUNDS, 1)), axis=1)
    observed, drawn = (
        np.abs(table[:, : len(first)].mean(axis=1) - table[:, len(first) :].mean(axis=1))
        for table in (deviations[None], permuted)
    )
    return float((1 + (drawn >= observed - 1e-12).sum()) / (ROUNDS + 1))


def compare_arms(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each arm: mean and spread in targets and source, and the tests against it."""
    table = []
    for study in rows["study"].unique():
        scores = rows[rows["study"] == study].pivot_table(
            index=["arm", "seed"], columns="language", values="score"
        )
        scores[TARGETS] = scores.drop(columns=SOURCE).mean(axis=1)
        treated = scores.loc[TREATED]
        for arm in ARMS:
            of_arm = scores.loc[arm]
            row = {"study": study, "arm": arm, "seeds": len(of_arm)}
            row |= {"targets": of_arm[TARGETS].mean(), "std": of_arm[TARGETS].std()}
            row |= {"source": of_arm[SOURCE].mean(), "source_std": of_arm[SOURCE].std()}
            if arm in AGAINST:
                gain = crossed_estimate(list(treated[TARGETS] - of_arm[TARGETS]))
                row |= {"gain": gain.mean, "low": gain.low, "high": gain.high, "p": gain.p_value()}
                row |= {"ratio": treated[TARGETS].std() / of_arm[TARGETS].std()}
                row |= {
                    "p_spread": compare_spreads(*(side[TARGETS].to_numpy() for side in (treated, of_arm)))
                }
                source = crossed_estimate(list(treated[SOURCE] - of_arm[SOURCE]))
                row |= {"source_gain": source.mean, "source_low": source.low, "source_high": source.high}
            table.append(row)
    frame = pd.DataFrame(table)
    is_tested = frame["p"].notna()
    for name in ("p", "p_spread"):
        frame.loc[is_tested, f"{name}_holm"] = holm(list(frame.loc[is_tested, name]))
    return frame.round(4)


if __name__ == "__main__":
    if sys.argv[1:]:
        write_rows(Path(sys.argv[1]))
    compare_arms(pd.read_csv(HERE / "first-rows.csv")).to_csv(HERE / "first.csv", index=False)
