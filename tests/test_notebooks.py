"""The notebooks run from the first cell to the last, in an empty folder, and carry no outputs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from forked import Forked

NOTEBOOKS = sorted((Path(__file__).parents[1] / "examples" / "notebooks").glob("*.ipynb"))


def code_cells(path):
    return [
        cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"
    ]


def test_there_are_notebooks():
    assert len(NOTEBOOKS) == 4


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_carries_no_outputs(path):
    assert [cell["outputs"] for cell in code_cells(path)] == [[]] * len(code_cells(path))


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path):
    script = "\n".join("".join(cell["source"]) for cell in code_cells(path))
    environment = {**os.environ, "MPLBACKEND": "agg"}
    words = [sys.executable, "-c", script]
    running = Forked(words, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    _, output = running.communicate()
    assert running.returncode == 0, output
