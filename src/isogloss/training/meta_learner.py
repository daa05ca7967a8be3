"""Meta-learned parameters of single languages: Algorithm 1 as a loss for ``fit``.

"On Negative Interference in Multilingual Models", Section 4. At a step on language i the loss moves φ_i along
the hypergradient, with an optimiser of its own, and returns L_train(θ, φ_i), whose gradient by θ is taken as
in any training. φ asks ``fit`` for no gradient, so it is moved once.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from isogloss.core.records import Value
from isogloss.training.as_function import as_function
from isogloss.training.hypergradient import (
    Hypergradient,
    SecondOrder,
    Step,
    exact,
    finite_difference,
    first_order,
    hypergradient,
    norm,
)
from isogloss.training.inner_steps import plain, preconditioned
from isogloss.training.kept_adamw import KeptAdamW, kept
from isogloss.training.optimizer import Schedule

SECOND_ORDER: dict[str, SecondOrder] = {
    "finite-difference": finite_difference,
    "exact": exact,
    "first-order": first_order,
}
INNER_STEPS = ("plain", "preconditioned")

TextLoss = Callable[[Any, Any], Tensor]
"""From a model and a batch of one language to one number."""


@dataclass(frozen=True, kw_only=True)
class MetaBatch:
    """What one step of Algorithm 1 reads."""

    language: str
    train: Any
    validation: Sequence[Any]
    """A batch of each language."""
    pace: float
    """Share of the highest rates at this step: all of them rise and fall together."""


@dataclass(frozen=True, kw_only=True)
class Learning:
    """How φ is meta-learned."""

    own_rate: float
    """α, the highest."""
    inner_rate: float
    """β of the step that is imagined, the highest."""
    inner_step: str = "plain"
    second_order: str = "finite-difference"


class MetaLearner(nn.Module):
    """A model, and all that its meta-learning remembers, as parameters: so a checkpoint holds the whole."""

    def __init__(
        self,
        model: nn.Module,
        own: Mapping[str, Mapping[str, nn.Parameter]],
        loss: TextLoss,
        *,
        learning: Learning,
        schedule: Schedule,
    ) -> None:
        """Take the parameters ``own`` (by language and name) away from every other optimiser."""
        super().__init__()
        self.model, self._loss = model, loss
        self._learning, self._schedule = learning, schedule
        self._own = {language: dict(parts) for language, parts in own.items()}
        alone = {name for parts in own.values() for name in parts}
        self._shared = {name: one for name, one in model.named_parameters() if name not in alone}
        self._seen: dict[str, Tensor] = {}
        self._language = ""
        self.adamw = KeptAdamW([one for parts in own.values() for one in parts.values()], schedule)
        adapted = self._shared.values() if learning.inner_step == "preconditioned" else ()
        self.squares = kept(torch.zeros_like(one) for one in adapted)
        self.updates = kept([torch.zeros(())])

    def forward(self, batch: MetaBatch) -> Tensor:
        """Move φ of the batch's language, then return the training loss."""
        own = self._own[batch.language]
        found = hypergradient(
            as_function(self.model, self._loss, batch.train),
            [as_function(self.model, self._loss, one) for one in batch.validation],
            self._shared,
            own,
            step=self._step(batch.pace * self._learning.inner_rate),
            second_order=SECOND_ORDER[self._learning.second_order],
        )
        whole = found.whole()
        self.adamw.update(
            [(one, whole[name]) for name, one in own.items()], batch.pace * self._learning.own_rate
        )
        self._remember(batch.language, found)
        return self._loss(self.model, batch.train)

    def look(self, done: int) -> list[dict[str, Value]]:
        """Tell of the last step: its losses, and how much each term of the hypergradient weighs."""
        if not self._seen:
            return []
        numbers = {name: float(f"{float(value):.6g}") for name, value in self._seen.items()}
        return [{"step": done, "language": self._language, **numbers}]

    def give_back(self) -> None:
        """Let all parameters ask for gradients again."""
        self.adamw.give_back()

    def _step(self, rate: float) -> Step:
        if not len(self.squares):
            return plain(rate)
        return preconditioned(
            rate,
            dict(zip(self._shared, self.squares, strict=True)),
            updates=int(self.updates[0]),
            beta2=self._schedule.beta2,
            epsilon=self._schedule.epsilon,
        )

    def _remember(self, language: str, found: Hypergradient) -> None:
        self._language = language
        self._seen = {
            "train_loss": found.train,
            "validation_loss": found.validation,
            "first_term": norm(found.direct),
            "second_term": norm(found.second_order),
        }
        if len(self.squares):
            self.updates[0] += 1
            for square, gradient in zip(self.squares, found.gradient.values(), strict=True):
                square.lerp_(gradient.square(), 1 - self._schedule.beta2)
