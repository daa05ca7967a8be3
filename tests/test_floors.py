"""A package imports from lower floors only, and each outer library from the floors that may know it."""

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import isogloss
from isogloss.aligners import ALIGNERS
from isogloss.data.corpora.catalogue import CORPORA
from isogloss.diagnostics import DIAGNOSTICS
from isogloss.encoders import FAMILIES
from isogloss.methods import ADJUSTMENTS, METHODS, PRETRAINING
from isogloss.tasks import TASKS
from isogloss.translators import TRANSLATORS

ROOT = Path(isogloss.__file__).parent
FLOORS = (
    {"core"},
    {"metrics", "data"},
    {"encoders"},
    {"tasks"},
    {"training"},
    {"similarity"},
    {"methods", "diagnostics", "aligners", "translators"},
    {"store", "recipes", "reports"},
    {"runs", "functional"},
    {"planning"},
    {"engine"},
    {"using"},
    {"plugins"},
    {"study"},
    {"api"},
    {"cli", "testing"},
    {"features"},
    {"__init__", "__main__"},
)
FLOOR = {package: index for index, floor in enumerate(FLOORS) for package in floor}
KNOWN_TO = {
    "transformers": {"encoders", "features", "tasks"},
    "tqdm": {"functional"},
    "huggingface_hub": {"encoders", "features"},
    "accelerate": {"features", "training"},
    "mlflow": {"features"},
    "optuna": {"features", "recipes"},
    "ray": {"features"},
    "submitit": {"features"},
    "typer": {"cli", "features"},
    "rich": {"cli"},
    "jinja2": {"reports", "features"},
    "matplotlib": {"reports", "features"},
    "conllu": {"data"},
    "onnxruntime": {"features"},
    "datasets": {"features"},
    "pyarrow": {"data"},
    "ctranslate2": {"features"},
    "urllib": {"features"},
    "httpx2": {"features"},
    "sacrebleu": {"features"},
    "filelock": {"core"},
    "fsspec": {"features"},
    "langcodes": {"core"},
    "icu4py": {"data"},
    "systran_align": {"features"},
}
WALL_CLOCKS = {
    "features/result_formats/exchange.py": {"time"},  # when a record was written, for its readers
    "features/fetching/downloading.py": {"time"},  # For a server that does not report its time.
    "store/leases.py": {"now"},  # In the log, for people.
}
MAX_WHERE = 10
WITHOUT_TORCH = ("core", "metrics", "data", "reports")
PLUG_INS = {
    "corpora": [type(corpus) for corpus in CORPORA.values()],
    "families": [type(family) for family in FAMILIES.values()],
    "tasks": [type(task) for task in TASKS.values()],
    "methods": [*METHODS.values(), *PRETRAINING.values(), *ADJUSTMENTS.values()],
    "diagnostics": list(DIAGNOSTICS.values()),
    "aligners": list(ALIGNERS.values()),
    "translators": list(TRANSLATORS.values()),
}
FILES = sorted(ROOT.rglob("*.py"))


@pytest.mark.slow
@pytest.mark.every_case
@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_a_package_imports_lower_floors_only(file: Path) -> None:
    package = package_of(file)
    assert [name for name in imports(file) if not may_see(package, name)] == []


def may_see(package: str, name: str) -> bool:
    head, _, remaining_parts = name.partition(".")
    if head != "isogloss":
        return package in KNOWN_TO.get(head, {package})
    other_part = remaining_parts.partition(".")[0] or "core"  # isogloss itself knows its version only
    return other_part == package or FLOOR[other_part] < FLOOR[package]


@pytest.mark.slow
def test_the_built_in_languages_are_entered_by_their_door() -> None:
    inside = ROOT / "features" / "built_in_languages"
    beside = {
        (file.name, name)
        for file in FILES
        if inside not in file.parents
        for name in imports(file)
        if name.startswith("isogloss.features.built_in_languages.")
    }
    assert not beside


@pytest.mark.parametrize("kind", PLUG_INS)
def test_a_plug_in_never_imports_another(kind: str) -> None:
    modules = {plug_in.__module__ for plug_in in PLUG_INS[kind]}
    for module in modules:
        file = ROOT.parent.joinpath(*module.split(".")).with_suffix(".py")
        assert not (modules - {module}) & set(imports(file)), module


@pytest.mark.slow
def test_the_floors_that_need_no_torch_import_without_it() -> None:
    program = f"""
import sys, pkgutil, importlib
for name in {WITHOUT_TORCH}:
    package = importlib.import_module("isogloss." + name)
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)
print(*sorted({{"torch", "transformers"}} & set(sys.modules)))
"""
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == ""


@pytest.mark.parametrize(
    "package", sorted({file.parent for file in FILES} - {ROOT}), ids=lambda path: path.name
)
def test_no_circle_is_inside_a_package(package: Path) -> None:
    """A module that another one imports, at its top or later, does not import it, however far around."""
    files = {module_of(file): file for file in package.rglob("*.py")}
    arrows = {
        name: {calls for calls in seen_by(file) if calls != name} & set(files) for name, file in files.items()
    }
    try:
        order = list(TopologicalSorter(arrows).static_order())
    except CycleError as error:
        pytest.fail(" → ".join(error.args[1]))
    assert len(order) == len(files)


def module_of(file: Path) -> str:
    names = file.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(names[:-1] if names[-1] == "__init__" else names)


def seen_by(file: Path) -> Iterator[str]:
    """Give every module a file imports. ``from package import module`` is that module, not the package."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            inside = [f"{node.module}.{alias.name}" for alias in node.names]
            modules = [name for name in inside if is_module(name)]
            yield from modules
            if len(modules) < len(inside):
                yield str(node.module)


def is_module(name: str) -> bool:
    path = ROOT.parent.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def package_of(file: Path) -> str:
    return file.relative_to(ROOT).parts[0].removesuffix(".py")


def imports(file: Path) -> Iterator[str]:
    """Give every module a file imports, at its top or later."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{file}: imports are absolute here"
            yield str(node.module)


def test_nothing_is_decided_by_a_clock_that_can_be_set():
    """Machines that share a folder have clocks that differ, and any clock may jump."""
    result: dict[str, set[str]] = {}
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                ids = (node.value.id, node.attr)
                if ids in {
                    ("time", "time"),
                    ("datetime", "now"),
                    ("datetime", "utcnow"),
                    ("date", "today"),
                }:
                    result.setdefault(path.relative_to(ROOT).as_posix(), set()).add(node.attr)
            elif isinstance(node, ast.ImportFrom) and node.module == "time":
                assert "time" not in {name.name for name in node.names}, path
    assert result == WALL_CLOCKS


def test_location_of_errors_is_a_context_not_a_parameter():
    """``with located(…)`` says where an error is. Parameters named where may become fewer, not more."""
    parameters = {
        (file.relative_to(ROOT).as_posix(), node.lineno)
        for file in FILES
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.arg) and node.arg == "where"
    }
    assert len(parameters) <= MAX_WHERE, sorted(parameters)


def test_the_page_on_the_architecture_lists_each_layer_with_its_packages():
    page = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| ([^|]+) \|", page, re.MULTILINE)
    listed_matches = {int(layer): set(re.findall(r"`(\w+)`", packages)) for layer, packages in rows}
    assert listed_matches == {
        layer: packages for layer, packages in enumerate(FLOORS) if "__init__" not in packages
    }


def test_a_class_name_has_one_owner():
    owners = Counter(
        node.name
        for path in ROOT.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    )
    assert len(owners) > 400
    assert [name for name, count in owners.items() if count > 1] == []
