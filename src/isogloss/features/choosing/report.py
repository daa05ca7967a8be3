"""Tables of reports about choices without labels."""

from collections.abc import Sequence

from isogloss.features.choosing.choices import choice_tables, regret_tables
from isogloss.reports.parts import Part, summary_parts

PARTS: Sequence[Part] = (
    ("choice", choice_tables),
    ("choice", regret_tables),
    *summary_parts(__file__),
)
"""Figures and tables of this feature, by the section of a report that shows them."""
