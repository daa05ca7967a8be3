"""The sections of a report (headings: ``sections.toml``), and the one list of all tables and figures.

A table or figure is a value that names its section: ``Summary`` and ``LineFigure`` are made from one frame,
``Made`` calls a function. To add one, add its entry; the sections follow.
"""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from isogloss.core.rows import ROWS
from isogloss.reports import choosing, landscapes, line_figures, published, score_tables, similarity, states
from isogloss.reports.drawing import Figure
from isogloss.reports.language_groups import group_tables
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import slug
from isogloss.reports.summaries import SUMMARIES
from isogloss.reports.tables import Table, plain_table

Show = Callable[[Measurements], Sequence[Table | Figure]]


class Entry(Protocol):
    """A table or figure of the page, or several of a kind."""

    @property
    def section(self) -> str:
        """The section that shows it: a key of ``HEADINGS``."""

    @property
    def show(self) -> Show:
        """Make its tables or figures; none where nothing was measured."""


@dataclass(frozen=True, slots=True)
class Made:
    """The tables or figures that a function makes."""

    section: str
    show: Show


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, a sentence on what it shows, and the functions that make its tables and figures."""

    id: str
    title: str
    text: str
    parts: tuple[Show, ...] = ()


@dataclass(frozen=True, slots=True)
class ShownSection:
    """A section with its tables and figures."""

    section: Section
    tables: Sequence[Table]
    figures: Sequence[Figure]


def show_section(section: Section, m: Measurements) -> ShownSection:
    """Make the tables and figures of a section."""
    parts = [part for show in section.parts for part in show(m)]
    return ShownSection(
        section,
        [part for part in parts if isinstance(part, Table)],
        [part for part in parts if isinstance(part, Figure)],
    )


def other_tables(m: Measurements) -> list[Table]:
    """Return the rows of diagnostics without a section, as recorded."""
    return [plain_table(slug("other", kind), kind, m.raw(kind)) for kind in m.kinds() if kind not in ROWS]


ENTRIES: tuple[Entry, ...] = (
    Made("scores", score_tables.score_tables),
    Made("published", published.published_tables),
    Made("language-groups", group_tables),
    Made("choice", choosing.choice_tables),
    Made("choice", choosing.regret_tables),
    Made("paths", landscapes.path_figures),
    Made("plane", landscapes.plane_figures),
    Made("deltas", landscapes.delta_figures),
    Made("seeds", line_figures.seed_figures),
    Made("word-distance", states.distance_figures),
    Made("maps", states.map_figures),
    *SUMMARIES,
    *line_figures.LINE_FIGURES,
    *(line_figures.BITEXT_SIZE, landscapes.DELTA_TABLE, states.AUC_TABLE, states.MAP_TABLE),
    *(similarity.CKA_FIGURE, similarity.CORRELATION_TABLE, similarity.CKA_TABLE),
    *(*similarity.SIMILARITY_FIGURES, similarity.GATES_FIGURE),
    *(*similarity.SIMILARITY_TABLES, *similarity.GATE_TABLES),
    Made("others", other_tables),
)
"""All tables and figures; within a section they stand in this order."""

HEADINGS: Mapping[str, Mapping[str, str]] = tomllib.loads(
    Path(__file__).with_name("sections.toml").read_text(encoding="utf-8")
)
"""Title and text of every section, in their order."""

SECTIONS = tuple(
    Section(id=key, **heading, parts=tuple(entry.show for entry in ENTRIES if entry.section == key))
    for key, heading in HEADINGS.items()
)
