from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss.aligners.diagonal_model import UNSEEN, Lexicon, best_links, joint

words = st.lists(st.integers(-1, 4).filter(bool), min_size=1, max_size=5).map(
    lambda numbers: np.array(numbers, dtype=np.int64)
)
entries = st.dictionaries(
    st.tuples(st.integers(0, 4), st.integers(1, 4)), st.floats(2**-10, 1, width=32), max_size=12
)


def lexicon(table):
    given, made = (np.array([key[side] for key in table], dtype=np.int64) for side in (0, 1))
    return Lexicon.of(given, made, np.array(list(table.values()), dtype=np.float32))


@given(entries, st.lists(st.tuples(words, words), max_size=3), st.floats(0, 10), st.floats(0.01, 0.5))
def test_joint_is_the_papers_product_cell_by_cell(table, pairs, tension, none):
    made = list(joint(lexicon(table), pairs, tension=tension, none=none))
    assert len(made) == len(pairs)
    for (source, other), matrix in zip(pairs, made, strict=True):
        n, m = len(source), len(other)
        for j in range(m):
            near = [exp(-tension * abs((i + 1) / n - (j + 1) / m)) for i in range(n)]
            prior = [none, *((1 - none) * one / sum(near) for one in near)]
            wanted = [
                p * table.get((int(e), int(other[j])), UNSEEN)
                for p, e in zip(prior, (0, *source), strict=True)
            ]
            assert matrix[j].tolist() == pytest.approx(wanted)


def test_best_links_leave_out_words_that_come_from_none():
    found = best_links(np.array([[0.1, 0.6, 0.3], [0.5, 0.2, 0.3], [0.2, 0.2, 0.6]]))
    assert found == {(0, 0): pytest.approx(0.6), (1, 2): pytest.approx(0.6)}


def test_many_pairs_are_looked_up_in_parts_with_the_same_result(monkeypatch):
    table = {(e, f): (e + f + 1) / 10 for e in range(5) for f in range(1, 5)}
    pairs = [(np.array([1, 2, n % 4 + 1]), np.array([n % 3 + 1, 4])) for n in range(20)]
    whole = list(joint(lexicon(table), pairs, tension=4.0, none=0.1))
    monkeypatch.setattr("isogloss.aligners.diagonal_model.CELLS", 20)
    parts = list(joint(lexicon(table), pairs, tension=4.0, none=0.1))
    assert all(np.array_equal(one, other) for one, other in zip(whole, parts, strict=True))
