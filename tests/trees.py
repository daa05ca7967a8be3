"""Definition of a tree, step by step: the oracle of readers and makers of trees."""

from collections.abc import Sequence


def is_tree(heads: Sequence[int]) -> bool:
    """Tell whether heads (1-based word numbers, 0 for the root) lead every word to the one root."""
    if list(heads).count(0) != 1 or not all(0 <= head <= len(heads) for head in heads):
        return False
    reached_ranges = set(range(len(heads) + 1))
    for _ in heads:  # After as many steps as there are words, everything has come to the root.
        reached_ranges = {0 if place == 0 else heads[place - 1] for place in reached_ranges}
    return reached_ranges == {0}
