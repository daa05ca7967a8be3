"""The one training loop: everything that trains in isogloss calls ``fit`` with its own batches and loss.

Every step draws its randomness (dropout) from (seed, step) alone, so a training that was interrupted and
goes on from a checkpoint makes the very weights of one that was not.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from torch import Tensor, nn

from isogloss.core.errors import DivergedError
from isogloss.core.progress import Progress, Tell, silent
from isogloss.core.records import Value
from isogloss.core.seeds import derive
from isogloss.nn.dropout import quick_dropout
from isogloss.training.batching import Batches
from isogloss.training.checkpoints import Checkpoints, State
from isogloss.training.optimizer import Schedule, adamw, linear_rate
from isogloss.training.precision import measured_precision

LOOK_EVERY = 20
"""Steps between looks at the loss: often enough to stop early, rarely enough not to wait for a GPU."""

Made = TypeVar("Made")
Note = dict[str, Value]
Loss = Callable[[Any, Any], Tensor]
"""From the model and a batch to one number."""


@dataclass(frozen=True, kw_only=True)
class Watch:
    """What happens beside the updates: selection on dev data, checkpoints, progress."""

    evaluate: Callable[[int], list[Note]] | None = None
    """Called with the number of finished steps; returns rows whose mean ``score`` selects the model."""
    evaluate_at: tuple[int, ...] = ()
    """Steps after which it is called."""
    checkpoints: Checkpoints | None = None
    tell: Tell = silent
    what: str = "training"


@dataclass(frozen=True)
class Fitted:
    """What a training leaves beside the weights: its rows (losses, dev scores)."""

    rows: list[Note] = field(default_factory=list)


def fit(
    model: nn.Module,
    batches: Batches[Made],
    loss: Loss,
    *,
    schedule: Schedule,
    seed: int,
    watch: Watch | None = None,
) -> Fitted:
    """Train the model in place on every batch once; with ``evaluate``, leave the best weights in it.

    Raises DivergedError, with the step, when the loss is no longer a finite number.
    """
    return _Fit(model, batches, loss, schedule=schedule, seed=seed, watch=watch or Watch()).run()


class _Objective(nn.Module):
    """A loss as a module, so that Accelerate can wrap it whole (data parallel, mixed precision)."""

    def __init__(self, model: nn.Module, loss: Loss) -> None:
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, batch: object) -> Tensor:
        return self.loss(self.model, batch)


class _Fit:
    """One training under way; ``run`` is ``fit``."""

    def __init__(
        self,
        model: nn.Module,
        batches: Batches[Any],
        loss: Loss,
        *,
        schedule: Schedule,
        seed: int,
        watch: Watch,
    ) -> None:
        self.schedule, self.seed = schedule, seed
        self.model, self.batches, self.watch = model, batches, watch
        self.accelerator = accelerator(schedule.precision)
        self.optimizer = adamw(model, schedule)
        self.rate = linear_rate(schedule, len(batches))
        model.to(self.accelerator.device)
        self.objective = self.accelerator.prepare(_Objective(model, loss))
        self.rows: list[Note] = []
        self.best: dict[str, Tensor] | None = None
        self.best_score = -math.inf

    def run(self) -> Fitted:
        start, total = self._resume(), len(self.batches)
        self.model.train()
        with quick_dropout(self.model):
            self._steps(start, total)
        if self.best is not None:
            _put(self.model, self.best)
        self.model.eval()
        return Fitted(self.rows)

    def _steps(self, start: int, total: int) -> None:
        seen: list[Tensor] = []
        for step in range(start, total):
            seen.append(self._update(step))
            done = step + 1
            evaluated, kept = done in self.watch.evaluate_at, self._is_checkpoint(done, total)
            if done % LOOK_EVERY == 0 or done == total or evaluated or kept:
                self._look(done, total, seen)
            if evaluated:
                self._evaluate(done)
            if kept:
                self._keep(done)

    def _update(self, step: int) -> Tensor:
        torch.manual_seed(derive(self.seed, "step", step))
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate(step)
        batch = self.batches[step]
        with self.accelerator.autocast():
            value = self.objective(batch)
        self.accelerator.backward(value)
        if self.schedule.clip:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.schedule.clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        detached: Tensor = value.detach()
        return detached

    def _look(self, done: int, total: int, seen: list[Tensor]) -> None:
        mean = float(torch.stack(seen).float().mean())
        if not math.isfinite(mean):
            raise DivergedError(
                f"{self.watch.what}: the loss is {mean} within steps {done - len(seen) + 1} to {done} "
                f"of {total}. Lower learning_rate (now {self.schedule.learning_rate:g}) or raise warmup, "
                f"or set precision to float32."
            )
        self.rows.append({"step": done, "loss": round(mean, 6), "rate": self.rate(done - 1)})
        seen.clear()
        self.watch.tell(Progress(self.watch.what, done, total, f"loss {mean:.3f}"))

    def _evaluate(self, done: int) -> None:
        if self.watch.evaluate is None:
            return
        self.model.eval()
        notes = self.watch.evaluate(done)
        self.model.train()
        self.rows += notes
        score = sum(float(note["score"] or 0.0) for note in notes) / max(1, len(notes))
        if score > self.best_score:
            self.best_score = score
            self.best = {name: weight.detach().clone() for name, weight in self.model.named_parameters()}

    def _is_checkpoint(self, done: int, total: int) -> bool:
        keep = self.watch.checkpoints
        return bool(keep and keep.every and done % keep.every == 0 and done < total)

    def _keep(self, done: int) -> None:
        if self.watch.checkpoints:
            notes = {"rows": self.rows, "best_score": self.best_score}
            self.watch.checkpoints.save(self.model, self.optimizer, State(done, notes, self.best))

    def _resume(self) -> int:
        keep = self.watch.checkpoints
        state = keep.load(self.model, self.optimizer) if keep else None
        if state is None:
            return 0
        self.rows, self.best_score = state.notes["rows"], state.notes["best_score"]
        self.best = state.best
        return state.step


def accelerator(precision: str) -> Accelerator:
    """Return an Accelerator for this machine; "auto" measures which precision pays."""
    AcceleratorState._reset_state()
    plain = Accelerator(mixed_precision="no")
    chosen = measured_precision(plain.device.type) if precision == "auto" else precision
    if chosen == "float32":
        return plain
    AcceleratorState._reset_state()
    return Accelerator(mixed_precision="bf16")


def _put(model: nn.Module, weights: dict[str, Tensor]) -> None:
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.copy_(weights[name])
