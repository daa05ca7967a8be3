"""Gates over an encoder's parameters: for each weight or row of a matrix, attention head, or neuron.

A gate between 0 (pruned) and 1 (kept) is multiplied with parameters. Biases share their row's gate; norms and
embeddings have none. Gates of heads and neurons multiply their columns of the output projection. Parameters
that lead to a closed gate have no effect, and count as pruned. Parameters are found by the family's sites.

While they are learned they are hard-concrete: Louizos, Welling & Kingma (2018), "Learning Sparse Neural
Networks through L0 Regularization", Sections 2.2 and 4. A binary concrete number is stretched to a little
below 0 and above 1 and clamped, so that 0 and 1 have a probability, and the expected number of open gates has
a differentiable closed form.

The gates learned for a language are its mask. The diagnostic language-gates writes masks to a file next to
its record; an encoder pruned with a mask is saved as an ordinary folder.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast, get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn

from isogloss.core.errors import ConfigError, ModelError, StorageError, check_named
from isogloss.data.result_files import ENDING, read_tensors
from isogloss.encoders.added.language_modules import encoder_of, language_site
from isogloss.encoders.families import family_of
from isogloss.encoders.family import Site
from isogloss.encoders.folders import differing_shapes
from isogloss.encoders.loading import load_whole
from isogloss.encoders.saving import save_model
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.language_gates.gate_files import ABOVE, LOG_ALPHA, MASKS

STRETCH = (-0.1, 1.1)
"""γ and ζ, the ends before clamping (their Section 4)."""

TEMPERATURE = 2 / 3
"""β (their Section 4; Maddison et al. 2017)."""

SHARE_TOLERANCE = 1e-6
"""Tolerance of a requested share."""

MAX_NEWTON_STEPS = 60
"""Maximum steps of Newton's method."""

SHARE_ROUNDING = 1e-9
"""Tolerance of shares: 1 - 0.3 is a little less than 0.7 in floating point."""

_LOW, _HIGH = STRETCH

CLOSED_BELOW = math.log(-_LOW / _HIGH)
"""Value of log α at or below which a settled gate is closed."""

_SHIFT = TEMPERATURE * CLOSED_BELOW


def sample(log_alpha: Float[Tensor, "..."], generator: torch.Generator) -> Float[Tensor, "..."]:
    """Draw gates (their Eqs. 10 and 11). Gradients reach log α through gates that are not clamped.

    The generator is on the device of log α.
    """
    tiny = torch.finfo(log_alpha.dtype).eps
    u = torch.rand(log_alpha.shape, generator=generator, dtype=log_alpha.dtype, device=log_alpha.device)
    u = u.clamp(tiny, 1 - tiny)
    return settle((u.log() - (-u).log1p() + log_alpha) / TEMPERATURE)


def settle(log_alpha: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Return the gates of a trained model (their Eq. 13), from 0 to 1."""
    return (log_alpha.sigmoid() * (_HIGH - _LOW) + _LOW).clamp(0, 1)


def open_probability(log_alpha: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Return P(gate ≠ 0) (their Eq. 12). Its sum is the expected number of open gates."""
    return (log_alpha - _SHIFT).sigmoid()


def log_alpha_for(probability: float) -> float:
    """Return the log α of a gate that is open with a probability between 0 and 1, exclusive."""
    return math.log(probability) - math.log1p(-probability) + _SHIFT


def kept_share(log_alpha: Float[Tensor, " gate"], sizes: Float[Tensor, " gate"]) -> Float[Tensor, ""]:
    """Return the expected share of kept parameters, with ``sizes`` parameters per gate."""
    return open_probability(log_alpha) @ sizes / sizes.sum()


def shift_to_share(
    log_alpha: Float[Tensor, " gate"], sizes: Float[Tensor, " gate"], share: float
) -> Float[Tensor, " gate"]:
    """Shift all log α by one number to keep an expected share of the parameters, between 0 and 1.

    To first order the share is constant along gradients: the gain of one gate is the loss of all together.
    """
    shift = _shift(log_alpha.detach(), sizes, share)
    open_now = open_probability(log_alpha.detach() + shift)
    slopes = open_now * (1 - open_now) * sizes
    centre = log_alpha @ slopes / slopes.sum()
    return log_alpha + shift - (centre - centre.detach())


def _shift(log_alpha: Float[Tensor, " gate"], sizes: Float[Tensor, " gate"], share: float) -> float:
    """Return the number by Newton's method, with bisection for steps out of the current interval."""
    minimum = log_alpha_for(share) - float(log_alpha.max())
    maximum = log_alpha_for(share) - float(log_alpha.min())
    shift = (minimum + maximum) / 2
    for _ in range(MAX_NEWTON_STEPS):
        open_now = open_probability(log_alpha + shift)
        excess = float(open_now @ sizes / sizes.sum()) - share
        if abs(excess) < SHARE_TOLERANCE:
            break
        if excess > 0:
            maximum = shift
        else:
            minimum = shift
        slope = float((open_now * (1 - open_now)) @ sizes / sizes.sum())
        newton = shift - excess / slope if slope > 0 else minimum
        shift = newton if minimum < newton < maximum else (minimum + maximum) / 2
    return shift


def largest_kept(log_alpha: Float[Tensor, " gate"], sizes: Float[Tensor, " gate"], share: float) -> float:
    """Return the log α above which the largest ones have at most a share of all parameters."""
    order = log_alpha.argsort(descending=True)
    so_far = sizes[order].double().cumsum(dim=0)
    count = int((so_far <= share * so_far[-1] * (1 + SHARE_ROUNDING)).sum())
    return float(log_alpha[order[count]]) if count < len(order) else -math.inf


ATTENTION = "attention"
FEED_FORWARD = "feed-forward"
NONE = "none"
OfAttention = Literal["weight", "row", "head", "none"]
OfFeedForward = Literal["weight", "row", "neuron", "none"]
OF_ATTENTION: tuple[str, ...] = get_args(OfAttention)
OF_FEED_FORWARD: tuple[str, ...] = get_args(OfFeedForward)
"""Kinds of units with a gate each."""


@dataclass(frozen=True, kw_only=True)
class GateKinds:
    """Kinds of units with gates in attention and in feed-forward, or "none" for no gates."""

    attention: str = "row"
    feed_forward: str = "row"

    def __post_init__(self) -> None:
        """Raise ConfigError for an unknown kind."""
        check_named("gates: attention", "kind of gate", OF_ATTENTION, self.attention)
        check_named("gates: feed_forward", "kind of gate", OF_FEED_FORWARD, self.feed_forward)


@dataclass(frozen=True)
class Member:
    """A parameter with gates of a group, and the way they are broadcast over it."""

    name: str
    """Dotted name in the model."""
    dim: Literal["rows", "columns", "numbers"]
    per_gate: int = 1
    """Number of consecutive rows or columns per gate."""
    times: int = 1
    """Number of repetitions of the whole set of gates."""

    def broadcast(self, gates: Tensor, parameter: Tensor) -> Tensor:
        """Return gates in a shape that can be multiplied with the parameter."""
        if self.dim == "numbers":
            return gates
        expanded_gates = gates.view(1, -1, 1).expand(self.times, -1, self.per_gate).reshape(-1)
        return (
            expanded_gates if self.dim == "columns" or parameter.ndim == 1 else expanded_gates.unsqueeze(-1)
        )


@dataclass(frozen=True, kw_only=True)
class GateGroup:
    """Gates of one kind in a layer: for a matrix, all heads, or all neurons."""

    name: str
    """Name, which is the same in an encoder and in a model with a head, and for all languages."""
    layer: int
    """Layer number from 1."""
    module: str
    """Sub-layer: attention or feed-forward."""
    shape: tuple[int, ...]
    parameters: int
    """Number of parameters pruned per gate."""
    gated_parameters: tuple[Member, ...]
    """Parameters that are multiplied by the gates."""
    inactive_parameters: tuple[Member, ...] = ()
    """Further parameters, which have no effect if a gate is 0."""

    @property
    def size(self) -> int:
        """Number of gates."""
        return int(torch.Size(self.shape).numel())


def gate_groups(model: nn.Module, kinds: GateKinds, *, language: str = "") -> list[GateGroup]:
    """Return the groups of an encoder, or of a model's encoder, from the first layer to the last.

    With language modules, the language's modules have gates under the same names.
    """
    sites = family_of(model).sites(model)
    if language:
        sites = [language_site(model, site, language) for site in sites]
    return [group for site in sites for group in _groups(model, site, kinds)]


@contextmanager
def with_gates(model: nn.Module, groups: Sequence[GateGroup], gates: Mapping[str, Tensor]) -> Iterator[None]:
    """Run a model with its parameters multiplied by gates, with gradients for the gates.

    The parameters are unchanged. Groups without gates stay open.
    """
    members = [
        (model.get_submodule(module), name, member, gates[group.name])
        for group in groups
        if group.name in gates
        for member in group.gated_parameters
        for module, _, name in [member.name.rpartition(".")]
    ]
    originals = [
        (module, name, vars(module).get(name), module.get_parameter(name)) for module, name, *_ in members
    ]
    try:
        for module, name, member, gate in members:
            weight = getattr(module, name)
            product = weight.detach() * member.broadcast(gate.to(weight.dtype), weight)
            # An attribute hides the parameter of the same name, which stays registered. Without gradient it
            # is a parameter itself, so that scoring can convert its dtype.
            is_frozen = not product.requires_grad
            vars(module)[name] = nn.Parameter(product, requires_grad=False) if is_frozen else product
        yield
    finally:
        for module, name, hidden, parameter in originals:
            vars(module).pop(name, None)
            setattr(module, name, parameter)
            if hidden is not None:
                vars(module)[name] = hidden


def prune(model: nn.Module, groups: Sequence[GateGroup], gates: Mapping[str, Tensor]) -> None:
    """Multiply a model's parameters by their gates permanently.

    Parameters without effect become 0.
    """
    with torch.no_grad():
        for group in groups:
            gate = gates[group.name]
            for member in group.gated_parameters:
                _multiply(model, member, gate)
            for member in group.inactive_parameters:
                _multiply(model, member, gate > 0)


def _multiply(model: nn.Module, member: Member, gates: Tensor) -> None:
    parameter = model.get_parameter(member.name)
    parameter.mul_(member.broadcast(gates.to(parameter.device, parameter.dtype), parameter))


def _groups(model: nn.Module, site: Site, kinds: GateKinds) -> Iterator[GateGroup]:
    if kinds.attention == "head":
        heads = int(encoder_of(model).config.num_attention_heads)
        yield _unit_group(model, site, (ATTENTION, "heads"), site.attention_output, heads)
    elif kinds.attention != NONE:
        yield from _matrix_groups(model, site, ATTENTION, kinds.attention)
    if kinds.feed_forward == "neuron":
        neurons = _linear(model, site.feed_forward_out).in_features
        yield _unit_group(model, site, (FEED_FORWARD, "neurons"), site.feed_forward_out, neurons)
    elif kinds.feed_forward != NONE:
        yield from _matrix_groups(model, site, FEED_FORWARD, kinds.feed_forward)


def _matrix_groups(model: nn.Module, site: Site, module: str, kind: str) -> Iterator[GateGroup]:
    """Yield the gates of each matrix in a sub-layer: one per weight, or per row and its bias."""
    for key, name, linear in _matrices(model, site, module):
        members = [Member(f"{name}.weight", "numbers" if kind == "weight" else "rows")]
        if kind == "row" and linear.bias is not None:
            members.append(Member(f"{name}.bias", "rows"))
        yield GateGroup(
            name=key,
            layer=site.layer,
            module=module,
            shape=tuple(linear.weight.shape) if kind == "weight" else (linear.out_features,),
            parameters=1 if kind == "weight" else linear.in_features + len(members) - 1,
            gated_parameters=tuple(members),
        )


def _unit_group(
    model: nn.Module, site: Site, names: tuple[str, str], output_projection: str, count: int
) -> GateGroup:
    """Return the gates of all heads or neurons, over their columns of the output projection."""
    module, name = names
    width = _linear(model, output_projection).in_features
    gated_columns = Member(f"{output_projection}.weight", "columns", per_gate=width // count)
    # Rows of keys and values that several heads share have an effect while any of these heads is open.
    inputs = [
        (inner, linear)
        for _, inner, linear in _matrices(model, site, module)
        if inner != output_projection and not linear.out_features % width
    ]
    inactive = [
        Member(f"{inner}.{part}", "rows", per_gate=width // count, times=linear.out_features // width)
        for inner, linear in inputs
        for part in ("weight", "bias")
        if getattr(linear, part) is not None
    ]
    parameters = sum(model.get_parameter(member.name).numel() for member in (gated_columns, *inactive))
    return GateGroup(
        name=f"layer.{site.layer}.{module}.{name}",
        layer=site.layer,
        module=module,
        shape=(count,),
        parameters=parameters // count,
        gated_parameters=(gated_columns,),
        inactive_parameters=tuple(inactive),
    )


def _matrices(model: nn.Module, site: Site, module: str) -> Iterator[tuple[str, str, nn.Linear]]:
    """Yield group name, module name and module of each linear layer, except for languages' adapters."""
    for top in site.attention if module == ATTENTION else site.feed_forward:
        parent = top.rpartition(".")[0]
        for name, part in model.get_submodule(top).named_modules(prefix=top):
            is_adapter = site.own_adapters and name.startswith(f"{site.own_adapters}.")
            if isinstance(part, nn.Linear) and not is_adapter:
                yield f"layer.{site.layer}{name.removeprefix(parent)}", name, part


def _linear(model: nn.Module, name: str) -> nn.Linear:
    return cast("nn.Linear", model.get_submodule(name))


@dataclass(frozen=True, kw_only=True)
class Mask:
    """The gates learned for a language in one draw."""

    language: str
    draw: int
    """Index of the repetition, from 0."""
    kinds: GateKinds
    log_alpha: Mapping[str, Tensor]
    """log α by group of gates (π in the paper)."""
    above: float = CLOSED_BELOW
    """Gates with a larger log α are kept."""

    def find_kept(self, group: str) -> Tensor:
        """Return [gate]: whether each gate of a group is kept."""
        return self.log_alpha[group] > self.above

    def gates(self) -> dict[str, Tensor]:
        """Return the binary gates of each group: 0 (pruned) or 1 (kept)."""
        return {name: self.find_kept(name).to(log_alpha.dtype) for name, log_alpha in self.log_alpha.items()}


def mask_tensors(masks: Iterable[Mask]) -> dict[str, Tensor]:
    """Return the tensors of masks by their names in a file."""
    tensors: dict[str, Tensor] = {}
    for mask in masks:
        key = f"{mask.language}/{mask.draw}"
        tensors[f"{ABOVE}/{key}"] = torch.tensor(mask.above)
        tensors |= {f"{LOG_ALPHA}/{key}/{name}": log_alpha for name, log_alpha in mask.log_alpha.items()}
    return tensors


def read_masks(path: Path) -> list[Mask]:
    """Read all masks of a file, sorted by language and draw.

    Raises StorageError for missing, damaged or other files.
    """
    arrays, metadata = read_tensors(path)
    tensors = [(name.split("/", 3), torch.from_numpy(array)) for name, array in arrays.items()]
    thresholds = {(key[1], int(key[2])): float(tensor) for key, tensor in tensors if key[0] == ABOVE}
    if not thresholds or not {"attention", "feed_forward"} <= metadata.keys():
        raise StorageError(
            f"{path}: this file contains no masks. Give the {MASKS}{ENDING} of language-gates."
        )
    kinds = GateKinds(attention=str(metadata["attention"]), feed_forward=str(metadata["feed_forward"]))
    groups: dict[tuple[str, int], dict[str, Tensor]] = {mask: {} for mask in sorted(thresholds)}
    for key, tensor in tensors:
        if key[0] == LOG_ALPHA:
            groups[key[1], int(key[2])][key[3]] = tensor
    return [
        Mask(language=language, draw=draw, kinds=kinds, log_alpha=log_alpha, above=thresholds[language, draw])
        for (language, draw), log_alpha in groups.items()
    ]


def read_mask(path: Path, language: str, *, draw: int = 0) -> Mask:
    """Read a language's mask.

    Raises ConfigError, with the available ones, if it is missing.
    """
    masks = {(mask.language, mask.draw): mask for mask in read_masks(path)}
    if (language, draw) in masks:
        return masks[language, draw]
    check_named(str(path), "mask of", sorted({name for name, _ in masks}), language)
    draws = sum(name == language for name, _ in masks)
    raise ConfigError(f"{path}: no draw {draw} of {language}. There are {draws}, counted from 0.")


def prune_encoder(source: str | Path, mask: Mask, folder: Path) -> None:
    """Save an encoder pruned with a mask as an ordinary folder, including head, pooler and tokenizer.

    With language modules, the modules of the mask's language and shared parameters are pruned. Raises
    ModelError for a mask of an encoder with other shapes.
    """
    model = load_whole(source)
    tokenizer = load_tokenizer(source)
    groups = gate_groups(model, mask.kinds, language=mask.language)
    groups_by_name = {group.name: group for group in groups}
    for name, shape, encoder_shape in differing_shapes(groups_by_name, mask.log_alpha):
        raise ModelError(
            f"{source}: this mask of {mask.language} belongs to a different encoder: {name} has gates of "
            f"the shape {shape} in the mask and {encoder_shape} here. Give the encoder it was "
            f"learned on, or one trained from it."
        )
    prune(model, groups, mask.gates())
    save_model(model, tokenizer, folder)
