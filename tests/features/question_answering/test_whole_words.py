"""Answers are found as whole words in every script, and never inside longer ones without a remark."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss.features.question_answering.squad import place_answer
from isogloss.features.question_answering.whole_words import find_words

INSIDE = {
    "English": ("the northern coast", "no"),
    "Hindi": ("वह कहाँ गया था", "हाँ"),
    "Bengali": ("নাটক দেখা", "না"),
    "Telugu": ("అమ్మాయి వచ్చింది", "అమ్మ"),
    "Tamil": ("மரங்கள் உயரம்", "மர"),
    "Amharic": ("አበባው አማረ", "አበባ"),
    "Georgian": ("თბილისის ქუჩა", "თბილის"),
    "Russian": ("северный берег", "север"),
    "Greek": ("μεγάλος κήπος", "μεγάλο"),
    "Armenian": ("Երևանում էր", "Երևան"),
    "Combining accent": ("un cafe\u0301 noir", "cafe"),
    "Joined emoji": ("a 👩🏽\u200d🔬 b", "👩🏽"),
}
"""A passage of each script, and a word that is only a part of a longer one in it."""

JOINED = {
    "Hebrew": ("הוא לכן הלך", "כן", "לכן"),
    "Arabic": ("ذهب بالقلم اليوم", "القلم", "بالقلم"),
    "Korean": ("그는 서울에서 산다", "서울", "서울에서"),
}
"""A passage, a word with a particle in it, and both together."""

WHOLE = {
    "Hindi": ("हाँ, वह कहाँ गया", "हाँ", 0),
    "Hebrew": ("לכן כן הלך", "כן", 4),
    "Korean": ("서울에서 서울 산다", "서울", 5),
    "Chinese": ("他住在北京市", "北京", 3),
    "Japanese": ("私は東京タワーへ", "東京", 2),
    "Thai": ("เขาอยู่กรุงเทพ", "กรุงเทพ", 7),
    "French": ("il boit de l'eau", "eau", 13),
    "Punctuation": ("(Oslo), 1999.", "Oslo", 1),
}
"""A passage, a word in it, and its offset."""


@pytest.mark.parametrize("script", INSIDE)
def test_a_part_of_a_longer_word_is_not_found(script):
    passage, word = INSIDE[script]
    assert find_words(passage, word) == []
    assert place_answer(passage, word, None) == f"answer {word!r}, nowhere as whole words"


@pytest.mark.parametrize("script", JOINED)
def test_a_word_with_a_particle_is_found_and_reported(script):
    passage, word, joined_value = JOINED[script]
    start, text, repair = place_answer(passage, word, None)
    assert (start, text) == (passage.index(word), word)
    assert f"inside the word {joined_value!r}" in repair


@pytest.mark.parametrize("script", WHOLE)
def test_whole_words_are_found(script):
    passage, word, start = WHOLE[script]
    assert place_answer(passage, word, None) == (start, word, "")


@given(
    st.text(alphabet="कहाँ ना ab北서\u0301 .", max_size=20),
    st.text(alphabet="कहाँनाab北서", min_size=1, max_size=3),
)
def test_a_place_has_the_text_and_never_ends_inside_a_grapheme(passage, word):
    for place in find_words(passage, word):
        stop = place.start + len(place.text)
        assert passage[place.start : stop] == word
        assert passage[stop : stop + 1] != "\u0301"


def test_the_case_of_a_description_is_an_error_with_its_line(own_corpus, put_files):
    row = {"id": "1", "context": "वह कहाँ गया था", "question": "क्या?", "answers": ["हाँ"]}
    put_files({"test.jsonl": json.dumps(row) + "\n"})
    corpus = own_corpus('kind = "span"\nfiles = { test = "test.jsonl" }\nlanguages = ["hi"]\n')
    (error,) = corpus.attempts(None, "hi", "test")
    assert "test.jsonl:1: answer 'हाँ', nowhere as whole words" in str(error)
