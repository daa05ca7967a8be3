"""Batches that a thread makes ahead, while a GPU computes with the batch before.

Batch i depends only on (seed, i), so it does not matter which thread makes it. Batches are in pinned memory,
from which a GPU copies while the processor goes on. On a CPU, the thread would only take time from the
training.
"""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from isogloss.training.batching import Batches

Made = TypeVar("Made")


class BatchesAhead(Generic[Made]):
    """Batches. As soon as one is requested, a thread makes the next one."""

    def __init__(self, batches: Batches[Made]) -> None:
        self._batches = batches
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="batches")
        self._futures: dict[int, Future[Made]] = {}

    def __len__(self) -> int:
        return len(self._batches)

    def __getitem__(self, step: int) -> Made:
        """Return the batch of a step, and let the thread make the next one."""
        future = self._futures.pop(step, None) or self._begin(step)
        self._futures.clear()
        batch = future.result()
        if step + 1 < len(self):
            self._futures[step + 1] = self._begin(step + 1)
        return batch

    def _begin(self, step: int) -> Future[Made]:
        return self._thread.submit(lambda: pin(self._batches[step]))

    def stop(self) -> None:
        """End the thread after the batch that it makes, which nobody needs."""
        self._thread.shutdown(cancel_futures=True)


@contextmanager
def made_ahead(batches: Batches[Made], device: torch.device) -> Iterator[Batches[Made]]:
    """Let a thread make batches ahead in this context if they go to a GPU."""
    if device.type != "cuda":
        yield batches
        return
    ahead = BatchesAhead(batches)
    try:
        yield ahead
    finally:
        ahead.stop()


def pin(value: Any) -> Any:
    """Return a batch with its tensors in pinned memory, also those of parts. Other objects stay the same."""
    if isinstance(value, Tensor):
        return value.pin_memory() if value.device.type == "cpu" else value
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(pin, value))
    if type(value) in (tuple, list):
        return type(value)(map(pin, value))
    if type(value) is dict:
        return {name: pin(item) for name, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        parts = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
        pinned = {name: pin(part) for name, part in parts.items()}
        changed = {name: part for name, part in pinned.items() if part is not parts[name]}
        return replace(value, **changed) if changed else value
    return value
