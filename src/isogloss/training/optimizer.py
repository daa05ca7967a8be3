"""AdamW with linear warm-up and linear decay, decay on matrices only."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

TIMES = "times"
"""What a group of parameters that learns faster calls its multiple of the rate."""


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """How a model's weights are updated."""

    learning_rate: float
    warmup: float = 0.1
    """Share of the steps with linear warm-up; then the rate falls linearly to 0."""
    weight_decay: float = 0.01
    beta2: float = 0.999
    epsilon: float = 1e-8
    clip: float = 1.0
    """Largest gradient norm; 0 switches clipping off."""
    precision: str = "auto"
    """auto (measured once per machine), float32 or bfloat16."""
    accumulation: int = 1
    """Parts that the batch of one update is computed in, one after the other; more takes less memory."""
    faster: tuple[str, float] = ("", 1.0)
    """How the names of parameters begin that learn at so many times the rate, and how many; "" is none."""


def adamw(model: nn.Module, schedule: Schedule) -> torch.optim.AdamW:
    """Return fused AdamW; biases and layer norms (everything below two dimensions) do not decay."""
    start, times = schedule.faster
    named = [(name, weight) for name, weight in model.named_parameters() if weight.requires_grad]
    apart = [weight for name, weight in named if start and name.startswith(start)]
    trained = [weight for name, weight in named if not (start and name.startswith(start))]
    groups = [
        {
            "params": [weight for weight in trained if weight.dim() >= 2],
            "weight_decay": schedule.weight_decay,
        },
        {"params": [weight for weight in trained if weight.dim() < 2], "weight_decay": 0.0},
        *([{"params": apart, "weight_decay": 0.0, TIMES: times}] if apart else []),
    ]
    betas = (0.9, schedule.beta2)
    return torch.optim.AdamW(groups, lr=schedule.learning_rate, betas=betas, eps=schedule.epsilon, fused=True)


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Give every group of parameters the rate of a step, those that learn faster so many times it."""
    for group in optimizer.param_groups:
        group["lr"] = rate * group.get(TIMES, 1.0)


def linear_rate(schedule: Schedule, steps: int) -> Callable[[int], float]:
    """Return the rate of each step: up over the warm-up share, then down to 0 after the last step."""
    rising = max(1, round(schedule.warmup * steps))

    def rate(step: int) -> float:
        up = (step + 1) / rising
        down = (steps - step) / max(1, steps - rising + 1)
        return schedule.learning_rate * min(up, down, 1.0)

    return rate
