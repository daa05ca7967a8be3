"""Quick imports in processes of the command line: what is left out, and that nothing else changes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from isogloss.core.records import read_record

pytestmark = pytest.mark.slow

LEFT_OUT = {
    "torch.distributed.tensor",
    "torch._dynamo.utils",
    "scipy",
    "pandas",
    "pyarrow",
    "sklearn",
    "accelerate",
}
"""What takes seconds and no prediction requires."""

QUICKLY = "import sys; from isogloss.core.quick_imports import install; install(); "


def python(code, *words):
    ended = subprocess.run(
        [sys.executable, "-c", code, *map(str, words)], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.fixture
def model(tiny_runs):
    """The folder of a fine-tuned model."""
    folders = sorted(path.parent for path in tiny_runs.glob("*/model"))
    return next(folder for folder in folders if read_record(folder).kind == "fine-tune")


def test_a_prediction_imports_what_it_requires_alone(model, tmp_path):
    (tmp_path / "words").write_text("Tuki mirne baboza .\n")
    code = (
        "import sys, json; from isogloss.cli import main\ntry: main()\n"
        "except SystemExit: pass\nprint(json.dumps([*sys.modules]))"
    )
    *labels, modules = python(code, "predict", model, tmp_path / "words").splitlines()
    imported = {*json.loads(modules)}
    assert labels[0].startswith("Tuki mirne baboza .\t")
    assert {"torch", "transformers.modeling_utils"} <= imported
    assert not LEFT_OUT & imported


def test_scores_are_equal_to_the_bit(model):
    code = "import isogloss; print(repr(isogloss.load_model(sys.argv[1]).predict(['Tuki .'], scores=True)))"
    assert python(QUICKLY + code, model) == python(f"import sys; {code}", model)


def test_the_compiler_is_imported_when_it_is_used(model):
    code = (
        "import isogloss; isogloss.load_model(sys.argv[1]); import torch; "
        "print(type(torch._dynamo).__name__, end=' '); "
        "print(torch.compile(lambda x: x + 1, backend='eager')(torch.ones(2)).tolist(), end=' '); "
        "print(type(sys.modules['torch._dynamo']).__name__)"
    )
    assert python(QUICKLY + code, model).strip() == "_Compiler [2.0, 2.0] module"


def test_what_cannot_be_left_out_is_imported_in_full(model):
    code = (
        "import isogloss.core.quick_imports as quick; quick.UNUSED = ('is_torch_available',); "
        "import isogloss; print(isogloss.load_model(sys.argv[1]).predict(['Tuki .']))"
    )
    assert python(QUICKLY + code, model).startswith("[(")


def test_a_launched_process_imports_everything(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert (
        python(QUICKLY + "print(len([f for f in sys.meta_path if type(f).__name__ == 'QuickImports']))")
        == "0\n"
    )


def test_a_process_of_others_is_left_as_it_is():
    code = "import sys, isogloss.cli; print(any('Quick' in type(f).__name__ for f in sys.meta_path))"
    assert python(code).strip() == "False"


def test_functions_arrive_in_a_new_process_with_quick_imports(monkeypatch):
    import pickle

    from isogloss.core.quick_imports import QuickImports, QuickStart

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    arrived = pickle.loads(pickle.dumps(QuickStart("pathlib", "Path")))
    assert isinstance(sys.meta_path[0], QuickImports)
    assert arrived == QuickStart("pathlib", "Path")
    assert arrived("x") is None
    assert Path("x") == Path("x")
