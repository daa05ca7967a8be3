"""A second term of the loss beside the task's, with a batch of its own for each step."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from isogloss.core.records import Value
from isogloss.training.batching import Batches
from isogloss.training.fit import Loss
from isogloss.training.setting import Setting


@dataclass(frozen=True, kw_only=True)
class Beside:
    """A term and its batches, the rows it leaves and what there is to warn of; empty, there is no term."""

    batches: Batches[Any] | None = None
    loss: Loss | None = None
    rows: tuple[dict[str, Value], ...] = ()
    warnings: tuple[str, ...] = ()

    def added(self, batches: Batches[Any], loss: Loss) -> tuple[Batches[Any], Loss]:
        """Return a training's batches and loss with this term added, or as they are.

        The training's own loss is computed first, so its dropout is the one it has without the term.
        """
        own = self.loss
        if self.batches is None or own is None:
            return batches, loss
        return _Both(batches, self.batches), lambda model, both: loss(model, both[0]) + own(model, both[1])


MakeBeside = Callable[[Setting, Any, Any, int], Beside]
"""From the setting, the model before its first step, its tokenizer and the number of steps."""


@dataclass(frozen=True)
class _Both:
    """Batches of both, side by side, as long as there are first ones."""

    first: Batches[Any]
    second: Batches[Any]

    def __len__(self) -> int:
        return len(self.first)

    def __getitem__(self, step: int) -> tuple[Any, Any]:
        return self.first[step], self.second[step]
