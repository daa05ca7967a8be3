"""An output of a file or a list: an answer with the gold one, and what it adds to each measure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from sys import float_info
from typing import Any, TypeGuard

from isogloss.core.errors import ConfigError, DataError
from isogloss.core.rows.models import ByMeasure, Contributions
from isogloss.data.files import File, byte_stream
from isogloss.data.formats.conll import are_bio
from isogloss.metrics.labels import (
    chunk_contributions,
    class_contributions,
    label_set_contributions,
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

ANSWERS = {"labels": "a list of labels", "label": "a text, a list of texts or a number", "answer": "a text"}
"""The keys of an answer and their values: for words, for a text or a pair, for a question."""

SAMPLE = "doc_id"
"""The key that identifies a sample of lm-evaluation-harness."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """One line of a file: an example and its answer."""

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
    document: str = ""
    """A digest of a sample's example; empty where it has none."""
    values: Mapping[str, float] | None = None
    """Of a sample: the value of each metric."""


def is_answer(kind: str, value: object) -> bool:
    """Return whether a value is of the type that a key of ``ANSWERS`` has."""
    texts = isinstance(value, list) and all(isinstance(label, str) for label in value)
    text = isinstance(value, str)
    return {"labels": texts, "label": texts or text or is_number(value), "answer": text}[kind]


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a finite number, and no truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= float_info.max


def measures_of(file: File, outputs: Sequence[Output]) -> ByMeasure:
    """Return the contribution of each example to each measure, the main one first."""
    kinds = {output.kind for output in outputs}
    kind, *others = sorted(kinds)
    if others:
        raise ConfigError(f"{file.name}: its lines have {' and '.join(sorted(kinds))}. Give one kind a file.")
    if kind == SAMPLE:
        return _of_samples([output.values or {} for output in outputs])
    for output in outputs:
        _check_gold(file, output)
    if kind == "answer":
        return _of_answers(outputs)
    return _of_labels(file, outputs) if kind == "label" else _of_words(file, outputs)


def contributions_of(predictions: Sequence[Any], gold: Sequence[Any], *, answers: bool = False) -> ByMeasure:
    """Return what each of the predictions adds to each measure, the main one first.

    They are labels, sets of labels, numbers, lists of tags, or, if ``answers``, texts that answer questions;
    DataError, with the number of the prediction, where one does not fit its gold answer.
    """
    kind = "answer" if answers else "label"
    if not answers and any(isinstance(label, list | tuple) for label in gold):
        kind = "labels"
    plain = [
        [sorted(label) if isinstance(label, set | frozenset) else _plain(label) for label in side]
        for side in (predictions, gold)
    ]
    outputs = [
        Output(line=number, id="", language="", kind=kind, answer=answer, gold=right)
        for number, (answer, right) in enumerate(zip(*plain, strict=True), start=1)
    ]
    return measures_of(byte_stream("predictions", ()), outputs)


def _plain(label: Any) -> Any:
    """Return tags as a list, and a number of NumPy or torch as Python's."""
    if isinstance(label, tuple):
        return list(label)
    return label.item() if hasattr(label, "item") else label


def _of_samples(values: Sequence[Mapping[str, float]]) -> ByMeasure:
    names = [name for name in values[0] if all(name in sample for sample in values)]
    ones = [1.0] * len(values)
    return {name: Contributions([sample[name] for sample in values], ones) for name in names}


def _of_answers(outputs: Sequence[Output]) -> ByMeasure:
    """Return F1 and exact match by the rules of SQuAD, and of MLQA where all languages have such rules."""
    gold = [
        GoldAnswers(texts=(output.gold,) if isinstance(output.gold, str) else tuple(output.gold))
        for output in outputs
    ]
    answers = [output.answer for output in outputs]
    squad = {"f1": answer_f1_contributions(gold, answers), "em": exact_match_contributions(gold, answers)}
    if not all(has_own_rules(output.language) for output in outputs):
        return squad
    gold = [replace(texts, language=output.language) for texts, output in zip(gold, outputs, strict=True)]
    return {
        **squad,
        "mlqa_f1": answer_f1_contributions(gold, answers),
        "mlqa_em": exact_match_contributions(gold, answers),
    }


def _of_labels(file: File, outputs: Sequence[Output]) -> ByMeasure:
    gold, answers = [output.gold for output in outputs], [output.answer for output in outputs]
    kind = _kind_of(gold[0])
    for output in outputs:
        if _kind_of(output.gold) is not kind:
            expected = f"what is like {gold[0]!r:.60}, as before"
            raise file.broken(output.line, f"gold {output.gold!r:.60}", expected)
    if kind is list:
        all_labels = sorted({label for labels in (*gold, *answers) for label in labels})
        return label_set_contributions(gold, answers, all_labels)
    if kind is float:
        return correlation_contributions(gold, answers)
    return class_contributions([(label,) for label in gold], [(label,) for label in answers])


def _kind_of(label: object) -> type:
    return float if isinstance(label, int | float) else type(label)


def _of_words(file: File, outputs: Sequence[Output]) -> ByMeasure:
    gold, answers = [output.gold for output in outputs], [output.answer for output in outputs]
    if not are_bio({tag for tags in gold for tag in tags}):
        of_classes, f1 = class_contributions(gold, answers), chunk_contributions(gold, answers)
        return {"accuracy": of_classes["accuracy"], "seqeval_f1": f1, **of_classes}
    for output in outputs:
        nameless = {"", "B-", "I-"} & {*output.gold, *output.answer}
        if nameless or (output.answer and not are_bio({*output.answer, "B-X"})):
            shown = ", ".join(map(repr, nameless)) or repr(" ".join(output.answer)[:60])
            raise file.broken(output.line, f"labels {shown}", "BIO tags with types, in gold and answer")
    return {"span_f1": span_contributions(gold, answers), "word_f1": word_contributions(gold, answers)}


def _check_gold(file: File, output: Output) -> None:
    gold, answer = output.gold, output.answer
    if gold is None:
        raise no_gold(file, output)
    if output.kind == "labels":
        fits = is_answer("labels", gold) and len(gold) == len(answer)
    elif output.kind == "label":
        fits = is_answer("label", gold) and _kind_of(gold) is _kind_of(answer)
    else:
        fits = isinstance(gold, str) or (is_answer("labels", gold) and bool(gold))
    if not fits:
        labels = output.kind == "labels"
        expected = f"{len(answer)} labels" if labels else f"what fits {output.kind} {answer!r:.40}"
        raise file.broken(output.line, f"gold {str(gold)[:60]!r}", expected)


def no_gold(file: File, output: Output) -> DataError:
    """Return the error for an answer without a gold one."""
    return file.broken(output.line, "no gold", "a key gold next to the answer", "Add it, or give --gold FILE")
