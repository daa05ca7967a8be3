"""Transfer gap: what does a model lose on the way from the source language to the others?

Paper: X-Mixup, Table 8 (after Hu et al. 2020): source score minus the mean target score.
"""

from dataclasses import dataclass
from typing import ClassVar

from isogloss.core.rows import Gap
from isogloss.diagnostics.setting import MeasureSetting, main_scores, role_of


@dataclass(frozen=True)
class TransferGap:
    """Source score minus mean target score of one model."""

    name: ClassVar[str] = "transfer-gap"
    subject: ClassVar[str] = "scores"
    version: ClassVar[int] = 2

    def measure(self, setting: MeasureSetting) -> list[Gap]:
        """Return one row, from the scores of one model in all languages; none without both sides."""
        rows = main_scores(setting.subjects)
        ours, others = (
            [row.score for row in rows if role_of(row.language, setting.source) == role]
            for role in ("source", "target")
        )
        if not ours or not others:
            return []
        source, target = sum(ours) / len(ours), sum(others) / len(others)
        return [
            Gap(
                model=rows[0].model,
                split=rows[0].split,
                metric=rows[0].metric,
                source_score=source,
                target_mean=target,
                gap=source - target,
            )
        ]
