"""The step after a study with paths or planes: explore them."""

from isogloss.reports.measurements import Measurements
from isogloss.reports.next_steps import NextStep


def suggest_explorer(measurements: Measurements, folder: str) -> list[NextStep]:
    """Suggest to explore models on paths and planes. Empty without them."""
    if not measurements.finished("fine-tune"):
        return []
    if measurements.has_rows("interpolation") or measurements.has_rows("plane"):
        text = "Move along the paths with your own sentences, all seeds side by side."
        return [NextStep(text, f"isogloss explore {folder}")]
    return []
