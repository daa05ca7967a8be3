"""Scores: how good is a model in each language, beside the baseline that always says the commonest label?"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from isogloss.core.records import Row
from isogloss.data.prediction_table import Predictions
from isogloss.diagnostics.look import Look
from isogloss.training.evaluation import Scorer


@dataclass(frozen=True)
class Scores:
    """The task's own metric on one split of each language."""

    name: ClassVar[str] = "scores"
    over: ClassVar[str] = "model"

    def measure(self, look: Look) -> list[Row]:
        """Return a row for each language; measures beside the metric are columns of their own names."""
        model = look.load(look.subjects[0])
        rows: list[Row] = []
        for language in look.languages:
            evaluation = look.evaluation(language)
            predicted = evaluation.predict(model)
            look.keep(_predictions(language, evaluation, predicted))
            score, *others = evaluation.task.measures(evaluation.gold, predicted).items()
            rows.append(
                {
                    **look.columns,
                    "language": language,
                    "split": look.split,
                    "metric": score[0],
                    "score": score[1],
                    "baseline": evaluation.baseline,
                    "examples": len(evaluation.examples),
                    **dict(others),
                }
            )
        return rows


def _predictions(language: str, evaluation: Scorer, predicted: Sequence[Any]) -> Predictions:
    return Predictions(
        language=language,
        ids=[example.id for example in evaluation.examples],
        predicted=[
            json.dumps(one, ensure_ascii=False, separators=(",", ":"), default=asdict) for one in predicted
        ],
        contributions=evaluation.task.contributions(evaluation.gold, predicted),
    )
