"""Compare baselines with source-only training: `python docs/results/baselines/table.py [RUNS]`.

With RUNS, the folder of tags/ and names/, scores.csv and the rows of the four measurements are written from
their records first. gains.csv and findings.csv follow from them. Intervals are 95 % intervals in which
targets and seeds both vary.
"""

import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import spearmanr

from isogloss.features.comparing.two_ways import two_way_estimate
from isogloss.metrics.estimates import Estimate

HERE = Path(__file__).parent
STUDIES = ("tags", "names")
SOURCE = "qaa"
BASE = "source-only"
TRANSLATED = "translate-train"
FUSED = "flare"
UNFUSED = "lora on translations"
ARMS = ("longer", "contrast", "self-training", TRANSLATED, "consistency", FUSED, UNFUSED)
MEASUREMENTS = {
    "calibration": ["confidence", "accuracy", "error", "scaled_error", "temperature"],
    "label-consistency": ["share", "chance"],
    "ensembled-projection": ["share", "score"],
    "language-fusion": ["alone", "fused", "shuffled", "translated"],
}
"""Measurements, and their columns that are kept."""

KEYS = ["study", "target", "seed"]


def write_rows(folder: Path) -> None:
    """Write the scores and the rows of the measurements of both studies, in percent."""
    import isogloss

    tables: dict[str, list[pd.DataFrame]] = {name: [] for name in ("scores", *MEASUREMENTS)}
    for study in STUDIES:
        measurements = isogloss.read(folder / study).measurements
        labels = {key: label for label, ids in measurements.methods.items() for key in ids}
        for name, rows in tables.items():
            frame = measurements.frame(name)
            if "metric" in frame:
                main = "accuracy" if study == "tags" else "span_f1"
                frame = frame[frame["metric"].eq(main)]
            target = frame["target"].fillna("")
            frame = frame[target.eq("") | target.eq(frame["language"]) | frame["language"].eq(SOURCE)]
            frame = frame.assign(study=study, arm=frame["model"].map(labels).replace("flare + lora", FUSED))
            columns = MEASUREMENTS.get(name, ["score"])
            rows.append(frame[["study", "arm", "target", "language", "seed", *columns]])
    for name, frames in tables.items():
        pd.concat(frames).round(6).sort_values(["study", "arm", "target", "language", "seed"]).to_csv(
            HERE / f"{name}.csv", index=False
        )


def as_grid(values: pd.Series) -> npt.NDArray[np.float64]:
    """Return values as a table of targets and seeds."""
    return pd.DataFrame(values.unstack("seed")).to_numpy(dtype=np.float64)


def in_targets(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows in targets, with the language as the target."""
    rows = rows[rows["language"] != SOURCE]
    return rows.assign(target=rows["language"])


def find_gains(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the score of each arm and its gain over source-only, in points."""
    values = in_targets(scores).set_index(["study", "arm", "target", "seed"])["score"].sort_index() * 100
    table = []
    for study in scores["study"].unique():
        base = values.loc[study, BASE]
        for arm in (BASE, *ARMS):
            arm_scores = values.loc[study, arm]
            row = {"study": study, "arm": arm, "pairs": len(arm_scores), "score": arm_scores.mean()}
            if arm != BASE:
                gains = arm_scores - base
                estimate = two_way_estimate(as_grid(gains))
                row |= {"gain": estimate.mean, "low": estimate.low, "high": estimate.high}
                row["positive"] = int((gains > 0).sum())
            table.append(row)
    return pd.DataFrame(table).round(3)


def row(study: str, name: str, estimate: Estimate | float) -> dict[str, object]:
    """Return a row of findings.csv."""
    if isinstance(estimate, Estimate):
        return {
            "study": study,
            "what": name,
            "value": estimate.mean,
            "low": estimate.low,
            "high": estimate.high,
        }
    return {"study": study, "what": name, "value": float(estimate)}


def find_differences(study: str, values: pd.Series) -> list[dict[str, object]]:
    """Return differences between arms that the plan names."""
    pairs = {
        "consistency − translate-train": ("consistency", TRANSLATED),
        "FLARE − LoRA on translations": (FUSED, UNFUSED),
    }
    return [
        row(study, name, two_way_estimate(as_grid(values[arm] - values[other_arm])))
        for name, (arm, other_arm) in pairs.items()
    ]


def find_fusion(study: str, rows: pd.DataFrame) -> list[dict[str, object]]:
    """Return the gain of FLARE with translations, over translations of another example and over none."""
    values = in_targets(rows[rows["arm"] == FUSED]).set_index(["target", "seed"])
    differences = {
        "fusion: own − other translations": ("fused", "shuffled"),
        "fusion: own − none": ("fused", "alone"),
    }
    return [
        row(study, name, two_way_estimate(as_grid(100 * (values[reading] - values[other_reading]))))
        for name, (reading, other_reading) in differences.items()
    ]


def find_projection(study: str, rows: pd.DataFrame) -> list[dict[str, object]]:
    """Return the gain of the mean of both models over the better one, and the pairs in which it is better."""
    scores = in_targets(rows).pivot_table(index=["target", "seed"], columns="share", values="score") * 100
    gains = scores[0.5] - scores[[0.0, 1.0]].max(axis=1)
    return [
        row(study, "projection: mean − better part", two_way_estimate(as_grid(gains))),
        row(study, "projection: pairs in which the mean is better", float((gains > 0).sum())),
    ]


def find_calibration(study: str, rows: pd.DataFrame) -> list[dict[str, object]]:
    """Return the excess confidence of source-only models, before and after a temperature of the source."""
    rows = in_targets(rows[rows["arm"] == BASE])
    values = rows.set_index(["target", "seed"])
    surplus = 100 * (values["confidence"] - values["accuracy"])
    lowered = 100 * (values["error"] - values["scaled_error"])
    share = lowered.sum() / (100 * values["error"].sum())
    return [
        row(study, "calibration: confidence − accuracy", two_way_estimate(as_grid(surplus))),
        row(study, "calibration: pairs too sure", float((surplus > 0).sum())),
        row(study, "calibration: error lowered by the temperature", two_way_estimate(as_grid(lowered))),
        row(
            study,
            "calibration: targets with a lower error",
            float((lowered.groupby("target").mean() > 0).sum()),
        ),
        row(study, "calibration: share of the error removed", share),
    ]


def find_consistency(study: str, rows: pd.DataFrame, scores: pd.Series) -> list[dict[str, object]]:
    """Return the rank correlation of label consistency, and of chance, with the target score."""
    values = in_targets(rows).set_index(["target", "seed"])
    target_scores = scores[BASE].reindex(values.index)
    return [
        row(
            study,
            f"label consistency: ρ of {name} with the score",
            float(spearmanr(values[column], target_scores)[0]),
        )
        for name, column in {"consistency": "share", "chance": "chance"}.items()
    ]


def find_all() -> pd.DataFrame:
    """Return everything that the plan predicts of measurements and of differences between arms."""
    tables = {name: pd.read_csv(HERE / f"{name}.csv") for name in ("scores", *MEASUREMENTS)}
    findings: list[dict[str, object]] = []
    for study in tables["scores"]["study"].unique():
        rows = {name: table[table["study"] == study] for name, table in tables.items()}
        scores = in_targets(rows["scores"])
        values = {
            arm: 100 * group.set_index(["target", "seed"])["score"].sort_index()
            for arm, group in scores.groupby("arm")
        }
        findings += find_differences(study, values)
        findings += find_fusion(study, rows["language-fusion"])
        findings += find_projection(study, rows["ensembled-projection"])
        findings += find_calibration(study, rows["calibration"])
        findings += find_consistency(study, rows["label-consistency"], values)
    return pd.DataFrame(findings).round(3)


if __name__ == "__main__":
    if sys.argv[1:]:
        write_rows(Path(sys.argv[1]))
    find_gains(pd.read_csv(HERE / "scores.csv")).to_csv(HERE / "gains.csv", index=False)
    find_all().to_csv(HERE / "findings.csv", index=False)
