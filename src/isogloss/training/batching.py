"""Batches as a sequence: batch i is a function of (seed, i), so any step can be made without the ones before.

That is what makes resuming exact: a training that goes on at step 500 asks for batch 500.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np

from isogloss.core.seeds import derive

SORTED_TOGETHER = 50
"""Batches whose rows are sorted by length together: little padding, still random."""

Item = TypeVar("Item")
Made = TypeVar("Made", covariant=True)


@runtime_checkable
class Batches(Protocol[Made]):
    """What ``fit`` takes: a length and a batch for each step."""

    def __len__(self) -> int: ...

    def __getitem__(self, step: int, /) -> Made: ...


@runtime_checkable
class Divisible(Protocol):
    """A batch that can be computed part by part."""

    def parts(self, count: int) -> Sequence[tuple[Any, float]]:
        """Cut into at most so many batches, each with its share of the whole loss; shares add up to 1."""
        ...


@runtime_checkable
class Epochs(Batches[Made], Protocol[Made]):
    """Batches that come back in every epoch."""

    @property
    def steps_per_epoch(self) -> int:
        """Number of batches in one pass."""
        ...


@dataclass(frozen=True)
class Bucketed(Generic[Item, Made]):
    """Batches of rows of similar length, every row once an epoch, each batch from one group.

    ``groups`` are the rows (one group a language, since a batch holds one language); ``length`` tells a
    row's length; ``size`` is the number of rows a batch.
    """

    groups: Sequence[Sequence[Item]]
    length: Callable[[Item], int]
    size: int
    epochs: int
    seed: int
    make: Callable[[list[Item]], Made]
    _plan: list[tuple[int, np.ndarray]] = field(default_factory=list)

    def __len__(self) -> int:
        return self.epochs * self.steps_per_epoch

    @property
    def steps_per_epoch(self) -> int:
        """Number of batches in one pass over all groups."""
        return sum(-(-len(group) // self.size) for group in self.groups)

    def __getitem__(self, step: int) -> Made:
        group, rows = self._planned(step)
        return self.make([self.groups[group][row] for row in rows])

    def group_of(self, step: int) -> int:
        """Return the number of the group whose rows a batch holds."""
        return self._planned(step)[0]

    def _planned(self, step: int) -> tuple[int, np.ndarray]:
        if not 0 <= step < len(self):
            raise IndexError(step)
        epoch, place = divmod(step, self.steps_per_epoch)
        if not self._plan or self._plan[0][0] != epoch:
            self._plan[:] = [(epoch, np.empty(0)), *self._epoch(epoch)]
        return self._plan[place + 1]

    def _epoch(self, epoch: int) -> list[tuple[int, np.ndarray]]:
        rng = np.random.Generator(np.random.PCG64(derive(self.seed, "batches", epoch)))
        batches: list[tuple[int, np.ndarray]] = []
        for number, group in enumerate(self.groups):
            order = rng.permutation(len(group))
            lengths = np.array([self.length(group[row]) for row in order])
            for start in range(0, len(order), self.size * SORTED_TOGETHER):
                chunk = slice(start, start + self.size * SORTED_TOGETHER)
                together = order[chunk][np.argsort(lengths[chunk], kind="stable")]
                batches += [(number, together[i : i + self.size]) for i in range(0, len(together), self.size)]
        return [batches[place] for place in rng.permutation(len(batches))]


def by_length(lengths: Sequence[int], budget: int, *, padding: int | None = None) -> list[list[int]]:
    """Cut rows, sorted by length, into batches of at most ``budget`` subwords with at most ``padding`` in it.

    For evaluation, where order does not matter; a row longer than the budget is a batch of its own. Without
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
