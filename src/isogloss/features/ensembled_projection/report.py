"""Tables of reports about ensembled projection."""

from collections.abc import Sequence
from pathlib import Path

from isogloss.reports.parts import Part
from isogloss.reports.tables import summaries_of

TABLES = summaries_of(Path(__file__).with_name("summaries.toml"), {})

PARTS: Sequence[Part] = tuple((table.section, table.show) for table in TABLES.values())
"""Tables of this feature, by the section of a report that shows them."""
