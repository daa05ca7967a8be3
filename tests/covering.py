"""Choose a few cases of a large product of options, in which every pair of values occurs.

`make test` runs these cases of each large product and `make nightly` all of them. A test with a single list
of cases keeps them all, because each has a value of its own. Two markers leave more to the night where a case
takes long: `each_value` asks for each value instead of each pair, and `sample` for some cases of a list.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import combinations

import pytest

SMALL = 6
"""Products of up to this many cases run whole."""


def cover(cases: Sequence[Mapping[str, Hashable]], group_size: int = 2) -> list[int]:
    """Return the places of few cases that contain all values that occur together in any case.

    A case has a value for each of its options. `together` is how many options have to meet. Default: 2, each
    pair of values. The choice depends only on the cases and their order.
    """
    groups = [
        set(combinations(sorted(case.items(), key=_name), min(group_size, len(case)))) for case in cases
    ]
    missing = set().union(*groups)
    places: list[int] = []
    while missing:
        best_place = max(range(len(cases)), key=lambda place: len(groups[place] & missing))
        places.append(best_place)
        missing -= groups[best_place]
    return sorted(places)


def spread_over(length: int, count: int) -> list[int]:
    """Return the places of `count` cases spread evenly over a list, with its first and its last one."""
    if count >= length:
        return list(range(length))
    return sorted({round(number * (length - 1) / max(1, count - 1)) for number in range(count)})


def leave_products_to_the_night(items: Iterable[pytest.Item]) -> None:
    """Mark cases as nightly that are not in the sample of their test, unless it is marked every_case."""
    tests = defaultdict[str, list[pytest.Item]](list)
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        if hasattr(item, "callspec") and not marks & {"every_case", "nightly"}:
            tests[item.nodeid.partition("[")[0]].append(item)
    for cases in tests.values():
        sample = set(_choose(cases))
        for place, case in enumerate(cases):
            if place not in sample:
                case.add_marker(pytest.mark.nightly)


def _choose(cases: Sequence[pytest.Item]) -> Iterable[int]:
    sample = cases[0].get_closest_marker("sample")
    if sample:
        return spread_over(len(cases), *sample.args)
    group_size = 1 if cases[0].get_closest_marker("each_value") else 2
    if group_size == 2 and len(cases) <= SMALL:
        return range(len(cases))
    return cover([_options_of(case) for case in cases], group_size)


def _options_of(item: pytest.Item) -> dict[str, Hashable]:
    """Return the value of each option, or its identity if it cannot be compared."""
    return {name: _key(value) for name, value in item.callspec.params.items()}


def _key(value: object) -> Hashable:
    return (type(value), value if isinstance(value, str | int | float) else id(value))


def _name(option: tuple[str, Hashable]) -> str:
    return option[0]
