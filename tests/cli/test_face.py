"""The visible parts of the command line: help in groups, completion, bars, the end of a run."""

import re

import pytest

from isogloss.cli import completion
from isogloss.cli.app import app
from isogloss.cli.display import Display
from isogloss.core.progress import Progress
from isogloss.planning.plan import Begun


def test_help_has_every_verb_in_a_group(command):
    output = command("--help").out
    groups = re.findall(r"─ ([A-Z][a-z]+) ─", output)
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
        text = verb.name or verb.callback.__name__.rstrip("_")
        assert f" {text}" in verb.epilog, text


@pytest.mark.parametrize(
    ("complete", "typed_language", "expected"),
    [
        (completion.lists, "me", ["methods"]),
        (completion.recipes, "quicks", ["quickstart"]),
        (completion.corpora, "xn", ["xnli", "xnli-eu", "xnli-eu-native"]),
        (completion.methods, "bi", ["bilingual"]),
        (completion.aligners, "fast", ["fast-align"]),
        (completion.translators, "c", ["ctranslate2"]),
    ],
)
def test_values_are_completed(complete, typed_language, expected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert complete(typed_language) == expected


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


def test_described_corpora_and_folders_are_completed(tmp_path, monkeypatch):
    (tmp_path / "runs/quickstart").mkdir(parents=True)
    (tmp_path / "runs/file").write_text("")
    monkeypatch.chdir(tmp_path)
    assert {"masakhaner", "masakhaner2", "masakhapos"} <= set(completion.corpora("masakha"))
    assert completion.folders("ru") == ["runs/"]
    assert completion.folders("runs/") == ["runs/quickstart/"]


def test_progress_has_columns_of_fixed_widths_and_the_latest_score_below(monkeypatch):
    import io

    from rich.console import Console, Group

    from isogloss.cli.display import _bars

    text = io.StringIO()
    console = Console(file=text, width=80, force_terminal=False)
    bars = _bars(console, lambda: "latest: scores: source-only, accuracy qaa 96.6 " + "and so on " * 9)
    for name, remark in (("runs", ""), ("  1: " + "a long name " * 9, "loss 1.2 " * 20)):
        bars.add_task(name, total=99, completed=7, remark=remark)
    for part in bars.get_renderables():
        console.print(Group(part))
    lines = text.getvalue().splitlines()
    assert len(lines) == 3
    assert len({line.index("7/99") for line in lines[:2]}) == 1
    assert max(len(value) for value in lines) <= 80 and lines[-1].startswith("latest: ")


def test_the_list_of_claims_is_short_and_machines_have_all_of_it(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = command("list", "claims").out.splitlines()
    assert "rule" not in lines[0].split()
    assert len(lines) < 2.5 * 48
    assert {"claim", "in the paper", "what", "rule"} == set(command("list", "claims", "--json").lines[0])


def test_piped_tables_have_no_trailing_blanks_and_heed_columns(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "70")
    lines = command("list", "methods").out.splitlines()
    assert len(lines) > 26
    assert [line for line in lines if line != line.rstrip() or len(line) > 70 or "─" in line] == []


def test_show_ends_with_what_can_be_done_next(command, tiny_runs):
    run = next(path.parent for path in sorted(tiny_runs.glob("*/model")))
    lines = command("show", run.name, "--in", tiny_runs).out.splitlines()
    assert lines[-3:] == [
        f"Next: isogloss predict {run} FILE",
        f"Next: isogloss evaluate {run} --corpus NAME --language CODE",
        f"Next: isogloss report {tiny_runs}",
    ]


@pytest.mark.slow
def test_a_report_prints_scores_by_language_and_the_sentences_of_claims(command, study_folder):
    output = command("report", study_folder("transfer")).out
    assert "accuracy" in output or "span_f1" in output
    assert re.search(r"source-only +\d+\.\d", output)
    assert "Report: " in output.splitlines()[-1]


def test_jobs_have_a_bar_each_below_that_of_all_runs():
    from rich.progress import Progress as Bars

    display = Display(_bars=Bars(disable=True))
    display._total = display._bars.add_task("starting", total=None, remark="")
    display.announce(Begun("a", "first", 3, 10))
    display.on_progress(Progress("path", 1, 33, job=1))
    display.on_progress(Progress("path", 20, 33, job=2))
    display.on_progress(Progress("training", 5, 9, "dev 0.9", rows=({"score": 0.9},), job=2))
    bars = [(bar.description, bar.completed, bar.total) for bar in display._bars.tasks]
    assert bars == [("runs", 2, 10), ("  1: path", 1, 33), ("  2: training", 5, 9)]
    display.on_progress(Progress("training", 6, 9, "loss 1.2", rows=({"loss": 1.2},), job=2))
    assert display._latest == "latest: training, dev 0.9", "losses are no scores"
    display.on_progress(Progress("training", 9, 9, job=2))
    assert [bar.description for bar in display._bars.tasks] == ["runs", "  1: path"]


@pytest.mark.parametrize(
    ("model", "facts"),
    [
        ("xlm-roberta-base", ("FacebookAI/xlm-roberta-base", "without a head", "fine-tunes")),
        ("FacebookAI/xlm-roberta-base", ("cannot be reached", "hf download FacebookAI/xlm-roberta-base")),
        ("some-model", ("some-model: no such folder", "owner/name")),
    ],
)
def test_an_encoder_of_the_hub_is_refused_with_what_is_missing(model, facts, command, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    corpus = ("--corpus", "masakhaner", "--language", "sw", "--data", "hub")
    message = command("evaluate", model, *corpus).message
    assert [fact for fact in facts if fact not in message] == [], message
