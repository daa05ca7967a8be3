"""The step after a study that chooses a model without labels."""

from isogloss.features.choosing.candidates import all_candidates
from isogloss.reports.measurements import Measurements
from isogloss.reports.next_steps import NextStep


def suggest_choice(measurements: Measurements, folder: str) -> list[NextStep]:
    """Suggest to choose, or to measure what a choice needs. Empty for fewer than two models."""
    if all_candidates(measurements):
        text = "Choose a model without labels, and see what such choices lose where labels are known."
        return [NextStep(text, f"isogloss choose {folder}")]
    if measurements.has_rows("scores") and measurements.frame("scores")["model"].nunique() > 1:
        text = (
            'Choosing among these models without target labels needs [[measure]] name = "label-free" in the '
            "recipe. Models are not trained again."
        )
        return [NextStep(text, measurements.command)]
    return []
