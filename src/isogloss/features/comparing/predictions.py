"""Compare and test predictions of two systems on the same examples, without models or torch."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path
from typing import Any, cast, overload

import numpy as np
import pandas as pd

from isogloss.core.arguments import checks_arguments
from isogloss.core.errors import ConfigError, DataError
from isogloss.core.rows.models import ByMeasure, Contributions, total
from isogloss.core.run_parts import Weight
from isogloss.data.files import short
from isogloss.features.comparing.flips import count_flips
from isogloss.features.comparing.outputs import (
    ANSWERS,
    CLASSIFICATION,
    MEASURES,
    OF_CLASSES,
    QA,
    VALUES,
    ExampleOutput,
    Side,
    measures_of,
    named_measure,
    task_of,
)
from isogloss.metrics.significance import System, SystemPair
from isogloss.reports.comparison import Compared, add_example_test, compare_means

Predictions = Iterable[Any]
"""For each example a label, a set of labels, a number, the tags of its words, or an answer."""

LABEL = "a text, an integer, a truth value, a float, a set, or a list for the words of a sentence"

MANY_TEXTS = 20
"""Texts from which labels that nearly all differ are no classes, even without spaces."""


@dataclass(frozen=True, slots=True)
class Listed:
    """Predictions or gold answers as lists, and their name in messages."""

    name: str

    def broken(self, index: int, problem: str, expected: str, advice: str = "Correct it") -> DataError:
        """Build the error for an item, by its index."""
        return DataError(f"compare: {self.name}[{index}]: {short(problem)}; expected {expected}. {advice}.")


@dataclass(frozen=True, kw_only=True, repr=False)
class Comparison:
    """Comparison of two systems on the same examples, as ``compare`` returns it. It prints as sentences.

    >>> import isogloss
    >>> isogloss.compare([1, 1, 1, 0], [1, 0, 0, 0])
    values, mean: 0.7500 against 0.2500, 4 examples, 1 seed
    difference +0.5000, 95 % over examples -0.4187 to +1.4187
    McNemar over examples: p = 0.5; over seeds: none, with one seed
    2 wrong -> right, 0 right -> wrong
    """

    task: str
    metric: str
    score: float
    baseline_score: float
    difference: float
    """System minus baseline, in shares (0 to 1)."""
    low: float
    high: float
    """95 % interval over seeds and examples. nan for one seed."""
    low_examples: float
    high_examples: float
    """95 % interval only over examples, by Student's t, also for one seed."""
    p_value: float
    """P over seeds and examples (min F′). nan for one seed, which shows nothing about others."""
    p_units: float
    """P only over seeds."""
    p_examples: float
    """P only over examples, by ``test``."""
    test: str
    error_examples: float
    """Standard error of the difference over examples."""
    effect: float
    """Cohen's d."""
    seeds: int
    examples: int
    gained: int | None
    """Answers of all seeds that were wrong and are right. None where answers are not right or wrong."""
    lost: int | None
    """Answers of all seeds that were right and are wrong."""
    changed: int | None
    """Answers of all seeds that differ. None without gold answers."""
    margin: float | None
    p_equivalence: float | None
    """P of the two one-sided tests (TOST) that the difference is ``margin`` or more in either direction:
    below 0.05 both systems are equivalent. Over seeds and examples, or examples for one seed."""

    def __getitem__(self, name: str) -> Any:
        """Return a field by its name."""
        return getattr(self, name)

    def to_series(self) -> pd.Series:
        """Return the fields as a Series, such as a row of a table."""
        return pd.Series(asdict(self))

    def __repr__(self) -> str:
        """Describe scores, difference and tests in a few lines."""
        seeds = "1 seed" if self.seeds == 1 else f"{self.seeds} seeds"
        scores = (
            f"{self.task}, {self.metric}: {self.score:.4f} against {self.baseline_score:.4f}, "
            f"{self.examples} examples, {seeds}"
        )
        low, high, sampling = self.low_examples, self.high_examples, "over examples"
        p_seeds = "none, with one seed"
        if self.seeds > 1:
            low, high, sampling = self.low, self.high, "over seeds and examples"
            p_seeds = f"p = {self.p_value:.3g} with examples, {self.p_units:.3g} alone"
        lines = [
            scores,
            f"difference {self.difference:+.4f}, 95 % {sampling} {low:+.4f} to {high:+.4f}",
            f"{self.test} over examples: p = {self.p_examples:.3g}; over seeds: {p_seeds}",
        ]
        if self.gained is not None:
            lines.append(f"{self.gained} wrong -> right, {self.lost} right -> wrong")
        if self.changed is not None:
            lines[-1] += f"; {self.changed} answers changed"
        if self.margin is not None:
            lines.append(f"equivalent within {self.margin:g} (TOST): p = {self.p_equivalence:.3g}")
        return "\n".join(lines)


@overload
def compare(
    system: str | Path,
    baseline: str | Path,
    gold: str | Path | None = None,
    *,
    metric: str = "",
    margin: Weight | None = None,
) -> Compared: ...
@overload
def compare(
    system: Predictions | Mapping[int, Predictions],
    baseline: Predictions | Mapping[int, Predictions],
    gold: Predictions | None = None,
    *,
    metric: str = "",
    task: str = "",
    margin: Weight | None = None,
) -> Comparison: ...
@checks_arguments
def compare(
    system: str | Path | Predictions | Mapping[int, Predictions],
    baseline: str | Path | Predictions | Mapping[int, Predictions],
    gold: str | Path | Predictions | None = None,
    *,
    metric: str = "",
    task: str = "",
    margin: Weight | None = None,
) -> Comparison | Compared:
    """Compare a system's predictions with a baseline's on the same examples, and test the difference.

    Either is the predictions of one model, or a mapping from seeds to the predictions of each seed's model:
    a list, an array of NumPy, a tensor, a column of pandas; or a DataFrame, a Dataset or a list of mappings
    with the keys that files of outputs have: ``label``, ``labels`` or ``answer``, ``gold``, and ``id``, by
    which both sides are paired. Two paths of files are compared by language, as ``compare_outputs`` does.

    Without ``gold`` they are the values of a measure
    that is a mean over examples, such as 0 and 1. With it, the labels decide the ``task``, which is returned:

    - texts, integers and truth values: "classification";
    - floats with fractions: "regression" (whole numbers, too, with ``metric`` "spearman" or "pearson");
    - sets of labels: "multi-label-classification" (also lists of 0 and 1, where the task is named);
    - a list of tags for each sentence: "span-tagging" where they are BIO, IOBES, BILOU …, else
      "word-tagging";
    - texts with lists of right answers, or texts that nearly all differ with ``metric`` "f1" or "em": "qa".

    ConfigError where labels fit two tasks, or ``metric`` fits two measures ("f1" of classes), until one is
    named. ``metric`` is the main one of the task unless named (accuracy, span_f1 …).

    The result is a ``Comparison``, whose fields are described there: score, difference, intervals and tests
    over seeds and examples, and how many answers became right or wrong. ``p_examples`` is by McNemar's test
    for right and wrong of one seed, the paired t-test for other means, and a permutation test for F1. With a
    ``margin`` (0.01 is one point) it has the test of equivalence as well.

    DataError where the numbers of examples differ, or a label is missing or unlike the others; ConfigError
    for other seeds or an unknown metric.

    Device: none: torch is not needed. Cost: one pass over the predictions; the permutation test of F1 has
    1,000 rounds.

    >>> import isogloss
    >>> compared = isogloss.compare([1, 1, 1, 1, 1, 1, 0, 1], [1, 0, 0, 0, 0, 0, 0, 1])
    >>> compared.test, compared.difference, compared.p_examples
    ('McNemar', 0.625, 0.0625)
    """
    if _is_file(system) and _is_file(baseline):
        files = cast(str | Path, system), cast(str | Path, baseline)
        return _compare_files(*files, gold, metric, margin)
    ours, theirs, right = _read_tables(system, baseline, gold)
    sides = [side if isinstance(side, Mapping) else {0: side} for side in (ours, theirs)]
    seeds = sorted(sides[0])
    if seeds != sorted(sides[1]):
        raise ConfigError(
            f"compare: the system has the seeds {seeds}, the baseline {sorted(sides[1])}; expected the same."
        )
    lists = [
        [(f"{name}{f' of seed {seed}' if len(seeds) > 1 else ''}", side[seed]) for seed in seeds]
        for name, side in zip(("system", "baseline"), sides, strict=True)
    ]
    labels_of_sides = [
        [(Listed(name), _plain_list(name, side)) for name, side in seed_labels] for seed_labels in lists
    ]
    if right is None:
        task = VALUES
        name = metric or "mean"
        contributions = [
            [_values(origin, answers) for origin, answers in seed_labels] for seed_labels in labels_of_sides
        ]
    else:
        task, measures = _measures(labels_of_sides, _plain_list("gold", right), metric, task)
        shared = [name for name in measures[0][0] if all(name in seed for side in measures for seed in side)]
        name = named_measure("compare", "metric", metric, shared, task)
        contributions = [[seed[name] for seed in side] for side in measures]
    sizes = sorted({len(seed.part) for side in contributions for seed in side})
    if len(sizes) > 1:
        raise DataError(
            f"compare: predictions of {' and '.join(map(str, sizes))} examples; expected the same ones."
        )
    means = compare_means([""], *([total(seed) for seed in side] for side in contributions))
    pair = SystemPair(*(_system(seed_contributions) for seed_contributions in contributions))
    ids = [str(index) for index in range(sizes[0])]
    test = add_example_test(means, {"": pair}, {"": ids})
    gain_count, loss_count = count_flips(zip(*contributions, strict=True))
    return Comparison(
        task=task,
        metric=name,
        score=test.score,
        baseline_score=test.baseline_score,
        difference=test.difference,
        low=test.estimate.low,
        high=test.estimate.high,
        low_examples=test.low_examples,
        high_examples=test.high_examples,
        p_value=test.p_value,
        p_units=test.p_units,
        p_examples=test.p_examples,
        test=test.test,
        error_examples=test.error_examples,
        effect=test.effect,
        seeds=len(seeds),
        examples=sizes[0],
        gained=gain_count,
        lost=loss_count,
        changed=None if right is None else _count_changed(labels_of_sides),
        margin=margin,
        p_equivalence=None if margin is None else test.p_equivalence(margin),
    )


def _count_changed(sides: Sequence[Sequence[tuple[Listed, list[Any]]]]) -> int:
    return sum(
        our_label != their_label
        for (_, ours), (_, theirs) in zip(*sides, strict=True)
        for our_label, their_label in zip(ours, theirs, strict=True)
    )


def _is_file(side: object) -> bool:
    return isinstance(side, Path) or (isinstance(side, str) and bool(Path(side).suffix))


def _compare_files(
    system: str | Path, baseline: str | Path, gold: object, metric: str, margin: float | None
) -> Compared:
    from isogloss.data.files import disk_file
    from isogloss.features.comparing.compared_outputs import compare_outputs

    if gold is not None and not isinstance(gold, str | Path):
        raise DataError(f"compare: gold is a {type(gold).__name__}, and the others are files. Give a file.")
    files = [disk_file(Path(path)) for path in (system, baseline)]
    right = None if gold is None else disk_file(Path(gold))
    return compare_outputs(files[:1], files[1], gold=right, measure=metric, margin=margin)


def _read_tables(system: Any, baseline: Any, gold: Any) -> tuple[Any, Any, Any]:
    """Return the answers of two tables in one order, and their gold answers. Other values stay the same."""
    tables = [table for side in (system, baseline) if (table := _columns_of(side)) is not None]
    if len(tables) < 2:
        return system, baseline, gold
    keys = []
    for name, table in zip(("system", "baseline"), tables, strict=True):
        key = next((key for key in ANSWERS if key in table), None)
        if key is None:
            raise DataError(
                f"compare: {name} has the columns {', '.join(table) or 'none'}; expected "
                f"{' or '.join(ANSWERS)}. Rename the column of predictions, or give it alone."
            )
        keys.append(key)
    ours, theirs = (list(table[key]) for table, key in zip(tables, keys, strict=True))
    golds = [list(table["gold"]) for table in tables if "gold" in table]
    if all("id" in table for table in tables):
        order = _order_by_id(*(list(table["id"]) for table in tables))
        theirs = [theirs[index] for index in order]
        golds[1:] = [[baseline_gold[index] for index in order] for baseline_gold in golds[1:]]
    if gold is not None or not golds:
        return ours, theirs, gold
    if golds[0] != golds[-1]:
        raise DataError(
            "compare: gold: both tables have gold answers, which differ; expected the same examples on both "
            "sides. Correct one of them, or give gold."
        )
    return ours, theirs, golds[0]


def _order_by_id(ids: Sequence[Any], other_ids: Sequence[Any]) -> list[int]:
    """Return the index of each id among the others. DataError unless both have the same ids once."""
    indices = {id_: index for index, id_ in enumerate(other_ids)}
    different = set(ids) ^ set(indices)
    if different or len(ids) != len(set(ids)) or len(other_ids) != len(indices):
        problem = f"{next(iter(different))!r} is on one side" if different else "an id is given twice"
        raise DataError(
            f"compare: id: {problem}; expected the same ids on both sides, each once. Correct them."
        )
    return [indices[id_] for id_ in ids]


def _columns_of(side: Any) -> Mapping[str, Any] | None:
    """Return a table by its columns: a DataFrame, a Dataset or a list of mappings. None for anything else."""
    names = getattr(side, "column_names", getattr(side, "columns", None))
    if names is not None and not callable(names):
        return {str(name): side[name] for name in names}
    is_list = isinstance(side, Sequence) and not isinstance(side, str | bytes)
    if not is_list or not side or not all(isinstance(row, Mapping) for row in side):
        return None
    return {name: [row[name] for row in side] for name in side[0] if all(name in row for row in side)}


def _measures(
    sides: Sequence[Sequence[tuple[Listed, list[Any]]]], gold: list[Any], metric: str, task: str
) -> tuple[str, list[list[ByMeasure]]]:
    """Return the task, and what each example adds to each measure, the main one first."""
    for label in (label for seed_labels in sides for _, labels in seed_labels for label in labels):
        if isinstance(label, list) and any(isinstance(part, float) for part in label):
            raise DataError(
                f"compare: a prediction is {str(label)[:60]}, a list of fractions; expected labels. Of "
                f"logits or probabilities, give the index of the highest (argmax)."
            )
    kind = _kind(gold, [labels for seed_labels in sides for _, labels in seed_labels], metric, task)
    outputs: list[list[Side]] = [
        [(origin, _outputs(origin, labels, gold, kind)) for origin, labels in seed_labels]
        for seed_labels in sides
    ]
    output_task = task_of(
        [side for seed_labels in outputs for side in seed_labels], measure=metric, task=task
    )
    return output_task.name, [
        [measures_of(origin, outputs_of_seed, output_task) for origin, outputs_of_seed in seed_labels]
        for seed_labels in outputs
    ]


def _outputs(origin: Listed, labels: Sequence[Any], gold: Sequence[Any], kind: str) -> list[ExampleOutput]:
    if len(labels) != len(gold):
        raise DataError(
            f"compare: {len(labels)} predictions for {len(gold)} gold answers ({origin.name}); expected as "
            f"many."
        )
    return [
        ExampleOutput(
            line=index, id="", language="", kind=kind, answer=_as_list(answer), gold=_as_list(right)
        )
        for index, (answer, right) in enumerate(zip(labels, gold, strict=True))
    ]


def _as_list(label: Any) -> Any:
    return (
        sorted(label, key=lambda part: (str(type(part)), part)) if isinstance(label, AbstractSet) else label
    )


def _kind(gold: list[Any], sides: Sequence[list[Any]], metric: str, task: str) -> str:
    """Return the key of such answers in a file, for questions, words or texts."""
    predictions = [label for side in sides for label in side]
    are_texts = all(isinstance(label, str) for label in predictions)
    several = any(isinstance(label, list) for label in gold)
    if task == QA or (are_texts and several):
        return "answer"
    if several or any(isinstance(label, list) for label in predictions):
        return "labels"
    if task or not are_texts or not all(isinstance(label, str) for label in gold):
        return "label"
    like_answers = _look_like_answers(gold, predictions)
    if metric in MEASURES[QA]:
        if like_answers:
            return "answer"
        raise ConfigError(
            f"compare: metric {metric!r} with gold {gold[0]!r:.60}: are these answers to questions, or "
            f"classes? For answers, add task={QA!r}. For classes, choose a metric: {', '.join(OF_CLASSES)}."
        )
    if like_answers and metric not in OF_CLASSES:
        raise ConfigError(
            f"compare: gold {gold[0]!r:.60}: texts that nearly all differ are answers to questions, or "
            f"classes? Name the task ({QA!r} or {CLASSIFICATION!r}), or a metric (f1, accuracy)."
        )
    return "label"


def _look_like_answers(gold: Sequence[str], predictions: Sequence[str]) -> bool:
    """Return whether nearly all texts differ, and have spaces or are many: so classes do not look."""
    differ = 2 * len(set(gold)) > len(gold)
    return differ and (len(gold) >= MANY_TEXTS or any(" " in text for text in (*gold, *predictions)))


def _values(origin: Listed, labels: Sequence[Any]) -> Contributions:
    """Return the values of a measure, which is their mean."""
    for index, value in enumerate(labels):
        if not isinstance(value, int | float) or not isfinite(value):
            raise origin.broken(
                index,
                repr(value),
                "a number, the value of a measure",
                "Correct it, or give the gold answers",
            )
    return Contributions([float(value) for value in labels], [1.0] * len(labels))


def _plain_list(name: str, labels: Predictions) -> list[Any]:
    """Return labels in any container as a list of Python's values. Raises DataError where one is missing."""
    if isinstance(labels, str | bytes | Mapping | AbstractSet) or hasattr(labels, "columns"):
        found_value = f"{type(labels).__name__} {labels!r}".partition("\n")[0]
        raise DataError(
            f"compare: {name} is one {found_value[:60]}; expected a list, an array or a column with one "
            f"prediction for each example."
        )
    values = labels.tolist() if hasattr(labels, "tolist") else labels
    if not isinstance(values, Iterable):
        raise DataError(f"compare: {name} is {labels!r:.60}; expected one prediction for each example.")
    answers = [_plain(Listed(name), index, label) for index, label in enumerate(values)]
    if not answers:
        raise DataError(f"compare: no predictions ({name}); expected one for each example, at least one.")
    return answers


def _plain(origin: Listed, index: int, label: Any) -> Any:
    """Return a label of NumPy, torch or pandas as Python's."""
    if hasattr(label, "tolist"):
        label = label.tolist()
    if isinstance(label, list | tuple):
        return [_plain(origin, index, part) for part in label]
    if isinstance(label, AbstractSet):
        return frozenset(_plain(origin, index, part) for part in label)
    if label is None or label is pd.NA or label is pd.NaT or label != label:  # noqa: PLR0124 (NaN)
        advice = "Take the example out on all sides"
        raise origin.broken(index, f"{label!r}, which is missing", LABEL, advice)
    if not isinstance(label, str | int | float) or (isinstance(label, float) and not isfinite(label)):
        raise origin.broken(index, f"{type(label).__name__} {label!r:.60}", LABEL)
    return label


def _system(seeds: Sequence[Contributions]) -> System:
    parts, wholes = (
        np.array([getattr(seed, name) for seed in seeds], dtype=float) for name in ("part", "whole")
    )
    return System(parts, wholes)
