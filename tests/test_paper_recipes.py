"""Every recipe of a paper's table plans at its three scales without data; its numbers are of its systems."""

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
    own = tomllib.loads(packaged_recipes()[name].read_text(encoding="utf-8"))
    return (
        read_published(packaged_recipes()[name].with_name(own["published"])) if own.get("published") else []
    )


@pytest.fixture
def offline(monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)


@pytest.mark.parametrize("name", ITEMS)
def test_a_recipe_of_a_paper_has_three_scales_and_stands_beside_its_numbers(name):
    text = packaged_recipes()[name].read_text(encoding="utf-8")
    assert text.startswith("# ")
    body, whole = tomllib.loads(text), tomllib.loads(recipe_text(name)[0])
    assert {*whole["scale"]} - {"published-en-ar"} == {*SCALES}
    assert body.get("extends", PAPERS).startswith(PAPERS)
    assert body.get("published") in (None, "", f"{name.rpartition('/')[2]}.csv")


def test_all_published_numbers_are_those_of_a_recipe():
    read = {packaged_recipes()[name].with_suffix(".csv") for name in ITEMS if numbers_beside(name)}
    assert read == {*FOLDER.glob("*/*.csv")}


@pytest.mark.parametrize("task", ["xnli", "pawsx", "pos", "ner", "xquad", "mlqa", "tydiqa"])
def test_a_gap_is_of_a_system_and_an_encoder_that_the_main_results_have(task):
    gaps, main = (numbers_beside(f"papers/x-mixup/table-{n}-{task}") for n in (8, 3))
    systems = {(row["system"], row["inputs"], row["encoder"]) for row in main}
    assert gaps and {(row["system"], row["inputs"], row["encoder"]) for row in gaps} <= systems


def assert_published_numbers_are_of_systems(name, found):
    """Assert that a recipe of a paper plans at every scale, and of what the published numbers are."""
    assert all(found[scale].runs for scale in SCALES)
    rows, published = numbers_beside(name), found["published"]
    measures = [run for run in published.runs if isinstance(run, Measure)]
    read = {code for run in measures for code in run.languages}
    inputs = {"", *(run.inputs for run in measures)}
    for row in rows:
        assert row["scale"] == "published"
        assert row["system"] in published.methods
        assert row["inputs"] in inputs
        assert {*row["encoder"].split("|")} <= {"", *published.encoders.values()}
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
    scored = {(run.inputs or "", identity(model)) for run in measures for model in run.subjects}
    mixed = MIXUP_SYSTEMS - {"source-only", "translate-train"}
    assert {("", key) for label in MIXUP_SYSTEMS for key in plan.methods[label]} <= scored
    assert {("paired", key) for label in mixed for key in plan.methods[label]} <= scored


@pytest.mark.slow
@pytest.mark.every_case
@pytest.mark.parametrize("name", packaged_recipes())
def test_a_packaged_recipe_plans_the_runs_that_it_always_has(name, offline):
    found = {"": plan_recipe(name, assume=True)}
    assert digests(found)[""] == json.loads(FILE.read_text(encoding="utf-8"))[name][""]


@pytest.mark.slow
@pytest.mark.sample(12)
@pytest.mark.parametrize("name", packaged_recipes())
def test_a_recipe_plans_the_same_runs_at_every_scale_and_published_numbers_are_of_its_systems(name, offline):
    found = plans(name)
    assert digests(found) == json.loads(FILE.read_text(encoding="utf-8"))[name]
    if name in ITEMS:
        assert_published_numbers_are_of_systems(name, found)


def test_what_of_a_paper_has_no_recipe_has_a_reason():
    told = tomllib.loads((FOLDER / "papers.toml").read_text(encoding="utf-8"))
    assert set(told) >= {path.name for path in FOLDER.iterdir() if path.is_dir()}
    for paper, about in each(told.items()):
        for item, reason in about.get("without-recipe", {}).items():
            assert f"{PAPERS}{paper}/{item}" not in ITEMS
            assert reason.endswith(".")
