"""Compute signals of a model's score in a language without labels, for choosing among models.

Let p be the probabilities of a unit (a text, a word, the options of a choice, an answer's start and end, a
word's head). Two signals are the mean maximum of p and its mean entropy, as a share of the largest possible.
Two more use the source's labels. They were proposed as estimates of the score, but their level is unreliable
(``choices``; Garg et al. 2022, "Leveraging Unlabeled Data to Predict Out-of-Distribution
Performance", Sections 3 and 4):

    ATC = share of the units with max p >= t,  where t is such that in the source this share is the score
    DoC = source score - (mean max p in the source - mean max p here)

Steadiness is the share of units whose prediction stays when every weight is moved, w + noise · rms · N(0, 1)
with the rms of its tensor. It is high in flat minima. The predictions are recorded, so that
``choices`` can compute the agreement of candidates (Baek et al. 2022, "Agreement-on-the-Line").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, ClassVar

from isogloss.core.errors import ConfigError
from isogloss.core.run_parts import Count, Rate
from isogloss.diagnostics.setting import Diagnostic, MeasureSetting, kept_predictions, role_of
from isogloss.encoders.family import Model
from isogloss.features.choosing.rows import LabelFreeRow
from isogloss.tasks.task import LABELS, NUMBER, Answer, Task

if TYPE_CHECKING:
    from torch import Tensor, nn

    from isogloss.training.evaluation import Evaluation


@dataclass(frozen=True, slots=True)
class _Read:
    """A model's predictions for the examples of one language, by unit."""

    evaluation: Evaluation
    confidence: Tensor
    entropy: Tensor
    best: Tensor
    predicted: list[Answer]


@dataclass(frozen=True, kw_only=True)
class LabelFree(Diagnostic):
    """Rank models in each language by signals such as confidence, with only the labels of the source."""

    name: ClassVar[str] = "label-free"
    subject: ClassVar[str] = "model"
    version: ClassVar[int] = 1
    needs_labels: ClassVar[bool] = False

    noise: Rate = 0.05
    """Standard deviation of the move of a weight, as a share of its tensor's root mean square."""

    draws: Count = 2
    """Random moves over which steadiness is averaged. 0 disables it."""

    def check(self, task: Task) -> None:
        """Raise ConfigError for a task whose answers have no probabilities."""
        if task.one_answer is NUMBER:
            raise ConfigError(
                f"{self.name}: task {task.name!r} predicts numbers, which have no probabilities. Take "
                f"a task with labels, or retrieval and cka, which compare states."
            )

    def measure(self, setting: MeasureSetting) -> list[LabelFreeRow]:
        """Return a row for each language and signal. ``score`` is the source's own, from its labels."""
        model = setting.load(setting.subjects[0])
        read = {language: self._read(setting, model, language) for language in setting.languages}
        signals = {
            language: {"confidence": float(units.confidence.mean()), "entropy": float(units.entropy.mean())}
            for language, units in read.items()
        }
        sources = [
            language_code for language_code in read if role_of(language_code, setting.source) == "source"
        ]
        if sources:
            _estimate_scores(read, sources, signals)
        for language, steadiness in self._steadiness(model, read).items():
            signals[language]["steadiness"] = steadiness
        return [
            LabelFreeRow(
                model=setting.subjects[0].id,
                language=language,
                split=setting.split,
                signal=signal,
                value=value,
                examples=len(read[language].evaluation.examples),
            )
            for language, values in signals.items()
            for signal, value in values.items()
        ]

    def _read(self, setting: MeasureSetting, model: Model, language: str) -> _Read:
        evaluation = replace(setting.evaluation(language), on_progress=setting.on_progress)
        scores = evaluation.scores(model)
        predictions = evaluation.task.decode(evaluation.examples, evaluation.rows, scores)
        setting.keep(kept_predictions(language, evaluation, predictions, {}))
        return _Read(evaluation, *_units(evaluation, scores), predictions)

    def _steadiness(self, model: Model, read: Mapping[str, _Read]) -> dict[str, float]:
        """Return for each language the share of units whose best label stays, over all draws."""
        shares_of_languages: dict[str, list[float]] = {language: [] for language in read if self.draws}
        for draw in range(self.draws):
            moved_model = moved_weights(model, self.noise, seed=draw)
            for language, shares in shares_of_languages.items():
                evaluation = read[language].evaluation
                *_, labels = _units(evaluation, evaluation.scores(moved_model))
                shares.append(float((labels == read[language].best).double().mean()))
        return {language: fmean(shares) for language, shares in shares_of_languages.items()}


def _estimate_scores(
    read: Mapping[str, _Read], sources: Sequence[str], signals: Mapping[str, dict[str, float]]
) -> None:
    """Add each source's score, and from these ATC and DoC of every other language."""
    import torch

    for language in sources:
        evaluation = read[language].evaluation
        signals[language]["score"] = evaluation.task.score(evaluation.gold, read[language].predicted)
    score = fmean(signals[language]["score"] for language in sources)
    confidence = torch.cat([read[language].confidence for language in sources])
    for language in read.keys() - set(sources):
        target_confidence = read[language].confidence
        signals[language]["atc"] = estimated_by_threshold(confidence, score, target_confidence)
        signals[language]["doc"] = score - float(confidence.mean() - target_confidence.mean())


def estimated_by_threshold(source: Tensor, score: float, target: Tensor) -> float:
    """Return the share of the target's confidences that reach the source's threshold for its score.

    Confidences [unit], of the same kind of unit in both; ``score`` in [0, 1].
    """
    position = round((1 - score) * len(source))
    if position == len(source):
        return float((target > source.max()).double().mean())
    return float((target >= source.sort().values[position]).double().mean())


def _units(evaluation: Evaluation, scores: Sequence[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Return confidence, entropy and best label [unit] of the raw scores of all rows."""
    import torch

    probabilities = [_probabilities(evaluation.task, part) for part in scores]
    confidence = torch.cat([part.amax(dim=-1) for part in probabilities])
    possible = torch.cat([(part > 0).sum(dim=-1) for part in probabilities]).clamp(min=2)
    entropy = torch.cat([torch.special.entr(part).sum(dim=-1) for part in probabilities]) / possible.log()
    return confidence, entropy, torch.cat([part.argmax(dim=-1) for part in probabilities])


def _probabilities(task: Task, scores: Tensor) -> Tensor:
    """Return [unit label]: start and end among a row's places, a word's head among the words, or labels."""
    import torch

    scores = scores.double()
    if task.one_answer is LABELS:  # Each holds or not.
        return torch.stack((torch.zeros_like(scores), scores), dim=-1).flatten(0, -2).softmax(dim=-1)
    if task.labels_are == "span":
        return scores.T.softmax(dim=-1)
    return (scores[..., 0] if task.labels_are == "tree" else scores).softmax(dim=-1)


def moved_weights(model: nn.Module, noise: float, *, seed: int) -> nn.Module:
    """Return a copy of a model, each weight moved by ``noise`` times its tensor's root mean square."""
    import torch

    moved_model = deepcopy(model)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in moved_model.parameters():
            step = torch.randn(weight.shape, generator=generator).to(weight)
            weight.add_(step, alpha=noise * float(weight.float().square().mean().sqrt()))
    return moved_model
