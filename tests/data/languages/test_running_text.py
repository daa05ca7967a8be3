from itertools import islice

import pytest

from isogloss.data.languages import LANGUAGES, examples, translations
from isogloss.data.languages.lexicon import lexicon

CONTENT_TAGS = {"NOUN", "VERB", "ADJ", "ADV", "NUM", "PROPN", "PRON"}


@pytest.mark.parametrize("code", [code for code in LANGUAGES if code != "qaa"])
def test_links_are_in_range_and_cover_every_content_word(code):
    tables = [lexicon(LANGUAGES["qaa"]).readings, lexicon(LANGUAGES[code]).readings]
    for pair in translations("qaa", code, "dev"):
        for side, text in enumerate((pair.first, pair.second)):
            words = text.split()
            linked = {link[side] for link in pair.links}
            assert linked <= set(range(len(words)))
            for place, word in enumerate(words):
                assert place in linked or not CONTENT_TAGS & set(tables[side].get(word, ()))


@pytest.mark.parametrize("code", ["qad", "qah", "qai"])
def test_links_join_words_that_mean_the_same(code):
    ours, theirs = lexicon(LANGUAGES["qaa"]).readings, lexicon(LANGUAGES[code]).readings
    for pair in translations("qaa", code, "dev"):
        one, other = pair.first.split(), pair.second.split()
        for left, right in pair.links:
            for tag in (
                {"NOUN", "ADJ", "NUM"} & set(ours.get(one[left], ())) & set(theirs.get(other[right], ()))
            ):
                if len(ours[one[left]]) == len(theirs[other[right]]) == 1:
                    assert ours[one[left]][tag].concept == theirs[other[right]][tag].concept


def test_links_turn_round_with_the_languages():
    there = list(islice(translations("qab", "qai", "train"), 100))
    back = list(islice(translations("qai", "qab", "train"), 100))
    for one, other in zip(there, back, strict=True):
        assert (one.first, one.second) == (other.second, other.first)
        assert {link[::-1] for link in one.links} == set(other.links)


def test_bitext_of_a_language_with_itself_is_the_identity():
    for pair in translations("qad", "qad", "dev"):
        assert pair.first == pair.second
        assert {left for left, right in pair.links if left == right} == set(range(len(pair.first.split())))


def test_running_text_attaches_punctuation_and_han_has_no_spaces():
    assert not any(" ." in line.text or " ," in line.text for line in examples("text", "qaa", "dev"))
    assert not any(" " in line.text for line in examples("text", "qai", "dev"))
