"""Paired tests equal scipy and an enumeration, and are sound. Contributions of examples. Effect sizes."""

import math
from itertools import product
from statistics import fmean

import numpy as np
import pytest
import scipy.stats
from hypothesis import assume, given
from hypothesis import strategies as st

from isogloss.core.errors import InputError
from isogloss.core.rows.models import Contributions, total
from isogloss.metrics.significance import (
    MAX_ENUMERATED_SENTENCES,
    System,
    SystemPair,
    cohens_d,
    holm,
    mcnemar_test,
    median_p_value,
    paired_t_test,
    paired_t_test_over_languages,
    paired_test,
    per_example,
    permutation_test,
)

VALUES = st.lists(st.tuples(st.integers(-40, 40), st.integers(-40, 40)), min_size=2, max_size=30)
BITS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40)


def means(system, baseline):
    """Make a pair whose measure is a mean over examples, from values [seed example]."""
    sides = [np.atleast_2d(np.asarray(side, dtype=float)) for side in (system, baseline)]
    return SystemPair(*(System(side, np.ones_like(side)) for side in sides))


def drawn_means(rng, *, seeds=3, examples=200, gain=0.0):
    """Draw right and wrong answers. The system is right more often by ``gain``."""
    chances = rng.uniform(0.3, 0.7, examples)
    return means(rng.random((seeds, examples)) < chances + gain, rng.random((seeds, examples)) < chances)


@st.composite
def draw_counts(draw, *, most_examples=7, most_seeds=3):
    """Draw a pair whose measure is a ratio of counts, as F1 is. Wholes may be 0."""
    seeds = draw(st.integers(1, most_seeds))
    examples = draw(st.integers(1, most_examples))
    sides = []
    for _ in range(2):
        whole_sample = draw(st.lists(st.integers(0, 4), min_size=seeds * examples, max_size=seeds * examples))
        part = [draw(st.integers(0, item)) for item in whole_sample]
        sides.append(
            System(*(np.array(item, dtype=float).reshape(seeds, examples) for item in (part, whole_sample)))
        )
    return SystemPair(*sides)


@given(VALUES)
def test_the_paired_t_test_is_scipys(values):
    x, y = np.array(values, dtype=float).T / 16
    assume(len(set((x - y).tolist())) > 1)
    expected = scipy.stats.ttest_rel(x, y)
    result = paired_t_test(x, y)
    assert result.statistic == pytest.approx(expected.statistic, abs=1e-9)
    assert result.p_value == pytest.approx(expected.pvalue, abs=1e-12)


@pytest.mark.parametrize(
    ("system", "baseline", "p_value"),
    [([0.5], [0.1], 1.0), ([0.3, 0.7], [0.3, 0.7], 1.0), ([0.5, 0.6, 0.7], [0.4, 0.5, 0.6], 0.25)],
    ids=["one example", "no difference", "the same difference everywhere"],
)
def test_the_paired_t_test_has_an_answer_where_there_is_no_spread(system, baseline, p_value):
    assert paired_t_test(system, baseline).p_value == p_value


@given(BITS)
def test_mcnemars_test_is_the_binomial_test_of_those_that_differ(bits):
    system, baseline = np.array(bits, dtype=float).T
    gained_total = sum(a > b for a, b in bits)
    lost_total = sum(a < b for a, b in bits)
    expected = (
        scipy.stats.binomtest(gained_total, gained_total + lost_total).pvalue
        if gained_total + lost_total
        else 1.0
    )
    result = mcnemar_test(system, baseline)
    assert result.p_value == pytest.approx(expected, abs=1e-12)
    assert result.statistic == gained_total - lost_total


def test_mcnemars_test_refuses_shares():
    with pytest.raises(InputError, match=r"0.*1"):
        mcnemar_test([0.5], [1])


def enumerate_swaps(pair):
    """Swap every choice of sentences, all seeds at once."""
    sums = [(side.part.sum(axis=0), side.whole.sum(axis=0)) for side in (pair.system, pair.baseline)]

    def difference(swap):
        scores = []
        for side in (0, 1):
            part, whole_total = (
                sum(sums[side ^ moved_value][kind][place] for place, moved_value in enumerate(swap))
                for kind in (0, 1)
            )
            scores.append(part / whole_total if whole_total else 0.0)
        return scores[0] - scores[1]

    result = [difference(swap) for swap in product((0, 1), repeat=pair.system.part.shape[1])]
    return fmean(abs(item) >= abs(result[0]) - 1e-12 for item in result)


@given(draw_counts())
def test_the_permutation_test_of_few_sentences_is_the_enumeration_of_all(pair):
    assert permutation_test(pair).p_value == pytest.approx(enumerate_swaps(pair), abs=1e-12)


@given(draw_counts(), st.integers(0, 40))
def test_sentences_that_both_treat_alike_change_no_exact_p_value(pair, more):
    similar_tensors = [np.full((len(pair.system.part), more), index, dtype=float) for index in (1, 2)]

    def longer(side):
        return System(np.hstack([side.part, similar_tensors[0]]), np.hstack([side.whole, similar_tensors[1]]))

    wide = SystemPair(longer(pair.system), longer(pair.baseline))
    sums = np.stack([s.sum(axis=0) for s in (pair.system.part, pair.system.whole)])
    other_tensors = np.stack([s.sum(axis=0) for s in (pair.baseline.part, pair.baseline.whole)])
    moving = int((sums != other_tensors).any(axis=0).sum())
    p_value = permutation_test(wide).p_value
    assert p_value * 2**moving == pytest.approx(round(p_value * 2**moving), abs=1e-9)
    assert 0 < p_value <= 1


def test_random_rounds_come_near_the_enumeration():
    rng = np.random.default_rng(1)
    for gain in (0.0, 0.2, 0.4):
        whole_tensor = rng.integers(1, 5, (2, MAX_ENUMERATED_SENTENCES + 1)).astype(float)
        part = np.minimum(whole_tensor, rng.integers(0, 5, whole_tensor.shape))
        other_gradients = np.clip(part + np.sign(rng.random(whole_tensor.shape) - 0.5 - gain), 0, 9)
        pair = SystemPair(System(part, whole_tensor), System(other_gradients, whole_tensor + 1))
        assert permutation_test(pair, rounds=4000).p_value == pytest.approx(enumerate_swaps(pair), abs=0.03)


def test_the_same_seed_gives_the_same_p_value_and_no_round_can_be_beaten_for_certain():
    pair = drawn_means(np.random.default_rng(0), gain=0.3)
    assert permutation_test(pair, seed=3) == permutation_test(pair, seed=3)
    assert permutation_test(pair, rounds=99).p_value == 1 / 100


@pytest.mark.slow
@given(draw_counts())
def test_a_permutation_test_does_not_care_which_system_comes_first(pair):
    turned_permutation_test = permutation_test(SystemPair(pair.baseline, pair.system))
    assert turned_permutation_test.p_value == permutation_test(pair).p_value
    assert turned_permutation_test.statistic == pytest.approx(-permutation_test(pair).statistic)


def test_seeds_of_a_sentence_are_no_independent_witnesses():
    """Two systems that are equal over all sentences, each better on some whatever the seed."""
    rng = np.random.default_rng(0)
    alarms = {False: 0, True: 0}
    for _ in range(100):
        x, y = (np.repeat(rng.integers(0, 2, (1, 60)), 5, axis=0).astype(float) for _ in range(2))
        for distance in alarms:
            sides = (item.reshape(1, -1) if distance else item for item in (x, y))
            alarms[distance] += permutation_test(means(*sides), rounds=200).p_value < 0.05
    assert alarms[False] <= 10
    assert alarms[True] >= 30


def test_equal_systems_differ_one_time_in_twenty():
    rng = np.random.default_rng(5)
    p_values = [paired_test(drawn_means(rng, examples=80)).p_value for _ in range(400)]
    assert 0.02 < fmean(p < 0.05 for p in p_values) < 0.08


def test_the_test_is_the_one_that_fits_the_measure():
    rng = np.random.default_rng(0)
    assert paired_test(drawn_means(rng)).name == "paired t"
    assert paired_test(drawn_means(rng, seeds=1)).name == "McNemar"
    assert paired_test(means(rng.random((1, 9)), rng.random((1, 9)))).name == "paired t"
    counts = System(np.ones((2, 9)), np.full((2, 9), 2.0))
    assert paired_test(SystemPair(counts, counts)).name == "permutation"
    assert paired_test(SystemPair(counts, counts)).p_value == 1


def test_a_t_test_over_several_seeds_averages_them_first():
    rng = np.random.default_rng(0)
    pair = drawn_means(rng)
    expected = scipy.stats.ttest_rel(pair.system.part.mean(axis=0), pair.baseline.part.mean(axis=0))
    assert paired_test(pair).p_value == pytest.approx(expected.pvalue)


def holm_in_words(p_values):
    """Correct each p-value by the definition: its largest step-down product so far."""
    return [
        max(
            min(1.0, other_p_value * sum(third >= other_p_value for third in p_values))
            for other_p_value in p_values
            if other_p_value <= own_p_value
        )
        for own_p_value in p_values
    ]


@given(st.lists(st.floats(0, 1), max_size=8, unique=True))
def test_holms_correction_is_its_definition_and_counts_no_test_that_was_not_made(p_values):
    assert holm(p_values) == pytest.approx(holm_in_words(p_values))
    nan = float("nan")
    assert holm([nan, *p_values, nan]) == pytest.approx([nan, *holm(p_values), nan], nan_ok=True)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.randoms())
def test_holms_correction_follows_its_values(p_values, random):
    order = random.sample(range(len(p_values)), len(p_values))
    corrected_p_values = holm(p_values)
    assert sorted(holm([p_values[place] for place in order])) == pytest.approx(sorted(corrected_p_values))
    assert all(
        p_value_before <= corrected_p_value_after <= 1
        for p_value_before, corrected_p_value_after in zip(p_values, corrected_p_values, strict=True)
    )
    assert min(corrected_p_values) == pytest.approx(min(1.0, min(p_values) * len(p_values)))


@pytest.mark.parametrize("wrong", [[0.5, 1.5], [-0.1]])
def test_holms_correction_refuses_what_is_no_p_value(wrong):
    with pytest.raises(InputError, match=r"p-values.*0.*1"):
        holm(wrong)


@pytest.mark.parametrize("test", [paired_t_test, mcnemar_test])
@pytest.mark.parametrize(
    ("system", "baseline", "message"),
    [
        ([], [], "lists.*1"),
        ([1, 0], [1], "lists"),
        ([1, float("nan")], [1, 0], "finite"),
    ],
)
def test_values_that_are_no_pairs_are_one_clear_error(test, system, baseline, message):
    with pytest.raises(InputError, match=message):
        test(system, baseline)


def test_no_rounds_are_refused():
    with pytest.raises(InputError, match=r"1.*1000"):
        permutation_test(drawn_means(np.random.default_rng(0)), rounds=0)


def difference(pair):
    return float((pair.system.scores() - pair.baseline.scores()).mean())


@given(draw_counts())
def test_a_systems_scores_are_its_totals_and_what_examples_add_has_their_difference_as_mean(pair):
    totals = [
        total(Contributions(part.tolist(), whole_tensor.tolist()))
        for part, whole_tensor in zip(pair.system.part, pair.system.whole, strict=True)
    ]
    assert pair.system.scores().tolist() == totals
    assert per_example(pair).mean() == pytest.approx(difference(pair), abs=1e-12)


def test_what_examples_add_to_a_mean_is_the_difference_of_values():
    pair = drawn_means(np.random.default_rng(0))
    assert per_example(pair) == pytest.approx((pair.system.part - pair.baseline.part).mean(axis=0))


def test_what_examples_add_to_a_ratio_is_what_leaving_them_out_takes_away():
    rng = np.random.default_rng(0)
    n = 500
    whole_result = rng.integers(1, 6, (1, 500)).astype(float)
    sides = [
        System(rng.binomial(whole_result.astype(int), 0.6).astype(float), whole_result) for _ in range(2)
    ]
    left = [
        SystemPair(
            *(System(np.delete(side.part, index, 1), np.delete(side.whole, index, 1)) for side in sides)
        )
        for index in range(40)
    ]
    pair = SystemPair(*sides)
    expected = [n * difference(pair) - (n - 1) * difference(plain_result) for plain_result in left]
    assert per_example(pair)[:40] == pytest.approx(expected, abs=0.02)


@given(VALUES)
def test_over_one_language_it_is_the_paired_t_test(values):
    x, y = np.array(values, dtype=float).T / 16
    assume(len(set((x - y).tolist())) > 1)
    ids = [str(index) for index in range(len(x))]
    result = paired_t_test_over_languages({"de": (ids, x - y)})
    expected = paired_t_test(x, y)
    assert (result.statistic, result.p_value) == pytest.approx((expected.statistic, expected.p_value))


def test_parallel_examples_are_one_unit():
    """A language that repeats another's differences adds nothing where ids are equal, examples where not."""
    values = np.random.default_rng(0).normal(0.1, 1, 50)
    ids, other_texts = ([f"{name}{index}" for index in range(50)] for name in "ab")
    single_test, parallel, distance = (
        paired_t_test_over_languages(item)
        for item in (
            {"de": (ids, values)},
            {"de": (ids, values), "fr": (ids, values)},
            {"de": (ids, values), "fr": (other_texts, values)},
        )
    )
    assert parallel.p_value == pytest.approx(single_test.p_value)
    assert distance.p_value < single_test.p_value
    lost_value = {"de": (ids[:3], -np.ones(3)), "fr": (ids[:3], -np.ones(3))}
    assert (
        paired_t_test_over_languages(lost_value).p_value == mcnemar_test([0, 0, 0], [1, 1, 1]).p_value == 0.25
    )
    with pytest.raises(InputError, match="no language"):
        paired_t_test_over_languages({})


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=20))
def test_cohens_d_is_the_mean_in_standard_deviations(values):
    assume(len(set(values)) > 1)
    assert cohens_d(values) == pytest.approx(np.mean(values) / np.std(values, ddof=1))


@pytest.mark.parametrize(
    ("values", "d"), [([0, 0], 0.0), ([0.1, 0.1, 0.1], math.inf), ([-0.1, -0.1], -math.inf)]
)
def test_cohens_d_has_an_answer_without_spread(values, d):
    assert cohens_d(values) == d
    assert math.isnan(cohens_d(values[:1]))


@pytest.mark.parametrize("shapes", [((1, 2), (1, 3)), ((2, 2), (1, 2)), ((1, 0), (1, 0)), ((0, 2), (0, 2))])
def test_pairs_need_the_same_seeds_and_examples(shapes):
    with pytest.raises(InputError, match=r"examples.*least"):
        SystemPair(*(System(np.ones(shape), np.ones(shape)) for shape in shapes))


def test_pairs_need_numbers():
    with pytest.raises(InputError, match="finite"):
        means([0.5, math.nan], [0.5, 0.5])


@given(st.lists(st.integers(-3, 3), max_size=20))
def test_the_p_of_a_median_is_that_of_scipys_binomial_test(values):
    total_above = sum(value > 0 for value in values)
    index = sum(value != 0 for value in values)
    expected = scipy.stats.binomtest(total_above, index).pvalue if index else 1.0
    assert median_p_value(values, 0) == pytest.approx(expected)
