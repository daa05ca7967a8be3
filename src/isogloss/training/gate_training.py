"""Learning which parameters of a frozen model one language needs: hard-concrete gates over them.

"On Negative Interference in Multilingual Models", Section 3.2, Eq. 1: min E[L(x; θ ⊙ z)] + λ·E‖θ ⊙ z‖₀ over
the gates' parameters π; L is masked language modelling on the language's text, ‖·‖₀ here the share of the
gated parameters that is kept. In place of λ a sparsity can be asked for. Then all π are shifted by one number
so that the expected sparsity is the one asked for, in every update, and only how gates differ is learned.
Where that settles, ∂L/∂πᵢ is the same multiple of ∂‖·‖₀/∂πᵢ for all gates: as with the one λ that leads to
this sparsity, and nobody has to look for it. In the end the gates with the largest π are kept, as many
as were asked for (without a sparsity, all whose settled gate is not 0), and the others pruned.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from isogloss.core.progress import OnProgress, no_progress
from isogloss.core.run_parts import Updates
from isogloss.core.seeds import derive
from isogloss.encoders.family import Model
from isogloss.encoders.gates import GateGroup, frozen, gated
from isogloss.nn.hard_concrete import (
    CLOSED_BELOW,
    kept_share,
    largest_kept,
    log_alpha_for,
    sample,
    shifted,
)
from isogloss.tasks.masked_lm import MaskedBatch, Masking, masked_lm_loss
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
    """λ: what keeping everything costs, in nats a hidden subword."""
    settle: float = 0.5
    """Share of the steps over which the target sparsity rises to its full value."""
    start: float = 0.95
    """Probability that a gate is open before the first update."""


class Gates(nn.Module):
    """The gates over a model, all in one row, group after group."""

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
class Learned:
    """log α of every group's gates, and the log α above which a gate is kept."""

    log_alpha: dict[str, Tensor]
    above: float


@dataclass(frozen=True)
class _Drawn:
    """A batch, the seed of its gates, and the share of the training that is done."""

    batch: MaskedBatch
    seed: int
    done: float

    def to(self, device: torch.device) -> "_Drawn":
        """Return it on a device."""
        return replace(self, batch=self.batch.to(device))


@dataclass(frozen=True)
class _Batches:
    """Batch i, drawn from (seed, i) alone."""

    language: str
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
        return _Drawn(
            self.masking.batch(rows, seed=seed, languages=(self.language,)),
            derive(seed, "gates"),
            step / self.steps,
        )


def learn_gates(
    loaded: tuple[Model, Masking],
    groups: Sequence[GateGroup],
    text: tuple[str, Blocks],
    how: GateTraining,
    *,
    seed: int,
    on_progress: OnProgress = no_progress,
) -> Learned:
    """Return gates learned on a language's text; the model stays as it is.

    Everything random comes from the seed. There are no checkpoints: a training takes minutes.
    """
    (model, masking), (language, blocks) = loaded, text
    gates = Gates(groups, start=how.start, seed=derive(seed, "start"))
    batches = _Batches(language, blocks, masking, how.rows, how.steps, derive(seed, "text"))

    def loss(gates: Gates, drawn: _Drawn) -> Tensor:
        generator = torch.Generator(gates.log_alpha.device).manual_seed(drawn.seed)
        log_alpha = asked_for(gates, how, drawn.done)
        kept = kept_share(log_alpha, gates.sizes)
        with gated(model, groups, gates.by_group(sample(log_alpha, generator))):
            return masked_lm_loss(model, drawn.batch) + how.penalty * kept

    with frozen(model):
        fit(
            gates,
            batches,
            loss,
            updates=how.updates,
            seed=seed,
            callbacks=Callbacks(on_progress=on_progress, what=f"gates of {language}"),
        )
    log_alpha = asked_for(gates, how, 1.0).detach()
    above = largest_kept(log_alpha, gates.sizes, 1 - how.sparsity) if how.sparsity else CLOSED_BELOW
    return Learned(gates.by_group(log_alpha.cpu()), above)


def asked_for(gates: Gates, how: GateTraining, done: float) -> Tensor:
    """Return log α of all gates, shifted to the target sparsity after a share of the steps."""
    if not how.sparsity:
        return gates.log_alpha
    part = min(1.0, done / how.settle) if how.settle else 1.0
    return shifted(gates.log_alpha, gates.sizes, how.start + part * (1 - how.sparsity - how.start))
