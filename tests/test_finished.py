"""A recipe whose folder is finished is recognized without torch, writes nothing, and notices any change."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from isogloss import api
from isogloss.core.checksums import stamp
from isogloss.core.errors import plain
from isogloss.core.identity import identity
from isogloss.recipes.request import request_digest
from isogloss.reports.report import write_report

RECIPE = """
title = "A study"
encoder = "MODEL"
[grid]
corpus = "ud"
"""

Places = tuple[Path, Path, Path]


@pytest.fixture
def folder(tmp_path: Path) -> Places:
    """Write recipe, data and a folder as after a run, without running it."""
    data, runs, encoder = tmp_path / "data", tmp_path / "runs", tmp_path / "encoder"
    for place in (data / "ud", encoder):
        place.mkdir(parents=True)
        (place / "file").write_text("some text")
    recipe = tmp_path / "study.toml"
    recipe.write_text(RECIPE.replace("MODEL", str(encoder)))
    run = {"kind": "measure", "diagnostic": {"kind": "new"}, "subjects": []}
    record = {"id": identity(run), "kind": "measure", "title": "new", "run": run, "needs": [], "warnings": []}
    (runs / identity(run)).mkdir(parents=True)
    (runs / identity(run) / "record.json").write_text(json.dumps({**record, "rows": [{"a": 1}]}))
    digest = request_digest(recipe.read_text(), data=data)
    (runs / "plan.json").write_text(json.dumps({"title": "A", "runs": [identity(run)], "asked": digest}))
    write_report(runs)
    return recipe, data, runs


@pytest.mark.nightly
@pytest.mark.slow
def test_the_command_line_neither_imports_torch_nor_writes(folder: Places) -> None:
    recipe, data, runs = folder
    times = {path: path.stat().st_mtime_ns for path in runs.rglob("*")}
    words = ["run", str(recipe), "--out", str(runs), "--data", str(data)]
    script = (
        f"import sys; from isogloss.cli.app import app; app({words!r}, standalone_mode=False);"
        "print(sorted({'torch', 'transformers', 'matplotlib'} & set(sys.modules)))"
    )
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert process.stdout.splitlines()[-1] == "[]"
    assert "1 of 1 finished" in process.stdout
    assert "0 runs made, 1 had been made before, 0 failed." in process.stderr
    assert {path: path.stat().st_mtime_ns for path in runs.rglob("*")} == times


def test_what_was_found_then_is_had_again(folder: Places) -> None:
    recipe, data, runs = folder
    result = api.run(recipe, out=runs, data=data)
    assert (result.outcome.made, result.outcome.failed) == ([], {})
    assert [record.id for record in result.records] == result.outcome.done
    assert result.report.html == runs / "report.html"
    assert result.frame("scores").empty
    assert [run.state for run in api.read(runs).runs] == ["finished"]
    assert api.read(runs).report.summary == result.report.summary


def without_request(plan: Path) -> None:
    body = json.loads(plan.read_text())
    del body["asked"]
    plan.write_text(json.dumps(body))


CHANGES: dict[str, Callable[[Path, Path, Path], object]] = {
    "the recipe": lambda recipe, _, __: recipe.write_text(recipe.read_text() + "\n"),
    "a file of the data": lambda _, data, __: (data / "ud" / "file").write_text("other text"),
    "a new file in the data": lambda _, data, __: (data / "ud" / "more").write_text("x"),
    "an encoder's file": lambda _, data, __: (data.parent / "encoder" / "file").write_text("other"),
    "the encoder is gone": lambda _, data, __: (data.parent / "encoder").rename(data.parent / "gone"),
    "a record is gone": lambda _, __, runs: min(runs.glob("*/record.json")).unlink(),
    "a record is damaged": lambda _, __, runs: min(runs.glob("*/record.json")).write_text("{"),
    "a run failed": lambda _, __, runs: (min(runs.glob("*/")) / "failed.json").write_text("{}"),
    "the page is gone": lambda _, __, runs: (runs / "report.html").unlink(),
    "the page is another": lambda _, __, runs: (runs / "report.html").write_text("x"),
    "the plan is damaged": lambda _, __, runs: (runs / "plan.json").write_text("{"),
    "the plan is another": lambda _, __, runs: (runs / "plan.json").write_text('{"runs": ["a"]}'),
    "the plan is of an earlier version": lambda _, __, runs: without_request(runs / "plan.json"),
    "a table is gone": lambda _, __, runs: (runs / "tables" / "runs.csv").unlink(),
}


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_files_is_noticed(folder: Places, change: str) -> None:
    recipe, data, runs = folder
    assert api.find_result(recipe, out=runs, data=data)
    CHANGES[change](*folder)
    assert api.find_result(recipe, out=runs, data=data) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes", [{"scale": "small"}, {"changes": {"grid.seeds": [1]}}, {"data": "hub"}, {"data": None}]
)
def test_a_change_of_what_is_asked_is_noticed(folder: Places, changes: dict[str, object]) -> None:
    recipe, data, runs = folder
    assert api.find_result(recipe, **{"out": runs, "data": data, **changes}) is None


def test_another_package_is_noticed(folder: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe, data, runs = folder
    monkeypatch.setattr("isogloss.recipes.request.package_stamp", lambda: "another")
    assert api.find_result(recipe, out=runs, data=data) is None


def test_one_of_several_processes_takes_the_whole_way(
    folder: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe, data, runs = folder
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert api.find_result(recipe, out=runs, data=data) is None


@pytest.mark.slow
def test_a_plan_with_a_run_that_has_no_record_is_not_finished(folder: Places) -> None:
    recipe, data, runs = folder
    plan = json.loads((runs / "plan.json").read_text())
    (runs / "plan.json").write_text(json.dumps({**plan, "runs": [*plan["runs"], "0123456789ab"]}))
    write_report(runs)
    assert api.find_result(recipe, out=runs, data=data) is None


def test_a_stamp_follows_links_and_ends_where_they_lead_back(tmp_path: Path) -> None:
    real_folder, linked_folder = tmp_path / "real", tmp_path / "linked"
    real_folder.mkdir()
    linked_folder.mkdir()
    (real_folder / "file").write_text("a")
    (linked_folder / "inside").symlink_to(real_folder)
    (real_folder / "back").symlink_to(linked_folder)
    old_stamp = stamp([linked_folder])
    assert stamp([linked_folder]) == old_stamp
    (real_folder / "file").write_text("bb")
    assert stamp([linked_folder]) != old_stamp


def test_a_text_that_is_no_path_names_no_file() -> None:
    none = ["x" * 5000, "x/" * 5000, "", "a\0b", "~10 % fewer labels", "~no user/x"]
    text = f"a = {json.dumps(none)}"
    assert request_digest(text) == request_digest(text) != ""


def test_published_numbers_are_those_beside_the_recipe(tmp_path: Path) -> None:
    digests = set()
    for numbers in ("", "a", "ab"):
        (tmp_path / "numbers.csv").write_text(numbers)
        digests.add(request_digest('published = "numbers.csv"', folder=tmp_path))
    assert len(digests) == 3


@pytest.mark.parametrize(
    "text",
    [
        "no toml [",
        'method = { name = "module:Own" }',
    ],
)
def test_where_only_a_plan_knows_what_is_read_nothing_counts_as_finished(text: str) -> None:
    assert request_digest(text) == ""


def test_a_hub_encoder_with_another_commit_is_noticed(
    hub_cache: Callable[..., str], folder: Places, tmp_path: Path
) -> None:
    text = 'encoder = "some/encoder@v2"'
    old_digest = request_digest(text)
    assert request_digest(text) == old_digest
    hub_cache("some/encoder", tmp_path / "encoder", revision="v2")
    assert request_digest(text) != old_digest


@pytest.mark.parametrize(
    ("text", "shown_text"),
    [
        ("plain", "plain"),
        ("a\x1b[2Jb\x9b", "a[2Jb"),
        ("x\u202ey\u2066z", "xyz"),
        ("中\n\tن\u200d", "中\n\tن\u200d"),
    ],
)
def test_plain_text_steers_nothing(text: str, shown_text: str) -> None:
    assert plain(text) == shown_text
