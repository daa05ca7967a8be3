"""Each way to damage a file does what it says. A damage that does something else tests nothing."""

import random

import pytest

import damage

TEXT = b"a\tb\nc\t1\nd\te\nf\t2"


def turn_round(row):
    return row[::-1]


def take_first(row):
    return row[:1]


CASES = {
    "cut": (damage.cut(0.5), b"a\tb\nc\t1"),
    "splice": (damage.splice(0.0, 1, b"x"), b"x\tb\nc\t1\nd\te\nf\t2"),
    "swell": (damage.swell(0.0, "long word"), b"a" * 70_000 + TEXT),
    "flip": (damage.flip(0.0, 1), b"`\tb\nc\t1\nd\te\nf\t2"),
    "number": (damage.number(0.6, b"NaN"), b"a\tb\nc\t1\nd\te\nf\tNaN"),
    "repeat": (damage.repeat(0.0, 0.5), b"a\tb\nc\t1\na\tb\nd\te\nf\t2"),
    "swap": (damage.swap(0.0, 0.5), b"d\te\nc\t1\na\tb\nf\t2"),
    "remove": (damage.remove(0.25), b"a\tb\nd\te\nf\t2"),
    "one line's columns": (damage.columns(0.5, turn_round), b"a\tb\nc\t1\ne\td\nf\t2"),
    "all lines' columns": (damage.columns(0.9, take_first), b"a\nc\nd\nf"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_damage_does_what_it_says(name):
    change, expected = CASES[name]
    assert change(TEXT) == expected


def test_a_member_is_repeated_with_a_different_value():
    assert damage.twice(0.0)(b'{"a": 1}') == b'{"a":"x", "a": 1}'


def test_each_whole_damage_changes_a_text_with_several_lines():
    text = TEXT + b"\n"
    assert all(change(text) != text for change in damage.WHOLE)


def test_mutations_of_lines_keep_repeat_lose_or_join_them():
    from fuzz import mutations

    rows = TEXT.split(b"\n")
    kinds = set()
    for seed in range(200):
        result = mutations.lines(random.Random(seed), TEXT).split(b"\n")
        is_swap = sorted(result) == sorted(rows)
        kinds.add(("swap", result != rows) if is_swap else (len(result), False))
    assert ("swap", True) in kinds
    assert {(3, False), (4, False), (5, False)} <= kinds
