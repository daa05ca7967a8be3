"""Scoring a saved model, and the majority baseline, on any corpus that has labels of its task."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from isogloss.core.atomic_files import atomic_file
from isogloss.core.errors import ConfigError, DataError, add_location, check_named, one_line
from isogloss.core.languages import check_language
from isogloss.core.plug_ins import package_of
from isogloss.core.progress import OnProgress, no_progress, one_by_one
from isogloss.core.records import Row, Value
from isogloss.data.corpora.own import OwnCorpus
from isogloss.data.corpus import SPLITS, Corpus, Split
from isogloss.data.examples import Example, ParsedSentence, TaggedSentence, is_labelled
from isogloss.data.formats.corpus_kinds import parts_of
from isogloss.data.sources import Sources, Treebanks
from isogloss.encoders.mixup import LINKS_NEEDED
from isogloss.tasks.encoded_examples import EncodedExamples
from isogloss.tasks.inputs import (
    ORIGINAL_INPUTS,
    PAIRED,
    check_inputs,
    codes_read,
    examples_of,
    language_read,
)
from isogloss.tasks.lemmas import Lemmatization
from isogloss.tasks.task import all_measures
from isogloss.using.fine_tuned import FineTuned
from isogloss.using.formats import FileEntry, Prediction
from isogloss.using.predicting import Warn, python_warning
from isogloss.using.predictor import Predictor
from isogloss.using.provenance import fitting_task


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions:
    """The corpus, languages and inputs that models are scored on."""

    corpus: str
    languages: tuple[str, ...]
    split: str = "test"
    treebanks: Treebanks = ()
    inputs: str = ORIGINAL_INPUTS
    """Form of target inputs, as in recipes: original, translated, paired (for models that mix), mixed."""

    def __post_init__(self) -> None:
        if not self.languages:
            raise ConfigError("--language: no language is given. Name some, as in --language de,fr.")
        for language in self.languages:
            for part in language.split("-"):  # A pair, as in en-sw, is one of two languages together.
                check_language(part, "--language")
        check_named("--split", "split", SPLITS, self.split)

    def check_treebanks(self) -> None:
        """Raise ConfigError for a treebank that is not read. Translated inputs read the source's treebank."""
        languages = [language for language, _ in self.treebanks]
        for language in languages:
            if languages.count(language) > 1:
                raise ConfigError(f"--treebank {language}: it occurs twice. Give it once.")
            if self.inputs == ORIGINAL_INPUTS and language not in self.languages:
                raise ConfigError(
                    f"--treebank {language}: {language} is not scored, only {', '.join(self.languages)}. "
                    f"Remove it, or name it by --language."
                )

    @property
    def unpaired_inputs(self) -> str:
        """The form of inputs, disregarding translations paired with them."""
        return ORIGINAL_INPUTS if self.inputs == PAIRED else self.inputs

    def treebanks_of(self, language: str) -> Treebanks:
        """Return the treebank of a language, if one is named."""
        return tuple(pair for pair in self.treebanks if pair[0] == language)


def evaluate(
    model: Predictor,
    options: EvaluateOptions,
    sources: Sources,
    *,
    predictions: Path | None = None,
    on_progress: OnProgress = no_progress,
    warn: Warn = python_warning,
) -> list[Row]:
    """Return a row of measures for each language. ``predictions`` is a folder to write predicted labels to.

    ConfigError if the corpus has no labels of the model's task, or the model cannot take such inputs;
    DataError if the corpus does not have the split.
    """
    check_evaluation(model, options, sources, predictions)
    model = model.solving(fitting_task(model.task, options.corpus, sources))
    rows: list[Row] = []
    activity = f"scoring {model.provenance.run}"
    for language in one_by_one(options.languages, activity, on_progress, str):
        encoded_examples, warnings = _prepare_language(model, options, sources, language)
        encoded_examples = replace(encoded_examples, on_progress=on_progress)
        examples = encoded_examples.examples
        if not any(is_labelled(example) for example in examples):
            raise DataError(
                f"{options.corpus} {language} {options.split}: no labels, so no score. Choose another split "
                f"or language, or predict (isogloss predict)."
            )
        if predictions is not None:
            _check_written(model, options, language, examples)
        answers = model.answers_of(encoded_examples)
        facts = {
            "corpus": f"{options.corpus} {options.inputs}".rstrip(),
            "language": language,
            "split": options.split,
        }
        row = _row(model, facts, all_measures(model.task, encoded_examples.gold, answers))
        baseline = _baseline(model, options, sources, language, examples)
        rows.append(row | {"baseline": baseline, "examples": len(examples)})
        for warning in warnings:
            warn(f"{language}: {warning}")
        if predictions is not None:
            folder = predictions / model.provenance.run / options.inputs
            write_predictions(model, options, language, examples, answers, folder)
    is_unmixed = model.mixup is not None and not options.inputs
    if is_unmixed and set(options.languages) - set(model.provenance.source):
        warn(
            f"{model.provenance.run} mixes each input with its translation into {model.into}, and was scored "
            f"unmixed. Score it with translations: --inputs {PAIRED}."
        )
    return rows


def evaluate_examples(model: Predictor, examples: Sequence[Example], language: str = "") -> list[Row]:
    """Return a row of measures on labelled examples that do not belong to a corpus.

    DataError without an example, and for one without a label.
    """
    if not examples:
        raise DataError("examples: none. Give at least one, with its label.")
    for index, example in enumerate(examples):
        if not is_labelled(example):
            raise DataError(f"example {index}: no label, so no score. Add its label, or predict.")
    encoded_examples = model.prepare(examples, language=language)
    answers = model.answers_of(encoded_examples)
    facts = {"corpus": "", "language": language, "split": ""}
    row = _row(model, facts, all_measures(model.task, encoded_examples.gold, answers))
    return [row | {"baseline": None, "examples": len(examples)}]


def _check_written(
    model: Predictor, options: EvaluateOptions, language: str, examples: Sequence[Example]
) -> None:
    """Raise ConfigError for a task of a plug-in whose answers its corpus cannot write."""
    if not package_of(type(model.task).encode.__module__):
        return
    try:
        with TemporaryDirectory() as folder:
            gold = model.task.gold(examples[:1])
            write_predictions(model, options, language, examples[:1], gold, Path(folder))
    except Exception as error:  # Whatever the code of others raises.
        raise ConfigError(
            f"--predictions: answers of task {model.task.name} to a {type(examples[0]).__name__} cannot be "
            f"written ({one_line(error)}). Remove --predictions."
        ) from error


def check_evaluation(
    model: Predictor, options: EvaluateOptions, sources: Sources, predictions: Path | None = None
) -> None:
    """Raise an error if a model cannot be scored as the options request, or predictions cannot be written."""
    options.check_treebanks()
    if predictions is not None:
        with add_location("--predictions"):
            for language in options.languages:
                _predictions_path(options, language)
    task = fitting_task(model.task, options.corpus, sources)
    with add_location("--inputs"):
        check_inputs(options.inputs, task.name)
    if options.inputs and not model.provenance.source:
        raise ConfigError(
            f"--inputs {options.inputs}: the record of {model.provenance.run} names no source language to "
            f"translate into. Remove --inputs."
        )
    if options.inputs == PAIRED and model.check_mixes(f"--inputs {PAIRED}").attends == "links":
        raise ConfigError(
            f"--inputs {PAIRED}: {LINKS_NEEDED}, and translations of a corpus have no word links. Score it "
            f'in a recipe ([[measure]] name = "scores", inputs = "{PAIRED}"), in Python, with translations '
            f"that have links (TaggedSentence.links), or remove --inputs."
        )
    model.check_languages(
        language_read(options.unpaired_inputs, language, model.provenance.source)
        for language in options.languages
    )


def _prepare_language(
    model: Predictor, options: EvaluateOptions, sources: Sources, language: str
) -> tuple[EncodedExamples, tuple[str, ...]]:
    """Read and encode a language's examples in the requested form. Also return warnings."""
    source = model.provenance.source
    read = partial(_examples, sources, options)
    examples = examples_of(options.unpaired_inputs, language, source, read)
    active = language_read(options.unpaired_inputs, language, source)
    _, *translations = codes_read(PAIRED, language, source) if options.inputs == PAIRED else (language,)
    if not translations:
        return model.prepare(examples, language=active), ()
    paired_examples = cast(FineTuned, model).prepare_by_id(examples, read(translations[0]), language=active)
    return paired_examples, paired_examples.warnings


def write_predictions(
    model: Predictor,
    options: EvaluateOptions,
    language: str,
    examples: Sequence[Example],
    answers: Sequence[object],
    folder: Path,
) -> Path:
    """Write examples with the predicted labels in the corpus's own format, and return the file.

    Answers to questions are written in the format of their files. JSON lines with predicted and gold labels,
    for ``isogloss compare``, are written in the same folder (only these for a described corpus, none for
    trees).
    """
    corpus, name = _predictions_path(options, language)
    path = folder / name
    fill_answer = model.kind.answered
    lines: Iterable[str] = ()
    if fill_answer is not None:
        lines = corpus.write(map(fill_answer, examples, answers), language)
    else:
        write = next(format_.write for format_ in model.kind.formats if format_.write is not None)
        entries = (FileEntry(lines=(), example=example) for example in examples)
        lines = write(zip(entries, (Prediction(label) for label in answers), strict=True))
    if not isinstance(corpus, OwnCorpus):
        _write_lines(path, lines)
    if model.task.labels_are != "tree":
        labels = corpus.labels if isinstance(corpus, OwnCorpus) else ()
        task = {"task": model.task.name} if isinstance(model.task, Lemmatization) else {}
        comparisons = (
            {
                "id": example.id,
                "language": language,
                **_compare_answer(fill_answer, example, answer, labels),
                **task,
            }
            for example, answer in zip(examples, answers, strict=True)
        )
        _write_lines(
            path.with_suffix(".jsonl"), (json.dumps(body, ensure_ascii=False) for body in comparisons)
        )
    return path


def _predictions_path(options: EvaluateOptions, language: str) -> tuple[Corpus, str]:
    corpus = Sources().corpus(options.corpus, options.treebanks)
    return corpus, corpus.path(language, cast(Split, options.split))


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with atomic_file(path.parent, path.name) as file:
        file.writelines(f"{line}\n" for line in lines)


def _compare_answer(
    fill_answer: Callable[[Any, Any], Example] | None, example: Example, answer: object, labels: Sequence[str]
) -> dict[str, object]:
    """Return the parts of an example with the predicted answer, and the gold answer."""
    if isinstance(example, ParsedSentence):
        example = TaggedSentence(id=example.id, words=example.words, tags=example.tags)
    gold = parts_of(example, labels)
    if fill_answer is None:
        rules = {"rules": "mlqa"} if getattr(example, "language", "") else {}
        golds = [text for _, text in getattr(example, "answers", ())]
        return {**gold, "answer": answer, "gold": golds, **rules}
    return {**parts_of(fill_answer(example, answer), labels), "gold": gold.get("labels", gold.get("label"))}


def _row(model: Predictor, facts: Mapping[str, str], measures: Mapping[str, float]) -> dict[str, Value]:
    """Return measures with the scored model, corpus, language and split."""
    metric, *_ = measures
    return {
        "run": model.provenance.run,
        "task": model.task.name,
        "method": model.provenance.method,
        **facts,
        "metric": metric,
        "score": measures[metric],
        **{name: value for name, value in measures.items() if name != metric},
    }


def _baseline(
    model: Predictor, options: EvaluateOptions, sources: Sources, language: str, examples: Sequence[Example]
) -> float | None:
    """Return the score of the majority label of the corpus's train split, if it has one.

    The split is in the model's training languages, or else in this language.
    """
    model_treebanks = model.provenance.treebanks if model.provenance.corpus == options.corpus else ()
    train = replace(
        options, split="train", treebanks=tuple({**dict(model_treebanks), **dict(options.treebanks)}.items())
    )
    for codes in (model.provenance.languages, (language,)):
        trained_on = [
            example
            for name in codes
            if _exists(sources, train, name)
            for example in _examples(sources, train, name, model.provenance.examples)
        ]
        if trained_on:
            return model.task.majority(trained_on, examples)
    return None


def _exists(sources: Sources, options: EvaluateOptions, language: str) -> bool:
    split = cast(Split, options.split)
    try:
        sources.fingerprint(options.corpus, language, split, treebanks=options.treebanks_of(language))
    except DataError:
        return False
    return True


def _examples(sources: Sources, options: EvaluateOptions, language: str, count: int = 0) -> list[Example]:
    split, treebanks = cast(Split, options.split), options.treebanks_of(language)
    return sources.examples(options.corpus, language, split, treebanks=treebanks, examples=count)
