"""The sections of a report (headings: ``sections.toml``), and the one list of all tables and figures.

A ``Summary`` or ``LineFigure`` is made from one frame and names its section; all others are functions. To add
one, add its entry; the sections follow.
"""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from isogloss.core.rows import ROWS
from isogloss.reports import choosing, landscapes, line_figures, published, score_tables, similarity, states
from isogloss.reports.drawing import Figure
from isogloss.reports.language_groups import group_tables
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import slug
from isogloss.reports.summaries import SUMMARIES
from isogloss.reports.tables import Summary, Table, plain_table

Show = Callable[[Measurements], Sequence[Table | Figure]]


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


OF_ONE_FRAME: Sequence[Summary | line_figures.LineFigure] = (
    *SUMMARIES.values(),
    *(*line_figures.LINE_FIGURES, line_figures.BITEXT_SIZE),
    *(similarity.CKA_FIGURE, similarity.CORRELATION_TABLE, similarity.CKA_TABLE),
    *(*similarity.SIMILARITY_FIGURES, similarity.GATES_FIGURE),
    *(*similarity.SIMILARITY_TABLES, *similarity.GATE_TABLES),
)

ENTRIES: Sequence[tuple[str, Show]] = (
    ("scores", score_tables.score_tables),
    ("published", published.published_tables),
    ("language-groups", group_tables),
    ("choice", choosing.choice_tables),
    ("choice", choosing.regret_tables),
    ("paths", landscapes.path_figures),
    ("plane", landscapes.plane_figures),
    ("deltas", landscapes.delta_figures),
    ("seeds", line_figures.seed_figures),
    ("word-distance", states.distance_figures),
    ("maps", states.map_figures),
    *((entry.section, entry.show) for entry in OF_ONE_FRAME),
    ("others", other_tables),
)
"""All tables and figures by their section, which is a key of ``HEADINGS``, in their order there."""

HEADINGS: Mapping[str, Mapping[str, str]] = tomllib.loads(
    Path(__file__).with_name("sections.toml").read_text(encoding="utf-8")
)
"""Title and text of every section, in their order."""

SECTIONS = tuple(
    Section(id=key, **heading, parts=tuple(show for section, show in ENTRIES if section == key))
    for key, heading in HEADINGS.items()
)
