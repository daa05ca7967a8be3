"""Summary tables (summaries.toml): one frame each, averaged over seeds."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from isogloss.reports.comparison import SYSTEM, TEST_SET, main_scores, model_languages
from isogloss.reports.frames import list_columns
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import distinguishing_names
from isogloss.reports.run_facts import fields_of
from isogloss.reports.scores import GAP, scored_sets, values_of
from isogloss.reports.tables import summaries_of

ONE_MODEL = ["model", *TEST_SET, "inputs", "inputs.translator"]


def with_role(scores: pd.DataFrame) -> pd.DataFrame:
    """Add whether the scored language is a source of the model or a target.

    A model without a source (target-only) was compared with models that have some: theirs are its sources,
    but for the languages that it was trained on.
    """
    source_codes = {language_code for source in scores["source"] for language_code in source.split("+")}
    other_languages = [list(source_codes - set(target.split("+"))) for target in scores["target"]]
    sources = [
        source.split("+") if source else codes
        for source, codes in zip(scores["source"], other_languages, strict=True)
    ]
    pairs = zip(scores["language"], sources, strict=True)
    return scores.assign(
        role=["source" if language_code in codes else "target" for language_code, codes in pairs]
    )


def spreads(measurements: Measurements) -> pd.DataFrame:
    """Return mean and standard deviation over seeds of each system's main score, by language."""
    scores = measurements.frame("scores")
    scores = with_role(main_scores(scores))
    keys = [*TEST_SET, *SYSTEM, "target", "language"]
    statistics = scores.groupby(keys, sort=False, dropna=False)["score"].agg(
        seeds="count", mean="mean", std="std"
    )
    systems = scores.drop_duplicates(keys).drop(columns=["score", "run", "model", "seed", "encoder.seed"])
    systems = systems.join(statistics, on=keys)
    return systems[systems["seeds"] > 1]


def gaps(measurements: Measurements) -> pd.DataFrame:
    """Return source score, mean target score and their difference for each model scored on both."""
    scores = measurements.frame("scores")
    scores = with_role(model_languages(main_scores(scores)))
    models = scores.groupby(ONE_MODEL, sort=False).ngroup().to_numpy()
    places = np.flatnonzero(models >= 0)  # Arrays: frames of few rows each take as long as large ones.
    places = places[np.argsort(models[places], kind="stable")]
    values = scores["score"].to_numpy(dtype=float)
    is_source = (scores["role"] == "source").to_numpy()
    firsts = []
    means = []
    for model_places in np.split(places, np.flatnonzero(np.diff(models[places])) + 1):
        sources = values[model_places[is_source[model_places]]]
        target_values = values[model_places[~is_source[model_places]]]
        if len(sources) and len(target_values):
            firsts.append(model_places[0])
            means.append((np.nanmean(sources), np.nanmean(target_values)))
    facts = scores.iloc[firsts].to_dict("records")
    return pd.DataFrame(
        [
            {**row, "source_score": source, "target_mean": target, "gap": source - target}
            for row, (source, target) in zip(facts, means, strict=True)
        ],
        index=scores.index[firsts],
    )


def unshown_gaps(measurements: Measurements) -> pd.DataFrame:
    """Return the gaps that no table of scores shows, such as those over a model's own targets."""
    shown_rows: set[object] = set()
    for test_set in scored_sets(measurements):
        gap_counts = values_of(test_set).reindex(columns=[GAP]).dropna().groupby(SYSTEM).size()
        systems = pd.MultiIndex.from_frame(test_set.rows[SYSTEM])
        shown_rows |= set(test_set.rows.index[systems.isin(gap_counts.index)])
    rows = gaps(measurements)
    return rows[~rows.index.isin(shown_rows)]


def trained_shares(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the counts with the trained share. Empty if all models trained all parameters."""
    if not (rows["trained"] < rows["parameters"]).any():
        return rows[:0]
    return rows.assign(percent=100 * rows["trained"] / rows["parameters"])


def data_runs(measurements: Measurements, kind: str, part: str) -> pd.DataFrame:
    """Return the rows of runs that make data, with the fields of the run and of its aligner or translator."""
    rows = measurements.raw(kind)
    if rows.empty:
        return rows
    facts = []
    for run in measurements.finished(kind):
        content = fields_of(run.record.run) if run.record else {}
        plain_fields = {name: value for name, value in content.items() if isinstance(value, str | int)}
        maker = fields_of(content.get(part) or {})
        settings = {f"{part}.{name}": value for name, value in maker.items() if name != "kind"}
        facts.append(
            {"run": run.id, **plain_fields, part: (content.get(part) or {}).get("kind", ""), **settings}
        )
    frame = pd.DataFrame(facts)
    frame["settings"] = distinguishing_names(
        frame, [name for name in list_columns(frame) if name.startswith(f"{part}.")] or [part]
    )
    frame = frame.rename(columns={"examples": "requested"}).sort_values("languages", kind="stable")
    return frame.merge(rows[["run", *rows.columns.difference(frame.columns, sort=False)]], on="run")


_FUNCTIONS: Mapping[str, Mapping[str, Any]] = {
    "transfer-gap": {"frame": unshown_gaps},
    "trained-parameters": {"choose": trained_shares},
}
"""Functions that build the frame of a table of ``summaries.toml``, or select its rows."""


SUMMARIES = summaries_of(Path(__file__).with_name("summaries.toml"), _FUNCTIONS)
