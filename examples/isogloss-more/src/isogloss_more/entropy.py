"""The mean entropy of predictions in each language: how unsure is a model?"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch

from isogloss.plugins import ConfigError, Diagnostic, MeasureSetting, Task
from isogloss_more.confidence import mean_entropy


@dataclass(frozen=True, kw_only=True)
class EntropyRow:
    """The entropy of a model's predictions in one language."""

    model: str
    language: str
    split: str
    entropy: float
    """Mean, in nats."""
    predictions: int


@dataclass(frozen=True, kw_only=True)
class Entropy(Diagnostic):
    """Mean entropy of a model's predictions in each language."""

    name: ClassVar[str] = "entropy"
    subject: ClassVar[str] = "model"

    def check(self, task: Task) -> None:
        """Raise ConfigError for a task without probabilities of classes."""
        has_classes = task.one_answer is not None and task.one_answer.divergence is not None
        if not has_classes and task.labels_are != "word":
            raise ConfigError(f"{self.name}: task {task.name} predicts no classes. Choose tags or classes.")

    def measure(self, setting: MeasureSetting) -> Iterator[EntropyRow]:
        """Measure each language of the model."""
        subject = setting.subjects[0]
        model = setting.load(subject)
        for language in setting.languages:
            evaluation = setting.evaluation(language)
            scores = torch.cat(list(evaluation.scores(model)))
            yield EntropyRow(
                model=subject.id,
                language=language,
                split=setting.split,
                entropy=float(mean_entropy(scores)),
                predictions=len(scores),
            )
