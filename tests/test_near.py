"""Test files near a change: those named after a module, else its importers, else its package's."""

import pytest

from near import RULES, find_near_tests


@pytest.fixture
def checkout(tmp_path):
    """A checkout whose tests name a module, import it, or belong to its package."""
    files = {
        "tests/test_floors.py": "",
        "tests/test_docs.py": "",
        "tests/data/test_files.py": "from made_up import TEXT",
        "tests/data/test_files_twice.py": "",
        "tests/data/test_splits.py": "from isogloss.data.drawing import draw",
        "tests/runs/test_drawn.py": "import isogloss.data.drawing",
        "tests/runs/test_records.py": "from isogloss.data.drawings import other",
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("changed_name", "near_texts"),
    [
        ("src/isogloss/data/files.py", {"tests/data/test_files.py", "tests/data/test_files_twice.py"}),
        ("src/isogloss/data/drawing.py", {"tests/data/test_splits.py", "tests/runs/test_drawn.py"}),
        ("src/isogloss/runs/hidden.py", {"tests/runs/test_drawn.py", "tests/runs/test_records.py"}),
        ("src/isogloss/runs/__init__.py", {"tests/runs/test_drawn.py", "tests/runs/test_records.py"}),
        ("tests/data/test_files.py", {"tests/data/test_files.py"}),
        ("tests/made_up.py", {"tests/data/test_files.py"}),
        ("docs/use.md", {"tests/test_docs.py"}),
        ("Makefile", set()),
    ],
)
def test_tests_near_a_changed_file(checkout, changed_name, near_texts):
    assert set(find_near_tests([changed_name], checkout)) == {"tests/test_floors.py", *near_texts}


def test_rules_of_the_project_are_near_every_change(request):
    assert set(RULES) <= set(find_near_tests([]))
    assert all((request.config.rootpath / rule).is_file() for rule in RULES)
