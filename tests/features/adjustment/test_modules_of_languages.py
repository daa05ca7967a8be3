"""Adapters, switches over copies of a module, and maps of states."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import orthogonal_procrustes
from torch import nn

from isogloss.core.errors import ConfigError
from isogloss.encoders.added.language_layers import (
    ActiveLanguage,
    Adapter,
    InvertibleAdapter,
    LanguageSwitch,
    run_by_language,
)
from isogloss.features.adjustment.maps import Moments, language_map


def test_a_new_adapter_is_the_identity_to_the_bit():
    states = torch.randn(3, 5, 32) * 100
    assert torch.equal(Adapter(32, 8, spread=0.02, seed=0)(states), states)


def test_it_adds_what_its_bottleneck_gives():
    adapter = Adapter(8, 2, spread=1.0, seed=1)
    nn.init.normal_(adapter.up.weight)
    nn.init.normal_(adapter.up.bias)
    states = torch.randn(4, 8)
    inner = nn.functional.gelu(states @ adapter.down.weight.T + adapter.down.bias)
    torch.testing.assert_close(adapter(states), states + inner @ adapter.up.weight.T + adapter.up.bias)


def test_it_is_a_function_of_its_seed_and_draws_nothing_else():
    torch.manual_seed(3)
    rng_state_before = torch.get_rng_state()
    adapter, other_adapter, third = (Adapter(8, 2, spread=0.02, seed=seed) for seed in (5, 5, 6))
    assert torch.equal(torch.get_rng_state(), rng_state_before)
    assert torch.equal(adapter.down.weight, other_adapter.down.weight)
    assert not torch.equal(adapter.down.weight, third.down.weight)


def test_its_first_gradient_reaches_the_projection_up_alone():
    adapter = Adapter(8, 2, spread=0.5, seed=0)
    adapter(torch.randn(4, 8)).square().sum().backward()
    assert adapter.up.weight.grad.abs().sum() > 0
    assert adapter.down.weight.grad.abs().sum() == 0


def test_its_weights_are_those_of_two_projections():
    adapter = Adapter(32, 8, spread=0.02, seed=0)
    assert sum(weight.numel() for weight in adapter.parameters()) == 2 * 32 * 8 + 32 + 8


@pytest.fixture
def invertible():
    adapter = InvertibleAdapter(10, spread=1.0, seed=1)
    for part in (adapter.f, adapter.g):
        nn.init.normal_(part.up.weight)
    return adapter


def test_an_invertible_adapter_is_new_the_identity_to_the_bit():
    adapter = InvertibleAdapter(10, spread=0.5, seed=0)
    states = torch.randn(3, 5, 10) * 100
    assert torch.equal(adapter(states), states) and torch.equal(adapter.inverse(states), states)
    assert not torch.equal(adapter.f.down.weight, adapter.g.down.weight)


def test_its_inverse_undoes_it(invertible):
    states = torch.randn(4, 3, 10, dtype=torch.float64)
    moved_value = invertible.double()(states)
    assert not torch.allclose(moved_value, states, atol=0.1)
    torch.testing.assert_close(invertible.inverse(moved_value), states)
    torch.testing.assert_close(invertible(invertible.inverse(states)), states)


def test_each_half_moves_by_the_other(invertible):
    first_vector, second = torch.randn(2, 4, 5).unbind()
    part, two = invertible(torch.cat((first_vector, second), dim=-1)).split(5, dim=-1)
    torch.testing.assert_close(part, first_vector + invertible.f.delta(second))
    torch.testing.assert_close(two, second + invertible.g.delta(part))


LANGUAGES = ("en", "fr", "sw")


def linears():
    torch.manual_seed(0)
    return {language: nn.Linear(4, 4) for language in LANGUAGES}


@given(st.lists(st.sampled_from(LANGUAGES), min_size=1, max_size=9))
def test_each_row_goes_through_the_module_of_its_language(languages):
    runs = linears()
    switch = LanguageSwitch(runs, ActiveLanguage(tuple(languages)))
    states = torch.randn(len(languages), 3, 4)
    expected = [runs[language](states[row]) for row, language in enumerate(languages)]
    torch.testing.assert_close(switch(states), torch.stack(expected))


def test_gradients_are_those_of_each_language_alone():
    runs = linears()
    languages = ("sw", "en", "sw", "en")
    states = torch.randn(4, 3, 4, requires_grad=True)
    LanguageSwitch(runs, ActiveLanguage(languages))(states).square().sum().backward()
    mixed_grads = {name: runs[name].weight.grad for name in LANGUAGES}
    rows = states.grad
    states.grad = None
    assert mixed_grads["fr"] is None
    for language in ("en", "sw"):
        runs[language].weight.grad = None
        own_rows = [row for row, item in enumerate(languages) if item == language]
        runs[language](states[own_rows]).square().sum().backward()
        torch.testing.assert_close(runs[language].weight.grad, mixed_grads[language])
    torch.testing.assert_close(states.grad, rows)


def test_one_language_is_one_pass_over_the_batch_itself():
    calls = []
    switch = LanguageSwitch({"en": calls.append}, ActiveLanguage(("en", "en")))
    states = torch.randn(2, 3, 4)
    switch(states)
    assert len(calls) == 1 and calls[0] is states


def test_there_is_one_pass_a_language():
    counts = []

    def run(states):
        counts.append(len(states))
        return states

    LanguageSwitch({"en": run, "sw": run}, ActiveLanguage(("en", "sw", "en")))(torch.randn(3, 1, 1))
    assert sorted(counts) == [1, 2]


def test_what_all_rows_share_is_given_whole_and_what_is_none_stays_none():
    table = torch.randn(3, 4)
    mask = torch.randn(3, 1, 2, 2)
    states = torch.randn(3, 2, 4)
    counts = []

    def run(states, mask=None, pair=(), table=None, flag=None):
        counts.append((len(states), len(mask), len(pair[0]), len(pair[1]), len(table), flag))
        return states, None

    speaking = ActiveLanguage(("en", "sw", "sw"))
    once = torch.randn(1, 2, 4)
    result, nothing = run_by_language(
        lambda _: run, speaking, (states,), {"mask": mask, "pair": (once, states), "table": table, "flag": 7}
    )
    assert counts == [(1, 1, 1, 1, 3, 7), (2, 2, 1, 2, 3, 7)]
    assert nothing is None and torch.equal(result, states)


def test_a_language_without_a_module_and_none_said_are_refused():
    runs = linears()
    with pytest.raises(ConfigError, match=r"'de'.*en, fr, sw"):
        LanguageSwitch(runs, ActiveLanguage(("de",)))(torch.randn(1, 1, 4))
    with pytest.raises(ConfigError, match="en, fr, sw"):
        LanguageSwitch(runs, ActiveLanguage())(torch.randn(1, 1, 4))


def test_languages_for_another_number_of_rows_are_refused():
    with pytest.raises(ValueError, match=r"2.*3"):
        LanguageSwitch(linears(), ActiveLanguage(("en", "sw")))(torch.randn(3, 1, 4))


def test_what_was_scored_can_be_trained_on_afterwards():
    switch = LanguageSwitch(linears(), ActiveLanguage(("en", "fr", "fr")))
    states = torch.randn(3, 2, 4)
    with torch.inference_mode():
        scored_modules = switch(states)
    trained_modules = switch(states)
    trained_modules.sum().backward()
    assert torch.equal(trained_modules, scored_modules)


def moments_of(source, target, *, parts=1):
    moments = Moments(source.size(1))
    for s, t in zip(source.chunk(parts), target.chunk(parts), strict=True):
        moments.add(s, t)
    return moments


@pytest.fixture
def states():
    generator = torch.Generator().manual_seed(0)
    source = torch.randn(50, 6, generator=generator)
    return source, 2 * source @ torch.randn(6, 6, generator=generator) + torch.arange(6)


def test_a_rotation_is_that_of_scipy_about_the_means(states):
    source, target = states
    result = language_map(moments_of(source, target), "rotation")
    rotation, _ = orthogonal_procrustes(
        (target - target.mean(0)).double(), (source - source.mean(0)).double()
    )
    torch.testing.assert_close(result.matrix, torch.from_numpy(rotation).float(), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(result.matrix @ result.matrix.T, torch.eye(6), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(result(target).mean(0), source.mean(0), rtol=1e-3, atol=1e-4)


def test_a_turned_and_shifted_language_is_turned_back(states):
    source, _ = states
    turn, _ = torch.linalg.qr(torch.randn(6, 6, generator=torch.Generator().manual_seed(1)))
    target = source @ turn + 3.0
    result = language_map(moments_of(source, target), "rotation")
    torch.testing.assert_close(result(target), source, rtol=1e-4, atol=1e-4)


def test_centring_gives_the_mean_and_normalisation_the_scale_too(states):
    source, target = states
    centred_value = language_map(moments_of(source, target), "centring")(target)
    torch.testing.assert_close(centred_value, target - target.mean(0) + source.mean(0), rtol=1e-4, atol=1e-4)
    values = language_map(moments_of(source, target), "normalisation")(target)
    for left, right in ((values.mean(0), source.mean(0)), (values.std(0), source.std(0))):
        torch.testing.assert_close(left, right, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ["rotation", "centring", "normalisation"])
def test_a_language_is_mapped_onto_itself_by_the_identity(kind, states):
    result = language_map(moments_of(states[0], states[0]), kind)
    torch.testing.assert_close(result(states[0]), states[0], rtol=1e-4, atol=1e-5)


def test_states_can_stream_by(states):
    whole_moments = moments_of(*states)
    parts = moments_of(*states, parts=7)
    torch.testing.assert_close(parts.covariance(), whole_moments.covariance())
    torch.testing.assert_close(parts.scales(), whole_moments.scales())


def test_a_dimension_that_never_varies_keeps_its_scale(states):
    source, target = states
    target = target.clone()
    target[:, 2] = 5.0
    result = language_map(moments_of(source, target), "normalisation")
    assert float(result.matrix[2, 2]) == 1.0
    assert bool(torch.isfinite(result(target)).all())
