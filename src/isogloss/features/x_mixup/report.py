"""Mixing in reports: its ratio, its attention, and scores where it is changed at inference."""

from collections.abc import Sequence
from dataclasses import replace
from operator import itemgetter

import pandas as pd

from isogloss.reports.comparison import SYSTEM, TEST_SET
from isogloss.reports.line_figures import SCORE, TEST, LineFigure
from isogloss.reports.measurements import Measurements
from isogloss.reports.parts import Part, summary_parts


def _sweep(_: Measurements, rows: pd.DataFrame) -> pd.DataFrame:
    """Add the trained setting as a line. Empty if no ratio was changed."""
    rows = rows.assign(line="layer " + rows["layer"].astype(str))
    keys = ["corpus", "inputs", "inputs.translator", "task", "encoder", "split", "metric"]
    rows = rows[rows.groupby(keys, dropna=False)["ratio"].transform("nunique") > 1]
    trained_rows = rows[rows["trained"].astype(bool)]
    return pd.concat([rows, trained_rows.assign(line="as trained")], ignore_index=True)


def sweep_ends(rows: pd.DataFrame) -> pd.DataFrame:
    """Return each model's score without mixing, as trained, and at the λ₀ that is best over seeds."""
    keys = [*TEST_SET, *SYSTEM, "target", "language", "layer"]
    means = rows.groupby([*keys, "ratio"])["score"].mean()
    best_ratios = means.groupby(level=keys).idxmax().map(itemgetter(-1)).rename("at")
    rows = rows.join(best_ratios, on=keys)
    rows = rows.assign(
        unmixed=rows["score"].where(rows["ratio"] == 0),
        as_trained=rows["score"].where(rows["trained"].astype(bool)),
        best=rows["score"].where(rows["ratio"] == rows["at"]),
    )
    a_model = [*keys, "model"]
    names = ["unmixed", "as_trained", "best"]
    return rows.assign(**rows.groupby(a_model)[names].transform("first")).drop_duplicates(a_model)


SWEEP = LineFigure(
    section="mixup-sweep",
    frame="mixup-sweep",
    name="mixup-sweep",
    title="Mixing at inference",
    caption="Score of trained models whose mixing ratio λ₀ or layer is changed at inference; 0: unmixed.",
    panels=("system", "source", "target", "language"),
    lines=replace(SCORE, x="ratio", color="line", labels=("λ₀", "score, percent"), integer_x=False),
    choose=_sweep,
    group_by=TEST,
)

PARTS: Sequence[Part] = (
    ("mixup-sweep", SWEEP.show),
    *summary_parts(__file__, {"mixup-sweep": {"choose": sweep_ends}}),
)
"""Figures and tables of this feature, by the section of a report that shows them."""
