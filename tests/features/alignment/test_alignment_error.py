import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss.features.alignment.scores import AlignmentScores, alignment_scores

link = st.tuples(st.integers(0, 4), st.integers(0, 4))
links = st.sets(link, max_size=6)


def test_scores_are_those_worked_out_by_hand():
    # A has 4 links, 2 of them sure (of 3), 3 of them possible: 1 - (2 + 3) / (4 + 3).
    result = alignment_scores(
        [[(0, 0), (1, 1)], [(0, 0)]], [[(1, 2)], []], [[(0, 0), (1, 1), (1, 2)], [(1, 1)]]
    )
    assert result == AlignmentScores(
        precision=3 / 4, recall=2 / 3, f1=pytest.approx(12 / 17), aer=pytest.approx(2 / 7)
    )


@given(st.lists(links.filter(bool), min_size=1, max_size=4))
def test_gold_has_no_error_against_itself(gold):
    assert alignment_scores(gold, gold, gold) == AlignmentScores(1.0, 1.0, 1.0, 0.0)


@given(links.filter(bool), links, st.data())
def test_sure_links_with_any_of_the_possible_have_no_error(sure_links, possible, data):
    sample = data.draw(st.sets(st.sampled_from(sorted(sure_links | possible))))
    assert alignment_scores([sure_links], [possible], [sure_links | sample]).aer == 0.0


@given(st.lists(st.tuples(links, links, links), max_size=4))
def test_scores_are_shares_and_pairs_may_come_in_any_order(pairs):
    result, turned_alignment_scores = (
        alignment_scores(*(list(part) for part in zip(*order, strict=True)) if order else ([], [], []))
        for order in (pairs, pairs[::-1])
    )
    assert result == turned_alignment_scores
    assert all(0 <= share <= 1 for share in (result.precision, result.recall, result.f1, result.aer))


@given(st.lists(st.tuples(links, links), max_size=4))
def test_without_possible_links_error_is_one_minus_f1(pairs):
    sure_pairs, predicted_pairs = ([pair[side] for pair in pairs] for side in (0, 1))
    result = alignment_scores(sure_pairs, [()] * len(pairs), predicted_pairs)
    if any(sure_pairs) or any(predicted_pairs):
        assert result.aer == pytest.approx(1 - result.f1)


def test_nothing_right_is_all_wrong():
    assert alignment_scores([[(0, 0)]], [[]], [[(1, 1)]]).aer == 1.0
    assert alignment_scores([[(0, 0)]], [[]], [[]]) == AlignmentScores(0.0, 0.0, 0.0, 1.0)


def test_other_numbers_of_pairs_are_refused():
    with pytest.raises(ValueError, match=r"1.*sure, 2.*possible.*1"):
        alignment_scores([[]], [[], []], [[]])
