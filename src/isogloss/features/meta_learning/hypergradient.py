"""The gradient of a validation loss after one training step, by parameters that shape that step.

Wang, Lipton & Tsvetkov (2020), Section 4 and Appendix B. Shared parameters θ take a step on one language, θ'
= θ − u(∇θ L_train(θ, φ)). The language-specific parameters φ are to make θ' good on all languages:

    d/dφ V(θ', φ)  =  ∇φ V  −  ∇²φθ L_train(θ, φ) w,    V = mean_j L_val^j,    w = u'(∇θ L_train)ᵀ ∇θ' V

In the paper, u is β times the gradient (then w = β ∇θ' …; Eqs. 4 and 8 omit the factor −β). Here u is any
function, and its own derivative is used, so the computation does not depend on the optimiser.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from isogloss.training.distributed import all_reduced, rank, world_size

PERTURBATION = 0.01
"""Norm of the step to either side in finite differences (Liu et al. 2019, DARTS, Section 2.3)."""

Parameters = Mapping[str, Tensor]

Loss = Callable[[Parameters, Parameters], Tensor]
"""From shared and a language's parameters to one number, with randomness only from torch's generators."""

Step = Callable[[Parameters], Parameters]
"""u, differentiable: from the gradient of the shared parameters to the change that is subtracted."""

MixedProduct = Callable[[Parameters], dict[str, Tensor]]
"""From a direction w like θ to ∇²φθ L_train(θ, φ) w, one tensor for each in φ."""


@dataclass(frozen=True)
class Inner:
    """The training loss at θ and φ, and its derivatives."""

    loss: Tensor
    gradient: dict[str, Tensor]
    """The gradient with respect to θ, along which the step goes."""
    mixed_product: MixedProduct
    """The derivative of the gradient with respect to φ."""


SecondOrder = Callable[[Loss, Parameters, Parameters], Inner]
"""``exact``, ``finite_difference`` or ``first_order``: from L_train, θ and φ to its derivatives."""


@dataclass(frozen=True)
class Hypergradient:
    """The two terms of the gradient with respect to φ, and the losses."""

    direct: dict[str, Tensor]
    """∇φ of the validation losses at a fixed θ'."""
    second_order: dict[str, Tensor]
    """The derivative through θ'."""
    gradient: dict[str, Tensor]
    """∇θ L_train(θ, φ), along which θ stepped."""
    train: Tensor
    """L_train(θ, φ)."""
    validation: Tensor
    """mean_j L_val^j(θ', φ)."""

    def total(self) -> dict[str, Tensor]:
        """Return the gradient, the sum of its terms."""
        return {name: part + self.second_order[name] for name, part in self.direct.items()}


def hypergradient(
    train: Loss,
    validation: Sequence[Loss],
    shared: Parameters,
    language: Parameters,
    *,
    step: Step,
    second_order: SecondOrder,
) -> Hypergradient:
    """Differentiate the mean validation loss after one training step with respect to ``language``.

    Every evaluation of a loss draws the same random numbers (so dropout drops the same), and torch's
    generators are restored afterwards.
    """
    shared, language = _leaves(shared), _leaves(language)
    inner = second_order(train, shared, language)
    gradient = _leaves(inner.gradient)
    change = step(gradient)
    next_shared = _leaves({name: value - change[name].detach() for name, value in shared.items()})
    mean, shared_gradient, direct_term = _mean_gradients(validation, next_shared, language)
    direction = torch.autograd.grad(
        [change[name] for name in gradient],
        list(gradient.values()),
        [shared_gradient[name] for name in gradient],
    )
    product = inner.mixed_product(dict(zip(gradient, direction, strict=True)))
    return Hypergradient(
        direct_term,
        {name: -part for name, part in product.items()},
        gradient={name: part.detach() for name, part in gradient.items()},
        train=inner.loss.detach(),
        validation=mean,
    )


def exact(train: Loss, shared: Parameters, language: Parameters) -> Inner:
    """Differentiate the gradient exactly, through its graph.

    Fused attention has no second derivative, so torch's plain attention is used.
    """
    with _evaluation(shared), sdpa_kernel([SDPBackend.MATH]):
        loss = train(shared, language)
        gradient = _differentiate(loss, shared, create_graph=True)

    def product(direction: Parameters) -> dict[str, Tensor]:
        slope = torch.stack([(gradient[name] * direction[name]).sum() for name in shared]).sum()
        return _differentiate(slope, language)

    return Inner(loss, gradient, product)


def finite_difference(train: Loss, shared: Parameters, language: Parameters) -> Inner:
    """Compare the gradients with respect to φ at small steps to both sides of θ along the direction (Eq. 8).

    Both are computed without mixed precision, because rounding to bfloat16 would hide such a small step.
    """

    def gradient(direction: Parameters, size: float) -> dict[str, Tensor]:
        point = {name: value.detach() + size * direction[name] for name, value in shared.items()}
        with _evaluation(shared, uses_mixed_precision=False):
            return _differentiate(train(point, language), language)

    def product(direction: Parameters) -> dict[str, Tensor]:
        length = float(norm(direction))
        if not length:
            return _zeros(language)
        size = PERTURBATION / length
        upper = gradient(direction, size)
        lower = gradient(direction, -size)
        return {name: (upper[name] - lower[name]) / (2 * size) for name in language}

    return Inner(*_loss_and_gradient(train, shared, language), product)


def first_order(train: Loss, shared: Parameters, language: Parameters) -> Inner:
    """Set the second-order term to 0, so that φ only reduces the validation loss of its language."""
    return Inner(*_loss_and_gradient(train, shared, language), lambda _direction: _zeros(language))


def norm(parts: Parameters) -> Tensor:
    """Return the Euclidean norm of all parts as one vector."""
    length: Tensor = torch.stack([part.detach().norm() for part in parts.values()]).norm()
    return length


def _loss_and_gradient(
    train: Loss, shared: Parameters, language: Parameters
) -> tuple[Tensor, dict[str, Tensor]]:
    with _evaluation(shared):
        loss = train(shared, language)
    return loss, _differentiate(loss, shared)


def _zeros(parameters: Parameters) -> dict[str, Tensor]:
    return {name: torch.zeros_like(part) for name, part in parameters.items()}


def _mean_gradients(
    losses: Sequence[Loss], shared: Parameters, language: Parameters
) -> tuple[Tensor, dict[str, Tensor], dict[str, Tensor]]:
    """Return the mean loss and its gradients.

    Losses are computed one by one, so only one graph is in memory. Several processes share the losses.
    """
    leaves = [*shared.values(), *language.values()]
    total = torch.zeros((), device=leaves[0].device)
    sums: list[Tensor] = []
    for loss in losses[rank() :: world_size()]:
        with _evaluation(shared):
            value = loss(shared, language)
        parts = torch.autograd.grad(value / len(losses), leaves, materialize_grads=True)
        total = total + value.detach() / len(losses)
        sums = (
            [total_part + part for total_part, part in zip(sums, parts, strict=True)] if sums else list(parts)
        )
    sums = sums or [torch.zeros_like(leaf) for leaf in leaves]
    gradients = dict(zip([*shared, *language], [all_reduced(part) for part in sums], strict=True))
    return (
        all_reduced(total),
        {name: gradients[name] for name in shared},
        {name: gradients[name] for name in language},
    )


def _differentiate(value: Tensor, parameters: Parameters, *, create_graph: bool = False) -> dict[str, Tensor]:
    """Differentiate a number by parameters, with zeros for parameters that it does not depend on."""
    if not value.requires_grad:
        return _zeros(parameters)
    gradients = torch.autograd.grad(
        value, list(parameters.values()), create_graph=create_graph, materialize_grads=True
    )
    return dict(zip(parameters, gradients, strict=True))


def _leaves(parameters: Parameters) -> dict[str, Tensor]:
    return {name: part.detach().requires_grad_() for name, part in parameters.items()}


@contextmanager
def _evaluation(parameters: Parameters, *, uses_mixed_precision: bool = True) -> Iterator[None]:
    """Evaluate a loss independently of other evaluations.

    The generators are restored, so that each evaluation draws the same numbers. Autocast caches no converted
    weights, because in the next evaluation they would belong to a different θ.
    """
    device = next(iter(parameters.values())).device
    is_enabled = uses_mixed_precision and torch.is_autocast_enabled(device.type)
    dtype = torch.get_autocast_dtype(device.type)
    generators = [device] if device.type == "cuda" else []
    with (
        torch.random.fork_rng(devices=generators),
        torch.autocast(device.type, dtype, enabled=is_enabled, cache_enabled=False),
    ):
        yield
