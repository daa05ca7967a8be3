"""Predicting the examples of files with a fine-tuned model, whatever computes its scores."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from isogloss.core.errors import ConfigError
from isogloss.core.progress import OnProgress, no_progress
from isogloss.data.examples import Example
from isogloss.tasks.batch import Scores
from isogloss.tasks.encoded_examples import EncodedExamples
from isogloss.tasks.task import Answer, Task
from isogloss.using.formats import Answered, FileEntry, InputForm, Prediction, Probabilities
from isogloss.using.kinds import kind_of, probabilities_of
from isogloss.using.provenance import Provenance

if TYPE_CHECKING:
    from isogloss.encoders.mixup import Mixup

Translations = Sequence[Example | None] | None
"""The translation of each example into the source language, if any. None for a model that does not mix."""

GROUP_SIZE = 256
"""Examples predicted together: enough for full batches, few enough for any memory."""

GROUP_CHARACTERS = 1_000_000
"""A group is complete once its entries have this many characters together."""

Self = TypeVar("Self", bound="Predictor")


class Predictor(ABC):
    """A fine-tuned model that predicts: its task, tokenizer and provenance, and an engine for its scores."""

    tokenizer: Any
    task: Task
    provenance: Provenance
    """Its training."""
    precision: str
    """auto (what pays on this machine), float32, bfloat16 or int8."""
    mixup: "Mixup | None"
    """Where and how much an input is mixed with its translation. None for a model that does not mix."""

    @abstractmethod
    def prepare(
        self, examples: Sequence[Example], *, language: str = "", translations: Translations = None
    ) -> EncodedExamples:
        """Encode examples, each with its translation if the model mixes the two."""

    @abstractmethod
    def scores_of(self, encoded_examples: EncodedExamples) -> Sequence[Scores]:
        """Return the raw scores of the rows of prepared examples."""

    @abstractmethod
    def solving(self: Self, task: Task) -> Self:
        """Return the same model with a different task, whose labels replace the labels of its task."""

    @abstractmethod
    def check_languages(self, languages: Iterable[str]) -> None:
        """Raise ConfigError if its encoder has language modules or maps, but none for one of these."""

    @property
    def kind(self) -> InputForm:
        """Forms of inputs and answers."""
        return kind_of(self.task)

    @property
    def into(self) -> str:
        """The language of translations: its source language, the first of several."""
        return next(iter(self.provenance.source), "the source language")

    def answers_of(self, encoded_examples: EncodedExamples) -> list[Answer]:
        """Return the predicted answer to each of the prepared examples."""
        return self.task.decode(
            encoded_examples.examples, encoded_examples.rows, self.scores_of(encoded_examples)
        )

    def predict_entries(
        self,
        entries: Iterable[FileEntry],
        *,
        language: str = "",
        scores: bool = False,
        on_progress: OnProgress = no_progress,
    ) -> Iterator[Answered]:
        """Yield each entry with the prediction for its example, with probabilities if ``scores``.

        ``on_progress`` receives the rows done within each group of ``GROUP_SIZE`` entries.
        """
        probabilities = probabilities_of(self.task) if scores else None
        for group in group_entries(entries):
            examples = [entry.example for entry in group if entry.example is not None]
            translations = [entry.translation for entry in group if entry.example is not None]
            predictions: Iterator[Prediction] = iter(())
            if examples:
                encoded_examples = self.prepare(examples, language=language, translations=translations)
                encoded_examples = replace(encoded_examples, on_progress=on_progress)
                predictions = iter(self._predictions(encoded_examples, probabilities))
            for entry in group:
                yield entry, None if entry.example is None else next(predictions)

    def _predictions(
        self, encoded_examples: EncodedExamples, probabilities: Probabilities | None
    ) -> list[Prediction]:
        raw = self.scores_of(encoded_examples)
        answers = self.task.decode(encoded_examples.examples, encoded_examples.rows, raw)
        if probabilities is None:
            return [Prediction(answer) for answer in answers]
        scores = probabilities(self.task, encoded_examples.examples, encoded_examples.rows, raw, answers)
        return [Prediction(*pair) for pair in zip(answers, scores, strict=True)]

    def check_mixes(self, option: str) -> "Mixup":
        """Return the layer and the amount of its mixing.

        Raises ConfigError, with the option, if it uses no translations.
        """
        if self.mixup is None:
            raise ConfigError(
                f"{option}: this model ({self.provenance.method}) does not mix inputs with their "
                f"translations; models of x-mixup do. Remove {option}, or give it translations as inputs."
            )
        return self.mixup


def group_entries(entries: Iterable[FileEntry]) -> Iterator[list[FileEntry]]:
    """Yield groups of ``GROUP_SIZE`` entries, smaller ones of ``GROUP_CHARACTERS``.

    Reads the entries of a group when the group is requested.
    """
    group = list[FileEntry]()
    characters = 0
    for entry in entries:
        group.append(entry)
        characters += _characters(entry)
        if len(group) == GROUP_SIZE or characters >= GROUP_CHARACTERS:
            yield group
            group = []
            characters = 0
    if group:
        yield group


def _characters(entry: FileEntry) -> int:
    from isogloss.data.projection.example_texts import texts_of

    read = () if entry.lines or entry.example is None else texts_of(entry.example)
    texts = () if entry.translation is None else texts_of(entry.translation)
    return sum(len(text) for text in (*entry.lines, *read, *texts))
