"""A small folder of runs for the tests of reports."""

import pytest
from synthetic_runs import World, build_small


@pytest.fixture
def out(tmp_path):
    """Return a folder with scores and deltas of three seeds."""
    folder = tmp_path / "out"
    build_small(folder, World(targets=("de",)))
    return folder
