"""What a section of a report is made of: functions that make tables and figures of measurements."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from isogloss.reports.drawing import Figure
from isogloss.reports.measurements import Measurements
from isogloss.reports.tables import Table, summaries_of

Show = Callable[[Measurements], Sequence[Table | Figure]]
"""Makes tables and figures. Empty where nothing was measured that they show."""

Part = tuple[str, Show]
"""A section of the page (``sections.toml``), and what makes its tables and figures."""


def summary_parts(module_file: str, functions: Mapping[str, Mapping[str, Any]] | None = None) -> list[Part]:
    """Return the tables in the ``summaries.toml`` next to a module, with functions of some."""
    tables = summaries_of(Path(module_file).with_name("summaries.toml"), functions or {})
    return [(table.section, table.show) for table in tables.values()]
