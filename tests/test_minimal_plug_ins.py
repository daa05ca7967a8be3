"""Each declared protocol is enough: the least plug-in of each kind runs, is reported on, and resumes."""

import json

import pytest

import isogloss
from isogloss.core.errors import ConfigError
from isogloss.data.files import DiskFolder
from isogloss.data.sources import Sources
from isogloss.engine.engine import make_planned
from isogloss.engine.engines import Execution
from isogloss.features.explorer.explorer import Explorer
from isogloss.planning.plan import plan_recipe
from isogloss.reports.measurements import read_measurements
from isogloss.reports.report import write_report
from isogloss.runs.fine_tune import FineTune
from isogloss.using import EvaluateOptions, PredictOptions, evaluate, predict_file
from says import says
from tiny import select_kind

POINTS = """
[isogloss.methods]
least-method = minimal_plug_ins:LeastMethod
least-loss = minimal_plug_ins:LeastLoss
least-peft = minimal_plug_ins:LeastPeft
least-pretraining = minimal_plug_ins:LeastPretraining
least-adjustment = minimal_plug_ins:LeastAdjustment
bitext-method = minimal_plug_ins:BitextMethod
[isogloss.diagnostics]
least-diagnostic = minimal_plug_ins:LeastDiagnostic
[isogloss.tasks]
least-task = minimal_plug_ins:TASK
[isogloss.corpora]
least-corpus = minimal_plug_ins:CORPUS
[isogloss.claims]
least-claim = minimal_plug_ins:CLAIM
"""

STUDY = {
    "title": "Least",
    "encoder": "shipped",
    "grid": {
        "corpus": "ud",
        "task": "upos",
        "source": "qaa",
        "targets": ["qab"],
        "seeds": [0],
        "examples": 8,
        "dev_examples": 4,
        "optimization": {"epochs": 1},
        "method": [{"name": "source-only"}],
    },
    "measure": [{"name": "scores", "examples": 4}],
}
ADJUST = {"name": "least-adjustment", "bitext": "bitext", "pairs": ["qaa-qab"], "examples": 8}
PRETRAIN = {
    "text": ["rawtext"],
    "languages": ["qaa", "qab"],
    "lines": {"qaa": 50, "qab": 50},
    "architecture": {
        "layers": 1,
        "dim": 8,
        "heads": 1,
        "feed_forward": 8,
        "vocabulary": 200,
        "positions": 64,
    },
    "method": {"name": "least-pretraining"},
}
OWN_TASK = {"corpus": "least-corpus", "task": "least-task", "source": "de", "targets": ["ru"]}


def with_method(**fields):
    return {**STUDY, "grid": {**STUDY["grid"], "method": [{"name": "source-only"}, fields]}}


STUDIES = {
    "method": with_method(name="least-method"),
    "method that reads bitext": with_method(name="bitext-method", bitext="bitext"),
    "auxiliary loss": with_method(name="source-only", auxiliary={"name": "least-loss"}),
    "peft": with_method(name="source-only", peft={"kind": "least-peft"}),
    "diagnostic": {**STUDY, "measure": [{"name": "least-diagnostic", "examples": 4}]},
    "adjustment": {**STUDY, "adjust": [ADJUST]},
    "pretraining": {**STUDY, "encoder": {"pretrain": PRETRAIN}},
    "task and corpus": {**STUDY, "grid": {**STUDY["grid"], **OWN_TASK}, "measure": [{"name": "scores"}]},
}


@pytest.fixture(autouse=True)
def installed_package(tmp_path, monkeypatch):
    """A package that adds the plug-ins, and the files of its corpus."""
    path = tmp_path / "site" / "least_extras-0.1.dist-info"
    path.mkdir(parents=True)
    (path / "METADATA").write_text("Metadata-Version: 2.1\nName: least-extras\nVersion: 0.1\n")
    (path / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(tmp_path / "site")
    folder = tmp_path / "data" / "least"
    folder.mkdir(parents=True)
    line = {"source": ["ein", "wort"], "said": ["one", "word"], "grades": ["good", "bad"]}
    for split in ("train", "dev", "test"):
        for language in ("de", "ru"):
            (folder / f"{split}-{language}.jsonl").write_text(f"{json.dumps(line)}\n" * 8)


def plan_study(tmp_path, study):
    return plan_recipe(study, out=tmp_path / "runs", data=tmp_path / "data")


@pytest.mark.slow
@pytest.mark.parametrize("kind", STUDIES)
def test_the_least_plug_in_runs_and_is_planned_again_reported_and_resumed(tmp_path, kind):
    first_plan = plan_study(tmp_path, STUDIES[kind])
    first_plan.write("")
    outcome = make_planned(first_plan, Execution(jobs=1))
    assert outcome.failed == {}
    again = plan_study(tmp_path, STUDIES[kind])
    assert [run.title for run in again.runs] == [run.title for run in first_plan.runs]
    assert again.titles == first_plan.titles
    report = write_report(tmp_path / "runs")
    if kind != "diagnostic":  # Without scores no claim is judged.
        assert "L1" in {claim.claim.id for claim in report.claims}
    assert not [text for text in report.warnings if "failed" in text]
    assert make_planned(again, Execution(jobs=1)).made == []
    for run in read_measurements(tmp_path / "runs").finished("fine-tune"):
        assert isogloss.load_model(run.folder).provenance.task


@pytest.mark.slow
@pytest.mark.parametrize(
    ("entry", "facts"),
    [
        (
            {"name": "bitext-method", "bitext": "bitext", "without_pairs": True},
            ("bitext-method", "bitext 'bitext'", "without pairs"),
        ),
        ({"name": "bitext-method"}, ("bitext-method", "('qaa-qab',)", "without bitext")),
        (
            {"name": "source-only", "auxiliary": {"name": "least-loss", "chooses": True}},
            ("auxiliary: least-loss", "declare dev", "LeastLoss.reads"),
        ),
        (
            {
                "name": "bitext-method",
                "bitext": "bitext",
                "auxiliary": {"name": "alignment-loss", "bitext": "bitext:other"},
            },
            ("bitext-method reads words of 'bitext'", "alignment-loss reads words of 'bitext:other'"),
        ),
    ],
)
def test_declarations_that_no_run_can_fulfil_are_refused_in_the_plan(tmp_path, entry, facts):
    with says(ConfigError, "grid.method[1]: ", *facts):
        plan_study(tmp_path, with_method(**entry))


@pytest.mark.nightly
@pytest.mark.slow
def test_a_task_of_own_examples_is_scored_and_exported_and_predicting_is_refused_by_name(tmp_path):
    study = STUDIES["task and corpus"]
    paths = {"name": "interpolation", "between": ["source-only", "least"], "alphas": [0.0, 1.0]}
    methods = [{"name": "source-only"}, {"name": "least-method", "label": "least"}]
    study = {**study, "grid": {**study["grid"], "method": methods}, "measure": [paths]}
    first_plan = plan_study(tmp_path, study)
    first_plan.write("")
    assert make_planned(first_plan, Execution(jobs=1)).failed == {}
    folder = first_plan.store.folder(select_kind(FineTune, first_plan.runs)[0])
    model = isogloss.load_model(folder)
    (row,) = model.evaluate("least-corpus", "ru", data=tmp_path / "data")
    assert row["examples"] == 8
    assert (model.export(tmp_path / "exported") / "config.json").exists()
    facts = ("least-task", "TaggedSentence", "isogloss evaluate")
    with says(ConfigError, *facts):
        model.predict(["one word"])
    (tmp_path / "in.txt").write_text("one word\n")
    (file,) = DiskFolder(tmp_path).find(["in.txt"])
    with says(ConfigError, *facts):
        list(predict_file(model, file, PredictOptions()))
    explorer = Explorer(read_measurements(tmp_path / "runs"), str(tmp_path / "runs"), str(tmp_path / "data"))
    (route, *_) = explorer.routes
    assert explorer.sentences(route, "ru")["sentences"][0]["text"] == ""
    with says(ConfigError, *facts):
        explorer.answer(route, [0.0], "one word")
    options = EvaluateOptions(corpus="least-corpus", languages=("ru",), split="test")
    with says(ConfigError, "--predictions", "least-task", "Rated"):
        evaluate(model, options, Sources(str(tmp_path / "data")), predictions=tmp_path / "written")
