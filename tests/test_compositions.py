"""Parts of the four papers put together: what one makes, the others take, all of it said in one recipe.

Methods and measurements are tested with modules one by one elsewhere; here are chains of runs, on an encoder
with meta-learned adapters (m), on that encoder adjusted (a), and on one that shares all (j).
"""

import json
import math

import pytest
import torch

import isogloss
from each import each
from isogloss.core.identity import identity
from isogloss.encoders.added.added_weights import language_parameters, shared_parameters
from isogloss.encoders.added.language_modules import modules_of
from isogloss.encoders.loading import load_masked_lm

pytestmark = [pytest.mark.slow, pytest.mark.nightly]
"""Some forty runs."""

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
name = "source-only"
auxiliary = { name = "alignment-loss", bitext = "bitext" }
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
def composed_runs(tmp_path_factory, few_sentences):
    """Make all runs. Return their records by id, the labels of encoders by id, and the store's folder."""
    folder = tmp_path_factory.mktemp("compositions")
    (folder / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    result = isogloss.run(folder / "recipe.toml", out=folder / "runs", jobs=1, report=False)
    assert not result.outcome.failed
    labels = json.loads((result.out / "plan.json").read_text(encoding="utf-8"))["labels"]
    return {record.id: record for record in result.records}, labels, result.out


def rows(product, diagnostic, encoder, **fields):
    """Return the rows of a diagnostic on an encoder, or on models of it, with the method of these."""
    records, labels, _ = product
    result = []
    for record in records.values():
        if record.kind == "measure" and record.run["diagnostic"]["kind"] == diagnostic:
            for row in record.rows:
                model = records[next(row[name] for name in ("model", "start", "origin") if name in row)]
                is_tuned = model.kind == "fine-tune"
                method = model.run["method"]["kind"] if is_tuned else ""
                auxiliary = model.run.get("auxiliary", {}).get("kind", "")
                if labels[identity(model.run["encoder"]) if is_tuned else model.id] == encoder:
                    result.append(
                        {**row, "method": method, "auxiliary": auxiliary, "inputs": record.run.get("inputs")}
                    )
    return [row for row in result if all(row[key] == value for key, value in fields.items())]


def index_rows(result, *names):
    return {tuple(row[name] for name in names): row for row in result}


def encoder_of(result, kind, label):
    """Load an encoder that a run made, with its masked-LM head."""
    return load_masked_lm(result[2] / record_of(result, kind, label).id / "model")


def record_of(result, kind, label):
    """Return the record of the encoder that the recipe calls so."""
    (record,) = [run for run in result[0].values() if run.kind == kind and result[1][run.id] == label]
    return record


def test_every_part_leaves_finite_numbers(composed_runs):
    for record in each(composed_runs[0].values()):
        assert record.rows or record.kind != "measure", record.title
        assert all(math.isfinite(item) for item in numbers(record.rows)), record.title


@pytest.mark.parametrize("encoder", ["m", "a"])
@pytest.mark.parametrize("method", ["source-only", "few-shot", "bilingual", "x-mixup"])
def test_models_of_encoders_with_meta_learned_adapters_are_scored_in_both_languages(
    composed_runs, encoder, method
):
    result = rows(composed_runs, "scores", encoder, method=method)
    assert {row["language"] for row in result} == {"qaa", "qad"}
    if method == "x-mixup":
        assert (
            len(index_rows(result, "inputs", "language")) == 4
        )  # each example by itself, and with its translation


@pytest.mark.parametrize("encoder", ["m", "a"])
def test_the_ends_of_a_path_between_models_with_modules_are_their_scores(composed_runs, encoder):
    scores = index_rows(rows(composed_runs, "scores", encoder, main=True), "model", "language")
    path = rows(composed_runs, "interpolation", encoder)
    assert {row["alpha"] for row in path} == {0.0, 1.0}
    for row in path:
        end = row["start"] if row["alpha"] == 0.0 else row["end"]
        assert row["score"] == pytest.approx(scores[end, row["language"]]["score"]), row


def test_ways_between_models_of_an_adjusted_encoder_with_modules_have_lengths(composed_runs):
    (whole_row,) = [row for row in rows(composed_runs, "deltas", "a") if row["part"] == "all"]
    assert whole_row["norm_first"] > 0
    assert whole_row["norm_second"] > 0


def test_an_adjusted_encoder_keeps_its_modules_and_moves_with_them(composed_runs):
    model_before = encoder_of(composed_runs, "pretrain", "m")
    model_after = encoder_of(composed_runs, "adjust", "a")
    assert modules_of(model_after) == modules_of(model_before)
    for language in ("qaa", "qad"):
        own_language_parameters = [
            language_parameters(model, language) for model in (model_before, model_after)
        ]
        assert own_language_parameters[0].keys() == own_language_parameters[1].keys() != set()
        assert any(
            not torch.equal(weight, own_language_parameters[1][name])
            for name, weight in own_language_parameters[0].items()
        ), language
    shared = [shared_parameters(model) for model in (model_before, model_after)]
    assert any(not torch.equal(weight, shared[1][name]) for name, weight in shared[0].items())


def test_gradients_conflict_is_measured_on_joint_meta_learned_and_adjusted_encoders(composed_runs):
    pairs = {("qaa", "qaa"), ("qaa", "qad"), ("qad", "qad")}
    whole_rows = {
        label: index_rows(
            rows(composed_runs, "gradient-conflict", label, layer=None, module="all"), "first", "second"
        )
        for label in "jma"
    }
    for label, whole_row in whole_rows.items():
        assert whole_row.keys() == pairs, label
        assert all(-1 <= row["cosine"] <= 1 for row in whole_row.values())
    cosines = [round(result["qaa", "qad"]["cosine"], 9) for result in whole_rows.values()]
    assert len(set(cosines)) == 3


def test_gradients_are_watched_while_an_encoder_with_modules_is_made(composed_runs):
    watched_rows = record_of(composed_runs, "pretrain", "w").rows
    cosines = [row for row in watched_rows if row.get("module") == "all" and row.get("layer") is None]
    assert {(row["first"], row["second"]) for row in cosines} == {
        ("qaa", "qaa"),
        ("qaa", "qad"),
        ("qad", "qad"),
    }


@pytest.mark.parametrize("method", ["few-shot", "x-mixup"])
@pytest.mark.parametrize("encoder", ["m", "a"])
def test_gradients_of_fine_tuned_models_with_modules_conflict_in_every_layer(composed_runs, encoder, method):
    result = rows(composed_runs, "task-gradient-conflict", encoder, method=method, module="all")
    assert {row["layer"] for row in result} >= {None, 1, 2}


@pytest.mark.parametrize("diagnostic", ["cka", "word-distance"])
def test_states_are_compared_in_encoders_and_in_models_that_mix(composed_runs, diagnostic):
    single_rows = {label: rows(composed_runs, diagnostic, label, method="") for label in "jma"}
    tuned_rows = {label: rows(composed_runs, diagnostic, label, method="x-mixup") for label in "ma"}
    assert all((*single_rows.values(), *tuned_rows.values()))
    assert numbers(single_rows["m"]) != numbers(single_rows["a"]) != numbers(tuned_rows["a"])


def numbers(result):
    return [value for row in result for value in row.values() if isinstance(value, float)]


def test_continual_learning_holds_an_encoder_with_modules_by_its_bitext(composed_runs):
    plain_rows, continual = (
        index_rows(rows(composed_runs, "scores", "m", method="source-only", auxiliary=name), "language")
        for name in ("", "alignment-loss")
    )
    assert plain_rows.keys() == continual.keys()
