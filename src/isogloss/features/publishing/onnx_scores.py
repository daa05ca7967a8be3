"""Writing the ONNX files of an export, with the scores of the model before and after its rounding to int8."""

import json
from dataclasses import replace
from pathlib import Path

from isogloss.core.errors import ConfigError
from isogloss.core.records import Row
from isogloss.data.sources import Sources
from isogloss.features.publishing.onnx import write_int8, write_onnx
from isogloss.using.fine_tuned import FineTuned
from isogloss.using.scoring import EvaluateOptions, check_evaluation, evaluate

SCORES_FILE = "onnx.json"
"""File with the scores of the ONNX files of an export."""

COLUMNS = ("corpus", "language", "split", "metric", "score", "examples")


def check_scored(model: FineTuned, data: str) -> None:
    """Raise ConfigError or DataError if the dev split that int8 is scored on cannot be read."""
    options = _dev_split(model)
    check_evaluation(model, options, Sources(data))
    for language in options.languages:
        Sources(data).examples(options.corpus, language, "dev", treebanks=options.treebanks_of(language))


def write_onnx_files(model: FineTuned, folder: Path, *, int8: bool, data: str) -> list[Row]:
    """Write the ONNX file of an exported model, with ``int8`` also a rounded file, and return both scores.

    They are written to ``SCORES_FILE``, too.
    """
    exact = write_onnx(model, folder)
    if not int8:
        return []
    int8_model = write_int8(model, folder)
    options = _dev_split(model)
    rows: list[Row] = []
    for onnx_model in (exact, int8_model):
        scores = evaluate(replace(onnx_model, task=model.task), options, Sources(data))
        rows += [{"file": onnx_model.path.name, **{name: row[name] for name in COLUMNS}} for row in scores]
    text = json.dumps(rows, ensure_ascii=False, indent=1)
    (folder / SCORES_FILE).write_text(f"{text}\n", encoding="utf-8")
    return rows


def _dev_split(model: FineTuned) -> EvaluateOptions:
    """Return the dev split of a model's corpus, in its source languages or else its target languages.

    Raises ConfigError where they are not known.
    """
    provenance = model.provenance
    languages = provenance.source or provenance.target
    if not provenance.corpus or not languages:
        raise ConfigError(
            "--int8: the model does not name the corpus and language of its training, on whose dev split the "
            "score is measured before and after rounding. Remove --int8."
        )
    return EvaluateOptions(
        corpus=provenance.corpus,
        languages=languages,
        split="dev",
        treebanks=tuple(pair for pair in provenance.treebanks if pair[0] in languages),
    )
