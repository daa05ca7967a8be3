import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics import f1_score

from isogloss.metrics.bio import repair
from isogloss.metrics.span_f1 import span_f1

tags = st.sampled_from(("O", "B-PER", "I-PER", "B-LOC", "I-LOC"))
sentences = st.lists(st.tuples(tags, tags), max_size=8)
corpora = st.lists(sentences, min_size=1, max_size=5)


def both(corpus):
    return [[one for one, _ in words] for words in corpus], [
        [other for _, other in words] for words in corpus
    ]


@given(corpora)
def test_span_f1_is_that_of_seqeval_on_valid_and_invalid_tags(corpus):
    gold, predicted = both(corpus)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = f1_score(gold, predicted)
    assert span_f1(gold, predicted) == pytest.approx(theirs, abs=1e-12)


@given(corpora)
def test_span_f1_does_not_change_with_repair(corpus):
    gold, predicted = both(corpus)
    repaired = [repair(sentence) for sentence in predicted]
    assert span_f1(gold, repaired) == span_f1(gold, predicted)


@given(corpora)
def test_span_f1_is_symmetric(corpus):
    gold, predicted = both(corpus)
    assert span_f1(gold, predicted) == span_f1(predicted, gold)


def test_span_f1_of_all_spans_right_is_one():
    assert span_f1([["B-PER", "I-PER", "O"], ["B-LOC"]], [["B-PER", "I-PER", "O"], ["B-LOC"]]) == 1.0


def test_span_f1_needs_both_borders_and_the_type():
    gold = [["B-PER", "I-PER", "O"]]
    assert span_f1(gold, [["B-PER", "O", "O"]]) == 0.0
    assert span_f1(gold, [["B-LOC", "I-LOC", "O"]]) == 0.0


@pytest.mark.parametrize(
    ("gold", "predicted"), [([], []), ([["O"]], [["O"]]), ([["B-PER"]], [["O"]]), ([["O"]], [["B-PER"]])]
)
def test_span_f1_without_any_spans_on_a_side_is_zero(gold, predicted):
    assert span_f1(gold, predicted) == 0.0


@pytest.mark.parametrize("predicted", [[["O"]], [["O", "O"], ["O"]], [["O"], ["O"]]])
def test_span_f1_refuses_other_sentences(predicted):
    with pytest.raises(ValueError, match="differ in number or length"):
        span_f1([["O", "O"]], predicted)
