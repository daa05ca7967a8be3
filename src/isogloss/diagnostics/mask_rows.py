"""How alike the masks of languages are, by layer, in attention and in feed-forward, and where they differ."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, permutations
from typing import Any

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from isogloss.core.rows import MaskKept, MaskSimilarity, SpecificGates
from isogloss.encoders.gates import GateGroup, Mask
from isogloss.nn.hard_concrete import kept_share, open_probability

Part = tuple[int | None, str]
"""A layer, counted from 1, and attention or feed-forward; None: all layers; "all": both."""

Specific = dict[tuple[str, str, str], Int64[Tensor, " gate"]]
"""By the language that keeps, the language that prunes, and the group: the numbers of the gates."""


def cosine(x: Float[Tensor, " gate"], y: Float[Tensor, " gate"]) -> float | None:
    """Return the cosine of two vectors; None where one of them is 0."""
    x, y = x.double(), y.double()
    lengths = float(x.norm() * y.norm())
    return max(-1.0, min(1.0, float(x @ y) / lengths)) if lengths > 0 else None


def correlation(x: Float[Tensor, " gate"], y: Float[Tensor, " gate"]) -> float | None:
    """Return the cosine after each mean is taken off; None where one of them is constant."""
    if bool((x == x[0]).all()) or bool((y == y[0]).all()):
        return None
    x, y = x.double(), y.double()
    return cosine(x - x.mean(), y - y.mean())


def overlap(x: Bool[Tensor, " gate"], y: Bool[Tensor, " gate"]) -> float | None:
    """Return of the gates that one keeps the share that both keep (Jaccard); None where none is kept."""
    either = int((x | y).sum())
    return int((x & y).sum()) / either if either else None


def likeness_rows(model: str, masks: Sequence[Mask], groups: Sequence[GateGroup]) -> Iterator[MaskSimilarity]:
    """Give a row for each two masks and each part of the model, those of one language being the control."""
    for one, other in combinations(masks, 2):
        for (layer, module), own in parts_of(groups).items():
            yield MaskSimilarity(
                model=model,
                first=one.language,
                first_draw=one.draw,
                second=other.language,
                second_draw=other.draw,
                layer=layer,
                module=module,
                **likeness((one, other), own),
            )


def likeness(masks: tuple[Mask, Mask], groups: Sequence[GateGroup]) -> dict[str, Any]:
    """Compare the log α of two masks in some groups, and which gates they keep."""
    x, y = (vector(mask, groups) for mask in masks)
    kept, also = (vector(mask, groups) > mask.above for mask in masks)
    return {
        "gates": len(x),
        "cosine": cosine(x, y),
        "correlation": correlation(x, y),
        "open_cosine": cosine(open_probability(x), open_probability(y)),
        "overlap": overlap(kept, also),
        "only_first": int((kept & ~also).sum()),
        "only_second": int((also & ~kept).sum()),
    }


def kept_rows(model: str, masks: Sequence[Mask], groups: Sequence[GateGroup]) -> Iterator[MaskKept]:
    """Give a row for each mask and part: the share of parameters it keeps, and what it was expected to be."""
    for mask in masks:
        for (layer, module), own in parts_of(groups).items():
            log_alpha = vector(mask, own)
            sizes = torch.cat([torch.full((group.size,), float(group.parameters)) for group in own])
            yield MaskKept(
                model=model,
                mask=mask.language,
                draw=mask.draw,
                layer=layer,
                module=module,
                parameters=int(sizes.sum()),
                kept=float((log_alpha > mask.above).double() @ sizes.double() / sizes.double().sum()),
                expected=float(kept_share(log_alpha.double(), sizes.double())),
            )


def specific_gates(masks: Sequence[Mask], groups: Sequence[GateGroup]) -> Specific:
    """List the gates that every mask of one language keeps and every mask of another prunes."""
    languages = list(dict.fromkeys(mask.language for mask in masks))
    found: Specific = {}
    for group in groups:
        kept = {
            language: torch.stack(
                [mask.kept(group.name).flatten() for mask in masks if mask.language == language]
            )
            for language in languages
        }
        for keeps, prunes in permutations(languages, 2):
            only = kept[keeps].all(dim=0) & ~kept[prunes].any(dim=0)
            found[keeps, prunes, group.name] = only.nonzero().flatten()
    return found


def specific_rows(model: str, specific: Specific, groups: Sequence[GateGroup]) -> Iterator[SpecificGates]:
    """Give a row for each two languages and each part: gates, and parameters, that only the first keeps."""
    for keeps, prunes in dict.fromkeys((keeps, prunes) for keeps, prunes, _ in specific):
        for (layer, module), own in parts_of(groups).items():
            counts = [len(specific[keeps, prunes, group.name]) for group in own]
            yield SpecificGates(
                model=model,
                keeps=keeps,
                prunes=prunes,
                layer=layer,
                module=module,
                gates=sum(counts),
                of=sum(group.size for group in own),
                parameters=sum(n * group.parameters for n, group in zip(counts, own, strict=True)),
            )


def parts_of(groups: Sequence[GateGroup]) -> Mapping[Part, list[GateGroup]]:
    """Return the groups of each part: attention and feed-forward of a layer, of all layers, and all."""
    found: dict[Part, list[GateGroup]] = {}
    for group in groups:
        for part in ((group.layer, group.module), (None, group.module), (None, "all")):
            found.setdefault(part, []).append(group)
    return found


def vector(mask: Mask, groups: Sequence[GateGroup]) -> Float[Tensor, " gate"]:
    """Return a mask's log α in some groups, in one row."""
    return torch.cat([mask.log_alpha[group.name].flatten() for group in groups])
