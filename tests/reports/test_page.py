"""The sections of a report: each has a separate id and an introduction, and every row is shown."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from isogloss.core.rows import ROWS
from isogloss.reports.line_figures import LineFigure, seed_figures
from isogloss.reports.measurements import Measurements, read_measurements
from isogloss.reports.sections import (
    ENTRIES,
    HEADINGS,
    OF_ONE_FRAME,
    SECTIONS,
    Section,
    other_tables,
    show_section,
)
from isogloss.reports.tables import plain_table
from made_up_runs import measure, model, small_study, write, write_plan

FIGURES = {
    "lines": next(entry.show for entry in OF_ONE_FRAME if isinstance(entry, LineFigure)),
    **{section: show for section, show in ENTRIES if show.__name__.endswith("figures")},
}
"""Every kind of figure: all figures of lines are drawn by one function."""

DRAWN_ELSEWHERE = {"module-swap"}
"""Figures of measurements that no kept study has: tests of their feature draw them."""


def test_every_section_has_an_id_of_its_own_and_says_what_to_look_at() -> None:
    assert (
        len({section.id for section in SECTIONS})
        == len({section.title for section in SECTIONS})
        == len(SECTIONS)
    )
    assert all(section.text.endswith((".", "?")) and len(section.text) > 20 for section in SECTIONS)
    assert SECTIONS[0].id == "scores", "the page takes its first table"
    assert SECTIONS[-1].id == "others"


def test_every_figure_and_table_stands_in_a_section() -> None:
    assert {section for section, _ in ENTRIES} == set(HEADINGS)
    assert [len(section.parts) for section in SECTIONS].count(0) == 0


@pytest.mark.draws
@pytest.mark.every_case
@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FIGURES.keys() - DRAWN_ELSEWHERE))
def test_every_figure_is_drawn_the_same_twice(name: str, study: Callable[[str], Measurements]) -> None:
    studies = ("transfer", "mixup", "adjustment", "interference")
    drawn_study = next(item for key in studies for item in FIGURES[name](study(key)))
    again = replace(drawn_study)
    assert (drawn_study.svg, drawn_study.pdf) == (again.svg, again.pdf)
    assert drawn_study.pdf.startswith(b"%PDF")


def test_a_section_shows_what_its_parts_make_in_their_order() -> None:
    measurements = Measurements(runs=[])
    tables = [plain_table(name, name, measurements.models) for name in "ab"]
    section = Section("x", "X", "x", (lambda _: tables[:1], lambda _: [], lambda _: tables[1:]))
    result = show_section(section, measurements)
    assert [table.name for table in result.tables] == ["a", "b"]
    assert result.figures == []


def test_others_are_the_rows_that_no_declared_kind_is_of(tmp_path: Path) -> None:
    names = small_study(tmp_path, seeds=1)
    names.append(write(tmp_path, measure("brand-new", [model()]), [{"a": 1}]))
    write_plan(tmp_path, names)
    measurements = read_measurements(tmp_path)
    assert set(measurements.kinds()) - set(ROWS) == {"brand-new"}
    assert [(table.name, len(table.rows)) for table in other_tables(measurements)] == [("other-brand-new", 1)]


def test_a_section_without_numbers_shows_nothing() -> None:
    measurements = Measurements(runs=[])
    empty_sections = [show_section(section, measurements) for section in SECTIONS]
    assert [
        empty_section.section.id
        for empty_section in empty_sections
        if empty_section.tables or empty_section.figures
    ] == []
    assert len(empty_sections) > 15
    assert seed_figures(measurements) == []
