"""Sort long files first, so that workers who share tests end with short tests.

Each worker of `--dist worksteal` begins with a part of all tests in their order. Idle workers steal from the
end of other workers' parts. So the long files are placed at the beginnings of all parts. Files stay whole,
because each worker with tests of a file computes its fixtures.
"""

import os
from collections.abc import Iterable

import pytest

LONGEST = (
    *("engine/test_together.py", "engine/test_killed.py", "features/buckets/test_in_a_bucket.py"),
    *("features/claims/test_claims_strangers.py", "methods/test_method_laws.py", "data/test_real_data.py"),
    *("data/test_golden_readings.py", "planning/test_plan.py", "browser/test_site.py"),
    *("engine/test_paused.py", "engine/test_devices.py", "test_compositions.py"),
    *("features/publishing/test_exporting.py", "features/cluster/test_ray_workers.py", "test_notebooks.py"),
    *("engine/test_engine.py", "features/claims/test_court.py"),
    *("cli/test_foreign_records.py", "test_paper_recipes.py", "engine/test_equal_records.py"),
)
"""In the order of the processor seconds that they took, or wait."""


def long_first(items: list[pytest.Item]) -> None:
    """Order tests so that each worker's part begins with some of the longest files."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    places = {item: _place(item) for item in items}
    remaining_items = _items_of(-1, items, places)
    order: list[pytest.Item] = []
    for first_index in range(workers):
        begin = [
            item
            for place in range(first_index, len(LONGEST), workers)
            for item in _items_of(place, items, places)
        ]
        share = (
            len(remaining_items) if first_index == workers - 1 else max(0, len(items) // workers - len(begin))
        )
        order += [*begin, *remaining_items[:share]]
        remaining_items = remaining_items[share:]
    items[:] = order


def _place(item: pytest.Item) -> int:
    """Return the place of a test's file among the longest. -1 for any other."""
    name = item.nodeid.partition("::")[0].removeprefix("tests/")
    return LONGEST.index(name) if name in LONGEST else -1


def _items_of(place: int, items: Iterable[pytest.Item], places: dict[pytest.Item, int]) -> list[pytest.Item]:
    return [item for item in items if places[item] == place]
