"""Tables of reports about choices without labels."""

from collections.abc import Sequence
from pathlib import Path

from isogloss.features.choosing.report import choice_tables, regret_tables
from isogloss.reports.parts import Part
from isogloss.reports.tables import summaries_of

TABLES = summaries_of(Path(__file__).with_name("summaries.toml"), {})

PARTS: Sequence[Part] = (
    ("choice", choice_tables),
    ("choice", regret_tables),
    *((table.section, table.show) for table in TABLES.values()),
)
"""Figures and tables of this feature, by the section of a report that shows them."""
