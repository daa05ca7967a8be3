"""Choosing without labels: the rule by hand, and which languages can be judged."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from isogloss.features.choosing.model_choice import best, labelled_languages, regret, rule, standardise_signal

NAN = np.nan
TABLES = arrays(np.float64, (4, 5), elements=st.floats(0, 1).map(lambda score: round(score, 3)))


def test_the_rule_is_the_mean_of_standardised_signals():
    signal = np.array([[1.0, 5.0], [3.0, 5.0]])
    second_signal = np.array([[0.2, 0.1], [0.1, NAN]])
    assert standardise_signal(signal).tolist() == [[-1, 0], [1, 0]]
    np.testing.assert_allclose(rule([[signal], [second_signal]]), [[0, 0], [0, 0]], atol=1e-12)
    np.testing.assert_allclose(rule([[signal, signal, signal], [-signal]]), [[0, 0], [0, 0]], atol=1e-12)
    assert rule([[signal], [signal]]).tolist() == standardise_signal(signal).tolist()
    np.testing.assert_equal(rule([[np.array([[1.0], [NAN], [2.0]])]]), [[-1.0], [NAN], [1.0]])


@given(TABLES, st.floats(0.1, 9), st.floats(-3, 3))
def test_units_and_zero_of_a_signal_do_not_count(signal, scale, zero):
    np.testing.assert_allclose(rule([[signal]]), rule([[scale * signal + zero]]), atol=1e-6)


@given(TABLES, st.permutations(range(4)))
def test_the_order_of_candidates_does_not_count(signal, order):
    np.testing.assert_allclose(rule([[signal]])[order], rule([[signal[order]]]), atol=1e-12)


def test_the_best_candidate_has_the_highest_value_and_is_the_first_of_equal_ones():
    rankings = np.array([[NAN, 0.5], [0.2, 0.5], [0.1, NAN]])
    assert (best(rankings, 0), best(rankings, 1)) == (1, 0)
    scores = np.array([[0.9, 0.5], [0.3, 0.7], [0.4, 0.9]])
    assert regret(scores, 0, 1, ~np.isnan(rankings[:, 0])) == np.float64(0.4) - 0.3
    assert regret(scores, 1, 1, ~np.isnan(rankings[:, 1])) == 0


def test_languages_count_as_labelled_when_all_ranked_candidates_have_scores():
    rankings = np.ones((4, 5))
    scores = np.ones((4, 5))
    rankings[3:, 1], scores[3:, 1] = NAN, NAN
    scores[0, 2] = NAN
    rankings[1:, 3] = NAN
    assert labelled_languages(rankings, scores) == [0, 1, 4]
