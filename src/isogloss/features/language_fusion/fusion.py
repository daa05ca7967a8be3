"""Fusion of the states of two languages in the bottleneck of LoRA.

Borchert et al. (ACL 2025), "Language Fusion for Parameter-Efficient Cross-lingual Transfer" (FLARE). A batch
has rows of the source followed by their translations into the target. For a matrix W₀ with LoRA, inputs x_S
of source rows and x_T of target rows,

    h_S = W₀ x_S                                                                             (1)
    h_T = W₀ x_T + (α/r) B f(A x_S, A x_T)                                                   (2)

So source rows run through the frozen model, and only target rows through the adapters. With s = A x_S and
t = A x_T at the same position of both rows,

    add: f = s + t,  multiply: f = s ⊙ t,  add-relu: f = max(s, 0) + max(t, 0)               (3)
    attention: f = t + softmax(t Sᵀ/√r) S, over all positions of the source                  (4)

Where the source has no subword at a position, f = t, which is LoRA. The equations (1) to (3) follow the
authors' code (github.com/pnborchert/FLARE); of the paper only the abstract was read. Three things are ours:
(4) has no weights, where the code learns projections of the bottleneck and queries with the source; padding
is not fused; and multiple-choice and tagging are supported.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from threading import get_ident
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from isogloss.core.errors import ModelError

Fusion = Literal["add", "multiply", "add-relu", "attention"]
"""Functions of two states in a bottleneck."""

Bottleneck = Float[Tensor, "pair subword rank"]

NEEDED = "language fusion needs adapters of LoRA"


def add(source: Tensor, target: Tensor) -> Tensor:
    """Return s + t."""
    return source + target


def multiply(source: Tensor, target: Tensor) -> Tensor:
    """Return s ⊙ t."""
    return source * target


def add_positive(source: Tensor, target: Tensor) -> Tensor:
    """Return max(s, 0) + max(t, 0)."""
    return source.relu() + target.relu()


BY_POSITION: Mapping[str, Callable[[Tensor, Tensor], Tensor]] = {
    "add": add,
    "multiply": multiply,
    "add-relu": add_positive,
}
"""The functions of Eq. 3."""


def fuse(
    source: Bottleneck, target: Bottleneck, fusion: Fusion, is_subword: Bool[Tensor, "pair subword"] | None
) -> Bottleneck:
    """Return f of Eqs 3 and 4. ``is_subword`` is false at the source's padding. None: no padding."""
    if fusion == "attention":
        raw = torch.matmul(target, source.transpose(1, 2)) * source.size(-1) ** -0.5
        if is_subword is not None:
            raw = raw.masked_fill(~is_subword[:, None, :], torch.finfo(raw.dtype).min)
        return target + torch.matmul(raw.softmax(dim=-1), source)
    fused = BY_POSITION[fusion](source, target)
    return fused if is_subword is None else torch.where(is_subword[:, :, None], fused, target)


@contextmanager
def fused_adapters(
    model: nn.Module, fusion: Fusion, mask: Tensor | None, *, in_this_thread: bool = False
) -> Iterator[None]:
    """Fuse in all LoRA layers while a model runs on source rows followed by target rows.

    ``mask`` [row subword] is 1 at subwords. Raises ModelError for a model without LoRA that is not merged.
    """
    is_subword = None if mask is None else mask.bool().chunk(2)[0]
    rows = None if mask is None else len(mask)
    thread = get_ident() if in_this_thread else None

    def hook(_: nn.Module, __: object, states: Tensor) -> Tensor | None:
        if thread is not None and get_ident() != thread:
            return None
        _check_rows(states, rows)
        source, target = states.chunk(2)
        return torch.cat((torch.zeros_like(source), fuse(source, target, fusion, is_subword)))

    with ExitStack() as hooks:
        for projection in down_projections(model):
            hooks.callback(projection.register_forward_hook(hook).remove)
        yield


def _check_rows(states: Tensor, rows: int | None) -> None:
    if states.ndim != 3 or len(states) % 2 or rows not in (None, len(states)):
        found = f"states of shape {list(states.shape)}"
        expected = "[row subword dim] of an even number of rows" if rows is None else f"those of {rows} rows"
        raise ModelError(
            f"{NEEDED} through which source and target rows run together: found {found}; expected "
            f"{expected}. Take an encoder without separate attention or feed-forward layers for languages."
        )


def down_projections(model: nn.Module) -> list[nn.Module]:
    """Return A of each LoRA layer of a model.

    Raises ModelError without any, for adapters that were merged, and for kinds other than plain LoRA.
    """
    from peft.tuners.lora import LoraLayer

    layers = [module for module in model.modules() if isinstance(module, LoraLayer)]
    if not layers or any(layer.merged for layer in layers):
        found = "merged ones" if layers else "none"
        raise ModelError(
            f"{NEEDED}: found {found} in {type(model).__name__}. Give a model of peft with a LoraConfig, "
            f"before its adapters are merged."
        )
    if any(any(layer.use_dora.values()) for layer in layers):
        raise ModelError(f"{NEEDED}: found DoRA, which scales all rows. Set use_dora=False.")
    return [layer.lora_A[name] for layer in layers for name in layer.active_adapters if name in layer.lora_A]
