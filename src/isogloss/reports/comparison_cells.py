"""The columns of comparisons of systems, as `isogloss compare` and the page show them, with their notes."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from isogloss.metrics.estimates import MAX_UNITS
from isogloss.reports.comparison import NUMBERS, ON_EXAMPLES, SURE
from isogloss.reports.frames import list_rows
from isogloss.reports.names import count, language, percent
from isogloss.reports.tables import Table, text_table
from isogloss.reports.verdicts import p_text

Row = Mapping[str, Any]

CELLS: Mapping[str, Callable[[Row], str]] = {
    "language": lambda row: row["language"] or "–",
    "system score": lambda row: percent(row["score"]),
    "baseline score": lambda row: percent(row["baseline_score"]),
    "difference": lambda row: f"{100 * row['difference']:+.1f} {row['mark']}".rstrip(),
    "interval": lambda row: interval_text(row["low"], row["high"]),
    "d": lambda row: "–" if math.isnan(row["effect"]) else f"{row['effect']:.2f}",
    "p (seeds)": lambda row: p_text(row["p_units"]),
    "p (examples)": lambda row: p_text(row["p_examples"]),
    "p": lambda row: p_text(row["p_value"]),
    "p (Holm)": lambda row: p_text(row["p_holm"]),
    "seeds": lambda row: str(row["seeds"]),
    "needed": lambda row: _seeds_needed(row["seeds"], row["seeds_needed"]),
}
"""The cells of a comparison of runs, by the head of their column."""


TEST_SET = ("corpus", "treebank", "mixed", "task", "source", "split", "metric")

MEANING = {
    SURE: "significant over {unit}s and examples",
    ON_EXAMPLES: "significant over examples, not yet over {unit}s",
}
"""Explanations of the marks of a difference."""

NOTES = (
    "d: Cohen's over examples. p: over seeds, over examples, over both, and that corrected after Holm over "
    "its table of scores. The CSV has the least difference that so many units and examples show with 80 % "
    "power."
)
"""Explanations of the columns of the tests."""


def interval_text(low: float, high: float) -> str:
    """Return the ends of an interval in percentage points. A dash for nan."""
    return "–" if math.isnan(low) else f"{100 * low:+.1f} … {100 * high:+.1f}"


def _seeds_needed(seeds: int, seeds_to_decide: int | None) -> str:
    return "–" if seeds < 2 else f">{MAX_UNITS}" if seeds_to_decide is None else str(seeds_to_decide)


def tests_table(tests: pd.DataFrame) -> list[Table]:
    """Return a table of the differences of all score tables, as `isogloss compare` prints them."""
    if tests.empty:
        return []
    columns_shown = [name for name in TEST_SET if tests[name].nunique() > 1]
    rows = tests.assign(language=tests["column"].map(language), seeds=tests["tested_units"].astype(int))
    heads = {head: cell for head, cell in CELLS.items() if head not in ("language", "needed")}
    texts = pd.DataFrame(
        {
            **{name: row[name] for name in columns_shown},
            **{"system": row["name"], "baseline": row["against"], "language": row["language"]},
            **{head: cell(row) for head, cell in heads.items()},
        }
        for row in list_rows(rows)
    )
    words = {
        "name": "significance",
        "title": f"Tests of differences ({count(len(tests), 'comparison')})",
        "caption": "Scores and differences in percent; the interval (95 %) is over seeds and examples.",
    }
    names = {"name": "system", "against": "baseline", "column": "language"}
    data = tests[[*TEST_SET, *names, *NUMBERS]].rename(columns=names)
    table = text_table(words, len(columns_shown) + 3, texts, data)
    return [replace(table, notes=NOTES, folded=True)]


def references_of(data: pd.DataFrame) -> str:
    """Name the only system that all others are compared with. Empty for several, which the table lists."""
    references = data["against"].dropna().unique()
    return f" Differences are tested against {references[0]}." if len(references) == 1 else ""
