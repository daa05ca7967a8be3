"""Answers found again: at the right offset in every script, or not at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss.data.label_projection import MARKS, by_links, by_text, marked, place_links, unmarked

BRACKETS, TAGS, QUOTES = MARKS
TEXTS = st.text(alphabet="ab éдж中文ไท .,", min_size=1, max_size=30)


ANSWERS = TEXTS.map(str.strip).filter(bool)


@given(TEXTS, ANSWERS, TEXTS, st.sampled_from(MARKS))
def test_marks_taken_out_again_leave_the_answer_at_its_offset(before, answer, after, mark) -> None:
    text = marked(before + answer + after, (len(before), answer), mark)
    assert text is not None
    found = unmarked(text, mark)
    assert found is not None
    passage, (start, inner) = found
    assert inner == answer
    assert passage[start : start + len(inner)] == inner
    assert passage.split() == (before + answer + after).split()


@pytest.mark.parametrize(
    ("translation", "mark", "passage", "answer"),
    [
        ("vivió en [Roma] mucho", BRACKETS, "vivió en Roma mucho", (9, "Roma")),
        ("vivió en [ Roma ], mucho", BRACKETS, "vivió en Roma, mucho", (9, "Roma")),
        ("他住在【罗马】很久", BRACKETS, "他住在罗马很久", (3, "罗马")),
        ("à < b >Rome</ b >.", TAGS, "à Rome.", (2, "Rome")),
        ("il dit « Rome » hier", QUOTES, "il dit Rome hier", (7, "Rome")),
        ("er sagt „Rom“ gern", QUOTES, "er sagt Rom gern", (8, "Rom")),
    ],
)
def test_marks_are_known_again_as_a_translation_writes_them(translation, mark, passage, answer) -> None:
    assert unmarked(translation, mark) == (passage, answer)


@pytest.mark.parametrize(
    "text", ["no mark", "[ ]", "only [one", "]wrong[", "[two] [pairs]", "[three [marks]"]
)
def test_marks_that_are_not_one_pair_round_something_are_lost(text: str) -> None:
    assert unmarked(text, BRACKETS) is None


def test_a_passage_with_marks_of_its_own_is_not_marked_with_them() -> None:
    assert marked("see [1] there", (8, "there"), BRACKETS) is None
    assert marked("see [1] there", (8, "there"), TAGS) == "see [1] <b>there</b>"


def test_links_lead_from_the_first_to_the_last_linked_word() -> None:
    text, translation = "the old town lies here", "hier liegt die alte Stadt."
    links = place_links(text, translation, [(0, 2), (1, 3), (2, 4), (3, 1), (4, 0)])
    assert by_links((4, "old town"), translation, links) == (15, "alte Stadt")


def test_a_foreign_word_within_the_linked_ones_loses_the_answer() -> None:
    text, translation = "the old town lies", "alte liegt Stadt"
    assert (
        by_links((4, "old town"), translation, place_links(text, translation, [(1, 0), (2, 2), (3, 1)]))
        is None
    )
    assert by_links((4, "old"), translation, []) is None


@pytest.mark.parametrize(
    ("answer", "translation", "found"),
    [
        ("rome.", "In Rome it rained", (3, "Rome")),
        ("罗马", "他住在罗马很久", (3, "罗马")),
        ("art", "the party saw Art there", (14, "Art")),
        ("1990", "1990 and 1990", None),
        ("Paris", "Rome", None),
        (" . ", "a . b", None),
    ],
)
def test_an_answer_translated_alone_must_stand_exactly_once(answer, translation, found) -> None:
    assert by_text(answer, translation) == found
