"""Scores as EuroEval's own records of results, for the datasets that it draws from corpora of the catalogue.

A line is one ``BenchmarkResult`` of EuroEval, of the fields that its version 17.7.0 reads and older ones
wrote (newer ones write Every Eval Ever). EuroEval draws at most 2,048 examples of a split, while ours are all
of it: a line is not one of EuroEval's own, and its ``euroeval_version`` is null.
"""

import json
from collections.abc import Iterator, Mapping
from math import sqrt
from typing import Any, NamedTuple

import pandas as pd

from isogloss.core import VERSION
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import slug

UNKNOWN = -1
"""EuroEval's number for what is not known of a model."""

NAMES = {"span_f1": ("micro_f1_no_misc", "micro_f1"), "f1": ("f1",), "em": ("em",)}
"""Our measures by EuroEval's names. No dataset below has names of kind MISC."""


class EuroEvalDataset(NamedTuple):
    """A dataset that EuroEval draws from a split of a corpus."""

    name: str
    """With ``{language}``."""
    task: str
    languages: str
    is_validation: bool = False


WIKIANN = ("wikiann-{language}", "named-entity-recognition", "be bs ca fo hr lt lv sq")
READING = "reading-comprehension"

DATASETS: Mapping[tuple[str, str, str], EuroEvalDataset] = {
    ("wikiann", "ner", "dev"): EuroEvalDataset(*WIKIANN, is_validation=True),
    ("wikiann", "ner", "test"): EuroEvalDataset(*WIKIANN),
    ("mlqa", "qa", "test"): EuroEvalDataset("mlqa-{language}", READING, "es"),
    ("squad", "qa", "dev"): EuroEvalDataset("squad", READING, "en"),
    ("squad", "qa", "test"): EuroEvalDataset("xquad-{language}", READING, "de en es"),
}
"""EuroEval's dataset by corpus, task and split.

EuroEval draws its SQuAD from the official dev. Our ``squad`` test is XQuAD. Two datasets are excluded: UNER,
whose test EuroEval fills up with training sentences, and Belebele, which it splits differently.
"""

RESULT = ("name", "source", "target", "corpus", "task", "inputs", "language", "split")


def euroeval(_: Measurements, scores: pd.DataFrame, organization: str) -> Iterator[tuple[str, str]]:
    """Yield one file: a line for each system on each dataset, with the scores of its seeds.

    A system's name begins with ``organization``, as on the hub.
    """
    lines = [
        json.dumps(_record(rows, dataset, organization), ensure_ascii=False)
        for _, rows in scores[scores["metric"].isin(list(NAMES))].groupby(list(RESULT), sort=False)
        if (dataset := _dataset(rows.iloc[0]))
    ]
    if lines:
        yield "euroeval_benchmark_results.jsonl", "\n".join(lines) + "\n"


def _dataset(row: "pd.Series[Any]") -> EuroEvalDataset | None:
    """Return the dataset of EuroEval that a score belongs to. None for scores on other data."""
    dataset = DATASETS.get((row["corpus"], row["task"], row["split"]))
    is_reported = dataset and row["language"] in dataset.languages.split() and not row["inputs"]
    return dataset if is_reported else None


def _record(rows: pd.DataFrame, dataset: EuroEvalDataset, organization: str) -> dict[str, object]:
    first_row = rows.iloc[0]
    raw = [
        {name: row["score"] for row in model_rows.to_dict("records") for name in NAMES[row["metric"]]}
        for _, model_rows in rows.groupby("model", sort=False)
    ]
    return {
        "dataset": dataset.name.format(language=first_row["language"]),
        "task": dataset.task,
        "languages": [first_row["language"]],
        "model": f"{organization}/{slug(first_row['name'], first_row['source'], first_row['target'])}",
        "results": {"raw": raw, "total": _total(pd.DataFrame(raw))},
        "num_model_parameters": UNKNOWN,
        "max_sequence_length": UNKNOWN,
        "vocabulary_size": UNKNOWN,
        "merge": False,
        "generative": False,
        "generative_type": None,
        "few_shot": None,
        "validation_split": dataset.is_validation,
        "euroeval_version": None,
        "isogloss_version": VERSION,
        "examples": int(first_row["examples"]),
    }


def _total(raw: pd.DataFrame) -> dict[str, float]:
    """Return each measure's mean over seeds in percent. Several seeds add 1.96 standard errors as _se."""
    means = {f"test_{name}": 100 * float(value) for name, value in raw.mean().items()}
    if len(raw) < 2:
        return means
    errors = raw.std(ddof=1) * 100 * 1.96 / sqrt(len(raw))
    return means | {f"test_{name}_se": float(value) for name, value in errors.items()}
