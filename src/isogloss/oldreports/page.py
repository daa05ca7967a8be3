"""One self-contained HTML page: readable offline, in the dark, on paper and by a screen reader.

Every text from data is escaped by the template engine, figures are images (an SVG in an image runs
nothing), and the page forbids scripts altogether.
"""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from isogloss.core.version import VERSION
from isogloss.oldreports.gather import Gathered
from isogloss.oldreports.sections import Section
from isogloss.oldreports.tables import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What a page shows, in reading order."""

    gathered: Gathered
    found: str
    warnings: Sequence[str]
    claims: Sequence[Table]
    """At least one; each is about one paper."""
    sections: Sequence[Section]
    runs: Table
    rows: Sequence[tuple[str, int]]
    """Name and length of each CSV of rows as recorded."""


def render(page: Page) -> str:
    """Return the page as HTML."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    here = files("isogloss.oldreports")
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    template = environment.from_string((here / "page.html").read_text(encoding="utf-8"))
    return template.render(
        page=page,
        shown=[section for section in page.sections if not section.empty],
        absent=[section.title for section in page.sections if section.empty],
        css=Markup((here / "page.css").read_text(encoding="utf-8")),  # noqa: S704  (our own file)
        as_data=_as_data,
        version=VERSION,
    )


def _as_data(svg: str) -> str:
    """Return an SVG as the address of an image."""
    return "data:image/svg+xml;base64," + b64encode(svg.encode()).decode()
