import inspect
import sys
from functools import cache
from itertools import product

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss.features.parsing.dependency_trees import best_tree, is_tree

VALUES = {
    "small whole numbers, with many ties": st.integers(-2, 2).map(float),
    "any": st.floats(-1e3, 1e3, width=32),
    "some arcs impossible": st.one_of(st.just(float("-inf")), st.integers(-9, 9).map(float)),
}


@cache
def all_trees(size):
    """Every single-root tree of a number of words, from all heads, counted by Cayley's formula."""

    def reaches_root(heads, word):
        for _ in range(size):
            word = heads[word - 1]
            if word == 0:
                return True
        return False

    interval = product(range(size + 1), repeat=size)
    one_root = (heads for heads in interval if heads.count(0) == 1)
    trees = np.array([h for h in one_root if all(reaches_root(h, word) for word in range(1, size + 1))])
    assert len(trees) == size * size ** max(0, size - 2)
    return trees


def totals(scores, trees):
    return scores[np.arange(len(scores)), trees].sum(axis=1)


@st.composite
def arc_scores(draw, largest=5, kind=None):
    size = draw(st.integers(1, largest))
    values = VALUES[kind or draw(st.sampled_from(sorted(VALUES)))]
    drawn_sample = draw(st.lists(values, min_size=size * (size + 1), max_size=size * (size + 1)))
    return np.array(drawn_sample).reshape(size, size + 1)


@pytest.mark.slow
@given(arc_scores())
@settings(max_examples=150)
def test_no_tree_of_at_most_five_words_is_better(scores):
    heads = best_tree(scores)
    trees = all_trees(len(scores))
    assert is_tree(heads)
    assert tuple(heads) in {tuple(tree) for tree in trees.tolist()}
    sums = totals(np.where(np.isneginf(scores), -1e6, scores), trees)  # fewest impossible arcs first
    ours = totals(np.where(np.isneginf(scores), -1e6, scores), np.array([heads]))[0]
    assert ours == pytest.approx(sums.max(), rel=1e-9, abs=1e-9)


def best_of_networkx(scores):
    """The best single-root tree: the best arborescence of only the words below each root in turn."""
    size = len(scores)
    best_value = -np.inf
    for root in range(1, size + 1):
        graph = networkx.DiGraph()
        graph.add_edge(0, root, weight=scores[root - 1, 0])
        for word in range(1, size + 1):
            for head in range(1, size + 1):
                if head != word:
                    graph.add_edge(head, word, weight=scores[word - 1, head])
        tree = networkx.maximum_spanning_arborescence(graph, preserve_attrs=True)
        assert set(tree.successors(0)) == {root}
        best_value = max(best_value, sum(weight for *_, weight in tree.edges(data="weight")))
    return best_value


@pytest.mark.parametrize("seed", range(4))
def test_longer_sentences_are_as_good_as_networkx_finds_them(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(7, 13))
    scores = rng.normal(size=(size, size + 1))
    heads = best_tree(scores)
    assert is_tree(heads)
    assert totals(scores, np.array([heads]))[0] == pytest.approx(best_of_networkx(scores))


@given(arc_scores(largest=9, kind="any"), st.floats(-100, 100))
def test_what_is_added_to_all_heads_of_a_word_changes_nothing(scores, added_value):
    scores = scores.round()
    changed_scores = scores.copy()
    changed_scores[0] += round(added_value)
    heads = best_tree(scores)
    other_best_tree = best_tree(changed_scores)
    assert totals(scores, np.array([heads]))[0] == totals(scores, np.array([other_best_tree]))[0]


@given(arc_scores(largest=9))
def test_every_outcome_is_a_tree_and_the_same_each_time(scores):
    scores_before = scores.copy()
    heads = best_tree(scores)
    assert is_tree(heads)
    assert best_tree(scores) == heads
    assert np.array_equal(scores_before, scores)


def test_a_tree_is_found_where_all_arcs_are_impossible_or_equal():
    assert is_tree(best_tree(np.full((9, 10), -np.inf)))
    assert best_tree(np.zeros((3, 4))) == best_tree(np.full((3, 4), 7.0))
    assert best_tree(np.zeros((1, 2))) == [0]
    assert best_tree(np.zeros((0, 1))) == []


def test_one_root_is_chosen_where_every_word_wants_to_be_it():
    scores = np.array([[9.0, 0, 1, 1], [8, 5, 0, 4], [7, 1, 6, 0]])
    assert best_tree(scores) == [0, 1, 2]


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_scores_that_are_no_numbers_are_refused(wrong):
    scores = np.zeros((2, 3))
    scores[1, 0] = wrong
    with pytest.raises(ValueError, match="NaN"):
        best_tree(scores)


def test_other_shapes_are_refused():
    with pytest.raises(ValueError, match=r"\[3, 3\]:.*\[word candidate\]"):
        best_tree(np.zeros((3, 3)))


def test_a_long_sentence_takes_no_deep_recursion():
    scores = np.random.default_rng(0).normal(size=(400, 401))
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 30)
    try:
        heads = best_tree(scores)
    finally:
        sys.setrecursionlimit(limit)
    assert is_tree(heads)


@pytest.mark.parametrize(
    ("heads", "tree"),
    [([0], True), ([2, 0], True), ([0, 0], False), ([2, 1], False), ([0, 3, 2], False), ([2, 3, 0], True)],
)
def test_trees_have_one_root_and_no_cycle(heads, tree):
    assert is_tree(heads) is tree
