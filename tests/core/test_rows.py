"""Each kind of row is declared once and told from the others by its fields."""

from dataclasses import MISSING, fields

import pytest

from each import each
from isogloss.core.rows import LARGEST_INTEGER, ROWS, as_row, row_class, wrong_value
from isogloss.diagnostics import DIAGNOSTICS

KINDS = list(dict.fromkeys(kind for kinds in ROWS.values() for kind in kinds))


def instance(kind, *, whole_result):
    """Create a row. A whole row also has values in the optional fields."""
    return kind(**{field.name: 1 for field in fields(kind) if whole_result or field.default is MISSING})


def test_every_kind_has_a_frame_of_its_own():
    assert len({kind.frame for kind in KINDS}) == len(KINDS)


@pytest.mark.parametrize("whole_result", [True, False])
@pytest.mark.parametrize("name", ROWS)
def test_no_row_is_taken_for_one_of_another_kind(name, whole_result):
    for kind in each(ROWS[name]):
        row = as_row(instance(kind, whole_result=whole_result))
        assert row_class(name, tuple(row)) is kind
        needed_fields = {field for field in row if row[field] == 1}
        assert row_class(name, tuple(needed_fields)) is kind


def test_what_is_no_row_of_these_has_no_kind():
    assert row_class("pretrain", ("step", "second_term")) is None


def test_rows_of_every_diagnostic_are_declared():
    assert DIAGNOSTICS.keys() <= ROWS.keys()


@pytest.mark.parametrize("name", DIAGNOSTICS)
def test_rows_of_diagnostics_hold_ids_and_no_names(name):
    for kind in each(ROWS[name]):
        names = {field.name for field in fields(kind)}
        assert names & {"model", "models", "start", "origin"}
        assert not names & {"corpus", "task", "encoder", "method", "source", "target", "seed", "label"}


ROW = {"model": "m", "language": "qaa", "split": "dev", "metric": "accuracy", "main": True, "examples": 4}


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({}, ""),
        ({"score": 1}, ""),
        ({"score": None}, ""),  # As nan is in a record.
        ({"baseline": 0.5, "more": None}, ""),
        ({"score": "0.5"}, "score is '0.5'"),
        ({"score": True}, "score is True"),
        ({"examples": 4.0}, "examples is 4.0"),
        ({"examples": None}, "examples is None"),
        ({"main": 1}, "main is 1"),
        ({"language": 3}, "language is 3"),
        ({"examples": LARGEST_INTEGER}, ""),
        ({"examples": LARGEST_INTEGER + 1}, f"examples is {LARGEST_INTEGER + 1}"),
        ({"more": -LARGEST_INTEGER - 1}, f"more is {-LARGEST_INTEGER - 1}"),
        ({"language": ["x" * 99]}, f"language is ['{'x' * 38}"),
    ],
)
def test_a_value_of_a_row_is_of_its_fields_type(changes, wrong):
    right = {**ROW, "score": 0.5}
    assert wrong_value("scores", [right, {**right, **changes}, right]) == wrong


def test_rows_that_no_kind_has_are_of_plain_values():
    assert wrong_value("of a plug-in", [{"a": 1, "b": None}, {"a": "x", "b": 0.5}]) == ""
    assert wrong_value("of a plug-in", [{"a": {}}]) == "a is {}"
