"""Rows that the third paper's claims are judged by: scores and distances of encoders with a role in it."""

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import pandas as pd

from isogloss.features.claims.comparisons import drop_strays, nearest
from isogloss.reports.comparison import TEST_SET, filter_rows, row_keys
from isogloss.reports.frames import list_columns
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import original_names

ADJUSTMENT = "cross-lingual-adjustment"
PLAIN = "source-only"
CONTINUAL = "source-only + alignment-loss"

TASKS = ("nli", "ner", "qa")
"""The paper's tasks. Other tasks are not judged."""

MAIN = {"encoder.adjusted": ADJUSTMENT, "encoder.adjusted.word": "average", "encoder.depth": 1}
"""The paper's adjustment (Section 3, Appendix A.1)."""

PAIRS: Mapping[str, object] = {"drop_identical": False, "longest": 64, "layer": -1}

ADJUSTED: Mapping[str, object] = {
    **PAIRS,
    **{"form": "sum", "stay": 1.0, "epochs": 1, "batch_size": 32, "dropout": True},
    **{"learning_rate": 5e-5, "warmup": 0.1, "rate_schedule": None, "weight_decay": 0.0, "beta2": 0.98},
    **{"epsilon": 1e-9, "clip": 0.0, "accumulation": None, "gradient_checkpointing": None},
    **{"optimizer_states": None, "capture": None, "sam_radius": None},
}
ADDED: Mapping[str, object] = {
    **PAIRS,
    **{"bitext": None, "alpha": 0.01, "weighs": "both", "form": "mean", "pairs": 16, "pulled": "all"},
    **{"stay": None, "temperature": None, "every": None},
    **{"word": "average", "reference": None},
}
SETTINGS = {f"encoder.adjusted.{name}": value for name, value in ADJUSTED.items()}
CONTINUAL_SETTINGS = {f"auxiliary.{name}": value for name, value in ADDED.items() if name != "bitext"}
"""Settings of the adjustment and of continual learning. Among several settings, the nearest to the paper's
are judged."""

ALIGNED = "encoder.adjusted.pulled"

ADJUSTING_SEED = "adjusting seed"

WORD_F1 = "word_f1"
"""The paper's metric of NER."""

DISTANCE = ["distance", "layer"]
"""Columns with the comparison of words and its place."""

ORIGINAL = "original"
ALL = "all"
OPENING = "opening"
"""Roles of encoders: not adjusted, or adjusted as in the paper by all words or (Table 7) by [CLS] alone."""


SERIES = ["test", "setting", "encoder.pairs"]
"""Columns that identify an adjustment over all sizes of bitext, and the test set."""


def paper_scores(measurements: Measurements) -> pd.DataFrame:
    """Return scores on the paper's tasks by its metrics, with ids of test set and setting, and the size."""
    rows = measurements.frame("scores")
    rows = rows[(rows["kind"] == "model") & rows["task"].isin(TASKS)]
    is_word_score = (rows["metric"] == WORD_F1) & (rows["task"] == "ner")
    rows = _with_role(measurements, rows[is_word_score | rows["main"].astype(bool)])
    setting = [
        name for name in list_columns(rows) if "encoder.adjusted." in name and name not in (*MAIN, ALIGNED)
    ]
    rows = rows.assign(
        test=row_keys(rows, [*TEST_SET, "encoder.original", *training_columns(rows)]),
        setting=row_keys(rows, setting),
        size=rows["encoder.size"].astype(float).fillna(math.inf),
    )
    return _nearest(rows, ["test"])


def training_columns(rows: pd.DataFrame) -> list[str]:
    """Return the columns of how a model was fine-tuned."""
    return [name for name in list_columns(rows) if "optimization." in name or "peft" in name]


def _nearest(rows: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Return, of each role in a group, the adjustments and continual models nearest to the paper's."""
    rows = nearest(rows, [*columns, "role"], SETTINGS)
    return nearest(rows, [*columns, "role", "method"], CONTINUAL_SETTINGS)


def plain_scores(measurements: Measurements) -> pd.DataFrame:
    """Return the scores of source-only models on plain inputs."""
    rows = paper_scores(measurements)
    return rows[(rows["inputs"] == "") & (rows["method"] == PLAIN)]


MEASURED_ON = ["corpus", "inputs"]


def distances(measurements: Measurements, *measures: str) -> pd.DataFrame:
    """Return distances of words by some measures. ``prefer_distance`` selects the deciding ones."""
    rows = measurements.frame("word-distance")
    rows = _with_role(measurements, rows[rows["distance"].isin(measures)])
    rows = rows.assign(trained=row_keys(rows, training_columns(rows)))
    rows = drop_strays(rows, ["task", "encoder.original", "trained", "role", "method"], MEASURED_ON)
    rows = _drop_bitext_of_encoders_only(rows)
    return _nearest(rows, ["task", "encoder.original", "trained", *DISTANCE])


def _drop_bitext_of_encoders_only(rows: pd.DataFrame) -> pd.DataFrame:
    """Drop measurements of an encoder on bitext for which none of its models has a measurement."""
    keys = row_keys(rows, ["encoder.original", *(name for name in MEASURED_ON if name in rows)])
    shared = keys.isin(set(keys[rows["kind"] == "model"]))
    return rows[shared | ~rows["encoder.original"].isin(set(rows.loc[shared, "encoder.original"]))]


def prefer_distance(rows: pd.DataFrame, measures: Sequence[str]) -> list[float]:
    """Return the preference of rows of one measure and layer: the last layer, then the deepest."""
    first_row = rows.iloc[0]
    layer = float(first_row["layer"])
    return [-math.inf if layer == -1 else -layer, measures.index(first_row["distance"])]


def prefer_score(rows: pd.DataFrame) -> list[float]:
    """Return the preference of rows of one metric: by words, as in the paper, where NER was scored so."""
    return [float(rows["metric"].iloc[0] != WORD_F1)]


def name_test(rows: pd.DataFrame) -> str:
    """Name the test set and training of rows, without split and metric."""
    columns = [name for name in TEST_SET if name not in ("split", "metric")]
    return str(row_keys(rows[:1], [*columns, "encoder.original", *training_columns(rows)]).iloc[0])


def _with_role(measurements: Measurements, rows: pd.DataFrame) -> pd.DataFrame:
    """Add the role of each encoder, "" for ablations and other adjustments.

    Encoders without a role are not judged. ``original`` names the original encoder among several.
    """
    papers = [rows[name] == value for name, value in MAIN.items() if name in rows]
    role = np.where(np.logical_and.reduce(papers), rows.get(ALIGNED, ALL), "")
    originals = rows["encoder.original"]
    names = originals.map(original_names(rows, measurements.labels)) if originals.nunique() > 1 else ""
    return rows.assign(role=np.where(rows["encoder.adjusted"] == "", ORIGINAL, role), original=names)


def was_measured(measurements: Measurements, name: str) -> bool:
    """Return whether an adjustment or a method was measured."""
    frames = [
        measurements.frame(name)[["encoder.adjusted", "method"]] for name in ("scores", "word-distance")
    ]
    return any((rows == name).any(axis=None) for rows in frames)


def split_by_method(rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the rows of continual models, and of source-only ones."""
    return rows[rows["method"] == CONTINUAL], rows[rows["method"] == PLAIN]


def zero_shot(rows: pd.DataFrame, role: str) -> pd.DataFrame:
    """Return encoders of a role on the languages adjusted to (the original: all) except the source."""
    return filter_rows(
        rows[rows["role"] == role],
        lambda language_code, pairs, source: (
            language_code != source
            and (not pairs or language_code in {pair.split("-")[-1] for pair in pairs.split("+")})
        ),
        *("language", "encoder.pairs", "source"),
    )


def most(rows: pd.DataFrame, end: Literal["max", "min"] = "max") -> pd.DataFrame:
    """Return the encoder of each series with the most translations, or the fewest."""
    return rows[rows["size"] == rows.groupby(SERIES)["size"].transform(end)]


def _count_units(units: "pd.Series[float]") -> int:
    return units.nunique()


def with_unit(ours: pd.DataFrame, theirs: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Add the unit of replication to both sides of a comparison.

    If both sides have the same encoder, the unit is the fine-tuning seed. Otherwise it is the adjusting seed,
    of the side with fewer of them if both are adjusted. The opposite side counts with the same fine-tuning
    seeds.
    """
    if theirs.empty or same_encoder(ours, theirs):
        return ours.assign(unit=ours["seed"]), theirs.assign(unit=theirs["seed"])
    side_draws = [draws(side) if (side["role"] != ORIGINAL).all() else None for side in (ours, theirs)]
    fewest = min((units for units in side_draws if units is not None), key=_count_units)
    deciding = ours if fewest is side_draws[0] else theirs
    seeds = {unit: set(deciding["seed"][fewest == unit]) for unit in sorted(fewest.dropna().unique())}

    def repeat_by_unit(side: pd.DataFrame) -> pd.DataFrame:
        if side is deciding:
            return side.assign(unit=fewest)
        return pd.concat([side[side["seed"].isin(units)].assign(unit=unit) for unit, units in seeds.items()])

    return repeat_by_unit(ours), repeat_by_unit(theirs)


def draws(rows: pd.DataFrame) -> pd.Series:
    """Return the number of the adjusted encoder of each row, counted within its kind.

    The number is the fine-tuning seed if each seed has a separate encoder, or else the index of the encoder.
    """
    runs = rows.groupby(["encoder", "encoder.run"])["seed"].min().rename("draw").reset_index()
    shared = runs.duplicated(["encoder", "draw"]).any()
    ranks = runs.groupby("encoder").cumcount()
    draw_of = dict(zip(runs["encoder.run"], ranks if shared else runs["draw"], strict=True))
    return rows["encoder.run"].map(draw_of)


def same_encoder(ours: pd.DataFrame, theirs: pd.DataFrame) -> bool:
    """Return whether both sides of a comparison have the same encoders."""
    return set(ours["encoder"]) == set(theirs["encoder"])
