"""The only training loop: everything that trains in isogloss calls ``fit`` with its own batches and loss.

Randomness in a step (dropout) depends only on (seed, step), so a training resumed from a checkpoint yields
exactly the weights of an uninterrupted one.
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
from isogloss.core.identity import derive
from isogloss.core.processes import Interrupted, interruption_requested, uninterruptible
from isogloss.core.progress import OnProgress, Progress, no_progress
from isogloss.core.records import Value
from isogloss.core.run_parts import Updates
from isogloss.encoders.computation import quick_dropout, recomputed_layers
from isogloss.encoders.family import freeze, thaw, unfrozen_parameters
from isogloss.training.batches_ahead import made_ahead
from isogloss.training.batching import Batches, Movable, is_whole, parts_of
from isogloss.training.captured import Captured, Rounded
from isogloss.training.checkpoints import Checkpoints, Notes, State
from isogloss.training.distributed import (
    Copies,
    Shards,
    all_reduced,
    from_main_process,
    is_main_process,
    is_sharded,
    local,
    own_device,
    rank,
    refuse_sharding,
    world_size,
)
from isogloss.training.optimizer import adamw, move_uphill, rate_schedule, set_rate
from isogloss.training.precision import autocast, device, release_memory, resolved_precision, tf32_products

LOG_EVERY = 20
"""Steps between checks of the loss: often enough to stop early, rarely enough not to wait for a GPU."""

Made = TypeVar("Made", bound=Movable)
Note = dict[str, Value]
Loss = Callable[[Any, Any], Tensor]
"""From the model and a batch, on the model's device, to one number."""


@dataclass(frozen=True, kw_only=True)
class Callback:
    """Records rows every ``every`` steps, and never affects which weights are selected."""

    rows: Callable[[int], list[Note]]
    """Called with the number of finished steps. Returns rows for the record of the training."""
    every: int
    """Steps between two calls. It is also called after the last step."""
    at_start: bool = False
    """Whether it is also called before the first step."""


@dataclass(frozen=True, kw_only=True)
class Callbacks:
    """The callbacks of a training: selection on dev data, further rows, checkpoints and progress."""

    evaluate: Callable[[int], list[Note]] | None = None
    """Called with the number of finished steps. Returns rows whose mean ``score`` selects the model."""
    evaluate_at: tuple[int, ...] = ()
    """Steps after which ``evaluate`` is called."""
    averaged: int = 0
    """Number of final evaluations whose weights are averaged. 0 keeps the best weights instead."""
    patience: int = 0
    """Consecutive evaluations without a higher score after which training stops. 0 never stops early."""
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
    seed: int | None,
    callbacks: Callbacks | None = None,
) -> list[Note]:
    """Train the model in place on every batch once, and with ``evaluate``, keep the best weights in it.

    Returns the rows of the training, such as losses and dev scores. With ``updates.accumulation``, or in
    several processes, a batch is computed in parts (``Divisible``), which gives the same update within
    rounding. A training without a ``seed`` never uses torch's generators, which other threads may use. Raises
    DivergedError, with the step, if the loss is not finite.
    """
    return _Training(
        model, batches, loss, updates=updates, seed=seed, callbacks=callbacks or Callbacks()
    ).run()


@dataclass(frozen=True)
class _BatchPart:
    """A batch or a part of one, its dropout seed, and its share of the loss."""

    batch: Movable
    seed: int | None
    share: float = 1.0


class _Training:
    """The state of one training, as run by ``fit``."""

    def __init__(
        self,
        model: nn.Module,
        batches: Batches[Movable],
        loss: Loss,
        *,
        updates: Updates,
        seed: int | None,
        callbacks: Callbacks,
    ) -> None:
        if updates.sam_radius:
            refuse_sharding("sam_radius: it needs one norm over all gradients", "remove sam_radius")
        self.updates = updates
        self.seed = seed
        self.batches = batches
        self.loss = loss
        self.callbacks = callbacks
        self.device = own_device()
        self.model = model
        self.replica = Shards(model) if is_sharded() else Copies(model)
        self.optimizer = adamw(model, updates)
        self.rate = rate_schedule(updates, len(batches))
        self.precision = precision_of(updates.precision, callbacks.checkpoints)
        self.captured = (
            Captured(self._update_on_batch, self.device) if updates.capture and world_size() == 1 else None
        )
        self.rows: list[Note] = []
        self.reported_rows = 0
        self.unlogged: list[Tensor] = []
        """Losses since the last row."""
        self.best: dict[str, Tensor] | None = None
        self.best_score = -math.inf
        self.without_gain = 0
        """Evaluations since the best one."""
        self.checkpoint_times = callbacks.checkpoints.times() if callbacks.checkpoints else None

    def run(self) -> list[Note]:
        start = self._resume()
        total = len(self.batches)
        self.model.train()
        generators = [torch.cuda.current_device()] if self.device.type == "cuda" else []
        # Each step sets its own seed, so the process's random state is restored afterwards.
        random_state = torch.random.fork_rng(devices=generators, enabled=self.seed is not None)
        with (
            quick_dropout(self.model),
            random_state,
            tf32_products(self.device, self.precision),
            uninterruptible(),
            made_ahead(self.batches, self.device) as self.batches,
            self._checkpoints_finished(),
        ):
            self._train(start, total)
        if self.best is not None:
            with torch.no_grad():
                for name, weight in unfrozen_parameters(self.model).items():
                    local(weight).copy_(self.best[name])
        self.replica.gather()
        self.model.eval()
        self._check_weights(total)
        return self.rows

    def _train(self, start: int, total: int) -> None:
        if start == 0:
            self._call([callback for callback in self.callbacks.periodic if callback.at_start], 0)
        for step in range(start, total):
            if self._stopped_early():
                return
            self.unlogged.append(self._update(step))
            done = step + 1
            evaluating = done in self.callbacks.evaluate_at
            # Records contain the losses, so they are logged at the same steps however long checkpoints take.
            logging = done % LOG_EVERY == 0 or done == total or evaluating or self._is_checkpoint(done, total)
            message = self._log_loss(done, total) if logging else ""
            if evaluating:
                message += self._evaluate(done)
            is_last = done == total or self._stopped_early()
            self._call([call for call in self.callbacks.periodic if done % call.every == 0 or is_last], done)
            is_interrupted = self._is_interrupted(logging=logging) and not is_last
            if is_interrupted or (done < total and self._checkpoint_is_due(done, logging=logging)):
                self._save_checkpoint(done)
            if message:
                self._report(done, total, message)
            if is_interrupted:
                raise Interrupted

    def _update(self, step: int) -> Tensor:
        """Update the weights once, and return the loss of the parts computed in this process."""
        set_rate(self.optimizer, self.rate(step))
        parts = list(self._parts(step))
        if (
            self.captured
            and len(parts) == 1
            and isinstance(batch := parts[0].batch, Rounded)
            and batch.is_rounded
        ):
            self._seed(parts[0])
            return self.captured(batch)
        losses = self._compute_gradients(parts)
        if self.updates.sam_radius:
            with move_uphill(self.model.parameters(), self.updates.sam_radius):
                self._compute_gradients(parts)
        self._move()
        return torch.stack(losses).sum() if losses else torch.zeros((), device=self.device)

    def _compute_gradients(self, parts: Sequence[_BatchPart]) -> list[Tensor]:
        """Compute a batch's gradients, with the same dropout on each call, and return its parts' losses."""
        losses = [self._backward(part) for part in parts[:-1]]
        # The loss of a whole batch exchanges numbers between processes itself.
        during_pass = not any(is_whole(part.batch) for part in parts)
        with self.replica.gradients_summed(during_pass=during_pass):
            losses += [self._backward(part) for part in parts[-1:]]
        return losses

    def _update_on_batch(self, batch: Movable) -> Tensor:
        """Update the weights on a whole batch, and return its loss. All operations can be captured."""
        loss = self._loss(batch)
        loss.backward()  # type: ignore[no-untyped-call]
        self._move()
        return loss.detach()

    def _move(self) -> None:
        """Clip the gradients, update the weights, and clear the gradients."""
        if self.updates.clip:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.updates.clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def _parts(self, step: int) -> Iterator[_BatchPart]:
        """Yield this process's share of the batch."""
        batch = self.batches[step]
        processes = world_size()
        count = -(-(self.updates.accumulation or 1) // processes) * processes
        if count == 1 or is_whole(batch):
            yield _BatchPart(batch, self._derive_seed(step), 1 / processes)
            return
        part_index = -1
        for index, (part, share) in enumerate(parts_of(batch, count, self.callbacks.what)):
            part_index += share is not None
            if index % processes == rank():  # A part's dropout is the same in every process.
                yield _BatchPart(part, self._derive_seed(step, part_index), share or 0.0)

    def _derive_seed(self, *numbers: int) -> int | None:
        return None if self.seed is None else derive(self.seed, "step", *numbers)

    def _seed(self, part: _BatchPart) -> None:
        if part.seed is None:
            return
        # On the CPU, torch.manual_seed would format the stack for each kind of missing device.
        (torch.default_generator if self.device.type == "cpu" else torch).manual_seed(part.seed)

    def _loss(self, batch: Movable) -> Tensor:
        recomputing = recomputed_layers(self.model) if self.updates.gradient_checkpointing else nullcontext()
        with recomputing, autocast(self.device, self.precision):
            return self.replica.loss(lambda model: self.loss(model, batch))

    def _backward(self, part: _BatchPart) -> Tensor:
        self._seed(part)
        loss = self._loss(part.batch.to(self.device))
        loss = loss if part.share == 1 else loss * part.share
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()

    def _log_loss(self, done: int, total: int) -> str:
        """Record the mean loss since the last row, and return it as a message."""
        losses = all_reduced(torch.stack(self.unlogged).float())
        mean = float(losses.mean())
        if not math.isfinite(mean):
            index = next((n for n, loss in enumerate(losses) if not math.isfinite(float(loss))), 0)
            step = done - len(losses) + index + 1
            raise self._divergence(f"the loss is {float(losses[index])} in step {step} of {total}")
        self.rows.append({"step": done, "loss": round(mean, 6), "rate": self.rate(done - 1)})
        self.unlogged.clear()
        release_memory()
        return f"loss {mean:.3f}"

    def _report(self, done: int, total: int, message: str) -> None:
        """Report progress with the rows since the last report, or with all rows after resuming."""
        if self._stopped_early():
            total = done
            message = f"stopped after {self.without_gain} evaluations without a higher score"
        rows = tuple(self.rows[self.reported_rows :])
        self.reported_rows = len(self.rows)
        if is_main_process():
            self.callbacks.on_progress(Progress(self.callbacks.what, done, total, message, rows))

    def _call(self, callbacks: Iterable[Callback], done: int) -> None:
        for callback in callbacks:
            self.model.eval()
            self.rows += self.replica.from_main_process(partial(callback.rows, done))
            self.model.train()
            self.optimizer.zero_grad(set_to_none=True)

    def _check_weights(self, total: int) -> None:
        """Raise DivergedError for weights that are not finite after the last update.

        No loss is computed after that update.
        """
        for name, weight in self.model.named_parameters():
            if not bool(torch.isfinite(weight).all()):
                raise self._divergence(f"{name} is no longer finite after step {total} of {total}")

    def _divergence(self, problem: str) -> DivergedError:
        return DivergedError(
            f"{self.callbacks.what}: {problem}. Lower learning_rate (now {self.updates.learning_rate:g}), "
            f"raise warmup, or set precision to float32."
        )

    def _evaluate(self, done: int) -> str:
        """Score the model on dev data, then average its weights, or select them if they are the best.

        Returns the scores as a message.
        """
        scores: list[Note] = []
        if evaluate := self.callbacks.evaluate:
            self.model.eval()
            # Different GPUs might select different weights.
            scores = self.replica.from_main_process(partial(evaluate, done))
            self.model.train()
        self.rows += scores
        if self.callbacks.averaged:
            self._average(done)
        elif scores:
            self._select(sum(float(row["score"] or 0.0) for row in scores) / len(scores))
        return _scores_message(scores)

    def _select(self, score: float) -> None:
        """Copy the weights if their score is the highest so far."""
        self.without_gain += 1
        if score > self.best_score:
            self.best_score = score
            self.without_gain = 0
            self.best = on_host(unfrozen_parameters(self.model))

    def _average(self, done: int) -> None:
        """Update the mean of the weights at the last evaluations, which replaces the best weights."""
        averaged_steps = self.callbacks.evaluate_at[-self.callbacks.averaged :]
        if done not in averaged_steps:
            return
        share = 1 / (averaged_steps.index(done) + 1)
        weights = on_host(unfrozen_parameters(self.model))
        mean = self.best or weights
        self.best = {name: torch.lerp(mean[name], weight, share) for name, weight in weights.items()}

    def _is_interrupted(self, *, logging: bool) -> bool:
        """Return whether to stop now. Several processes agree on it when they exchange losses."""
        if world_size() == 1:
            return interruption_requested()
        requests = torch.tensor(float(interruption_requested()), device=self.device)
        return logging and bool(all_reduced(requests))

    def _stopped_early(self) -> bool:
        return 0 < self.callbacks.patience <= self.without_gain

    def _is_checkpoint(self, done: int, total: int) -> bool:
        checkpoints = self.callbacks.checkpoints
        return bool(checkpoints and checkpoints.every and done % checkpoints.every == 0 and done < total)

    def _checkpoint_is_due(self, done: int, *, logging: bool) -> bool:
        """Return whether to write a checkpoint. Several processes agree on it when they exchange losses."""
        times = self.checkpoint_times
        if times is None or (world_size() > 1 and not logging):
            return False
        return from_main_process(partial(times.is_due, done))

    def _save_checkpoint(self, done: int) -> None:
        if self.callbacks.checkpoints is None or self.checkpoint_times is None:
            return
        notes: Notes = {"rows": list(self.rows), "unlogged": [float(loss) for loss in self.unlogged]}
        notes |= {"best_score": None if self.best is None else self.best_score}
        notes |= {"precision": self.precision, "without_gain": self.without_gain}
        state = State(done, notes, self.best)
        uses_thread = self.device.type == "cuda"  # On a CPU, a thread would slow down the training.
        with self.checkpoint_times.measure_wait():
            self.callbacks.checkpoints.save(self.model, self.optimizer, state, uses_thread=uses_thread)

    @contextmanager
    def _checkpoints_finished(self) -> Iterator[None]:
        """Wait for the last checkpoint when the training ends or is interrupted."""
        try:
            yield
        finally:
            if self.callbacks.checkpoints:
                self.callbacks.checkpoints.finish()

    def _resume(self) -> int:
        """Restore the last checkpoint, if any, and return the next step."""
        checkpoints = self.callbacks.checkpoints
        state = checkpoints.load(self.model, self.optimizer) if checkpoints else None
        if state is None:
            return 0
        self.rows = state.notes["rows"]
        self.best = state.best
        self.unlogged = [torch.tensor(loss, device=self.device) for loss in state.notes.get("unlogged", [])]
        if self.best is not None:
            self.best_score = state.notes["best_score"]
            self.without_gain = state.notes.get("without_gain", 0)
        return state.step


def _scores_message(scores: Sequence[Note]) -> str:
    """Return dev scores in percent as a message, such as ", dev accuracy qaa 97.6, qab 74.2".

    Empty without scores of a named metric.
    """
    named = [row for row in scores if "metric" in row]
    if not named:
        return ""
    percentages = [f"{row['language']} {100 * float(row['score'] or 0.0):.1f}" for row in named]
    return f", dev {named[0]['metric']} {', '.join(percentages)}"


@contextmanager
def training_only(model: nn.Module, parameters: Iterable[nn.Parameter] | None) -> Iterator[None]:
    """Freeze all other parameters of a model in this context. None freezes no parameter."""
    if parameters is None:
        yield
        return
    trained_ids = {id(parameter) for parameter in parameters}
    freeze(parameter for parameter in model.parameters() if id(parameter) not in trained_ids)
    try:
        yield
    finally:
        thaw(model)


def precision_of(name: str, checkpoints: Checkpoints | None) -> str:
    """Resolve "auto" to the precision of the checkpoint, if any, else to the faster one on this machine.

    The checkpoint decides because a machine on which both are nearly as fast may measure differently next
    time.
    """
    notes = checkpoints.notes() if checkpoints and name == "auto" else None
    return str(notes["precision"]) if notes else resolved_precision(name, device())


def on_host(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return copies of weights in host memory, which is larger than a GPU's."""
    return {name: local(weight.detach()).to("cpu", copy=True) for name, weight in weights.items()}
