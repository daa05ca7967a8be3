"""Accuracy: the share of labels that are right."""

from collections.abc import Sequence


def accuracy(gold: Sequence[object], predicted: Sequence[object]) -> float:
    """Return the share of equal labels, in [0, 1]; 0 where there are none."""
    if len(gold) != len(predicted):
        raise ValueError(f"{len(gold)} gold labels, but {len(predicted)} predicted ones.")
    right = sum(one == other for one, other in zip(gold, predicted, strict=True))
    return right / len(gold) if gold else 0.0
