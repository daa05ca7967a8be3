"""Whatever others put into a shared folder, commands heal it or name it, and change nothing outside."""

import shutil
from pathlib import Path

import pytest

from hostile import COMMANDS, KINDS, faults, make_states, paths_of

pytestmark = pytest.mark.slow

SAMPLE = (
    ("run", ".claims", "link to a folder"),
    ("run", "RUN/model", "link to a folder"),
    ("resume", "RUN/work", "dangling link"),
    ("resume", "RUN/work/checkpoint-000000001/state.json", "nested"),
    ("run again", "RUN/record.json", "pipe"),
    ("run again", "RUN/checksums.json", "odd numbers"),
    ("run again", ".claims/damage.1", "odd numbers"),
    ("report", "tables", "link to a folder"),
    ("report", "figures", "link to a folder"),
    ("report", "plan.json", "sparse"),
    ("report", "tables/.written", "nested"),
    ("export", "RUN/model", "link to a folder"),
    ("export", "RUN/model/config.json", "link to a file"),
    ("export", "RUN", "link to a folder"),
)
"""Some of all cases: commands, paths and kinds of which each was once at fault, and others."""


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("states")
    make_states(base)
    return base


def tried(states: Path, here: Path, name: str, place: str, kind: str) -> list[str]:
    shutil.copytree(states / COMMANDS[name].begins, here)
    model = (here / "model").read_text()
    found = faults(here, name, place.replace("RUN", model), kind)
    shutil.rmtree(here)
    return [f"{name}, {kind} as {place}: {fault}" for fault in found]


def test_a_sample_of_hostile_files_changes_nothing_outside(states, tmp_path):
    found = [fault for case in SAMPLE for fault in tried(states, tmp_path / "here", *case)]
    assert found == []


@pytest.mark.nightly
@pytest.mark.parametrize("name", COMMANDS)
def test_every_hostile_file_changes_nothing_outside(states, tmp_path, name):
    paths = paths_of(states, name, tmp_path / "recorded")
    assert len(paths) > 8
    cases = [(place, kind) for place in paths for kind in KINDS]
    found = [fault for case in cases for fault in tried(states, tmp_path / "here", name, *case)]
    assert found == []
