"""The example of a package with parts of each kind: what it imports, and its own tests in a process."""

import ast
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from isogloss.core.plug_ins import GROUPS

PACKAGE = Path(__file__).parents[1] / "examples" / "isogloss-more"
MODULES = sorted((PACKAGE / "src" / "isogloss_more").glob("*.py"))


def entry_points() -> dict[str, dict[str, str]]:
    declared = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]["entry-points"]
    return {group.removeprefix("isogloss."): points for group, points in declared.items()}


def test_it_has_a_part_of_each_group():
    assert set(entry_points()) == set(GROUPS)


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_it_imports_only_the_public_interfaces(module):
    nodes = ast.walk(ast.parse(module.read_text(encoding="utf-8")))
    imported = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    of_isogloss = {name for name in imported if name.partition(".")[0] == "isogloss"}
    assert of_isogloss <= {"isogloss.plugins"}


@pytest.mark.slow
def test_its_own_tests_pass(tmp_path):
    installed = tmp_path / "site" / "isogloss_more-1.0.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: isogloss-more\nVersion: 1.0\n")
    lines = [
        line
        for group, points in entry_points().items()
        for line in (f"[isogloss.{group}]", *(f"{name} = {place}" for name, place in points.items()))
    ]
    (installed / "entry_points.txt").write_text("\n".join(lines))
    folders = [PACKAGE / "src", tmp_path / "site", Path(__file__).parents[1] / "src"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    result = subprocess.run(
        command, env=environment, capture_output=True, text=True, cwd=PACKAGE, check=False
    )
    assert result.returncode == 0, result.stdout[-4000:]
