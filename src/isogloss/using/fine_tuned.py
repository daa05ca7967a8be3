"""A fine-tuned model in use: encoding examples, predicting and scoring them in batches."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from isogloss.core.errors import ConfigError
from isogloss.core.progress import OnProgress, no_progress
from isogloss.core.run_parts import Optimization, Updates, with_fields
from isogloss.data.examples import Example
from isogloss.data.projection.label_projection import texts_of
from isogloss.encoders.added.active_language import check_languages
from isogloss.encoders.family import Model as Network
from isogloss.encoders.family import Tokenizer
from isogloss.encoders.loading import has_own_head
from isogloss.encoders.mixup import Mixup
from isogloss.encoders.shared_weights import evaluation_copy
from isogloss.tasks.task import Task
from isogloss.training.evaluation import Evaluation, evaluation, pair_with_translations
from isogloss.using.formats import Answered, FileEntry, InputForm, Prediction, Probabilities
from isogloss.using.kinds import kind_of, probabilities_of
from isogloss.using.provenance import (
    Provenance,
)

Translations = Sequence[Example | None] | None
"""The translation of each example into the source language, if any. None for a model that does not mix."""

GROUP_SIZE = 256
"""Examples predicted together: enough for full batches, few enough for any memory."""

GROUP_CHARACTERS = 1_000_000
"""A group is complete once its entries have this many characters together."""

Self = TypeVar("Self", bound="FineTuned")


@dataclass(frozen=True, repr=False)
class FineTuned:
    """Encoder, head and tokenizer of a fine-tuned model, with the task that decodes it."""

    network: Network
    """Stays as it is: copies that share its weights run instead, so that threads can use one model."""
    tokenizer: Tokenizer
    task: Task
    provenance: Provenance
    """Its provenance."""
    precision: str = "auto"
    """auto (what pays on this machine), float32 or bfloat16."""
    mixup: Mixup | None = None
    """Layer and amount of mixing an input with its translation. None for a model that does not mix."""
    links: tuple[str, ...] = ()
    """Files of its folder that are symbolic links."""
    folder: Path = Path()
    """The folder of its weights."""

    @property
    def kind(self) -> InputForm:
        """Forms of inputs and answers."""
        kind = kind_of(self.task)
        return replace(kind, auto_class="", hub_tag="", pipeline="") if has_own_head(self.network) else kind

    @property
    def longest(self) -> int:
        """Subwords of its longest row, special ones included."""
        return (
            int(self.tokenizer.model_max_length) if self.task.evaluates_full_length else self.provenance.limit
        )

    @property
    def into(self) -> str:
        """The language of translations: its source language, the first of several."""
        return next(iter(self.provenance.source), "the source language")

    def answered(
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
        for group in in_groups(entries):
            examples = [entry.example for entry in group if entry.example is not None]
            translations = [entry.translation for entry in group if entry.example is not None]
            predictions: Iterator[Prediction] = iter(())
            if examples:
                prepared = self.prepared(examples, language=language, translations=translations)
                prepared = replace(prepared, on_progress=on_progress)
                predictions = iter(self._predictions(prepared, probabilities))
            for entry in group:
                yield entry, None if entry.example is None else next(predictions)

    def _predictions(self, prepared: Evaluation, probabilities: Probabilities | None) -> list[Prediction]:
        raw = prepared.scores(evaluation_copy(self.network))
        answers = self.task.decode(prepared.examples, prepared.rows, raw)
        if probabilities is None:
            return [Prediction(answer) for answer in answers]
        scores = probabilities(self.task, prepared.examples, prepared.rows, raw, answers)
        return [Prediction(*pair) for pair in zip(answers, scores, strict=True)]

    def score(
        self, examples: Sequence[Example], *, language: str = "", translations: Translations = None
    ) -> float:
        """Return the task's metric on labelled examples."""
        prepared = self.prepared(examples, language=language, translations=translations)
        return prepared.score(evaluation_copy(self.network))

    def measures(
        self, examples: Sequence[Example], *, language: str = "", translations: Translations = None
    ) -> dict[str, float]:
        """Return all measures of labelled examples, the task's metric first."""
        prepared = self.prepared(examples, language=language, translations=translations)
        return prepared.measures(evaluation_copy(self.network))

    def solving(self: Self, task: Task) -> Self:
        """Return the same model with another task, whose labels rename those of its task."""
        return replace(self, task=task)

    def check_languages(self, languages: Iterable[str]) -> None:
        """Raise ConfigError if its encoder has language modules or maps, but none for one of these."""
        check_languages(self.network, languages)

    def check_mixes(self, option: str) -> Mixup:
        """Return the layer and the amount of its mixing.

        Raises ConfigError, with the option, if it uses no translations.
        """
        if self.mixup is None:
            raise ConfigError(
                f"{option}: this model ({self.provenance.method}) does not mix inputs with their "
                f"translations; models of x-mixup do. Leave {option} out, or give it translations as inputs."
            )
        return self.mixup

    def prepared(
        self, examples: Sequence[Example], *, language: str = "", translations: Translations = None
    ) -> Evaluation:
        """Encode and batch examples, each with its translation if the model mixes the two."""
        if self.mixup is None or translations is None:
            return self._evaluation(examples, language)
        numbered = [replace(example, id=str(number)) for number, example in enumerate(examples)]
        others = [
            replace(other, id=example.id)
            for example, other in zip(numbered, translations, strict=True)
            if other is not None
        ]
        return self.prepared_by_id(numbered, others, language=language)

    def prepared_by_id(
        self, examples: Sequence[Example], translations: Sequence[Example], *, language: str = ""
    ) -> Evaluation:
        """Encode and batch examples, each with the translation of its id, if any.

        ConfigError for a model that does not mix.
        """
        return pair_with_translations(
            self._evaluation(examples, language),
            translations,
            self.tokenizer,
            self._optimization,
            mixup=self.check_mixes("translations"),
            source=next(iter(self.provenance.source), ""),
        )

    def _evaluation(self, examples: Sequence[Example], language: str) -> Evaluation:
        return evaluation(self.task, examples, self.tokenizer, self._optimization, language=language)

    @property
    def _optimization(self) -> Optimization:
        updates = with_fields(Updates(), precision=self.precision)
        return Optimization(limit=self.provenance.limit, overlap=self.provenance.overlap, updates=updates)


def in_groups(entries: Iterable[FileEntry]) -> Iterator[list[FileEntry]]:
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
    read = () if entry.lines or entry.example is None else texts_of(entry.example)
    texts = () if entry.translation is None else texts_of(entry.translation)
    return sum(map(len, (*entry.lines, *read, *texts)))
