"""Regret against brute force, and advice where nothing is to be gained."""

from statistics import fmean

import numpy as np
import pytest
from gain_tables import LANGUAGES, gains_of

from isogloss import advise, held_out_regret


def brute_force(values_by_option: dict[str, list[float]], hours: float = 1.0) -> float:
    """Return the mean regret of advice, from the definition."""
    regrets = []
    n = len(next(iter(values_by_option.values())))
    for held_out in range(n):
        other_values = {
            option: [value for index, value in enumerate(values) if index != held_out]
            for option, values in values_by_option.items()
        }
        choice = advise("upos", hours=hours, gains=gains_of(other_values)).choice
        gain = values_by_option[choice.name][held_out] if choice else 0.0
        regrets.append(max(0.0, *(values[held_out] for values in values_by_option.values())) - gain)
    return fmean(regrets)


@pytest.mark.parametrize("seed", range(20))
def test_regret_is_that_of_the_definition(seed: int) -> None:
    random = np.random.default_rng(seed)
    means = random.normal(3, 4, size=3)
    values = {f"option {k}": (means[k] + random.normal(size=7)).tolist() for k in range(3)}
    regrets = {regret.rule: regret for regret in held_out_regret("upos", gains=gains_of(values))}
    assert regrets["advice"].regret == pytest.approx(brute_force(values))
    best_gains = [max(0.0, *column) for column in zip(*values.values(), strict=True)]
    assert regrets["nothing"].regret == pytest.approx(fmean(best_gains))
    for name, of_option in values.items():
        losses = [top - value for top, value in zip(best_gains, of_option, strict=True)]
        assert regrets[name].regret == pytest.approx(fmean(losses))
        assert regrets[name].worst == pytest.approx(max(losses))
    assert {regret.languages for regret in regrets.values()} == {7}


def test_options_that_take_longer_are_no_candidates():
    values = {"short": [1.0] * 5, "shorter": [0.5] * 5, "long": [9.0] * 5}
    rules = {regret.rule for regret in held_out_regret("upos", gains=gains_of(values, hours={"long": 2}))}
    assert rules == {"advice", "nothing", "short", "shorter"}


def test_languages_with_a_single_option_are_not_held_out():
    gains = gains_of({"both": [4, 5, 6, 5, 4, 5], "other": [1, 2, 1, 2, 1]})
    assert {regret.languages for regret in held_out_regret("upos", gains=gains)} == {5}
    assert held_out_regret("upos", gains=gains_of({"both": [4, 5, 6, 5], "other": [1, 2, 1, 2]})) == []


def test_advice_from_gains_with_random_signs_is_that_it_is_not_known():
    random = np.random.default_rng(0)
    unknown = languages = 0
    for _ in range(100):
        signs = random.choice([-1.0, 1.0], size=(4, len(LANGUAGES)))
        values = {
            f"option {k}": (signs[k] * random.uniform(2, 20, len(LANGUAGES))).tolist() for k in range(4)
        }
        advice = held_out_regret("upos", gains=gains_of(values))[0]
        unknown += advice.unknown
        languages += advice.languages
    assert unknown > 0.9 * languages
