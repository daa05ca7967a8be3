"""The table of a report about translations."""

from functools import partial

from isogloss.reports.parts import summary_parts
from isogloss.reports.summaries import data_runs

PARTS = summary_parts(
    __file__, {"translations": {"frame": partial(data_runs, kind="translate", part="translator")}}
)
"""Tables of this feature, by the section of a report that shows them."""
