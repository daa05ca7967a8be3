"""Filler words in src become fewer, package by package; tests/words.py counts them and sets the bounds."""

import ast
import json

import pytest

from words import BOUNDS, FILLERS, STAYING, bound, counts, texts, totals


def test_no_filler_word_is_added():
    recorded = json.loads(BOUNDS.read_text(encoding="utf-8"))
    above = {
        package: (found.most_common(), bounds)
        for package, found in counts().items()
        for bounds in [recorded.get(package, {"names": 0, "phrases": 0})]
        if any(count > bounds[kind] for kind, count in totals(found).items())
    }
    assert not above, f"what is found in packages, and how much may be: {above}"


@pytest.mark.parametrize(
    "code",
    [
        "one = 1",
        "def f(one): 2",
        "lambda one: 2",
        "[1 for one in x]",
        "with x as one: pass",
        "class C:\n    one: int",
        "try: pass\nexcept E as one: pass",
        "match x:\n    case [one, *_]: pass",
        "(one := 1)",
    ],
)
def test_every_way_to_bind_a_name_counts(code):
    assert "one" in bound(ast.parse(code))


def test_fields_that_stay_are_fillers_and_stay_as_fields_alone():
    assert set(STAYING) <= FILLERS
    assert not set(bound(ast.parse("class C:\n    about: str"))) & FILLERS
    assert "about" in bound(ast.parse("about = 1"))


def test_docstrings_and_messages_are_read():
    code = "def f():\n    'A page.'\n    raise E(f'no {page} here')"
    assert [*texts(ast.parse(code))] == ["A page.", "no ", " here"]
