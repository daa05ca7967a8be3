"""The gradient of a validation loss after one training step, by parameters that shape that step.

Wang, Lipton & Tsvetkov (2020), Section 4 and Appendix B. Shared parameters θ take a step on one language,
θ' = θ − u(∇θ L_train(θ, φ)); the language's own parameters φ are to make θ' good on all languages:

    d/dφ V(θ', φ)  =  ∇φ V  −  ∇²φθ L_train(θ, φ) w,    V = mean_j L_val^j,    w = u'(∇θ L_train)ᵀ ∇θ' V

The paper prints u as β times the gradient (then w = β ∇θ' …; Eqs. 4 and 8 leave the factor −β out). Here u
is any function, and its own derivative is taken: the mathematics does not know the optimiser.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from isogloss.training.distributed import all_reduced, rank, world_size

PERTURBATION = 0.01
"""Norm of the step to either side in finite differences; Liu et al. (2019, DARTS), Section 2.3."""

Parameters = Mapping[str, Tensor]

Loss = Callable[[Parameters, Parameters], Tensor]
"""From shared and own parameters to one number, drawing from torch's generators alone."""

Step = Callable[[Parameters], Parameters]
"""u: from the gradient of the shared parameters to what is taken off them; differentiable."""

MixedProduct = Callable[[Parameters], dict[str, Tensor]]
"""From a direction w like θ to ∇²φθ L_train(θ, φ) w, a number for each in φ."""


@dataclass(frozen=True)
class Inner:
    """The training loss at θ and φ, seen from θ."""

    loss: Tensor
    gradient: dict[str, Tensor]
    """By θ: along it θ steps."""
    mixed_product: MixedProduct
    """How the gradient moves with φ."""


SecondOrder = Callable[[Loss, Parameters, Parameters], Inner]
"""``exact``, ``finite_difference`` or ``first_order``: from L_train, θ and φ to what they say of the step."""


@dataclass(frozen=True)
class Hypergradient:
    """The two terms of the gradient by φ, and the losses met on the way."""

    direct: dict[str, Tensor]
    """∇φ of the validation losses, θ' held."""
    second_order: dict[str, Tensor]
    """What comes through θ'."""
    gradient: dict[str, Tensor]
    """∇θ L_train(θ, φ), along which θ stepped."""
    train: Tensor
    """L_train(θ, φ)."""
    validation: Tensor
    """mean_j L_val^j(θ', φ)."""

    def whole(self) -> dict[str, Tensor]:
        """Return the gradient: the sum of its terms."""
        return {name: part + self.second_order[name] for name, part in self.direct.items()}


def hypergradient(
    train: Loss,
    validation: Sequence[Loss],
    shared: Parameters,
    own: Parameters,
    *,
    step: Step,
    second_order: SecondOrder,
) -> Hypergradient:
    """Differentiate the mean validation loss after one step on the training loss by ``own``.

    Every loss draws the same random numbers each time (so dropout drops the same), and the generators are
    left as they were.
    """
    shared, own = _leaves(shared), _leaves(own)
    inner = second_order(train, shared, own)
    gradient = _leaves(inner.gradient)
    taken = step(gradient)
    stepped = _leaves({name: value - taken[name].detach() for name, value in shared.items()})
    mean, outward, direct = _mean_gradients(validation, stepped, own)
    pulled = torch.autograd.grad(
        [taken[name] for name in gradient], list(gradient.values()), [outward[name] for name in gradient]
    )
    mixed = inner.mixed_product(dict(zip(gradient, pulled, strict=True)))
    return Hypergradient(
        direct,
        {name: -part for name, part in mixed.items()},
        gradient={name: part.detach() for name, part in gradient.items()},
        train=inner.loss.detach(),
        validation=mean,
    )


def exact(train: Loss, shared: Parameters, own: Parameters) -> Inner:
    """Keep the graph of the gradient, and go backwards through it a second time.

    Fused attention has no second derivative, so attention asked of torch is the plain one meanwhile.
    """
    with _one_evaluation(shared), sdpa_kernel([SDPBackend.MATH]):
        loss = train(shared, own)
        gradient = _by(loss, shared, create_graph=True)

    def product(direction: Parameters) -> dict[str, Tensor]:
        along = torch.stack([(gradient[name] * direction[name]).sum() for name in shared]).sum()
        return _by(along, own)

    return Inner(loss, gradient, product)


def finite_difference(train: Loss, shared: Parameters, own: Parameters) -> Inner:
    """Compare the gradients by φ a little to both sides of θ along the direction (Eq. 8).

    Both are computed without mixed precision: rounding to bfloat16 would swallow the little.
    """

    def gradient(direction: Parameters, by: float) -> dict[str, Tensor]:
        there = {name: value.detach() + by * direction[name] for name, value in shared.items()}
        with _one_evaluation(shared, mixed=False):
            return _by(train(there, own), own)

    def product(direction: Parameters) -> dict[str, Tensor]:
        length = float(norm(direction))
        if not length:
            return _nothing(own)
        little = PERTURBATION / length
        ahead, behind = gradient(direction, little), gradient(direction, -little)
        return {name: (ahead[name] - behind[name]) / (2 * little) for name in own}

    return Inner(*_loss_and_gradient(train, shared, own), product)


def first_order(train: Loss, shared: Parameters, own: Parameters) -> Inner:
    """Leave the term out: φ then serves the validation loss of its own language alone."""
    return Inner(*_loss_and_gradient(train, shared, own), lambda _direction: _nothing(own))


def norm(parts: Parameters) -> Tensor:
    """Return the Euclidean norm of all parts as one vector."""
    whole: Tensor = torch.stack([part.detach().norm() for part in parts.values()]).norm()
    return whole


def _loss_and_gradient(train: Loss, shared: Parameters, own: Parameters) -> tuple[Tensor, dict[str, Tensor]]:
    with _one_evaluation(shared):
        loss = train(shared, own)
    return loss, _by(loss, shared)


def _nothing(parameters: Parameters) -> dict[str, Tensor]:
    return {name: torch.zeros_like(part) for name, part in parameters.items()}


def _mean_gradients(
    losses: Sequence[Loss], shared: Parameters, own: Parameters
) -> tuple[Tensor, dict[str, Tensor], dict[str, Tensor]]:
    """Return the mean loss and its gradients; one loss after the other, so one graph is held at a time.

    Of several processes each computes some of the losses.
    """
    leaves = [*shared.values(), *own.values()]
    total = torch.zeros((), device=leaves[0].device)
    sums: list[Tensor] = []
    for loss in losses[rank() :: world_size()]:
        with _one_evaluation(shared):
            value = loss(shared, own)
        found = torch.autograd.grad(value / len(losses), leaves, materialize_grads=True)
        total = total + value.detach() / len(losses)
        sums = [one + other for one, other in zip(sums, found, strict=True)] if sums else list(found)
    mine = sums or [torch.zeros_like(one) for one in leaves]
    gradients = dict(zip([*shared, *own], map(all_reduced, mine), strict=True))
    return (
        all_reduced(total),
        {name: gradients[name] for name in shared},
        {name: gradients[name] for name in own},
    )


def _by(value: Tensor, parameters: Parameters, *, create_graph: bool = False) -> dict[str, Tensor]:
    """Differentiate a number; it need not depend on all of them, or on any."""
    if not value.requires_grad:
        return _nothing(parameters)
    found = torch.autograd.grad(
        value, list(parameters.values()), create_graph=create_graph, materialize_grads=True
    )
    return dict(zip(parameters, found, strict=True))


def _leaves(parameters: Parameters) -> dict[str, Tensor]:
    return {name: part.detach().requires_grad_() for name, part in parameters.items()}


@contextmanager
def _one_evaluation(parameters: Parameters, *, mixed: bool = True) -> Iterator[None]:
    """Evaluate a loss by itself.

    The generators are put back, so that each evaluation draws the same. Autocast keeps no weights it has
    converted: they would be those of another θ in the next one, and its memory.
    """
    device = next(iter(parameters.values())).device
    enabled = mixed and torch.is_autocast_enabled(device.type)
    dtype = torch.get_autocast_dtype(device.type)
    generators = [device] if device.type == "cuda" else []
    with (
        torch.random.fork_rng(devices=generators),
        torch.autocast(device.type, dtype, enabled=enabled, cache_enabled=False),
    ):
        yield
