"""Without torch and what comes with it: what works, and what the rest says."""

import shutil

import pytest

from isogloss.core.errors import MODEL_PACKAGES
from light import MAIN, run_forks

BLOCKED = f"import sys; sys.modules |= dict.fromkeys({MODEL_PACKAGES!r})\n"
"""Lets the packages that models need not be imported."""


def commands(*words):
    """Run command lines there."""
    return run_forks(BLOCKED, *((MAIN, word) for word in words))


@pytest.mark.slow
def test_runs_are_reported_and_compared(tiny_runs, tmp_path):
    runs = shutil.copytree(tiny_runs, tmp_path / "runs")
    report, compared_fork, chosen_fork = commands(
        ("report", runs), ("compare", runs, "--against", "source-only"), ("choose", runs, "--json")
    )
    assert not any("torch" in process.stderr for process in (report, compared_fork, chosen_fork))
    assert (report.returncode, compared_fork.returncode) == (0, 0)  # Nothing label-free was measured there.
    assert (runs / "report.html").exists() and compared_fork.stdout


@pytest.mark.slow
def test_predictions_are_compared_and_runs_read(tiny_runs):
    program = (
        "import isogloss, sys; print(isogloss.compare([1, 0], [0, 0]).difference); "
        "print(len(isogloss.read(sys.argv[1]).frame('scores')) > 0)"
    )
    (fork,) = run_forks(BLOCKED, (program, [tiny_runs]))
    assert (fork.stdout.split(), fork.stderr) == (["0.5", "True"], "")


@pytest.mark.slow
def test_help_is_shown_and_a_corpus_checked(tmp_path):
    (tmp_path / "mine.toml").write_text('kind = "text"\nfiles = "{language}.train.tsv"\n')
    (tmp_path / "en.train.tsv").write_text("text\tlabel\na cat\tanimal\nan oak\tplant\n")
    *helped_fork, checked_fork = commands(
        ("--help",),
        ("compare", "--help"),
        ("corpus", "check", "--help"),
        ("corpus", "check", tmp_path / "mine.toml"),
    )
    assert [(process.returncode, process.stderr) for process in (*helped_fork, checked_fork)] == [(0, "")] * 4
    assert all("Usage: isogloss" in process.stdout for process in helped_fork)
    assert "Labels: animal, plant." in checked_fork.stdout


@pytest.mark.slow
def test_what_needs_models_says_what_to_install(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "texts.txt").write_text("a text\n")
    predict = ("predict", tmp_path / "model", tmp_path / "texts.txt")
    words = (("run", "quickstart", "--dry-run"), predict, ("doctor",))
    for fork, command in zip(commands(*words), words, strict=True):
        assert fork.returncode == 2, command
        assert fork.stderr.startswith("isogloss:")
        assert 'pip install "isogloss[torch]"' in fork.stderr
        assert len(fork.stderr.splitlines()) == 1
    functions = ("isogloss.cka", "isogloss.load_model", "isogloss.run('quickstart', out='x')")
    for fork, language in zip(
        run_forks(BLOCKED, *((f"import isogloss; {language_code}", ()) for language_code in functions)),
        functions,
        strict=True,
    ):
        assert "isogloss.core.errors.ConfigError:" in fork.stderr, language
