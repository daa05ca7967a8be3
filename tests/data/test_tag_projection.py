"""Tags follow word links. Entities are whole or the sentence is given up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss.core.tag_schemes import are_bio, find_spans
from isogloss.data.projection.words import project_tags, word_links
from isogloss.metrics.labels import spans

BIO = st.lists(st.sampled_from(["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]), max_size=12)


@given(BIO)
def test_entities_are_the_spans_that_are_scored(tags):
    assert [tuple(span) for span in find_spans(tags)] == [tuple(span) for span in spans(tags)]


@given(BIO.filter(any))
def test_links_from_each_word_to_its_own_carry_all_tags(tags):
    same_places = [(place, place) for place in range(len(tags))]
    whole_tags = project_tags(tags, len(tags), same_places, bio=True)
    assert whole_tags is not None
    assert spans(whole_tags) == spans(tags)
    assert project_tags(tags, len(tags), same_places, bio=False) == tuple(tags)


def test_a_word_takes_the_tag_on_which_its_links_agree():
    tags = ["ADP", "DET", "NOUN", "NOUN"]
    links = [(0, 0), (1, 0), (2, 1), (3, 1), (3, 3)]
    assert project_tags(tags, 4, links, bio=False) == ("", "NOUN", "", "NOUN")
    assert project_tags(["", "NOUN"], 2, [(0, 0), (1, 1)], bio=False) == ("", "NOUN")
    assert project_tags(tags, 4, [], bio=False) is None
    assert project_tags([], 4, links, bio=False) == ()


@pytest.mark.parametrize(
    ("links", "expected"),
    [
        ([(0, 2), (1, 1), (2, 0)], ["O", "B-PER", "I-PER", "O"]),  # the order turns round
        ([(0, 0), (1, 3)], ["B-PER", "I-PER", "I-PER", "I-PER"]),  # unlinked words within belong to it
        ([(0, 0), (2, 1), (1, 2)], None),  # a word of something else within
        ([(2, 1)], None),  # nothing left of it
    ],
)
def test_an_entity_is_its_first_to_its_last_linked_word(links, expected):
    tags = project_tags(["B-PER", "I-PER", "O"], 4, links, bio=True)
    assert tags == (None if expected is None else tuple(expected))


def test_two_entities_never_share_a_word():
    tags = ["B-PER", "B-LOC"]
    assert project_tags(tags, 2, [(0, 0), (1, 0), (1, 1)], bio=True) is None
    assert project_tags(tags, 2, [(0, 0), (1, 1)], bio=True) == ("B-PER", "B-LOC")


def test_entities_are_told_from_tags_of_words():
    assert are_bio(["O", "B-PER", ""])
    assert are_bio(["O"])
    assert not are_bio(["O", "NOUN"])
    assert not are_bio([])


def test_places_in_texts_become_words():
    source = (("I", "don't", "know"), "I don't know")
    target = (("je", "ne", "sais", "pas"), "je ne sais pas")
    links = [((2, 7), (3, 5)), ((2, 7), (11, 14)), ((8, 12), (6, 10))]
    assert word_links(source, target, links) == [(1, 1), (1, 3), (2, 2)]
    assert word_links((("de", "le"), "du"), target, [((0, 2), (0, 2))]) == []  # not written in the text
