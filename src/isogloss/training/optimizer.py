"""AdamW, fused or with 8-bit states, with decay of matrices only, linear warm-up, and a rate schedule.

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
"""Adam's default epsilon."""

RATE_MULTIPLE = "rate_multiple"
"""Attribute of a parameter and of its group: the learning-rate multiplier."""

DECAYS = "decays"
"""Attribute of a parameter: whether its weights decay."""


def set_rate_multiple(parameters: Iterable[nn.Parameter], multiple: float, *, decay: bool) -> None:
    """Set each parameter's learning-rate multiplier. With ``decay``, keep the default weight decay."""
    for parameter in parameters:
        setattr(parameter, RATE_MULTIPLE, multiple)
        setattr(parameter, DECAYS, decay)


def adamw(model: nn.Module, updates: Updates) -> torch.optim.Optimizer:
    """Return AdamW, fused or with 8-bit states. Parameters of fewer than two dimensions do not decay."""
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    kinds: dict[tuple[float, bool], list[nn.Parameter]] = {(0, True): [], (0, False): []}
    for weight in weights:
        decays = weight.dim() >= 2 and getattr(weight, DECAYS, True)
        kinds.setdefault((getattr(weight, RATE_MULTIPLE, 0), decays), []).append(weight)
    groups: list[dict[str, object]] = []
    for multiple, decays in sorted(kinds, key=lambda kind: (kind[0], not kind[1])):
        group: dict[str, object] = {"params": kinds[multiple, decays]}
        group["weight_decay"] = updates.weight_decay if decays else 0.0
        if multiple:
            group[RATE_MULTIPLE] = multiple
        groups.append(group)
    options: dict[str, Any] = {
        "lr": updates.learning_rate,
        "betas": (0.9, updates.beta2),
        "eps": updates.epsilon or EPSILON,
    }
    if updates.capture:  # A graph reads each group's rate from a separate tensor.
        device = weights[0].device
        options["capturable"] = device.type == "cuda"
        for group in groups:
            group["lr"] = torch.tensor(updates.learning_rate, device=device)
    if updates.optimizer_states is None:
        return torch.optim.AdamW(groups, **options, fused=True)
    return _eight_bit_adamw(weights[0].device)(groups, **options)


EIGHT_BIT_DEVICES = ("cpu", "cuda", "xpu")
"""Devices for which bitsandbytes has AdamW with 8-bit states."""


def check_optimizer_states(states: object) -> None:
    """Raise an error if 8-bit states are not supported.

    Raises MissingPackageError if their package is not installed, and ConfigError if the model is sharded.
    """
    if states is None:
        return
    refuse_sharding("optimizer_states: moments cannot be quantised", "remove optimizer_states")
    if find_spec("bitsandbytes") is None:
        raise MissingPackageError(
            f'optimizer_states = "{states}" needs the package bitsandbytes, which is not '
            f'installed. Install it (pip install "isogloss[eight-bit]"), or remove optimizer_states.',
            "bitsandbytes (pip install 'isogloss[eight-bit]')",
        )


def _eight_bit_adamw(device: torch.device) -> Callable[..., torch.optim.Optimizer]:
    """Return AdamW whose moments are quantised in blocks of 256 (Dettmers et al. 2022, Section 2).

    Moments of parameters with fewer than 4096 numbers stay in 32 bits.
    """
    check_optimizer_states("8-bit")
    if device.type not in EIGHT_BIT_DEVICES:
        raise ConfigError(
            f'optimizer_states = "8-bit" does not support the device {device.type}, only '
            f"{', '.join(EIGHT_BIT_DEVICES)}. Remove optimizer_states."
        )
    from bitsandbytes.optim import AdamW8bit

    optimizer: Callable[..., torch.optim.Optimizer] = AdamW8bit
    return optimizer


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set the rate of every parameter group, times the group's multiple if it has one."""
    for group in optimizer.param_groups:
        group_rate = rate * group.get(RATE_MULTIPLE, 1.0)
        group["lr"] = group["lr"].fill_(group_rate) if isinstance(group["lr"], Tensor) else group_rate


def rate_schedule(updates: Updates, steps: int) -> Callable[[int], float]:
    """Return the rate of each step: rising over the warm-up share, then falling to 0 after the last step.

    ``updates.rate_schedule`` selects a decrease with the inverse square root of the step, or a constant rate,
    instead.
    """
    warmup = max(1, round(updates.warmup * steps))
    decays: dict[str | None, Callable[[int], float]] = {
        None: lambda step: (steps - step) / max(1, steps - warmup + 1),
        "inverse-square-root": lambda step: math.sqrt(warmup / (step + 1)),
        "constant": lambda _: 1.0,
    }
    decay = decays[updates.rate_schedule]

    def rate(step: int) -> float:
        return updates.learning_rate * min((step + 1) / warmup, decay(step), 1.0)

    return rate


@contextmanager
def move_uphill(weights: Iterable[nn.Parameter], radius: float) -> Iterator[None]:
    """Move weights by ``radius`` along their gradients in this context, and clear the gradients.

    The weights become w + ρ·g/‖g‖ (Eq. 2), with one norm over all of them: to first order, where the loss is
    largest within ρ. Afterwards they are restored exactly. Gradients computed meanwhile stay.
    """
    moving_weights = [weight for weight in weights if weight.grad is not None]
    original = [weight.detach().clone() for weight in moving_weights]
    with torch.no_grad():
        norm = nn.utils.get_total_norm([weight.grad for weight in moving_weights if weight.grad is not None])
        for weight in moving_weights:
            if weight.grad is not None:
                weight.add_(weight.grad * (radius / (norm + SMALLEST_NORM)))
                weight.grad = None
    try:
        yield
    finally:
        with torch.no_grad():
            for weight, value in zip(moving_weights, original, strict=True):
                weight.copy_(value)


SMALLEST_NORM = 1e-12
"""Added to the norm of gradients, which may be 0."""
