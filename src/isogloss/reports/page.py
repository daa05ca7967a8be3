"""One self-contained HTML page, and its sections: readable offline, on a telephone, in the dark, on paper.

Every text from data is escaped by the template engine, figures are images (an SVG in an image runs
nothing), and the page forbids scripts altogether.
"""

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.resources import files
from typing import get_args

import pandas as pd

from isogloss.core.plain_text import plain
from isogloss.core.rows import ROWS
from isogloss.core.version import VERSION
from isogloss.reports import landscapes, line_figures, scores, similarity, states, summaries
from isogloss.reports.drawing import Figure
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import and_list, count, slug
from isogloss.reports.tables import Table, plain_table
from isogloss.reports.verdicts import PAPERS, Outcome, Verdict, words_of

SUBJECTS = {1: "transfer", 2: "x-mixup", 3: "adjustment", 4: "interference"}
"""How the tables of each paper's claims are called."""

STATES = {"finished": "finished", "failed": "failed", "damaged": "damaged record", "missing": "not run yet"}


Part = Callable[[Measurements], Sequence[Table | Figure]]


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, a sentence on what to look at, and what makes its tables and figures."""

    id: str
    title: str
    text: str
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class Shown:
    """A section with what there is to see in it."""

    section: Section
    tables: Sequence[Table]
    figures: Sequence[Figure]


def shown(section: Section, m: Measurements) -> Shown:
    """Make the tables and figures of a section."""
    made = [one for part in section.parts for one in part(m)]
    return Shown(
        section,
        [one for one in made if isinstance(one, Table)],
        [one for one in made if isinstance(one, Figure)],
    )


def others(m: Measurements) -> list[Table]:
    """Return the rows of diagnostics that no section is about, as they are."""
    return [plain_table(slug("other", kind), kind, m.raw(kind)) for kind in m.kinds() if kind not in ROWS]


@dataclass(frozen=True, kw_only=True)
class Page:
    """What a page shows."""

    m: Measurements
    found: str
    outcomes: Sequence[Outcome]
    sections: Sequence[Shown]
    runs: Table
    raw: Mapping[str, pd.DataFrame]
    """Rows as recorded, and the facts of every model, by the name of their CSV."""

    @cached_property
    def claims(self) -> list[tuple[Table, list[Outcome]]]:
        """The claims of each paper that has some, with their table; the page shows them as a list."""
        own = {paper: [one for one in self.outcomes if one.claim.paper == paper] for paper in PAPERS}
        return [(claim_table(paper, outcomes), outcomes) for paper, outcomes in own.items() if outcomes]


def render(page: Page) -> str:
    """Return the page as HTML: self-contained, every text from data escaped, without scripts."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    here = files("isogloss.reports")
    engine = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = engine.from_string((here / "page.html").read_text(encoding="utf-8"))
    scores = next((part.tables for part in page.sections if part.section.id == "scores"), ())
    seen = [part for part in page.sections if part.tables or part.figures]
    text = template.render(
        page=page,
        first=scores[:1],
        seen=[_without(part, scores[:1]) for part in seen],
        absent=[part.section.title for part in page.sections if not (part.tables or part.figures)],
        counted=counted(page.outcomes),
        css=Markup((here / "page.css").read_text(encoding="utf-8")),  # noqa: S704  (our own file)
        # An SVG in an image runs nothing.
        as_image=lambda svg: "data:image/svg+xml;base64," + b64encode(svg.encode()).decode(),
        numbers=numbers_of,
        version=VERSION,
    )
    return plain(text)


def _without(part: Shown, tables: Sequence[Table]) -> Shown:
    """Leave out tables that stand elsewhere on the page."""
    names = [table.name for table in tables]
    return replace(part, tables=[one for one in part.tables if one.name not in names])


def numbers_of(figure: Figure) -> Table:
    """Return the first numbers of a figure, without the columns in which all are alike."""
    data = figure.data
    differ = [name for name in data if data[name].astype(str).nunique() > 1]
    return plain_table(figure.name, "Its numbers", data[differ] if differ else data)


def counted(outcomes: Sequence[Outcome]) -> str:
    """Write how many claims have which verdict."""
    verdicts = [one.verdict for one in outcomes]
    if not verdicts:
        return "None of the papers' claims is about these runs."
    parts = [f"{verdicts.count(one)} {one}" for one in get_args(Verdict) if one in verdicts]
    return f"Of {count(len(verdicts), 'claim')}, {and_list(parts)}."


def claim_table(paper: int, outcomes: Sequence[Outcome]) -> Table:
    """Return a paper's claims with verdict, what was found, and the rule."""
    rows = [(o.claim.id, o.claim.says, o.claim.where, o.verdict, o.found, o.claim.rule) for o in outcomes]
    data = pd.DataFrame(rows, columns=["claim", "says", "where", "verdict", "found", "rule"])
    table = plain_table(slug("claims", SUBJECTS[paper]), PAPERS[paper], data)
    return replace(table, caption="Each verdict follows from these runs alone, by its rule.")


def ended(m: Measurements) -> str:
    """Write how many runs finished."""
    return f"{sum(run.state == 'finished' for run in m.runs)} of {len(m.runs)} finished"


def run_table(m: Measurements) -> Table:
    """Return every run of the plan with how it ended, where, and in what time."""
    epochs = m.frame("epochs")
    kept = epochs[epochs["chosen"].eq(True)].groupby("run")["epoch"].first()
    data = pd.DataFrame(
        {
            "run": run.id,
            "title": run.record.title,
            "kind": run.kind,
            "state": STATES[run.state],
            **{name: run.made.get(name) for name in ("seconds", "device", "threads", "precision")},
            "epoch": kept.get(run.id),
            "remarks": "; ".join(filter(None, (run.error, *run.record.warnings))),
        }
        for run in m.runs
    )
    shown = data.drop(columns=["threads", "precision"], errors="ignore")
    table = plain_table("runs", f"Every run of the plan ({ended(m)})", shown)
    pairs = zip(m.runs, table.rows, strict=False)
    rows = tuple((*row[:3], replace(row[3], mark=run.state), *row[4:]) for run, row in pairs)
    about = f"Seconds and device as written beside the record; epoch: the one kept. {table.caption}"
    return replace(table, caption=about, align="llllrlrl", rows=rows, data=data)


FIGURES: Mapping[str, Part] = {
    "paths": landscapes.path_figures,
    "planes": landscapes.plane_figures,
    "deltas": landscapes.delta_figures,
    "seeds": line_figures.seed_figures,
    "word-distance": states.distance_figures,
    "maps": states.map_figures,
    **{
        one.name: one.figures
        for one in (*line_figures.LINE_FIGURES, similarity.CKA_FIGURE, *similarity.SIMILARITY_FIGURES)
    },
}

TABLES: Mapping[str, Part] = {
    "scores": scores.score_tables,
    "others": others,
    **{
        one.name or str(one.frame): one.tables
        for one in (
            *(*summaries.SUMMARIES, scores.INTERFERENCE, line_figures.BITEXT_SIZE, landscapes.DELTA_TABLE),
            *(*similarity.SIMILARITY_TABLES, *similarity.GATE_TABLES, similarity.CORRELATION_TABLE),
            *(similarity.CKA_TABLE, states.AUC_TABLE, states.MAP_TABLE),
        )
    },
}


def sections() -> tuple[Section, ...]:
    """Return the sections of ``sections.toml``, in their order."""
    found = []
    for key, said in words_of("sections").items():
        figures, tables = said.pop("figures", ()), said.pop("tables", ())
        parts = (*(FIGURES[name] for name in figures), *(TABLES[name] for name in tables))
        found.append(Section(id=key, **said, parts=parts))
    return tuple(found)


SECTIONS = sections()
