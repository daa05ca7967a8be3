"""Scores in the forms in which others collect them: Every Eval Ever, EuroEval, the hub, JSON lines.

Built-in languages are data of isogloss: no form gives their scores the name of a real dataset.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from isogloss.core import VERSION
from isogloss.core.atomic_files import atomic_file, atomic_folder, writing
from isogloss.core.errors import ConfigError, check_named, plain
from isogloss.core.languages import is_built_in, language_name
from isogloss.data.corpora.catalogue import CORPORA
from isogloss.data.hub_splits import EVAL_RESULTS, ON_HUB, HubSplit, eval_result, hub_split
from isogloss.features.result_formats.euroeval import DATASETS, euroeval
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import name_systems

EVERY_EVAL_EVER = "0.3.0"
"""Version of the schema of Every Eval Ever."""

SIGNED = frozenset({"spearman", "pearson", "mcc"})
"""Measures from -1 to 1. All other measures are from 0 to 1."""

Json = dict[str, Any]

Form = Callable[[Measurements, pd.DataFrame, str], Iterator[tuple[str, str]]]
"""From measurements, their scores, and the name of who publishes them, to files: path and content."""


def every_eval_ever(
    measurements: Measurements, scores: pd.DataFrame, organization: str
) -> Iterator[tuple[str, str]]:
    """Yield a file for each model: an evaluation run of Every Eval Ever, a result for each score."""
    now = f"{time.time():.0f}"
    for model, rows in scores.groupby("model", sort=False):
        record = {
            "schema_version": EVERY_EVAL_EVER,
            "evaluation_id": f"isogloss/{model}/{now}",
            "retrieved_timestamp": now,
            "source_metadata": {
                "source_name": plain(measurements.title),
                "source_type": "evaluation_run",
                "source_organization_name": organization,
                "evaluator_relationship": "first_party",
            },
            "eval_library": {"name": "isogloss", "version": VERSION},
            "model_info": _model(rows.iloc[0]),
            "evaluation_results": [_result(row) for _, row in rows.iterrows()],
        }
        yield f"{model}.json", json.dumps(record, ensure_ascii=False, indent=1)


def hub(_: Measurements, scores: pd.DataFrame, __: str) -> Iterator[tuple[str, str]]:
    """Yield ``.eval_results`` of each model, for its repository: scores on datasets that the hub has.

    JSON is YAML.
    """
    own_inputs = scores[(scores["inputs"] == "") & scores["main"]]
    hub_rows = own_inputs.assign(
        dataset=pd.Series([_dataset(row) for _, row in own_inputs.iterrows()], own_inputs.index, dtype=object)
    )
    hub_rows = hub_rows[hub_rows["dataset"].notna()]
    for (model, corpus), rows in hub_rows.groupby(["model", "corpus"], sort=False):
        entries = [
            eval_result(
                row["dataset"],
                row["score"],
                f"{row['metric']}, {_split(row)}, {row['examples']} examples",
            )
            for _, row in rows.iterrows()
        ]
        yield f"{model}/{EVAL_RESULTS}/{corpus}.yaml", json.dumps(entries, ensure_ascii=False, indent=1)


def json_lines(_: Measurements, scores: pd.DataFrame, __: str) -> Iterator[tuple[str, str]]:
    """Yield one file: a line for each score, with the facts of its model."""
    lines = scores.assign(split=scores["split"].replace(ON_HUB)).to_json(
        orient="records", lines=True, force_ascii=False
    )
    yield "results.jsonl", lines


FORMS: Mapping[str, Form] = {
    "every-eval-ever": every_eval_ever,
    "hub": hub,
    "euroeval": euroeval,
    "json": json_lines,
}

NONE_TAKEN = {
    "hub": "The hub has none of these datasets.",
    "euroeval": "EuroEval reports none of these datasets. Of the catalogue it reports: "
    + "; ".join(
        f"{corpus} {split} in {', '.join(dataset.languages.split())}"
        for (corpus, _, split), dataset in DATASETS.items()
    )
    + ". Take every-eval-ever for others.",
}


def write_results(
    measurements: Measurements, form: str, folder: Path, *, organization: str = "unknown"
) -> list[Path]:
    """Write all scores in a form into a new folder and return its files.

    Raises ConfigError without a score.
    """
    check_named("results", "form", FORMS, form)
    if folder.exists():
        raise ConfigError(f"--to {folder}: it is there already. Name a new folder, or delete it.")
    scores = measurements.frame("scores")
    scores = name_systems(scores, measurements.display_names) if len(scores) else scores
    files = list(FORMS[form](measurements, scores, organization)) if len(scores) else []
    if not files:
        advice = NONE_TAKEN.get(form, "") if len(scores) else "Measure scores in the recipe."
        problem = f"results --as {form}: found no score that it takes among {len(scores)}."
        raise ConfigError(
            " ".join(part for part in (problem, advice, measurements.describe_unfinished()) if part)
        )
    with atomic_folder(folder.parent, folder.name) as new_folder:
        for name, text in files:
            with writing(new_folder / name), atomic_file(new_folder, name) as file:
                file.write(text)
    return [folder / name for name, _ in files]


def _model(row: "pd.Series[Any]") -> Json:
    facts = ("method", "encoder.label", "task", "source", "target", "seed")
    details = {name: str(row[name]) for name in facts if name in row and str(row[name])}
    return {
        "name": plain(f"{row['system']}, seed {row['seed']}"),
        "id": f"isogloss/{row['model']}",
        "additional_details": {
            "deployment_type": "self_deployed",
            "model_availability": "unknown",
            **details,
        },
    }


def _result(row: "pd.Series[Any]") -> Json:
    split = _split(row)
    measure = str(row["metric"])
    details = {"split": split} | {name: row[name] for name in ("language", "baseline", "inputs", "treebank")}
    return {
        "evaluation_name": f"{row['corpus']} {row['task']}, {language_name(row['language'])}",
        "source_data": _source(row, split),
        "metric_config": {
            "metric_id": measure,
            "metric_name": measure,
            "lower_is_better": False,
            "score_type": "continuous",
            "min_score": -1 if measure in SIGNED else 0,
            "max_score": 1,
            "metric_unit": "proportion",
        },
        "score_details": {
            "score": float(row["score"]),
            "details": {name: str(value) for name, value in details.items() if str(value) not in ("", "nan")},
            "uncertainty": {"num_samples": int(row["examples"])},
        },
    }


def _split(row: "pd.Series[Any]") -> str:
    return ON_HUB.get(str(row["split"]), str(row["split"]))


def _source(row: "pd.Series[Any]", split: str) -> Json:
    corpus = CORPORA.get(str(row["corpus"]).partition(":")[0])
    if is_built_in(row["language"]):
        return {"dataset_name": f"isogloss built-in languages: {row['corpus']}", "source_type": "other"}
    if (dataset := _dataset(row)) is not None:
        return {
            "dataset_name": str(row["corpus"]),
            "source_type": "hf_dataset",
            "hf_repo": dataset.repository,
            "hf_split": {"validation": "val"}.get(split, split),
        }
    if corpus is not None and corpus.about.url:
        return {"dataset_name": str(row["corpus"]), "source_type": "url", "url": [corpus.about.url]}
    return {"dataset_name": str(row["corpus"]), "source_type": "other"}


def _dataset(row: "pd.Series[Any]") -> HubSplit | None:
    """Return the split on the hub that a score belongs to. None for scores on other data."""
    return hub_split(row["corpus"], row["language"], row["split"], row["treebank"])
