"""Batches of rows of similar length, for passes in which their order does not matter."""

from collections.abc import Sequence

import torch

BUDGET = 8192
"""Subwords of one batch, padding included: large enough that arithmetic, not calls, takes the time."""

CPU_BATCH_COST = 64
"""Subwords a CPU computes in the time that one more batch costs: more padding is not worth it."""


def in_batches(lengths: Sequence[int], budget: int | None = None) -> list[list[int]]:
    """Batch rows: many small batches with little padding on a CPU, few large ones on a GPU."""
    return by_length(lengths, budget or BUDGET, padding=None if torch.cuda.is_available() else CPU_BATCH_COST)


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
