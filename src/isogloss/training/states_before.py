"""f⁰: the states of an encoder as it is now, computed once for each sentence pair and kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from isogloss.core.progress import Progress, Tell, silent
from isogloss.training.aligned_batches import held_states
from isogloss.training.aligned_pairs import AlignedPairs
from isogloss.training.batching import by_length
from isogloss.training.evaluation import BUDGET
from isogloss.training.kept_states import Kept, KeptStates, keep_states
from isogloss.training.precision import device, scoring

STATES = "states.bin"
"""The file of kept states in a run's folder."""


@dataclass(frozen=True, kw_only=True)
class Keeping:
    """Where and how states are kept, and the precision they are computed in."""

    folder: Path
    kept: Kept
    precision: str
    tell: Tell = silent


def states_before(model: Any, pairs: AlignedPairs, rows: Sequence[int], how: Keeping) -> KeptStates:
    """Compute the states of what is held in some rows, without dropout; the model goes to its device."""
    lengths = [pairs.source.size(row) for row in rows]
    groups = [[rows[place] for place in group] for group in by_length(lengths, BUDGET)]
    done = 0

    def compute(group: Sequence[int]) -> Tensor:
        nonlocal done
        done += len(group)
        how.tell(Progress("states before", done, len(rows)))
        return held_states(model, [pairs[row] for row in group], layer=pairs.layer, padding=pairs.padding)

    model.to(device()).eval()
    with scoring(model.base_model, how.precision):
        path, dim = how.folder / STATES, model.config.hidden_size
        return keep_states(path, groups, pairs.held_counts(), compute, dim=dim, kept=how.kept)
