"""Steps after a study that tests differences, and after one whose seeds differ only in the targets."""

import shlex
from dataclasses import dataclass

from isogloss.reports.comparison import SYSTEM
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import count, percent
from isogloss.reports.next_steps import NextStep, main_sets
from isogloss.reports.run_facts import ZERO_SHOT
from isogloss.reports.scores import ScoredSet
from isogloss.tasks import TASKS

FEWEST_SEEDS = 3
LEAST_SPREAD = 0.02
"""Smallest standard deviation over seeds, of the mean of the targets, in a lottery."""

LEAST_RATIO = 3.0
"""Smallest ratio of the standard deviation of the targets to that of the source in a lottery."""

FIRST_WEIGHTS = "optimization.head_weights"


def suggest_comparison(measurements: Measurements, folder: str) -> list[NextStep]:
    """Suggest to compare with the most frequent baseline. Empty without one."""
    baselines = [
        str(baseline["name"])
        for test_set in main_sets(measurements)
        for baseline in test_set.references.values()
    ]
    if baselines:
        name = shlex.quote(max(baselines, key=baselines.count))
        text = "Test every difference from a baseline, over seeds and examples."
        return [NextStep(text, f"isogloss compare {folder} --against {name}")]
    return []


def suggest_head_of_zeros(measurements: Measurements, folder: str) -> list[NextStep]:  # noqa: ARG001 (interface)
    """Suggest a head that begins with zeros for the system whose seeds differ most, in the targets only."""
    lotteries = [
        spread
        for test_set in main_sets(measurements)
        for spread in _spreads(test_set)
        if spread.seeds >= FEWEST_SEEDS and spread.targets >= max(LEAST_SPREAD, LEAST_RATIO * spread.source)
    ]
    if not lotteries:
        return []
    worst = max(lotteries, key=lambda spread: spread.targets)
    return [
        NextStep(
            f"A lottery: over {count(worst.seeds, 'seed')} of {worst.system}, the standard deviation is "
            f"{percent(worst.targets)} points in the mean of targets, {percent(worst.source)} in the source. "
            "Measure a head that begins with zeros, which ended one of tags in Gemma 3 270M "
            "but did nothing in a small encoder: add a [[grid.method]] with "
            'head_weights = "zeros" to the recipe.'
        )
    ]


@dataclass(frozen=True)
class _Spread:
    """Standard deviations over seeds of a system's mean scores."""

    system: str
    seeds: int
    targets: float
    source: float


def _spreads(test_set: ScoredSet) -> list[_Spread]:
    """Return the spread of each zero-shot system. Empty where a head of zeros is refused or was measured."""
    rows = test_set.rows[test_set.rows["reference"] == ZERO_SHOT]
    task = test_set.about["task"]  # Rows may be of a task that is not installed here.
    if rows.empty or task not in TASKS or TASKS[task].labels_are == "tree":
        return []
    if FIRST_WEIGHTS in rows and "zeros" in set(rows[FIRST_WEIGHTS]):
        return []
    spreads = []
    for _, system in rows.groupby(list(SYSTEM), sort=False):
        scores = system.pivot_table(index="seed", columns="language", values="score")
        targets, source = (
            float(scores.reindex(columns=list(languages)).mean(axis=1).std())
            for languages in (test_set.targets, test_set.sources)
        )
        spreads.append(_Spread(str(system["name"].iloc[0]), len(scores), targets, source))
    return spreads
