"""The one training loop: everything that trains in isogloss calls ``fit`` with its own batches and loss.

Every step draws its randomness (dropout) from (seed, step) alone, so a training that was interrupted and
goes on from a checkpoint makes the very weights of one that was not.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch
from accelerate import Accelerator
from accelerate.utils import GradientAccumulationPlugin
from torch import Tensor, nn

from isogloss.core.errors import DivergedError
from isogloss.core.progress import Progress, Tell, silent
from isogloss.core.records import Value
from isogloss.core.seeds import derive
from isogloss.nn.dropout import quick_dropout
from isogloss.training.batching import Batches
from isogloss.training.checkpoints import Checkpoints, State
from isogloss.training.memory import give_back
from isogloss.training.optimizer import Schedule, adamw, linear_rate
from isogloss.training.precision import autocast, device, settled_precision

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
    observe: Callable[[int], list[Note]] | None = None
    """Called with the number of finished steps; its rows join the others. It chooses nothing: the weights
    are those of a training without it, to the bit."""
    observe_at: tuple[int, ...] = ()
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
    """A loss as a module, so that Accelerate can wrap it whole."""

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
        self.batches, self.watch = batches, watch
        self.accelerator = accelerator()
        self.device = self.accelerator.device
        self.model = model.to(self.device)
        self.objective = self.accelerator.prepare(_Objective(model, loss))
        self.optimizer = adamw(model, schedule)
        self.rate = linear_rate(schedule, len(batches))
        self.precision = precision_of(schedule.precision, watch.checkpoints)
        self.rows: list[Note] = []
        self.best: dict[str, Tensor] | None = None
        self.best_score = -math.inf

    def run(self) -> Fitted:
        start, total = self._resume(), len(self.batches)
        self.model.train()
        with quick_dropout(self.model), _randomness_given_back(self.device):
            self._train(start, total)
        if self.best is not None:
            _put(self.model, self.best)
        self.model.eval()
        self._check_weights(total)
        return Fitted(self.rows)

    def _train(self, start: int, total: int) -> None:
        seen: list[Tensor] = []
        for step in range(start, total):
            seen.append(self._update(step))
            done = step + 1
            evaluated, kept = done in self.watch.evaluate_at, self._is_checkpoint(done, total)
            if done % LOOK_EVERY == 0 or done == total or evaluated or kept:
                self._look(done, total, seen)
            if evaluated:
                self._evaluate(done)
            if done in self.watch.observe_at:
                self._observe(done)
            if kept:
                self._keep(done)

    def _update(self, step: int) -> Tensor:
        torch.manual_seed(derive(self.seed, "step", step))
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate(step)
        batch = self.batches[step]
        with autocast(self.device, self.precision):
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
            first = next((n for n, loss in enumerate(seen) if not math.isfinite(float(loss))), 0)
            step = done - len(seen) + first + 1
            raise self._diverged(f"the loss is {float(seen[first])} in step {step} of {total}")
        self.rows.append({"step": done, "loss": round(mean, 6), "rate": self.rate(done - 1)})
        seen.clear()
        give_back()
        self.watch.tell(Progress(self.watch.what, done, total, f"loss {mean:.3f}"))

    def _check_weights(self, total: int) -> None:
        """Find what no loss shows any more: a last update that went wrong."""
        for name, weight in self.model.named_parameters():
            if not bool(torch.isfinite(weight).all()):
                raise self._diverged(f"{name} is no longer finite after step {total} of {total}")

    def _diverged(self, what: str) -> DivergedError:
        return DivergedError(
            f"{self.watch.what}: {what}. Lower learning_rate (now {self.schedule.learning_rate:g}), raise "
            f"warmup, or set precision to float32."
        )

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

    def _observe(self, done: int) -> None:
        if self.watch.observe is None:
            return
        self.model.eval()
        self.rows += self.watch.observe(done)
        self.model.train()
        self.optimizer.zero_grad(set_to_none=True)

    def _is_checkpoint(self, done: int, total: int) -> bool:
        keep = self.watch.checkpoints
        return bool(keep and keep.every and done % keep.every == 0 and done < total)

    def _keep(self, done: int) -> None:
        if self.watch.checkpoints:
            best_score = None if self.best is None else self.best_score
            notes = {"rows": self.rows, "best_score": best_score, "precision": self.precision}
            self.watch.checkpoints.save(self.model, self.optimizer, State(done, notes, self.best))

    def _resume(self) -> int:
        keep = self.watch.checkpoints
        state = keep.load(self.model, self.optimizer) if keep else None
        if state is None:
            return 0
        self.rows, self.best = state.notes["rows"], state.best
        if self.best is not None:
            self.best_score = state.notes["best_score"]
        return state.step


def accelerator() -> Accelerator:
    """Return what places a model on this machine's devices.

    Mixed precision is ours (``precision.autocast``), so that training and scoring share it, and the number
    of batches an update takes is said here, so that no environment variable changes it unseen.
    """
    return Accelerator(
        mixed_precision="no", gradient_accumulation_plugin=GradientAccumulationPlugin(num_steps=1)
    )


def precision_of(name: str, checkpoints: Checkpoints | None) -> str:
    """Return what "auto" means to a training: what it began with if it was interrupted, else what pays here.

    A machine on which both pay nearly the same may measure otherwise the second time.
    """
    begun = checkpoints.notes() if checkpoints and name == "auto" else None
    return str(begun["precision"]) if begun else settled_precision(name, device())


@contextmanager
def _randomness_given_back(on: torch.device) -> Iterator[None]:
    """Leave the random numbers of the process as they were: each step seeds them for itself."""
    with torch.random.fork_rng(devices=[torch.cuda.current_device()] if on.type == "cuda" else []):
        yield


def _put(model: nn.Module, weights: dict[str, Tensor]) -> None:
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.copy_(weights[name])
