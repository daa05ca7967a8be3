"""The table of a report about word alignments."""

from functools import partial

import pandas as pd

from isogloss.reports.parts import summary_parts
from isogloss.reports.summaries import data_runs


def with_gold(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows. Empty if no alignment was compared with gold links."""
    return rows if rows["gold_pairs"].any() else rows[:0]


PARTS = summary_parts(
    __file__,
    {"word-alignment": {"frame": partial(data_runs, kind="align", part="aligner"), "choose": with_gold}},
)
"""Tables of this feature, by the section of a report that shows them."""
