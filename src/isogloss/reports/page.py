"""One self-contained HTML page: readable offline, on phones, in dark mode, and printed.

Every text from data is escaped by the template engine, figures are images (an SVG in an image runs no
script), and the page forbids scripts altogether.
"""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.resources import files
from typing import get_args

import pandas as pd

from isogloss.core import VERSION
from isogloss.core.untrusted import plain
from isogloss.reports.drawing import Figure
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import and_list, count, slug
from isogloss.reports.sections import ShownSection
from isogloss.reports.tables import Table, plain_table
from isogloss.reports.verdicts import PAPERS, Outcome, Verdict

SUBJECTS = {PAPERS[1]: "transfer", PAPERS[2]: "x-mixup", PAPERS[3]: "adjustment", PAPERS[4]: "interference"}
"""Names of the tables of each paper's claims."""

STATES = {"finished": "finished", "failed": "failed", "damaged": "damaged record", "missing": "not run yet"}


@dataclass(frozen=True, kw_only=True)
class Page:
    """The contents of a page."""

    m: Measurements
    found: str
    outcomes: Sequence[Outcome]
    sections: Sequence[ShownSection]
    runs: Table
    raw: Mapping[str, pd.DataFrame]
    """Rows as recorded, the facts of every model, and the checks of claims, by name of the CSV."""

    @cached_property
    def claims(self) -> list[tuple[Table, list[Outcome]]]:
        """The judged claims of each paper, with their table; the page shows them as a list."""
        by_paper: dict[str, list[Outcome]] = {title: [] for title in PAPERS.values()}
        for outcome in self.outcomes:
            by_paper.setdefault(outcome.claim.title or PAPERS[outcome.claim.paper], []).append(outcome)
        return [(claim_table(title, outcomes), outcomes) for title, outcomes in by_paper.items() if outcomes]


def render(page: Page) -> str:
    """Return the page as HTML: self-contained, every text from data escaped, without scripts."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    here = files("isogloss.reports")
    engine = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = engine.from_string((here / "page.html").read_text(encoding="utf-8"))
    scores = next((part.tables for part in page.sections if part.section.id == "scores"), ())
    shown = [part for part in page.sections if part.tables or part.figures]
    text = template.render(
        page=page,
        first=scores[:1],
        seen=[without_tables(part, scores[:1]) for part in shown],
        absent=[part.section.title for part in page.sections if not (part.tables or part.figures)],
        counted=verdict_counts(page.outcomes),
        css=Markup((here / "page.css").read_text(encoding="utf-8")),  # noqa: S704  (our own file)
        # An SVG in an image runs nothing.
        as_image=lambda svg: "data:image/svg+xml;base64," + b64encode(svg.encode()).decode(),
        numbers=numbers_of,
        version=VERSION,
    )
    return plain(text)


def without_tables(part: ShownSection, tables: Sequence[Table]) -> ShownSection:
    """Return a section without tables that stand elsewhere on the page."""
    names = [table.name for table in tables]
    return replace(part, tables=[table for table in part.tables if table.name not in names])


def numbers_of(figure: Figure) -> Table:
    """Return the first numbers of a figure, without constant columns."""
    data = figure.data
    differ = [name for name in data if data[name].astype(str).nunique() > 1]
    return plain_table(figure.name, "Its numbers", data[differ] if differ else data)


def verdict_counts(outcomes: Sequence[Outcome]) -> str:
    """Return the number of claims with each verdict, in words."""
    verdicts = [outcome.verdict for outcome in outcomes]
    if not verdicts:
        return "None of the papers' claims is about these runs."
    parts = [f"{verdicts.count(verdict)} {verdict}" for verdict in get_args(Verdict) if verdict in verdicts]
    return f"Of {count(len(verdicts), 'claim')}, {and_list(parts)}."


def claim_table(title: str, outcomes: Sequence[Outcome]) -> Table:
    """Return a paper's claims with verdict, findings and rule."""
    rows = [
        (claim.id, claim.says, claim.where, claim.code, outcome.verdict, outcome.found, claim.rule)
        for outcome in outcomes
        for claim in [outcome.claim]
    ]
    data = pd.DataFrame(rows, columns=["claim", "says", "where", "code", "verdict", "found", "rule"])
    table = plain_table(slug("claims", SUBJECTS.get(title, title)), title, data)
    return replace(table, caption="Each verdict follows from these runs alone, by its rule.")


def finished_runs(m: Measurements) -> str:
    """Return the number of finished runs, in words."""
    return f"{sum(run.state == 'finished' for run in m.runs)} of {len(m.runs)} finished"


def run_table(m: Measurements) -> Table:
    """Return every run of the plan with its state, device and duration."""
    epochs = m.frame("epochs")
    chosen = epochs[epochs["chosen"].eq(True)].groupby("run")["epoch"].first()
    data = pd.DataFrame(
        {
            "run": run.id,
            "title": run.record.title,
            "kind": run.kind,
            "state": STATES[run.state],
            **{name: getattr(run.made, name) for name in ("seconds", "device", "threads", "precision")},
            "epoch": chosen.get(run.id),
            "remarks": "; ".join(filter(None, (run.error, *run.record.warnings))),
        }
        for run in m.runs
    )
    shown = data.drop(columns=["threads", "precision"], errors="ignore")
    table = plain_table("runs", f"Every run of the plan ({finished_runs(m)})", shown)
    pairs = zip(m.runs, table.rows, strict=False)
    rows = tuple((*row[:3], replace(row[3], mark=run.state), *row[4:]) for run, row in pairs)
    caption = f"Seconds and device as written next to the record; epoch: the one kept. {table.caption}"
    return replace(table, caption=caption, align="llllrlrl", rows=rows, data=data)
