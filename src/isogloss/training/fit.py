"""The one training loop: everything that trains in isogloss calls ``fit`` with its own batches and loss.

Every step draws its randomness (dropout) from (seed, step) alone, so a training resumed from a checkpoint
yields the weights of one that was never interrupted, to the bit.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from isogloss.core.errors import DivergedError
from isogloss.core.interruption import Interrupted, interruption_requested, uninterruptible
from isogloss.core.progress import OnProgress, Progress, no_progress
from isogloss.core.records import Value
from isogloss.core.run_parts import Updates
from isogloss.core.seeds import derive
from isogloss.encoders.computation import recomputed_layers
from isogloss.nn.dropout import quick_dropout
from isogloss.nn.frozen import freeze, thaw, unfrozen
from isogloss.training.batching import Batches, Movable, Whole, parts_of
from isogloss.training.checkpoints import Checkpoints, Notes, State
from isogloss.training.distributed import (
    Copies,
    all_reduced,
    is_main_process,
    is_sharded,
    own_device,
    rank,
    world_size,
)
from isogloss.training.optimizer import adamw, rate_schedule, set_rate
from isogloss.training.precision import autocast, device, release_memory, resolved_precision
from isogloss.training.sharding import Shards, own

LOOK_EVERY = 20
"""Steps between checks of the loss: often enough to stop early, rarely enough not to wait for a GPU."""

Made = TypeVar("Made", bound=Movable)
Note = dict[str, Value]
Loss = Callable[[Any, Any], Tensor]
"""From the model and a batch, on the model's device, to one number."""


@dataclass(frozen=True, kw_only=True)
class Callback:
    """Records rows every ``every`` steps; never affects which weights are selected."""

    rows: Callable[[int], list[Note]]
    """Called with the number of finished steps; its rows join those of the training."""
    every: int
    """Steps between two calls; it is also called after the last step."""
    before: bool = False
    """Whether it is called before the first step too."""


@dataclass(frozen=True, kw_only=True)
class Callbacks:
    """The callbacks of a training: selection on dev data, further rows, checkpoints, progress."""

    evaluate: Callable[[int], list[Note]] | None = None
    """Called with the number of finished steps; returns rows whose mean ``score`` selects the model."""
    evaluate_at: tuple[int, ...] = ()
    """Steps after which it is called."""
    averaged: int = 0
    """The weights at the last so many of these steps are averaged; 0 leaves the best ones in the model."""
    patience: int = 0
    """Training stops after so many evaluations in a row without a higher score; 0: never."""
    periodic: tuple[Callback, ...] = ()
    checkpoints: Checkpoints | None = None
    on_progress: OnProgress = no_progress
    what: str = "training"


def fit(
    model: nn.Module,
    batches: Batches[Made],
    loss: Loss,
    *,
    updates: Updates,
    seed: int,
    callbacks: Callbacks | None = None,
) -> list[Note]:
    """Train the model in place on every batch once; with ``evaluate``, leave the best weights in it.

    Returns the rows of the training: losses, dev scores.

    With ``updates.accumulation``, or in several processes, a batch is computed in parts (``Divisible``): the
    same update within rounding.

    Raises DivergedError, with the step, when the loss is no longer a finite number.
    """
    return _Fit(model, batches, loss, updates=updates, seed=seed, callbacks=callbacks or Callbacks()).run()


@dataclass(frozen=True)
class _Part:
    """A batch or a part of one, the seed of its dropout, and its share of the loss."""

    batch: Movable
    seed: int
    share: float = 1.0


class _Fit:
    """The state of one training; ``run`` is ``fit``."""

    def __init__(
        self,
        model: nn.Module,
        batches: Batches[Movable],
        loss: Loss,
        *,
        updates: Updates,
        seed: int,
        callbacks: Callbacks,
    ) -> None:
        self.updates, self.seed = updates, seed
        self.batches, self.loss, self.callbacks = batches, loss, callbacks
        self.device, self.model = own_device(), model
        self.held = Shards(model) if is_sharded() else Copies(model)
        self.optimizer = adamw(model, updates)
        self.rate = rate_schedule(updates, len(batches))
        self.precision = precision_of(updates.precision, callbacks.checkpoints)
        self.rows: list[Note] = []
        self.best: dict[str, Tensor] | None = None
        self.best_score = -math.inf
        self.without_gain = 0
        self.reported = 0
        self.unrecorded: list[float] = []

    def run(self) -> list[Note]:
        start, total = self._resume(), len(self.batches)
        self.model.train()
        generators = [torch.cuda.current_device()] if self.device.type == "cuda" else []
        # The process gets its random state back: each step seeds its own.
        with quick_dropout(self.model), torch.random.fork_rng(devices=generators), uninterruptible():
            self._train(start, total)
        if self.best is not None:
            _put(self.model, self.best)
        self.held.gather()
        self.model.eval()
        self._check_weights(total)
        return self.rows

    def _train(self, start: int, total: int) -> None:
        seen = [torch.tensor(loss, device=self.device) for loss in self.unrecorded]
        if start == 0:
            self._observe([one for one in self.callbacks.periodic if one.before], 0)
        for step in range(start, total):
            if self._is_stopped():
                return
            seen.append(self._update(step))
            done = step + 1
            evaluated, kept = done in self.callbacks.evaluate_at, self._is_checkpoint(done, total)
            recorded = done % LOOK_EVERY == 0 or done == total or evaluated or kept
            remark = self._record_loss(done, total, seen) if recorded else ""
            if evaluated:
                self._evaluate(done)
            last = done == total or self._is_stopped()
            due = [one for one in self.callbacks.periodic if done % one.every == 0 or last]
            self._observe(due, done)
            leaves = self._leaves(recorded=recorded) and not last
            if kept or leaves:
                self._keep(done, seen)
            if remark:
                self._report(done, total, remark)
            if leaves:
                raise Interrupted

    def _update(self, step: int) -> Tensor:
        """Make one update; return the loss of the parts that were computed here."""
        set_rate(self.optimizer, self.rate(step))
        losses = [self._backward(part) for part in self._parts(step)]
        self.held.sum_gradients()
        if self.updates.clip:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.updates.clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return torch.stack(losses).sum() if losses else torch.zeros((), device=self.device)

    def _parts(self, step: int) -> "Iterator[_Part]":
        """Yield this process's share of the batch."""
        batch, together = self.batches[step], world_size()
        count = -(-(self.updates.accumulation or 1) // together) * together
        if count == 1 or (isinstance(batch, Whole) and batch.is_whole):
            yield _Part(batch, derive(self.seed, "step", step), 1 / together)
            return
        number = -1
        for place, (part, share) in enumerate(parts_of(batch, count, self.callbacks.what)):
            number += share is not None
            if place % together == rank():  # A part's dropout is its own, wherever it is computed.
                yield _Part(part, derive(self.seed, "step", step, number), share or 0.0)

    def _backward(self, part: "_Part") -> Tensor:
        torch.manual_seed(part.seed)
        batch = part.batch.to(self.device)
        less = recomputed_layers(self.model) if self.updates.gradient_checkpointing else nullcontext()
        with less, autocast(self.device, self.precision):
            value = self.held.loss(lambda model: self.loss(model, batch))
        value = value if part.share == 1 else value * part.share
        value.backward()  # type: ignore[no-untyped-call]
        return value.detach()

    def _record_loss(self, done: int, total: int, seen: list[Tensor]) -> str:
        """Record the mean loss since the last time; return it as a remark."""
        losses = all_reduced(torch.stack(seen).float())
        mean = float(losses.mean())
        if not math.isfinite(mean):
            first = next((n for n, loss in enumerate(losses) if not math.isfinite(float(loss))), 0)
            step = done - len(seen) + first + 1
            raise self._diverged(f"the loss is {float(losses[first])} in step {step} of {total}")
        self.rows.append({"step": done, "loss": round(mean, 6), "rate": self.rate(done - 1)})
        seen.clear()
        release_memory()
        return f"loss {mean:.3f}"

    def _report(self, done: int, total: int, remark: str) -> None:
        """Report progress with the rows since the last report; after resuming, with all of them."""
        if self._is_stopped():
            total, remark = done, f"stopped after {self.without_gain} evaluations without a higher score"
        rows, self.reported = tuple(self.rows[self.reported :]), len(self.rows)
        if is_main_process():
            self.callbacks.on_progress(Progress(self.callbacks.what, done, total, remark, rows))

    def _observe(self, due: Iterable[Callback], done: int) -> None:
        """Call the callbacks that are due."""
        for one in due:
            self.model.eval()
            self.rows += self.held.from_main_process(partial(one.rows, done))
            self.model.train()
            self.optimizer.zero_grad(set_to_none=True)

    def _check_weights(self, total: int) -> None:
        """Raise DivergedError where the last update, which no loss shows, left weights not finite."""
        for name, weight in self.model.named_parameters():
            if not bool(torch.isfinite(weight).all()):
                raise self._diverged(f"{name} is no longer finite after step {total} of {total}")

    def _diverged(self, what: str) -> DivergedError:
        return DivergedError(
            f"{self.callbacks.what}: {what}. Lower learning_rate (now {self.updates.learning_rate:g}), "
            f"raise warmup, or set precision to float32."
        )

    def _evaluate(self, done: int) -> None:
        notes = self._notes(done)
        self.rows += notes
        if self.callbacks.averaged:
            self._average(done)
        elif notes:
            self._choose(notes)

    def _notes(self, done: int) -> list[Note]:
        """Return the rows of an evaluation; none where nothing is evaluated."""
        if self.callbacks.evaluate is None:
            return []
        evaluate = self.callbacks.evaluate
        self.model.eval()
        notes = self.held.from_main_process(lambda: evaluate(done))  # Other GPUs might decide otherwise.
        self.model.train()
        return notes

    def _choose(self, notes: list[Note]) -> None:
        """Keep the weights if their score is higher than all before."""
        score = sum(float(note["score"] or 0.0) for note in notes) / len(notes)
        self.without_gain += 1
        if score > self.best_score:
            self.best_score, self.without_gain = score, 0
            self.best = on_host(unfrozen(self.model))

    def _average(self, done: int) -> None:
        """Let the mean of the last evaluated weights take the place of the best ones."""
        last = self.callbacks.evaluate_at[-self.callbacks.averaged :]
        if done not in last:
            return
        share, now = 1 / (last.index(done) + 1), on_host(unfrozen(self.model))
        before = self.best or now
        self.best = {name: torch.lerp(before[name], one, share) for name, one in now.items()}

    def _leaves(self, *, recorded: bool) -> bool:
        """Return whether to leave; several processes ask one another where they meet anyway."""
        if world_size() == 1:
            return interruption_requested()
        asked = torch.tensor(float(interruption_requested()), device=self.device)
        return recorded and bool(all_reduced(asked))

    def _is_stopped(self) -> bool:
        return 0 < self.callbacks.patience <= self.without_gain

    def _is_checkpoint(self, done: int, total: int) -> bool:
        keep = self.callbacks.checkpoints
        return bool(keep and keep.every and done % keep.every == 0 and done < total)

    def _keep(self, done: int, seen: Sequence[Tensor]) -> None:
        """Write a checkpoint, with the losses that no row has yet."""
        if self.callbacks.checkpoints:
            notes: Notes = {"rows": self.rows, "unlooked": [float(loss) for loss in seen]}
            notes |= {"best_score": None if self.best is None else self.best_score}
            notes |= {"precision": self.precision, "without_gain": self.without_gain}
            self.callbacks.checkpoints.save(self.model, self.optimizer, State(done, notes, self.best))

    def _resume(self) -> int:
        keep = self.callbacks.checkpoints
        state = keep.load(self.model, self.optimizer) if keep else None
        if state is None:
            return 0
        self.rows, self.best = state.notes["rows"], state.best
        self.unrecorded = state.notes.get("unlooked", [])
        if self.best is not None:
            self.best_score = state.notes["best_score"]
            self.without_gain = state.notes.get("without_gain", 0)
        return state.step


@contextmanager
def trained_alone(model: nn.Module, parameters: Iterable[nn.Parameter] | None) -> Iterator[None]:
    """Let ``fit`` leave all other parameters of a model as they are; None trains all."""
    if parameters is None:
        yield
        return
    alone = {id(one) for one in parameters}
    freeze(one for one in model.parameters() if id(one) not in alone)
    try:
        yield
    finally:
        thaw(model)


def precision_of(name: str, checkpoints: Checkpoints | None) -> str:
    """Resolve "auto": to the precision of the checkpoint if there is one, else to the one measured as faster.

    A machine on which both are about as fast may measure otherwise the second time.
    """
    begun = checkpoints.notes() if checkpoints and name == "auto" else None
    return str(begun["precision"]) if begun else resolved_precision(name, device())


def on_host(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return copies of weights in the machine's own memory: a GPU's is for what is being trained."""
    return {name: own(weight.detach()).to("cpu", copy=True) for name, weight in weights.items()}


def _put(model: nn.Module, weights: dict[str, Tensor]) -> None:
    with torch.no_grad():
        for name, weight in unfrozen(model).items():
            own(weight).copy_(weights[name])
