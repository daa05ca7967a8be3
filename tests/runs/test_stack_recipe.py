"""MAD-X as a recipe: language adapters trained on a fixed existing encoder, a task adapter on them."""

import pytest
import torch

from each import each
from isogloss.core.errors import ConfigError
from isogloss.core.identity import content
from isogloss.data.sources import Sources
from isogloss.encoders.added.added_weights import language_parameters
from isogloss.encoders.added.language_modules import modules_of
from isogloss.encoders.folders import shipped_folder
from isogloss.encoders.loading import load_masked_lm
from isogloss.features.peft.methods import TaskAdapter
from isogloss.features.pretraining.run import Pretrain
from isogloss.runs.fine_tune import FineTune
from isogloss.runs.pretrained import identify_encoder, model_folders
from isogloss.using import load_model
from says import check_wording
from tiny import select_kind
from trained import weights

RECIPE = """
title = "MAD-X"

[pretrain]
text = ["rawtext"]
modules = { kind = "adapter", reduction = 2, after = "feed-forward", invertible = true }
trained = "modules"
method = { steps = 4, batch_subwords = 256, block = 32, precision = "float32" }

[[encoder]]
label = "plain"
pretrained = "shipped"

[[encoder]]
label = "two"
pretrain = { start = "plain", languages = ["qaa", "qad"] }

[[encoder]]
label = "three"
pretrain = { start = "two", languages = ["qag"] }

[grid]
corpus = "ud"
task = "upos"
source = "qaa"
targets = ["qag"]
seeds = [0]
examples = 24
dev_examples = 8
optimization = { epochs = 1, learning_rate = 1e-3, batch_size = 8, precision = "float32" }
peft = { kind = "adapter", reduction = 4 }

[[grid.method]]
name = "source-only"
encoders = ["plain", "three"]

[[measure]]
name = "scores"
examples = 8
"""


@pytest.mark.nightly
def test_adapters_of_languages_are_added_one_after_the_other(plan):
    runs = plan()
    two, three = select_kind(Pretrain, runs)
    assert (three.start, two.trained, three.trained) == (two, "modules", "modules")
    assert two.module_languages({}) == {"qaa", "qad"}
    assert three.module_languages({}) == {"qaa", "qad", "qag"}
    assert ", modules trained on qag, adapter modules (" in three.label
    assert {run.peft for run in select_kind(FineTune, runs)} == {TaskAdapter(reduction=4)}


@pytest.mark.nightly
def test_a_run_that_trains_all_keeps_its_id(plan):
    text = RECIPE.replace('trained = "modules"', "")
    assert all("trained" not in content(item) for item in each(select_kind(Pretrain, plan(text))))


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("changes", "facts"),
    [
        ({"encoder__2__pretrain": {"languages": ["qag"]}}, "trained: modules: "),
        (
            {"encoder__2__pretrain__modules": {"reduction": 8}},
            "start 'two': modules: … (kind = adapter, … reduction = 8, after",
        ),
        ({"grid__targets": ["qaf"]}, "'three' … 'qaf' … modules.fallback"),
        ({"grid__peft__reduction": 0}, "grid.peft: reduction: found 0; expected at least 1"),
    ],
)
def test_mistakes_are_found_before_anything_is_made(get_refusal, changes, facts):
    check_wording(get_refusal(**changes), *facts.split(" … "))


@pytest.mark.nightly
def test_modules_that_are_nowhere_cannot_be_trained(get_refusal):
    shared = 'modules = { kind = "adapter", reduction = 2, after = "feed-forward", invertible = true }'
    text = "trained: modules:"
    assert text in get_refusal(RECIPE.replace(shared, ""))


@pytest.mark.nightly
@pytest.mark.slow
def test_a_later_language_leaves_the_earlier_ones_and_the_encoder_to_the_bit(finished_study):
    two, three = (
        load_masked_lm(finished_study.out / run.id / "model")
        for run in select_kind("pretrain", finished_study.records)
    )
    assert modules_of(three).languages == ("qaa", "qad", "qag")
    weights_before = weights(two)
    weights_after = weights(three)
    assert all(torch.equal(weights_after[name], weights_before[name]) for name in weights_before)
    assert weights_after.keys() - weights_before.keys() == language_parameters(three, "qag").keys()
    shipped_weights = weights(load_masked_lm(shipped_folder()))
    assert all(torch.equal(weights_before[name], shipped_weights[name]) for name in shipped_weights)
    own_language_parameters = [
        list(language_parameters(two, language).values()) for language in ("qaa", "qad")
    ]
    assert not all(torch.equal(*pair) for pair in zip(*own_language_parameters, strict=True))


@pytest.mark.nightly
@pytest.mark.slow
def test_its_tasks_are_small_and_its_languages_swapped(finished_study):
    runs = {run.run["encoder"]["kind"]: run.id for run in select_kind(FineTune.name, finished_study.records)}
    folder = finished_study.out / runs["pretrain"] / "model"
    assert not (folder / "model.safetensors").exists()
    assert identify_encoder(str(folder)).module_languages(model_folders([str(folder)])) == {
        "qaa",
        "qad",
        "qag",
    }
    model = load_model(finished_study.out / runs["pretrain"], precision="float32")
    dev = Sources().examples("ud", "qag", "dev", examples=8)
    assert len(model.predict(dev, language="qag")) == 8
    with pytest.raises(ConfigError, match="unspecified"):
        model.predict(dev)
    scored_rows = [row for run in select_kind("measure", finished_study.records) for row in run.rows]
    assert {row["language"] for row in scored_rows if row["model"] == runs["pretrain"]} == {"qaa", "qag"}
