"""Declared requirements equal imports, and the package contains everything it needs."""

import ast
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import isogloss
from isogloss.recipes.recipe_text import packaged_recipes

ROOT = Path(isogloss.__file__).parent
PROJECT = ROOT.parents[1] / "pyproject.toml"

if not PROJECT.is_file():
    pytest.skip("this is no checkout", allow_module_level=True)

DECLARED = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
UNIMPORTED = {
    *("protobuf", "eflomal", "gguf", "onnxscript"),
    *("tensorboard", "wandb", "SQLAlchemy", "alembic", "s3fs"),
    *("sphinx", "myst_parser", "furo", "sphinx_copybutton"),
}
"""Indirect requirements: transformers imports sentencepiece and GGUF, torch imports ONNX, trackers import
Accelerate, MLflow its database, fsspec S3. Eflomal and Sphinx are programs."""


def names(requirements: list[str]) -> set[str]:
    texts = {re.split(r"[^\w.-]", requirement)[0].replace("-", "_") for requirement in requirements}
    return {text.removesuffix("_skinny") for text in texts}  # mlflow-skinny is imported as mlflow.


def list_imports() -> set[str]:
    parts = set()
    for file in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                parts |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                parts.add(node.module.partition(".")[0])
    return parts - set(sys.stdlib_module_names) - {"isogloss"}


@pytest.mark.slow
def test_what_is_imported_is_declared_and_what_is_declared_is_imported() -> None:
    extras = {
        name: names(optional_dependency)
        for name, optional_dependency in DECLARED["optional-dependencies"].items()
        if name != "dev"
    }
    declared_value = names(DECLARED["dependencies"]).union(*extras.values())
    assert list_imports() <= declared_value
    assert declared_value - list_imports() == UNIMPORTED


def test_no_python_to_come_is_shut_out() -> None:
    assert DECLARED["requires-python"] == ">=3.11"


def test_the_classifiers_name_the_pythons_that_are_tested() -> None:
    parts = [
        classifier.rpartition(" ")[2]
        for classifier in DECLARED["classifiers"]
        if "Python :: 3." in classifier
    ]
    assert parts[0] == DECLARED["requires-python"].removeprefix(">=")
    makefile = (PROJECT.parent / "Makefile").read_text(encoding="utf-8")
    assert all(f"python{part} " in makefile for part in parts)
    assert "sys.version_info < (3, 11)" in makefile


def test_every_link_of_the_readme_works_on_an_index_of_packages() -> None:
    address = DECLARED["urls"]["Repository"]
    links = re.findall(r"\]\(([^)#]+)\)", (PROJECT.parent / "README.md").read_text(encoding="utf-8"))
    assert len(links) > 10
    for link in links:
        assert link.startswith("https://"), link
        if link.startswith(address):
            where = re.fullmatch(rf"{re.escape(address)}/(?:blob|raw|tree)/main/(.+)", link)
            assert where, link
            assert (PROJECT.parent / where[1]).exists(), link


@pytest.mark.nightly
@pytest.mark.slow
def test_the_sdist_holds_recipes_pages_and_tests(tmp_path: Path) -> None:
    pytest.importorskip("setuptools", "77")
    copy = tmp_path / "copy"
    shutil.copytree(PROJECT.parent, copy, ignore=left_out("runs", "build"))
    program = f"from setuptools import build_meta; build_meta.build_sdist({str(tmp_path)!r})"
    subprocess.run([sys.executable, "-c", program], cwd=copy, check=True, capture_output=True)
    (sdist,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(sdist) as packed_stream:
        parts = {name.partition("/")[2] for name in packed_stream.getnames()}
    for folder in ("benchmarks", "docs", "examples", "src/isogloss/recipes/packaged", "tests"):
        files = [path for path in (copy / folder).rglob("*") if path.is_file()]
        names = {path.relative_to(copy).as_posix() for path in files if path.suffix != ".pyc"}
        assert names, folder
        assert names <= parts, folder
    assert {"CHANGELOG.md", "constraints.txt", "Makefile", "LICENSE"} <= parts


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_the_package(tmp_path: Path) -> None:
    pytest.importorskip("setuptools", "77")
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet"]
    copy = tmp_path / "copy"
    shutil.copytree(PROJECT.parent, copy, ignore=left_out("runs", "tests", "docs", "build"))
    subprocess.run([*command, "--wheel-dir", str(tmp_path), str(copy)], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed_archive:
        names = packed_archive.namelist()
    texts = {name.removeprefix("isogloss/") for name in names if name.startswith("isogloss/")}
    examples = {name.rpartition("/")[2] for name in names if "/data/share/isogloss/examples/" in name}
    assert examples == {path.name for path in (copy / "examples").rglob("*.*") if path.suffix != ".pyc"}
    files = {path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*") if path.is_file()}
    assert {name for name in files if "__pycache__" not in name} == texts
    assert sum(name.endswith(".toml") for name in texts) >= len(packaged_recipes())


def left_out(*names: str) -> Callable[[str, list[str]], set[str]]:
    """Ignore, in a copy of the project, what no file is built from, and folders directly below it by name."""
    anywhere = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info")

    def ignore_names(folder: str, inside: list[str]) -> set[str]:
        return {*anywhere(folder, inside), *(names if Path(folder) == PROJECT.parent else ())}

    return ignore_names
