"""The step after a study that tests differences."""

import shlex

from isogloss.reports.measurements import Measurements
from isogloss.reports.next_steps import NextStep, main_sets


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
