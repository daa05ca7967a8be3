import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from isogloss.core.errors import ConfigError
from isogloss.nn.language_modules import ActiveLanguage, LanguageSwitch, routed

LANGUAGES = ("en", "fr", "sw")


def linears():
    torch.manual_seed(0)
    return {language: nn.Linear(4, 4) for language in LANGUAGES}


@given(st.lists(st.sampled_from(LANGUAGES), min_size=1, max_size=9))
def test_each_row_goes_through_the_module_of_its_language(languages):
    runs = linears()
    switch = LanguageSwitch(runs, ActiveLanguage(tuple(languages)))
    states = torch.randn(len(languages), 3, 4)
    expected = [runs[one](states[row]) for row, one in enumerate(languages)]
    torch.testing.assert_close(switch(states), torch.stack(expected))


def test_gradients_are_those_of_each_language_alone():
    runs = linears()
    languages = ("sw", "en", "sw", "en")
    states = torch.randn(4, 3, 4, requires_grad=True)
    LanguageSwitch(runs, ActiveLanguage(languages))(states).square().sum().backward()
    mixed = {name: runs[name].weight.grad for name in LANGUAGES}
    rows, states.grad = states.grad, None
    assert mixed["fr"] is None
    for language in ("en", "sw"):
        runs[language].weight.grad = None
        own = [row for row, one in enumerate(languages) if one == language]
        runs[language](states[own]).square().sum().backward()
        torch.testing.assert_close(runs[language].weight.grad, mixed[language])
    torch.testing.assert_close(states.grad, rows)


def test_one_language_is_one_pass_over_the_batch_itself():
    seen = []
    switch = LanguageSwitch({"en": seen.append}, ActiveLanguage(("en", "en")))
    states = torch.randn(2, 3, 4)
    switch(states)
    assert len(seen) == 1 and seen[0] is states


def test_there_is_one_pass_a_language():
    seen = []

    def run(states):
        seen.append(len(states))
        return states

    LanguageSwitch({"en": run, "sw": run}, ActiveLanguage(("en", "sw", "en")))(torch.randn(3, 1, 1))
    assert sorted(seen) == [1, 2]


def test_what_all_rows_share_is_given_whole_and_what_is_none_stays_none():
    table, mask, states = torch.randn(3, 4), torch.randn(3, 1, 2, 2), torch.randn(3, 2, 4)
    seen = []

    def run(states, mask=None, both=(), table=None, flag=None):
        seen.append((len(states), len(mask), len(both[0]), len(both[1]), len(table), flag))
        return states, None

    speaking = ActiveLanguage(("en", "sw", "sw"))
    once = torch.randn(1, 2, 4)
    found, nothing = routed(
        lambda _: run, speaking, (states,), {"mask": mask, "both": (once, states), "table": table, "flag": 7}
    )
    assert seen == [(1, 1, 1, 1, 3, 7), (2, 2, 1, 2, 3, 7)]
    assert nothing is None and torch.equal(found, states)


def test_a_language_without_a_module_and_none_said_are_refused():
    runs = linears()
    with pytest.raises(ConfigError, match=r"none for 'de'. Known: en, fr, sw"):
        LanguageSwitch(runs, ActiveLanguage(("de",)))(torch.randn(1, 1, 4))
    with pytest.raises(ConfigError, match=r"not said which language it reads. Known: en, fr, sw. Name it"):
        LanguageSwitch(runs, ActiveLanguage())(torch.randn(1, 1, 4))


def test_languages_for_another_number_of_rows_are_refused():
    with pytest.raises(ValueError, match="2 languages for 3 rows"):
        LanguageSwitch(linears(), ActiveLanguage(("en", "sw")))(torch.randn(3, 1, 4))


def test_what_was_scored_can_be_trained_on_afterwards():
    switch, states = LanguageSwitch(linears(), ActiveLanguage(("en", "fr", "fr"))), torch.randn(3, 2, 4)
    with torch.inference_mode():
        scored = switch(states)
    trained = switch(states)
    trained.sum().backward()
    assert torch.equal(trained, scored)
