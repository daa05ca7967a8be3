"""AdamW with linear warm-up and linear decay, decay on matrices only."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn

from isogloss.core.runs import Updates

EPSILON = 1e-8
"""Adam's where none is given."""

RATE_MULTIPLE = "rate_multiple"
"""The multiple of the rate that a parameter learns at, on the parameter and in its group."""


def learn_at(parameters: Iterable[nn.Parameter], multiple: float) -> None:
    """Let parameters learn at a multiple of the rate, without decay; ``adamw`` puts them in a group."""
    for one in parameters:
        setattr(one, RATE_MULTIPLE, multiple)


def adamw(model: nn.Module, updates: Updates) -> torch.optim.AdamW:
    """Return fused AdamW; biases and layer norms (everything below two dimensions) do not decay."""
    every = [weight for weight in model.parameters() if weight.requires_grad]
    apart = [weight for weight in every if hasattr(weight, RATE_MULTIPLE)]
    trained = [weight for weight in every if not hasattr(weight, RATE_MULTIPLE)]
    groups: list[dict[str, Any]] = [
        {
            "params": [weight for weight in trained if weight.dim() >= 2],
            "weight_decay": updates.weight_decay,
        },
        {"params": [weight for weight in trained if weight.dim() < 2], "weight_decay": 0.0},
    ]
    multiples = sorted({getattr(weight, RATE_MULTIPLE) for weight in apart})
    for multiple in multiples:
        own = [weight for weight in apart if getattr(weight, RATE_MULTIPLE) == multiple]
        groups.append({"params": own, "weight_decay": 0.0, RATE_MULTIPLE: multiple})
    betas, epsilon = (0.9, updates.beta2), updates.epsilon or EPSILON
    return torch.optim.AdamW(groups, lr=updates.learning_rate, betas=betas, eps=epsilon, fused=True)


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Give every group of parameters the rate of a step, or that multiple of it which the group learns at."""
    for group in optimizer.param_groups:
        group["lr"] = rate * group.get(RATE_MULTIPLE, 1.0)


def linear_rate(updates: Updates, steps: int) -> Callable[[int], float]:
    """Return the rate of each step: up over the warm-up share, then down to 0 after the last step."""
    rising = max(1, round(updates.warmup * steps))

    def rate(step: int) -> float:
        up = (step + 1) / rising
        down = (steps - step) / max(1, steps - rising + 1)
        return updates.learning_rate * min(up, down, 1.0)

    return rate
