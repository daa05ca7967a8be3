import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics import f1_score
from seqeval.metrics.sequence_labeling import get_entities

from isogloss.metrics.accuracy import accuracy
from isogloss.metrics.seqeval_f1 import chunks, seqeval_f1

UPOS = (
    "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM",
    "PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM", "VERB", "X",
)  # fmt: skip
OTHERS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC", "E-LOC", "S-LOC", "B", "I", "E", "S", ".", "_", "B-A-B")

upos = st.sampled_from(UPOS)
anything = st.sampled_from((*UPOS, *OTHERS))


def corpora(tags):
    return st.lists(st.lists(st.tuples(tags, tags), max_size=8), min_size=1, max_size=5)


def theirs(gold, predicted):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return f1_score(gold, predicted)


def both(corpus):
    return [[one for one, _ in words] for words in corpus], [
        [other for _, other in words] for words in corpus
    ]


@given(corpora(upos))
def test_score_of_universal_tags_is_that_of_seqeval(corpus):
    gold, predicted = both(corpus)
    assert seqeval_f1(gold, predicted) == pytest.approx(theirs(gold, predicted), abs=1e-12)


@given(corpora(anything))
def test_score_of_any_tags_is_that_of_seqeval(corpus):
    gold, predicted = both(corpus)
    assert seqeval_f1(gold, predicted) == pytest.approx(theirs(gold, predicted), abs=1e-12)


@given(st.lists(st.lists(anything, max_size=8), min_size=1, max_size=5))
def test_chunks_are_those_of_seqeval(sentences):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [tuple(chunk) for chunk in chunks(sentences)] == get_entities(sentences)


def test_four_right_tags_of_five_can_be_a_third():
    gold = [["NOUN", "NOUN", "NOUN", "NOUN", "VERB"]]
    predicted = [["NOUN", "NOUN", "ADJ", "NOUN", "VERB"]]
    assert accuracy(gold[0], predicted[0]) == 0.8
    assert seqeval_f1(gold, predicted) == pytest.approx(theirs(gold, predicted)) == pytest.approx(1 / 3)


@given(st.lists(st.lists(upos.filter(lambda tag: tag != "X"), min_size=1), min_size=1))
def test_all_right_is_one(gold):
    assert seqeval_f1(gold, gold) == 1.0


@pytest.mark.parametrize(
    "corpus", [([], []), ([[]], [[]]), ([["O"]], [["O"]]), ([["X"]], [["X"]]), ([["NOUN"]], [["O"]])]
)
def test_without_spans_in_common_is_zero(corpus):
    assert seqeval_f1(*corpus) == 0.0


@pytest.mark.parametrize("predicted", [[["NOUN"]], [["NOUN", "NOUN"], ["X"]]])
def test_other_sentences_are_refused(predicted):
    with pytest.raises(ValueError, match="differ in number or length"):
        seqeval_f1([["NOUN", "NOUN"]], predicted)
