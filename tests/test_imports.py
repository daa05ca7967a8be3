"""What it costs to import the package and to ask the command line for help."""

import resource
import subprocess
import sys

import pytest

import isogloss

SMALLEST = "import typer; app = typer.Typer(); app.command()(lambda: None); app(['--help'])"
"""The least program whose help typer prints."""

HEAVY = {"torch", "transformers", "numpy", "scipy", "matplotlib", "pydantic", "typer"}


@pytest.mark.slow
def test_importing_isogloss_is_cheap() -> None:
    assert cost("-c", "import isogloss") < cost("-c", "import numpy")


def test_importing_isogloss_imports_nothing_heavy() -> None:
    code = "import sys, isogloss; dir(isogloss); print(*sys.modules)"
    there = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert not HEAVY & set(there)


@pytest.mark.slow
def test_help_is_at_hand() -> None:
    assert cost("-m", "isogloss", "--help") < 3 * cost("-c", SMALLEST)


def test_the_verbs_are_known_without_torch() -> None:
    code = "import sys; from isogloss.cli.app import app; print(*sys.modules)"
    there = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert not {"torch", "transformers", "numpy"} & set(there)


def test_the_version_is_the_packages_own() -> None:
    from isogloss.core import VERSION

    assert isogloss.__version__ == VERSION


def cost(*arguments: str) -> float:
    """Return the processor's seconds of a Python process, the least of three."""
    return min(_seconds(arguments) for _ in range(3))


def _seconds(arguments: tuple[str, ...]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
