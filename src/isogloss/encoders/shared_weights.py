"""Copies of models that share their weights: threads that use one model see nothing of each other.

A measurement switches modes, hooks, active languages, gates and the type of weights. It does so on a copy,
where nobody else sees it and nothing has to be restored after an error. A copy
has new modules with their own attributes and hooks, but the model's numbers: it takes little memory, and less
time than one forward pass. An update in place, such as an optimizer's, changes the numbers of both.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from isogloss.encoders.computation import recomputed_layers, transformer_layers

AnyModule = TypeVar("AnyModule", bound=nn.Module)

AsParameter = Callable[[nn.Parameter], nn.Parameter]
"""From a parameter of a model to the one that its copy has instead."""

SHARED = ("config", "generation_config", "language_maps")
"""Attributes of modules that are only read and therefore shared with a copy."""

_ATOMS = {
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    type(None),
    type,
    FunctionType,
    BuiltinFunctionType,
    torch.dtype,
}
"""Types of values that a copy has as they are."""

_CONTAINERS = {dict, OrderedDict, set}


def copy_sharing_weights(
    model: AnyModule, parameter_of: AsParameter = lambda parameter: parameter
) -> AnyModule:
    """Copy the modules of a model but share its buffers and parameters.

    ``parameter_of`` replaces each parameter. Default: the parameter itself, so gradients of the copy
    accumulate in the model. Hooks are copied. Other threads may use and train the model meanwhile.
    """
    modules = list(model.modules())
    states = [vars(module).copy() for module in modules]  # At once: another thread may add an attribute.
    for state in states:
        state.pop("_compiled_call_impl", None)  # It would run the model, not the copy.
    memo: dict[int, Any] = {id(module): object.__new__(type(module)) for module in modules}
    for state in states:
        for name in SHARED:
            memo.setdefault(id(state.get(name)), state.get(name))
        _copy_tensors((state, state["_parameters"].copy(), state["_buffers"].copy()), memo, parameter_of)
    for module, state in zip(modules, states, strict=True):
        attributes = vars(memo[id(module)])
        for name, value in state.items():
            kind = type(value)
            if kind in _ATOMS:
                attributes[name] = value
            elif kind in _CONTAINERS:
                attributes[name] = (
                    _copy_values(value.copy(), memo, hooks="hooks" in name) if value else kind()
                )
            else:
                attributes[name] = deepcopy(value, memo)
    copy_of_model: AnyModule = memo[id(model)]
    return copy_of_model


def _copy_tensors(
    attributes: Iterable[Mapping[str, Any]], memo: dict[int, Any], parameter_of: AsParameter
) -> None:
    """Record the tensor of a copy for each tensor of a module, one parameter for all of its names."""
    for values in attributes:
        for tensor in values.values():
            if isinstance(tensor, Tensor) and id(tensor) not in memo:
                memo[id(tensor)] = parameter_of(tensor) if type(tensor) is nn.Parameter else tensor


def _copy_values(values: Any, memo: dict[int, Any], *, hooks: bool) -> Any:
    """Copy the values of a container.

    Hooks stay the same objects unless they are methods of a copied module.
    """
    if isinstance(values, set):
        return deepcopy(values, memo)
    for name, value in values.items():
        if id(value) in memo:
            values[name] = memo[id(value)]
        elif not hooks or (isinstance(value, MethodType) and id(value.__self__) in memo):
            values[name] = deepcopy(value, memo)
    return values


def evaluation_copy(model: AnyModule) -> AnyModule:
    """Return a copy that shares the numbers of a model, without gradients and in evaluation mode."""

    def parameter_of(parameter: nn.Parameter) -> nn.Parameter:
        return nn.Parameter(parameter.detach(), requires_grad=False)

    return copy_sharing_weights(model, parameter_of).eval()


def differentiable_copy(model: AnyModule) -> AnyModule:
    """Return a copy in evaluation mode with the model's current numbers and separate gradients.

    It holds a second copy of the weights: numbers that a gradient is computed from must not change before the
    gradient is available. A parameter requires gradients where it does in the model.
    """

    def parameter_of(parameter: nn.Parameter) -> nn.Parameter:
        return nn.Parameter(parameter.detach().clone(), requires_grad=parameter.requires_grad)

    return copy_sharing_weights(model, parameter_of).eval()


def recomputing(model_copy: nn.Module) -> AbstractContextManager[object]:
    """Recompute the layers of a copy for the gradients, if its model recomputes them in training.

    transformers runs a layer again when the hooks and languages of its first run are gone.
    """
    has_recomputation = keep_activations(model_copy)
    return recomputed_layers(model_copy) if has_recomputation and model_copy.training else nullcontext()


def keep_activations(model_copy: nn.Module) -> bool:
    """Turn off the recomputation of a copy's layers for gradients, and return whether any had it on."""
    has_recomputation = False
    for layer in transformer_layers(model_copy).values():
        has_recomputation |= bool(getattr(layer, "gradient_checkpointing", False))
        vars(layer)["gradient_checkpointing"] = False
    return has_recomputation
