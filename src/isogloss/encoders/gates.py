"""Gates over an encoder's parameters: for each weight or row of a matrix, each attention head, each neuron.

A gate is a number from 0 (pruned) to 1 (kept) that parameters are multiplied by; biases go with their rows,
norms and embeddings have none. A head's gate multiplies what the output projection makes of the head, a
neuron's what the feed-forward's does of the neuron: once each, and where it is 0, all that leads there is
idle too and counts as pruned. Everything is found by the sites of the encoder's family.

The gates that were learned for a language are its mask. A measurement of gates (the diagnostic
language-gates) leaves masks beside its record; with one, an encoder is pruned for its language and saved as
an ordinary folder that everything else can start from.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

import torch
from torch import Tensor, nn

from isogloss.core.errors import ConfigError, ModelError, StorageError, unknown_name
from isogloss.core.records import Value
from isogloss.data.result_files import ENDING, read_tensors
from isogloss.encoders.families import Site, family_of
from isogloss.encoders.folders import differing
from isogloss.encoders.language_modules import encoder_of, site_of
from isogloss.encoders.loading import load_tokenizer, load_whole, save_model
from isogloss.nn.hard_concrete import CLOSED_BELOW

ATTENTION, FEED_FORWARD = "attention", "feed-forward"
NONE = "none"
OF_ATTENTION = ("weight", "row", "head", NONE)
OF_FEED_FORWARD = ("weight", "row", "neuron", NONE)
"""What has a gate of its own."""

FILE = "masks"
"""Name, without its ending, of the file beside a record."""

LOG_ALPHA, ABOVE = "log_alpha", "above"
"""What names in the file begin with: gates, and the log α above which they are kept. What begins otherwise
was derived from these."""


@dataclass(frozen=True, kw_only=True)
class GateKinds:
    """What has a gate of its own, in attention and in feed-forward; "none": nothing there."""

    attention: str = "row"
    feed_forward: str = "row"

    def __post_init__(self) -> None:
        """Refuse a kind there is not."""
        for field, known in (("attention", OF_ATTENTION), ("feed_forward", OF_FEED_FORWARD)):
            if getattr(self, field) not in known:
                raise unknown_name(f"gates: {field}", "kind of gate", getattr(self, field), known)


@dataclass(frozen=True)
class Member:
    """A parameter that has its share in a group of gates, and how gates lie over it."""

    name: str
    """Dotted, from the model on."""
    dim: Literal["rows", "columns", "numbers"]
    each: int = 1
    """Neighbouring rows or columns that one gate has."""
    times: int = 1
    """How often all gates come, one set after the other."""

    def over(self, gates: Tensor, parameter: Tensor) -> Tensor:
        """Lay gates over the parameter: what comes back can be multiplied with it."""
        if self.dim == "numbers":
            return gates
        laid = gates.view(1, -1, 1).expand(self.times, -1, self.each).reshape(-1)
        return laid if self.dim == "columns" or parameter.ndim == 1 else laid.unsqueeze(-1)


@dataclass(frozen=True, kw_only=True)
class GateGroup:
    """Gates of one kind in one place of a layer: of a matrix, of all heads, of all neurons."""

    name: str
    """Of the place, the same in an encoder and in a model with a head, whatever language is read."""
    layer: int
    """Counted from 1."""
    module: str
    """attention or feed-forward."""
    shape: tuple[int, ...]
    parameters: int
    """Numbers that are pruned with one gate."""
    acts: tuple[Member, ...]
    """What is multiplied by the gates."""
    idle: tuple[Member, ...] = ()
    """What besides has no effect where a gate is 0."""

    @property
    def size(self) -> int:
        """Number of gates."""
        return int(torch.Size(self.shape).numel())


def gate_groups(model: nn.Module, kinds: GateKinds, *, language: str = "") -> list[GateGroup]:
    """List the groups of an encoder, or of the encoder in a model, from the first layer to the last.

    Of an encoder with language modules those that the language's text runs through, under the same names.
    """
    sites = family_of(model).sites(model)
    own = [site_of(model, site, language) for site in sites] if language else sites
    return [group for site in own for group in _groups(model, site, kinds)]


@contextmanager
def gated(model: nn.Module, groups: Sequence[GateGroup], gates: Mapping[str, Tensor]) -> Iterator[None]:
    """Let a model run with its parameters times their gates for a while; gradients reach the gates.

    The parameters stay where and as they are. Groups without gates are left open.
    """
    places = [
        (*_module_of(model, member), member, gates[group.name])
        for group in groups
        if group.name in gates
        for member in group.acts
    ]
    before = [
        (module, name, vars(module).get(name), module.get_parameter(name)) for module, name, *_ in places
    ]
    try:
        for module, name, member, gate in places:
            weight = getattr(module, name)
            product = weight.detach() * member.over(gate.to(weight.dtype), weight)
            # An attribute hides the parameter of its name, which stays registered. One without gradient is a
            # parameter too, so that scoring may convert it for a while.
            frozen = not product.requires_grad
            vars(module)[name] = nn.Parameter(product, requires_grad=False) if frozen else product
        yield
    finally:
        for module, name, hidden, parameter in before:
            vars(module).pop(name, None)
            setattr(module, name, parameter)
            if hidden is not None:
                vars(module)[name] = hidden


def prune(model: nn.Module, groups: Sequence[GateGroup], gates: Mapping[str, Tensor]) -> None:
    """Multiply a model's parameters by their gates for good; what is idle becomes 0 as well."""
    with torch.no_grad():
        for group in groups:
            gate = gates[group.name]
            for member in group.acts:
                _multiply(model, member, gate)
            for member in group.idle:
                _multiply(model, member, gate > 0)


@contextmanager
def frozen(model: nn.Module) -> Iterator[None]:
    """Let no parameter of a model ask for a gradient for a while, and drop nothing."""
    training = model.training
    asked = [parameter for parameter in model.parameters() if parameter.requires_grad]
    try:
        model.eval()
        for parameter in asked:
            parameter.requires_grad_(False)
        yield
    finally:
        for parameter in asked:
            parameter.requires_grad_(True)
        model.train(training)


def _multiply(model: nn.Module, member: Member, gates: Tensor) -> None:
    parameter = model.get_parameter(member.name)
    parameter.mul_(member.over(gates.to(parameter.device, parameter.dtype), parameter))


def _module_of(model: nn.Module, member: Member) -> tuple[nn.Module, str]:
    place, _, name = member.name.rpartition(".")
    return model.get_submodule(place), name


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
    """Give each matrix of a region its gates: one for each number, or for each row and its bias."""
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
            acts=tuple(members),
        )


def _units(model: nn.Module, site: Site, what: tuple[str, str], out: str, count: int) -> GateGroup:
    """Give each head or neuron a gate: on its columns of the matrix that all of them come out through."""
    module, name = what
    wide = _linear(model, out).in_features
    acts = Member(f"{out}.weight", "columns", each=wide // count)
    leading = [(inner, linear) for _, inner, linear in _matrices(model, site, module) if inner != out]
    idle = [
        Member(f"{inner}.{part}", "rows", each=wide // count, times=linear.out_features // wide)
        for inner, linear in leading
        for part in ("weight", "bias")
        if getattr(linear, part) is not None
    ]
    numbers = sum(model.get_parameter(member.name).numel() for member in (acts, *idle))
    return GateGroup(
        name=f"layer.{site.layer}.{module}.{name}",
        layer=site.layer,
        module=module,
        shape=(count,),
        parameters=numbers // count,
        acts=(acts,),
        idle=tuple(idle),
    )


def _matrices(model: nn.Module, site: Site, module: str) -> Iterator[tuple[str, str, nn.Linear]]:
    """Give each linear layer of a region: the name of its place, its own name, itself."""
    for region in site.attention if module == ATTENTION else site.feed_forward:
        outside = region.rpartition(".")[0]
        for name, part in model.get_submodule(region).named_modules(prefix=region):
            if isinstance(part, nn.Linear):
                yield f"layer.{site.layer}{name.removeprefix(outside)}", name, part


def _linear(model: nn.Module, name: str) -> nn.Linear:
    return cast("nn.Linear", model.get_submodule(name))


@dataclass(frozen=True, kw_only=True)
class Mask:
    """The gates of one language, learned once."""

    language: str
    draw: int
    """Number of the time they were learned, from 0."""
    kinds: GateKinds
    log_alpha: Mapping[str, Tensor]
    """π, by group of gates."""
    above: float = CLOSED_BELOW
    """A gate is kept whose log α is above this."""

    def kept(self, group: str) -> Tensor:
        """Return which gates of a group are kept."""
        return self.log_alpha[group] > self.above

    def gates(self) -> dict[str, Tensor]:
        """Return the binary gates a model is used with: 0 (pruned) or 1 (as it is)."""
        return {name: self.kept(name).to(one.dtype) for name, one in self.log_alpha.items()}


def mask_tensors(masks: Iterable[Mask]) -> dict[str, Tensor]:
    """Name the tensors of masks as they stand in a file."""
    found: dict[str, Tensor] = {}
    for mask in masks:
        place = f"{mask.language}/{mask.draw}"
        found[f"{ABOVE}/{place}"] = torch.tensor(mask.above)
        found |= {f"{LOG_ALPHA}/{place}/{name}": one for name, one in mask.log_alpha.items()}
    return found


def about_masks(kinds: GateKinds) -> dict[str, Value]:
    """Say what a file must know of its masks."""
    return {"attention": kinds.attention, "feed_forward": kinds.feed_forward}


def read_masks(path: Path) -> list[Mask]:
    """Read all masks of a file, by language, and then in the order they were learned.

    StorageError where it is damaged, not there, or holds no masks.
    """
    tensors, about = read_tensors(path)
    parts = [(name.split("/", 3), torch.from_numpy(one)) for name, one in tensors.items()]
    above = {(key[1], int(key[2])): float(one) for key, one in parts if key[0] == ABOVE}
    if not above or not {"attention", "feed_forward"} <= about.keys():
        raise StorageError(f"{path}: this file holds no masks. Give the {FILE}{ENDING} of language-gates.")
    kinds = GateKinds(attention=str(about["attention"]), feed_forward=str(about["feed_forward"]))
    gates: dict[tuple[str, int], dict[str, Tensor]] = {place: {} for place in sorted(above)}
    for key, one in parts:
        if key[0] == LOG_ALPHA:
            gates[key[1], int(key[2])][key[3]] = one
    return [
        Mask(language=place[0], draw=place[1], kinds=kinds, log_alpha=own, above=above[place])
        for place, own in gates.items()
    ]


def read_mask(path: Path, language: str, *, draw: int = 0) -> Mask:
    """Read a language's mask; ConfigError, naming those there are, where there is none."""
    masks = {(mask.language, mask.draw): mask for mask in read_masks(path)}
    if (language, draw) in masks:
        return masks[language, draw]
    known = sorted({code for code, _ in masks})
    if language not in known:
        raise unknown_name(str(path), "mask of", language, known)
    draws = sum(code == language for code, _ in masks)
    raise ConfigError(f"{path}: no draw {draw} of {language}. There are {draws}, counted from 0.")


def prune_encoder(source: str | Path, mask: Mask, folder: Path) -> None:
    """Save an encoder, pruned by a mask, as an ordinary folder: head, pooler and tokenizer with it.

    Of an encoder with language modules those of the mask's language are pruned, and what all share.

    ModelError where the mask was learned on an encoder of another shape.
    """
    model, tokenizer = load_whole(source), load_tokenizer(source)
    groups = gate_groups(model, mask.kinds, language=mask.language)
    expected = {group.name: group.shape for group in groups}
    found = {name: tuple(one.shape) for name, one in mask.log_alpha.items()}
    for name in differing(expected, found):
        raise ModelError(
            f"{source}: this mask of {mask.language} belongs to another encoder: {name} has gates of "
            f"the shape {found.get(name)} in the mask and {expected.get(name)} here. Give the encoder it was "
            f"learned on, or one made from it."
        )
    prune(model, groups, mask.gates())
    save_model(model, tokenizer, folder)
