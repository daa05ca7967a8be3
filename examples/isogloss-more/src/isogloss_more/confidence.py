"""Confidence penalty: the entropy of predictions is part of the loss.

Pereyra et al. (2017), "Regularizing Neural Networks by Penalizing Confident Output Distributions", Eq. 2.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from isogloss.plugins import AddedCost, AuxiliaryLoss, AuxiliaryTerm, Load, Reads, Setting, Weight


@dataclass(frozen=True, kw_only=True)
class ConfidencePenalty(AuxiliaryLoss):
    """Subtract the mean entropy of predictions from the loss, times a weight."""

    name: ClassVar[str] = "confidence-penalty"
    uses: ClassVar[tuple[str, ...]] = ()

    weight: Weight = 0.1
    """β, the weight of the entropy. 0 is the method without it."""

    def reads(self, source: tuple[str, ...], target: tuple[str, ...]) -> Reads:
        """Read nothing: it uses the batches of the method."""
        del source, target
        return Reads()

    def cost(self, batch: Load) -> AddedCost:
        """Return the cost of a further pass over a batch."""
        return AddedCost(rows=batch.rows if self.weight else 0)

    def prepare(self, setting: Setting, model: Any, tokenizer: Any, steps: int) -> AuxiliaryTerm | None:
        """Return the term, or None if its weight is 0."""
        del tokenizer, steps

        def penalty(batch: Any) -> Tensor:
            return -self.weight * mean_entropy(setting.task.scores(model, batch))

        return AuxiliaryTerm(batches=None, loss=penalty) if self.weight else None


def mean_entropy(scores: Tensor) -> Tensor:
    """Return the mean entropy, in nats, of the softmax of raw scores [prediction class]."""
    logarithms = scores.float().log_softmax(dim=-1)
    return -(logarithms.exp() * logarithms).sum(dim=-1).mean()
