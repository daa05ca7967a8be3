from itertools import combinations, permutations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from isogloss.features.alignment.encoder_similarity import (
    Similarities,
    apply_distortion,
    cosine_similarities,
    match_subwords,
)

sizes = st.tuples(st.integers(1, 6), st.integers(1, 6))


@st.composite
def batches(draw):
    """Similarities of a few pairs, padded with what would win everywhere if it counted."""
    shapes = draw(st.lists(sizes, min_size=1, max_size=4))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**30)))
    matrices = [torch.rand(shape, generator=generator) for shape in shapes]
    values = torch.ones(len(shapes), max(m for m, _ in shapes), max(n for _, n in shapes))
    mask = torch.zeros_like(values, dtype=torch.bool)
    for number, matrix in enumerate(matrices):
        m, n = matrix.shape
        values[number, :m, :n] = matrix
        mask[number, :m, :n] = True
    return [matrix.tolist() for matrix in matrices], Similarities(values, mask)


def mutual(matrix):
    m, n = len(matrix), len(matrix[0])
    return {
        (i, j)
        for i in range(m)
        for j in range(n)
        if max(range(n), key=lambda k: matrix[i][k]) == j and max(range(m), key=lambda k: matrix[k][j]) == i
    }


def itermax(matrix, rounds):
    """Algorithm 1 of the paper, cell by cell."""
    m, n = len(matrix), len(matrix[0])
    links = mutual(matrix)
    for _ in range(rounds - 1 if min(m, n) > 2 else 0):
        rows, columns = ({link[side] for link in links} for side in (0, 1))
        if len(rows) == m or len(columns) == n:
            break
        factor = {(False, False): 1.0, (False, True): 0.9, (True, False): 0.9, (True, True): 0.0}
        left = [[matrix[i][j] * factor[i in rows, j in columns] for j in range(n)] for i in range(m)]
        links |= {(i, j) for i, j in mutual(left) if i not in rows or j not in columns}
    return links


def match_arrays(similarities, matching, rounds=2):
    link_matrices = match_subwords(similarities, matching, rounds=rounds)
    return [{tuple(link) for link in matrix.nonzero().tolist()} for matrix in link_matrices]


@given(batches())
def test_argmax_links_what_is_best_for_both(batch):
    assert match_arrays(batch[1], "argmax") == [mutual(matrix) for matrix in batch[0]]


@given(batches(), st.integers(1, 4))
def test_itermax_is_the_papers_algorithm(batch, rounds):
    assert match_arrays(batch[1], "itermax", rounds) == [itermax(matrix, rounds) for matrix in batch[0]]


@given(batches())
def test_itermax_of_one_round_is_argmax_and_more_rounds_only_add(batch):
    one_round, two_rounds, three_rounds = (match_arrays(batch[1], "itermax", rounds) for rounds in (1, 2, 3))
    assert one_round == match_arrays(batch[1], "argmax")
    assert all(a <= b <= c for a, b, c in zip(one_round, two_rounds, three_rounds, strict=True))


@given(batches())
def test_match_is_the_best_of_all_one_to_one_links(batch):
    for matrix, links in zip(batch[0], match_arrays(batch[1], "match"), strict=True):
        m, n = len(matrix), len(matrix[0])
        size = min(m, n)
        best_sum = max(
            sum(matrix[i][j] for i, j in zip(rows, columns, strict=True))
            for rows in combinations(range(m), size)
            for columns in permutations(range(n), size)
        )
        assert len(links) == len({i for i, _ in links}) == len({j for _, j in links}) == size
        assert sum(matrix[i][j] for i, j in links) == pytest.approx(best_sum)


@given(batches(), st.floats(0, 1))
def test_distortion_is_by_relative_places(batch, weight):
    similarities = apply_distortion(batch[1], weight)
    for matrix, values in zip(batch[0], similarities.values.tolist(), strict=True):
        m, n = len(matrix), len(matrix[0])
        for i in range(m):
            for j in range(n):
                distance = (i / (m - 1) - j / (n - 1)) ** 2 if min(m, n) > 1 else 0.0
                assert values[i][j] == pytest.approx(matrix[i][j] * (1 - weight * distance), abs=1e-6)


def test_cosines_are_between_zero_and_one():
    first_states = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])
    second_states = torch.tensor([[[1.0, 0.0], [-1.0, 0.0]]])
    similarities = cosine_similarities(first_states, second_states, (torch.tensor([2]), torch.tensor([1])))
    assert similarities.values.tolist() == [[[1.0, 0.0], [0.5, 0.5]]]
    assert similarities.real.tolist() == [[[True, False], [True, False]]]
