"""Whatever others put into a shared folder, commands heal it or name it, and change nothing outside."""

import re
import shutil
from collections import defaultdict
from collections.abc import Mapping, Sequence
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
"""A sample of all cases: commands, paths and kinds that were once at fault, and others."""


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("states")
    make_states(base)
    return base


def try_hostile(states: Path, path: Path, name: str, place: str, kind: str) -> list[str]:
    shutil.copytree(states / COMMANDS[name].begins, path)
    model = (path / "model").read_text()
    result = faults(path, name, place.replace("RUN", model), kind)
    shutil.rmtree(path)
    return [f"{name}, {kind} as {place}: {fault}" for fault in result]


@pytest.mark.nightly
@pytest.mark.parametrize("cases", [SAMPLE[::2], pytest.param(SAMPLE[1::2], marks=pytest.mark.nightly)])
def test_a_sample_of_hostile_files_changes_nothing_outside(states, tmp_path, cases):
    result = [fault for case in cases for fault in try_hostile(states, tmp_path / "here", *case)]
    assert result == []


@pytest.fixture(scope="module")
def cases(states: Path, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Sequence[tuple[str, str]]]:
    """Return paths and kinds of file for each command, with each pair of command, path and kind once.

    All combinations would be 2000 cases, which take hours of a core. Excluded are kinds of file at a path
    that a different command covers, and paths of the same form: other claims, tables and runs.
    """
    places = defaultdict[str, dict[str, list[str]]](dict)
    for name in COMMANDS:
        model = (states / COMMANDS[name].begins / "model").read_text()
        for path in paths_of(states, name, tmp_path_factory.mktemp("recorded") / "here"):
            places[form(path.replace(model, "RUN"))].setdefault(name, []).append(path)
    choice = defaultdict[str, list[tuple[str, str]]](list)
    for index, place_by_command in enumerate(places.values()):
        names = list(place_by_command)
        for turn, kind in enumerate(KINDS, start=index):
            name = names[turn % len(names)]
            paths = place_by_command[name]
            choice[name].append((paths[turn // len(names) % len(paths)], kind))
    return choice


def form(path: str) -> str:
    """Return a path without numbers of claims, names of tables and ids of runs that have no model."""
    path = re.sub(r"\b[0-9a-f]{12}\b", "ID", path)
    path = re.sub(r"\.[0-9]+$", ".1", path)
    return re.sub(r"^(tables|figures)/\w.*(?=\.)", r"\1/NAME", path)


@pytest.mark.nightly
@pytest.mark.parametrize("name", COMMANDS)
def test_all_pairs_of_command_path_and_kind_change_nothing_outside(states, cases, tmp_path, name):
    assert cases[name]
    result = [fault for case in cases[name] for fault in try_hostile(states, tmp_path / "here", name, *case)]
    assert result == []
