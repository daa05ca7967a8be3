"""Rows of frames with few words, and the golden numbers of four studies."""

import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

STUDIES = Path(__file__).parent / "studies"

MODEL = {"model": "m", "corpus": "ud", "task": "upos", "source": "aa", "metric": "accuracy"}
ALONE = {**MODEL, "method": "source-only", "way": "w", "seed": 0}
"""A source-only tagger."""


def score(language: str, value: float, **facts: Any) -> dict[str, Any]:
    return {**ALONE, "language": language, "split": "test", "main": True, "score": value, **facts}


def golden(study: str) -> dict[str, Any]:
    return json.loads(gzip.open(STUDIES / f"{study}.golden.json.gz").read())


def the_same(
    new: pd.DataFrame, old: Sequence[Mapping[str, Any]], keys: Mapping[str, str], values: Mapping[str, str]
) -> int:
    """Assert equal numbers under equal keys (columns of new: of old); return the number of rows."""
    mine = {_key(row, keys): row for row in new.to_dict("records")}
    theirs = {_key(row, keys.values()): row for row in old}
    assert len(mine) == len(new) and len(theirs) == len(old)
    assert set(mine) == set(theirs)
    for key, row in theirs.items():
        for name, other in values.items():
            there = None if pd.isna(mine[key][name]) else mine[key][name]
            assert there == (None if row[other] is None else pytest.approx(row[other], rel=1e-6, abs=1e-9)), (
                key
            )
    return len(theirs)


def _key(row: Mapping[str, Any], names: Iterable[str]) -> tuple[Any, ...]:
    return tuple(
        round(float(row[name]), 6) if isinstance(row[name], float) else "" if row[name] is None else row[name]
        for name in names
    )


def plain(*names: str) -> dict[str, str]:
    """Columns with equal names in both."""
    return {name: name for name in names}


def same_rows(new: pd.DataFrame, old: pd.DataFrame, names: Sequence[str]) -> int:
    """Assert equal rows of some columns in any order; return how many."""
    one, other = (data[[*names]].sort_values([*names]).reset_index(drop=True) for data in (new, old))
    pd.testing.assert_frame_equal(one, other, check_dtype=False, rtol=1e-6)
    return len(one)
