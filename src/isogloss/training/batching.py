"""Batches as a sequence: batch i is a function of (seed, i), so any step can be made without earlier ones.

That makes resuming exact: a training that resumes at step 500 reads batch 500.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
import torch

from isogloss.core.errors import ConfigError
from isogloss.core.identity import derive
from isogloss.training.distributed import is_sharded

SORTED_TOGETHER = 50
"""Batches whose rows are sorted by length together: little padding, still random."""

Item = TypeVar("Item")
Made = TypeVar("Made", covariant=True)


@runtime_checkable
class Batches(Protocol[Made]):
    """The batches of a training: a length, and for each step a batch, which ``to`` moves to a device."""

    def __len__(self) -> int: ...

    def __getitem__(self, step: int, /) -> Made: ...


@runtime_checkable
class Movable(Protocol):
    """A batch, which moves to a device."""

    def to(self, device: torch.device, /) -> "Movable":
        """Return the batch on a device."""
        ...


@runtime_checkable
class Divisible(Protocol):
    """A batch that can be computed in parts."""

    def parts(self, count: int) -> Sequence[tuple[Movable, float | None]]:
        """Split into at most ``count`` batches, each with its share of the loss; shares sum to 1."""
        ...


@runtime_checkable
class Whole(Protocol):
    """A batch that each process computes in full; processes share work only within its loss."""

    is_whole: bool


def parts_of(batch: object, count: int, what: str) -> Sequence[tuple[Movable, float | None]]:
    """Split a batch of ``what`` into at most ``count`` parts; ConfigError for one that cannot be split.

    Processes that hold shares of one model all need a part: then the last part is repeated, without a share,
    until there are ``count``.
    """
    if not isinstance(batch, Divisible):
        raise ConfigError(
            f"{what}: its batches cannot be computed in parts, and so neither with accumulation nor in "
            f"several processes. Leave accumulation out, and run it in one process."
        )
    parts = batch.parts(count)
    missing = count - len(parts) if is_sharded() else 0
    return [*parts, *[(parts[-1][0], None)] * missing]


@dataclass(frozen=True)
class BatchesByStep(Generic[Made]):
    """Batches that are each a function of their step."""

    steps: int
    make: Callable[[int], Made]

    def __len__(self) -> int:
        return self.steps

    def __getitem__(self, step: int) -> Made:
        return self.make(step)


@dataclass(frozen=True)
class Bucketed(Generic[Item, Made]):
    """Batches of rows of similar length, every row once an epoch, each batch from one group.

    ``groups`` are the rows by language (or pair of languages), since a batch holds one; ``length`` returns a
    row's length; ``size`` is the number of rows in a batch; ``make`` collates rows, given their language and
    the step.
    """

    groups: Mapping[str, Sequence[Item]]
    length: Callable[[Item], int]
    size: int
    epochs: int
    seed: int
    make: Callable[[list[Item], str, int], Made]
    _plan: dict[int, list[tuple[str, np.ndarray]]] = field(default_factory=dict)

    def __len__(self) -> int:
        return self.epochs * self.steps_per_epoch

    @property
    def steps_per_epoch(self) -> int:
        """Number of batches in one pass over all groups."""
        return sum(-(-len(group) // self.size) for group in self.groups.values())

    def __getitem__(self, step: int) -> Made:
        if not 0 <= step < len(self):
            raise IndexError(step)
        epoch, index = divmod(step, self.steps_per_epoch)
        if epoch not in self._plan:
            self._plan.clear()
            self._plan[epoch] = self._epoch(epoch)
        language, rows = self._plan[epoch][index]
        return self.make([self.groups[language][row] for row in rows], language, step)

    def _epoch(self, epoch: int) -> list[tuple[str, np.ndarray]]:
        rng = np.random.Generator(np.random.PCG64(derive(self.seed, "batches", epoch)))
        batches: list[tuple[str, np.ndarray]] = []
        for language, group in self.groups.items():
            order = rng.permutation(len(group))
            lengths = np.array([self.length(group[row]) for row in order])
            for start in range(0, len(order), self.size * SORTED_TOGETHER):
                chunk = slice(start, start + self.size * SORTED_TOGETHER)
                together = order[chunk][np.argsort(lengths[chunk], kind="stable")]
                batches += [
                    (language, together[i : i + self.size]) for i in range(0, len(together), self.size)
                ]
        return [batches[index] for index in rng.permutation(len(batches))]


def by_length(lengths: Sequence[int], budget: int, *, padding: int | None = None) -> list[list[int]]:
    """Split rows, sorted by length, into batches of at most ``budget`` subwords and ``padding`` among them.

    For evaluation, where order does not matter; a row longer than the budget is a batch alone. Without
    ``padding`` the budget alone decides.
    """
    batches: list[list[int]] = []
    real = 0
    for row in sorted(range(len(lengths)), key=lengths.__getitem__):
        real += lengths[row]
        padded = (len(batches[-1]) + 1) * lengths[row] if batches else 0
        if batches and padded <= budget and (padding is None or padded - real <= padding):
            batches[-1].append(row)
        else:
            batches.append([row])
            real = lengths[row]
    return batches
