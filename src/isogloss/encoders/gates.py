"""Gates over an encoder's parameters: for each weight or row of a matrix, attention head, or neuron.

A gate between 0 (pruned) and 1 (kept) is multiplied with parameters. Biases share their row's gate; norms and
embeddings have none. Gates of heads and neurons multiply their columns of the output projection; parameters
that lead to a closed one have no effect, and count as pruned. Parameters are found by the family's sites.

While they are learned they are hard-concrete: Louizos, Welling & Kingma (2018), "Learning Sparse Neural
Networks through L0 Regularization", Sections 2.2 and 4. A binary concrete number is stretched to a little
below 0 and above 1 and clamped, so that ends have a probability, and the expected number of open gates has a
closed form that gradients go through.

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
from isogloss.data.result_files import ABOVE, ENDING, LOG_ALPHA, MASKS, read_tensors
from isogloss.encoders.added.language_modules import encoder_of, language_site
from isogloss.encoders.families import family_of
from isogloss.encoders.family import Site
from isogloss.encoders.folders import differing_shapes
from isogloss.encoders.loading import load_whole
from isogloss.encoders.saving import save_model
from isogloss.encoders.tokenizers import load_tokenizer

STRETCH = (-0.1, 1.1)
"""γ and ζ, the ends before clamping (their Section 4)."""

TEMPERATURE = 2 / 3
"""β (their Section 4; Maddison et al. 2017)."""

SHARE_TOLERANCE, MAX_NEWTON_STEPS = 1e-6, 60
"""Tolerance of a requested share, and the most steps of Newton's method."""

SHARE_ROUNDING = 1e-9
"""Tolerance of shares: 1 - 0.3 is a little less than 0.7 in floating point."""

_LOW, _HIGH = STRETCH

CLOSED_BELOW = math.log(-_LOW / _HIGH)
"""The log α at and below which a gate is closed once it is settled."""

_SHIFT = TEMPERATURE * CLOSED_BELOW


def sample(log_alpha: Float[Tensor, "..."], generator: torch.Generator) -> Float[Tensor, "..."]:
    """Draw gates (their Eqs. 10 and 11); gradients reach log α through those that are not clamped.

    The generator is on the device of log α.
    """
    tiny = torch.finfo(log_alpha.dtype).eps
    u = torch.rand(log_alpha.shape, generator=generator, dtype=log_alpha.dtype, device=log_alpha.device)
    u = u.clamp(tiny, 1 - tiny)
    return settled((u.log() - (-u).log1p() + log_alpha) / TEMPERATURE)


def settled(log_alpha: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Return the gates a trained model is used with (their Eq. 13), from 0 to 1."""
    return (log_alpha.sigmoid() * (_HIGH - _LOW) + _LOW).clamp(0, 1)


def open_probability(log_alpha: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Return P(gate ≠ 0) (their Eq. 12); its sum is the expected number of open gates."""
    return (log_alpha - _SHIFT).sigmoid()


def log_alpha_for(probability: float) -> float:
    """Return the log α of a gate that is open with some probability, above 0 and below 1."""
    return math.log(probability) - math.log1p(-probability) + _SHIFT


def kept_share(log_alpha: Float[Tensor, " gate"], sizes: Float[Tensor, " gate"]) -> Float[Tensor, ""]:
    """Return the expected share of the parameters that is kept, where gates have ``sizes`` of them."""
    return open_probability(log_alpha) @ sizes / sizes.sum()


def shifted(
    log_alpha: Float[Tensor, " gate"], sizes: Float[Tensor, " gate"], share: float
) -> Float[Tensor, " gate"]:
    """Shift all log α by one number so that an expected share is kept, above 0 and below 1.

    To first order the share is constant along gradients: the gain of one gate is the loss of all together.
    """
    shift = _shift(log_alpha.detach(), sizes, share)
    open_now = open_probability(log_alpha.detach() + shift)
    slopes = open_now * (1 - open_now) * sizes
    centre = log_alpha @ slopes / slopes.sum()
    return log_alpha + shift - (centre - centre.detach())


def _shift(log_alpha: Float[Tensor, " gate"], sizes: Float[Tensor, " gate"], share: float) -> float:
    """Return the number by Newton's method, by halving where that leaves the interval it must lie in."""
    low, high = (log_alpha_for(share) - float(end) for end in (log_alpha.max(), log_alpha.min()))
    shift = (low + high) / 2
    for _ in range(MAX_NEWTON_STEPS):
        open_now = open_probability(log_alpha + shift)
        missed = float(open_now @ sizes / sizes.sum()) - share
        if abs(missed) < SHARE_TOLERANCE:
            break
        low, high = (low, shift) if missed > 0 else (shift, high)
        slope = float((open_now * (1 - open_now)) @ sizes / sizes.sum())
        newton = shift - missed / slope if slope > 0 else low
        shift = newton if low < newton < high else (low + high) / 2
    return shift


def largest_kept(log_alpha: Float[Tensor, " gate"], sizes: Float[Tensor, " gate"], share: float) -> float:
    """Return the log α above which lie the largest ones that have at most a share of all parameters."""
    order = log_alpha.argsort(descending=True)
    so_far = sizes[order].double().cumsum(dim=0)
    count = int((so_far <= share * so_far[-1] * (1 + SHARE_ROUNDING)).sum())
    return float(log_alpha[order[count]]) if count < len(order) else -math.inf


ATTENTION, FEED_FORWARD = "attention", "feed-forward"
NONE = "none"
OfAttention = Literal["weight", "row", "head", "none"]
OfFeedForward = Literal["weight", "row", "neuron", "none"]
OF_ATTENTION: tuple[str, ...] = get_args(OfAttention)
OF_FEED_FORWARD: tuple[str, ...] = get_args(OfFeedForward)
"""Kinds of units with a gate each."""


@dataclass(frozen=True, kw_only=True)
class GateKinds:
    """The units with gates in attention and in feed-forward; "none" for no gates."""

    attention: str = "row"
    feed_forward: str = "row"

    def __post_init__(self) -> None:
        """Raise ConfigError for an unknown kind."""
        check_named("gates: attention", "kind of gate", OF_ATTENTION, self.attention)
        check_named("gates: feed_forward", "kind of gate", OF_FEED_FORWARD, self.feed_forward)


@dataclass(frozen=True)
class Member:
    """A parameter with gates of a group, and how they are broadcast over it."""

    name: str
    """Dotted name in the model."""
    dim: Literal["rows", "columns", "numbers"]
    per_gate: int = 1
    """Consecutive rows or columns per gate."""
    times: int = 1
    """Repetitions of the whole set of gates."""

    def broadcast(self, gates: Tensor, parameter: Tensor) -> Tensor:
        """Return gates in a shape that can be multiplied with the parameter."""
        if self.dim == "numbers":
            return gates
        repeated = gates.view(1, -1, 1).expand(self.times, -1, self.per_gate).reshape(-1)
        return repeated if self.dim == "columns" or parameter.ndim == 1 else repeated.unsqueeze(-1)


@dataclass(frozen=True, kw_only=True)
class GateGroup:
    """Gates of one kind in a layer: of a matrix, of all heads, or of all neurons."""

    name: str
    """The same in an encoder and in a model with a head, for all languages."""
    layer: int
    """From 1."""
    module: str
    """attention or feed-forward."""
    shape: tuple[int, ...]
    parameters: int
    """Parameters pruned per gate."""
    gated_parameters: tuple[Member, ...]
    """The parameters multiplied by the gates."""
    inactive_parameters: tuple[Member, ...] = ()
    """Further parameters without effect where a gate is 0."""

    @property
    def size(self) -> int:
        """Number of gates."""
        return int(torch.Size(self.shape).numel())


def gate_groups(model: nn.Module, kinds: GateKinds, *, language: str = "") -> list[GateGroup]:
    """Return the groups of an encoder, or of a model's encoder, from the first layer to the last.

    With language modules, those of the language are gated, under the same names.
    """
    sites = family_of(model).sites(model)
    if language:
        sites = [language_site(model, site, language) for site in sites]
    return [group for site in sites for group in _groups(model, site, kinds)]


@contextmanager
def gated(model: nn.Module, groups: Sequence[GateGroup], gates: Mapping[str, Tensor]) -> Iterator[None]:
    """Run a model with its parameters multiplied by gates, with gradients for the gates.

    The parameters are unchanged. Groups without gates are left open.
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
            # An attribute hides the parameter of its name, which stays registered. Without gradient it is a
            # parameter itself, so that scoring can convert its dtype.
            frozen = not product.requires_grad
            vars(module)[name] = nn.Parameter(product, requires_grad=False) if frozen else product
        yield
    finally:
        for module, name, hidden, parameter in originals:
            vars(module).pop(name, None)
            setattr(module, name, parameter)
            if hidden is not None:
                vars(module)[name] = hidden


def prune(model: nn.Module, groups: Sequence[GateGroup], gates: Mapping[str, Tensor]) -> None:
    """Multiply a model's parameters by their gates permanently; parameters without effect become 0."""
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
        yield _units(model, site, (ATTENTION, "heads"), site.attention_output, heads)
    elif kinds.attention != NONE:
        yield from _of_matrices(model, site, ATTENTION, kinds.attention)
    if kinds.feed_forward == "neuron":
        neurons = _linear(model, site.feed_forward_out).in_features
        yield _units(model, site, (FEED_FORWARD, "neurons"), site.feed_forward_out, neurons)
    elif kinds.feed_forward != NONE:
        yield from _of_matrices(model, site, FEED_FORWARD, kinds.feed_forward)


def _of_matrices(model: nn.Module, site: Site, module: str, kind: str) -> Iterator[GateGroup]:
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


def _units(model: nn.Module, site: Site, what: tuple[str, str], out: str, count: int) -> GateGroup:
    """Return the gates of all heads or neurons, over their columns of the output projection."""
    module, name = what
    wide = _linear(model, out).in_features
    gated_columns = Member(f"{out}.weight", "columns", per_gate=wide // count)
    # Rows of keys and values that several heads share have an effect while one of these is open.
    leading = [
        (inner, linear)
        for _, inner, linear in _matrices(model, site, module)
        if inner != out and not linear.out_features % wide
    ]
    inactive = [
        Member(f"{inner}.{part}", "rows", per_gate=wide // count, times=linear.out_features // wide)
        for inner, linear in leading
        for part in ("weight", "bias")
        if getattr(linear, part) is not None
    ]
    numbers = sum(model.get_parameter(member.name).numel() for member in (gated_columns, *inactive))
    return GateGroup(
        name=f"layer.{site.layer}.{module}.{name}",
        layer=site.layer,
        module=module,
        shape=(count,),
        parameters=numbers // count,
        gated_parameters=(gated_columns,),
        inactive_parameters=tuple(inactive),
    )


def _matrices(model: nn.Module, site: Site, module: str) -> Iterator[tuple[str, str, nn.Linear]]:
    """Yield group name, module name and module of each linear layer, but languages' adapters."""
    for top in site.attention if module == ATTENTION else site.feed_forward:
        outside = top.rpartition(".")[0]
        for name, part in model.get_submodule(top).named_modules(prefix=top):
            of_language = site.own_adapters and name.startswith(f"{site.own_adapters}.")
            if isinstance(part, nn.Linear) and not of_language:
                yield f"layer.{site.layer}{name.removeprefix(outside)}", name, part


def _linear(model: nn.Module, name: str) -> nn.Linear:
    return cast("nn.Linear", model.get_submodule(name))


@dataclass(frozen=True, kw_only=True)
class Mask:
    """The gates learned for a language in one draw."""

    language: str
    draw: int
    """Number of the repetition, from 0."""
    kinds: GateKinds
    log_alpha: Mapping[str, Tensor]
    """log α by group of gates (π in the paper)."""
    above: float = CLOSED_BELOW
    """Gates with log α above this are kept."""

    def kept(self, group: str) -> Tensor:
        """Return [gate]: whether each gate of a group is kept."""
        return self.log_alpha[group] > self.above

    def gates(self) -> dict[str, Tensor]:
        """Return the binary gates of each group: 0 (pruned) or 1 (kept)."""
        return {name: self.kept(name).to(log_alpha.dtype) for name, log_alpha in self.log_alpha.items()}


def mask_tensors(masks: Iterable[Mask]) -> dict[str, Tensor]:
    """Return the tensors of masks by their names in a file."""
    tensors: dict[str, Tensor] = {}
    for mask in masks:
        key = f"{mask.language}/{mask.draw}"
        tensors[f"{ABOVE}/{key}"] = torch.tensor(mask.above)
        tensors |= {f"{LOG_ALPHA}/{key}/{name}": log_alpha for name, log_alpha in mask.log_alpha.items()}
    return tensors


def read_masks(path: Path) -> list[Mask]:
    """Read all masks of a file, by language and draw; StorageError for missing, damaged or other files."""
    arrays, metadata = read_tensors(path)
    tensors = [(name.split("/", 3), torch.from_numpy(array)) for name, array in arrays.items()]
    above = {(key[1], int(key[2])): float(tensor) for key, tensor in tensors if key[0] == ABOVE}
    if not above or not {"attention", "feed_forward"} <= metadata.keys():
        raise StorageError(f"{path}: this file holds no masks. Give the {MASKS}{ENDING} of language-gates.")
    kinds = GateKinds(attention=str(metadata["attention"]), feed_forward=str(metadata["feed_forward"]))
    groups: dict[tuple[str, int], dict[str, Tensor]] = {mask: {} for mask in sorted(above)}
    for key, tensor in tensors:
        if key[0] == LOG_ALPHA:
            groups[key[1], int(key[2])][key[3]] = tensor
    return [
        Mask(language=language, draw=draw, kinds=kinds, log_alpha=log_alpha, above=above[language, draw])
        for (language, draw), log_alpha in groups.items()
    ]


def read_mask(path: Path, language: str, *, draw: int = 0) -> Mask:
    """Read a language's mask; ConfigError with the available ones if it is missing."""
    masks = {(mask.language, mask.draw): mask for mask in read_masks(path)}
    if (language, draw) in masks:
        return masks[language, draw]
    check_named(str(path), "mask of", sorted({code for code, _ in masks}), language)
    draws = sum(code == language for code, _ in masks)
    raise ConfigError(f"{path}: no draw {draw} of {language}. There are {draws}, counted from 0.")


def prune_encoder(source: str | Path, mask: Mask, folder: Path) -> None:
    """Save an encoder pruned with a mask as an ordinary folder, including head, pooler and tokenizer.

    With language modules, those of the mask's language and shared parameters are pruned. ModelError for a
    mask of an encoder of other shapes.
    """
    model, tokenizer = load_whole(source), load_tokenizer(source)
    groups = gate_groups(model, mask.kinds, language=mask.language)
    for name, shape, expected in differing_shapes({group.name: group for group in groups}, mask.log_alpha):
        raise ModelError(
            f"{source}: this mask of {mask.language} belongs to another encoder: {name} has gates of "
            f"the shape {shape} in the mask and {expected} here. Give the encoder it was "
            f"learned on, or one made from it."
        )
    prune(model, groups, mask.gates())
    save_model(model, tokenizer, folder)
