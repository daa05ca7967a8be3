"""Tests in the order of workers: none is lost, long files are whole and at the beginnings of all parts."""

from dataclasses import dataclass

import pytest

from order import LONGEST, long_first


@dataclass(frozen=True)
class Item:
    nodeid: str


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_each_part_begins_with_whole_long_files(monkeypatch, workers):
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", str(workers))
    short_items = [Item(f"tests/short.py::test_{n}") for n in range(500)]
    long_items = [Item(f"tests/{name}::test_{n}") for name in reversed(LONGEST) for n in range(3)]
    items = [*short_items[:250], *long_items, *short_items[250:]]
    items_before = set(items)
    long_first(items)
    assert (len(items), set(items)) == (len(items_before), items_before)
    assert [item for item in items if item in short_items] == short_items
    files = [item.nodeid.partition("::")[0].removeprefix("tests/") for item in items]
    for first_index in range(workers):
        begin = first_index * (len(items) // workers)
        expected = [name for name in LONGEST[first_index::workers] for _ in range(3)]
        assert files[begin : begin + len(expected)] == expected


def test_every_long_file_is_there(request):
    assert all((request.config.rootpath / "tests" / name).is_file() for name in LONGEST)
