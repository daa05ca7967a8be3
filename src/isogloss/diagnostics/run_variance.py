"""Run variance: how much does a score change when only the seed does?

Paper: "Zero-shot Cross-lingual Transfer is Under-specified Optimization", Sections 1 and 4: the target
language varies far more over seeds than the source.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import ClassVar

from isogloss.core.rows import Score, SeedSpread
from isogloss.diagnostics.setting import MeasureSetting, main_scores, role_of
from isogloss.metrics.estimates import mean_std


@dataclass(frozen=True)
class RunVariance:
    """Mean and standard deviation over the seeds of one method, for each language."""

    name: ClassVar[str] = "run-variance"
    subject: ClassVar[str] = "seeds"
    version: ClassVar[int] = 2

    def measure(self, setting: MeasureSetting) -> list[SeedSpread]:
        """Return a row for each language, from the scores of all seeds by the task's own metric."""
        return run_variance(main_scores(setting.subjects), setting.source)


def run_variance(scores: Iterable[Score], sources: Collection[str]) -> list[SeedSpread]:
    """Return mean and unbiased standard deviation of the scores of each language over seeds."""
    groups: dict[tuple[str, str, str], list[Score]] = {}
    for row in scores:
        groups.setdefault((row.language, row.split, row.metric), []).append(row)
    rows: list[SeedSpread] = []
    for (language, split, metric), group in groups.items():
        over = mean_std([row.score for row in group])
        rows.append(
            SeedSpread(
                models=" ".join(sorted({row.model for row in group})),
                language=language,
                role=role_of(language, sources),
                split=split,
                metric=metric,
                seeds=over.n,
                mean=over.mean,
                std=over.std if over.n > 1 else None,  # One seed has no spread.
            )
        )
    return rows
