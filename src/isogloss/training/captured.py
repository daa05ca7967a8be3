"""Updates that are captured once for each shape of a batch, then replayed (``Updates.capture``).

An update of a base encoder on 32 short rows launches over a thousand kernels, and the launches take three
times as long as the kernels. A CUDA graph launches them all at once. It reads the batch, the learning rate
and the dropout seed from memory with fixed addresses, so a captured update may depend on nothing else.

Batches have few shapes (``rounded``). The first update of a shape is computed normally, which allocates the
memory that kernels need. The second is captured. A CPU has no graphs: there the update is called again on the
same memory, and tests compare the result with uncaptured training.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from isogloss.core.errors import ConfigError
from isogloss.training.batching import Movable
from isogloss.training.memory import find_memory_error

Update = Callable[[Any], Tensor]
"""From a batch on the device to its loss. Changes the weights."""


@runtime_checkable
class Rounded(Protocol):
    """A batch that knows whether its shape is one of few."""

    is_rounded: bool


@dataclass(frozen=True)
class _Capture:
    """A captured update, and the batch in memory that it reads."""

    replay: Callable[[], Tensor]
    memory: Any


class Captured:
    """Capture an update for each shape of its batches, and replay it."""

    def __init__(self, update: Update, device: torch.device) -> None:
        self._update = update
        self._device = device
        self._captures: dict[Hashable, _Capture | None] = {}
        self._pool: Any = None
        """Memory shared by all graphs, which run in turn and leave only a loss in it."""

    def __call__(self, batch: Movable) -> Tensor:
        """Update the weights on a batch, and return its loss."""
        shape = _shape(batch)
        if shape not in self._captures:
            self._captures[shape] = None
            return self._update(batch.to(self._device))
        capture = self._captures[shape]
        if capture is None:
            capture = self._captures[shape] = self._capture(batch)
        for name, memory in _tensors(capture.memory).items():
            memory.copy_(getattr(batch, name), non_blocking=True)
        return capture.replay().clone()

    def _capture(self, batch: Movable) -> _Capture:
        memory: Any = batch.to(self._device)  # May return the caller's tensors, so they are cloned.
        memory = replace(memory, **{name: tensor.clone() for name, tensor in _tensors(memory).items()})
        if self._device.type != "cuda":
            return _Capture(lambda: self._update(memory), memory)
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, pool=self._pool):
                loss = self._update(memory)
        except RuntimeError as error:
            # The model can be captured: the run is repeated with less memory in use. A capture that ends amid
            # an update may raise a different error.
            if memory_error := find_memory_error(error):
                raise memory_error from None
            raise ConfigError(
                f"capture: an update of this model cannot be a CUDA graph ({error}). Remove capture."
            ) from error
        self._pool = graph.pool()

        def replay() -> Tensor:
            graph.replay()
            return loss

        return _Capture(replay, memory)


def _tensors(batch: Any) -> dict[str, Tensor]:
    """Return the tensors of a batch, a dataclass, by name."""
    values = {field.name: getattr(batch, field.name) for field in fields(batch)}
    return {name: value for name, value in values.items() if isinstance(value, Tensor)}


def _shape(batch: Any) -> Hashable:
    """Return everything that a captured update depends on: shapes and types of tensors, and other values."""
    values = (getattr(batch, field.name) for field in fields(batch))
    return tuple((value.shape, value.dtype) if isinstance(value, Tensor) else value for value in values)
