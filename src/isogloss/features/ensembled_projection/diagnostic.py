"""Ensembled projection as a measurement: a model reads the target, and a second one its translation.

Ebing & Glavaš (ACL 2025). ``functions`` has the equation. Words are linked by the links of the translations
or, without any, by the states of the first model's encoder (SimAlign).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from isogloss.core.errors import ConfigError, DataError
from isogloss.core.run_parts import Share
from isogloss.data.examples import ParsedSentence, TaggedSentence
from isogloss.diagnostics.setting import Diagnostic, MeasureSetting
from isogloss.features.ensembled_projection.rows import ProjectionRow
from isogloss.tasks.task import Task

if TYPE_CHECKING:
    from torch import Tensor

    from isogloss.encoders.family import Model
    from isogloss.training.evaluation import Evaluation

Links = Sequence[tuple[int, int]]
"""Pairs of words, of a sentence and of its translation."""

SMALLEST = 1e-12
"""Smallest probability, whose logarithm is finite."""


@dataclass(frozen=True, kw_only=True)
class EnsembledProjection(Diagnostic):
    """Score of words' labels by a model of the target together with labels projected from translations."""

    name: ClassVar[str] = "ensembled-projection"
    subject: ClassVar[str] = "cell"
    version: ClassVar[int] = 1
    reads_translations: ClassVar[bool] = True

    between: tuple[str, ...] = ("translate-train", "source-only")
    """The method whose model reads the target, and the method whose model reads translations."""

    shares: tuple[Share, ...] = (0.0, 0.5, 1.0)
    """Weights of the translation. 0 is only the first model, 0.5 the paper's ensemble, 1 label projection."""

    def __post_init__(self) -> None:
        """Refuse a wrong number of models."""
        if len(self.between) != 2:
            raise ConfigError(
                f"{self.name}: between: found {len(self.between)} methods; expected two: the method that "
                f"reads the target, and the method that reads translations."
            )

    def check(self, task: Task) -> None:
        """Raise ConfigError for a task that does not label words."""
        if task.labels_are != "word":
            raise ConfigError(
                f"{self.name}: task {task.name!r} does not label words. Choose a tagging task; in "
                f"classification, average probabilities (isogloss.load_model of several models)."
            )

    def measure(self, setting: MeasureSetting) -> list[ProjectionRow]:
        """Return a row for each target language and share."""
        models = [setting.load(subject) for subject in setting.subjects]
        rows: list[ProjectionRow] = []
        for language in setting.languages:
            if language in setting.source:
                continue
            data = replace(setting.evaluation(language), on_progress=setting.on_progress)
            translated = replace(setting.translated_evaluation(language), on_progress=setting.on_progress)
            scores = data.scores(models[0])
            projected = _read_words(translated, models[1])
            links = self._link(setting, data, translated)
            for share in self.shares:
                answers = data.task.decode(
                    data.examples, data.rows, mix_scores(data, scores, projected, links, share)
                )
                rows.append(
                    ProjectionRow(
                        model=setting.subjects[0].id,
                        translated_model=setting.subjects[1].id,
                        language=language,
                        split=setting.split,
                        share=share,
                        metric=data.metric,
                        score=data.task.score(data.gold, answers),
                        linked=_share_of_linked_words(data, links),
                        examples=len(data.examples),
                    )
                )
        return rows

    def _link(self, setting: MeasureSetting, data: Evaluation, translated: Evaluation) -> dict[str, Links]:
        """Return links from the words of each example to those of its translation, by the example's id."""
        from isogloss.functional.bitext import link_words

        originals = words_by_id(data)
        translations = words_by_id(translated)
        ids = [name for name in translations if name in originals]
        if not ids:
            raise DataError(
                f"{self.name}: no translation has the id of an example. Give translations of this test set."
            )
        known = {
            example.id: example.links
            for example in translated.examples
            if isinstance(example, TaggedSentence) and example.links is not None
        }
        # Links of translations lead from words of the original, which is the target's here.
        links: dict[str, Links] = {name: known[name] for name in ids if name in known}
        missing = [name for name in ids if name not in links]
        if missing:
            model, tokenizer = setting.encoder(setting.subjects[0])
            found = link_words(
                [originals[name] for name in missing],
                [translations[name] for name in missing],
                model,
                tokenizer,
            )
            links |= dict(zip(missing, found, strict=True))
        return links


def words_by_id(data: Evaluation) -> dict[str, Sequence[str]]:
    """Return the words of each sentence by its id."""
    return {
        example.id: example.words
        for example in data.examples
        if isinstance(example, TaggedSentence | ParsedSentence)
    }


def mix_scores(
    data: Evaluation,
    scores: Sequence[Tensor],
    projected: Mapping[str, Tensor],
    links: Mapping[str, Links],
    share: float,
) -> list[Tensor]:
    """Return the logarithms of ensembled probabilities for each row, or the scores of the first model.

    ``projected`` are the probabilities [word class] of translations, ``links`` lead to their words, by id.
    """
    import torch

    from isogloss.features.ensembled_projection.functions import ensemble_projection

    mixed = []
    for row, row_scores in zip(data.rows, scores, strict=True):
        name = str(data.examples[row.example].id)
        if name not in links or not share:
            mixed.append(row_scores)
            continue
        places = {word: place for place, word in enumerate(row.words)}
        kept = [(places[word], other) for word, other in links[name] if word in places]
        own = row_scores.double().softmax(dim=-1)
        probabilities = ensemble_projection(own, projected[name], kept, share=share)
        mixed.append(torch.from_numpy(probabilities).clamp(min=SMALLEST).log())
    return mixed


def _read_words(translated: Evaluation, model: Model) -> dict[str, Tensor]:
    """Return the probabilities [word class] of each translation by id. Words that were cut are uniform."""
    import torch

    classes = len(translated.task.labels)
    probabilities = {
        name: torch.full((len(words), classes), 1 / classes, dtype=torch.float64)
        for name, words in words_by_id(translated).items()
    }
    for row, scores in zip(translated.rows, translated.scores(model), strict=True):
        name = str(translated.examples[row.example].id)
        probabilities[name][list(row.words)] = scores.double().softmax(dim=-1)
    return probabilities


def _share_of_linked_words(data: Evaluation, links: Mapping[str, Links]) -> float:
    sentences = words_by_id(data)
    linked = sum(len({word for word, _ in links.get(name, ())}) for name in sentences)
    return linked / max(1, sum(len(words) for words in sentences.values()))
