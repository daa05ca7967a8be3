"""The figures and tables of one frame that reports show, by name, whatever module they are in."""

from isogloss.reports.line_figures import LineFigure
from isogloss.reports.sections import ENTRIES
from isogloss.reports.tables import Summary


def find_entry(name: str) -> Summary | LineFigure:
    """Return the only figure or table with a name."""
    (found_entry,) = [owner for owner in list_entries() if owner.name == name]
    return found_entry


def list_entries() -> list[Summary | LineFigure]:
    """List all figures and tables of one frame, in the order of the page's parts."""
    owners = [getattr(show, "__self__", None) for _, show in ENTRIES]
    return [owner for owner in owners if isinstance(owner, Summary | LineFigure)]
