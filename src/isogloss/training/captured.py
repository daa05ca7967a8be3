"""Updates captured once for each shape of a batch, then replayed (``Updates.capture``).

An update of a base encoder on 32 short rows launches over a thousand kernels, and the launches take three
times as long as the kernels. A CUDA graph launches them all at once. It reads the batch, the rate and the
seed of its dropout from memory that stays in place, so what is captured may depend on nothing else.

Batches come in few shapes (``rounded``). The first update of a shape is computed as usual, which allocates
what kernels need; the second is captured. A processor has no graphs: there the update is called again on the
same memory, and tests compare that with a training without.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from isogloss.core.errors import ConfigError
from isogloss.training.batching import Movable

Update = Callable[[Any], Tensor]
"""From a batch on the device to its loss; changes the weights."""


@runtime_checkable
class Rounded(Protocol):
    """A batch that knows whether its shape is one of few."""

    is_rounded: bool


@dataclass(frozen=True)
class _Capture:
    """An update, the batch that it reads, and where its loss is afterwards."""

    replay: Callable[[], Tensor]
    memory: Any


class Captured:
    """An update that is captured for each shape of its batches."""

    def __init__(self, update: Update, device: torch.device) -> None:
        self._update, self._device = update, device
        self._captures: dict[Hashable, _Capture | None] = {}
        self._pool: Any = None
        """Memory that all graphs share: they run one after the other and leave only a loss in it."""

    def __call__(self, batch: Movable) -> Tensor:
        """Make an update and return its loss."""
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
        memory: Any = batch.to(self._device)  # What is there already must not be the caller's.
        memory = replace(memory, **{name: tensor.clone() for name, tensor in _tensors(memory).items()})
        if self._device.type != "cuda":
            return _Capture(lambda: self._update(memory), memory)
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, pool=self._pool):
                loss = self._update(memory)
        except torch.OutOfMemoryError:
            raise  # Made again alone, or in smaller batches: the model itself can be captured.
        except RuntimeError as error:
            raise ConfigError(
                f"capture: an update of this model cannot be a CUDA graph ({error}). Leave capture out."
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
    """Return all that a captured update depends on: the shapes of tensors, and what is no tensor."""
    values = (getattr(batch, field.name) for field in fields(batch))
    return tuple((value.shape, value.dtype) if isinstance(value, Tensor) else value for value in values)
