"""Trackers show what records hold, change nothing, and never end a run."""

import inspect
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from accelerate.tracking import LOGGER_TYPE_TO_CLASS

import isogloss
from forked import PROGRAM, Forked
from isogloss.core.errors import ConfigError
from isogloss.core.progress import Progress
from isogloss.core.records import read_record
from isogloss.features.tracking import trackers
from isogloss.features.tracking.trackers import EXTRAS
from isogloss.planning.plan import plan_recipe
from isogloss.runs.trackers import TRACKERS, TrackedRun, check_trackers, track_run
from tiny import TINY, tiny

CLASSES = dict(LOGGER_TYPE_TO_CLASS)

RECIPE = (
    TINY.partition('[[grid.method]]\nname = "bilingual"')[0]
    .replace('targets = ["qab", "qad"]', 'targets = ["qab"]')
    .replace("epochs = 1", "epochs = 2")
    + '[[measure]]\nname = "scores"\nexamples = 8\n'
)
"""Two models, and the scores of each."""


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """Read a run's event files as TensorBoard does."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder)).Reload()
    return {
        name: [(scalar.step, pytest.approx(scalar.value)) for scalar in events.Scalars(name)]
        for name in events.Tags()["scalars"]
    }


def values(rows, name, step="step"):
    return [(row[step], row[name]) for row in rows if name in row]


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> Path:
    """The recipe, run in two processes with two trackers."""
    pytest.importorskip("tensorboard")
    pytest.importorskip("mlflow")
    pytest.importorskip("alembic")
    folder = tmp_path_factory.mktemp("a 'study'")
    track = ("--track", "tensorboard", "--track", "mlflow")
    command = (*PROGRAM, "run", tiny(folder, RECIPE), "--out", folder, "--jobs", "2")
    running = Forked(
        [*(str(value) for value in command), *track, "--quiet", "--no-report"], stderr=subprocess.PIPE
    )
    assert (*running.communicate(), running.returncode) == (None, "", 0)
    return folder


@pytest.mark.nightly
@pytest.mark.slow
def test_both_trackers_show_what_the_records_hold(study):
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{study / 'mlflow.db'}")
    (experiment,) = [field for field in client.search_experiments() if field.name != "Default"]
    assert experiment.name == study.name.replace(" '", "-").replace("'", "-")
    logged_runs = {run.data.params["run"]: run for run in client.search_runs([experiment.experiment_id])}
    plan = plan_recipe(str(tiny(study, RECIPE)), out=study)
    assert logged_runs.keys() == {path.parent.name for path in study.glob("*/record.json")}
    assert logged_runs.keys() == {plan.store.folder(run).name for run in plan.runs}
    for key, logged_run in logged_runs.items():
        record = read_record(study / key)
        (folder,) = (study / "tensorboard").glob(f"*-{key}")
        steps = scalars(folder)
        dev = "dev/span_f1/qaa"
        assert logged_run.info.run_name == logged_run.data.params["title"] == record.title
        assert logged_run.info.status == "FINISHED"
        last_points = {name: points[-1][1] for name, points in steps.items()}
        assert {
            name: metric for name, metric in logged_run.data.metrics.items() if name in last_points
        } == last_points
        if record.kind == "measure":
            assert steps == {
                f"dev/{row['metric']}/{row['language']}": [(0, row["score"])] for row in record.rows
            }
            continue
        assert steps["loss"] == values(record.rows, "loss")
        assert steps["learning_rate"] == values(record.rows, "rate")
        assert steps[dev] == values(record.rows, "score")
        assert steps[f"chosen/{dev}"] == [(4, row["score"]) for row in record.rows if row.get("chosen")]
        history = client.get_metric_history(logged_run.info.run_id, "loss")
        assert [(point.step, point.value) for point in history] == values(record.rows, "loss")
        params = logged_run.data.params
        settings = (params["method"], params["optimization.learning_rate"], params["encoder"])
        assert settings == ("source-only", "0.0005", "shipped")
        assert params["seed"] == str(record.run["seed"])


@pytest.mark.nightly
@pytest.mark.slow
def test_a_further_training_of_a_run_follows_the_first_one(tmp_path):
    pytest.importorskip("tensorboard")
    run = TrackedRun(id="abc", title="gates: en/sw", folder=tmp_path, settings={"a": 1, "b": "x"})
    heard = []
    with track_run(("tensorboard",), run, heard.append) as tracking:
        for name in ("gates of en", "gates of sw"):
            tracking.on_progress(Progress("reading", 5, 5))
            for step in (20, 30):
                row = {"step": step, "loss": float(step), "rate": 0.1}
                tracking.on_progress(Progress(name, step, 30, rows=(row,)))
    steps = scalars(tmp_path / "tensorboard" / "gates-en-sw-abc")
    assert steps["loss"] == [(20, 20), (30, 30), (50, 20), (60, 30)]
    assert len(heard) == 6


@pytest.mark.nightly
@pytest.mark.slow
def test_a_tracker_that_cannot_write_is_one_warning_and_training_goes_on(tmp_path):
    pytest.importorskip("tensorboard")
    (tmp_path / "tensorboard").write_text("no folder")
    run = TrackedRun(id="abc", title="t", folder=tmp_path, settings={})
    heard = []
    with (
        pytest.warns(UserWarning, match=r"tensorboard.*\(\w+Error:") as warns,
        track_run(("tensorboard",), run, heard.append) as tracking,
    ):
        for step in (20, 30):
            tracking.on_progress(Progress("training", step, 30, rows=({"step": step, "loss": 1.0},)))
    assert (len(warns), len(heard)) == (1, 2)


def test_what_is_no_tracker_or_not_installed_is_said_before_anything_is_made(tmp_path, monkeypatch):
    recipe = tiny(tmp_path, RECIPE)
    with pytest.raises(ConfigError, match=r"--track: .*'tensorbord'.*'tensorboard'"):
        isogloss.run(recipe, out=tmp_path / "runs", track="tensorbord")
    monkeypatch.setattr(trackers, "find_spec", lambda name: None if name == "wandb" else 1)
    check_trackers(["tensorboard", "mlflow"])
    with pytest.raises(ConfigError, match=r'--track wandb: .*"isogloss\[wandb\]"'):
        isogloss.run(recipe, out=tmp_path / "runs", track=["mlflow", "wandb"])
    assert not (tmp_path / "runs").exists()


RUN = {
    "id": "abc",
    "title": "fine-tune: en, seed 0",
    "settings": {"seed": 0},
    "facts": {"kind": "fine-tune", "method": "source-only", "source": "en", "seed": "0"},
}
TAGS = ["kind:fine-tune", "method:source-only", "source:en", "seed:0"]


class Recorded(list):
    """A tracker that records its calls."""

    def __init__(self, **arguments):
        super().__init__([("made", arguments)])

    def __getattr__(self, name):
        return lambda *values, **fields: self.append((name, *values, *fields.values()))


@pytest.mark.slow
@pytest.mark.parametrize("name", TRACKERS)
def test_each_tracker_of_accelerate_is_made_in_its_project_group_and_tags(name, tmp_path, monkeypatch):
    pytest.importorskip("mlflow" if name == "mlflow" else "accelerate")
    monkeypatch.setitem(sys.modules, "comet_ml", SimpleNamespace(ExperimentConfig=dict))
    result = []
    monkeypatch.setitem(
        LOGGER_TYPE_TO_CLASS, name, lambda **more: result.append(Recorded(**more)) or result[0]
    )
    run = TrackedRun(folder=tmp_path / "pos", **RUN)
    run.folder.mkdir()
    with track_run((name,), run, lambda _: None) as tracking:
        tracking.on_progress(Progress("training", 1, 3, rows=({"step": 1, "loss": 0.5, "rate": 0.1},)))
        tracking.finish([{"chosen": True, "metric": "f1", "split": "dev", "score": 0.25}])
    (_, arguments), *calls = result[0]
    assert calls == [
        ("start",),
        ("store_init_configuration", {"run": "abc", "title": run.title, "seed": 0}),
        ("log", {"loss": 0.5, "learning_rate": 0.1}, 1),
        ("log", {"chosen/dev/f1": 0.25}, 1),
        ("finish",),
    ]
    signature = inspect.signature(CLASSES[name])
    assert signature.bind(**arguments)
    text = str(arguments)
    if name not in ("tensorboard", "dvclive"):
        assert "'pos" in text
        assert "source-only" in text
    if name in ("wandb", "swanlab", "comet_ml", "clearml"):
        assert set(TAGS) <= set((arguments.get("experiment_config") or arguments)["tags"])
    if name == "mlflow":
        assert arguments["tags"] == {"group": "source-only", **run.facts}


def test_all_of_accelerates_trackers_are_had():
    assert len(TRACKERS) == 9
    assert TRACKERS.keys() <= CLASSES.keys()


@pytest.mark.nightly
@pytest.mark.slow
def test_runs_of_a_study_are_told_apart_by_method_language_and_seed(study):
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{study / 'mlflow.db'}")
    (experiment,) = [field for field in client.search_experiments() if field.name != "Default"]
    assert not {"group", "seed"} & experiment.tags.keys()
    chosen_text = "tags.method = 'source-only' and tags.source = 'qaa' and tags.seed = '1'"
    runs = client.search_runs([experiment.experiment_id], chosen_text)
    assert sorted(run.data.tags["kind"] for run in runs) == ["fine-tune", "measure"]
    assert {run.data.tags["group"] for run in runs} == {"source-only"}


def test_trackers_with_an_extra_are_named_by_it():
    import tomllib

    project = Path(__file__).parents[3] / "pyproject.toml"
    extras = tomllib.loads(project.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert set(EXTRAS) == TRACKERS.keys() & extras.keys()
