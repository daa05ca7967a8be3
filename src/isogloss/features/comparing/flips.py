"""Count of examples whose predictions two systems change."""

from collections.abc import Iterable

from isogloss.core.rows.models import Contributions


def count_flips(pairs: Iterable[tuple[Contributions, Contributions]]) -> tuple[int, int] | tuple[None, None]:
    """Count the examples that became right and wrong from the baseline to the system. None for shares.

    Each pair has the contributions of the examples to the scores of the system and of the baseline.
    """
    gain_count = 0
    loss_count = 0
    for ours, theirs in pairs:
        if not {*ours.part, *theirs.part} <= {0.0, 1.0} or {*ours.whole, *theirs.whole} != {1.0}:
            return None, None
        differences = [
            new_value - old_value for new_value, old_value in zip(ours.part, theirs.part, strict=True)
        ]
        gain_count += differences.count(1.0)
        loss_count += differences.count(-1.0)
    return gain_count, loss_count
