"""States kept on disk: computed once, then read row by row, however many there are.

Files are read in pieces and not mapped, so that what was read does not count as the process's memory.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from isogloss.core.records import writing

Kept = Literal["float16", "float32"]
"""In what states are kept: float16 takes half the disk and changes the fourth digit."""


@dataclass(frozen=True)
class KeptStates:
    """States of some rows, in a file."""

    path: Path
    dim: int
    dtype: np.dtype[Any]
    starts: np.ndarray
    """[row]: the number of its first state."""
    counts: np.ndarray
    """[row]: how many states it has."""

    def of(self, rows: Sequence[int]) -> Tensor:
        """Return [item dim] the states of rows, one row after the other, in float32."""
        width = self.dim * self.dtype.itemsize
        parts = []
        with self.path.open("rb") as file:
            for row in rows:
                file.seek(int(self.starts[row]) * width)
                parts.append(file.read(int(self.counts[row]) * width))
        states = np.frombuffer(b"".join(parts), dtype=self.dtype).astype(np.float32)
        return torch.from_numpy(states.reshape(-1, self.dim))


def keep_states(
    path: Path,
    groups: Sequence[Sequence[int]],
    counts: np.ndarray,
    compute: Callable[[Sequence[int]], Tensor],
    *,
    dim: int,
    kept: Kept,
) -> KeptStates:
    """Compute the states [item dim] of each group of rows and keep them in a file.

    ``counts`` says for every row, kept or not, how many states it has. The file is there whole or not at
    all, and one that is there, from before an interruption, is used as it is.
    """
    order = np.array([row for group in groups for row in group], dtype=np.int64)
    ends = np.cumsum(counts[order])
    starts = np.zeros(len(counts), dtype=np.int64)
    starts[order] = ends - counts[order]
    dtype = np.dtype(kept)
    if not path.exists():
        _write(path, (compute(group) for group in groups), dtype)
    return KeptStates(path, dim, dtype, starts, counts)


def _write(path: Path, states: Iterable[Tensor], dtype: np.dtype[Any]) -> None:
    temporary = path.with_name(f".{path.name}.tmp")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.unlink(missing_ok=True)
    for some in states:
        found = some.float().cpu().numpy().astype(dtype).tobytes()
        with writing(path), temporary.open("ab") as file:
            file.write(found)
    with writing(path):
        if not temporary.exists():
            temporary.touch()
        temporary.replace(path)
