"""Rows of frames with few words, and the golden numbers of four studies."""

import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

STUDIES = Path(__file__).parent / "reports" / "studies"

MODEL = {"model": "m", "corpus": "ud", "task": "upos", "source": "aa", "metric": "accuracy"}
ALONE = {**MODEL, "method": "source-only", "way": "w", "seed": 0}
"""A source-only tagger."""


def score(language: str, value: float, **facts: Any) -> dict[str, Any]:
    return {**ALONE, "language": language, "split": "test", "main": True, "score": value, **facts}


def golden(study: str) -> dict[str, Any]:
    return json.loads(gzip.open(STUDIES / f"{study}.golden.json.gz").read())


def the_same(
    new_table: pd.DataFrame,
    old_value: Sequence[Mapping[str, Any]],
    keys: Mapping[str, str],
    values: Mapping[str, str],
) -> int:
    """Assert equal numbers under equal keys (new column: old column). Return the number of rows."""
    mine_rows = {_key(row, keys): row for row in new_table.to_dict("records")}
    theirs = {_key(row, keys.values()): row for row in old_value}
    assert len(mine_rows) == len(new_table) and len(theirs) == len(old_value)
    assert set(mine_rows) == set(theirs)
    for key, row in theirs.items():
        for name, other_item in values.items():
            folder = None if pd.isna(mine_rows[key][name]) else mine_rows[key][name]
            assert folder == (
                None if row[other_item] is None else pytest.approx(row[other_item], rel=1e-6, abs=1e-9)
            ), key
    return len(theirs)


def _key(row: Mapping[str, Any], names: Iterable[str]) -> tuple[Any, ...]:
    return tuple(
        round(float(row[name]), 6) if isinstance(row[name], float) else "" if row[name] is None else row[name]
        for name in names
    )


def plain(*names: str) -> dict[str, str]:
    """Columns with equal names in both."""
    return {name: name for name in names}


def same_rows(new_table: pd.DataFrame, old_table: pd.DataFrame, names: Sequence[str]) -> int:
    """Assert equal rows of some columns in any order. Return how many."""
    table, other_table = (
        data[list(names)].sort_values(list(names)).reset_index(drop=True) for data in (new_table, old_table)
    )
    pd.testing.assert_frame_equal(table, other_table, check_dtype=False, rtol=1e-6)
    return len(table)
