"""Without torch and what comes with it: what works, and what the rest says."""

import shutil

import pytest

from isogloss.core.errors import MODEL_PACKAGES
from light import MAIN, run_forks

BLOCKED = f"import sys; sys.modules |= dict.fromkeys({MODEL_PACKAGES!r})\n"
"""Lets the packages that models need not be imported."""


def commands(*words):
    """Run command lines there."""
    return run_forks(BLOCKED, *((MAIN, one) for one in words))


@pytest.mark.slow
def test_runs_are_reported_and_compared(tiny_runs, tmp_path):
    runs = shutil.copytree(tiny_runs, tmp_path / "runs")
    report, compared, chosen = commands(
        ("report", runs), ("compare", runs, "--against", "source-only"), ("choose", runs, "--json")
    )
    assert not any("torch" in one.stderr for one in (report, compared, chosen))
    assert (report.returncode, compared.returncode) == (0, 0)  # Nothing label-free was measured there.
    assert (runs / "report.html").exists() and compared.stdout


def test_predictions_are_compared_and_runs_read(tiny_runs):
    code = (
        "import isogloss, sys; print(isogloss.compare([1, 0], [0, 0]).difference); "
        "print(len(isogloss.read(sys.argv[1]).frame('scores')) > 0)"
    )
    (one,) = run_forks(BLOCKED, (code, [tiny_runs]))
    assert (one.stdout.split(), one.stderr) == (["0.5", "True"], "")


def test_help_is_shown_and_a_corpus_checked(tmp_path):
    (tmp_path / "mine.toml").write_text('kind = "text"\nfiles = "{language}.train.tsv"\n')
    (tmp_path / "en.train.tsv").write_text("text\tlabel\na cat\tanimal\nan oak\tplant\n")
    *helped, checked = commands(
        ("--help",),
        ("compare", "--help"),
        ("corpus", "check", "--help"),
        ("corpus", "check", tmp_path / "mine.toml"),
    )
    assert [(one.returncode, one.stderr) for one in (*helped, checked)] == [(0, "")] * 4
    assert all("Usage: isogloss" in one.stdout for one in helped)
    assert "Labels: animal, plant." in checked.stdout


def test_what_needs_models_says_what_to_install(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "texts.txt").write_text("a text\n")
    predict = ("predict", tmp_path / "model", tmp_path / "texts.txt")
    words = (("run", "quickstart", "--dry-run"), predict, ("doctor",))
    for one, command in zip(commands(*words), words, strict=True):
        assert one.returncode == 2, command
        assert one.stderr.startswith("isogloss:")
        assert 'pip install "isogloss[torch]"' in one.stderr
        assert len(one.stderr.splitlines()) == 1
    functions = ("isogloss.cka", "isogloss.load_model", "isogloss.run('quickstart', out='x')")
    for one, code in zip(
        run_forks(BLOCKED, *((f"import isogloss; {code}", ()) for code in functions)), functions, strict=True
    ):
        assert "isogloss.core.errors.ConfigError:" in one.stderr, code
