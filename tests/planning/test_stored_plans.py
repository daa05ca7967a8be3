"""Later processes read the plan of the first one: equal runs, or a reason to plan again."""

import gzip
import json
import os
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import isogloss
from isogloss.core.errors import StorageError
from isogloss.core.identity import content_id, identity
from isogloss.core.records import PLANNED_RUNS
from isogloss.core.run_parts import parts_within
from isogloss.core.stored_parts import PartTable, UnstorableError, pack_parts, unpack_parts
from isogloss.core.untrusted import user_cache
from isogloss.data.corpora.own import KNOWN
from isogloss.data.sources import Sources
from isogloss.planning import plan as planning
from isogloss.planning.plan import Planned, plan_recipe
from isogloss.planning.stored_plans import planned_parts
from isogloss.recipes.recipe_text import packaged_recipes
from isogloss.recipes.request import request_digest
from isogloss.runs.run import Run
from planned_ids import plans
from tiny import TINY, tiny

Reading = tuple[Planned, list[str]]


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    return tiny(tmp_path, TINY)


@pytest.fixture
def folder(recipe: Path, tmp_path: Path) -> Path:
    """Return a folder of runs with the plan of a first process."""
    folder = tmp_path / "runs"
    plan_recipe(str(recipe), out=folder).write("isogloss run")
    return folder


def read_plan(recipe: Path, folder: Path, **options: Any) -> Reading:
    """Plan a recipe as a second process, and return the reasons why it did not read the runs."""
    reasons = list[str]()
    plan = plan_recipe(
        str(recipe), out=folder, on_progress=lambda progress: reasons.append(progress.remark), **options
    )
    return plan, reasons


def test_a_second_process_reads_the_runs_of_the_first(recipe, folder, monkeypatch):
    first = plan_recipe(str(recipe), out=folder)
    calls = []
    monkeypatch.setattr(planning, "runs_of", calls.append)
    monkeypatch.setattr(planning, "planned_encoders", calls.append)
    second, reasons = read_plan(recipe, folder)
    assert (calls, reasons, second.is_stored) == ([], [], True)
    assert [identity(run) for run in second.runs] == [content_id(run) for run in second.runs]
    for name in ("runs", "encoders", "methods", "against", "asked", "text", "recipe", "titles"):
        assert getattr(second, name) == getattr(first, name)
    assert list(second.titles) == list(first.titles)


@pytest.mark.slow
@pytest.mark.parametrize("name", packaged_recipes())
def test_runs_of_all_recipes_equal_their_stored_runs(name):
    runs = [run for plan in plans(name).values() for run in (*plan.runs, *plan.encoders)]
    table = pack_parts(runs)
    values = unpack_parts(PartTable(**json.loads(json.dumps(vars(table)))))
    assert values == runs
    assert [content_id(run) for run in values] == table.ids
    assert kinds_within(values) == kinds_within(runs)


def kinds_within(runs: list[Run]) -> list[type[object]]:
    return [type(part) for part in parts_within(tuple(runs))]


def test_a_plan_is_written_once_per_request(recipe, folder):
    times = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    second, _ = read_plan(recipe, folder)
    second.write("isogloss run")
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == times
    plan_recipe(str(recipe), out=folder, changes={"grid.seeds": [5]}).write("isogloss run")
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} != times


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"changes": {"grid.seeds": [0]}}, "scale or --set"),
        ({"data": "."}, "folder of data"),
    ],
)
def test_a_different_request_is_planned(recipe, folder, options, reason):
    plan, reasons = read_plan(recipe, folder, **options)
    assert not plan.is_stored
    assert reason in reasons[0]
    assert str(folder / PLANNED_RUNS) in reasons[0]


def test_a_changed_recipe_is_planned(recipe, folder):
    recipe.write_text(TINY.replace("seeds = [0, 1]", "seeds = [2]"))
    plan, reasons = read_plan(recipe, folder)
    assert not plan.is_stored
    assert "recipe" in reasons[0]
    assert {seed for run in plan.runs if (seed := getattr(run, "seed", None)) is not None} == {2}


def test_a_request_whose_changes_stay_unseen_is_planned(recipe, folder):
    recipe.write_text(TINY.replace('name = "bilingual"', 'name = "isogloss.methods.plain:Bilingual"'))
    content = (folder / PLANNED_RUNS).read_bytes()
    with pytest.raises(isogloss.IsoglossError):
        read_plan(recipe, folder)
    assert (folder / PLANNED_RUNS).read_bytes() == content


DESCRIBED = TINY.replace('"wikiann"', '"planned-topics.toml"').replace("examples = 16\n", "")
DESCRIPTION = """
kind = "text"
files = "{language}-{split}.tsv"
labels = ["loc", "per"]
languages = ["qaa", "qab", "qad"]
"""
ROWS = "label\ttext\nloc\tone two\nper\tthree four\n"


@pytest.fixture
def described(tmp_path: Path) -> Path:
    """Return a recipe on a described corpus, whose files lie next to it."""
    for language, split in product(("qaa", "qab", "qad"), ("train", "dev", "test")):
        (tmp_path / f"{language}-{split}.tsv").write_text(ROWS)
    (tmp_path / "planned-topics.toml").write_text(DESCRIPTION)
    KNOWN.pop("planned-topics", None)
    return tiny(tmp_path, DESCRIBED)


@pytest.fixture
def described_runs(described: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "runs"
    plan_recipe(str(described), out=folder).write("isogloss run")
    return folder


def test_a_second_process_reads_the_runs_on_a_described_corpus(described, described_runs, monkeypatch):
    ids = [identity(run) for run in plan_recipe(str(described), out=described_runs).runs]
    monkeypatch.setattr(planning, "runs_of", pytest.fail)
    second, reasons = read_plan(described, described_runs)
    assert (second.is_stored, reasons) == (True, [])
    assert [identity(run) for run in second.runs] == ids
    assert second.asked != request_digest(described.read_text(), folder=described.parent)


CHANGES_OF_A_CORPUS = {
    "a file": ("qab-test.tsv", lambda text: text.replace("three", "five")),
    "a longer file": ("qaa-train.tsv", lambda text: f"{text}loc\tsix\n"),
    "the language of a file": ("planned-topics.toml", lambda text: text.replace('"qaa"', '"qaa", "qae"')),
    "the order of labels": ("planned-topics.toml", lambda text: text.replace('"loc", "per"', '"per", "loc"')),
    "bad rows": ("planned-topics.toml", lambda text: f'{text}bad_rows = "skip"\n'),
}


@pytest.mark.parametrize("name", CHANGES_OF_A_CORPUS)
def test_a_changed_described_corpus_is_planned(described, described_runs, name):
    file, change = CHANGES_OF_A_CORPUS[name]
    path = described.parent / file
    path.write_text(change(path.read_text()))
    advance_time(path)
    KNOWN.pop("planned-topics")  # A new process knows no description.
    plan, reasons = read_plan(described, described_runs)
    assert not plan.is_stored
    assert "described corpus" in reasons[0]
    assert [content_id(run) for run in plan.runs] == [
        content_id(run) for run in plan_recipe(str(described), out=described_runs).runs
    ]


def test_a_file_that_no_longer_exists_is_noticed(described, described_runs):
    (described.parent / "qad-train.tsv").unlink()
    plan, reasons = read_plan(described, described_runs)
    assert not plan.is_stored
    assert "described corpus" in reasons[0]


def test_plans_on_the_hub_depend_on_the_commits_of_its_datasets(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    without_commits = planned_parts(Sources("hub"))
    assert set(without_commits) == {"commit on the hub"}
    assert planned_parts(Sources(str(tmp_path))) == planned_parts(Sources()) == {}
    commit = user_cache() / "hub" / "commits" / "owner" / "name@main"
    commit.parent.mkdir(parents=True)
    commit.write_text("0" * 40)
    with_commit = planned_parts(Sources("hub"))
    assert with_commit != without_commits
    commit.write_text("1" * 40)
    advance_time(commit)
    assert planned_parts(Sources("hub")) not in (with_commit, without_commits)


def advance_time(path: Path) -> None:
    """Give a file a later time, because clocks of file systems may be coarse."""
    later = path.stat().st_mtime_ns + 10**9
    os.utime(path, ns=(later, later))


def edit(change: Callable[[dict[str, Any]], object]) -> Callable[[bytes], bytes]:
    """Return a function that changes the JSON object in a compressed file."""

    def edit_content(content: bytes) -> bytes:
        body = json.loads(gzip.decompress(content))
        change(body)
        return gzip.compress(json.dumps(body).encode())

    return edit_content


def edit_part(**values: object) -> Callable[[bytes], bytes]:
    """Return a function that sets fields of the first part in the file."""

    def change(body: dict[str, Any]) -> None:
        (_, fields), *_ = body["table"]["parts"]
        fields.update(values)

    return edit(change)


def edit_class(name: str) -> Callable[[bytes], bytes]:
    """Return a function that names a different class for the first parts in the file."""
    return edit(lambda body: body["table"].update(classes=[name, *body["table"]["classes"][1:]]))


DAMAGE = {
    "empty": lambda content: b"",
    "text": lambda content: b"{}",
    "half": lambda content: content[: len(content) // 2],
    "flipped": lambda content: content[:100] + bytes([content[100] ^ 1]) + content[101:],
    "longer": lambda content: content + b"0",
    "list": lambda content: gzip.compress(b"[]"),
    "deep": lambda content: gzip.compress(b"[" * 100_000),
    "field": edit(lambda body: body.update(more=1)),
    "format": edit(lambda body: body.update(format=2)),
    "code": edit_class("os:system"),
    "command": edit_class("isogloss.__main__:app"),
    "function": edit_class("isogloss.api:run"),
    "class number": edit(lambda body: body["table"]["parts"].append([99, {}])),
    "no field": edit_part(nonsense=1),
    "later part": edit_part(label={"part": 10_000}),
    "no runs": edit(lambda body: body["table"].update(values=[])),
    "no encoders": edit(lambda body: body.update(labels=[])),
    "NaN": edit_part(label=float("nan")),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_or_foreign_file_is_refused_and_the_recipe_planned(recipe, folder, name):
    path = folder / PLANNED_RUNS
    ids = [identity(run) for run in plan_recipe(str(recipe), out=folder).runs]
    path.write_bytes(DAMAGE[name](path.read_bytes()))
    plan, reasons = read_plan(recipe, folder)
    assert not plan.is_stored
    assert len(reasons) == 1
    assert str(path) in reasons[0]
    assert [identity(run) for run in plan.runs] == ids
    plan.write("isogloss run")
    assert read_plan(recipe, folder)[0].is_stored


def test_plans_of_other_versions_and_plug_ins_are_not_read(recipe, folder):
    path = folder / PLANNED_RUNS
    for name in ("version of isogloss", "set of plug-ins"):
        path.write_bytes(edit(lambda body, name=name: body["request"].update({name: "1"}))(path.read_bytes()))
        plan, reasons = read_plan(recipe, folder)
        assert not plan.is_stored
        assert name in reasons[0]


def test_a_run_with_the_id_of_another_is_not_made(recipe, folder):
    path = folder / PLANNED_RUNS

    def exchange(body: dict[str, Any]) -> None:
        numbers = body["table"]["values"]
        numbers[0], numbers[1] = numbers[1], numbers[0]

    path.write_bytes(edit(exchange)(path.read_bytes()))
    with pytest.raises(StorageError, match=PLANNED_RUNS):
        isogloss.run(recipe, out=folder, jobs=1, report=False)
    assert not list(folder.glob("*/record.json"))


def test_classes_of_a_script_are_not_stored():
    from dataclasses import dataclass

    @dataclass(frozen=True)
    class Own:
        size: int = 1

    with pytest.raises(UnstorableError, match="Own"):
        pack_parts([Own()])


@pytest.mark.slow
def test_a_second_command_makes_the_same_records_without_planning(recipe, tmp_path, monkeypatch):
    whole = isogloss.run(recipe, out=tmp_path / "whole", jobs=1, report=False)
    folder = tmp_path / "shared"
    plan_recipe(str(recipe), out=folder).write("isogloss run")
    (folder / "precision.json").write_bytes((whole.out / "precision.json").read_bytes())
    monkeypatch.setattr(planning, "runs_of", pytest.fail)
    result = isogloss.run(recipe, out=folder, jobs=1, report=False)
    assert result.ids == whole.ids
    assert [repr(record.body()) for record in result.records] == [
        repr(record.body()) for record in whole.records
    ]
