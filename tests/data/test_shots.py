from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss.core.errors import ConfigError, DataError
from isogloss.data.examples import SentencePair, TaggedSentence
from isogloss.data.shots import shots

LABELS = ("entailment", "neutral", "contradiction")


def pair(number, language="en"):
    return SentencePair(
        id=str(number), first=f"{language} {number}", second="", label=LABELS[number % len(LABELS)]
    )


PAIRS = [pair(number) for number in range(30)]


@given(st.permutations(PAIRS), st.integers(0, 30), st.integers(0, 3))
def test_choice_does_not_depend_on_the_order_of_reading(order, count, seed):
    assert shots(order, count, seed=seed) == shots(PAIRS, count, seed=seed)


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 3))
def test_fewer_shots_are_the_first_of_more(one, other, seed):
    fewer, more = sorted((one, other))
    assert shots(PAIRS, more, seed=seed)[:fewer] == shots(PAIRS, fewer, seed=seed)


@given(st.integers(0, 10), st.integers(0, 10), st.integers(0, 3))
def test_shots_per_label_are_that_many_of_each_and_nested(one, other, seed):
    fewer, more = sorted((one, other))
    few, many = (shots(PAIRS, count, seed=seed, per="label") for count in (fewer, more))
    assert Counter(example.label for example in few) == Counter(dict.fromkeys(LABELS, fewer))
    assert set(few) <= set(many)


def test_each_seed_chooses_for_itself():
    chosen = {tuple(example.id for example in shots(PAIRS, 5, seed=seed)) for seed in range(20)}
    assert len(chosen) == 20


def test_every_example_is_chosen_about_as_often():
    counts = Counter(example.id for seed in range(600) for example in shots(PAIRS, 5, seed=seed))
    assert set(counts) == {example.id for example in PAIRS}
    assert 70 < min(counts.values()) <= max(counts.values()) < 135


def test_parallel_corpora_give_the_same_shots():
    swahili = [pair(number, "sw") for number in range(30)]
    assert [one.id for one in shots(PAIRS, 7, seed=1)] == [one.id for one in shots(swahili, 7, seed=1)]


def test_too_few_examples_are_an_error_that_says_how_many():
    with pytest.raises(DataError, match=r"31 examples wanted, but there are 30\. Choose at most 30"):
        shots(PAIRS, 31, seed=0)
    with pytest.raises(DataError, match="11 examples wanted, but label 'contradiction' has 10"):
        shots(PAIRS, 11, seed=0, per="label")


def test_examples_without_a_label_each_have_no_shots_per_label():
    sentence = TaggedSentence(id="7", words=("a",), tags=("X",))
    assert shots([sentence], 1, seed=0) == [sentence]
    with pytest.raises(DataError, match=r"'7' \(TaggedSentence\) has no label of its own"):
        shots([sentence], 1, seed=0, per="label")


def test_negative_count_is_refused():
    with pytest.raises(ConfigError, match="-1 examples"):
        shots(PAIRS, -1, seed=0)
