"""The visible parts of the command line: help in groups, completion, bars, the end of a run."""

import re

import pytest

from isogloss.cli import completion
from isogloss.cli.app import app
from isogloss.cli.display import Display
from isogloss.core.progress import Progress
from isogloss.planning.plan import Begun


def test_help_has_every_verb_in_a_group(command):
    shown = command("--help").out
    groups = re.findall(r"─ ([A-Z][a-z]+) ─", shown)
    assert sorted(groups) == ["Data", "Models", "Options", "Setup", "Study"]


def test_every_verb_has_an_example_that_begins_with_it():
    verbs = list(app.registered_commands)
    for group in app.registered_groups:
        name = f"{group.name} " if isinstance(group.name, str) else ""
        verbs += list(group.typer_instance.registered_commands)
        for verb in group.typer_instance.registered_commands:
            assert verb.epilog.startswith(f"Example: isogloss {name}"), verb.callback.__name__
    assert len(verbs) > 20
    for verb in verbs:
        shown = verb.name or verb.callback.__name__.rstrip("_")
        assert f" {shown}" in verb.epilog, shown


@pytest.mark.parametrize(
    ("complete", "typed", "expected"),
    [
        (completion.lists, "me", ["methods"]),
        (completion.recipes, "quicks", ["quickstart"]),
        (completion.corpora, "xn", ["xnli"]),
        (completion.methods, "bi", ["bilingual"]),
        (completion.aligners, "fast", ["fast-align"]),
        (completion.translators, "c", ["ctranslate2"]),
    ],
)
def test_values_are_completed(complete, typed, expected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert complete(typed) == expected


def test_recipes_here_are_completed_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "quiet.toml").touch()
    (tmp_path / "quiz").mkdir()
    assert completion.recipes("qui") == ["quickstart", "quiet.toml", "quiz/"]


def test_ids_of_the_folder_are_completed(tiny_runs):
    from types import SimpleNamespace

    context = SimpleNamespace(params={"folder": str(tiny_runs)})
    ids = completion.runs(context, "")
    assert len(ids) > 2
    assert completion.runs(context, ids[0][:6]) == [ids[0]]


def test_piped_tables_have_no_trailing_blanks_and_heed_columns(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "70")
    lines = command("list", "methods").out.splitlines()
    assert len(lines) > 26
    assert [line for line in lines if line != line.rstrip() or len(line) > 70 or "─" in line] == []


def test_show_ends_with_what_can_be_done_next(command, tiny_runs):
    run = next(path.parent for path in sorted(tiny_runs.glob("*/model")))
    ended = command("show", run.name, "--in", tiny_runs).out.splitlines()
    assert ended[-3:] == [
        f"Next: isogloss predict {run} FILE",
        f"Next: isogloss evaluate {run} --corpus NAME --language CODE",
        f"Next: isogloss report {tiny_runs}",
    ]


@pytest.mark.slow
def test_a_report_prints_scores_by_language_and_the_sentences_of_claims(command, study_folder):
    shown = command("report", study_folder("transfer")).out
    assert "accuracy" in shown or "span_f1" in shown
    assert re.search(r"source-only +\d+\.\d", shown)
    assert "Report: " in shown.splitlines()[-1]


def test_jobs_have_a_bar_each_below_that_of_all_runs():
    from rich.progress import Progress as Bars

    display = Display(_bars=Bars(disable=True))
    display._total = display._bars.add_task("starting", total=None, remark="")
    display.announce(Begun("a", "first", 3, 10))
    display.on_progress(Progress("path", 1, 33, job=1))
    display.on_progress(Progress("path", 20, 33, job=2))
    display.on_progress(Progress("training", 5, 9, "dev 0.9", rows=({"score": 0.9},), job=2))
    bars = [(bar.description, bar.completed, bar.total) for bar in display._bars.tasks]
    assert bars == [("runs", 2, 10), ("1: path", 1, 33), ("2: training", 5, 9)]
    assert display._bars.tasks[0].fields["remark"] == "latest: training, dev 0.9"
    display.on_progress(Progress("training", 9, 9, job=2))
    assert [bar.description for bar in display._bars.tasks] == ["runs", "1: path"]
