"""Run variance: how much does a score change when only the seed does?

Paper: "Zero-shot Cross-lingual Transfer is Under-specified Optimization", Sections 1 and 4: the target
language varies far more over seeds than the source.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from isogloss.core.records import Row, Value
from isogloss.diagnostics.look import Look, role_of
from isogloss.metrics.spread import spread


@dataclass(frozen=True)
class RunVariance:
    """Mean and standard deviation over the seeds of one method, for each language."""

    name: ClassVar[str] = "run-variance"
    over: ClassVar[str] = "seeds"

    def measure(self, look: Look) -> list[Row]:
        """Return a row for each language, from the scores of all seeds."""
        return run_variance(row for subject in look.subjects for row in subject.rows)


def run_variance(scores: Iterable[Row]) -> list[Row]:
    """Return mean and unbiased standard deviation of the scores of each language over seeds."""
    groups: dict[tuple[tuple[str, Value], ...], list[float]] = {}
    for row in scores:
        role = role_of(str(row["language"]), row["source"])
        kept = ("corpus", "task", "encoder", "method", "source", "target", "language")
        key = {name: row[name] for name in kept} | {
            "role": role, "split": row["split"], "metric": row["metric"]
        }  # fmt: skip
        groups.setdefault(tuple(key.items()), []).append(float(row["score"] or 0.0))
    rows: list[Row] = []
    for key_items, values in groups.items():
        over = spread(values)
        std = over.std if over.n > 1 else None  # One seed has no spread.
        rows.append({**dict(key_items), "seeds": over.n, "mean": over.mean, "std": std})
    return rows
