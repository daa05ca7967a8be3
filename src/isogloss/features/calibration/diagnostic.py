"""Calibration of a model in each language, before and after a temperature that is fitted on the source.

Ahuja et al. (EMNLP 2022), "On the Calibration of Massively Multilingual Language Models". ``functions`` has
the equations. The temperature is fitted on the dev set of the source languages together, whatever split is
measured, so it uses no label of a target.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from isogloss.core.errors import ConfigError
from isogloss.core.run_parts import Positive
from isogloss.data.corpus import Split
from isogloss.diagnostics.setting import Diagnostic, MeasureSetting
from isogloss.features.calibration.rows import CalibrationRow
from isogloss.tasks.task import CLASSES, Task

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from isogloss.encoders.family import Model
    from isogloss.training.evaluation import Evaluation


@dataclass(frozen=True, kw_only=True)
class Calibration(Diagnostic):
    """Distance of confidence and accuracy (ECE) in each language, also after temperature scaling."""

    name: ClassVar[str] = "calibration"
    subject: ClassVar[str] = "model"
    version: ClassVar[int] = 1
    tuning_split: ClassVar[Split] = "dev"

    bins: Positive = 10
    """Bins of confidence, of equal width."""

    def check(self, task: Task) -> None:
        """Raise ConfigError for a task without one class for each text or word."""
        if task.labels_are not in ("word", "example") or task.one_answer not in (None, CLASSES):
            raise ConfigError(
                f"{self.name}: task {task.name!r} does not have one class for each text or word. Choose a "
                f"classification or tagging task."
            )

    def measure(self, setting: MeasureSetting) -> list[CalibrationRow]:
        """Return a row for each language. Without a source among them there is no temperature."""
        import numpy as np

        from isogloss.features.calibration.functions import calibration_error, fit_temperature, softmax

        model = setting.load(setting.subjects[0])
        sources = [language for language in setting.languages if language in setting.source]
        tuning = [self._read(setting, setting.tuning_evaluation(language), model) for language in sources]
        temperature = (
            fit_temperature(*(np.concatenate(parts) for parts in zip(*tuning, strict=True)))
            if tuning
            else None
        )
        rows = []
        for language in setting.languages:
            logits, gold = self._read(setting, setting.evaluation(language), model)
            probabilities = softmax(logits)
            scaled = softmax(logits / temperature) if temperature else None
            rows.append(
                CalibrationRow(
                    model=setting.subjects[0].id,
                    language=language,
                    split=setting.split,
                    items=len(gold),
                    accuracy=float((probabilities.argmax(axis=1) == gold).mean()),
                    confidence=float(probabilities.max(axis=1).mean()),
                    error=calibration_error(probabilities, gold, bins=self.bins),
                    temperature=temperature,
                    scaled_error=None if scaled is None else calibration_error(scaled, gold, bins=self.bins),
                )
            )
        return rows

    def _read(
        self, setting: MeasureSetting, evaluation: Evaluation, model: Model
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """Return logits [item, class] and gold classes [item] of all labelled rows."""
        import numpy as np
        import torch

        evaluation = replace(evaluation, on_progress=setting.on_progress)
        parts = [
            (scores.double().reshape(len(row.gold), -1), list(row.gold))
            for row, scores in zip(evaluation.rows, evaluation.scores(model), strict=True)
            if row.gold
        ]
        logits = torch.cat([scores for scores, _ in parts]).numpy()
        return logits, np.array([label for _, gold in parts for label in gold], dtype=np.int64)
