"""Each folder of tests can be run by itself: modules import from it, from tests, or from added folders."""

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
MODULES = {path.stem: path for path in sorted(TESTS.rglob("*.py")) if path.name != "conftest.py"}
ADDED = re.compile(r'sys\.path.*?str\(TESTS / "([^"]+)"\)')


def imported_names(text: str) -> set[str]:
    """Return the modules that a file imports, inside functions, too."""
    names = set[str]()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
        elif isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
    return names


def unreachable(path: Path, text: str) -> list[str]:
    """Return the modules of tests that a file imports from a folder that is not on its path."""
    on_path = {path.parent, TESTS, *(TESTS / name for name in ADDED.findall(text))}
    return [
        name
        for name in sorted(imported_names(text))
        if name in MODULES and not any((folder / f"{name}.py").is_file() for folder in on_path)
    ]


def test_modules_import_from_where_they_look() -> None:
    found = {
        str(path.relative_to(TESTS)): names
        for path in TESTS.rglob("*.py")
        if (names := unreachable(path, path.read_text(encoding="utf-8")))
    }
    assert not found, "move these files to the folder that they import from, or what they share to tests/"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("from test_fuzz import cases", ["test_fuzz"]),
        ("def late():\n    import test_fuzz", ["test_fuzz"]),
        ('sys.path.insert(0, str(TESTS / "data"))\nfrom test_fuzz import cases', []),
        ('sys.path.insert(0, str(TESTS / "no such"))\nfrom test_fuzz import cases', ["test_fuzz"]),
        ("from made_up_rows import score", []),
        ("import json", []),
    ],
)
def test_an_import_from_another_folder_is_found(text: str, expected: list[str]) -> None:
    assert unreachable(TESTS / "reports" / "test_page.py", text) == expected
