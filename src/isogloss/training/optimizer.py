"""AdamW, fused or with 8-bit states: decay on matrices only, linear warm-up, and the schedule of the rate.

Sharpness-aware minimization: Foret et al. (2021), "Sharpness-Aware Minimization for Efficiently Improving
Generalization", Algorithm 1.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn

from isogloss.core.errors import ConfigError, MissingPackageError
from isogloss.core.run_parts import Updates
from isogloss.training.distributed import refuse_sharding

EPSILON = 1e-8
"""Adam's by default."""

RATE_MULTIPLE, DECAYS = "rate_multiple", "decays"
"""Attributes of a parameter: its learning-rate multiplier, also in its group; whether it decays."""


def set_rate_multiple(parameters: Iterable[nn.Parameter], multiple: float, *, decay: bool) -> None:
    """Set each parameter's learning-rate multiplier; with ``decay``, keep the default weight decay."""
    for parameter in parameters:
        setattr(parameter, RATE_MULTIPLE, multiple)
        setattr(parameter, DECAYS, decay)


def adamw(model: nn.Module, updates: Updates) -> torch.optim.Optimizer:
    """Return AdamW, fused or with 8-bit states; parameters of fewer than two dimensions do not decay."""
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    by_kind: dict[tuple[float, bool], list[nn.Parameter]] = {(0, True): [], (0, False): []}
    for weight in trained:
        decays = weight.dim() >= 2 and getattr(weight, DECAYS, True)
        by_kind.setdefault((getattr(weight, RATE_MULTIPLE, 0), decays), []).append(weight)
    groups: list[dict[str, object]] = [
        {"params": by_kind[multiple, decays], "weight_decay": updates.weight_decay if decays else 0.0}
        | ({RATE_MULTIPLE: multiple} if multiple else {})
        for multiple, decays in sorted(by_kind, key=lambda kind: (kind[0], not kind[1]))
    ]
    betas, epsilon = (0.9, updates.beta2), updates.epsilon or EPSILON
    options: dict[str, Any] = {"lr": updates.learning_rate, "betas": betas, "eps": epsilon}
    if updates.capture:  # A graph reads each group's rate from memory of its own.
        on = trained[0].device
        options["capturable"] = on.type == "cuda"
        for group in groups:
            group["lr"] = torch.tensor(updates.learning_rate, device=on)
    if updates.optimizer_states is None:
        return torch.optim.AdamW(groups, **options, fused=True)
    return _eight_bit_adamw(trained[0].device)(groups, **options)


EIGHT_BIT_DEVICES = ("cpu", "cuda", "xpu")
"""Devices for which bitsandbytes has AdamW with 8-bit states."""


def check_optimizer_states(states: object) -> None:
    """Raise ConfigError if the package that 8-bit states need is not installed, or states are sharded."""
    if states is None:
        return
    refuse_sharding("optimizer_states: moments are not quantised", "leave optimizer_states out")
    if find_spec("bitsandbytes") is None:
        raise MissingPackageError(
            f'optimizer_states = "{states}" needs the package bitsandbytes, which is not '
            f'installed. Install it (pip install "isogloss[eight-bit]"), or leave optimizer_states out.',
            "bitsandbytes (pip install 'isogloss[eight-bit]')",
        )


def _eight_bit_adamw(device: torch.device) -> Callable[..., torch.optim.Optimizer]:
    """Return AdamW whose moments are quantised in blocks of 256 (Dettmers et al. 2022, Section 2).

    Those of parameters of fewer than 4096 numbers stay in 32 bits.
    """
    check_optimizer_states("8-bit")
    if device.type not in EIGHT_BIT_DEVICES:
        raise ConfigError(
            f'optimizer_states = "8-bit" is not there for the device {device.type}, only for '
            f"{', '.join(EIGHT_BIT_DEVICES)}. Leave optimizer_states out."
        )
    from bitsandbytes.optim import AdamW8bit

    optimizer: Callable[..., torch.optim.Optimizer] = AdamW8bit
    return optimizer


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set the rate of every group of parameters, times the group's multiple if it has one."""
    for group in optimizer.param_groups:
        multiplied = rate * group.get(RATE_MULTIPLE, 1.0)
        group["lr"] = group["lr"].fill_(multiplied) if isinstance(group["lr"], Tensor) else multiplied


def rate_schedule(updates: Updates, steps: int) -> Callable[[int], float]:
    """Return the rate of each step: rising over the warm-up share, then falling to 0 after the last step.

    Or falling with the inverse square root of the step, or constant, by ``updates.rate_schedule``.
    """
    rising = max(1, round(updates.warmup * steps))
    falling: dict[str | None, Callable[[int], float]] = {
        None: lambda step: (steps - step) / max(1, steps - rising + 1),
        "inverse-square-root": lambda step: math.sqrt(rising / (step + 1)),
        "constant": lambda _: 1.0,
    }
    down = falling[updates.rate_schedule]

    def rate(step: int) -> float:
        up = (step + 1) / rising
        return updates.learning_rate * min(up, down(step), 1.0)

    return rate


@contextmanager
def move_uphill(weights: Iterable[nn.Parameter], radius: float) -> Iterator[None]:
    """Move weights by ``radius`` along their gradients in this context, and clear the gradients.

    The weights become w + ρ·g/‖g‖ (Eq. 2), with one norm over all of them: where the loss is largest within
    ρ, to first order. At the end they are restored to the bit; gradients computed meanwhile stay.
    """
    moved = [weight for weight in weights if weight.grad is not None]
    original = [weight.detach().clone() for weight in moved]
    with torch.no_grad():
        norm = nn.utils.get_total_norm([weight.grad for weight in moved if weight.grad is not None])
        for weight in moved:
            if weight.grad is not None:
                weight.add_(weight.grad * (radius / (norm + SMALLEST_NORM)))
                weight.grad = None
    try:
        yield
    finally:
        with torch.no_grad():
            for weight, value in zip(moved, original, strict=True):
                weight.copy_(value)


SMALLEST_NORM = 1e-12
"""Added to the norm of gradients, which may be 0."""
