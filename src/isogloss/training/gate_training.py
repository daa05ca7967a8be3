"""Learning which parameters of a frozen model one language needs: hard-concrete gates over them.

"On Negative Interference in Multilingual Models", Section 3.2, Eq. 1: min E[L(x; θ ⊙ z)] + λ·E‖θ ⊙ z‖₀ over
the gates' parameters π; L is masked language modelling on the language's text, ‖·‖₀ here the share of the
gated parameters that is kept. Instead of λ a sparsity can be set. Then all π are shifted by one number so
that the expected sparsity is the target in every update, and only differences between gates are learned.
Where that settles, ∂L/∂πᵢ is the same multiple of ∂‖·‖₀/∂πᵢ for all gates: as with the one λ that leads to
this sparsity, without a search for it. In the end the gates with the largest π are kept, as many as the
sparsity leaves (without a sparsity, all whose settled gate is not 0), and the others pruned.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from isogloss.core.identity import derive
from isogloss.core.progress import OnProgress, no_progress
from isogloss.core.run_parts import Updates
from isogloss.encoders.family import Model, without_gradients
from isogloss.encoders.gates import (
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
"""How gates are updated."""

SPREAD = 0.01
"""Standard deviation of the gates' parameters at the start (Louizos et al.'s code)."""

Blocks = Sequence[np.ndarray]
"""Rows of text, as subwords."""


@dataclass(frozen=True, kw_only=True)
class GateTraining:
    """The hyper-parameters of learning gates."""

    steps: int
    rows: int
    """Rows of text of one update."""
    updates: Updates = GATE_UPDATES
    sparsity: float = 0.5
    """Target share of gated parameters that are pruned, below 1; 0 leaves it to ``penalty``."""
    penalty: float = 0.0
    """λ: the cost of keeping all parameters, in nats a hidden subword."""
    settle: float = 0.5
    """Share of the steps over which the target sparsity rises to its full value."""
    start: float = 0.95
    """Probability that a gate is open before the first update."""


class Gates(nn.Module):
    """The gates over a model, group after group."""

    sizes: Tensor
    """Parameters of each gate."""

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
    """A batch, the seed of its gates, and the finished share of the training."""

    batch: Movable
    seed: int
    done: float

    def to(self, device: torch.device) -> "Drawn":
        """Return the batch on a device."""
        return replace(self, batch=self.batch.to(device))


def learn_gates(
    loaded: tuple[Model, Masking],
    groups: Sequence[GateGroup],
    text: tuple[str, Blocks],
    training: GateTraining,
    *,
    seed: int,
    on_progress: OnProgress = no_progress,
) -> LearnedGates:
    """Return gates learned by masked language modelling of a language's text; the model is not changed."""
    (model, masking), (language, blocks) = loaded, text

    def draw(step: int) -> Drawn:
        batch_seed = derive(derive(seed, "text"), step)
        rng = np.random.Generator(np.random.PCG64(batch_seed))
        rows = [[blocks[number]] for number in rng.integers(len(blocks), size=training.rows)]
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
    """Return gates learned by any loss on the batches that ``draw`` returns by step (Eq. 1).

    The model must belong to the caller alone; its parameters are unchanged in the end. Gates are drawn by the
    seeds, and torch's generators are not touched. There are no checkpoints, as a training takes minutes.
    """
    model, groups = gated_model
    gates = Gates(groups, start=training.start, seed=derive(seed, "start"))

    def loss(gates: Gates, drawn: Drawn) -> Tensor:
        generator = torch.Generator(gates.log_alpha.device).manual_seed(drawn.seed)
        log_alpha = at_target_sparsity(gates, training, drawn.done)
        penalty = training.penalty * kept_share(log_alpha, gates.sizes)
        with with_gates(model, groups, gates.by_group(sample(log_alpha, generator))):
            return batch_loss(model, drawn.batch) + penalty

    with without_gradients(model):
        batches = BatchesByStep(training.steps, draw)
        fit(gates, batches, loss, updates=training.updates, seed=None, callbacks=callbacks)
    log_alpha = at_target_sparsity(gates, training, 1.0).detach()
    threshold = CLOSED_BELOW
    if training.sparsity:
        threshold = largest_kept(log_alpha, gates.sizes, 1 - training.sparsity)
    return LearnedGates(gates.by_group(log_alpha.cpu()), threshold)


def at_target_sparsity(gates: Gates, training: GateTraining, done: float) -> Tensor:
    """Return log α of all gates, shifted to the target sparsity after a share of the steps."""
    if not training.sparsity:
        return gates.log_alpha
    part = min(1.0, done / training.settle) if training.settle else 1.0
    share = training.start + part * (1 - training.sparsity - training.start)
    return shift_to_share(gates.log_alpha, gates.sizes, share)
