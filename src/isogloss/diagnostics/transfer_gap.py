"""Transfer gap: what does a model lose on the way from the source language to the others?

Paper: X-Mixup, Table 8 (after Hu et al. 2020): source score minus the mean target score.
"""

from dataclasses import dataclass
from typing import ClassVar

from isogloss.core.records import Row
from isogloss.diagnostics.look import Look, role_of
from isogloss.metrics.transfer_gap import transfer_gap


@dataclass(frozen=True)
class TransferGap:
    """Source score minus mean target score of one model."""

    name: ClassVar[str] = "transfer-gap"
    over: ClassVar[str] = "scores"

    def measure(self, look: Look) -> list[Row]:
        """Return one row, from the scores of one model in all languages; none without both sides."""
        rows = [row for subject in look.subjects for row in subject.rows]
        scores: dict[str, list[float]] = {"source": [], "target": []}
        for row in rows:
            scores[role_of(str(row["language"]), row["source"])].append(float(row["score"] or 0.0))
        ours, others = scores["source"], scores["target"]
        if not ours or not others:
            return []
        source = sum(ours) / len(ours)
        kept = ("corpus", "task", "encoder", "method", "source", "seed", "split", "metric")
        numbers = {"source_score": source, "target_mean": sum(others) / len(others)}
        return [{**{name: rows[0][name] for name in kept}, **numbers, "gap": transfer_gap(source, others)}]
