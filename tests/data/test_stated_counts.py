"""Every real corpus read whole: the counts are those its SOURCE.md states, and nothing is lost in writing.

The table of benchmarks/corpora.py, as a test; files that are counted there and not at hand are left out.
"""

import sys
from importlib import import_module
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
corpora, stated = import_module("corpora"), import_module("stated")

pytestmark = pytest.mark.data

QUICK = ("mlqa", "mrpc", "nli-train-en", "pawsx", "tydiqa-goldp", "ud-extra", "word-alignment", "xquad")
AS_ON_DISK = {"ud", "ud-extra", "ud-legacy", "ud-pud", "panx", "udpos-xtreme", "rawtext"}
"""Whose format is written as it is read; the number of empty lines between two sentences is not kept."""

PLACES = [
    pytest.param(place, marks=() if place in QUICK else pytest.mark.slow, id=place) for place in stated.CHECKS
]


WITHOUT_READER = {
    *("tokenizer", "afrisenti", "belebele", "flores-mt", "masakhanews", "masakhapos"),
    *("nusax-senti", "sib200", "taxi1500", "xcopa", "xnli-ext"),
}
"""Folders that no corpus reads yet."""


@pytest.mark.parametrize("place", PLACES)
def test_counts_are_those_stated_and_what_is_written_is_what_was_read(real_data, place):
    if place not in stated.places(real_data):
        pytest.skip(f"no {place}/SOURCE.md in the folder")
    looked = [
        corpora.look(real_data, check)
        for check in stated.checks(real_data, place)
        if check.is_there(real_data)
    ]
    assert looked
    for found in looked:
        where = (place, found.check.of, found.check.language, found.check.split)
        assert found.read == found.check.stated or not found.check.stated, where
        assert found.examples, where
        assert found.written != "LOST", where
        assert found.written.startswith("bytes") or place not in AS_ON_DISK, where


def test_every_folder_with_a_source_is_looked_at(real_data):
    there = {path.parent.name for path in real_data.path.glob("*/SOURCE.md")}
    assert there - WITHOUT_READER <= set(stated.CHECKS)


def test_crossed_questions_of_mlqa_are_those_that_both_languages_have(real_data):
    asked = {
        (check.language, check.of.removeprefix("questions ")): {
            one.id for one in check.corpus.read(real_data, check.language, "dev")
        }
        for check in stated.checks(real_data, "mlqa")
    }
    assert len(asked) == 49
    for (passages, questions), ids in asked.items():
        assert ids == asked[passages, passages] & asked[questions, questions]
