"""Rows become typed values or say which field is wrong."""

import pytest
from synthetic_runs import World, score_rows

from isogloss.core.errors import DataError
from isogloss.oldreports.rows import Score
from isogloss.oldreports.typed_rows import typed

GOOD = next(score_rows(World(), "upos", "mini", 0))


def test_a_good_row_keeps_its_values():
    score = typed(Score, {**GOOD, "unknown": 3})
    assert {name: getattr(score, name) for name in GOOD} == GOOD


def test_a_field_with_a_default_may_be_missing():
    assert typed(Score, {name: GOOD[name] for name in GOOD if name != "baseline"}).baseline is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"score": "high"}, "'score' is 'high', not a number"),
        ({"score": float("nan")}, "'score' is nan, not a number"),
        ({"score": True}, "'score' is True, not a number"),
        ({"seed": 1.5}, "'seed' is 1.5, not a whole number"),
        ({"language": None}, "'language' is None, not a text"),
        ({"method": ["x"]}, r"'method' is \['x'\], not a text"),
    ],
)
def test_a_wrong_value_is_named(change, message):
    with pytest.raises(DataError, match=message):
        typed(Score, {**GOOD, **change})


def test_a_missing_field_is_named():
    with pytest.raises(DataError, match="no 'score'"):
        typed(Score, {name: GOOD[name] for name in GOOD if name != "score"})
