"""One self-contained HTML page: readable offline, on phones, in dark mode, printed, and without its script.

The template engine escapes every text from data. Figures are images, because an SVG in an image runs no
script. The page allows only one style and one script, by their hashes, and forbids requests.
"""

import math
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from importlib.resources import files
from typing import get_args

import pandas as pd

from isogloss.core import VERSION
from isogloss.core.errors import plain
from isogloss.reports.checks import Check
from isogloss.reports.drawing import PHONE, Figure
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import and_list, count, slug
from isogloss.reports.next_steps import NextStep
from isogloss.reports.opening import Opening
from isogloss.reports.sections import ShownSection
from isogloss.reports.tables import Table, plain_table
from isogloss.reports.verdicts import ClaimOutcome, Verdict

STATES = {"finished": "finished", "failed": "failed", "damaged": "damaged record", "missing": "not run yet"}


@dataclass(frozen=True, kw_only=True)
class Page:
    """The contents of a page."""

    m: Measurements
    opening: Opening
    outcomes: Sequence[ClaimOutcome]
    sections: Sequence[ShownSection]
    runs: Table
    steps: Sequence[NextStep] = ()
    raw: Mapping[str, pd.DataFrame]
    """Rows as recorded, the facts of every model, and the checks of claims, by name of the CSV."""

    @cached_property
    def warnings(self) -> list[str]:
        """The warnings. Of those that differ only in numbers and runs, the first and their number."""
        kinds: dict[str, list[str]] = {}
        for text in self.m.warnings:
            kinds.setdefault(re.sub(r"[\d.,]+", "", text.partition(": ")[2] or text), []).append(text)
        return [
            first_warning + (f" ({count(len(other_warnings), 'similar warning')})" if other_warnings else "")
            for first_warning, *other_warnings in kinds.values()
        ]

    @cached_property
    def claims(self) -> list[tuple[Table, list[ClaimOutcome]]]:
        """The judged claims of each paper, with their table. The page shows them as a list."""
        outcomes_by_paper: dict[str, list[ClaimOutcome]] = {}
        for outcome in self.outcomes:
            outcomes_by_paper.setdefault(outcome.claim.title, []).append(outcome)
        return [(claim_table(title, outcomes), outcomes) for title, outcomes in outcomes_by_paper.items()]


SHOWN_IN = {"interpolation": "paths", "scores": "main-table", "gradient-conflict": "similarity"} | {
    **{"language-gates": "similarity", "perplexity": "training", "representation-map": "maps"}
}
"""Section by frame, for frames whose section has a different name."""


WIDTH = 160
INSET = 18
"""Units of a strip's width, and of the free space at both ends, where an open range is shaded."""


@dataclass(frozen=True, kw_only=True)
class Strip:
    """A check as a picture: its number with the interval, against the range that the claim allows."""

    about: str
    numbers: str
    """The number, its interval and the range as text."""
    mean: float
    interval: tuple[float, float]
    """The number twice without an interval."""
    above: float | None
    below: float | None
    ratio: bool
    """Whether the number is a ratio, which is drawn on a log scale where all numbers are positive."""

    @property
    def text(self) -> str:
        """A description of the picture, for screen readers."""
        scale = ", on a log scale" if self.is_logarithmic else ""
        return f"{self.about} {self.numbers}{scale}"

    @property
    def is_logarithmic(self) -> bool:
        """Whether equal factors have equal widths."""
        return self.ratio and min(self._ends) > 0

    def x(self, value: float) -> float:
        """Return the place of a number across the picture."""
        low, high, position = (
            self._find_position(point) for point in (min(self._ends), max(self._ends), value)
        )
        share = (position - low) / (high - low) if high > low else 0.0
        return round(INSET + share * (WIDTH - 2 * INSET), 1)

    @property
    def range(self) -> tuple[float, float]:
        """The ends of the shaded range across the picture."""
        left = 0.0 if self.above is None else self.x(self.above)
        return left, float(WIDTH) if self.below is None else self.x(self.below)

    def _find_position(self, value: float) -> float:
        return math.log(value) if self.is_logarithmic else value

    @property
    def _ends(self) -> list[float]:
        return [self.mean, *self.interval, *(end for end in (self.above, self.below) if end is not None)]


def strip_of(check: Check) -> Strip | None:
    """Return a check as a strip. None without a measurement."""
    if not check.values:
        return None
    estimate = check.estimate
    format_value = check.written
    has_interval = math.isfinite(estimate.low) and math.isfinite(estimate.high)
    missing = f"(one {check.unit})" if len(check.values) == 1 else "(no interval)"
    interval = f"[{format_value(estimate.low)}, {format_value(estimate.high)}]" if has_interval else missing
    lower_end, upper_end = (end if math.isfinite(end) else None for end in (check.above, check.below))
    ends = {"above": lower_end, "below": upper_end}
    bounds = [f"{word} {format_value(end)}" for word, end in ends.items() if end is not None]
    range_text = (
        bounds[0] if len(bounds) == 1 else f"{format_value(check.above)} to {format_value(check.below)}"
    )
    return Strip(
        about=check.about,
        numbers=f"{format_value(estimate.mean)} {interval}; allowed: {range_text}",
        mean=estimate.mean,
        interval=(estimate.low, estimate.high) if has_interval else (estimate.mean, estimate.mean),
        **ends,
        ratio=check.ratio,
    )


def render(page: Page) -> str:
    """Return the page as HTML: self-contained, every text from data escaped, with one style and script."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    package_files = files("isogloss.reports")
    engine = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template, css, script = (
        (package_files / f"page.{end}").read_text(encoding="utf-8") for end in ("html", "css", "js")
    )
    scores = next((part.tables for part in page.sections if part.section.id == "scores"), ())
    parts = [without_tables(part, scores[:1]) for part in page.sections]
    shown_parts = [part for part in parts if part.tables or part.figures]
    sections = {part.section.id for part in shown_parts}
    text = engine.from_string(template).render(
        page=page,
        first=scores[:1],
        shown=shown_parts,
        sections=sections,
        noted=[table for part in page.sections for table in part.tables if table.notes],
        counted=verdict_counts(page.outcomes),
        proof=lambda claim: next(
            (SHOWN_IN.get(name, name) for name in claim.needs if SHOWN_IN.get(name, name) in sections), ""
        ),
        strip_of=strip_of,
        css=Markup(css),  # noqa: S704  (our own file)
        script=Markup(script),  # noqa: S704  (our own file)
        allowed=[_hash(css), _hash(script)],
        as_image=_as_image,
        numbers=numbers_of,
        version=VERSION,
    )
    return plain(text)


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _as_image(figure: Figure, phone: bool) -> str:
    """Return a figure as the address of an image, in which an SVG runs nothing."""
    svg = figure.drawn(PHONE, "svg")["svg"] if phone else figure.svg.encode()
    return f"data:image/svg+xml;base64,{b64encode(svg).decode()}"


def without_tables(part: ShownSection, tables: Sequence[Table]) -> ShownSection:
    """Return a section without tables that stand elsewhere on the page."""
    names = [table.name for table in tables]
    return replace(part, tables=[table for table in part.tables if table.name not in names])


def numbers_of(figure: Figure) -> Table:
    """Return the first numbers of a figure, without constant columns."""
    data = figure.data
    differ = [name for name in data if data[name].astype(str).nunique() > 1]
    return plain_table(figure.name, f"Data: {figure.title}", data[differ] if differ else data)


def verdict_counts(outcomes: Sequence[ClaimOutcome]) -> str:
    """Return the number of claims with each verdict, in words."""
    verdicts = [outcome.verdict for outcome in outcomes]
    if not verdicts:
        return "None of the papers' claims is about these runs."
    parts = [f"{verdicts.count(verdict)} {verdict}" for verdict in get_args(Verdict) if verdict in verdicts]
    return f"Of {count(len(verdicts), 'claim')}, {and_list(parts)}."


def claim_table(title: str, outcomes: Sequence[ClaimOutcome]) -> Table:
    """Return a paper's claims with verdict, findings and rule."""
    rows = [
        (
            *(claim.id, claim.says, claim.where, claim.code, outcome.verdict, outcome.found, claim.rule),
            claim.threshold,
        )
        for outcome in outcomes
        for claim in [outcome.claim]
    ]
    columns = ["claim", "says", "where", "code", "verdict", "found", "rule", "threshold"]
    data = pd.DataFrame(rows, columns=columns)
    table = plain_table(slug("claims", outcomes[0].claim.subject or title), title, data)
    return replace(table, caption="Each verdict follows from these runs alone, by its rule.")


def finished_runs(measurements: Measurements) -> str:
    """Return the number of finished runs, in words."""
    return f"{sum(run.state == 'finished' for run in measurements.runs)} of {len(measurements.runs)} finished"


def run_table(measurements: Measurements) -> Table:
    """Return every run of the plan with its state, device and duration."""
    epochs = measurements.frame("epochs")
    chosen_epochs = epochs[epochs["chosen"].eq(True)].groupby("run")["epoch"].first()
    data = pd.DataFrame(
        {
            "run": run.id,
            "title": run.record.title,
            "kind": run.kind,
            "state": STATES[run.state],
            **{name: getattr(run.made, name) for name in ("seconds", "device", "threads", "precision")},
            "epoch": chosen_epochs.get(run.id),
            "remarks": "; ".join(remark for remark in (run.error, *run.record.warnings) if remark),
        }
        for run in measurements.runs
    )
    visible_data = data.drop(columns=["threads", "precision"], errors="ignore")
    table = plain_table("runs", f"Every run of the plan ({finished_runs(measurements)})", visible_data)
    pairs = zip(measurements.runs, table.rows, strict=False)
    rows = tuple((*row[:3], replace(row[3], mark=run.state), *row[4:]) for run, row in pairs)
    caption = f"Seconds and device as written next to the record; epoch: the one kept. {table.caption}"
    return replace(table, caption=caption, align="llllrlrl", rows=rows, data=data)
