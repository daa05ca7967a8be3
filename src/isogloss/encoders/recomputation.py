"""Gradient checkpointing: a layer keeps its input alone, and computes the rest anew for the gradients.

Chen et al. (2016), "Training Deep Nets with Sublinear Memory Cost", Section 4. What transformers offers skips
models that are not in training mode, and runs a layer again when the batch's hooks and languages are gone.
Here a layer runs the second time as it did the first: with the same dropout, languages and hooks.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from torch import nn
from torch.utils.checkpoint import checkpoint

from isogloss.core.errors import ModelError
from isogloss.encoders.added.language_modules import ModuleTree

_State = dict[Any, Any]


@contextmanager
def recomputed_layers(model: nn.Module) -> Iterator[int]:
    """Recompute the layers of a model, or of the models in it, for the gradients; yields their number.

    Gradients may be computed after the context has ended. ModelError for a model without Transformer layers.
    """
    layers = list(transformer_layers(model).values())
    if not layers:
        raise ModelError(
            f"{type(model).__name__}: gradient checkpointing computes Transformer layers anew, and there are "
            f"none here. Leave gradient_checkpointing out."
        )
    states = _states(model)
    before = [vars(layer).get("forward") for layer in layers]
    for layer in layers:
        vars(layer)["forward"] = _recomputed(layer.forward, states)
    try:
        yield len(layers)
    finally:
        for layer, forward in zip(layers, before, strict=True):
            vars(layer).pop("forward")
            if forward is not None:
                vars(layer)["forward"] = forward


def transformer_layers(model: nn.Module) -> dict[str, nn.Module]:
    """Return the Transformer layers of a model, or of the models in it, by name."""
    from transformers.modeling_layers import GradientCheckpointingLayer

    return {name: one for name, one in model.named_modules() if isinstance(one, GradientCheckpointingLayer)}


def _states(model: nn.Module) -> list[_State]:
    """Return what a layer's computation depends on besides its input: all hooks, and the active languages."""
    found: list[_State] = []
    for part in model.modules():
        found += [part._forward_hooks, part._forward_pre_hooks]
        if isinstance(part, ModuleTree):
            found.append(vars(part.active))
    return found


def _recomputed(forward: Callable[..., object], states: list[_State]) -> Callable[..., object]:
    """Return a layer's forward function that runs again for the gradients as it did the first time."""

    def run(*inputs: object, **named: Any) -> object:
        # A cache of keys and values would be written twice; training reads none.
        named |= {name: None for name in ("past_key_values",) if name in named}
        then = [(state, dict(state)) for state in states if state]
        return checkpoint(
            forward,
            *inputs,
            use_reentrant=False,
            context_fn=lambda: (nullcontext(), _restored(then)),
            **named,
        )

    return run


@contextmanager
def _restored(then: list[tuple[_State, _State]]) -> Iterator[None]:
    now = [(state, dict(state)) for state, _ in then]
    _put(then)
    try:
        yield
    finally:
        _put(now)


def _put(kept: list[tuple[_State, _State]]) -> None:
    for state, values in kept:
        state.clear()
        state.update(values)
