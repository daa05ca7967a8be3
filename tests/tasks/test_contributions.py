"""What examples contribute: for every task the totals are its measures, to the bit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss.core.contributions import Contributions, total
from isogloss.core.errors import DataError
from isogloss.metrics.attachment import Tree
from isogloss.metrics.question_answering import GoldAnswers
from isogloss.tasks import TASKS

TEXTS = st.text("ab 12.", max_size=8)


@st.composite
def tags(draw, task):
    """A sentence's tags, gold and predicted."""
    length = draw(st.integers(0, 6))
    one = st.lists(st.sampled_from(task.labels), min_size=length, max_size=length).map(tuple)
    return draw(one), draw(one)


@st.composite
def trees(draw, task):
    length = draw(st.integers(1, 5))
    heads = st.lists(st.integers(0, length), min_size=length, max_size=length).map(tuple)
    names = st.lists(st.sampled_from(task.labels), min_size=length, max_size=length).map(tuple)
    upos = draw(st.lists(st.sampled_from(["NOUN", "PUNCT", "SYM"]), min_size=length, max_size=length))
    return Tree(draw(heads), draw(names), tuple(upos)), Tree(draw(heads), draw(names))


def pairs(task):
    return st.tuples(st.sampled_from(task.labels), st.sampled_from(task.labels))


def answers(_):
    gold = st.lists(TEXTS, min_size=1, max_size=3).map(lambda texts: GoldAnswers(tuple(texts)))
    return st.tuples(gold, TEXTS)


DRAWN = {"upos": tags, "ner": tags, "parsing": trees, "nli": pairs, "paraphrase": pairs, "qa": answers}


def test_every_task_is_tested_here():
    assert DRAWN.keys() == TASKS.keys()


@pytest.mark.parametrize("name", TASKS)
@given(data=st.data())
def test_the_totals_of_contributions_are_the_measures(name, data):
    task = TASKS[name]
    drawn = data.draw(st.lists(DRAWN[name](task), max_size=6))
    gold, predicted = ([one[side] for one in drawn] for side in (0, 1))
    contributions = task.contributions(gold, predicted)
    measures = task.measures(gold, predicted)
    assert {measure: total(one) for measure, one in contributions.items()} == measures
    assert list(contributions) == list(measures)
    assert total(contributions[task.metric]) == task.score(gold, predicted)
    assert {len(numbers) for one in contributions.values() for numbers in one} == {len(drawn)}


@pytest.mark.parametrize("name", ["ner", "parsing", "nli", "paraphrase", "qa"])
@given(data=st.data())
def test_an_example_contributes_the_same_among_any_others(name, data):
    task = TASKS[name]
    drawn = data.draw(st.lists(DRAWN[name](task), min_size=1, max_size=5))
    gold, predicted = ([one[side] for one in drawn] for side in (0, 1))
    together = task.contributions(gold, predicted)
    for place in range(len(drawn)):
        alone = task.contributions(gold[place : place + 1], predicted[place : place + 1])
        for measure, (part, whole) in together.items():
            assert (part[place], whole[place]) == (alone[measure].part[0], alone[measure].whole[0])


def test_nothing_adds_up_to_nothing():
    assert total(Contributions([], [])) == 0
    assert total(Contributions([0.0], [0.0])) == 0


def test_a_pair_without_a_label_contributes_nothing_that_could_be_scored():
    with pytest.raises(DataError, match="1 of 2 pairs have no label"):
        TASKS["nli"].contributions(["neutral", ""], ["neutral", "neutral"])
