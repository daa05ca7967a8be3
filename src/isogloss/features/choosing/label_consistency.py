"""The share of texts, or words, to which a model gives the label of their translation into the source.

Labels of words are compared along word links: those of the translations or, without any, those by the states
of the model's encoder (SimAlign). Gold labels are not read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from isogloss.core.errors import ConfigError, DataError
from isogloss.data.examples import ParsedSentence, TaggedSentence
from isogloss.diagnostics.setting import Diagnostic, MeasureSetting
from isogloss.features.choosing.expected_score import consistency
from isogloss.features.choosing.rows import LabelConsistencyRow
from isogloss.tasks.task import CLASSES, Task

if TYPE_CHECKING:
    from isogloss.training.evaluation import Evaluation

Links = Sequence[tuple[int, int]]
"""Pairs of words, of a sentence and of its translation."""


@dataclass(frozen=True, kw_only=True)
class LabelConsistencyOfModels(Diagnostic):
    """Share of texts, or of linked words, that have the label of their translation into the source."""

    name: ClassVar[str] = "label-consistency"
    subject: ClassVar[str] = "cell"
    version: ClassVar[int] = 1
    reads_translations: ClassVar[bool] = True

    between: tuple[str, ...] = ("source-only",)
    """The method of the model."""

    def __post_init__(self) -> None:
        """Refuse several models."""
        if len(self.between) != 1:
            raise ConfigError(
                f"{self.name}: between: found {len(self.between)} methods; expected one. Add a measurement "
                f"for each method."
            )

    def check(self, task: Task) -> None:
        """Raise ConfigError for a task without one class for each text or word."""
        if task.labels_are not in ("word", "example") or task.one_answer not in (None, CLASSES):
            raise ConfigError(
                f"{self.name}: task {task.name!r} does not have one class for each text or word. Choose a "
                f"classification or tagging task."
            )

    def measure(self, setting: MeasureSetting) -> list[LabelConsistencyRow]:
        """Return a row for each target language."""
        (subject,) = setting.subjects
        model = setting.load(subject)
        rows = []
        for language in setting.languages:
            if language in setting.source:
                continue
            data = replace(setting.evaluation(language), on_progress=setting.on_progress)
            translated = replace(setting.translated_evaluation(language), on_progress=setting.on_progress)
            labels, translated_labels = (
                _by_id(evaluation, evaluation.predict(model)) for evaluation in (data, translated)
            )
            ids = [name for name in labels if name in translated_labels]
            if not ids:
                raise DataError(
                    f"{self.name}: no translation has the id of an example of {language}. Give translations "
                    f"of this test set."
                )
            first = [labels[name] for name in ids]
            second = [translated_labels[name] for name in ids]
            links = self._link(setting, data, translated, ids) if data.task.labels_are == "word" else None
            measured = consistency(first, second, links)
            rows.append(
                LabelConsistencyRow(
                    model=subject.id,
                    language=language,
                    split=setting.split,
                    share=measured.share,
                    low=measured.low,
                    high=measured.high,
                    chance=chance_agreement(first, second, links),
                    pairs=len(ids),
                    links=None if links is None else measured.pairs,
                )
            )
        return rows

    def _link(
        self, setting: MeasureSetting, data: Evaluation, translated: Evaluation, ids: Sequence[str]
    ) -> list[Links]:
        """Return links from the words of each example to those of its translation."""
        from isogloss.functional.bitext import link_words

        words, translated_words = (_words_by_id(evaluation) for evaluation in (data, translated))
        links: dict[str, Links] = {
            str(example.id): example.links
            for example in translated.examples
            if isinstance(example, TaggedSentence) and example.links is not None
        }
        missing = [name for name in ids if name not in links]
        if missing:
            model, tokenizer = setting.encoder(setting.subjects[0])
            found = link_words(
                [words[name] for name in missing],
                [translated_words[name] for name in missing],
                model,
                tokenizer,
            )
            links |= dict(zip(missing, found, strict=True))
        return [links[name] for name in ids]


def chance_agreement(first: Sequence[Any], second: Sequence[Any], links: Sequence[Links] | None) -> float:
    """Return the share of equal labels if both sides drew theirs independently from their frequencies."""
    if links is None:
        pairs: list[tuple[Hashable, Hashable]] = list(zip(first, second, strict=True))
    else:
        pairs = [
            (labels[word], other_labels[other_word])
            for labels, other_labels, word_links in zip(first, second, links, strict=True)
            for word, other_word in word_links
        ]
    counts, other_counts = (Counter(side) for side in zip(*pairs, strict=True))
    return sum(counts[label] * other_counts[label] for label in counts) / len(pairs) ** 2


def _by_id(data: Evaluation, answers: Sequence[Any]) -> dict[str, Any]:
    return {str(example.id): answer for example, answer in zip(data.examples, answers, strict=True)}


def _words_by_id(data: Evaluation) -> Mapping[str, Sequence[str]]:
    return {
        str(example.id): example.words
        for example in data.examples
        if isinstance(example, TaggedSentence | ParsedSentence)
    }
