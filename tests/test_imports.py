"""Cost of importing the package and of the command line's help."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import isogloss
from isogloss import aligners, diagnostics, methods, tasks, translators
from isogloss.core.registry import Registry
from light import MAIN, run_forks

SMALLEST = "import typer; app = typer.Typer(); app.command()(lambda: None); app(['--help'])"
"""The least program whose help typer prints."""

HEAVY = {"torch", "transformers", "numpy", "scipy", "matplotlib", "pydantic", "typer"}


@pytest.mark.slow
def test_importing_isogloss_is_cheap() -> None:
    assert cost("-c", "import isogloss") < cost("-c", "import numpy")


def test_importing_isogloss_imports_nothing_heavy() -> None:
    program = "import sys, isogloss; dir(isogloss); print(*sys.modules)"
    parts = subprocess.check_output([sys.executable, "-c", program], text=True).split()
    assert not HEAVY & set(parts)


@pytest.mark.nightly
@pytest.mark.slow
def test_help_is_at_hand() -> None:
    assert cost("-m", "isogloss", "--help") < 3 * cost("-c", SMALLEST)


def test_the_verbs_are_known_without_torch() -> None:
    program = "import sys; from isogloss.cli.app import app; print(*sys.modules)"
    parts = subprocess.check_output([sys.executable, "-c", program], text=True).split()
    assert not {"torch", "transformers", "numpy"} & set(parts)


LISTS = (
    *("aligners", "claims", "corpora", "diagnostics", "encoders", "language-facts", "languages", "methods"),
    *("papers", "recipes", "tasks", "translators"),
)


def test_commands_that_need_no_model_import_no_torch(tiny_runs):
    run = next(tiny_runs.glob("*/record.json")).parent.name
    commands = [
        *(("list", name) for name in LISTS),
        *(("claims",), ("recipes",), ("languages",)),
        *(("show", run, "--in", tiny_runs), ("list", "runs", "--in", tiny_runs)),
    ]
    for words, fork in zip(commands, run_forks("", *((MAIN, words) for words in commands)), strict=True):
        assert fork.stdout and fork.returncode == 0, (words, fork.stderr)
        assert not {"torch", "transformers"} & fork.modules, words


ENDING = """
import gc
from isogloss.cli import main
try:
    main()
except SystemExit:
    print(gc.get_freeze_count() > 10_000 > len(gc.get_objects()))
"""


def test_the_command_line_ends_without_a_search_for_garbage():
    (listed,) = run_forks("", (ENDING, ["list", "methods", "--json"]))
    assert listed.stdout.splitlines()[-1] == "True", listed.stderr


DECLARED = {
    place.partition(":")[0]
    for tables in (aligners, diagnostics, methods, tasks, translators)
    for table in vars(tables).values()
    if isinstance(table, Registry)
    for place in table.places.values()
}
"""Modules that declare what a recipe may name: fields, what is read, checks and costs."""


def test_declarations_import_neither_torch_nor_transformers():
    program = (
        "import sys, importlib; [importlib.import_module(name) for name in sys.argv[1:]]; print(*sys.modules)"
    )
    loaded_names = subprocess.check_output(
        [sys.executable, "-c", program, *sorted(DECLARED)], text=True
    ).split()
    assert set(loaded_names) >= DECLARED
    assert not {"torch", "transformers"} & set(loaded_names)


MOST_MODULES = 122
"""Modules of isogloss that the plan of the quickstart loads at most."""


def test_a_plan_is_made_without_torch(tmp_path):
    program = (
        "import sys; from isogloss.planning.plan import plan_recipe; "
        "plan_recipe('quickstart', out=sys.argv[1]); print(*sys.modules)"
    )
    loaded_names = set(
        subprocess.check_output([sys.executable, "-c", program, str(tmp_path)], text=True).split()
    )
    assert not {"torch", "transformers"} & loaded_names
    assert 0 < len([name for name in loaded_names if name.startswith("isogloss")]) <= MOST_MODULES


@pytest.mark.slow
def test_load_model_loads_few_modules():
    """Functions are counted in functional/test_states_of_models.py."""
    code = "import sys, isogloss; isogloss.load_model; print(*sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert 0 < len([module for module in loaded if module.startswith("isogloss")]) <= 85


EACH = Path(__file__).with_name("import_each.py")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="Processes are forked.")
@pytest.mark.parametrize("folder", ["features", pytest.param("", marks=pytest.mark.nightly)])
def test_every_module_can_be_the_first_that_is_imported(folder):
    """A circle is found only by the process that enters it at the wrong place."""
    path = Path(isogloss.__file__).parent / folder
    process = subprocess.run([sys.executable, EACH, path], capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr


@pytest.mark.slow
def test_commands_of_features_work_in_a_new_process(tiny_runs, tmp_path):
    commands = [
        ("choose", tiny_runs),
        ("results", tiny_runs, "--to", tmp_path / "results"),
        ("search", "--help"),
    ]
    for words in commands:
        process = subprocess.run(
            [sys.executable, "-m", "isogloss", *words], capture_output=True, text=True, check=False
        )
        assert process.returncode == 0 and process.stdout, process.stderr


@pytest.mark.nightly
@pytest.mark.slow
def test_a_list_costs_less_than_torch_and_a_prediction_little_more(tiny_runs, tmp_path):
    """Processor time as ratios to the import of torch, with room for a busy machine."""
    (tmp_path / "words").write_text("Tuki mirne baboza .\n")
    model = next(tiny_runs.glob("*/model")).parent
    torch = cost("-c", "import torch")
    assert cost("-m", "isogloss", "list", "methods") < 0.7 * torch
    assert _seconds(("-m", "isogloss", "predict", str(model), str(tmp_path / "words"))) < 4.5 * torch


def test_the_version_is_the_packages_own() -> None:
    from isogloss.core import VERSION

    assert isogloss.__version__ == VERSION


def cost(*arguments: str) -> float:
    """Return the processor's seconds of a Python process, the lesser of two."""
    return min(_seconds(arguments) for _ in range(2))


def _seconds(arguments: tuple[str, ...]) -> float:
    usage_before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    usage_after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage_after.ru_utime + usage_after.ru_stime - usage_before.ru_utime - usage_before.ru_stime
