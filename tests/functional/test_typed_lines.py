"""Types of public functions hold for users: their lines pass mypy --strict, and classes are what is read."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Literal, get_args, get_origin, get_overloads

import pytest

import isogloss

ROOT = Path(__file__).parents[2]
BUILT_IN = {"ud": "qaa", "bitext": "qaa-qab", "wikiann": "qaa", "xnli": "qaa", "pawsx": "qaa"}
"""Corpora that the built-in languages have, with a language or a pair of them."""


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["typed_lines", "typed_study"])
def test_lines_of_users_pass_a_strict_type_checker(name):
    file = Path(__file__).with_name(f"{name}.py")
    command = [sys.executable, "-m", "mypy", "--strict", str(file)]
    checked_process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked_process.stdout.startswith("Success"), checked_process.stdout + checked_process.stderr


NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
AS_IN_NOTEBOOKS = ("--allow-untyped-defs", "--allow-untyped-calls", "--check-untyped-defs")
"""Functions of a notebook have no annotations."""


@pytest.mark.nightly
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_code_of_notebooks_passes_a_strict_type_checker(notebook, tmp_path):
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    program = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    file = tmp_path / f"{notebook.stem}.py"
    file.write_text("\n\n".join(program), encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", *AS_IN_NOTEBOOKS, str(file)]
    checked_process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked_process.stdout.startswith("Success"), checked_process.stdout + checked_process.stderr


def declared_classes():
    """Return the class of examples that the overloads of load_corpus declare, by corpus."""
    function = isogloss.load_corpus.__wrapped__
    annotations = [overload.__annotations__ for overload in get_overloads(function)]
    return {
        name: get_args(annotation["return"])[0]
        for annotation in annotations
        if get_origin(annotation["name"]) is Literal
        for name in get_args(annotation["name"])
    }


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_corpus_has_examples_of_the_class_that_is_declared(name):
    [example] = isogloss.load_corpus(name, BUILT_IN[name], "test", examples=1)
    assert type(example) is declared_classes()[name] is getattr(isogloss, type(example).__name__)


def test_what_functions_return_and_raise_has_a_public_name():
    assert issubclass(isogloss.ConfigError, isogloss.InputError)
    assert issubclass(isogloss.DataError, isogloss.IsoglossError)
    for name in ("Compared", "Comparison", "Prediction", "SourceCandidate", "WordLinks", "States"):
        assert getattr(isogloss, name).__name__ == name
