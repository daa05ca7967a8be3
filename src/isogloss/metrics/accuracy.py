"""Accuracy: the share of labels that are right."""

from collections.abc import Sequence

from isogloss.core.contributions import Contributions


def accuracy(gold: Sequence[object], predicted: Sequence[object]) -> float:
    """Return the share of equal labels, in [0, 1]; 0 where there are none."""
    if len(gold) != len(predicted):
        raise ValueError(f"{len(gold)} gold labels, but {len(predicted)} predicted ones.")
    right = sum(one == other for one, other in zip(gold, predicted, strict=True))
    return right / len(gold) if gold else 0.0


def label_contributions(
    gold: Sequence[Sequence[object]], predicted: Sequence[Sequence[object]]
) -> Contributions:
    """Return for each example how many of its labels are right, and how many it has."""
    right = [
        float(sum(one == other for one, other in zip(labels, guesses, strict=True)))
        for labels, guesses in zip(gold, predicted, strict=True)
    ]
    return Contributions(right, [float(len(labels)) for labels in gold])
