"""Changes of a part of a model: by the part of another model, by a random direction, or by its removal.

With the parameters θ_P of a part P, and θ' of another model:

    swap:    θ_P ← θ'_P
    strip:   θ_P ← 0; norms become the identity (weight 1, bias 0) and IA3 scales by 1
    random:  θ_P ← θ_P + ε, where each row of a matrix, and each vector, of ε is as long as that of θ'_P - θ_P

Where a part adds to its input, as adapters, LoRA, attention and feed-forward do, stripping removes it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

import torch
from torch import Tensor, nn

from isogloss.core.errors import ModelError
from isogloss.core.identity import derive
from isogloss.diagnostics.weight_space import replaced_parameters
from isogloss.features.module_swap.parts import ModelParts, is_norm, match_parameters
from isogloss.features.module_swap.rows import Change

SWAP, STRIP, RANDOM = "swap", "strip", "random"

MATRIX = 2
"""Dimensions from which on a parameter has rows."""

NONE = "none"
"""The part and the change of a model as it is."""

MAGNITUDE = "lora_magnitude_vector"
"""Name of the magnitudes of DoRA in peft."""

SCALES = ("ia3_l", "ia3_ff")
"""Names of the vectors of IA3 in peft."""


def swapped_weights(
    model: nn.Module, other: nn.Module, parts: Mapping[str, str], function: str
) -> dict[str, Tensor]:
    """Return the weights that replace the weights of parts, by the names of the model's parameters.

    ``parts`` names the part of the other model for each part of the model. Raises ConfigError for an unknown
    part, ModelError where the parts do not fit.
    """
    models = (model, other)
    both_parts = (ModelParts.of(model), ModelParts.of(other))
    others = dict(other.named_parameters())
    parameters = dict(model.named_parameters())
    weights: dict[str, Tensor] = {}
    for names in parts.items():
        for name, other_name in match_parameters(models, both_parts, names).items():
            weight = others[other_name].detach()
            shapes = [list(values.shape) for values in (parameters[name], weight)]
            if shapes[0] != shapes[1]:
                raise ModelError(
                    f"{function}: part {names[0]!r}: {name} has the shape {shapes[0]}, and in the other "
                    f"model {shapes[1]}. Give models of one architecture, or another part."
                )
            weights[name] = weight.to(parameters[name])
    return weights


def stripped_weights(model: nn.Module, parts: Sequence[str], function: str) -> dict[str, Tensor]:
    """Return the weights without the contribution of parts, by the names of the model's parameters.

    Raises ConfigError for an unknown part, ModelError for adapters of DoRA.
    """
    own_parts = ModelParts.of(model)
    parameters = dict(model.named_parameters())
    weights = {}
    for name in dict.fromkeys(name for part in parts for name in own_parts.select(part)):
        path, _, leaf = name.rpartition(".")
        if MAGNITUDE in name:
            raise ModelError(
                f"{function}: {name} is a magnitude of DoRA, which has no neutral value. Swap the part, or "
                f"merge the adapters."
            )
        module = model.get_submodule(path)
        if is_norm(module) and leaf == "weight":
            weights[name] = _neutral_scale(module)
        elif any(scale in path.split(".") for scale in SCALES):
            weights[name] = torch.ones_like(parameters[name]).detach()
        else:
            weights[name] = torch.zeros_like(parameters[name]).detach()
    return weights


def _neutral_scale(norm: nn.Module) -> Tensor:
    """Return the weight with which a norm does not scale: 1, or 0 where 1 is added to it (Gemma)."""
    weight = norm.get_parameter("weight").detach()
    if isinstance(norm, nn.modules.batchnorm._BatchNorm):
        return torch.ones_like(weight)
    zeros = {name: torch.zeros_like(value) for name, value in norm.named_parameters()}
    states = torch.linspace(-1, 1, weight.numel()).to(weight).view(1, *weight.shape)
    with torch.no_grad():
        output = torch.func.functional_call(norm, zeros, (states,))
    return torch.zeros_like(weight) if bool(output.any()) else torch.ones_like(weight)


def perturbed_weights(
    model: nn.Module, replacements: Mapping[str, Tensor], *, seed: int
) -> dict[str, Tensor]:
    """Return weights moved as far as their replacements are, in random directions that ``seed`` decides.

    Each row of a matrix, and each vector, moves as far as it does; rows that stay do not move.
    """
    parameters = dict(model.named_parameters())
    weights = {}
    for name, replacement in replacements.items():
        weight = parameters[name].detach()
        generator = torch.Generator().manual_seed(derive(seed, "perturbation", name))
        noise = torch.randn(weight.shape, generator=generator).to(weight)
        change = replacement.to(weight) - weight
        rows, changes = (_as_rows(values) for values in (noise, change))
        lengths = changes.norm(dim=1, keepdim=True)
        steps = (rows / rows.norm(dim=1, keepdim=True) * lengths).view_as(weight)
        is_moved = (lengths > 0).expand_as(rows).reshape(weight.shape)
        weights[name] = torch.where(is_moved, weight + steps, weight)
    return weights


def _as_rows(values: Tensor) -> Tensor:
    return values.flatten(1) if values.ndim >= MATRIX else values.reshape(1, -1)


@dataclass(frozen=True, kw_only=True)
class PartChange:
    """One change of a part of one of two models, the start and the end."""

    model: int
    """0: the start is changed, with parts of the end. 1: the end, with parts of the start."""
    part: str
    """Name of the part. "none": the model stays as it is."""
    change: str
    draw: int = 0
    """Number of a random direction."""

    def make_weights(self, models: Sequence[nn.Module], *, seed: int, function: str) -> dict[str, Tensor]:
        """Return the weights to replace, by the names of the changed model's parameters."""
        model = models[self.model]
        if self.part == NONE:
            return {}
        if self.change == STRIP:
            return stripped_weights(model, [self.part], function)
        swapped = swapped_weights(model, models[1 - self.model], {self.part: self.part}, function)
        if self.change == SWAP:
            return swapped
        return perturbed_weights(model, swapped, seed=derive(seed, self.part, self.draw))


def list_changes(
    models: Sequence[nn.Module],
    parts: Sequence[str] | None,
    changes: Sequence[Change],
    *,
    draws: int,
    function: str,
) -> list[PartChange]:
    """Return the changes of all parts of both models, each model first as it is.

    ``parts`` Default: all parts, layers and kinds. Raises ConfigError for an unknown part, ModelError where
    the models do not fit.
    """
    planned = []
    for index, model in enumerate(models):
        planned.append(PartChange(model=index, part=NONE, change=NONE))
        for part in ModelParts.of(model).expand(parts):
            swapped_weights(model, models[1 - index], {part: part}, function)
            for change in changes:
                numbers = range(draws) if change == RANDOM else range(1)
                planned += [
                    PartChange(model=index, part=part, change=change, draw=number) for number in numbers
                ]
    return planned


class ChangedModel(NamedTuple):
    """A model with one changed part, while it is changed."""

    change: PartChange
    network: nn.Module
    parameters: int
    """Parameters in the part."""
    norm: float
    """Length of the change."""


def visit_changes(
    models: Sequence[nn.Module], planned: Sequence[PartChange], *, seed: int, function: str
) -> Iterator[ChangedModel]:
    """Change one of the models, yield it, and change it back, for each planned change.

    The models must not be shared with other threads.
    """
    for change in planned:
        network = models[change.model]
        weights = change.make_weights(models, seed=seed, function=function)
        parameters = dict(network.named_parameters())
        differences = (weight.double() - parameters[name].double() for name, weight in weights.items())
        norm = sqrt(sum(float(difference.square().sum()) for difference in differences))
        replacements = {name: nn.Parameter(weight, requires_grad=False) for name, weight in weights.items()}
        with replaced_parameters(network, replacements):
            yield ChangedModel(change, network, sum(weight.numel() for weight in weights.values()), norm)
