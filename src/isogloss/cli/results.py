"""The end of a study on the terminal: its scores, the claims with their sentences, and the report."""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from isogloss.cli.display import Display, emit, show_line
from isogloss.core.records import UNREAD
from isogloss.reports.names import language, percent
from isogloss.reports.report import Report

TEST_SET = ("corpus", "task", "source", "split")
"""Facts, besides their measure, that the scores of one table have in common."""


def show_report(report: Report, *, as_json: bool) -> None:
    """Print the scores of a report, the verdicts on claims, its main result and its path."""
    if as_json:
        claims = [
            {"claim": claim.claim.id, "verdict": claim.verdict, "found": claim.found}
            for claim in report.claims
        ]
        emit({"event": "report", "html": str(report.html), "summary": dict(report.summary), "claims": claims})
        return
    display = Display()
    for title, heads, rows in _score_tables(report.tables):
        show_line(title)
        display.table(heads, rows)
    verdicts = [(outcome.verdict, outcome.claim.id, outcome.claim.says) for outcome in report.claims]
    if verdicts:
        display.table(("verdict", "claim", "sentence"), verdicts)
    show_line(report.found)
    for text in report.warnings:
        if UNREAD in text:
            display.say(f"isogloss: {text}")
    show_line(f"Runs: {report.runs}")
    show_line(f"Report: {report.html}")


def _score_tables(files: Sequence[Path]) -> Iterator[tuple[str, Sequence[str], list[list[str]]]]:
    """Yield title, head and rows of the main scores of each test set, as the report wrote them."""
    test_sets = set()
    for path in files:
        if path.suffix != ".csv" or not path.name.startswith("scores-"):
            continue
        with path.open(encoding="utf-8", newline="") as file:
            cells = list(csv.DictReader(file))
        test_set = tuple(cells[0].get(name, "") for name in TEST_SET) if cells else ()
        if not cells or test_set in test_sets:
            continue  # A test set's main measure comes first.
        test_sets.add(test_set)
        columns = list(dict.fromkeys(cell["column"] for cell in cells))
        systems: dict[tuple[str, str], dict[str, str]] = {}
        for cell in cells:
            scores = systems.setdefault((cell["encoder.label"], cell["system"]), {})
            scores[cell["column"]] = _score(cell)
        rows = [
            [*system, *(scores.get(column, "–") for column in columns)] for system, scores in systems.items()
        ]
        facts = cells[0]
        title = f"{facts['corpus']} {facts['task']}, {facts['metric']} on {facts['split']} in percent"
        yield title, ["encoder", "method", *(language(column) for column in columns)], rows


def _score(cell: dict[str, str]) -> str:
    # The table of one seed has no column for the spread.
    spread = f" ± {100 * float(cell['std']):.1f}" if cell.get("std") else ""
    return f"{percent(float(cell['mean']))}{spread}"
