import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss.metrics.texts import AlignmentScores, alignment_scores

link = st.tuples(st.integers(0, 4), st.integers(0, 4))
links = st.sets(link, max_size=6)


def test_scores_are_those_worked_out_by_hand():
    # A has 4 links, 2 of them sure (of 3), 3 of them possible: 1 - (2 + 3) / (4 + 3).
    found = alignment_scores(
        [[(0, 0), (1, 1)], [(0, 0)]], [[(1, 2)], []], [[(0, 0), (1, 1), (1, 2)], [(1, 1)]]
    )
    assert found == AlignmentScores(
        precision=3 / 4, recall=2 / 3, f1=pytest.approx(12 / 17), aer=pytest.approx(2 / 7)
    )


@given(st.lists(links.filter(bool), min_size=1, max_size=4))
def test_gold_has_no_error_against_itself(gold):
    assert alignment_scores(gold, gold, gold) == AlignmentScores(1.0, 1.0, 1.0, 0.0)


@given(links.filter(bool), links, st.data())
def test_sure_links_with_any_of_the_possible_have_no_error(sure, possible, data):
    some = data.draw(st.sets(st.sampled_from(sorted(sure | possible))))
    assert alignment_scores([sure], [possible], [sure | some]).aer == 0.0


@given(st.lists(st.tuples(links, links, links), max_size=4))
def test_scores_are_shares_and_pairs_may_come_in_any_order(pairs):
    found, turned = (
        alignment_scores(*(list(part) for part in zip(*order, strict=True)) if order else ([], [], []))
        for order in (pairs, pairs[::-1])
    )
    assert found == turned
    assert all(0 <= share <= 1 for share in (found.precision, found.recall, found.f1, found.aer))


@given(st.lists(st.tuples(links, links), max_size=4))
def test_without_possible_links_error_is_one_minus_f1(pairs):
    sure, predicted = ([pair[side] for pair in pairs] for side in (0, 1))
    found = alignment_scores(sure, [()] * len(pairs), predicted)
    if any(sure) or any(predicted):
        assert found.aer == pytest.approx(1 - found.f1)


def test_nothing_right_is_all_wrong():
    assert alignment_scores([[(0, 0)]], [[]], [[(1, 1)]]).aer == 1.0
    assert alignment_scores([[(0, 0)]], [[]], [[]]) == AlignmentScores(0.0, 0.0, 0.0, 1.0)


def test_other_numbers_of_pairs_are_refused():
    with pytest.raises(ValueError, match=r"1.*sure, 2.*possible.*1"):
        alignment_scores([[]], [[], []], [[]])
