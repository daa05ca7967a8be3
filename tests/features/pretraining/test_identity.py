import json
import math
from dataclasses import dataclass, field, make_dataclass, replace
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss.core.identity import ID_LENGTH, content, identity
from isogloss.core.run_parts import Architecture
from isogloss.features.pretraining.run import Pretrain
from isogloss.runs.fine_tune import FineTune
from isogloss.runs.pretrained import Pretrained

PLAIN = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
NESTED = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
)


@dataclass(frozen=True, kw_only=True)
class First:
    __module__ = "isogloss.made_up"  # One of the house: the digest of a file is part of no golden id.
    name: ClassVar[str] = "first"


@dataclass(frozen=True, kw_only=True)
class Second:
    name: ClassVar[str] = "second"


@given(NESTED)
def test_id_is_hexadecimal_and_stable(value):
    assert identity(value) == identity(value)
    assert len(identity(value)) == ID_LENGTH
    assert set(identity(value)) <= set("0123456789abcdef")


@given(st.dictionaries(st.text(), PLAIN, max_size=6), st.randoms())
def test_id_does_not_depend_on_the_order_of_entries(entries, random):
    items = list(entries.items())
    random.shuffle(items)
    assert identity(dict(items)) == identity(entries)


@given(st.permutations(["a", "b", "c", "d"]), st.lists(PLAIN, min_size=4, max_size=4))
def test_id_does_not_depend_on_the_order_of_fields(order, values):
    inputs = dict(zip("abcd", values, strict=True))
    item = make_dataclass("Part", [(name, object) for name in "abcd"], frozen=True)(**inputs)
    other_item = make_dataclass("Part", [(name, object) for name in order], frozen=True)(**inputs)
    assert identity(item) == identity(other_item)


def test_kinds_without_fields_have_ids_of_their_own():
    assert identity(First()) != identity(Second())


def test_a_class_without_a_name_counts_by_its_own():
    assert content(Architecture())["kind"] == "Architecture"


def test_a_field_called_kind_hides_no_kind():
    parts = [make_dataclass(name, [("kind", str)], frozen=True)("adapter") for name in ("One", "Two")]
    assert [content(part)["kind"] for part in parts] == ["One", "Two"]
    assert identity(parts[0]) not in {identity(parts[1]), identity(replace(parts[0], kind="attention"))}


def test_a_raised_version_changes_the_id_and_version_one_is_no_version():
    def part(**known_values):
        return make_dataclass("Part", [("x", int)], frozen=True, namespace=known_values)(1)

    assert identity(part()) == identity(part(version=1))
    assert identity(part()) != identity(part(version=2))
    one_property = property(lambda result: 1 if result.x == 1 else 2)
    assert identity(part()) == identity(part(version=one_property)) != identity(part(version=2))


@given(st.lists(PLAIN, max_size=4))
def test_tuples_and_lists_are_the_same_content(values):
    assert identity(tuple(values)) == identity(values)


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_different_floats_have_different_ids(left, right):
    assert (identity(left) == identity(right)) == (left == right)


@pytest.mark.parametrize("whole_result", [0, 1])
def test_equal_parts_have_equal_ids_also_where_a_fraction_is_written_whole(whole_result):
    assert Architecture(dropout=whole_result) == Architecture(dropout=float(whole_result))
    assert identity(Architecture(dropout=whole_result)) == identity(Architecture(dropout=float(whole_result)))


def test_true_is_not_one():
    assert identity(True) != identity(1)


@pytest.mark.parametrize("value", [{1, 2}, b"bytes", object(), First, math.sin])
def test_what_has_no_place_in_a_run_is_refused(value):
    with pytest.raises(TypeError, match="dataclasses"):
        identity([value])


@given(NESTED)
def test_the_content_of_a_part_has_its_id(value):
    part = make_dataclass("Part", [("x", object)], frozen=True)(value)
    assert identity(content(part)) == identity(part)


@pytest.mark.parametrize("zero", [{"x": -0.0}, {"x": [{"y": -0.0}]}])
def test_zero_has_one_id_in_content_that_was_read(zero):
    text = json.dumps(zero)
    assert identity(json.loads(text)) == identity(json.loads(text.replace("-", "")))


@pytest.mark.parametrize("value", [math.nan, -math.inf])
def test_numbers_that_are_none_are_refused_in_content_that_was_read(value):
    with pytest.raises(ValueError, match="finite"):
        identity({"x": [value]})


def test_numbers_that_are_none_are_refused():
    for value in (math.nan, math.inf):
        with pytest.raises(ValueError, match="finite"):
            identity(value)


def test_a_part_changes_the_id_of_the_whole():
    def tune(dropout):
        encoder = Pretrain(
            text=("bible",),
            languages=("en",),
            architecture=Architecture(dropout=dropout),
            method=First(),
        )
        return FineTune(encoder=encoder, corpus="ud", task="upos", method=First(), source=("en",))

    assert identity(tune(0.1)) == identity(tune(0.1))
    assert identity(tune(0.1)) != identity(tune(0.2))


def test_golden_id():
    """Ids name folders on users' disks: if this changes, all their runs are repeated."""
    run = FineTune(
        encoder=Pretrained(source="shipped", data="f00d"),
        corpus="ud",
        task="upos",
        method=First(),
        source=("en",),
        target=("de", "fr"),
        seed=1,
    )
    assert identity(run) == "40fc63106d4c"


def test_other_letters_than_ascii_count():
    assert identity("ä") != identity("a")
    assert identity({"ä": field(default=1).default}) == identity({"ä": 1})
