"""Advice by hand, its interval under several distributions, and what would change it."""

from collections.abc import Callable
from math import isnan, sqrt
from statistics import fmean, stdev

import numpy as np
import numpy.typing as npt
import pytest
from gain_tables import gains_of
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from isogloss import advise
from isogloss.core.errors import ConfigError
from isogloss.features.advising.advice import predict_next_gain

Draw = Callable[[np.random.Generator, int], npt.NDArray[np.float64]]

DISTRIBUTIONS: dict[str, Draw] = {
    "normal": lambda random, n: random.normal(size=n),
    "heavy tails": lambda random, n: random.standard_t(3, size=n),
    "uniform": lambda random, n: random.uniform(-1, 1, size=n),
    "skewed": lambda random, n: random.exponential(size=n) - 1,
    "two groups": lambda random, n: random.choice([-1.0, 1.0], size=n) + 0.2 * random.normal(size=n),
}
"""Gains of languages around a mean of 0."""


def test_the_interval_is_the_prediction_interval_of_scipy():
    values = [3.0, 7.0, 4.5, 9.0]
    low, high = predict_next_gain(values)
    half_width = stats.t(3).ppf(0.9) * stdev(values) * sqrt(1 + 1 / 4)
    assert (low, high) == pytest.approx((fmean(values) - half_width, fmean(values) + half_width))
    assert all(isnan(end) for end in predict_next_gain([1.0, 2.0, 2.5]))
    assert predict_next_gain([2.0] * 4) == (2.0, 2.0)


@pytest.mark.parametrize("n", [4, 6, 12])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_the_interval_covers_the_next_language(name: str, n: int) -> None:
    random = np.random.default_rng(5)
    draws = [DISTRIBUTIONS[name](random, n + 1) for _ in range(2000)]
    intervals = [predict_next_gain(draw[:-1].tolist()) for draw in draws]
    covered = fmean(low <= draw[-1] <= high for draw, (low, high) in zip(draws, intervals, strict=True))
    assert 0.75 < covered < 0.95


@pytest.mark.parametrize("n", [4, 6, 12])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_an_option_without_effect_is_seldom_said_to_help_or_harm(name: str, n: int) -> None:
    random = np.random.default_rng(6)
    draws = [DISTRIBUTIONS[name](random, n).tolist() for _ in range(1000)]
    advised = fmean(advise("upos", gains=gains_of({"option": draw})).choice is not None for draw in draws)
    assert advised < 0.09  # Four of two groups are of one in 1 of 16 draws.


def test_the_largest_gain_that_fits_into_the_hours_is_advised():
    gains = gains_of(
        {"many labels": [20, 21, 22, 21], "few labels": [12, 13, 14, 13], "free": [5, 6, 7, 6]},
        labels={"many labels": 100, "few labels": 20},
    )
    choices = {
        hours: advise("upos", hours=hours, minutes=3, gains=gains).choice for hours in (0.05, 1, 1.1, 6)
    }
    names = {hours: choice and choice.name for hours, choice in choices.items()}
    assert names == {0.05: None, 1: "free", 1.1: "few labels", 6: "many labels"}
    choice = choices[1.1]
    assert choice is not None
    assert (choice.gain, choice.hours, choice.gain_per_hour) == pytest.approx((13, 1.1, 13 / 1.1))


def test_labels_that_exist_cost_nothing_and_minutes_are_the_users():
    gains = gains_of({"labels": [12, 13, 14, 13], "free": [5, 6, 7, 6]}, labels={"labels": 30})
    for options, name in (({"minutes": 1}, "labels"), ({"minutes": 4}, "free"), ({"labelled": 20}, "labels")):
        advice = advise("upos", hours=1, gains=gains, **{"minutes": 4, **options})
        assert advice.choice is not None and advice.choice.name == name


def test_what_is_measured_in_too_few_languages_or_around_zero_is_not_known():
    gains = gains_of(
        {"three languages": [30, 31, 32], "around zero": [-3, 4, 9, -1], "harm": [-9, -8, -10, -9]}
    )
    advice = advise("upos", gains=gains)
    assert advice.choice is None
    options = {option.name: option for option in advice.options}
    assert options["three languages"].verdict == options["around zero"].verdict == "not known"
    assert "3 of 4" in options["three languages"].doubt and "0" in options["around zero"].doubt
    assert (options["harm"].verdict, options["harm"].doubt) == ("harms", "")
    assert "don't know" in repr(advice)
    assert any(text.startswith("three languages (+31.0)") for text in advice.changes())


def test_it_is_stated_what_would_change_the_advice():
    gains = gains_of(
        {"many labels": [20, 21, 22, 21], "few labels": [12, 13, 14, 13], "free": [5, 6, 7, 6]},
        labels={"many labels": 100, "few labels": 20},
    )
    advice = advise("upos", hours=1.1, minutes=3, gains=gains)
    more_hours, slower_labels = advice.changes()
    assert "5.1 hours" in more_hours and "many labels" in more_hours
    assert "3.0 minutes" in slower_labels and "free" in slower_labels
    without = advise(
        "upos", hours=1, minutes=3, gains=gains_of({"labels": [5, 6, 7, 6]}, labels={"labels": 10})
    )
    assert without.changes()[-1].endswith("nothing that is known")


def test_options_that_differ_by_less_than_languages_do_are_equal():
    gains = gains_of({"first": [9, 12, 15, 10], "second": [10, 10, 13, 11], "third": [3, 4, 7, 2]})
    advice = advise("upos", gains=gains)
    assert advice.choice is not None and advice.choice.name == "first"
    assert [option.name for option in advice.equal_options] == ["second"]
    assert advise("upos", gains=gains_of({"first": [0, 1, -1, 0]})).equal_options == []


def test_a_gain_in_the_target_itself_is_stated_under_any_of_its_codes():
    gains = gains_of({"option": [9, 12, 15, 10]})
    for code in ("vi", "vie", "vie_Latn"):
        [option] = advise("upos", code, gains=gains).options
        assert option.measured == 10
    [option] = advise("upos", "fr", gains=gains).options
    assert isnan(option.measured)


def test_a_task_or_encoder_without_evidence_is_refused_with_the_nearest():
    gains = gains_of({"option": [9, 12, 15]})
    with pytest.raises(ConfigError, match=r"'upo'.*'upos'"):
        advise("upo", gains=gains)
    with pytest.raises(ConfigError, match=r"'mad'.*'made'"):
        advise("upos", encoder="mad", gains=gains)
    other_gains = [gain._replace(encoder="other") for gain in gains[:2]]
    assert advise("upos", gains=[*other_gains, *gains]).encoder == "made"
    assert advise("upos", encoder="other", gains=[*other_gains, *gains]).encoder == "other"


values = st.lists(st.floats(-50, 50), min_size=1, max_size=8)


@given(st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), values, min_size=1), st.floats(0, 3))
def test_advice_laws(values_by_option: dict[str, list[float]], hours: float) -> None:
    gains = gains_of(values_by_option, labels={"a": 10, "b": 60}, hours={"c": 2.0})
    advice = advise("upos", hours=hours, gains=gains)
    assert [option.gain for option in advice.options] == sorted(
        (option.gain for option in advice.options), reverse=True
    )
    helping_options = [option for option in advice.options if option.mean_low > 0 and option.hours <= hours]
    assert advice.choice == (helping_options[0] if helping_options else None)
    choice_in_an_hour_more = advise("upos", hours=hours + 1, gains=gains).choice
    if advice.choice is not None:
        assert choice_in_an_hour_more is not None
        assert choice_in_an_hour_more.gain >= advice.choice.gain
    reordered_choice = advise("upos", hours=hours, gains=gains[::-1]).choice
    assert (reordered_choice is None) == (advice.choice is None)
