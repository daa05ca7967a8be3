"""Nested values: one field in code, flat in recipes and records."""

from dataclasses import dataclass, field, fields

import pytest

from isogloss.core.identity import content
from isogloss.core.run_parts import (
    NESTED,
    Optimization,
    is_nested,
    keys_of,
    nested_fields,
    values_of,
    with_fields,
)
from isogloss.methods import ADJUSTMENTS, METHODS, PRETRAINING, TRANSLATION_TRAINING
from isogloss.recipes.checking import build_checked

OWNERS = {
    kind.__name__: kind
    for kind in (Optimization, *{**PRETRAINING, **ADJUSTMENTS, **TRANSLATION_TRAINING}.values())
    if any(is_nested(value) for value in fields(kind))
}


@dataclass(frozen=True, kw_only=True)
class Inner:
    rate: float = 1.0
    size: int = 2


@dataclass(frozen=True, kw_only=True)
class Outer:
    steps: int = 3
    inner: Inner = field(default=Inner(rate=0.5), metadata=NESTED)
    _nested = nested_fields()


def test_fields_of_a_nested_value_stand_among_its_owners():
    assert keys_of(Outer) == ("steps", "rate", "size")
    assert values_of(Outer()) == {"steps": 3, "rate": 0.5, "size": 2}
    options = content(Outer())
    assert options.pop("package")  # It is not of the house, nor is its nested value.
    assert options == {"kind": "Outer", "steps": 3, "rate": 0.5, "size": 2}


def test_a_table_reaches_inside_and_keeps_the_owners_defaults():
    assert build_checked(Outer, {"size": 7}) == Outer(inner=Inner(rate=0.5, size=7))
    assert build_checked(Outer, {"inner": {"rate": 2.0}, "steps": 1}) == Outer(steps=1, inner=Inner(rate=2.0))
    assert with_fields(Outer(), size=7, steps=4) == Outer(steps=4, inner=Inner(rate=0.5, size=7))


@pytest.mark.parametrize("name", OWNERS)
def test_no_field_of_an_owner_is_called_like_one_inside(name):
    names = keys_of(OWNERS[name])
    assert len(set(names)) == len(names) > 4


def test_a_rate_is_declared_once():
    kinds = {**METHODS, **PRETRAINING, **ADJUSTMENTS, **TRANSLATION_TRAINING}.values()
    assert not [kind for kind in kinds if "learning_rate" in {item.name for item in fields(kind)}]
    assert len(OWNERS) == 9
