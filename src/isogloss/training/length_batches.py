"""Batches of rows of similar length, for passes in which their order does not matter."""

from collections.abc import Sequence

BUDGET = 8192
"""Subwords of one batch, padding included, enough that arithmetic takes most of the time instead of calls."""

CPU_BATCH_COST = 64
"""Subwords a CPU computes in the time that one more batch costs. More padding is slower."""


def in_batches(lengths: Sequence[int], budget: int | None = None) -> list[list[int]]:
    """Split rows into batches: many small ones with little padding on a CPU, few large ones on a GPU."""
    import torch

    return by_length(lengths, budget or BUDGET, padding=None if torch.cuda.is_available() else CPU_BATCH_COST)


def by_length(lengths: Sequence[int], budget: int, *, padding: int | None = None) -> list[list[int]]:
    """Split rows, sorted by length, into batches of limited size and padding.

    A batch has at most ``budget`` subwords, ``padding`` of them padding. Use it where the order of rows does
    not matter. A row longer than the budget becomes a separate batch. Without ``padding``, only the budget
    limits a batch.
    """
    batches: list[list[int]] = []
    subwords = 0
    for row in sorted(range(len(lengths)), key=lengths.__getitem__):
        subwords += lengths[row]
        area = (len(batches[-1]) + 1) * lengths[row] if batches else 0
        if batches and area <= budget and (padding is None or area - subwords <= padding):
            batches[-1].append(row)
        else:
            batches.append([row])
            subwords = lengths[row]
    return batches
