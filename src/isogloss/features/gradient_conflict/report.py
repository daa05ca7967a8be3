"""Gradient conflict in reports: by pair of languages, by layer, and during training."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from isogloss.reports.drawing import Lines
from isogloss.reports.line_figures import LineFigure
from isogloss.reports.measurements import Measurements
from isogloss.reports.parts import Part
from isogloss.reports.similarity import WHOLE, SimilarityColumn, show_layers, show_table

WINDOWS = 25
"""Curves are smoothed over this fraction (1/n) of their points, because single batches are noisy."""

COSINE = SimilarityColumn(
    "gradient-conflict", "cosine", "Cosine of gradients", "Cosine of the gradients of two batches"
)


def _cosines_in_training(_: Measurements, rows: pd.DataFrame) -> pd.DataFrame:
    """Return the cosine of whole gradients by step of pretraining and fine-tuning."""
    rows = rows[(rows["module"] == WHOLE) & rows["layer"].isna()].dropna(subset=["cosine"])
    rows = rows.sort_values("step", kind="stable")
    return rows.assign(
        pair=rows["first"] + "–" + rows["second"],
        smooth=rows.groupby(["run", "first", "second"])["cosine"].transform(smooth),
        line=(rows["first"] == rows["second"]).map({True: "within", False: ""}),
        stage=rows["kind"].map({"encoder": "pretraining", "model": "fine-tuning"}),
    )


def smooth(values: pd.Series) -> pd.Series:
    """Return each value's mean with its neighbours, equally many on both sides."""
    sums = np.concatenate(([0.0], np.cumsum(values)))
    positions = np.arange(len(values))
    last_index = len(values) - 1
    reach = np.minimum(len(values) // WINDOWS // 2, np.minimum(positions, last_index - positions))
    return pd.Series((sums[positions + reach + 1] - sums[positions - reach]) / (2 * reach + 1), values.index)


IN_TRAINING = LineFigure(
    section="similarity",
    frame="training-conflict",
    name="gradient-conflict",
    title="Cosine of gradients",
    caption=(
        "Cosine of the gradients of two batches, of two languages (solid) and of one (dashed); smoothed "
        f"over a {WINDOWS}th of the points, mean over seeds, band: one standard deviation."
    ),
    panels=("name", "corpus", "task", "source", "target"),
    lines=Lines(x="step", y="smooth", color="pair", dash="line", band=True, labels=("step", "cosine")),
    choose=_cosines_in_training,
    group_by=("stage",),
)

PARTS: Sequence[Part] = (
    ("similarity", IN_TRAINING.show),
    ("similarity", show_layers(COSINE).show),
    ("similarity", show_table(COSINE).show),
)
"""Figures and tables of this feature, by the section of a report that shows them."""
