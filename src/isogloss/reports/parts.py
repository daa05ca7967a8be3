"""What a section of a report is made of: functions that make tables and figures of measurements."""

from collections.abc import Callable, Sequence

from isogloss.reports.drawing import Figure
from isogloss.reports.measurements import Measurements
from isogloss.reports.tables import Table

Show = Callable[[Measurements], Sequence[Table | Figure]]
"""Makes tables and figures. Empty where nothing was measured that they show."""

Part = tuple[str, Show]
"""A section of the page (``sections.toml``), and what makes its tables and figures."""
