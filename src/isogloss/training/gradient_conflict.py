"""Gradient conflict: do two languages pull the weights the same way?

"On Negative Interference in Multilingual Models", Sections 3.2 and 3.4 (Fig. 3), after Yu et al. (2020): the
cosine between the gradients of two batches, one of each language, and of two batches of one language as the
control, each accumulated over many rows. Here also by layer and by kind of module.

A gradient over a batch is the true one plus noise, and noise points nowhere: even two batches of one language
have a cosine below 1, and the cosine of two languages is too small by the same factor. What is measured is
cos(ĝ_a, ĝ_b) ≈ cos(g_a, g_b)·√(cos(ĝ_a, ĝ_a')·cos(ĝ_b, ĝ_b')): a language pair's cosine divided by the
geometric mean of its two controls is free of it (Spearman's correction for attenuation, 1904). So ``within``,
that geometric mean, stands beside each pair's cosine.

Dropout is off: its noise would lower every cosine. No more than two gradients are in memory at a time.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from isogloss.core.records import Value
from isogloss.encoders import family_of
from isogloss.encoders.families import encoder_prefix
from isogloss.encoders.language_modules import shared_parameters

CHUNK = 1 << 22
"""Numbers turned into float64 at a time: 32 MB, whatever the size of an embedding table."""

FIRST, SECOND = 0, 1
"""Numbers of the two batches of a language; a language is compared with others by its first."""

Gradient = dict[str, Tensor]
"""By the parameter's name; one that a loss does not depend on is not there."""

Losses = Callable[[str, int], Iterable[Tensor]]
"""From a language and the number of its batch to its loss in parts; the gradient is that of their sum."""


@dataclass(frozen=True)
class Part:
    """Some of a model's parameters."""

    layer: int | None
    """Counted from 1, 0 is the embeddings; None is no single layer."""

    module: str
    """attention, feed-forward, embeddings, head, other; "all" for everything in the layer, or the model."""


ALL = Part(None, "all")


@dataclass(frozen=True)
class Alike:
    """What the cosine of two gradients is made of: their product and their squared lengths."""

    product: float = 0.0
    first: float = 0.0
    second: float = 0.0

    def __add__(self, other: "Alike") -> "Alike":
        """Return the numbers of two sets of parameters together."""
        return Alike(self.product + other.product, self.first + other.first, self.second + other.second)

    @property
    def cosine(self) -> float | None:
        """The cosine, in [-1, 1]; None where a gradient is 0."""
        if self.first <= 0 or self.second <= 0:
            return None
        return max(-1.0, min(1.0, self.product / sqrt(self.first) / sqrt(self.second)))


Found = tuple[str, str, dict[Part, Alike]]
"""First language, second one, how alike their gradients are in each part."""


def conflict_rows(
    model: nn.Module,
    languages: Sequence[str],
    losses: Losses,
    parts: Mapping[str, Part],
    *,
    layers: bool = True,
) -> list[dict[str, Value]]:
    """Return a row for each pair of languages, each language with itself (the control), and each part.

    The model is left without gradients. Without ``layers`` single layers are left out.
    """
    place = {language: number for number, language in enumerate(languages)}
    found = sorted(
        alike_languages(model, languages, losses, parts), key=lambda one: (place[one[0]], place[one[1]])
    )
    controls = {first: alike for first, second, alike in found if first == second}
    return [
        {
            "first": first,
            "second": second,
            "layer": part.layer,
            "module": part.module,
            "cosine": numbers.cosine,
            "within": None if first == second else _within(controls[first], controls[second], part),
            "norm_first": sqrt(numbers.first),
            "norm_second": sqrt(numbers.second),
        }
        for first, second, alike in found
        for part, numbers in alike.items()
        if layers or part.layer is None
    ]


def _within(one: Mapping[Part, Alike], other: Mapping[Part, Alike], part: Part) -> float | None:
    """Return the geometric mean of two controls; None where noise alone was measured."""
    x, y = (alike[part].cosine if part in alike else None for alike in (one, other))
    return sqrt(x * y) if x is not None and y is not None and x > 0 and y > 0 else None


def alike_languages(
    model: nn.Module, languages: Sequence[str], losses: Losses, parts: Mapping[str, Part]
) -> Iterator[Found]:
    """Compare each language with itself, and with every other one, with two gradients in memory at most.

    One language's gradient is kept while those it is compared with come and go; the last to come is kept
    next. Two languages take four gradients, the fewest there can be; of n languages some are made anew:
    (n² + n) / 2 + 1 in all.
    """
    place = {language: number for number, language in enumerate(languages)}
    left = list(languages)
    kept = gradient(model, losses(left[0], FIRST))
    while left:
        own, *left = left
        new: Gradient = {}
        for other in (own, *reversed(left)):
            new.clear()  # Before the next one is made.
            new = gradient(model, losses(other, SECOND if other == own else FIRST))
            first, second = sorted((own, other), key=place.__getitem__)
            yield first, second, compared(*((kept, new) if first == own else (new, kept)), parts)
        kept = new


def gradient(model: nn.Module, losses: Iterable[Tensor]) -> Gradient:
    """Return the gradient of a sum of losses, accumulated one after the other; the model keeps none of it."""
    model.zero_grad(set_to_none=True)
    for loss in losses:
        loss.backward()  # type: ignore[no-untyped-call]
    found = {name: weight.grad for name, weight in model.named_parameters() if weight.grad is not None}
    model.zero_grad(set_to_none=True)
    return found


def compared(one: Gradient, other: Gradient, parts: Mapping[str, Part]) -> dict[Part, Alike]:
    """Return how alike two gradients are in each part, in the layers, and in all.

    Parameters that are in no part, or that only one of the two depends on (modules of one language), are
    left out.
    """
    names = [name for name in parts if name in one and name in other]
    if not names:
        return {}
    sums = torch.stack([_sums(one[name], other[name]) for name in names]).tolist()
    found: dict[Part, Alike] = {}
    for name, (product, first, second) in zip(names, sums, strict=True):
        for part in _containing(parts[name]):
            found[part] = found.get(part, Alike()) + Alike(product, first, second)
    return found


def _sums(x: Float[Tensor, "..."], y: Float[Tensor, "..."]) -> Float[Tensor, "3"]:
    """Return x·y, x·x and y·y in float64."""
    total = torch.zeros(3, dtype=torch.float64, device=x.device)
    for one, other in zip(torch.split(x.flatten(), CHUNK), torch.split(y.flatten(), CHUNK), strict=True):
        a, b = one.double(), other.double()
        total += torch.stack([a @ b, a @ a, b @ b])
    return total


def _containing(part: Part) -> tuple[Part, ...]:
    """Return the part and the larger ones it belongs to, the largest first."""
    if not part.layer:  # Embeddings, head and other: nothing between them and the whole.
        return ALL, Part(None, part.module)
    return ALL, Part(None, part.module), Part(part.layer, "all"), part


def parts_of(model: Any) -> dict[str, Part]:
    """Return for each parameter that languages share the smallest part of the model it belongs to.

    What a language has for itself no other pulls at. An output layer that shares its weights with the
    embeddings belongs to them.
    """
    family, inside = family_of(model), encoder_prefix(model)
    embeddings = {id(weight) for weight in family.embeddings(model).parameters()}
    sites: dict[str, Part] = {}
    for site in family.sites(model):
        sites |= {name: Part(site.layer, "other") for name, _ in site.parameters(model, "block")}
        sites |= {name: Part(site.layer, "attention") for name, _ in site.parameters(model, "attention")}
        sites |= {
            name: Part(site.layer, "feed-forward") for name, _ in site.parameters(model, "feed_forward")
        }
    return {
        name: Part(0, "embeddings")
        if id(weight) in embeddings
        else sites.get(name, Part(None, "other" if name.startswith(inside) else "head"))
        for name, weight in shared_parameters(model).items()
    }
