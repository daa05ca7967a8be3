"""Files of points of a path or plane next to its record: contributions of examples, and some sentences."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Protocol, runtime_checkable

from isogloss.core.rows.models import Contributions
from isogloss.core.untrusted import convert_json, parse_json
from isogloss.data.examples import (
    Choice,
    Example,
    LabelledText,
    ParsedSentence,
    Question,
    SentencePair,
    TaggedSentence,
)
from isogloss.data.result_files import Predictions, measure_at
from isogloss.metrics.labels import Tree
from isogloss.metrics.texts import GoldAnswers
from isogloss.tasks.task import Answer

READABLE_WORDS, READABLE_CHARACTERS = 12, 200
"""Longer examples are stored only where shorter ones are too few."""


@dataclass(frozen=True, kw_only=True)
class PathSentence:
    """An example of a path in weight space: its text, and the predictions of models on the path."""

    units: tuple[str, ...]
    """Its words, or its whole text if the text has a single label."""
    gold: tuple[str, ...]
    """Gold label of each unit."""
    predicted: tuple[tuple[float, tuple[str, ...]], ...]
    """Predicted label of each unit, for each α in ascending order."""


def path_sentence(answer: str) -> PathSentence | None:
    """Read a sentence from the JSON stored as an example's prediction, or None from any other JSON."""
    try:
        sentence = convert_json(PathSentence, parse_json(answer))
    except ValueError:
        return None
    label_rows = [sentence.gold, *(labels for _, labels in sentence.predicted)]
    is_complete = len(label_rows) > 1 and all(len(labels) == len(sentence.units) for labels in label_rows)
    return sentence if is_complete else None


@runtime_checkable
class ScoredExamples(Protocol):
    """Metric, examples and gold answers of an evaluation."""

    @property
    def metric(self) -> str:
        """Name of the task's metric."""

    @property
    def examples(self) -> Sequence[Example]:
        """The examples, in their order."""

    @property
    def gold(self) -> list[Answer]:
        """The gold answer of each."""


@dataclass
class PointRecords:
    """The examples of one language at each point: what they add to the score, and the predicted answers."""

    evaluation: ScoredExamples
    sentences: int | None
    """Number of examples that are stored with their predictions. None stores none."""
    _added: dict[str, Contributions] = field(default_factory=dict)
    _labels: dict[float, list[tuple[str, ...]]] = field(default_factory=dict)

    def add(
        self, point: Sequence[float], evaluation_result: tuple[float, Contributions, list[Answer]]
    ) -> None:
        """Record a point, as returned by ``score_by_example``. Planes record only the axes."""
        _, parts, answers = evaluation_result
        if len(point) == 1 or 0 in point:
            self._added[measure_at(self.evaluation.metric, point)] = parts
        if self.sentences:
            sizes = [len(units_of(example)) for example in self.evaluation.examples]
            self._labels[point[0]] = list(map(labels_of, answers, sizes))

    def predictions(self, language: str) -> Predictions:
        """Return contributions of all examples, and the sentences whose predictions change most."""
        examples = self.evaluation.examples
        texts = {index: _to_json(self._sentence(index)) for index in self._changing()}
        return Predictions(
            language=language,
            ids=[example.id for example in examples],
            predicted=[texts.get(index, "null") for index in range(len(examples))],
            contributions=self._added,
        )

    def _changing(self) -> list[int]:
        """Return the numbers of the examples with most units whose label at α = 1 is not that at α = 0."""
        if not self.sentences:
            return []
        start_labels, end_labels = (
            self._labels[min(self._labels, key=lambda alpha: abs(alpha - end_alpha))] for end_alpha in (0, 1)
        )
        changes = [sum(map(str.__ne__, *sides)) for sides in zip(start_labels, end_labels, strict=True)]
        units = [units_of(example) for example in self.evaluation.examples]
        is_long = [
            len(words) > READABLE_WORDS or sum(len(word) for word in words) > READABLE_CHARACTERS
            for words in units
        ]
        order = sorted(range(len(units)), key=lambda index: (is_long[index], -changes[index]))
        return order[: self.sentences]

    def _sentence(self, index: int) -> PathSentence:
        units = units_of(self.evaluation.examples[index])
        return PathSentence(
            units=units,
            gold=labels_of(self.evaluation.gold[index], len(units)),
            predicted=tuple((alpha, self._labels[alpha][index]) for alpha in sorted(self._labels)),
        )


def _to_json(sentence: PathSentence) -> str:
    return json.dumps(asdict(sentence), ensure_ascii=False, separators=(",", ":"))


def units_of(example: Example) -> tuple[str, ...]:
    """Return the labelled units of an example: its words, or its texts as one."""
    match example:
        case TaggedSentence() | ParsedSentence():
            return example.words
        case SentencePair():
            return (f"{example.first} / {example.second}",)
        case LabelledText():
            return (example.text,)
        case Question():
            return (f"{example.question} / {example.passage}",)
        case Choice():
            return (
                " / ".join(text for text in (example.context, example.question, *example.options) if text),
            )
    raise TypeError(f"{type(example).__name__} has no labels.")


def labels_of(answer: Answer, units: int) -> tuple[str, ...]:
    """Return a gold or predicted answer as a label for each unit of an example."""
    match answer:
        case Tree():
            arcs = zip(answer.relations, answer.heads, strict=True)
            return tuple(f"{relation} {head}" for relation, head in arcs)
        case GoldAnswers():
            return (" | ".join(answer.texts),)
        case tuple():
            labels = tuple(str(label) for label in answer)
            return labels if len(labels) == units else (", ".join(labels),)
    return (str(answer),)
