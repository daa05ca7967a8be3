"""Quick dropout has the right share, the right mean, independent draws, without side effects."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from isogloss.encoders.computation import Dropout, drop, quick_dropout


@given(rate=st.floats(0.01, 0.99), size=st.integers(1, 60), seed=st.integers(0, 2**31))
def test_elements_are_zero_or_scaled_by_one_factor(rate, size, seed):
    torch.manual_seed(seed)
    table = drop(torch.ones(size, 3), rate)
    kept_values = table[table != 0]
    assert torch.all(kept_values == kept_values[:1]) and torch.allclose(
        kept_values, torch.full_like(kept_values, 1 / (1 - rate)), rtol=1e-2
    )


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_share_and_mean_are_those_asked_for_at_every_place_of_a_draw(rate, dtype):
    torch.manual_seed(0)
    table = drop(torch.ones(100_000, 4, dtype=dtype), rate).float()
    error = 5 * (rate * (1 - rate) / 100_000) ** 0.5  # Five standard deviations of a share of 100,000 draws.
    assert torch.all(((table == 0).float().mean(dim=0) - rate).abs() < error)
    assert torch.all((table.mean(dim=0) - 1).abs() < error / (1 - rate) + 0.005)


def test_elements_of_one_draw_are_dropped_independently():
    torch.manual_seed(0)
    dropped_value = (drop(torch.ones(200_000, 4), 0.5) == 0).double()
    correlation = torch.corrcoef(dropped_value.T) - torch.eye(4)
    assert correlation.abs().max() < 0.012  # 1/sqrt(200,000) is 0.0022.


def test_gradients_pass_where_elements_passed():
    torch.manual_seed(0)
    x = torch.randn(50, 7, requires_grad=True)
    table = drop(x, 0.3)
    table.sum().backward()
    assert torch.allclose(x.grad * x.detach(), table.detach())


def test_the_seed_fixes_what_is_dropped():
    def once(seed):
        torch.manual_seed(seed)
        return drop(torch.ones(1000), 0.1)

    assert torch.equal(once(1), once(1))
    assert not torch.equal(once(1), once(2))


def test_no_rate_gives_the_very_tensor_and_takes_no_random_number():
    x = torch.ones(4)
    rng_state_before = torch.get_rng_state()
    assert drop(x, 0.0) is x
    assert torch.equal(torch.get_rng_state(), rng_state_before)


def test_everything_is_dropped_at_rate_one():
    assert torch.equal(drop(torch.ones(5), 1.0), torch.zeros(5))


def test_layer_drops_nothing_in_evaluation():
    x = torch.ones(9)
    assert Dropout(0.5).eval()(x) is x


def test_stand_ins_go_away_and_leave_the_mode_as_it_is():
    model = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.2), nn.Sequential(nn.Dropout(0.4)))
    modules_before = list(model.modules())
    with quick_dropout(model) as names:
        assert names == ["1", "2.0"]
        assert [part.p for part in model.modules() if isinstance(part, Dropout)] == [0.2, 0.4]
        model.eval()
    assert all(left is right for left, right in zip(model.modules(), modules_before, strict=True))
    assert not any(part.training for part in model.modules())


def test_stand_ins_go_away_after_an_error():
    model = nn.Sequential(nn.Dropout(0.2))
    with pytest.raises(ZeroDivisionError), quick_dropout(model):
        raise ZeroDivisionError
    assert type(model[0]) is nn.Dropout


@pytest.mark.parametrize("rate", [1 / 65536, 0.1, 0.5, 0.9, 65535 / 65536])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_16_bits_below_the_rate_drop_an_element(rate, dtype):
    x = torch.randn(50_001).to(dtype)
    torch.manual_seed(0)
    bits = torch.empty(12_501, dtype=torch.int64).random_(-(1 << 63), None).view(torch.int16)[: len(x)]
    dropped_rate = round(rate * 2**16)
    mask = (bits.int() + 2**15 >= dropped_rate).to(dtype).mul(2**16 / (2**16 - dropped_rate))
    torch.manual_seed(0)
    assert torch.equal(drop(x, rate), x * mask)


def test_a_rate_that_rounds_to_none_drops_nothing():
    x = torch.ones(4)
    assert drop(x, 1e-6) is x
