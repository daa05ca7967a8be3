import torch
from torch import nn

from isogloss.nn.language_modules import Adapter


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
    before = torch.get_rng_state()
    one, other, third = (Adapter(8, 2, spread=0.02, seed=seed) for seed in (5, 5, 6))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(one.down.weight, other.down.weight)
    assert not torch.equal(one.down.weight, third.down.weight)


def test_its_first_gradient_reaches_the_projection_up_alone():
    adapter = Adapter(8, 2, spread=0.5, seed=0)
    adapter(torch.randn(4, 8)).square().sum().backward()
    assert adapter.up.weight.grad.abs().sum() > 0
    assert adapter.down.weight.grad.abs().sum() == 0


def test_its_weights_are_those_of_two_projections():
    adapter = Adapter(32, 8, spread=0.02, seed=0)
    assert sum(weight.numel() for weight in adapter.parameters()) == 2 * 32 * 8 + 32 + 8
