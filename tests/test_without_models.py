"""Without torch and what comes with it: what works, and what the rest says."""

import subprocess
import sys

import pytest

from isogloss.core.errors import MODEL_PACKAGES

BLOCKED = f"import sys; sys.modules |= dict.fromkeys({MODEL_PACKAGES!r}); "


def python(code, *words):
    """Run code where the packages that models need cannot be imported."""
    return subprocess.run(
        [sys.executable, "-c", BLOCKED + code, *map(str, words)], capture_output=True, text=True, check=False
    )


def command(*words):
    """Run the command line there."""
    return python("from isogloss.cli import main; sys.argv[0] = 'isogloss'; main()", *words)


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [("report",), ("compare", "--against", "source-only"), ("choose", "--json")], ids=lambda w: w[0]
)
def test_runs_are_reported_and_compared(words, tiny_runs, tmp_path):
    import shutil

    shutil.copytree(tiny_runs, tmp_path / "runs")
    ended = command(words[0], tmp_path / "runs", *words[1:])
    assert "torch" not in ended.stderr
    assert ended.returncode == 0 or words[0] == "choose"  # Nothing label-free was measured there.


def test_predictions_are_compared_and_runs_read(tiny_runs):
    ended = python(
        "import isogloss; print(isogloss.compare([1, 0], [0, 0]).difference); "
        "print(len(isogloss.read(sys.argv[1]).frame('scores')) > 0)",
        tiny_runs,
    )
    assert (ended.stdout.split(), ended.stderr) == (["0.5", "True"], "")


@pytest.mark.parametrize("words", [("--help",), ("compare", "--help"), ("corpus", "check", "--help")])
def test_help_is_shown(words):
    ended = command(*words)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "Usage: isogloss" in ended.stdout


def test_a_corpus_is_checked(tmp_path):
    (tmp_path / "mine.toml").write_text('kind = "text"\nfiles = "{language}.train.tsv"\n')
    (tmp_path / "en.train.tsv").write_text("text\tlabel\na cat\tanimal\nan oak\tplant\n")
    ended = command("corpus", "check", tmp_path / "mine.toml")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "Labels: animal, plant." in ended.stdout


@pytest.mark.parametrize("words", [("run", "quickstart", "--dry-run"), ("predict", "a", "b"), ("doctor",)])
def test_a_command_that_needs_models_says_what_to_install(words):
    ended = command(*words)
    assert ended.returncode == 2
    assert ended.stderr.startswith("isogloss: torch is not installed.")
    assert 'pip install "isogloss[torch]"' in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "code", ["isogloss.cka", "isogloss.load_model", "isogloss.run('quickstart', out='x')"]
)
def test_a_function_that_needs_models_says_what_to_install(code, tmp_path):
    ended = python(f"import isogloss; {code}")
    assert "isogloss.core.errors.ConfigError: torch is not installed." in ended.stderr
