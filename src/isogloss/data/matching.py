"""Match examples of two languages that are one and the same example, by their ids.

Parallel test sets have equal ids in all languages, and so have translations and what they were made from.
"""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from isogloss.core.errors import DataError
from isogloss.data.examples import Example, SentencePair
from isogloss.data.layouts import some

FEW = 0.05
"""Share of labels that may differ between languages: in PAWS-X 8 of 1,994, in files of another order half."""

One = TypeVar("One", bound=Example)
Other = TypeVar("Other", bound=Example)


def matched(
    first: Iterable[One], second: Iterable[Other], *, names: tuple[str, str], partial: bool = False
) -> list[tuple[One, Other]]:
    """Give each example of the first with the one of the second that has its id, in the first's order.

    ``names`` are what messages call the two. DataError where an id is there twice, where one has no match,
    and where two have different labels. With ``partial`` the latter two are left out (PAWS-X has some of
    both), unless so many labels differ that the files must be of another order.
    """
    there, others = _by_id(first, names[0]), _by_id(second, names[1])
    both = [(one, others[name]) for name, one in there.items() if name in others]
    if not partial and len(both) < max(len(there), len(others)):
        raise _not_parallel(names, there, others)
    if not both:
        raise DataError(f"{names[0]} and {names[1]}: no id in common. Take two that are parallel.")
    differ = [one.id for one, other in both if _labels_differ(one, other)]
    if len(differ) > (FEW * len(both) if partial else 0):
        raise DataError(
            f"{names[0]} and {names[1]}: {len(differ)} of {len(both)} examples have another label in the one "
            f"than in the other (ids {some(differ)}); expected the same examples under the same ids. Check "
            f"that both files have the same rows in the same order; a few that differ can be left out "
            f"(partial)."
        )
    return [(one, other) for one, other in both if not _labels_differ(one, other)]


def _by_id(examples: Iterable[One], name: str) -> dict[str, One]:
    found: dict[str, One] = {}
    for example in examples:
        if example.id in found:
            raise DataError(f"{name}: id {example.id!r} is there twice, so nothing can be matched by it.")
        found[example.id] = example
    return found


def _labels_differ(one: Example, other: Example) -> bool:
    if isinstance(one, SentencePair) and isinstance(other, SentencePair):
        return one.label != other.label and "" not in (one.label, other.label)
    return False


def _not_parallel(
    names: tuple[str, str], one: Mapping[str, object], other: Mapping[str, object]
) -> DataError:
    missing = (
        (names[0], names[1], [name for name in one if name not in other]),
        (names[1], names[0], [name for name in other if name not in one]),
    )
    facts = [
        f"{len(ids)} of {here} are not in {there} (ids {some(ids)})" for here, there, ids in missing if ids
    ]
    return DataError(
        f"{names[0]} and {names[1]} are not parallel: {'; '.join(facts)}. "
        f"Take test sets of the same examples, or only what both have (partial)."
    )
