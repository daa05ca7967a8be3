"""Print the test files near a change: `make near` runs their fast tests.

    python tests/near.py [COMMIT]

A change is what differs from COMMIT (default: the last commit), with new files. Near a module are the test
files with its name (src/isogloss/data/files.py: tests/data/test_files*.py); else the files that import it;
else the folder of tests of its package. The rules of the whole project are near every change.
"""

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[1]
RULES = (
    "tests/test_floors.py",
    "tests/test_imports.py",
    "tests/test_messages.py",
    "tests/test_public.py",
)
"""Fast tests that read all modules, so that any change can break them."""


def list_changed_files(commit: str = "HEAD") -> list[str]:
    """Return the paths of files that differ from a commit, and of new files."""
    changed_lines = _git("diff", "--name-only", "--relative", commit)
    new_lines = _git("ls-files", "--others", "--exclude-standard")
    return sorted({*changed_lines, *new_lines})


def find_near_tests(paths: Iterable[str], root: Path = ROOT) -> list[str]:
    """Return the test files near changed files, and the rules of the whole project."""
    texts = {
        path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
        for path in (root / "tests").rglob("test_*.py")
    }
    near_rules = {rule for rule in RULES if rule in texts}
    for path in (PurePosixPath(value) for value in paths):
        if path.suffix == ".md":
            near_rules |= {"tests/test_docs.py"} & texts.keys()
        if path.suffix != ".py":
            continue
        if path.is_relative_to("tests"):
            near_rules |= {str(path)} & texts.keys() or _importers(rf"(from|import) {path.stem}\b", texts)
        elif path.is_relative_to("src/isogloss"):
            near_rules |= _tests_of_module(path.relative_to("src/isogloss"), texts)
        else:
            near_rules |= _importers(rf"\b{path.stem}\b", texts)
    return sorted(near_rules)


def _tests_of_module(module: PurePosixPath, texts: dict[str, str]) -> set[str]:
    folder = PurePosixPath("tests") / module.parent
    if module.stem == "__init__":
        return _list_folder(folder, texts)
    paths = {
        path
        for path in _list_folder(folder, texts)
        if PurePosixPath(path).stem.startswith(f"test_{module.stem}")
    }
    dotted_text = ".".join(("isogloss", *module.with_suffix("").parts))
    return paths or _importers(rf"\b{re.escape(dotted_text)}\b", texts) or _list_folder(folder, texts)


def _list_folder(folder: PurePosixPath, texts: dict[str, str]) -> set[str]:
    return {path for path in texts if PurePosixPath(path).parent == folder}


def _importers(pattern: str, texts: dict[str, str]) -> set[str]:
    return {path for path, text in texts.items() if re.search(pattern, text)}


def _git(*words: str) -> list[str]:
    listed_process = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return listed_process.stdout.splitlines()


if __name__ == "__main__":
    sys.stdout.write("\n".join(find_near_tests(list_changed_files(*sys.argv[1:2]))) + "\n")
