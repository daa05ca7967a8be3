"""The sections of a report (headings: ``sections.toml``), and the one list of all tables and figures.

A ``Summary`` or ``LineFigure`` shows one frame and names its section; all others are functions. To add one,
add its entry; the sections follow.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from isogloss.core.errors import ConfigError, one_line
from isogloss.core.plug_ins import check_value, find_plug_in, plugged_names
from isogloss.core.processes import is_of_code
from isogloss.core.registry import Registry
from isogloss.core.rows import ROWS
from isogloss.reports import line_figures, score_tables
from isogloss.reports.drawing import Figure
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import slug
from isogloss.reports.parts import Part, Show
from isogloss.reports.summaries import SUMMARIES
from isogloss.reports.tables import Summary, Table, plain_table


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


class RowsShown(Protocol):
    """The interface of the entry points ``isogloss.tables``: tables and figures of one kind of rows."""

    frame: str
    """The name of the diagnostic that records the rows."""

    def show(self, measurements: Measurements) -> Sequence[Table | Figure]:
        """Make the tables and figures of a study that has such rows."""


@dataclass(frozen=True, slots=True)
class AddedParts:
    """Additions of other packages to a report: tables, figures, the kinds of rows they show, and errors."""

    parts: Sequence[Table | Figure] = ()
    frames: frozenset[str] = frozenset()
    errors: Sequence[str] = ()


def make_added_parts(measurements: Measurements) -> AddedParts:
    """Make the tables and figures of other packages. If a package fails, its rows are shown as recorded."""
    parts: list[Table | Figure] = []
    frames: set[str] = set()
    errors: list[str] = []
    for name in plugged_names("tables"):
        try:
            plug_in: RowsShown = find_plug_in("tables", name, ())
            check_value(plug_in, RowsShown, name)
            if plug_in.frame in measurements.kinds():
                parts += _show_added(name, plug_in, measurements)
                frames.add(plug_in.frame)
        except ConfigError as error:
            errors.append(str(error))
    return AddedParts(parts, frozenset(frames), errors)


def _show_added(name: str, plug_in: RowsShown, measurements: Measurements) -> list[Table | Figure]:
    try:
        parts = list(plug_in.show(measurements))
    except BaseException as error:  # Whatever the code of others raises.
        if not is_of_code(error):
            raise
        raise ConfigError(f"plug-in {name}: its tables failed ({one_line(error)}).") from error
    if wrong := [part for part in parts if not isinstance(part, Table | Figure)]:
        raise ConfigError(f"plug-in {name}: expected tables and figures, found {wrong[0]!r:.80}.")
    return parts


def show_section(
    section: Section, measurements: Measurements, added_parts: AddedParts | None = None
) -> ShownSection:
    """Build the tables and figures of a section. The last section includes those from other packages."""
    parts = [part for show in section.parts for part in show(measurements)]
    if added_parts and section.id == OTHERS:
        parts = [
            part for part in parts if part.name not in {slug("other", kind) for kind in added_parts.frames}
        ]
        parts += added_parts.parts
    return ShownSection(
        section,
        [part for part in parts if isinstance(part, Table)],
        [part for part in parts if isinstance(part, Figure)],
    )


def section_figures(section: str, measurements: Measurements) -> list[Figure]:
    """Return the figures of a section, by its name. Empty if nothing was measured that it shows."""
    parts = [part for name, show in ENTRIES if name == section for part in show(measurements)]
    return [part for part in parts if isinstance(part, Figure)]


def other_tables(measurements: Measurements) -> list[Table]:
    """Return the rows of diagnostics without a section, as recorded."""
    return [
        plain_table(slug("other", kind), kind, measurements.raw(kind))
        for kind in measurements.kinds()
        if kind not in ROWS
    ]


OTHERS = "others"
"""The section of rows that no other section shows."""

OF_ONE_FRAME: Sequence[Summary | line_figures.LineFigure] = (
    *SUMMARIES.values(),
    *line_figures.LINE_FIGURES,
)

PARTS: Registry[Sequence[Part]] = Registry({}, features="report-parts")
"""Tables and figures of features, each by its section."""

ENTRIES: Sequence[Part] = (
    *(part for name in PARTS for part in PARTS[name]),
    ("scores", score_tables.score_tables),
    ("seeds", line_figures.seed_figures),
    *((entry.section, entry.show) for entry in OF_ONE_FRAME),
    (OTHERS, other_tables),
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
