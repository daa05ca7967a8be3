"""The columns of comparisons of systems, as `isogloss compare` and the page show them, with their notes."""

import math
from collections.abc import Mapping
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


def format_scores(row: Row) -> dict[str, str]:
    """Return the cells of the scores of two systems and of their difference, by the head of their column."""
    return {
        "language": row["language"] or "–",
        "system score": percent(row["score"]),
        "baseline score": percent(row["baseline_score"]),
        "difference": f"{100 * row['difference']:+.1f} {row['mark']}".rstrip(),
    }


def format_effect(row: Row) -> str:
    """Return Cohen's d. A dash for nan."""
    return "–" if math.isnan(row["effect"]) else f"{row['effect']:.2f}"


def format_tests(row: Row) -> dict[str, str]:
    """Return the cells of a comparison of runs, by the head of their column."""
    return {
        **format_scores(row),
        "interval": interval_text(row["low"], row["high"]),
        "d": format_effect(row),
        "p (seeds)": p_text(row["p_units"]),
        "p (examples)": p_text(row["p_examples"]),
        "p": p_text(row["p_value"]),
        "p (Holm)": p_text(row["p_holm"]),
        "seeds": str(row["seeds"]),
    }


def interval_text(low: float, high: float) -> str:
    """Return the ends of an interval in percentage points. A dash for nan."""
    return "–" if math.isnan(low) else f"{100 * low:+.1f} … {100 * high:+.1f}"


def format_seeds_needed(row: Row) -> str:
    """Return the number of seeds that would detect a difference. A dash with one seed."""
    if row["seeds"] < 2:
        return "–"
    return f">{MAX_UNITS}" if row["seeds_needed"] is None else str(row["seeds_needed"])


def tests_table(tests: pd.DataFrame) -> list[Table]:
    """Return a table of the differences of all score tables, as `isogloss compare` prints them."""
    if tests.empty:
        return []
    columns_shown = [name for name in TEST_SET if tests[name].nunique() > 1]
    rows = tests.assign(language=tests["column"].map(language), seeds=tests["tested_units"].astype(int))
    texts = pd.DataFrame(
        {
            **{name: row[name] for name in columns_shown},
            **{"system": row["name"], "baseline": row["against"]},
            **format_tests(row),
            **{"language": row["language"]},
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
