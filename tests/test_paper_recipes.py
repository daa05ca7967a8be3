"""Every recipe of a paper's table plans at its three scales without data. Its numbers are of its systems."""

import json
import tomllib
from pathlib import Path

import pytest

import isogloss
from each import each
from isogloss.core.identity import identity
from isogloss.diagnostics.scores import Scores
from isogloss.planning.plan import plan_recipe
from isogloss.recipes.recipe_text import PAPERS, packaged_recipes, read_published, recipe_text
from isogloss.runs.measure import Measure
from planned_ids import FILE, digests, plans

FOLDER = Path(isogloss.__file__).parent / "papers"
ITEMS = [name for name in packaged_recipes() if name.startswith(PAPERS)]
SCALES = ("built-in", "small", "published")
MEANS = {"", "mean", "mean of targets", "gap"}


def numbers_beside(name: str) -> list[dict]:
    own_data = tomllib.loads(packaged_recipes()[name].read_text(encoding="utf-8"))
    return (
        read_published(packaged_recipes()[name].with_name(own_data["published"]))
        if own_data.get("published")
        else []
    )


@pytest.fixture
def offline(monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)


@pytest.mark.parametrize("name", ITEMS)
def test_a_recipe_of_a_paper_has_three_scales_and_stands_beside_its_numbers(name):
    text = packaged_recipes()[name].read_text(encoding="utf-8")
    assert text.startswith("# ")
    body = tomllib.loads(text)
    whole_data = tomllib.loads(recipe_text(name)[0])
    assert set(whole_data["scale"]) - {"published-en-ar"} == set(SCALES)
    assert body.get("extends", PAPERS).startswith(PAPERS)
    assert body.get("published") in (None, "", f"{name.rpartition('/')[2]}.csv")


def test_all_published_numbers_are_those_of_a_recipe():
    read = {packaged_recipes()[name].with_suffix(".csv") for name in ITEMS if numbers_beside(name)}
    assert read == set(FOLDER.glob("*/*.csv"))


@pytest.mark.parametrize("task", ["xnli", "pawsx", "pos", "ner", "xquad", "mlqa", "tydiqa"])
def test_a_gap_is_of_a_system_and_an_encoder_that_the_main_results_have(task):
    gaps, main = (numbers_beside(f"papers/x-mixup/table-{n}-{task}") for n in (8, 3))
    systems = {(row["system"], row["inputs"], row["encoder"]) for row in main}
    assert gaps and {(row["system"], row["inputs"], row["encoder"]) for row in gaps} <= systems


def assert_published_numbers_are_of_systems(name, result):
    """Assert that a recipe of a paper plans at every scale, and of what the published numbers are."""
    assert all(result[scale].runs for scale in SCALES)
    rows = numbers_beside(name)
    published_value = result["published"]
    measures = [run for run in published_value.runs if isinstance(run, Measure)]
    read = {language for run in measures for language in run.languages}
    inputs = {"", *(run.inputs for run in measures)}
    for row in rows:
        assert row["scale"] == "published"
        assert row["system"] in published_value.methods
        assert row["inputs"] in inputs
        assert set(row["encoder"].split("|")) <= {"", *published_value.encoders.values()}
        assert row["language"] in MEANS | read


MIXUP_SYSTEMS = {
    *("source-only", "translate-train", "x-mixup", "without mixup", "without schedule", "without MSE"),
    *("without KL", "constant ratio", "layer 1", "layer 4"),
}


@pytest.mark.slow
@pytest.mark.parametrize("scale", SCALES)
def test_the_claims_of_x_mixup_have_their_systems_at_every_scale(scale, offline):
    plan = plan_recipe("papers/x-mixup/claims-nli", scale=scale, assume=True)
    assert set(plan.methods) >= MIXUP_SYSTEMS
    measures = [run for run in plan.runs if isinstance(run, Measure) and isinstance(run.diagnostic, Scores)]
    scored_inputs = {(run.inputs or "", identity(model)) for run in measures for model in run.subjects}
    mixed_difference = MIXUP_SYSTEMS - {"source-only", "translate-train"}
    assert {("", key) for label in MIXUP_SYSTEMS for key in plan.methods[label]} <= scored_inputs
    assert {("paired", key) for label in mixed_difference for key in plan.methods[label]} <= scored_inputs


@pytest.mark.slow
@pytest.mark.every_case
@pytest.mark.parametrize("name", packaged_recipes())
def test_a_packaged_recipe_plans_the_runs_that_it_always_has(name, offline):
    fields = {"": plan_recipe(name, assume=True)}
    assert digests(fields)[""] == json.loads(FILE.read_text(encoding="utf-8"))[name][""]


@pytest.mark.slow
@pytest.mark.sample(12)
@pytest.mark.parametrize("name", packaged_recipes())
def test_a_recipe_plans_the_same_runs_at_every_scale_and_published_numbers_are_of_its_systems(name, offline):
    result = plans(name)
    assert digests(result) == json.loads(FILE.read_text(encoding="utf-8"))[name]
    if name in ITEMS:
        assert_published_numbers_are_of_systems(name, result)


def test_what_of_a_paper_has_no_recipe_has_a_reason():
    data = tomllib.loads((FOLDER / "papers.toml").read_text(encoding="utf-8"))
    assert set(data) >= {path.name for path in FOLDER.iterdir() if path.is_dir()}
    for paper, options in each(data.items()):
        for item, reason in options.get("without-recipe", {}).items():
            assert f"{PAPERS}{paper}/{item}" not in ITEMS
            assert reason.endswith(".")
