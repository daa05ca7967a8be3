import ast
from pathlib import Path

import isogloss.encoders
import isogloss.tasks
from isogloss.tasks import TASKS


def test_tasks_are_listed_under_their_name():
    assert list(TASKS) == ["upos", "ner", "parsing", "nli", "paraphrase", "qa"]
    assert all(task.name == name for name, task in TASKS.items())


def test_labels_are_unique_and_metrics_are_named():
    for task in TASKS.values():
        assert len(set(task.labels)) == len(task.labels)
        assert task.metric in ("accuracy", "span_f1", "las", "f1")
        assert 0 < task.overlap < task.limit


def test_transformers_is_imported_inside_functions_only():
    for package in (isogloss.tasks, isogloss.encoders):
        for path in Path(package.__file__).parent.glob("*.py"):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                names = {alias.name for alias in getattr(node, "names", ()) if isinstance(node, ast.Import)}
                names |= {node.module} if isinstance(node, ast.ImportFrom) else set()
                assert "transformers" not in names, path


def test_every_task_says_what_its_labels_are_of():
    assert {name: task.labels_are for name, task in TASKS.items()} == {
        "upos": "word",
        "ner": "word",
        "parsing": "tree",
        "nli": "example",
        "paraphrase": "example",
        "qa": "span",
    }
