"""Label inventories: from the labels of examples to numbers, and the most frequent label."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from isogloss.core.errors import DataError, did_you_mean


def numbering(labels: Iterable[str]) -> dict[str, int]:
    """Give each label of an inventory its number: its place, from 0."""
    return {label: number for number, label in enumerate(labels)}


def label_numbers(
    given: Sequence[str], numbers: Mapping[str, int], *, task: str, example: str
) -> tuple[int, ...]:
    """Return the numbers of an example's labels; DataError at one outside the inventory."""
    try:
        return tuple(numbers[label] for label in given)
    except KeyError:
        place, label = next((place, label) for place, label in enumerate(given) if label not in numbers)
        where = f"example {example!r}" + (f", word {place + 1}" if len(given) > 1 else "")
        raise DataError(
            f"{where}: {task} has no label {label!r}.{did_you_mean(label, numbers)} "
            f"Allowed: {', '.join(numbers)}."
        ) from None


def most_frequent(seen: Iterable[str], labels: Sequence[str]) -> str:
    """Return the most frequent label, of equally frequent ones the first in the inventory."""
    counts = Counter(seen)
    return max(labels, key=lambda label: counts[label])
