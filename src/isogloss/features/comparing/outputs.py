"""Outputs of a file or a list: an answer, the gold answer, their task, contributions to measures.

The task follows from the labels: texts, whole numbers and truth values are classes, and fractions are
numbers. Several labels of a text are a set. Labels of words are tags, which mark spans in one of the schemes
of ``core.tag_schemes`` or label each word. Lemmas look like labels of words: a file states them by its key
``task``. If labels fit two tasks, the named measure decides; without a measure an error lists the measures to
name. A task is never guessed.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from sys import float_info
from typing import Any, Protocol, TypeGuard

from isogloss.core.errors import ConfigError, DataError, check_named, unknown_name
from isogloss.core.rows.models import ByMeasure, Contributions
from isogloss.core.tag_schemes import (
    NO_SCHEME,
    NO_TAG,
    OUTSIDE,
    PLAIN_BIO,
    WORDS,
    TagCounts,
    TagScheme,
    as_bio,
    find_misfit,
)
from isogloss.data.formats.conllu import UPOS
from isogloss.data.lemma_rules import NO_LEMMA
from isogloss.metrics.labels import (
    chunk_contributions,
    class_contributions,
    label_set_contributions,
    lemma_contributions,
    span_contributions,
    word_contributions,
)
from isogloss.metrics.ranks import correlation_contributions
from isogloss.metrics.texts import (
    GoldAnswers,
    answer_f1_contributions,
    exact_match_contributions,
    has_own_rules,
)

ANSWERS = {
    "labels": "a list of texts or whole numbers",
    "label": "a text, a number, a truth value, or a list of texts or whole numbers",
    "answer": "a text",
}
"""The keys of an answer and their values: for words, for a text or a pair, for a question."""

SAMPLE = "doc_id"
"""The key that identifies a sample of lm-evaluation-harness."""

CLASSIFICATION = "classification"
MULTI_LABEL = "multi-label-classification"
REGRESSION = "regression"
WORD_TAGGING = "word-tagging"
SPAN_TAGGING = "span-tagging"
LEMMAS = "lemmas"
QA = "qa"
MLQA = "mlqa"
"""The rules of MLQA's script, which a file of answers may state."""

VALUES = "values"
"""The task of outputs that are values of a measure, one number for each example."""

OF_CLASSES = ("accuracy", "macro_f1", "weighted_f1", "mcc", "micro_f1")

MEASURES: Mapping[str, tuple[str, ...]] = {
    CLASSIFICATION: OF_CLASSES,
    MULTI_LABEL: ("micro_f1", "macro_f1", "weighted_f1", "exact_match"),
    REGRESSION: ("spearman", "pearson"),
    WORD_TAGGING: (*OF_CLASSES, "seqeval_f1"),
    SPAN_TAGGING: ("span_f1", "word_f1", "micro_f1", "accuracy"),
    LEMMAS: ("accuracy",),
    QA: ("f1", "em", "mlqa_f1", "mlqa_em"),
}
"""The measures of each task whose labels are compared."""

MARKS = "marks"
"""A list of 0 and 1 for each text, a mark for each label, as scikit-learn has several labels of a text."""

IGNORED = -100
"""The label of words that transformers does not train on."""

_SPAN_TAG = re.compile(r"[BIESLUMW](-\S+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleOutput:
    """One line of a file, or one item of a list: an example and its answer."""

    line: int
    id: str
    """Empty where the line has none."""
    language: str
    """Empty where the line has none."""
    kind: str
    """The key of its answer, or ``doc_id``."""
    answer: Any = None
    gold: Any = None
    of_options: bool = False
    task: str = ""
    """The task that its file states. Empty if it states none."""
    rules: str = ""
    """The rules by which its file compares answers. Default: SQuAD's."""
    document: str = ""
    """A digest of a sample's example. Empty if it has none."""
    values: Mapping[str, float] | None = None
    """Value of each metric (samples only)."""


class Origin(Protocol):
    """Source of outputs: a file, or lists."""

    @property
    def name(self) -> str:
        """Its name in messages."""

    def broken(self, line_number: int, problem: str, expected: str, advice: str = ...) -> DataError:
        """Build the error for an output, by its number."""


@dataclass(frozen=True, slots=True)
class OutputTask:
    """A task of outputs, and how their labels are written."""

    name: str
    scheme: TagScheme = NO_SCHEME
    """The scheme of the tags of spans."""
    has_marks: bool = False
    """Whether each text has a mark for each label (``MARKS``)."""


Side = tuple[Origin, Sequence[ExampleOutput]]


def is_answer(kind: str, value: object) -> bool:
    """Return whether a value is of the type that a key of ``ANSWERS`` has."""
    texts = isinstance(value, list) and (
        all(isinstance(label, str) for label in value) or all(_is_whole(label) for label in value)
    )
    text = isinstance(value, str)
    one_label = text or is_number(value) or isinstance(value, bool)
    return {"labels": texts, "label": texts or one_label, "answer": text}[kind]


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a finite number. Truth values are not numbers."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= float_info.max


def _is_whole(value: object) -> bool:
    """Return whether a value is a whole number or a truth value."""
    return isinstance(value, int)


def task_of(sides: Sequence[Side], *, measure: str = "", task: str = "") -> OutputTask:
    """Return the task of outputs of several systems on the same examples.

    ``measure`` and ``task`` decide if labels fit several tasks. If empty, the labels decide. Raises
    DataError, with the place, for labels of mixed types. Raises ConfigError if the task stays ambiguous, and
    for a task or a measure that does not fit.
    """
    kind = _kind_of_all(sides)
    if kind == "labels" and any(output.task == LEMMAS for _, output in _outputs(sides)):
        task = task or LEMMAS
    if kind == SAMPLE:
        return OutputTask(VALUES)
    if task:
        check_named("compare", "task", list(MEASURES), task)
    for origin, output in _outputs(sides):
        _check_gold(origin, output)
    if kind == "answer":
        return _fitting(QA, sides, task)
    return _task_of_words(sides, measure, task) if kind == "labels" else _task_of_texts(sides, measure, task)


def named_measure(where: str, subject: str, measure: str, measures: Sequence[str], task: str) -> str:
    """Return the named measure, or the main measure.

    Raises ConfigError for one that the task does not have.
    """
    if measure in measures or not measure:
        return measure or measures[0]
    class_measures = [name for name in measures if name.endswith("_f1")]
    if measure == "f1" and class_measures:
        raise ConfigError(
            f"{where}: f1 of {task} is one of {', '.join(class_measures)}. Name that. (f1 by itself is the "
            f"overlap of words in answers to questions, task {QA}.)"
        )
    raise unknown_name(where, subject, measure, measures)


def measures_of(origin: Origin, outputs: Sequence[ExampleOutput], task: OutputTask) -> ByMeasure:
    """Return the contribution of each example to each measure of a task, the main one first."""
    if task.name == VALUES:
        return _measure_samples([output.values or {} for output in outputs])
    if task.name == QA:
        return _measure_answers(outputs)
    if task.name == LEMMAS:
        gold, answers = ([getattr(output, side) for output in outputs] for side in ("gold", "answer"))
        return {"accuracy": lemma_contributions(gold, answers, NO_LEMMA)}
    if task.name == SPAN_TAGGING:
        return _measure_spans(origin, outputs, task.scheme)
    return _measure_labels([output.gold for output in outputs], [output.answer for output in outputs], task)


def _measure_labels(gold: Sequence[Any], answers: Sequence[Any], task: OutputTask) -> ByMeasure:
    if task.name == REGRESSION:
        return correlation_contributions(
            [float(label) for label in gold], [float(label) for label in answers]
        )
    if task.name == MULTI_LABEL:
        if task.has_marks:
            return label_set_contributions(_list_marked(gold), _list_marked(answers), range(len(gold[0])))
        return label_set_contributions(gold, answers, sorted({*_all(gold), *_all(answers)}))
    if task.name == CLASSIFICATION:
        return _measure_classes([(label,) for label in gold], [(label,) for label in answers])
    return _measure_words(gold, answers)


def _kind_of_all(sides: Sequence[Side]) -> str:
    for origin, outputs in sides:
        kinds = sorted({output.kind for output in outputs})
        if len(kinds) > 1:
            raise ConfigError(f"{origin.name}: its lines have {' and '.join(kinds)}. Give one kind a file.")
    return next(_outputs(sides))[1].kind


def _outputs(sides: Sequence[Side]) -> Iterator[tuple[Origin, ExampleOutput]]:
    for origin, outputs in sides:
        for output in outputs:
            yield origin, output


def _task_of_texts(sides: Sequence[Side], measure: str, task: str) -> OutputTask:
    """Decide among one class, several labels and a number for each text."""
    _, first_output = next(_outputs(sides))
    family = _family(first_output.gold)
    for origin, output in _outputs(sides):
        if _family(output.gold) != family:
            raise origin.broken(
                output.line, f"gold {output.gold!r:.60}", f"what is like {first_output.gold!r:.60}"
            )
    if family == "number":
        return _task_of_numbers(sides, measure, task)
    if family == "text":
        _check_no_tags(sides, task)
    return _fitting(MULTI_LABEL if family == "list" else CLASSIFICATION, sides, task)


def _fitting(task_found: str, sides: Sequence[Side], task: str) -> OutputTask:
    """Return the task that the outputs show. Raises ConfigError if a different task is named."""
    if task and task != task_found:
        origin, output = next(_outputs(sides))
        raise ConfigError(
            f"{origin.name}: gold {output.gold!r:.60} and answer {output.answer!r:.60} are of task "
            f"{task_found}, not {task}. Name {task_found}, or give such labels."
        )
    return OutputTask(task_found)


def _is_no_bool(label: object) -> bool:
    return not isinstance(label, bool)


def _task_of_numbers(sides: Sequence[Side], measure: str, task: str) -> OutputTask:
    """Decide between classes and numbers: whole numbers and truth values are classes, fractions numbers."""
    _check_truth_values(sides)
    tasks = (name for name in (REGRESSION, CLASSIFICATION) if measure in MEASURES[name])
    number_task = task or next(tasks, "") or _task_by_numbers(sides)
    if number_task == REGRESSION:
        _check_each(sides, _is_no_bool, "a number, and no truth value")
        return OutputTask(REGRESSION)
    if number_task == CLASSIFICATION:
        expected_label = f"a class, which is a whole number (and not {IGNORED}, which transformers ignores)"
        _check_each(sides, lambda label: not _is_fraction(label) and label != IGNORED, expected_label)
        return OutputTask(CLASSIFICATION)
    return _fitting(CLASSIFICATION, sides, task)


def _task_by_numbers(sides: Sequence[Side]) -> str:
    """Return the task determined by only the labels.

    Raises ConfigError if they fit several tasks.
    """
    gold, answers = ([getattr(output, side) for _, output in _outputs(sides)] for side in ("gold", "answer"))
    if all(_is_whole(label) for label in (*gold, *answers)):
        return CLASSIFICATION
    fractions = any(_is_fraction(label) for label in gold)
    if fractions or (
        any(_is_fraction(label) for label in answers) and not any(_is_whole(label) for label in gold)
    ):
        return REGRESSION
    origin, output = next(
        (origin, output)
        for origin, output in _outputs(sides)
        if not (_is_whole(output.gold) and _is_whole(output.answer))
    )
    raise ConfigError(
        f"{origin.name}: gold {output.gold!r} and answer {output.answer!r}: classes or numbers? Name the "
        f"measure: accuracy for classes (as whole numbers), spearman for numbers."
    )


def _is_fraction(label: float) -> bool:
    return isinstance(label, float) and not label.is_integer()


def _is_mark(label: object) -> bool:
    return label in (0, 1)


def _check_truth_values(sides: Sequence[Side]) -> None:
    labels = [label for _, output in _outputs(sides) for label in (output.gold, output.answer)]
    if any(isinstance(label, bool) for label in labels):
        _check_each(sides, _is_mark, "True or False, as other labels are")


def _check_each(sides: Sequence[Side], fits: Callable[[float], bool], expectation: str) -> None:
    for origin, output in _outputs(sides):
        for kind, label in (("gold", output.gold), (output.kind, output.answer)):
            if not fits(label):
                raise origin.broken(output.line, f"{kind} {label!r}", expectation)


def _check_no_tags(sides: Sequence[Side], task: str) -> None:
    """Raise ConfigError where texts look like the tags of words in one text each."""
    gold = [output.gold for _, output in _outputs(sides)]
    parts = [text.split() for text in gold]
    tags = {tag for text_tags in parts for tag in text_tags}
    several = any(len(text_tags) > 1 for text_tags in parts)
    spans = tags != {OUTSIDE} and all(tag == OUTSIDE or _SPAN_TAG.fullmatch(tag) for tag in tags)
    if not task and several and (spans or tags <= UPOS):
        origin, output = next(_outputs(sides))
        raise ConfigError(
            f"{origin.name}: gold {output.gold!r:.60} looks like the tags of several words in one text. Give "
            f"a list of tags for each sentence (text.split()), or name the task {CLASSIFICATION}."
        )


def _task_of_words(sides: Sequence[Side], measure: str, task: str) -> OutputTask:
    """Decide among labels of words, spans of words, and labels of a text that are written as a list."""
    gold = [output.gold for _, output in _outputs(sides)]
    _check_alike(sides)
    marks = _are_marks(sides)
    if task == MULTI_LABEL or (not task and measure == "exact_match"):
        return OutputTask(MULTI_LABEL, has_marks=marks)
    for origin, output in _outputs(sides):
        _check_tags(origin, output)
    labels = {label for tags in gold for label in tags}
    if all(_is_whole(label) for label in labels):
        if marks and not task:
            origin, output = next(_outputs(sides))
            raise ConfigError(
                f"{origin.name}: gold {output.gold!r:.60}: labels of words, or a mark for each label of a "
                f"text? Name the task: {WORD_TAGGING} or {MULTI_LABEL}."
            )
        return _fitting(WORD_TAGGING, sides, task)
    if task in (WORD_TAGGING, LEMMAS):
        return OutputTask(task)
    scheme = _scheme(sides)
    if not scheme.marks_spans:
        return _fitting(WORD_TAGGING, sides, task)
    return replace(_fitting(SPAN_TAGGING, sides, task), scheme=scheme)


def _check_alike(sides: Sequence[Side]) -> None:
    """Raise DataError where some labels are texts and others are numbers."""
    family = ""
    for origin, output in _outputs(sides):
        for kind, labels in (("gold", output.gold), (output.kind, output.answer)):
            for label in labels:
                family = family or _family(label)
                if _family(label) != family:
                    problem = f"{kind} label {label!r:.60}"
                    expected_label = f"a {family}, as other labels are"
                    raise origin.broken(output.line, problem, expected_label)


def _are_marks(sides: Sequence[Side]) -> bool:
    """Return whether all lists have the same length, two or more, and contain only 0 and 1."""
    lists = [labels for _, output in _outputs(sides) for labels in (output.gold, output.answer)]
    lengths = {len(labels) for labels in lists}
    return len(lengths) == 1 and min(lengths) > 1 and set(_all(lists)) <= {0, 1}


def _check_tags(origin: Origin, output: ExampleOutput) -> None:
    if len(output.gold) != len(output.answer):
        expected_labels = f"{len(output.answer)} labels, as the answer has"
        raise origin.broken(output.line, f"gold {str(output.gold)[:60]!r}", expected_labels)
    if IGNORED in (*output.gold, *output.answer):
        expected_labels = f"labels of words; {IGNORED} is none, and transformers ignores it"
        raise origin.broken(
            output.line, f"label {IGNORED}", expected_labels, "Take these words out on all sides"
        )


def _scheme(sides: Sequence[Side]) -> TagScheme:
    """Return the scheme of the gold tags. Raises an error for a tag of spans that does not fit it.

    If gold tags do not show the scheme, answers decide, because B-, E- and S- are tags of IOBES and of BMES.
    """
    gold = TagCounts()
    all_tags = TagCounts()
    for _, output in _outputs(sides):
        gold.add(output.gold)
        all_tags.add(output.gold)
        all_tags.add(output.answer)
    if set(all_tags.tags) <= {OUTSIDE, NO_TAG}:
        return PLAIN_BIO
    scheme = all_tags.decide() if set(gold.tags) <= {OUTSIDE, NO_TAG} else gold.decide()
    if not scheme.marks_spans:
        return scheme
    name_of_both = all_tags.decide().name
    if name_of_both not in (scheme.name, WORDS):
        common_scheme = replace(scheme, name=name_of_both)
        tags = list(all_tags.tags)
        if find_misfit(tags, scheme) is not None and find_misfit(tags, common_scheme) is None:
            return common_scheme
    for origin, output in _outputs(sides):
        index = find_misfit(output.gold, scheme)
        if index is not None:
            expected_tags = f"tags of {scheme.name}, as most others are ({scheme.describe_tags()})"
            raise origin.broken(output.line, f"gold label {output.gold[index]!r}", expected_tags)
    return scheme


def _measure_samples(values: Sequence[Mapping[str, float]]) -> ByMeasure:
    names = [name for name in values[0] if all(name in sample for sample in values)]
    counts = [1.0] * len(values)
    return {name: Contributions([sample[name] for sample in values], counts) for name in names}


def _measure_answers(outputs: Sequence[ExampleOutput]) -> ByMeasure:
    """Return F1 and exact match by the rules of SQuAD, and by MLQA's if all languages have such rules.

    The rules that the file states come first, because the main measure is from the corpus's own script.
    """
    gold = [
        GoldAnswers(texts=(output.gold,) if isinstance(output.gold, str) else tuple(output.gold))
        for output in outputs
    ]
    answers = [output.answer for output in outputs]
    squad = {"f1": answer_f1_contributions(gold, answers), "em": exact_match_contributions(gold, answers)}
    if not all(has_own_rules(output.language) for output in outputs):
        return squad
    gold = [replace(texts, language=output.language) for texts, output in zip(gold, outputs, strict=True)]
    mlqa = {
        "mlqa_f1": answer_f1_contributions(gold, answers),
        "mlqa_em": exact_match_contributions(gold, answers),
    }
    return {**mlqa, **squad} if all(output.rules == MLQA for output in outputs) else {**squad, **mlqa}


def _all(label_lists: Iterable[Iterable[Any]]) -> Iterator[Any]:
    for labels in label_lists:
        yield from labels


def _list_marked(side: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the numbers of the labels that are marked for each text."""
    return [[index for index, is_marked in enumerate(marks) if is_marked] for marks in side]


def _measure_classes(gold: Sequence[Sequence[Any]], answers: Sequence[Sequence[Any]]) -> ByMeasure:
    """Return the measures of classes. Micro F1 with one label per example is accuracy."""
    measures = class_contributions(gold, answers)
    return {**measures, "micro_f1": measures["accuracy"]}


def _measure_words(gold: Sequence[Sequence[Any]], answers: Sequence[Sequence[Any]]) -> ByMeasure:
    measures = _measure_classes(gold, answers)
    if not all(isinstance(label, str) for label in (*_all(gold), *_all(answers))):
        return measures
    seqeval_f1 = chunk_contributions(gold, answers)
    return {"accuracy": measures["accuracy"], "seqeval_f1": seqeval_f1, **measures}


def _measure_spans(origin: Origin, outputs: Sequence[ExampleOutput], scheme: TagScheme) -> ByMeasure:
    for output in outputs:
        _check_spans(origin, output, scheme)
    gold, answers = ([getattr(output, side) for output in outputs] for side in ("gold", "answer"))
    accuracy = class_contributions(gold, answers)["accuracy"]
    gold, answers = ([as_bio(tags, scheme) for tags in side] for side in (gold, answers))
    spans = span_contributions(gold, answers)
    word_f1 = word_contributions(gold, answers)
    return {"span_f1": spans, "word_f1": word_f1, "micro_f1": spans, "accuracy": accuracy}


def _check_spans(origin: Origin, output: ExampleOutput, scheme: TagScheme) -> None:
    for kind, tags in (("gold", output.gold), (output.kind, output.answer)):
        texts = all(isinstance(tag, str) and tag for tag in tags)
        index = find_misfit(tags, scheme) if texts else 0
        if index is not None:
            tag_text = repr(tags[index]) if tags else ""
            problem = f"{kind} {tag_text} in {' '.join(str(tag) for tag in tags)[:60]!r}"
            raise origin.broken(output.line, problem, f"tags of {scheme.name}: {scheme.describe_tags()}")


def _family(label: object) -> str:
    """Return the family of comparable values: a number (or truth value), a text, a list."""
    if isinstance(label, int | float):
        return "number"
    return "list" if isinstance(label, list) else "text"


def _check_gold(origin: Origin, output: ExampleOutput) -> None:
    gold = output.gold
    answer = output.answer
    if gold is None:
        raise describe_missing_gold(origin, output)
    if output.kind == "labels":
        fits = is_answer("labels", gold)
    elif output.kind == "label":
        fits = is_answer("label", gold) and _family(gold) == _family(answer)
    else:
        fits = isinstance(gold, str) or (is_answer("labels", gold) and bool(gold))
    if not fits:
        expected_gold = (
            ANSWERS["labels"] if output.kind == "labels" else f"what fits {output.kind} {answer!r:.40}"
        )
        raise origin.broken(output.line, f"gold {str(gold)[:60]!r}", expected_gold)


def describe_missing_gold(origin: Origin, output: ExampleOutput) -> DataError:
    """Return the error for an answer without a gold one."""
    return origin.broken(
        output.line, "no gold", "a key gold next to the answer", "Add it, or give --gold FILE"
    )
