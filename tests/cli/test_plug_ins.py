"""Plug-ins: the package of docs/plug_ins.md, built and installed outside the tree, is found, run, listed."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from pyarrow import parquet

from each import each
from isogloss.core.errors import ConfigError
from isogloss.core.identity import content, identity
from isogloss.core.plug_ins import package_of, plugged_names
from isogloss.engine.engine import make_planned
from isogloss.engine.engines import Execution
from isogloss.planning.plan import plan_recipe
from isogloss.recipes.request import request_digest
from isogloss.reports.checks import Check
from isogloss.reports.measurements import read_measurements
from isogloss.reports.report import _check_claim, all_claims
from isogloss.reports.verdicts import judge
from isogloss.runs.fine_tune import FineTune
from tiny import TINY, select_kind

PAGE = (Path(__file__).parents[2] / "docs" / "plug_ins.md").read_text(encoding="utf-8")
(CODE,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)
PROJECT = PAGE[PAGE.index("[build-system]") :].partition("```")[0]

WORDS = "good\tpos\nfilm\tnone\n\nbad\tneg\nplot\tnone\nbad\tneg\n\n"

BROKEN = {
    "source-only": "transfer_extras:LabelSmoothing",
    "not-there": "transfer_nowhere:Mine",
    "misnamed": "transfer_extras:LabelSmoothing",
    "half": "transfer_broken:Half",
    "loud": "transfer_loud:Mine",
    "twice": "transfer_extras:LabelSmoothing",
}
"""Entry points of unusable methods in a second package."""

HALF = """
from dataclasses import dataclass
from typing import ClassVar

@dataclass(frozen=True)
class Half:
    name: ClassVar[str] = "half"
    uses: ClassVar[tuple[str, ...]] = ("source",)
"""


def install(project: Path, site_folder: Path, source: str, pyproject: str) -> None:
    project.mkdir()
    (project / "transfer_extras.py").write_text(source, encoding="utf-8")
    (project / "pyproject.toml").write_text(pyproject, encoding="utf-8")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    command += ["--disable-pip-version-check", "--no-index", "--no-compile", "--target", str(site_folder)]
    subprocess.run([*command, str(project)], check=True)


@pytest.fixture(scope="module")
def site_folder(tmp_path_factory):
    """The folder that the package was installed into, and a folder with only broken plug-ins."""
    pytest.importorskip("setuptools", "77")
    pytest.importorskip("pip")
    folder = tmp_path_factory.mktemp("plug-ins")
    install(folder / "project", folder / "installed", CODE, PROJECT)
    metadata_folder = folder / "installed" / "broken_extras-0.1.dist-info"
    metadata_folder.mkdir()
    (metadata_folder / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-extras\nVersion: 0.1\n")
    points = "\n".join(f"{name} = {value}" for name, value in BROKEN.items())
    (metadata_folder / "entry_points.txt").write_text(f"[isogloss.methods]\n{points}\n")
    other_folder = folder / "installed" / "other_extras-2.dist-info"
    other_folder.mkdir()
    (other_folder / "METADATA").write_text("Metadata-Version: 2.1\nName: other-extras\nVersion: 2\n")
    (other_folder / "entry_points.txt").write_text("[isogloss.methods]\ntwice = transfer_broken:Half\n")
    (folder / "installed" / "transfer_broken.py").write_text(HALF)
    (folder / "installed" / "transfer_loud.py").write_text('raise ZeroDivisionError("no such thing")')
    return folder / "installed"


@pytest.fixture
def installed_plug_ins(site_folder, monkeypatch):
    monkeypatch.syspath_prepend(site_folder)
    yield site_folder
    for name in [module for module in sys.modules if module.startswith("transfer_")]:
        del sys.modules[name]


def recipe(folder: Path, text: str) -> Path:
    path = folder / "own.toml"
    path.write_text(text, encoding="utf-8")
    return path


RECIPE = (
    (
        TINY.partition('[[grid.method]]\nname = "bilingual"')[0]
        + """
[[grid.method]]
name = "label-smoothing"
smoothing = 0.0

[[measure]]
name = "scores"
examples = 8
methods = ["label-smoothing"]

[[measure]]
name = "commonest-label"
examples = 8
methods = ["label-smoothing"]
"""
    )
    .replace("seeds = [0, 1]", "seeds = [0]")
    .replace("examples = 16", "examples = 8")
    .replace('"qab", "qad"', '"qab"')
)


def models(folder: Path, text: str = RECIPE) -> list[FineTune]:
    return select_kind(FineTune, plan_recipe(str(recipe(folder, text)), out=folder / "runs").runs)


@pytest.mark.slow
def test_a_package_outside_the_tree_runs_in_processes_and_one_that_fails_stops_its_run_alone(
    installed_plug_ins, tmp_path
):
    failing = CODE.replace(
        "            scores = setting", "            raise KeyError(7)\n            scores = setting"
    )
    (installed_plug_ins / "transfer_failing.py").write_text(failing.replace('"label-smoothing"', '"failing"'))
    text = RECIPE + '[[grid.method]]\nname = "transfer_failing:LabelSmoothing"\n'
    plan = plan_recipe(str(recipe(tmp_path, text)), out=tmp_path / "runs")
    plan.write("")
    outcome = make_planned(plan, Execution(jobs=2))
    (failure,) = outcome.failed.values()
    assert re.fullmatch(
        r"KeyError: 7 \(transfer_failing.py:\d+\), .*transfer_failing.*",
        failure,
    )
    m = read_measurements(tmp_path / "runs")
    models_by_method = {run.record.run["method"]["kind"]: run for run in m.finished("fine-tune")}
    smoothed_run, source_only_run = models_by_method["label-smoothing"], models_by_method["source-only"]
    assert smoothed_run.record.run["method"]["package"] == "transfer-extras 1.2"
    assert "package" not in source_only_run.record.run["method"]
    # Without smoothing it is source-only, to the bit.
    first_weights, second_weights = (
        (run.folder / "model" / "model.safetensors").read_bytes() for run in (smoothed_run, source_only_run)
    )
    assert first_weights == second_weights
    # The diagnostic's rows, counted again from what the score run kept.
    rows = m.frame("commonest-label")
    assert set(rows["method"]) == {"label-smoothing"} and set(rows["language"]) == {"qaa", "qab"}
    score_run = next(run for run in m.finished("scores") if run.record.needs == (smoothed_run.id,))
    prediction_rows = parquet.read_table(score_run.folder / "predictions.parquet").to_pylist()
    for row in each(rows.to_dict("records")):
        predicted_tags = [
            json.loads(answer_row["predicted"])
            for answer_row in prediction_rows
            if answer_row["language"] == row["language"]
        ]
        labels = [label for tags in predicted_tags for label in tags]
        assert row["share"] == max(map(labels.count, labels)) / len(labels)
        assert labels.count(row["label"]) == max(map(labels.count, labels))
    assert make_planned(plan, Execution(jobs=1)).made == []


def test_a_claim_is_judged_and_one_whose_rule_fails_is_not_tested(installed_plug_ins, monkeypatch):
    claims, errors = all_claims()
    own_claim = next(claim for claim in claims if claim.id == "S1")
    assert errors == []
    rules = (
        lambda _: {}["x"],
        lambda _: None,
        lambda _: ["no check"],
        lambda _: [Check(about="a number without a range", values=[1.0, 2.0])],
    )
    broken_claims = [_check_claim("own", replace(own_claim, test=rule), set()) for rule in rules]
    # Over three seeds, 0.10, 0.11 and 0.12 better: t = 0.11 / (0.01 / √3) = 19.05, p = 0.003 with 2 degrees.
    scores = pd.DataFrame(
        [(True, seed, "source-only", 0.5) for seed in range(3)]
        + [(True, seed, "label-smoothing", 0.6 + seed / 100) for seed in range(3)],
        columns=["main", "seed", "method", "score"],
    )
    made_up = SimpleNamespace(frame=lambda _: scores, has_rows=lambda _: True, models=pd.DataFrame())
    own_outcome, *broken_outcomes = judge([own_claim, *broken_claims], made_up)
    assert own_outcome.verdict == "supported"
    assert "p = 0.003 over seeds" in own_outcome.found
    assert [outcome.verdict for outcome in broken_outcomes] == ["not tested"] * len(rules)
    assert broken_outcomes[0].found == "its rule failed (KeyError: 'x'), not tested"
    for wrong in (replace(own_claim, title=""), 3):
        monkeypatch.setattr("isogloss.core.registry.find_plug_in", lambda *_, wrong=wrong: wrong)
        (error,) = all_claims()[1]
        assert "plug-in smoothing:" in error
        assert f"{wrong!r:.80}" in error


def test_task_and_corpus_of_a_package_are_planned_with_its_version(installed_plug_ins, tmp_path, monkeypatch):
    folder = tmp_path / "data" / "reviews"
    folder.mkdir(parents=True)
    for name in ("train-en", "dev-en", "test-de"):
        (folder / f"{name}.tsv").write_text(WORDS)
    text = RECIPE.partition("[[measure]]")[0].replace('"wikiann"', '"reviews"')
    text = text.replace('"qaa"', '"en"').replace('["qab"]', '["de"]')
    path = recipe(tmp_path, text)

    def plan_runs():
        return select_kind(
            FineTune, plan_recipe(str(path), out=tmp_path / "runs", data=tmp_path / "data").runs
        )

    model, _ = plan_runs()
    assert (model.task, model.package) == ("word-sentiment", "transfer-extras 1.2")
    assert model.solves.labels == ("neg", "none", "pos")
    monkeypatch.setattr("isogloss.planning.tasks.package_named", lambda *_: "transfer-extras 1.3")
    assert identity(plan_runs()[0]) != identity(model)
    monkeypatch.undo()
    monkeypatch.syspath_prepend(installed_plug_ins)
    monkeypatch.setattr("isogloss.data.sources.package_named", lambda *_: "transfer-extras 1.3")
    assert plan_runs()[0].data != model.data


def test_another_version_of_a_package_is_another_run(installed_plug_ins, tmp_path):
    smoothing_run, source_only_run = sorted(models(tmp_path), key=lambda run: run.method.name)
    original_ids = identity(smoothing_run), identity(source_only_run)
    metadata_file = installed_plug_ins / "transfer_extras-1.2.dist-info" / "METADATA"
    text = metadata_file.read_text()
    try:
        metadata_file.write_text(text.replace("Version: 1.2", "Version: 1.3"))
        package_of.cache_clear()
        assert content(smoothing_run.method)["package"] == "transfer-extras 1.3"
        # An id is computed once, and a copy has none yet.
        assert (
            identity(replace(smoothing_run)) != original_ids[0]
            and identity(replace(source_only_run)) == original_ids[1]
        )
    finally:
        metadata_file.write_text(text)
        package_of.cache_clear()
    assert content(smoothing_run.method)["package"] == "transfer-extras 1.2"
    assert (identity(replace(smoothing_run)), identity(replace(source_only_run))) == original_ids


def test_a_class_is_named_by_its_module_beside_the_recipe(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "transfer_beside.py").write_text(CODE.replace('"label-smoothing"', '"beside"'))
    text = RECIPE.partition("[[measure]]")[0].replace('"label-smoothing"', '"transfer_beside:LabelSmoothing"')
    own_run = next(run for run in models(tmp_path, text) if run.method.name == "beside")
    original_id = identity(own_run)
    digest = content(own_run.method)["package"]
    assert re.fullmatch("[0-9a-f]{12}", digest)
    with (tmp_path / "transfer_beside.py").open("a") as file:
        file.write("# changed")
    package_of.cache_clear()
    assert digest != content(own_run.method)["package"]
    assert identity(replace(own_run)) != original_id
    del sys.modules["transfer_beside"]


@pytest.mark.parametrize(
    ("name", "excerpt"),
    [
        ("label-smothing", "no method 'label-smothing'. Did you mean 'label-smoothing'?"),
        (
            "not-there",
            "plug-in transfer_nowhere:Mine",
        ),
        ("misnamed", "'label-smoothing'"),
        (
            "half",
            "plug-in half:",
        ),
        (
            "twice",
            "transfer_extras:LabelSmoothing",
        ),
        ("loud", "(ZeroDivisionError:"),
        ("transfer_extras:Labelsmoothing", "has no 'Labelsmoothing'. Did you mean 'LabelSmoothing'?"),
        ("transfer_extras:smoothing_helps", "dataclass"),
        ("isogloss.methods.plain:SourceOnly", "'source-only'"),
        ("transfer_extras:CommonestLabel", "needs_start, peft_kinds, plain"),
    ],
)
def test_what_cannot_be_used_is_named_with_its_error_where_it_is_asked_for(
    installed_plug_ins, tmp_path, name, excerpt
):
    with pytest.raises(ConfigError) as error:
        models(tmp_path, RECIPE.replace('"label-smoothing"\nsmoothing = 0.0', f'"{name}"'))
    assert excerpt in str(error.value)
    assert str(error.value).startswith("own.toml: grid.method[1]: ")


def test_a_name_of_the_house_stays_the_houses(installed_plug_ins, tmp_path):
    methods = {run.method.name: type(run.method).__module__ for run in models(tmp_path)}
    assert methods == {"source-only": "isogloss.methods.plain", "label-smoothing": "transfer_extras"}


def test_lists_show_plug_ins_with_docstring_fields_and_package_and_the_broken_with_their_error(
    installed_plug_ins, command
):
    methods = {line["method"]: line["what"] for line in command("list", "methods", "--json").lines}
    assert methods["label-smoothing"] == (
        "Train on the source languages with smoothed labels (Szegedy et al. 2016, Section 7). "
        "Fields: smoothing = 0.1. [transfer-extras 1.2]"
    )
    lines = [line for line in command("list", "methods", "--json").lines if "cannot be used" in line["what"]]
    assert {line["method"] for line in lines} == set(BROKEN)
    assert any("'source-only'" in line["what"] and "isogloss's" in line["what"] for line in lines)
    rows_by_list = {
        list_name: [list(line.values()) for line in command("list", list_name, "--json").lines]
        for list_name in ("diagnostics", "tasks", "corpora", "claims")
    }
    assert ["word-sentiment", "neg none pos; accuracy [transfer-extras 1.2]"] in rows_by_list["tasks"]
    assert ["reviews", "word-sentiment", "CC0", " [transfer-extras 1.2]"] in rows_by_list["corpora"]
    assert [
        "S1",
        "Section 7",
        "Label smoothing helps.",
        "The mean score of all languages rises, over seeds.",
    ] in (rows_by_list["claims"])
    assert next(row for row in rows_by_list["diagnostics"] if row[0] == "commonest-label")[1] == "model"


def test_nothing_of_a_plug_in_is_imported_before_its_name_is_asked_for(installed_plug_ins, tmp_path):
    assert {*BROKEN, "label-smoothing"} == set(plugged_names("methods"))
    models(
        tmp_path,
        RECIPE.replace("label-smoothing", "bilingual")
        .replace("smoothing = 0.0\n", "")
        .partition("[[measure]]")[0],
    )
    assert not [name for name in sys.modules if name.startswith("transfer_")]


def test_a_finished_folder_is_asked_anew_when_plug_ins_change_and_where_a_module_is_named(
    installed_plug_ins, monkeypatch
):
    original_digest = request_digest(RECIPE)
    monkeypatch.setattr("isogloss.core.plug_ins._entries", lambda *_: ())
    assert original_digest and request_digest(RECIPE) not in ("", original_digest)
    named_recipe = RECIPE.replace('"label-smoothing"', '"transfer_extras:LabelSmoothing"')
    assert (
        request_digest(named_recipe)
        == request_digest(RECIPE, changes={"grid.method.0.name": "mine:Mine"})
        == ""
    )
