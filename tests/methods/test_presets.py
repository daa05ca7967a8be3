"""Presets of papers and released code as fields: values, tables, and priority."""

import pytest

from isogloss.core.errors import ConfigError
from isogloss.core.identity import identity
from isogloss.core.run_parts import Modules, Optimization, keys_of, values_of
from isogloss.methods import ADJUSTMENTS, AUXILIARY_LOSSES, METHODS, PRETRAINING
from isogloss.methods.presets import DIFFERENCES, MODULES, preset_fields
from isogloss.recipes.checking import build_checked
from isogloss.runs.fine_tune import FineTune

PARTS = {**METHODS, **AUXILIARY_LOSSES, **PRETRAINING, **ADJUSTMENTS, MODULES: Modules}

RELEASED = {
    ("x-mixup", "tydiqa", "span"): {
        "back_loss": "target", "source_as_target": True, "learned_ratio": False, "learning_rate": 3e-5,
        "epochs": 4, "batch_size": 32, "warmup": 0.1, "weight_decay": 0.0, "clip": 0.0,
    },
    ("x-mixup", "xnli", "example"): {
        "back_loss": "target", "source_as_target": True, "learned_ratio": False, "dev": "all",
        "learning_rate": 5e-6, "epochs": 4, "batch_size": 64, "warmup": 0.0, "weight_decay": 0.0, "clip": 0.0,
    },
    ("source-only", "ud", "word"): {"weight_decay": 0.0, "clip": 0.0, "beta2": 0.99},
    ("r3f", "", ""): {"dropout": "separate"},
    ("alignment-loss", "", ""): {
        "form": "mean", "alpha": 0.01, "stay": 1.0, "reference": "original", "drop_identical": True,
        "pairs": 16,
    },
    ("cross-lingual-adjustment", "", ""): {
        "form": "mean", "drop_identical": True, "learning_rate": 5e-5, "rate_schedule": "constant",
    },
    ("masked-language-modelling", "", ""): {
        "block": 256, "rate_schedule": "constant", "warmup": 0.0, "learning_rate": 1e-4, "clip": 5.0,
        "beta2": 0.999, "epsilon": 1e-8, "weight_decay": 0.0,
    },
}  # fmt: skip


@pytest.mark.parametrize("case", RELEASED, ids=lambda case: " ".join(filter(None, case)))
def test_the_released_code_by_hand(case):
    part, corpus, unit = case
    assert preset_fields(part, "released", corpus=corpus, unit=unit) == RELEASED[case]


def test_what_the_papers_print_by_hand():
    adam = {"weight_decay": 0.0, "clip": 0.0, "beta2": 0.999}
    assert preset_fields("bilingual", "paper", corpus="xnli", unit="example") == adam
    assert preset_fields("x-mixup", "paper", corpus="squad", unit="span") == {
        "learned_ratio": True, "epochs": 2, "batch_size": 64,
    }  # fmt: skip
    assert preset_fields("meta-learning", "paper") == {
        "second_order": "finite-difference", "steps": 500_000, "evaluate_every": 10_000,
        "block": 256, "batch_subwords": 131_072, "rate_schedule": "inverse-square-root",
    }  # fmt: skip
    assert preset_fields("cross-lingual-adjustment", "paper") == {"form": "sum", "rate_schedule": "constant"}


def test_every_difference_is_a_field_with_values_that_it_takes():
    for row in DIFFERENCES:
        assert row.sources
        for name in row.parts:
            part = PARTS[name]
            kind = part if row.field in keys_of(part) else Optimization
            assert row.field in keys_of(kind), (name, row.field)
            for value in (row.paper, row.released):
                cases = value.values() if isinstance(value, dict) else [value]
                needed_fields = {"kind": "adapter"} if part is Modules else {}
                for stated_value in cases:
                    given_fields = {} if stated_value is None else {row.field: stated_value}
                    built = build_checked(kind, {**needed_fields, **given_fields})
                    assert all(values_of(built)[field] == given_fields[field] for field in given_fields)


@pytest.mark.parametrize(
    ("part", "preset", "message"),
    [
        ("x-mixup", "papre", r"preset: .*'papre'.*'paper'\?"),
        (
            "few-shot",
            "paper",
            "preset: .*few-shot",
        ),
    ],
)
def test_other_presets_and_parts_are_refused(part, preset, message):
    with pytest.raises(ConfigError, match=message):
        preset_fields(part, preset)


RECIPE = """
title = "Presets"
encoder = "shipped"

[grid]
corpus = "{corpus}"
{task}
source = "qaa"
targets = ["qad"]
seeds = [0]
examples = 40
dev_examples = 20
optimization = {{ {optimization} }}

[[grid.method]]
name = "x-mixup"
{fields}
"""


def models(plan, text):
    return [run for run in plan(text) if isinstance(run, FineTune)]


def plan_fields(plan, fields, *, corpus="ud", task='task = "upos"', optimization="limit = 64"):
    text = RECIPE.format(corpus=corpus, task=task, fields=fields, optimization=optimization)
    return next(run for run in models(plan, text) if run.method.name == "x-mixup")


def test_a_preset_is_its_fields_and_nothing_else(plan):
    by_preset = plan_fields(plan, 'preset = "released"')
    by_hand = plan_fields(
        plan,
        """back_loss = "target"
source_as_target = true
learned_ratio = false
dev = "all"
learning_rate = 5e-6
epochs = 4
batch_size = 64
warmup = 0.0
weight_decay = 0.0
clip = 0.0""",
    )
    assert by_preset == by_hand
    assert identity(by_preset) == identity(by_hand)
    assert by_preset.optimization.dev == "all"


def test_what_the_recipe_sets_wins_in_the_method_and_in_the_grid(plan):
    model = plan_fields(
        plan, 'preset = "released"\nback_loss = "target"\nepochs = 1', optimization="learning_rate = 1e-3"
    )
    updates = model.optimization.updates
    assert (model.optimization.epochs, updates.learning_rate, updates.warmup) == (1, 1e-3, 0.0)
    method = plan_fields(plan, 'preset = "released"\nlearned_ratio = true\nratio = 0.3').method
    assert (method.learned_ratio, method.ratio, method.back_loss) == (True, 0.3, "target")


def test_a_preset_knows_the_task_and_other_parts_of_a_recipe_take_it_too(plan):
    questions = plan_fields(plan, 'preset = "released"', corpus="squad", task="")
    assert (questions.optimization.epochs, questions.optimization.batch_size) == (2, 32)
    assert questions.optimization.dev is None
    loss = 'auxiliary = { name = "alignment-loss", bitext = "bitext", preset = "released", pairs = 8 }'
    auxiliary = plan_fields(plan, loss).auxiliary
    assert (auxiliary.stay, auxiliary.pairs, auxiliary.encoding.drop_identical) == (1.0, 8, True)
    assert auxiliary.reference == "original"


def test_a_wrong_preset_is_told_where_it_stands(get_refusal):
    text = RECIPE.format(corpus="ud", task='task = "upos"', optimization="limit = 64", fields='preset = "x"')
    assert "grid.method[0]: preset: no preset 'x'." in get_refusal(text)


@pytest.mark.parametrize(
    ("dev", "languages", "target"),
    [
        (None, ["qaa"], ()),
        ("source", ["qaa"], ()),
        ("target", ["qad"], ("qad",)),
        ("all", ["qaa", "qad"], ("qad",)),
    ],
)
def test_any_method_is_selected_on_the_dev_sets_of_any_side(plan, dev, languages, target):
    text = RECIPE.format(
        corpus="ud", task='task = "upos"', optimization=f'dev = "{dev}"' if dev else "limit = 64", fields=""
    ).replace("x-mixup", "source-only")
    (model,) = models(plan, text)
    assert [split.language for split in model.splits_read if split.split == "dev"] == languages
    assert (model.source, model.target) == (("qaa",), target)


def test_few_shot_has_a_dev_itself(plan):
    fields = '[[grid.method]]\nname = "few-shot"\nstart = "source-only"\ndev = "source"'
    text = RECIPE.format(corpus="ud", task='task = "upos"', optimization='dev = "all"', fields=fields)
    text = text.replace("x-mixup", "source-only")
    few_shot_run = next(run for run in models(plan, text) if run.method.name == "few-shot")
    assert (few_shot_run.optimization.dev, few_shot_run.method.dev) == (None, "source")
    assert [split.language for split in few_shot_run.splits_read if split.split == "dev"] == ["qaa"]


def test_the_source_among_the_targets_is_refused_with_what_to_do(get_refusal):
    text = RECIPE.format(corpus="ud", task='task = "upos"', optimization="limit = 64", fields="")
    message = get_refusal(text.replace('["qad"]', '["qaa+qad"]'))
    assert "grid.targets:" in message
    assert "source_as_target = true" in message
