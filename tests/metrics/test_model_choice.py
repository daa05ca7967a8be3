"""Choosing without labels: the rule by hand, no look at the language decided, and intervals that hold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from each import each
from isogloss.metrics.model_choice import (
    decide,
    labelled_languages,
    leave_one_out,
    regret,
    rule,
    standardised,
)

NAN = np.nan
TABLES = arrays(np.float64, (4, 5), elements=st.floats(0, 1).map(lambda one: round(one, 3)))


def study(seed, *, candidates=8, languages=7, within=0.01, between=0.03, slope=0.02):
    """Draw a study from the model that predictions assume: R, E and scores."""
    draw = np.random.default_rng(seed)
    ranked = standardised(draw.normal(size=(candidates, languages)))
    estimated = draw.uniform(0.4, 0.9, languages)
    scores = 0.1 + 0.8 * estimated + slope * ranked
    scores = scores + between * draw.normal(size=languages) + within * draw.normal(size=ranked.shape)
    return ranked, estimated, scores


def test_the_rule_is_the_mean_of_standardised_signals():
    one = np.array([[1.0, 5.0], [3.0, 5.0]])
    other = np.array([[0.2, 0.1], [0.1, NAN]])
    assert standardised(one).tolist() == [[-1, 0], [1, 0]]
    np.testing.assert_allclose(rule([[one], [other]]), [[0, 0], [0, 0]], atol=1e-12)
    np.testing.assert_allclose(rule([[one, one, one], [-one]]), [[0, 0], [0, 0]], atol=1e-12)
    assert rule([[one], [one]]).tolist() == standardised(one).tolist()
    np.testing.assert_equal(rule([[np.array([[1.0], [NAN], [2.0]])]]), [[-1.0], [NAN], [1.0]])


@given(TABLES, st.floats(0.1, 9), st.floats(-3, 3))
def test_units_and_zero_of_a_signal_do_not_count(signal, scale, zero):
    np.testing.assert_allclose(rule([[signal]]), rule([[scale * signal + zero]]), atol=1e-6)


@given(TABLES, st.permutations(range(4)))
def test_the_order_of_candidates_does_not_count(signal, order):
    np.testing.assert_allclose(rule([[signal]])[order], rule([[signal[order]]]), atol=1e-12)


def test_labels_of_the_language_that_is_decided_are_not_looked_at():
    ranked, estimated, scores = study(0)
    before = leave_one_out(ranked, estimated, scores)
    for language, decision in before.items():
        changed = scores.copy()
        changed[:, language] = np.random.default_rng(9).uniform(size=len(scores))
        assert leave_one_out(ranked, estimated, changed)[language] == decision
    with pytest.raises(ValueError, match="its labels would decide"):
        decide(ranked, estimated, scores, 0, [0, 1, 2])


def test_an_exact_line_is_found():
    ranked, estimated, scores = study(1, within=0, between=0)
    for language, decision in each(leave_one_out(ranked, estimated, scores).items()):
        assert decision.score.value == pytest.approx(scores[decision.choice, language])
        assert decision.score.high - decision.score.low == pytest.approx(0, abs=1e-6)
        gain = scores[decision.choice, language] - scores[:, language].mean()
        assert decision.gain.value == pytest.approx(gain)
        assert decision.known
        assert regret(scores, language, decision.choice, np.ones(len(scores), dtype=bool)) == 0


@pytest.mark.slow
def test_intervals_hold_the_truth_as_often_as_they_say():
    held, gained, count = 0, 0, 0
    for seed in range(150):
        ranked, estimated, scores = study(seed)
        for language, one in leave_one_out(ranked, estimated, scores).items():
            score = scores[one.choice, language]
            held += one.score.low <= score <= one.score.high
            gained += one.gain.low <= score - scores[:, language].mean() <= one.gain.high
            count += 1
    assert count == 150 * 7
    assert 0.92 < held / count < 0.98
    assert 0.92 < gained / count < 0.98


@pytest.mark.slow
def test_signals_that_tell_nothing_are_hardly_ever_thought_to_know():
    told = [
        one.known for seed in range(100) for one in leave_one_out(*study(seed, slope=0, within=0.03)).values()
    ]
    assert sum(told) / len(told) < 0.05
    sure = [one.known for seed in range(20) for one in leave_one_out(*study(seed, slope=0.05)).values()]
    assert sum(sure) / len(sure) > 0.95


def test_a_rule_that_ranks_backwards_is_not_turned_round():
    ranked, estimated, scores = study(2, within=0.001, slope=-0.05)
    for language, one in each(leave_one_out(ranked, estimated, scores).items()):
        assert one.choice == int(ranked[:, language].argmax())
        assert not one.known


def test_with_few_languages_nothing_is_predicted():
    ranked, estimated, scores = study(3, languages=4)
    assert all(np.isfinite(one.score.low) for one in leave_one_out(ranked, estimated, scores).values())
    few = decide(ranked, estimated, scores, 3, [0, 1])
    assert few.choice == int(ranked[:, 3].argmax())
    assert np.isnan([few.score.value, few.gain.low]).all()
    assert not few.known


def test_candidates_without_a_language_and_languages_without_labels_are_left_out():
    ranked, estimated, scores = study(4, languages=5)
    ranked[3:, 1], scores[3:, 1] = NAN, NAN
    scores[0, 2] = NAN
    ranked[1:, 3] = NAN
    assert labelled_languages(ranked, scores) == [0, 1, 4]
    one = decide(ranked, estimated, scores, 2, [0, 1, 4])
    assert one.choice == int(ranked[:, 2].argmax())
    assert np.isfinite(one.score.low)


def test_without_estimates_the_mean_of_the_others_is_predicted():
    ranked, _, scores = study(5, within=0)
    found = decide(ranked, np.full(7, NAN), scores, 0, range(1, 7))
    level = scores[:, 1:].mean()
    gained = 0.02 * ranked[found.choice, 0]
    assert found.score.value == pytest.approx(level + gained)
    assert found.score.low < found.score.value


def test_no_score_is_predicted_that_cannot_be():
    ranked, estimated, scores = study(6, between=0.3, languages=5)
    found = leave_one_out(ranked, estimated, scores).values()
    assert all(0 <= one.score.low <= one.score.value <= one.score.high <= 1 for one in found)
    assert any(one.score.low == 0 for one in found)
