"""Scores: how good is a model in each language, beside the baseline that always says the commonest label?"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from isogloss.core.rows import Score
from isogloss.data.result_files import Predictions
from isogloss.diagnostics.setting import MeasureSetting
from isogloss.training.evaluation import Evaluation


@dataclass(frozen=True)
class Scores:
    """The task's own metric, and what the field reports beside it, on one split of each language."""

    name: ClassVar[str] = "scores"
    subject: ClassVar[str] = "model"
    version: ClassVar[int] = 2

    def measure(self, setting: MeasureSetting) -> list[Score]:
        """Return a row for each language and measure, the task's own metric first."""
        model = setting.load(setting.subjects[0])
        rows: list[Score] = []
        for language in setting.languages:
            evaluation = setting.evaluation(language)
            predicted = evaluation.predict(model)
            setting.keep(_predictions(language, evaluation, predicted))
            measures = evaluation.task.measures(evaluation.gold, predicted)
            rows += [
                Score(
                    model=setting.subjects[0].id,
                    language=language,
                    split=setting.split,
                    metric=name,
                    score=score,
                    main=number == 0,
                    baseline=None if number else evaluation.baseline,
                    examples=len(evaluation.examples),
                )
                for number, (name, score) in enumerate(measures.items())
            ]
        return rows


def _predictions(language: str, evaluation: Evaluation, predicted: Sequence[Any]) -> Predictions:
    return Predictions(
        language=language,
        ids=[example.id for example in evaluation.examples],
        predicted=[
            json.dumps(one, ensure_ascii=False, separators=(",", ":"), default=asdict) for one in predicted
        ],
        contributions=evaluation.task.contributions(evaluation.gold, predicted),
    )
