"""Learning which parameters of a frozen model one language needs, by hard-concrete gates.

"On Negative Interference in Multilingual Models", Section 3.2, Eq. 1: min E[L(x; θ ⊙ z)] + λ·E‖θ ⊙ z‖₀ over
the gates' parameters π. L is masked language modelling on the language's text, and ‖·‖₀ here is the share of
gated parameters that are kept. Instead of λ, a sparsity can be set. Then all π are shifted by one number so
that the expected sparsity is the target in every update, and only differences between gates are learned. At
convergence, ∂L/∂πᵢ is the same multiple of ∂‖·‖₀/∂πᵢ for all gates, as with the λ that leads to this
sparsity, without a search for it. Finally the gates with the largest π are kept, as many as the sparsity
allows (without a sparsity, all whose converged gate is not 0), and the others are pruned.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from isogloss.core.identity import derive
from isogloss.core.progress import OnProgress, no_progress
from isogloss.core.run_parts import Updates
from isogloss.encoders.family import Model
from isogloss.features.language_gates.gates import (
    CLOSED_BELOW,
    GateGroup,
    kept_share,
    largest_kept,
    log_alpha_for,
    sample,
    shift_to_share,
    with_gates,
)
from isogloss.tasks.masked_lm import Masking, masked_lm_loss
from isogloss.training.batching import BatchesByStep, Movable
from isogloss.training.fit import Callbacks, fit

GATE_UPDATES = Updates(learning_rate=0.1, warmup=0.0, weight_decay=0.0, clip=0.0)
"""Updates of gates."""

SPREAD = 0.01
"""Standard deviation of the gates' initial parameters (Louizos et al.'s code)."""

Blocks = Sequence[np.ndarray]
"""Rows of text, as subwords."""


@dataclass(frozen=True, kw_only=True)
class GateTraining:
    """The hyper-parameters of learning gates."""

    steps: int
    rows: int
    """Rows of text per update."""
    updates: Updates = GATE_UPDATES
    sparsity: float = 0.5
    """Target share of gated parameters that are pruned, below 1. 0 uses ``penalty`` instead."""
    penalty: float = 0.0
    """λ, the cost of keeping all parameters, in nats per hidden subword."""
    settle: float = 0.5
    """Share of the steps over which the target sparsity rises to its full value."""
    start: float = 0.95
    """Probability that a gate is open before the first update."""


class Gates(nn.Module):
    """The gates of a model, group after group."""

    sizes: Tensor
    """Number of parameters of each gate."""

    def __init__(self, groups: Sequence[GateGroup], *, start: float, seed: int) -> None:
        super().__init__()
        self.groups = tuple(groups)
        count = sum(group.size for group in groups)
        noise = torch.randn(count, generator=torch.Generator().manual_seed(seed))
        self.log_alpha = nn.Parameter(log_alpha_for(start) + SPREAD * noise)
        sizes = [torch.full((group.size,), group.parameters) for group in groups]
        self.register_buffer("sizes", torch.cat(sizes).float())

    def by_group(self, row: Tensor) -> dict[str, Tensor]:
        """Split numbers, one for each gate, by group."""
        parts = torch.split(row, [group.size for group in self.groups])
        return {group.name: part.view(group.shape) for group, part in zip(self.groups, parts, strict=True)}


@dataclass(frozen=True)
class LearnedGates:
    """log α of the gates by group, and the threshold above which a gate is kept."""

    log_alpha: dict[str, Tensor]
    threshold: float


@dataclass(frozen=True)
class Drawn:
    """A batch, the seed of its gates, and the completed share of the training."""

    batch: Movable
    seed: int
    done: float

    def to(self, device: torch.device) -> "Drawn":
        """Return the batch on a device."""
        return replace(self, batch=self.batch.to(device))


def learn_gates(
    model_and_masking: tuple[Model, Masking],
    groups: Sequence[GateGroup],
    text: tuple[str, Blocks],
    training: GateTraining,
    *,
    seed: int,
    on_progress: OnProgress = no_progress,
) -> LearnedGates:
    """Learn gates by masked language modelling of a language's text, without changing the model."""
    model, masking = model_and_masking
    language, blocks = text

    def draw(step: int) -> Drawn:
        batch_seed = derive(derive(seed, "text"), step)
        rng = np.random.Generator(np.random.PCG64(batch_seed))
        rows = [[blocks[index]] for index in rng.integers(len(blocks), size=training.rows)]
        batch = masking.batch(rows, seed=batch_seed, languages=(language,))
        return Drawn(batch, derive(batch_seed, "gates"), step / training.steps)

    callbacks = Callbacks(on_progress=on_progress, what=f"gates of {language}")
    return learn_gates_on((model, groups), draw, masked_lm_loss, training, seed=seed, callbacks=callbacks)


def learn_gates_on(
    gated_model: tuple[Model, Sequence[GateGroup]],
    draw: Callable[[int], Drawn],
    batch_loss: Callable[[Model, Any], Tensor],
    training: GateTraining,
    *,
    seed: int,
    callbacks: Callbacks,
) -> LearnedGates:
    """Learn gates with any loss on the batches that ``draw`` returns by step (Eq. 1).

    No other thread may use the model meanwhile. Its parameters are unchanged afterwards. Gates are drawn from
    the seeds, without torch's global generators. There are no checkpoints, because a training takes minutes.
    """
    model, groups = gated_model
    gates = Gates(groups, start=training.start, seed=derive(seed, "start"))

    def loss(gates: Gates, batch: Drawn) -> Tensor:
        generator = torch.Generator(gates.log_alpha.device).manual_seed(batch.seed)
        log_alpha = shift_to_target(gates, training, batch.done)
        penalty = training.penalty * kept_share(log_alpha, gates.sizes)
        with with_gates(model, groups, gates.by_group(sample(log_alpha, generator))):
            return batch_loss(model, batch.batch) + penalty

    with without_gradients(model):
        batches = BatchesByStep(training.steps, draw)
        fit(gates, batches, loss, updates=training.updates, seed=None, callbacks=callbacks)
    log_alpha = shift_to_target(gates, training, 1.0).detach()
    min_log_alpha = CLOSED_BELOW
    if training.sparsity:
        min_log_alpha = largest_kept(log_alpha, gates.sizes, 1 - training.sparsity)
    return LearnedGates(gates.by_group(log_alpha.cpu()), min_log_alpha)


def shift_to_target(gates: Gates, training: GateTraining, done: float) -> Tensor:
    """Return log α of all gates, shifted to the target sparsity at the completed share of the steps."""
    if not training.sparsity:
        return gates.log_alpha
    part = min(1.0, done / training.settle) if training.settle else 1.0
    share = training.start + part * (1 - training.sparsity - training.start)
    return shift_to_share(gates.log_alpha, gates.sizes, share)


@contextmanager
def without_gradients(model: nn.Module) -> Iterator[None]:
    """Disable gradients of all parameters, and dropout, in this context."""
    training = model.training
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    try:
        model.eval()
        for parameter in trainable:
            parameter.requires_grad_(False)
        yield
    finally:
        for parameter in trainable:
            parameter.requires_grad_(True)
        model.train(training)
