"""Compare models whose head was trained first, or began with zeros.

`python docs/results/seed_parts/first.py [RUNS]` makes arms.csv from first-rows.csv, the mean and standard
deviation over seeds of each arm, and first.csv, the tests of the second and the third plan. With RUNS, the
folder of first_tags/, first_names/, zero_tags/ and zero_names/, first-rows.csv is written from their records
first. Holm's correction is over the arms and tasks of a plan, separately for means and spreads.
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
NAMES = {"targets": TARGETS, "source": SOURCE}
LABELS = {"zero source-only": "zero head", "zero six epochs": "zero head, six epochs"}
"""Arms of the third plan by their method, on an encoder with a head of zeros."""

COMPARISONS = {
    "second": (("head first", "source-only"), ("head first", "six epochs")),
    "third": (("zero head", "source-only"), ("zero head, six epochs", "six epochs")),
}
"""Arms that the plans compare."""

ROUNDS = 10_000


def write_rows(folder: Path) -> None:
    """Write the test scores of all arms and seeds, in percent."""
    import isogloss

    tables = []
    for study in STUDIES:
        for prefix in ("first", "zero"):
            measurements = isogloss.read(folder / f"{prefix}_{study}").measurements
            labels = {key: label for label, ids in measurements.methods.items() for key in ids}
            rows = measurements.frame("scores")
            rows = rows[rows["main"].eq(True)]
            arms = rows["model"].map(labels)
            if prefix == "zero":
                arms = ("zero " + arms).map(LABELS)
            rows = rows.assign(study=study, arm=arms, score=(100 * rows["score"]).round(4))
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


def scores_of(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each study, arm and seed, a column for each language, and the mean of the targets."""
    scores = rows.pivot_table(index=["study", "arm", "seed"], columns="language", values="score")
    return scores.assign(**{TARGETS: scores.drop(columns=SOURCE).mean(axis=1)})


def list_arms(scores: pd.DataFrame) -> pd.DataFrame:
    """Return mean and standard deviation over seeds of each arm, in targets and source."""
    groups = scores.groupby(["study", "arm"])
    columns = {f"{name}_{kind}": (column, kind) for name, column in NAMES.items() for kind in ("mean", "std")}
    return groups.agg(seeds=(SOURCE, "size"), **columns).round(4)


def compare_arms(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the tests of both plans, paired by seed."""
    table = []
    for plan, pairs in COMPARISONS.items():
        for study in STUDIES:
            for arm, other_arm in pairs:
                arm_scores, others = (pd.DataFrame(scores.loc[study, name]) for name in (arm, other_arm))
                row: dict[str, object] = {"plan": plan, "study": study, "arm": arm, "against": other_arm}
                for name, column in NAMES.items():
                    gain = crossed_estimate(list(arm_scores[column] - others[column]))
                    row |= {f"{name}_gain": gain.mean, f"{name}_low": gain.low, f"{name}_high": gain.high}
                    row |= {f"{name}_p": gain.p_value()}
                row["ratio"] = arm_scores[TARGETS].std() / others[TARGETS].std()
                row["spread_p"] = compare_spreads(arm_scores[TARGETS].to_numpy(), others[TARGETS].to_numpy())
                table.append(row)
    frame = pd.DataFrame(table)
    for name in ("targets_p", "spread_p"):
        frame[f"{name}_holm"] = frame.groupby("plan")[name].transform(lambda values: holm(list(values)))
    return frame.round(4)


if __name__ == "__main__":
    if sys.argv[1:]:
        write_rows(Path(sys.argv[1]))
    all_scores = scores_of(pd.read_csv(HERE / "first-rows.csv"))
    list_arms(all_scores).to_csv(HERE / "arms.csv")
    compare_arms(all_scores).to_csv(HERE / "first.csv", index=False)
