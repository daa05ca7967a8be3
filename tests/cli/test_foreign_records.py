"""Damaged or foreign records, plans and neighbouring files are quarantined, or a line names the file."""

import json
import math
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

import isogloss
from isogloss import api
from isogloss.core.checksums import CHECKSUMS
from isogloss.core.errors import IsoglossError, StorageError
from isogloss.core.identity import identity
from isogloss.core.records import FAILED, MADE, PLAN, PREDICTIONS, RECORD, read_record
from isogloss.reports.report import finished_report, last_verdicts

STUDY = Path(__file__).parents[1] / "reports" / "studies" / "transfer.zip"

Content = dict[str, Any]


@pytest.fixture
def runs(tiny_runs, tmp_path):
    """A copy of finished runs that may be damaged."""
    weights = shutil.ignore_patterns("*.safetensors")
    return Path(shutil.copytree(tiny_runs, tmp_path / "runs", ignore=weights))


@pytest.fixture
def model(runs):
    """One of them that has a model."""
    return min(path.parent for path in runs.glob("*/model"))


def rewrite_record(folder: Path, change: Callable[[Content], object]) -> Path:
    """Change a record as somebody would who wants it to be read: under the id of what it holds now."""
    body = json.loads((folder / RECORD).read_text())
    change(body)
    key = body["id"] = identity(body["run"])
    new_table = folder.rename(folder.with_name(key))
    (new_table / CHECKSUMS).unlink()
    (new_table / RECORD).write_text(json.dumps(body))
    plan = new_table.parent / PLAN
    plan.write_text(plan.read_text().replace(folder.name, key))
    return new_table


DEEP = "a place for what is deep"


def as_text(body: Content) -> str:
    """Write a record, with lists in lists 3,000 levels deep in the place for them."""
    return json.dumps(body).replace(f'"{DEEP}"', "[" * 3000 + "]" * 3000)


DAMAGED: dict[str, Callable[[Content], object]] = {
    "another run": lambda body: body["run"].update(task="upos"),
    "another kind": lambda body: body.update(kind="measure"),
    "no title": lambda body: body.pop("title"),
    "one field more": lambda body: body.update(more=1),
    "a number for a text": lambda body: body["rows"][-1].update(language=3),
    "a text for a number": lambda body: body["rows"][0].update(trained="x"),
    "a list in a row": lambda body: body["rows"][0].update(trained=[[]]),
    "a huge number": lambda body: body["rows"][0].update(trained=10**30),
    "not a number": lambda body: body["rows"][1].update(loss=math.nan),
    "half a letter": lambda body: body.update(title="\ud800"),
    "deep": lambda body: body["run"].update(x=DEEP),
    "rows of lists": lambda body: body.update(rows=[[1]]),
    "an id that leads out": lambda body: body.update(id="../../x"),
    "70,000 letters": lambda body: body.update(id="x" * 70_000),
}
"""Changes that make a record damaged for every reader."""

READ_ALONE = {
    "show": lambda runs, model: ("show", model.name, "--in", runs),
    "predict": lambda _, model: ("predict", model, "-"),
    "export": lambda runs, model: ("export", model, runs.parent / "out", "--quiet"),
    "evaluate": lambda _, model: ("evaluate", model, "--corpus", "wikiann", "--language", "qab", "--quiet"),
}
"""The verbs about one record: they end with it."""

each_damage = pytest.mark.parametrize("damage", DAMAGED.values(), ids=DAMAGED)


@pytest.fixture
def damage_record(model):
    """Damage the record of the model."""

    def change(damage):
        body = json.loads((model / RECORD).read_text())
        damage(body)
        (model / CHECKSUMS).unlink()
        (model / RECORD).write_text(as_text(body))

    return change


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("verb", READ_ALONE.values(), ids=READ_ALONE)
@each_damage
def test_a_damaged_record_ends_what_is_about_it_in_a_line(command, runs, model, damage_record, damage, verb):
    damage_record(damage)
    message = command(*verb(runs, model)).message
    assert message.startswith(f"{model / RECORD}:")
    with pytest.raises(StorageError) as error:
        read_record(model)
    assert message == str(error.value)
    assert len(message) < 600
    assert not (runs.parent / "out").exists()


@pytest.mark.slow
@each_damage
def test_a_list_of_runs_names_the_damaged_one_among_the_others(command, runs, model, damage_record, damage):
    intact = command("list", "runs", "--in", runs, "--json").lines
    damage_record(damage)
    lines = command("list", "runs", "--in", runs, "--json").lines
    assert [line["run"] for line in lines] == [line["run"] for line in intact]
    assert [line for line in lines if line not in intact] == [
        line for line in lines if line["kind"] == "damaged"
    ]
    (line,) = [line for line in lines if line["kind"] == "damaged"]
    assert line["run"] == model.name
    with pytest.raises(StorageError) as error:
        read_record(model)
    assert line["what"] == str(error.value)


@pytest.mark.slow
@each_damage
def test_a_damaged_record_is_set_aside_by_what_reads_all(command, runs, model, damage_record, damage):
    damage_record(damage)
    result = command("compare", runs, "--against", "source-only")
    assert result.status == 0
    assert result.err.startswith("isogloss:")
    assert result.err.count("\n") == 1
    read = isogloss.read(runs)
    assert [run.id for run in read.runs if run.state == "damaged"] == [model.name]
    assert len(read.frame("scores")) > 0


def set_run(**values: Any) -> Callable[[Content], object]:
    return lambda body: body["run"].update(values)


NOT_OURS: dict[str, Callable[[Content], object]] = {
    "a number for the task": set_run(task=3.5),
    "a list for the task": set_run(task=[["ner"]]),
    "no method": lambda body: body["run"].pop("method"),
    "a text for the method": set_run(method="source-only"),
    "no kind of method": lambda body: body["run"]["method"].pop("kind"),
    "a number for the sources": set_run(source=7),
    "an encoder of an encoder of nothing": set_run(encoder={"kind": "adjust", "encoder": {}}),
    "a list for the encoder": set_run(encoder=[]),
    "a text for the optimization": set_run(optimization="fast"),
    "a huge seed": set_run(seed=10**30),
    "a list for the seed": set_run(seed=[1]),
}
"""Runs that hash to their id and are none of isogloss's."""


@pytest.mark.slow
@pytest.mark.parametrize("change", NOT_OURS.values(), ids=NOT_OURS)
def test_a_run_that_is_none_of_ours_is_set_aside_and_cannot_be_used(command, runs, model, change):
    new_path = rewrite_record(model, change)
    states = {run.id: run for run in isogloss.read(runs).runs}
    assert states[new_path.name].state == "damaged"
    assert "isogloss's" in states[new_path.name].error.partition(f"…/{RECORD}:")[2]
    assert command("list", "runs", "--in", runs).status == 0
    result = command("predict", new_path, "-")
    assert (result.status, result.err.count("\n")) in ((0, 0), (2, 1)), result


@pytest.mark.nightly
@pytest.mark.slow
def test_a_report_leaves_a_damaged_record_out_and_says_so(command, runs, model, damage_record):
    damage_record(DAMAGED["deep"])
    result = command("report", runs, "--quiet")
    assert (result.status, result.err.count("\n")) == (0, 1)
    assert result.err.startswith(f"isogloss: Run {model.name} could not be read: …/{RECORD}: ")
    assert "could not be read" in (runs / "report.html").read_text()


PLANS = {
    "cut short": '{"runs": [',
    "a list": "[]",
    "deep": "[" * 3000,
    "a number for the runs": '{"runs": 3}',
    "numbers for ids": '{"runs": [3]}',
    "an id that leads out": '{"runs": ["../../x"]}',
    "an id that is too long": json.dumps({"runs": ["x" * 300]}),
    "no text in an id": '{"runs": ["\\u0000"]}',
    "a list for the title": '{"title": ["a"]}',
    "a list for the labels": '{"labels": [3]}',
    "a list for the methods": '{"methods": [[]]}',
    "published numbers without their names": '{"published": [{"value": 1}]}',
    "half a letter": '{"title": "\\ud800"}',
}


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("text", PLANS.values(), ids=PLANS)
def test_a_damaged_plan_is_said_and_the_runs_are_read(command, runs, text):
    (runs / PLAN).write_text(text)
    read = isogloss.read(runs)
    assert {run.state for run in read.runs} == {"finished"}
    assert len(read.runs) == len(list(runs.glob(f"*/{RECORD}")))
    assert read.measurements.warnings[0].startswith(f"…/{PLAN}:")
    assert command("compare", runs, "--against", "source-only").status == 0


@pytest.mark.slow
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["pipe", "folder"])
@pytest.mark.parametrize("name", [RECORD, CHECKSUMS])
def test_what_is_no_file_is_not_waited_for(command, runs, model, make, name):
    (model / name).unlink()
    make(model / name)
    for verb in READ_ALONE.values():
        message = command(*verb(runs, model)).message
        assert str(model if name == CHECKSUMS else model.parent) in message
        assert model.name in message
    assert {run.id: run.state for run in isogloss.read(runs).runs}[model.name] == "damaged"


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["pipe", "folder"])
@pytest.mark.parametrize("name", [PLAN, f"run/{MADE}", f"run/{FAILED}", "tables/.written"])
def test_nor_is_it_beside_the_records(runs, model, make, name):
    path = runs / name.replace("run/", f"{model.name}/")
    path.unlink(missing_ok=True)
    path.parent.mkdir(exist_ok=True)
    make(path)
    assert len(isogloss.read(runs).frame("scores")) > 0


@pytest.mark.nightly
@pytest.mark.slow
def test_a_damaged_state_of_the_last_report_is_that_of_none(runs):
    (runs / "tables").mkdir(exist_ok=True)
    path = runs / "tables" / ".written"
    path.write_text('{"files": ["\\u0000"]}')
    assert api.report(runs).runs.startswith("12 of 12")
    whole_data = json.loads(path.read_text())
    assert finished_report(runs) and last_verdicts(runs)
    for text in ("", '{"files": 3}', '{"files": ["\\u0000"]}', "x" * 300, "[" * 3000):
        path.write_text(text)
        assert (finished_report(runs), last_verdicts(runs)) == (None, []), text
    path.write_text(json.dumps(whole_data))
    assert finished_report(runs)


@pytest.mark.nightly
@pytest.mark.slow
def test_predictions_of_another_shape_allow_no_test_over_examples(command, runs):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = min(runs.glob(f"*/{PREDICTIONS}"))
    table = parquet.read_table(path)
    for change in (
        lambda: table.set_column(0, "language", pa.array([3] * len(table))),
        lambda: table.set_column(1, "id", pa.array([["a"]] * len(table))),
        lambda: table.set_column(3, table.column_names[3], pa.array(["x"] * len(table))),
        lambda: table.set_column(3, table.column_names[3], pa.array([None] * len(table), pa.float64())),
        lambda: table.drop_columns(["language"]),
    ):
        parquet.write_table(change(), path)
        assert command("compare", runs, "--against", "source-only").status == 0


def mutations(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to each value within a value of JSON."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in inside:
        yield (*way, name)
        yield from mutations(part, (*way, name))


WRONG = (
    None,
    True,
    -1,
    1e308,
    2**63,
    10**30,
    "",
    "x" * 9999,
    "\u202e\x1b[31m",
    [],
    [[]],
    {},
    {"kind": []},
    ["a", None],
)


def mutate(body: Content, draw: random.Random) -> None:
    """Remove, replace or insert a value, or swap two values."""
    way = draw.choice(list(mutations(body)))
    place = body
    for name in way[:-1]:
        place = place[name]
    position = draw.randrange(4)
    last_value = way[-1]
    if position == 0:
        del place[last_value]
    elif position == 1 and isinstance(place, dict):
        place[draw.choice(["kind", "seed", "fields", "source", "languages"])] = draw.choice(WRONG)
    elif position == 2 and isinstance(place, dict):
        other_choice = draw.choice(list(place))
        place[last_value], place[other_choice] = place[other_choice], place[last_value]
    else:
        place[last_value] = draw.choice(WRONG)


@pytest.fixture(scope="module")
def stored_records() -> dict[str, Content]:
    """The records of a study that was really run."""
    with ZipFile(STUDY) as file:
        return {
            name.partition("/")[0]: json.loads(file.read(name))
            for name in sorted(file.namelist())
            if name.endswith(RECORD)
        }


def write_mutated(path: Path, stored_value: dict[str, Content], draw: random.Random) -> None:
    """Write some records, one of them mutated, most often with the id that fits."""
    shutil.rmtree(path, ignore_errors=True)
    for index, key in enumerate(draw.sample(list(stored_value), 8)):
        body = json.loads(json.dumps(stored_value[key]))
        if index == 0:
            mutate(body, draw)
            run = body.get("run")
            if isinstance(run, dict) and draw.random() < 0.9:
                body["id"] = identity(run)
        folder = path / (body["id"] if isinstance(body.get("id"), str) and len(body["id"]) == 12 else key)
        folder.mkdir(parents=True)
        (folder / RECORD).write_text(json.dumps(body))


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_mutated_record_is_read_or_set_aside(tmp_path, stored_records, seed):
    draw = random.Random(seed)
    states = []
    for _ in range(25):
        write_mutated(tmp_path / "out", stored_records, draw)
        study = isogloss.read(tmp_path / "out")
        assert all(study.frame(name) is not None for name in study.measurements.frames)
        states += [run.state for run in study.runs]
    assert states.count("damaged") > 4
    assert states.count("finished") >= 175


@pytest.mark.nightly
@pytest.mark.slow
def test_a_report_on_mutated_records_is_written_or_one_of_our_errors(tmp_path, stored_records):
    draw = random.Random(7)
    text = 0
    for _ in range(4):
        write_mutated(tmp_path / "out", stored_records, draw)
        try:
            text += api.report(tmp_path / "out").html.is_file()
        except IsoglossError as error:
            assert str(tmp_path / "out") in str(error)
    assert text
