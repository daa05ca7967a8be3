"""Scores of a model in each language, and what follows from scores: run variance and transfer gap.

Run variance: "Zero-shot Cross-lingual Transfer is Under-specified Optimization", Sections 1 and 4: the target
language varies far more over seeds than the source. Transfer gap: X-Mixup, Table 8, after Hu et al. (2020),
"XTREME", Section 5: source score minus the mean target score.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

from isogloss.core.rows.models import GapRow, ScoreRow, SeedSpreadRow
from isogloss.diagnostics.setting import Diagnostic, MeasureSetting, kept_predictions, main_scores, role_of
from isogloss.metrics.estimates import mean_std
from isogloss.tasks.task import all_measures


@dataclass(frozen=True)
class Scores(Diagnostic):
    """The task's main and secondary metrics on one split of each language."""

    name: ClassVar[str] = "scores"
    subject: ClassVar[str] = "model"
    version: ClassVar[int] = 3

    def measure(self, setting: MeasureSetting) -> list[ScoreRow]:
        """Return a row for each language and metric, the task's main metric first."""
        model = setting.load(setting.subjects[0])
        rows: list[ScoreRow] = []
        for language in setting.languages:
            evaluation = replace(setting.evaluation(language), on_progress=setting.on_progress)
            predictions = evaluation.predict(model)
            contributions = evaluation.task.contributions(evaluation.gold, predictions)
            setting.keep(kept_predictions(language, evaluation, predictions, contributions))
            measures = all_measures(evaluation.task, evaluation.gold, predictions)
            rows += [
                ScoreRow(
                    model=setting.subjects[0].id,
                    language=language,
                    split=setting.split,
                    metric=name,
                    score=score,
                    main=index == 0,
                    baseline=None if index else evaluation.baseline,
                    examples=len(evaluation.examples),
                )
                for index, (name, score) in enumerate(measures.items())
            ]
        return rows


@dataclass(frozen=True)
class RunVariance(Diagnostic):
    """Mean and standard deviation over the seeds of one method, for each language."""

    name: ClassVar[str] = "run-variance"
    subject: ClassVar[str] = "seeds"
    version: ClassVar[int] = 3

    def measure(self, setting: MeasureSetting) -> list[SeedSpreadRow]:
        """Return a row for each language, from the main scores of all seeds."""
        return run_variance(main_scores(setting.subjects), setting.source)


def run_variance(scores: Iterable[ScoreRow], sources: Collection[str]) -> list[SeedSpreadRow]:
    """Return mean and unbiased standard deviation over seeds of the scores of each language.

    Models without sources (target-only) give no language a role.
    """
    groups: dict[tuple[str, str, str], list[ScoreRow]] = {}
    for row in scores:
        groups.setdefault((row.language, row.split, row.metric), []).append(row)
    rows: list[SeedSpreadRow] = []
    for (language, split, metric), group in groups.items():
        statistics = mean_std([row.score for row in group])
        rows.append(
            SeedSpreadRow(
                models=" ".join(sorted({row.model for row in group})),
                language=language,
                role=role_of(language, sources) if sources else "",
                split=split,
                metric=metric,
                seeds=statistics.n,
                mean=statistics.mean,
                std=statistics.std if statistics.n > 1 else None,
            )
        )
    return rows


@dataclass(frozen=True)
class TransferGap(Diagnostic):
    """Source score minus mean target score of one model."""

    name: ClassVar[str] = "transfer-gap"
    subject: ClassVar[str] = "scores"
    version: ClassVar[int] = 2

    def measure(self, setting: MeasureSetting) -> list[GapRow]:
        """Return one row, from the scores of one model in all languages. None without both roles."""
        rows = main_scores(setting.subjects)
        means = {}
        for role in ("source", "target"):
            scores = [row.score for row in rows if role_of(row.language, setting.source) == role]
            if not scores:
                return []
            means[role] = sum(scores) / len(scores)
        return [
            GapRow(
                model=rows[0].model,
                split=rows[0].split,
                metric=rows[0].metric,
                source_score=means["source"],
                target_mean=means["target"],
                gap=means["source"] - means["target"],
            )
        ]
