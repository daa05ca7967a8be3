"""Learning which parameters of a frozen model one language needs: hard-concrete gates over them.

"On Negative Interference in Multilingual Models", Section 3.2, Eq. 1: min E[L(x; θ ⊙ z)] + λ·E‖θ ⊙ z‖₀ over
the gates' parameters π; L is masked language modelling on the language's text, ‖·‖₀ here the share of the
gated parameters that is kept. In place of λ a sparsity can be asked for. Then all π are shifted by one number
so that the expected sparsity is the one asked for, in every update, and only how gates differ is learned.
Where that settles, ∂L/∂πᵢ is the same multiple of ∂‖·‖₀/∂πᵢ for all gates: as with the one λ that leads to
this sparsity, and nobody has to look for it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from isogloss.core.progress import Tell, silent
from isogloss.core.seeds import derive
from isogloss.encoders.gates import GateGroup, frozen, gated
from isogloss.encoders.language_maps import of_language
from isogloss.nn.hard_concrete import kept_share, log_alpha_for, sample, shifted
from isogloss.tasks.masked_lm import MaskedBatch, Masking, masked_lm_loss
from isogloss.training.fit import Watch, fit
from isogloss.training.optimizer import Schedule
from isogloss.training.precision import scoring

SPREAD = 0.01
"""Standard deviation of the gates' parameters at the start (Louizos et al.'s code)."""

Blocks = Sequence[np.ndarray]
"""Rows of text, as subwords."""


@dataclass(frozen=True, kw_only=True)
class GateTraining:
    """How gates are learned."""

    steps: int
    rows: int
    """Rows of text of one update."""
    learning_rate: float
    sparsity: float | None
    """Share of the gated parameters that shall be pruned; None lets ``penalty`` decide."""
    penalty: float
    """λ: what keeping everything costs, in nats a hidden subword."""
    settle: float
    """Share of the steps after which the whole sparsity is asked for; before, it rises."""
    start: float
    """Probability that a gate is open before the first update."""
    precision: str = "auto"


class Gates(nn.Module):
    """The gates over a model, all in one row, group after group."""

    def __init__(self, groups: Sequence[GateGroup], *, start: float, seed: int) -> None:
        super().__init__()
        self.groups = tuple(groups)
        count = sum(group.size for group in groups)
        noise = torch.randn(count, generator=torch.Generator().manual_seed(seed))
        self.log_alpha = nn.Parameter(log_alpha_for(start) + SPREAD * noise)
        sizes = [torch.full((group.size,), group.parameters) for group in groups]
        self.register_buffer("sizes", torch.cat(sizes).float())

    def by_group(self, row: Tensor) -> dict[str, Tensor]:
        """Cut numbers, one for each gate, into the groups."""
        parts = row.split([group.size for group in self.groups])
        return {group.name: part.view(group.shape) for group, part in zip(self.groups, parts, strict=True)}


@dataclass(frozen=True)
class _Drawn:
    """A batch, the seed of its gates, and the share of the training that is done."""

    batch: MaskedBatch
    seed: int
    done: float


@dataclass(frozen=True)
class _Batches:
    """Batch i, drawn from (seed, i) alone."""

    blocks: Blocks
    masking: Masking
    rows: int
    steps: int
    seed: int

    def __len__(self) -> int:
        return self.steps

    def __getitem__(self, step: int) -> _Drawn:
        seed = derive(self.seed, step)
        rng = np.random.Generator(np.random.PCG64(seed))
        rows = [[self.blocks[place]] for place in rng.integers(len(self.blocks), size=self.rows)]
        return _Drawn(self.masking.batch(rows, seed=seed), derive(seed, "gates"), step / self.steps)


def learn_gates(
    loaded: tuple[Any, Masking],
    groups: Sequence[GateGroup],
    text: tuple[str, Blocks],
    how: GateTraining,
    *,
    seed: int,
    tell: Tell = silent,
) -> dict[str, Tensor]:
    """Return log α of every group's gates, learned on a language's text; the model stays as it is.

    Everything random comes from the seed. There are no checkpoints: a training takes minutes.
    """
    (model, masking), (language, blocks) = loaded, text
    gates = Gates(groups, start=how.start, seed=derive(seed, "start"))
    batches = _Batches(blocks, masking, how.rows, how.steps, derive(seed, "text"))

    def loss(gates: Gates, drawn: _Drawn) -> Tensor:
        generator = torch.Generator(gates.log_alpha.device).manual_seed(drawn.seed)
        log_alpha = asked_for(gates, how, drawn.done)
        kept = kept_share(log_alpha, gates.sizes)
        with gated(model, groups, gates.by_group(sample(log_alpha, generator))):
            return masked_lm_loss(model, drawn.batch) + how.penalty * kept

    schedule = Schedule(
        learning_rate=how.learning_rate, warmup=0.0, weight_decay=0.0, clip=0.0, precision=how.precision
    )
    with frozen(model), of_language(model, language):
        fit(
            gates,
            batches,
            loss,
            schedule=schedule,
            seed=seed,
            watch=Watch(tell=tell, what=f"gates of {language}"),
        )
    return gates.by_group(asked_for(gates, how, 1.0).detach().cpu())


def asked_for(gates: Gates, how: GateTraining, done: float) -> Tensor:
    """Return log α of all gates, shifted to the sparsity that is asked for when a share of the steps is done."""
    if how.sparsity is None:
        return gates.log_alpha
    part = min(1.0, done / how.settle) if how.settle else 1.0
    return shifted(gates.log_alpha, gates.sizes, how.start + part * (1 - how.sparsity - how.start))


def masked_lm_perplexity(
    model: Any, language: str, batches: Sequence[MaskedBatch], *, precision: str
) -> float:
    """Return e to the mean cross entropy at the hidden places; inf where it is too large to say."""
    total = hidden = 0.0
    with of_language(model, language), scoring(model, precision):
        for batch in batches:
            total += float(masked_lm_loss(model, batch)) * len(batch.gold)
            hidden += len(batch.gold)
    mean = total / hidden
    return math.exp(mean) if mean < math.log(np.finfo(np.float64).max) else math.inf
