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
    short = [Item(f"tests/short.py::test_{n}") for n in range(500)]
    long = [Item(f"tests/{name}::test_{n}") for name in reversed(LONGEST) for n in range(3)]
    items = [*short[:250], *long, *short[250:]]
    before = {*items}
    long_first(items)
    assert (len(items), {*items}) == (len(before), before)
    assert [item for item in items if item in short] == short
    files = [item.nodeid.partition("::")[0].removeprefix("tests/") for item in items]
    for first in range(workers):
        begin = first * (len(items) // workers)
        expected = [name for name in LONGEST[first::workers] for _ in range(3)]
        assert files[begin : begin + len(expected)] == expected


def test_every_long_file_is_there(request):
    assert all((request.config.rootpath / "tests" / name).is_file() for name in LONGEST)
