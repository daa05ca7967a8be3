import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score

from isogloss.metrics.accuracy import accuracy

pairs = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1)


@given(pairs)
def test_accuracy_is_that_of_scikit_learn(pairs):
    gold, predicted = zip(*pairs, strict=True)
    assert accuracy(gold, predicted) == pytest.approx(accuracy_score(gold, predicted))


def test_accuracy_of_nothing_is_zero():
    assert accuracy([], []) == 0.0


def test_accuracy_refuses_unequal_lengths():
    with pytest.raises(ValueError, match="2 gold labels, but 1 predicted ones"):
        accuracy(["a", "b"], ["a"])
