"""Parts of the four papers put together: what one makes, the others take, all of it said in one recipe.

Methods and measurements are tested with modules one by one elsewhere; here are chains of runs, on an encoder
with meta-learned adapters (m), on that encoder adjusted (a), and on one that shares all (j).
"""

import math

import pytest
import torch
from isogloss.reports.gather import gather

import isogloss
from isogloss.encoders import load_masked_lm
from isogloss.encoders.language_modules import modules_of, own_parameters, shared_parameters

pytestmark = pytest.mark.slow
"""Some forty runs, a minute or so."""

RECIPE = """
title = "Everything with everything"

[pretrain]
text = ["rawtext"]
languages = ["qaa", "qad"]
lines = { qaa = 150, qad = 150 }
architecture = { layers = 2, dim = 16, heads = 2, feed_forward = 32, vocabulary = 300, positions = 64 }

[pretrain.method]
name = "masked-language-modelling"
steps = 3
batch_subwords = 512
block = 32
precision = "float32"

[[encoder]]
label = "j"
pretrain = {}

[[encoder]]
label = "m"

[encoder.pretrain]
modules = { kind = "adapter" }
method = { name = "meta-learning", inner_step = "preconditioned" }

[[encoder]]
label = "w"

[encoder.pretrain]
modules = { kind = "attention" }
method = { conflict = { every = 3, batch = 4, layers = true } }

[[adjust]]
name = "cross-lingual-adjustment"
label = "a"
start = "m"
bitext = "bitext"
pairs = ["qaa-qad"]
examples = 64
learning_rate = 1e-3
precision = "float32"

[grid]
corpus = "ud"
task = "upos"
source = "qaa"
targets = ["qad"]
seeds = [0]
examples = 16
dev_examples = 4
optimization = { epochs = 1, learning_rate = 1e-3, batch_size = 8, limit = 48, precision = "float32" }

[[grid.method]]
name = "source-only"
encoders = ["j", "m", "a"]

[[grid.method]]
name = "few-shot"
start = "source-only"
shots = 4
encoders = ["m", "a"]

[[grid.method]]
name = "bilingual"
encoders = ["m", "a"]

[[grid.method]]
name = "x-mixup"
layer = 1
encoders = ["m", "a"]

[[grid.method]]
name = "continual"
bitext = "bitext"
encoders = ["m"]

[[measure]]
name = "scores"
examples = 6

[[measure]]
name = "scores"
inputs = "paired"
methods = ["x-mixup"]
examples = 6

[[measure]]
name = "interpolation"
between = ["source-only", "bilingual"]
alphas = [0.0, 1.0]
examples = 6

[[measure]]
name = "deltas"
between = ["source-only", "few-shot", "bilingual"]
encoders = ["a"]

[[measure]]
name = "cka"
corpus = "bitext"
encoders = ["j", "m", "a"]
methods = ["x-mixup"]
examples = 24

[[measure]]
name = "word-distance"
corpus = "bitext"
encoders = ["j", "m", "a"]
methods = ["x-mixup"]
examples = 24

[[measure]]
name = "gradient-conflict"
encoders = ["j", "m", "a"]
batch = 8
draws = 1

[[measure]]
name = "task-gradient-conflict"
methods = ["x-mixup", "few-shot"]
batch = 4
draws = 1
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Make all runs; return what a report reads of them, and the store's folder."""
    folder = tmp_path_factory.mktemp("compositions")
    (folder / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    result = isogloss.run(folder / "recipe.toml", out=folder / "runs", jobs=1)
    assert not result.outcome.failed
    return gather(result.out), result.out


def rows(made, diagnostic, encoder, **about):
    """Return the rows of a diagnostic on an encoder, or on models of it; "a" stands for the adjusted one."""
    return [
        row
        for row in made[0].raw(diagnostic)
        if (str(row["encoder"]).startswith("m, ") if encoder == "a" else row["encoder"] == encoder)
        and all(_named(row.get(key)) == value for key, value in about.items())
    ]


def _named(value):
    """Leave out what a method's name says of its fields: "x-mixup (layer=1)"."""
    return value.partition(" ")[0] if isinstance(value, str) else value


def by(found, *names):
    return {tuple(row[name] for name in names): row for row in found}


def encoder_of(made, kind, label):
    """Load an encoder that a run made, with its masked-LM head."""
    (run,) = [run for run in made[0].finished(kind) if run.title.startswith(f"encoder {label}")]
    return load_masked_lm(made[1] / run.id / "model")


def test_every_part_leaves_finite_numbers(made):
    for run in made[0].runs:
        assert run.state == "finished"
        assert run.record.rows or run.kind != "measure", run.title
        numbers = [value for row in run.record.rows for value in row.values() if isinstance(value, float)]
        assert all(map(math.isfinite, numbers)), run.title


@pytest.mark.parametrize("encoder", ["m", "a"])
@pytest.mark.parametrize("method", ["source-only", "few-shot", "bilingual", "x-mixup"])
def test_models_of_encoders_with_meta_learned_adapters_are_scored_in_both_languages(made, encoder, method):
    found = rows(made, "scores", encoder, method=method)
    assert {row["language"] for row in found} == {"qaa", "qad"}
    if method == "x-mixup":
        assert len(by(found, "corpus", "language")) == 4  # each alone, and beside its translation


@pytest.mark.parametrize("encoder", ["m", "a"])
def test_the_ends_of_a_path_between_models_with_modules_are_their_scores(made, encoder):
    scores = by(rows(made, "scores", encoder), "method", "language")
    path = rows(made, "interpolation", encoder)
    assert {row["alpha"] for row in path} == {0.0, 1.0}
    for row in path:
        method = "source-only" if row["alpha"] == 0.0 else "bilingual"
        assert row["score"] == pytest.approx(scores[method, row["language"]]["score"]), row


def test_ways_between_models_of_an_adjusted_encoder_with_modules_have_lengths(made):
    (whole,) = [row for row in rows(made, "deltas", "a") if row["part"] == "all"]
    assert whole["norm_source"] > 0
    assert whole["norm_target"] > 0


def test_an_adjusted_encoder_keeps_its_modules_and_moves_with_them(made):
    before, after = encoder_of(made, "pretrain", "m"), encoder_of(made, "adjust", "m, ")
    assert modules_of(after) == modules_of(before)
    for language in ("qaa", "qad"):
        own = [own_parameters(model, language) for model in (before, after)]
        assert own[0].keys() == own[1].keys() != set()
        assert any(not torch.equal(weight, own[1][name]) for name, weight in own[0].items()), language
    shared = [shared_parameters(model) for model in (before, after)]
    assert any(not torch.equal(weight, shared[1][name]) for name, weight in shared[0].items())


def test_gradients_conflict_is_measured_on_joint_meta_learned_and_adjusted_encoders(made):
    pairs = {("qaa", "qaa"), ("qaa", "qad"), ("qad", "qad")}
    whole = {
        label: by(rows(made, "gradient-conflict", label, layer=None, module="all"), "first", "second")
        for label in "jma"
    }
    for label, found in whole.items():
        assert found.keys() == pairs, label
        assert all(-1 <= row["cosine"] <= 1 for row in found.values())
    cosines = [round(found["qaa", "qad"]["cosine"], 9) for found in whole.values()]
    assert len(set(cosines)) == 3


def test_gradients_are_watched_while_an_encoder_with_modules_is_made(made):
    (run,) = [run for run in made[0].finished("pretrain") if run.title == "encoder w"]
    cosines = [row for row in run.record.rows if row.get("module") == "all" and row.get("layer") is None]
    assert {(row["first"], row["second"]) for row in cosines} == {
        ("qaa", "qaa"),
        ("qaa", "qad"),
        ("qad", "qad"),
    }


@pytest.mark.parametrize("method", ["few-shot", "x-mixup"])
@pytest.mark.parametrize("encoder", ["m", "a"])
def test_gradients_of_fine_tuned_models_with_modules_conflict_in_every_layer(made, encoder, method):
    found = rows(made, "task-gradient-conflict", encoder, method=method, module="all")
    assert {row["layer"] for row in found} >= {None, 1, 2}


@pytest.mark.parametrize("diagnostic", ["cka", "word-distance"])
def test_states_are_compared_in_encoders_and_in_models_that_mix(made, diagnostic):
    alone = {
        label: [row for row in rows(made, diagnostic, label) if not row.get("method")] for label in "jma"
    }
    tuned = {label: rows(made, diagnostic, label, method="x-mixup") for label in "ma"}
    assert all((*alone.values(), *tuned.values()))
    assert numbers(alone["m"]) != numbers(alone["a"]) != numbers(tuned["a"])


def numbers(found):
    return [value for row in found for value in row.values() if isinstance(value, float)]


def test_continual_learning_holds_an_encoder_with_modules_by_its_bitext(made):
    plain, continual = (
        by(rows(made, "scores", "m", method=name), "language") for name in ("source-only", "continual")
    )
    assert plain.keys() == continual.keys()
