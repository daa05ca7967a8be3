"""Word F1 is scikit-learn's micro F1 over the types of words, those outside left out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from isogloss.metrics.word_f1 import word_f1

TAGS = st.sampled_from(["O", "B-PER", "I-PER", "B-ORG", "I-ORG"])
SENTENCES = st.lists(st.lists(st.tuples(TAGS, TAGS), min_size=1, max_size=8), min_size=1, max_size=4)


@given(SENTENCES)
def test_word_f1_is_micro_f1_over_types(sentences):
    gold, predicted = ([[pair[side] for pair in one] for one in sentences] for side in (0, 1))
    flat = [[tag.partition("-")[2] for one in side for tag in one] for side in (gold, predicted)]
    expected = f1_score(*flat, labels=["PER", "ORG"], average="micro", zero_division=0)
    assert word_f1(gold, predicted) == pytest.approx(expected)


def test_a_word_counts_whatever_becomes_of_its_span():
    gold, predicted = [["B-PER", "I-PER", "O"]], [["B-PER", "O", "O"]]
    assert word_f1(gold, predicted) == pytest.approx(2 / 3)
    assert word_f1(gold, [["I-PER", "B-PER", "O"]]) == 1
    assert word_f1(gold, [["B-ORG", "I-ORG", "O"]]) == 0


def test_without_entities_the_score_is_0():
    assert word_f1([["O"]], [["O"]]) == 0
    assert word_f1([], []) == 0


def test_sentences_of_other_lengths_are_refused():
    with pytest.raises(ValueError, match="differ in number or length"):
        word_f1([["O"]], [["O", "O"]])
