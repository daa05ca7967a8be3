"""Scores: how good is a model in each language, beside the baseline that always says the commonest label?"""

from dataclasses import dataclass
from typing import ClassVar

from isogloss.core.records import Row
from isogloss.diagnostics.look import Look


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
            score, *others = evaluation.measures(model).items()
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
