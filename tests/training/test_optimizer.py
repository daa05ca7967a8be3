from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from each import each
from isogloss.core.run_parts import Updates
from isogloss.training.optimizer import adamw, rate_schedule, set_rate, set_rate_multiple


def theirs(warmup_steps, steps):
    """transformers' curve: it begins at a rate of 0 and ends above it. Ours is one step ahead of that."""
    from transformers import get_linear_schedule_with_warmup

    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    updates = get_linear_schedule_with_warmup(optimizer, warmup_steps, steps + 1)
    return [updates.lr_lambdas[0](step + 1) for step in range(steps)]


@given(st.integers(1, 60), st.floats(0, 1))
def test_the_rate_is_that_of_transformers_one_step_ahead(steps, warmup):
    rate = rate_schedule(Updates(learning_rate=3.0, warmup=warmup), steps)
    rising = max(1, round(warmup * steps))
    assert [rate(step) for step in range(steps)] == pytest.approx([3.0 * x for x in theirs(rising, steps)])


@given(st.integers(1, 500), st.floats(0, 1))
def test_the_rate_is_highest_after_the_warm_up_and_0_after_the_last_step(steps, warmup):
    rate = rate_schedule(Updates(learning_rate=2.0, warmup=warmup), steps)
    rates = [rate(step) for step in range(steps)]
    top = max(1, round(warmup * steps)) - 1
    assert max(rates) == rates[top] == pytest.approx(2.0)
    assert rates[: top + 1] == sorted(rates[: top + 1])
    assert rates[top:] == sorted(rates[top:], reverse=True)
    assert min(rates) > 0
    assert rate(steps) == 0


@given(st.integers(1, 500), st.floats(0, 1))
def test_other_schedules_warm_up_alike_and_then_fall_by_the_root_of_the_steps_or_stay(steps, warmup):
    updates = Updates(learning_rate=2.0, warmup=warmup)
    plain_result, root, constant = (
        [rate_schedule(replace(updates, rate_schedule=name), steps)(index) for index in range(steps)]
        for name in (None, "inverse-square-root", "constant")
    )
    top = max(1, round(warmup * steps))
    assert plain_result[:top] == root[:top] == constant[:top]
    assert all(rate == 2.0 for rate in constant[top - 1 :])
    assert root[top:] == pytest.approx([2.0 * (top / step) ** 0.5 for step in range(top + 1, steps + 1)])


def test_only_matrices_decay_and_only_what_is_trained_is_updated():
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.LayerNorm(4), torch.nn.Embedding(5, 4))
    model[0].weight.requires_grad_(False)
    decaying, other_groups = adamw(model, Updates(learning_rate=1.0, weight_decay=0.3)).param_groups
    assert [id(weight) for weight in decaying["params"]] == [id(model[2].weight)]
    biases = [model[0].bias, model[1].weight, model[1].bias]
    assert [id(weight) for weight in other_groups["params"]] == [id(weight) for weight in biases]
    assert (decaying["weight_decay"], other_groups["weight_decay"]) == (0.3, 0.0)


def test_what_learns_faster_has_so_many_times_the_rate_and_the_rest_its_own():
    model = torch.nn.ModuleDict({"net": torch.nn.Linear(3, 4), "own": torch.nn.Linear(3, 1)})
    assert len(adamw(model, Updates(learning_rate=1.0)).param_groups) == 2
    set_rate_multiple(model["own"].parameters(), 50.0, decay=False)
    optimizer = adamw(model, Updates(learning_rate=1.0))
    set_rate(optimizer, 0.5)
    rates = {id(weight): group["lr"] for group in optimizer.param_groups for weight in group["params"]}
    assert {name: rates[id(weight)] for name, weight in model.named_parameters()} == {
        "net.weight": 0.5,
        "net.bias": 0.5,
        "own.weight": 25.0,
        "own.bias": 25.0,
    }


def test_what_learns_faster_decays_if_it_is_to():
    model = torch.nn.ModuleDict({"net": torch.nn.Linear(3, 4), "own": torch.nn.Linear(3, 1)})
    set_rate_multiple(model["own"].parameters(), 50.0, decay=True)
    groups = adamw(model, Updates(learning_rate=1.0, weight_decay=0.3)).param_groups
    decays = {id(weight): group["weight_decay"] for group in groups for weight in group["params"]}
    assert [decays[id(weight)] for weight in model.parameters()] == [0.3, 0.0, 0.3, 0.0]


def test_an_update_is_that_of_torch_without_fusion():
    torch.manual_seed(0)
    models = [torch.nn.Linear(6, 5) for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    ours = adamw(models[0], Updates(learning_rate=0.1, weight_decay=0.2, beta2=0.95, epsilon=1e-6))
    plain_optimizer = torch.optim.AdamW(
        [
            {"params": [models[1].weight], "weight_decay": 0.2},
            {"params": [models[1].bias], "weight_decay": 0.0},
        ],
        lr=0.1,
        betas=(0.9, 0.95),
        eps=1e-6,
        fused=False,
    )
    x = torch.randn(7, 6)
    for _ in range(5):
        for model, optimizer in zip(models, (ours, plain_optimizer), strict=True):
            optimizer.zero_grad()
            model(x).square().sum().backward()
            optimizer.step()
    for left, right in each(zip(models[0].parameters(), models[1].parameters(), strict=True)):
        assert torch.allclose(left, right, atol=1e-6)
