"""Scoring a saved model on any corpus that has its task's labels, beside what no model at all would score."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from isogloss.core.atomic_files import atomic_file
from isogloss.core.errors import ConfigError, DataError, unknown_name
from isogloss.core.languages import check_language
from isogloss.core.progress import OnProgress, Progress, no_progress
from isogloss.core.records import Row, Value
from isogloss.data.corpora import SPLITS, Split
from isogloss.data.examples import Example
from isogloss.data.sources import Sources, Treebanks
from isogloss.tasks import all_measures
from isogloss.training.evaluation import (
    ORIGINAL_INPUTS,
    PAIRED,
    Evaluation,
    check_inputs,
    codes_read,
    examples_of,
    language_read,
)
from isogloss.using.fine_tuned import FineTuned
from isogloss.using.formats import Entry, Prediction
from isogloss.using.translations import Warn, python_warning


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions:
    """What models are scored on."""

    corpus: str
    languages: tuple[str, ...]
    split: str = "test"
    treebanks: Treebanks = ()
    inputs: str = ORIGINAL_INPUTS
    """How target inputs come, as in recipes: as they are, translated, paired (to models that mix), mixed."""

    def __post_init__(self) -> None:
        for language in self.languages:
            for code in language.split("-"):  # A pair, as in en-sw, is one of two languages together.
                check_language(code, "--language")
        if self.split not in SPLITS:
            raise unknown_name("--split", "split", self.split, SPLITS)


def evaluate(
    model: FineTuned,
    options: EvaluateOptions,
    sources: Sources,
    *,
    predictions: Path | None = None,
    on_progress: OnProgress = no_progress,
    warn: Warn = python_warning,
) -> list[Row]:
    """Return a row of measures for each language; what was predicted goes into ``predictions``.

    ConfigError when the corpus has no labels of the model's task, or the model cannot take such inputs;
    DataError when the corpus has not the split.
    """
    check_evaluation(model, options, sources)
    rows: list[Row] = []
    for done, language in enumerate(options.languages):
        on_progress(Progress(f"scoring {model.provenance.run}", done, len(options.languages), language))
        prepared, warnings = _prepared(model, options, sources, language)
        examples, predicted = prepared.examples, prepared.predict(model.network)
        row = _row(model, options, language, all_measures(model.task, prepared.gold, predicted))
        baseline = _baseline(model, options, sources, language, examples)
        rows.append(row | {"baseline": baseline, "examples": len(examples)})
        for warning in warnings:
            warn(f"{language}: {warning}")
        if predictions is not None:
            folder = predictions / model.provenance.run / options.inputs
            write_predictions(model, options, language, examples, predicted, folder)
    on_progress(Progress(f"scoring {model.provenance.run}", len(options.languages), len(options.languages)))
    _warn_of_unmixed(model, options, warn)
    return rows


def check_evaluation(model: FineTuned, options: EvaluateOptions, sources: Sources) -> None:
    """Raise ConfigError where a model cannot be scored as the options say."""
    sources.needs(options.corpus, model.task.name)
    check_inputs(options.inputs, model.task.name, "--inputs")
    if options.inputs and not model.provenance.source:
        raise ConfigError(
            f"--inputs {options.inputs}: the record of {model.provenance.run} names no source language to "
            f"translate into. Leave --inputs away."
        )
    if options.inputs == PAIRED:
        model.check_mixes(f"--inputs {PAIRED}")
    model.check_languages(_read(model, options, language) for language in options.languages)


def _warn_of_unmixed(model: FineTuned, options: EvaluateOptions, warn: Warn) -> None:
    if (
        model.mixup is not None
        and not options.inputs
        and set(options.languages) - set(model.provenance.source)
    ):
        warn(
            f"{model.provenance.run} mixes each input with its translation into {model.into}, and was scored "
            f"unmixed. Score it as it was meant to be used: --inputs {PAIRED}."
        )


def _prepared(
    model: FineTuned, options: EvaluateOptions, sources: Sources, language: str
) -> tuple[Evaluation, tuple[str, ...]]:
    """Encode a language's examples, with their inputs as they are wanted; warn of what these lack."""
    source = model.provenance.source
    read = partial(_examples, sources, options)
    examples = examples_of(_own_inputs(options), language, source, read)
    spoken = _read(model, options, language)
    _, *translations = codes_read(PAIRED, language, source) if options.inputs == PAIRED else (language,)
    if not translations:
        return model.prepared(examples, language=spoken), ()
    paired = model.prepared_by_id(examples, read(translations[0]), language=spoken)
    return paired, paired.warnings


def _read(model: FineTuned, options: EvaluateOptions, language: str) -> str:
    """Return the language, pair or both languages that the model reads as a language's inputs."""
    return language_read(_own_inputs(options), language, model.provenance.source)


def _own_inputs(options: EvaluateOptions) -> str:
    """Return how inputs come, their translations beside them aside."""
    return ORIGINAL_INPUTS if options.inputs == PAIRED else options.inputs


def write_predictions(
    model: FineTuned,
    options: EvaluateOptions,
    language: str,
    examples: Sequence[Example],
    predicted: Sequence[Any],
    folder: Path,
) -> Path:
    """Write examples with the predicted labels as the corpus's own files are, and return the file."""
    corpus = Sources().corpus(options.corpus, options.treebanks)
    path = folder / corpus.path(language, cast(Split, options.split))
    answered = model.kind.answered
    lines: Iterable[str]
    if answered is not None:
        lines = corpus.write(map(answered, examples, predicted), language)
    else:
        lines = _as_answers(model, examples, predicted)
    with atomic_file(path) as file:
        file.writelines(f"{line}\n" for line in lines)
    return path


def _as_answers(model: FineTuned, examples: Iterable[Example], predicted: Iterable[Any]) -> Iterable[str]:
    """Write answers in the format that the kind's own files are answered in."""
    write = next(one.write for one in model.kind.formats if one.write is not None)
    entries = (
        (Entry(lines=(), example=one), Prediction(answer))
        for one, answer in zip(examples, predicted, strict=True)
    )
    return write(entries)


def _row(
    model: FineTuned, options: EvaluateOptions, language: str, measures: dict[str, float]
) -> dict[str, Value]:
    metric, *_ = measures
    return {
        "run": model.provenance.run,
        "task": model.task.name,
        "method": model.provenance.method,
        "corpus": f"{options.corpus} {options.inputs}".rstrip(),
        "language": language,
        "split": options.split,
        "metric": metric,
        "score": measures[metric],
        **{name: value for name, value in measures.items() if name != metric},
    }


def _baseline(
    model: FineTuned, options: EvaluateOptions, sources: Sources, language: str, examples: Sequence[Example]
) -> float | None:
    """Score the commonest label of the corpus's train split: in the model's training languages, else here.

    None where the corpus has neither.
    """
    of_model = model.provenance.treebanks if model.provenance.corpus == options.corpus else ()
    train = replace(
        options, split="train", treebanks=tuple({**dict(of_model), **dict(options.treebanks)}.items())
    )
    for codes in (model.provenance.languages, (language,)):
        there = [code for code in codes if _is_there(sources, train, code)]
        seen = [one for code in there for one in _examples(sources, train, code, model.provenance.examples)]
        if seen:
            return model.task.majority(seen, examples)
    return None


def _is_there(sources: Sources, options: EvaluateOptions, language: str) -> bool:
    """Tell whether the split has files; what is wrong with them is said when they are read."""
    try:
        sources.fingerprint(
            options.corpus, language, cast(Split, options.split), treebanks=_of(options, language)
        )
    except DataError:
        return False
    return True


def _examples(sources: Sources, options: EvaluateOptions, language: str, count: int = 0) -> list[Example]:
    split = cast(Split, options.split)
    treebanks = _of(options, language)
    return sources.examples(options.corpus, language, split, treebanks=treebanks, examples=count)


def _of(options: EvaluateOptions, language: str) -> Treebanks:
    return tuple(pair for pair in options.treebanks if pair[0] == language)
