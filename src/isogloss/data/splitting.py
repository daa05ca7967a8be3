"""Splitting examples by seed: equal texts stay together, and every split has its share of each label."""

from collections.abc import Sequence

from isogloss.core.seeds import derive
from isogloss.data.examples import Example
from isogloss.data.label_projection import texts_of


def split_examples(examples: Sequence[Example], weights: Sequence[int], *, seed: int) -> list[list[Example]]:
    """Return a list of examples for each weight, as large as its share of all weights, in their order.

    Seed, texts and labels decide, not the order of the examples. The first text of each label is in the first
    split.
    """
    groups: dict[str, list[int]] = {}
    for number, example in enumerate(examples):
        groups.setdefault("\t".join(texts_of(example)), []).append(number)
    ranked = sorted(
        (min(_stratum(examples[number]) for number in numbers), derive(seed, "split", text), numbers)
        for text, numbers in groups.items()
    )
    owed, seen, split_of = [0] * len(weights), set[str](), dict[int, int]()
    for stratum, _, numbers in ranked:
        owed = [count + weight * len(numbers) for count, weight in zip(owed, weights, strict=True)]
        split = owed.index(max(owed)) if stratum in seen else 0
        seen.add(stratum)
        owed[split] -= sum(weights) * len(numbers)
        split_of |= dict.fromkeys(numbers, split)
    return [
        [example for number, example in enumerate(examples) if split_of[number] == split]
        for split in range(len(weights))
    ]


def _stratum(example: Example) -> str:
    """Return the label of an example that has a single one; empty for others."""
    label = getattr(example, "label", None)
    return str(label) if isinstance(label, str | int) else ""
