"""Predictions of two systems on the same examples, compared and tested; imports neither models nor torch."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
import pandas as pd

from isogloss.core.arguments import checks_arguments
from isogloss.core.errors import ConfigError, DataError
from isogloss.core.rows.models import ByMeasure, Contributions, total
from isogloss.data.files import short
from isogloss.metrics.significance import System, SystemPair, error_over_languages, per_example
from isogloss.reports.comparison import compare_means, over_examples
from isogloss.reports.outputs import (
    CLASSIFICATION,
    MEASURES,
    OF_CLASSES,
    QA,
    VALUES,
    Output,
    Side,
    measures_of,
    named_measure,
    task_of,
)

Predictions = Iterable[Any]
"""For each example a label, a set of labels, a number, the tags of its words, or an answer."""

NUMBERS = ("score", "baseline_score", "difference", "low", "high", "p_value", "p_units", "p_examples", "test")
"""The numbers of a comparison, of those that reports have."""

LABEL = "a text, an integer, a truth value, a float, a set, or a list for the words of a sentence"

MANY_TEXTS = 20
"""Texts from which labels that nearly all differ are no classes, even without spaces."""


@dataclass(frozen=True, slots=True)
class Listed:
    """Predictions or gold answers as lists, and their name in messages."""

    name: str

    def broken(self, number: int, problem: str, expected: str, advice: str = "Correct it") -> DataError:
        """Build the error for an item, by its index."""
        return DataError(f"compare: {self.name}[{number}]: {short(problem)}; expected {expected}. {advice}.")


@checks_arguments
def compare(
    system: Predictions | Mapping[int, Predictions],
    baseline: Predictions | Mapping[int, Predictions],
    gold: Predictions | None = None,
    *,
    metric: str = "",
    task: str = "",
) -> pd.Series:
    """Compare a system's predictions with a baseline's on the same examples, and test the difference.

    Either is the predictions of one model, or a mapping from seeds to the predictions of each seed's model:
    a list, an array of NumPy, a tensor, a column of pandas. Without ``gold`` they are the values of a measure
    that is a mean over examples, such as 0 and 1. With it, the labels decide the ``task``, which is returned:

    - texts, integers and truth values: "classification";
    - floats with fractions: "regression" (whole numbers, too, with ``metric`` "spearman" or "pearson");
    - sets of labels: "multi-label-classification" (also lists of 0 and 1, where the task is named);
    - a list of tags for each sentence: "span-tagging" where they are BIO, IOBES, BILOU …, else
      "word-tagging";
    - texts with lists of right answers, or texts that nearly all differ with ``metric`` "f1" or "em": "qa".

    ConfigError where labels fit two tasks, or ``metric`` fits two measures ("f1" of classes), until one is
    named. ``metric`` is the main one of the task unless named (accuracy, span_f1 …).

    Returned are ``task`` and ``metric``; ``score``, ``baseline_score`` and ``difference`` (0 to 1), with its
    95 % interval ``low`` and ``high``; ``p_value`` of the test that crosses seeds and examples (min F′),
    ``p_units`` over seeds alone and ``p_examples`` over examples alone, by ``test``: McNemar's for right and
    wrong of one seed, the paired t-test for other means, and a permutation test for F1; the standard error of
    the difference over examples (``error_examples``) and Cohen's d (``effect``); the numbers of ``seeds`` and
    ``examples``. One seed has neither interval nor ``p_value``: another seed may differ by more than examples
    do.

    DataError where the numbers of examples differ, or a label is missing or unlike the others; ConfigError
    for other seeds or an unknown metric.

    >>> import isogloss
    >>> compared = isogloss.compare([1, 1, 1, 1, 1, 1, 0, 1], [1, 0, 0, 0, 0, 0, 0, 1])
    >>> compared.test, compared.difference, compared.p_examples
    ('McNemar', 0.625, 0.0625)
    """
    sides = [side if isinstance(side, Mapping) else {0: side} for side in (system, baseline)]
    seeds = sorted(sides[0])
    if seeds != sorted(sides[1]):
        raise ConfigError(
            f"compare: the system has the seeds {seeds}, the baseline {sorted(sides[1])}; expected the same."
        )
    lists = [
        [(f"{name}{f' of seed {seed}' if len(seeds) > 1 else ''}", side[seed]) for seed in seeds]
        for name, side in zip(("system", "baseline"), sides, strict=True)
    ]
    plain = [[(Listed(name), _plain_list(name, side)) for name, side in of_seeds] for of_seeds in lists]
    if gold is None:
        task = VALUES
        name = metric or "mean"
        contributions = [[_values(origin, labels) for origin, labels in of_seeds] for of_seeds in plain]
    else:
        task, measured = _measures(plain, _plain_list("gold", gold), metric, task)
        shared = [name for name in measured[0][0] if all(name in seed for side in measured for seed in side)]
        name = named_measure("compare", "metric", metric, shared, task)
        contributions = [[seed[name] for seed in side] for side in measured]
    sizes = sorted({len(seed.part) for side in contributions for seed in side})
    if len(sizes) > 1:
        raise DataError(
            f"compare: predictions of {' and '.join(map(str, sizes))} examples; expected the same ones."
        )
    means = compare_means([""], *([total(seed) for seed in side] for side in contributions))
    pair = SystemPair(*map(_system, contributions))
    ids = [str(number) for number in range(sizes[0])]
    tested = over_examples(means, {"": pair}, {"": ids})
    numbers = tested.numbers()
    return pd.Series(
        {
            "task": task,
            "metric": name,
            **{number: numbers[number] for number in NUMBERS},
            "error_examples": error_over_languages({"": (ids, per_example(pair))})[1],
            "effect": tested.effect,
            "seeds": len(seeds),
            "examples": sizes[0],
        }
    )


def _measures(
    sides: Sequence[Sequence[tuple[Listed, list[Any]]]], gold: list[Any], metric: str, task: str
) -> tuple[str, list[list[ByMeasure]]]:
    """Return the task, and what each example adds to each measure, the main one first."""
    for label in (label for of_seeds in sides for _, labels in of_seeds for label in labels):
        if isinstance(label, list) and any(isinstance(part, float) for part in label):
            raise DataError(
                f"compare: a prediction is {str(label)[:60]}, a list of fractions; expected labels. Of "
                f"logits or probabilities, give the index of the highest (argmax)."
            )
    kind = _kind(gold, [labels for of_seeds in sides for _, labels in of_seeds], metric, task)
    outputs: list[list[Side]] = [
        [(origin, _outputs(origin, labels, gold, kind)) for origin, labels in of_seeds] for of_seeds in sides
    ]
    output_task = task_of([side for of_seeds in outputs for side in of_seeds], measure=metric, task=task)
    return output_task.name, [
        [measures_of(origin, of_seed, output_task) for origin, of_seed in of_seeds] for of_seeds in outputs
    ]


def _outputs(origin: Listed, labels: Sequence[Any], gold: Sequence[Any], kind: str) -> list[Output]:
    if len(labels) != len(gold):
        raise DataError(
            f"compare: {len(labels)} predictions for {len(gold)} gold answers ({origin.name}); expected as "
            f"many."
        )
    return [
        Output(line=number, id="", language="", kind=kind, answer=_as_list(answer), gold=_as_list(right))
        for number, (answer, right) in enumerate(zip(labels, gold, strict=True))
    ]


def _as_list(label: Any) -> Any:
    return (
        sorted(label, key=lambda part: (str(type(part)), part)) if isinstance(label, AbstractSet) else label
    )


def _kind(gold: list[Any], sides: Sequence[list[Any]], metric: str, task: str) -> str:
    """Return the key that such answers have in a file: those of questions, of words, or of texts."""
    predicted = [label for side in sides for label in side]
    are_texts = all(isinstance(label, str) for label in predicted)
    several = any(isinstance(label, list) for label in gold)
    if task == QA or (are_texts and several):
        return "answer"
    if several or any(isinstance(label, list) for label in predicted):
        return "labels"
    if task or not are_texts or not all(isinstance(label, str) for label in gold):
        return "label"
    like_answers = _look_like_answers(gold, predicted)
    if metric in MEASURES[QA]:
        if like_answers:
            return "answer"
        raise ConfigError(
            f"compare: metric {metric!r} with gold {gold[0]!r:.60}: answers to questions, or classes? Of "
            f"answers, name the task (task={QA!r}); of classes, one of {', '.join(OF_CLASSES)}."
        )
    if like_answers and metric not in OF_CLASSES:
        raise ConfigError(
            f"compare: gold {gold[0]!r:.60}: texts that nearly all differ are answers to questions, or "
            f"classes? Name the task ({QA!r} or {CLASSIFICATION!r}), or a metric (f1, accuracy)."
        )
    return "label"


def _look_like_answers(gold: Sequence[str], predicted: Sequence[str]) -> bool:
    """Return whether nearly all texts differ, and have spaces or are many: so classes do not look."""
    differ = 2 * len({*gold}) > len(gold)
    return differ and (len(gold) >= MANY_TEXTS or any(" " in text for text in (*gold, *predicted)))


def _values(origin: Listed, labels: Sequence[Any]) -> Contributions:
    """Return the values of a measure, which is their mean."""
    for number, value in enumerate(labels):
        if not isinstance(value, int | float) or not isfinite(value):
            raise origin.broken(
                number,
                repr(value),
                "a number, the value of a measure",
                "Correct it, or give the gold answers",
            )
    return Contributions([float(value) for value in labels], [1.0] * len(labels))


def _plain_list(name: str, labels: Predictions) -> list[Any]:
    """Return labels in any container as a list of Python's values; DataError where one is missing."""
    if isinstance(labels, str | bytes | Mapping | AbstractSet) or hasattr(labels, "columns"):
        shown = f"{type(labels).__name__} {labels!r}".partition("\n")[0]
        raise DataError(
            f"compare: {name} is one {shown[:60]}; expected a list, an array or a column with one prediction "
            f"for each example."
        )
    listed = labels.tolist() if hasattr(labels, "tolist") else labels
    if not isinstance(listed, Iterable):
        raise DataError(f"compare: {name} is {labels!r:.60}; expected one prediction for each example.")
    plain = [_plain(Listed(name), number, label) for number, label in enumerate(listed)]
    if not plain:
        raise DataError(f"compare: no predictions ({name}); expected one for each example, at least one.")
    return plain


def _plain(origin: Listed, number: int, label: Any) -> Any:
    """Return a label of NumPy, torch or pandas as Python's."""
    if hasattr(label, "tolist"):
        label = label.tolist()
    if isinstance(label, list | tuple):
        return [_plain(origin, number, part) for part in label]
    if isinstance(label, AbstractSet):
        return frozenset(_plain(origin, number, part) for part in label)
    if label is None or label is pd.NA or label is pd.NaT or label != label:  # noqa: PLR0124 (NaN)
        advice = "Take the example out on all sides"
        raise origin.broken(number, f"{label!r}, which is missing", LABEL, advice)
    if not isinstance(label, str | int | float) or (isinstance(label, float) and not isfinite(label)):
        raise origin.broken(number, f"{type(label).__name__} {label!r:.60}", LABEL)
    return label


def _system(seeds: Sequence[Contributions]) -> System:
    parts, wholes = (
        np.array([getattr(seed, name) for seed in seeds], dtype=float) for name in ("part", "whole")
    )
    return System(parts, wholes)
