"""Arithmetic of adapters: both equations by hand, neutral settings to the bit, and what does not fit."""

import peft
import pytest
import torch

import isogloss
from any_models import make_model
from each import each
from isogloss.core.errors import ConfigError, ModelError
from isogloss.core.run_parts import Modules
from isogloss.encoders.added.added_weights import language_parameters
from isogloss.encoders.added.language_modules import add_modules
from isogloss.runs.fine_tune import FineTune
from says import says
from trained import equal

KINDS = {
    "lora": {"r": 3, "target_modules": ["query", "value"]},
    "dora": {"r": 2, "target_modules": ["query"], "use_dora": True},
    "ia3": {"target_modules": ["key", "value"], "feedforward_modules": []},
}
RECIPE = """
title = "Related languages"

[pretrain]
start = "shipped"
text = ["rawtext"]
languages = ["qaa", "qab", "qad"]
modules = { kind = "adapter", reduction = 2 }
trained = "modules"
method = { steps = 2, batch_subwords = 256, block = 32 }

[[encoder]]
label = "adapters"
pretrain = {}

[grid]
corpus = "ud"
task = "upos"
source = "qaa"
targets = ["qad"]
seeds = [0]
examples = 8
dev_examples = 8
optimization = { epochs = 1, checkpoint_every = 0 }

[[grid.method]]
name = "source-only"
label = "adapted"
peft = { kind = "adapter", reduction = 4 }

[[grid.method]]
name = "average"
of = ["adapted"]
near = ["qad-qab"]
near_share = 0.25
"""


def make_adapted(kind, seed, labels=3):
    """Return a model with adapters whose weights are drawn from a seed, on the same base."""
    model, _ = make_model("bert", "AutoModelForTokenClassification", num_labels=labels)
    config = peft.IA3Config if kind == "ia3" else peft.LoraConfig
    adapted = peft.get_peft_model(model, config(task_type="TOKEN_CLS", **KINDS[kind]))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in adapted.named_parameters():
            if "lora" in name or "ia3" in name:
                weight.copy_(1 + 0.3 * torch.randn(weight.shape, generator=generator))
    return adapted


def parameters(model):
    return {name: weight.detach().clone() for name, weight in model.named_parameters()}


@pytest.mark.parametrize("gamma", [1.0, 0.5, -1.0])
@pytest.mark.parametrize("kind", KINDS)
def test_adapters_move_by_the_difference_or_the_ratio_of_the_references(kind, gamma):
    task = make_adapted(kind, 1)
    target = make_adapted(kind, 2, 5)
    source = make_adapted(kind, 3, 5)
    start, to_target, to_source = (parameters(model) for model in (task, target, source))
    moved = parameters(isogloss.shift_adapter(task, target, source, gamma=gamma))
    assert equal(parameters(task), start)
    adapters = [name for name in moved if "lora" in name or "ia3" in name]
    for name in each(adapters):
        if kind == "ia3":
            expected = start[name] * (1 + gamma * (to_target[name] / to_source[name] - 1))
        else:
            expected = start[name] + gamma * (to_target[name] - to_source[name])
        torch.testing.assert_close(moved[name], expected)
    assert all(torch.equal(moved[name], start[name]) for name in moved.keys() - set(adapters))


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_moves_without_gamma_or_between_equal_references(kind):
    task = make_adapted(kind, 1)
    reference = make_adapted(kind, 2)
    without_gamma = isogloss.shift_adapter(task, make_adapted(kind, 3), reference, gamma=0.0)
    between_equals = isogloss.shift_adapter(task, reference, reference)
    assert equal(parameters(without_gamma), parameters(task))
    assert equal(parameters(between_equals), parameters(task))


def test_the_same_head_makes_it_an_average_of_factors():
    models = [make_adapted("lora", seed) for seed in (1, 2, 3)]
    averaged = parameters(isogloss.average(models, (1, 0.7, -0.7)))
    moved = isogloss.shift_adapter(*models, gamma=0.7)
    for name, weight in each(parameters(moved).items()):
        torch.testing.assert_close(averaged[name], weight, rtol=1e-4, atol=1e-5)


def test_models_without_adapters_or_with_other_adapters_are_refused():
    task = make_adapted("lora", 1)
    plain, _ = make_model("bert", "AutoModelForTokenClassification")
    with says(ModelError, "shift_adapter", "source", "BertForTokenClassification"):
        isogloss.shift_adapter(task, task, plain)
    with says(ModelError, "query", "[3, ", "[2, ", "target"):
        isogloss.shift_adapter(task, make_adapted("dora", 1), task)


def make_modular(kind="adapter"):
    model, _ = make_model("bert", "AutoModelForTokenClassification")
    add_modules(model, Modules(kind=kind), ("en", "de", "fr"), seed=0)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for language in ("de", "fr"):
            for weight in language_parameters(model, language).values():
                weight.add_(torch.randn(weight.shape, generator=generator))
    return model


@pytest.mark.parametrize("kind", ["adapter", "feed-forward", "attention"])
@pytest.mark.parametrize("share", [1.0, 0.25, 0.0])
def test_modules_of_a_language_are_mixed_with_those_of_a_related_one(kind, share):
    model = make_modular(kind)
    mixed = isogloss.mix_language_adapters(model, "de", "fr", share)
    sides = [
        list(language_parameters(network, code).values())
        for network, code in ((model, "de"), (model, "fr"), (mixed, "de"))
    ]
    for own, near, found in each(zip(*sides, strict=True)):
        torch.testing.assert_close(found, share * own + (1 - share) * near)
    names = language_parameters(model, "de").keys()
    before = parameters(model)
    after = parameters(mixed)
    assert all(torch.equal(after[name], before[name]) for name in before.keys() - names)
    assert equal(before, after) == (share == 1)


def test_languages_without_modules_are_refused():
    with says(ConfigError, "sw", "en, de, fr"):
        isogloss.mix_language_adapters(make_modular(), "de", "sw")
    plain, _ = make_model("bert")
    with says(ConfigError, "de", "none"):
        isogloss.mix_language_adapters(plain, "de", "fr")


@pytest.mark.parametrize(
    ("pair", "facts"),
    [("qaa-qab", ("qaa", "source")), ("qad-qag", ("qag", "qaa, qab, qad")), ("qad", ("qad-qab",))],
)
def test_a_recipe_refuses_languages_that_are_not_mixed(pair, facts, get_refusal):
    message = get_refusal(RECIPE.replace("qad-qab", pair))
    assert all(fact in message for fact in facts)
    assert "near_share" in get_refusal(RECIPE.replace('near = ["qad-qab"]', ""))


def test_a_recipe_mixes_modules_of_a_target(plan):
    (average,) = [run for run in plan(RECIPE) if isinstance(run, FineTune) and run.parts]
    assert (average.method.near, average.method.near_share) == (("qad-qab",), 0.25)


@pytest.mark.slow
def test_a_recipe_gives_the_model_of_the_function(tmp_path):
    (tmp_path / "near.toml").write_text(RECIPE, encoding="utf-8")
    result = isogloss.run(tmp_path / "near.toml", out=tmp_path / "runs", jobs=1, report=False)
    assert not result.outcome.failed
    adapted, averaged = (
        isogloss.load_model(tmp_path / "runs" / record.id).network
        for name in ("source-only", "average")
        for record in result.records
        if record.kind == "fine-tune" and record.title.startswith(name)
    )
    found = parameters(averaged)
    expected = isogloss.mix_language_adapters(adapted, "qad", "qab", 0.25)
    for name, weight in each(parameters(expected).items()):
        torch.testing.assert_close(found[name], weight)
