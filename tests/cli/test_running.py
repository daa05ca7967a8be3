"""Output, streams and exit code of each verb."""

import json
import os
import re
import shutil
from platform import node

import pytest

from isogloss.cli import display
from isogloss.cli.display import Display
from isogloss.cli.lists import LISTS, OF_A_FOLDER
from isogloss.core.identity import identity
from isogloss.core.progress import Progress
from isogloss.core.records import read_record
from isogloss.data.corpora.catalogue import CORPORA
from isogloss.data.corpora.own import list_shipped
from isogloss.planning.plan import plan_recipe
from tiny import MODELS, RUNS, tiny


@pytest.fixture
def fine_tuned(tiny_runs):
    """The folder of a fine-tuned model, and one of a measurement."""
    kinds = {read_record(path.parent).kind: path.parent for path in sorted(tiny_runs.glob("*/record.json"))}
    return kinds["fine-tune"], kinds["measure"]


def test_a_dry_run_prints_the_plan_and_makes_nothing(command, tmp_path):
    output = command("run", tiny(tmp_path), "--out", tmp_path / "runs", "--dry-run")
    assert (output.status, output.err) == (0, "")
    assert output.out.splitlines()[-1] == f"{RUNS} runs: 0 done, {RUNS} to make"
    assert output.out.count("to do") == RUNS
    assert "source-only: wikiann ner qaa, seed 1" in output.out
    assert not (tmp_path / "runs").exists()


def test_a_dry_run_of_many_runs_has_a_line_for_each_kind_and_the_disk(command, tmp_path):
    output = command("run", "quickstart", "--out", tmp_path / "runs", "--dry-run")
    lines = output.out.splitlines()
    assert len(lines) < 24, "it fits a screen"
    (line,) = (line.split() for line in lines if line.startswith("bilingual"))
    assert line[1] == "5"
    models, training, runs = lines[-3:]
    assert models.startswith("Models to store: 15, about ") and models.endswith(" of disk")
    assert "hours at" in training
    plan = command("run", "quickstart", "--out", tmp_path / "runs", "--dry-run", "--json").lines
    assert runs == f"{len(plan) - 1} runs: 0 done, {len(plan) - 1} to make"
    assert plan[-1]["models"] == 15 and plan[-1]["model bytes"] > 5e7


def test_a_dry_run_says_how_much_memory_each_run_takes(command, tmp_path, hub_cache):
    options = ("--out", tmp_path / "runs", "--dry-run", "--json")
    *plan, _ = command("run", tiny(tmp_path), *options).lines
    memory = {line["what"].partition(":")[0]: line["memory"] for line in plan}
    assert memory["transfer-gap"] == ""
    sizes = {part: float(text.removesuffix(" MB")) for part, text in memory.items() if text}
    assert 400 < sizes["scores"] <= sizes["interpolation"] < 2000
    assert 400 < sizes["source-only"] < 2000
    hub_lines = command("run", tiny(tmp_path), *options, "--set", "encoder=somebody/small-bert").lines
    assert hub_lines[0]["memory"] == "unknown"


def test_8_bit_states_are_refused_before_anything_is_made_where_they_are_not_installed(
    command, tmp_path, monkeypatch
):
    from isogloss.training import optimizer

    monkeypatch.setattr(optimizer, "find_spec", lambda _: None)
    options = ("--set", 'grid.optimization.optimizer_states="8-bit"')
    output = command("run", tiny(tmp_path), "--out", tmp_path / "runs", "--jobs", 1, *options)
    assert output.status == 2
    assert 'optimizer_states = "8-bit"' in output.message
    assert not list(tmp_path.glob("runs/*/record.json"))


def test_a_dry_run_says_what_is_not_there(command, tmp_path):
    more = ("--set", "grid.dev_examples=500")
    output = command("run", tiny(tmp_path), "--out", tmp_path / "runs", "--dry-run", *more)
    assert (
        "isogloss: asked for 500 development examples of qaa in wikiann: there are 400; all were read."
    ) in output.err.splitlines()


def test_a_dry_run_says_what_it_cannot_look_at(command, tmp_path, hub_cache):
    more = ("--set", "encoder=somebody/small-bert", "--out", tmp_path / "runs")
    dry_output = command("run", tiny(tmp_path), "--dry-run", *more)
    (warning,) = dry_output.err.splitlines()
    assert dry_output.status == 0
    assert warning.startswith("isogloss: somebody/small-bert: ")
    run_output = command("run", tiny(tmp_path), *more)
    assert (run_output.status, run_output.message[:39]) == (2, "somebody/small-bert: not found locally,")


def test_a_dry_run_knows_what_is_done(command, tiny_runs):
    output = command("run", tiny_runs.parent / "tiny.toml", "--out", tiny_runs, "--dry-run", "--json")
    *plan, summary = output.lines
    counts = {"runs": RUNS, "done": RUNS, "to make": 0}
    model_counts = {"models": 0, "model bytes": 0}
    assert summary == {**counts, **model_counts, "operations": 0, "unknown": 0, "hours left": 0, "unlike": 0}
    assert {line["state"] for line in plan} == {"done"}
    assert sum(line["needed by"] == 0 for line in plan) == 6  # bilingual scores, gaps, paths
    assert all((tiny_runs / line["run"] / "record.json").exists() for line in plan)


def test_a_dry_run_tells_time_by_the_runs_that_are_made(command, tiny_runs, tmp_path):
    folder = shutil.copytree(tiny_runs, tmp_path / "runs")
    records = [read_record(path.parent) for path in folder.glob("*/record.json")]
    source_only_records = [
        record for record in records if record.run.get("method", {}).get("kind") == "source-only"
    ]
    (missing_id, finished_id) = (record.id for record in source_only_records)
    took = json.loads((folder / finished_id / "made.json").read_text())["seconds"]
    shutil.rmtree(folder / missing_id)
    recipe = tiny_runs.parent / "tiny.toml"
    *_, summary = command("run", recipe, "--out", folder, "--dry-run", "--json").lines
    assert (summary["to make"], summary["unlike"]) == (1, 0)
    assert summary["hours left"] == pytest.approx(took / 3600)
    for record in records:
        if record.title.startswith("transfer-gap"):
            shutil.rmtree(folder / record.id)
    output = command("run", recipe, "--out", folder, "--dry-run")
    assert "hours of one job by those made here (and 2 unlike any" in output.out.splitlines()[-1]


def test_a_dry_run_knows_what_failed_and_who_makes_what(command, tmp_path):
    plan = plan_recipe(tiny(tmp_path), out=tmp_path / "runs")
    failed_run, leased_run = plan.runs[:2]
    plan.store.fail(failed_run, "it diverged")
    with plan.store.leases.lease_run(identity(leased_run)):
        output = command("run", tmp_path / "tiny.toml", "--out", tmp_path / "runs", "--dry-run", "--json")
    states = [line["state"] for line in output.lines[:-1]]
    assert states == ["failed", f"made by {os.getpid()} on {node()}", *["to do"] * (RUNS - 2)]


@pytest.mark.slow
def test_a_run_of_json_is_json_lines_and_nothing_else(command, tmp_path):
    output = command(
        "run", tiny(tmp_path), "--out", tmp_path / "o", "--scale", "least", "--json", "--jobs", 1
    )
    assert (output.status, output.err) == (0, "")
    events = [line["event"] for line in output.lines]
    assert set(events) == {"run", "progress", "outcome", "report"}
    assert events[-2:] == ["outcome", "report"]
    *_, outcome, report = output.lines
    begun = [line for line in output.lines if line["event"] == "run"]
    assert [event["run"] for event in begun] == outcome["made"]
    assert [event["number"] for event in begun] == list(range(1, len(begun) + 1))
    assert report["html"] == str(tmp_path / "o/report.html")
    fine_tuned = [line["rows"] for line in output.lines if line.get("what", "").startswith("fine-tuning")]
    assert any(fine_tuned)
    again = command(
        "run", tmp_path / "tiny.toml", "--out", tmp_path / "o", "--scale", "least", "--json", "--quiet"
    )
    assert [line["event"] for line in again.lines] == ["outcome", "report"]
    assert sorted(again.lines[0]["done"]) == sorted(outcome["made"])  # Of a plan, and as they were made.


def test_machines_are_told_of_progress_that_begins_ends_or_has_rows_and_of_the_rest_seldom(
    capsys, monkeypatch
):
    tenths = iter(range(100))
    monkeypatch.setattr(display.time, "monotonic", lambda: next(tenths) / 10)
    printer = display.Display(as_json=True)
    for step in range(30):
        printer.on_progress(Progress("steps", step, 30))
    printer.on_progress(Progress("steps", 29, 30, rows=({"loss": 1.0},)))
    printer.on_progress(Progress("steps", 30, 30))
    counts = [json.loads(line)["done"] for line in capsys.readouterr().out.splitlines()]
    assert counts == [0, 12, 23, 29, 30]  # Each second, from 0.


def test_people_see_the_numbers_of_what_has_ended_at_once(capsys, monkeypatch):
    monkeypatch.setattr(display, "LINE_SECONDS", 3600.0)
    printer = display.Display()
    printer.on_progress(Progress("first line", 0, 2))
    printer.on_progress(Progress("steps", 1, 2, "loss 1", rows=({"loss": 1.0},)))
    printer.on_progress(Progress("scores: source-only", 1, 1, "accuracy qaa 97.7", rows=({"score": 0.977},)))
    assert "scores: source-only: 1/1 accuracy qaa 97.7" in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.nightly
@pytest.mark.slow
def test_a_run_on_a_hub_encoder_and_its_export_name_the_commit(command, tmp_path, hub_cache, bert_folder):
    commit = hub_cache("some/bert", bert_folder, revision="v2")
    only = ("--scale", "least", "--set", "encoder=some/bert@v2", "--jobs", 1, "--no-report")
    assert command("run", tiny(tmp_path), "--out", tmp_path / "runs", *only).status == 0
    models = [path.parent for path in (tmp_path / "runs").glob("*/model")]
    assert {read_record(run).run["encoder"]["revision"] for run in models} == {commit}
    assert command("export", models[0], tmp_path / "exported").status == 0
    assert f"| encoder | some/bert@{commit} |" in (tmp_path / "exported" / "README.md").read_text()


@pytest.mark.nightly
@pytest.mark.slow
def test_quiet_says_nothing_on_standard_error(command, tiny_runs):
    recipe = tiny_runs.parent / "tiny.toml"
    loud = command("run", recipe, "--out", tiny_runs, "--jobs", 1)
    quiet = command("run", recipe, "--out", tiny_runs, "--jobs", 1, "--quiet")
    assert f"0 runs made, {RUNS} had been made before, 0 failed." in loud.err
    assert (quiet.status, quiet.err) == (0, "")
    assert quiet.out == loud.out
    assert quiet.out.splitlines()[-1] == f"Report: {tiny_runs / 'report.html'}"


@pytest.mark.slow
def test_a_failed_run_ends_with_1_and_says_why(command, tmp_path):
    diverging = ["--set", "grid.optimization.learning_rate=1e30", "--jobs", 1, "--quiet", "--no-report"]
    output = command("run", tiny(tmp_path), "--out", tmp_path / "runs", *diverging)
    assert (output.status, output.out) == (1, "")
    assert not (tmp_path / "runs/report.html").exists()
    assert "failed: fine-tuning on qaa: the loss is" in output.err
    assert all(line.startswith("isogloss: run ") for line in output.err.splitlines())
    assert "Traceback" not in output.err


def test_several_recipes_share_a_folder_a_plan_and_what_both_make(command, tmp_path):
    second_recipe = tiny(tmp_path).rename(tmp_path / "other.toml")
    second_recipe.write_text(
        second_recipe.read_text(encoding="utf-8").replace("[0, 1]", "[1, 2]"), encoding="utf-8"
    )
    first_recipe = tiny(tmp_path)
    options = ("--out", tmp_path / "runs", "--dry-run", "--json")
    *first_lines, _ = command("run", first_recipe, *options).lines
    *second_lines, _ = command("run", second_recipe, *options).lines
    *all_lines, summary = command("run", first_recipe, second_recipe, *options).lines
    ids = [{line["run"] for line in lines} for lines in (first_lines, second_lines, all_lines)]
    assert ids[2] == ids[0] | ids[1] and len(all_lines) == len(ids[2]) == summary["runs"]
    assert ids[0] & ids[1]
    assert "Did you mean 'quickstart'" in command("run", first_recipe, "quickstrat", *options).message
    assert "2 recipes" in command("run", first_recipe, second_recipe, "--dry-run").message


@pytest.mark.nightly
@pytest.mark.slow
def test_the_report_of_several_recipes_is_about_all(command, tmp_path):
    recipes = [tiny(tmp_path).rename(tmp_path / "other.toml"), tiny(tmp_path)]
    for recipe, rate in zip(recipes, ("5e-4", "1e30"), strict=True):
        text = recipe.read_text(encoding="utf-8").partition("[[measure]]")[0]
        recipe.write_text(text.replace("5e-4", rate).replace("[0, 1]", "[0]"), encoding="utf-8")
    output = command("run", *recipes, "--out", tmp_path / "runs", "--jobs", 1, "--quiet")
    assert output.status == 1
    assert "2 of 4 finished" in output.out


@pytest.mark.nightly
@pytest.mark.slow
def test_report_shows_what_was_found_again(command, tiny_runs):
    text_output = command("report", tiny_runs)
    json_output = command("report", tiny_runs, "--json")
    assert (text_output.status, json_output.status) == (0, 0)
    assert f"{RUNS} of {RUNS} finished" in text_output.out
    assert json_output.lines[0]["summary"]["runs"] == f"{RUNS} of {RUNS} finished"


@pytest.mark.nightly
@pytest.mark.slow
def test_scores_of_one_seed_have_no_spread(command, tiny_runs, tmp_path):
    report = ["report", tiny_runs]
    assert " ± " in command(*report).out
    runs = shutil.copytree(tiny_runs, tmp_path / "runs")
    for record in sorted(runs.glob("*/record.json")):
        if "seed 1" in read_record(record.parent).title:
            shutil.rmtree(record.parent)
    output = command("report", runs)
    assert output.status == 0
    assert "source-only" in output.out and " ± " not in output.out


def test_show_finds_a_run_by_the_beginning_of_its_id(command, tiny_runs, fine_tuned):
    model, measurement = fine_tuned
    output = command("show", measurement.name[:10], "--in", tiny_runs)
    assert output.status == 0
    assert measurement.name in output.out
    score_text = command("show", model.name, "--in", tiny_runs).out
    assert re.search(r"^qaa +(test|dev) +\S+ +\d+\.\d$", score_text, re.MULTILINE), "scores are shown"
    (line,) = command("show", model.name, "--in", tiny_runs, "--json").lines
    assert line == json.loads((model / "record.json").read_text())


@pytest.mark.parametrize("list_name", LISTS)
def test_every_list_is_had_as_table_and_as_json(command, list_name, tiny_runs):
    words = ("list", list_name, *(("--in", tiny_runs) if list_name in OF_A_FOLDER else ()))
    table, machine = command(*words), command(*words, "--json")
    assert (table.status, table.err) == (0, "")
    assert machine.lines
    assert all(str(next(iter(line.values()))) in table.out for line in machine.lines)


def test_list_runs_lists_what_is_finished(command, tiny_runs):
    kinds = [line["kind"] for line in command("list", "runs", "--in", tiny_runs, "--json").lines]
    assert (kinds.count("fine-tune"), len(kinds)) == (MODELS, RUNS)


def test_list_corpora_is_the_table_of_corpora(command):
    assert {line["corpus"] for line in command("list", "corpora", "--json").lines} == {
        *CORPORA,
        *list_shipped(),
    }


def test_languages_are_those_of_the_list(command):
    assert command("languages", "--json").lines == command("list", "languages", "--json").lines


@pytest.mark.nightly
@pytest.mark.slow
def test_doctor_says_what_is_here(command, tmp_path):
    (tmp_path / "ud").mkdir()
    findings = {line["what"]: line["found"] for line in command("doctor", "--json", "--data", tmp_path).lines}
    assert findings["precision chosen"] in {"float32", "bfloat16"}
    assert findings[f"in {tmp_path}"] == "ud"
    assert findings["pip install isogloss[hub]"].startswith("datasets ")
    output = command("doctor", "--json", "--data", tmp_path / "lost")
    assert (output.status, output.lines) == (2, [])
    assert "lost:" in output.err


def test_languages_are_exported_where_asked(command, tmp_path, monkeypatch):
    from isogloss.features.built_in_languages import BuiltInLanguages

    monkeypatch.setattr(
        BuiltInLanguages,
        "export",
        lambda self, folder, on_progress: (folder / self.inside()[0]).mkdir(parents=True),
    )
    output = command("languages", "export", tmp_path / "x", "--quiet")
    assert (output.status, output.out, output.err) == (0, f"{tmp_path / 'x'}\n", "")
    assert [path.name for path in (tmp_path / "x").iterdir()] == BuiltInLanguages().inside()[:1]


def test_a_table_too_wide_for_its_words_is_printed_as_cards(command):
    text = command("languages").out
    assert "\nqaa\n  language: Ansa (qaa)\n  word order: SVO\n" in text
    assert "…" not in text


@pytest.mark.parametrize(("columns", "count"), [(1, 1), (7, 7), (8, 1)])
def test_a_table_cuts_no_word_and_keeps_short_cells_on_a_line(columns, count, capsys):
    """The table has the columns that fit. If the room is too small, the long cell is broken first."""
    heads = [f"difference-{number}" for number in range(columns)]
    Display().table(["what", *heads], [["a title of many words " * 9, *["-31.6 … +27.0"] * columns]])
    lines = capsys.readouterr().out.splitlines()
    assert any(all(head in line for head in heads) for line in lines)
    assert max(line.count("-31.6 … +27.0") for line in lines) == count
    assert max(map(len, lines)) <= 120
