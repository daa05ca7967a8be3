"""Fast computation of layers: attention and dropout on a CPU, and recomputation of layers for gradients.

Explicit attention is registered with transformers. In gradient checkpointing (Chen et al. 2016, "Training
Deep Nets with Sublinear Memory Cost", Section 4) a layer stores only its input. The version in transformers
skips models that are not in training mode, and recomputes a layer after the batch's hooks and languages are
gone. Here a layer is recomputed exactly as it was computed: with the same dropout, languages and hooks.

``torch.nn.functional.dropout`` on a CPU calls the generator once for each element; here 64 random bits decide
on four elements. Draws are independent and come from torch's generator (so a seed fixes them), and the rate
is exact to 1/65536.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from isogloss.core.errors import ModelError
from isogloss.core.processes import collector_paused
from isogloss.encoders.added.language_modules import ModuleTree

EXPLICIT = "isogloss-explicit"
"""Name under which our attention is registered with transformers."""

_State = dict[Any, Any]


def fastest_attention() -> str:
    """Return the name of the fastest attention on this machine: fused on a GPU, explicit on a CPU."""
    return "sdpa" if torch.cuda.is_available() else offer_explicit_attention()


@collector_paused()
def offer_explicit_attention() -> str:
    """Register explicit attention with fast dropout in transformers, and return its name.

    On a CPU the backward passes of fused attention, and of dropout in eager attention, are slow. Without
    dropout the result equals transformers' eager attention exactly.
    """
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import eager_mask

    AttentionInterface.register(EXPLICIT, explicit_attention)
    AttentionMaskInterface.register(EXPLICIT, eager_mask)
    return EXPLICIT


def explicit_attention(  # noqa: PLR0913, PLR0917 (transformers' signature)
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **_: object,
) -> tuple[Tensor, Tensor]:
    """Return states [batch subword head dim] and weights [batch head subword subword].

    Queries, keys and values are [batch head subword dim]; the mask is added to the raw weights. Several heads
    of queries may share one head of keys and values.
    """
    if (group := query.size(1) // key.size(1)) > 1:
        key, value = (states.repeat_interleave(group, dim=1) for states in (key, value))
    weights = torch.matmul(query, key.transpose(2, 3)) * (scaling or query.size(-1) ** -0.5)
    if attention_mask is not None:
        weights = weights + attention_mask
    weights = torch.softmax(weights, dim=-1)
    if module.training:
        weights = drop(weights, dropout)
    return torch.matmul(weights, value).transpose(1, 2).contiguous(), weights


@contextmanager
def recomputed_layers(model: nn.Module) -> Iterator[int]:
    """Recompute the layers of a model, or of the models in it, for the gradients, and yield their number.

    Gradients may be computed after the context has ended. Raises ModelError for a model without Transformer
    layers.
    """
    layers = list(transformer_layers(model).values())
    if not layers:
        raise ModelError(
            f"{type(model).__name__}: gradient checkpointing recomputes Transformer layers, which this model "
            f"lacks. Remove gradient_checkpointing."
        )
    states = _states(model)
    forwards = [vars(layer).get("forward") for layer in layers]
    for layer in layers:
        vars(layer)["forward"] = _add_recomputation(layer.forward, states)
    try:
        yield len(layers)
    finally:
        for layer, forward in zip(layers, forwards, strict=True):
            vars(layer).pop("forward")
            if forward is not None:
                vars(layer)["forward"] = forward


def transformer_layers(model: nn.Module) -> dict[str, nn.Module]:
    """Return the Transformer layers of a model, or of the models in it, by name."""
    from transformers.modeling_layers import GradientCheckpointingLayer

    return {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, GradientCheckpointingLayer)
    }


def _states(model: nn.Module) -> list[_State]:
    """Return the state that a layer's computation depends on: all hooks, and the active languages."""
    states: list[_State] = []
    for module in model.modules():
        states += [module._forward_hooks, module._forward_pre_hooks]
        if isinstance(module, ModuleTree):
            states.append(vars(module.active))
    return states


def _add_recomputation(forward: Callable[..., object], states: list[_State]) -> Callable[..., object]:
    """Return a layer's forward function with recomputation for the gradients."""

    def run(*inputs: object, **options: Any) -> object:
        if "past_key_values" in options:  # Recomputation would write the cache twice; training needs none.
            options["past_key_values"] = None
        contents = [(state, dict(state)) for state in states if state]
        return checkpoint(
            forward,
            *inputs,
            use_reentrant=False,
            context_fn=lambda: (nullcontext(), _with_states(contents)),
            **options,
        )

    return run


@contextmanager
def _with_states(contents: list[tuple[_State, _State]]) -> Iterator[None]:
    current = [(state, dict(state)) for state, _ in contents]
    _restore(contents)
    try:
        yield
    finally:
        _restore(current)


def _restore(contents: list[tuple[_State, _State]]) -> None:
    for state, content in contents:
        state.clear()
        state.update(content)


RATE_STEPS = 1 << 16
"""Number of values of the 16 bits that decide on an element."""

ELEMENTS_PER_DRAW = 4
"""Number of elements decided by one draw of 64 bits."""


def drop(x: Float[Tensor, "..."], rate: float) -> Float[Tensor, "..."]:
    """Set a share of the elements to 0 and scale the others, which preserves the mean."""
    dropped_steps = round(rate * RATE_STEPS)
    if dropped_steps <= 0:
        return x
    if x.device.type != "cpu" or dropped_steps >= RATE_STEPS:
        return nn.functional.dropout(x, rate, training=True)
    draws = torch.empty(-(-x.numel() // ELEMENTS_PER_DRAW), dtype=torch.int64).random_(-(1 << 63), None)
    bits = draws.view(torch.int16)[: x.numel()].view(x.shape)
    first_kept_value = dropped_steps - RATE_STEPS // 2
    # Twice as fast as comparing: torch has vector instructions for limits of 16 bits.
    mask = bits.clamp_(first_kept_value - 1, first_kept_value).sub_(first_kept_value - 1)
    return x * mask.to(x.dtype).mul_(RATE_STEPS / (RATE_STEPS - dropped_steps))


class Dropout(nn.Dropout):
    """A dropout layer that uses ``drop``."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 (torch's name)
        """Drop elements while training."""
        return drop(input, self.p) if self.training else input


@contextmanager
def quick_dropout(model: nn.Module) -> Iterator[list[str]]:
    """Replace every torch.nn.Dropout of a model by ``Dropout`` temporarily, and yield their names."""
    layers = [
        (f"{outer}.{name}".lstrip("."), module, name, part)
        for outer, module in model.named_modules()
        for name, part in module.named_children()
        if type(part) is nn.Dropout
    ]
    for _, module, name, part in layers:
        setattr(module, name, Dropout(part.p).train(part.training))
    try:
        yield [path for path, *_ in layers]
    finally:
        for _, module, name, part in layers:
            setattr(module, name, part.train(module.training))
