"""Averages: the models themselves at the ends, in any order. Task and language vectors. What is refused."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from safetensors.torch import load_file

import isogloss
from isogloss.core.errors import ConfigError, ModelError
from isogloss.core.identity import content, identity
from isogloss.encoders.saving import save_model
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.methods.average import Average
from isogloss.methods.weight_arithmetic import LargestChanges, dropped, elected, mean, summed
from isogloss.planning.plan import plan_recipe
from isogloss.tasks import TASKS
from isogloss.training.fine_tuning import fine_tune
from isogloss.training.setting import Averaged, Reads
from tiny import dotted_changes, select_kind
from trained import equal, interrupt_batches, weights

NUMBERS = st.floats(-4, 4, width=32)
TENSORS = st.lists(st.lists(NUMBERS, min_size=3, max_size=3).map(torch.tensor), min_size=2, max_size=4)


# The equations


@given(TENSORS)
def test_a_mean_of_one_model_or_of_equal_ones_is_that_model_to_the_bit(tensors):
    first_tensor = tensors[0]
    assert torch.equal(mean([0.1], [first_tensor]), first_tensor)
    assert torch.equal(mean([0.1, 0.7, -0.2], [first_tensor] * 3), first_tensor)
    for end, parts in enumerate(([1.0, 0.0], [0.0, 1.0])):
        assert torch.equal(mean(parts, tensors[:2]), tensors[end])


@given(TENSORS, st.lists(st.sampled_from([-1.0, -0.5, 0.25, 1.0, 2.0]), min_size=4, max_size=4))
def test_a_mean_is_the_weighted_sum_in_any_order(tensors, weights):
    weights = weights[: len(tensors)]
    assume(total := sum(weights))
    expected = sum(w / total * tensor.double() for w, tensor in zip(weights, tensors, strict=True))
    for result in (mean(weights, tensors), mean(weights[::-1], tensors[::-1])):
        torch.testing.assert_close(result.double(), expected, rtol=1e-4, atol=1e-3)


@given(TENSORS)
def test_ties_of_vectors_that_agree_in_sign_is_their_scaled_mean(tensors):
    agreeing = [tensor.abs() for tensor in tensors]
    weights = [0.7] * len(agreeing)
    kept_values = [LargestChanges.of([item], 1.0).keep(item) for item in agreeing]
    result = elected(weights, kept_values, sum(weights))
    mean_of_those_there = torch.stack(agreeing).sum(0) / torch.stack(agreeing).sign().sum(0).clamp(min=1)
    torch.testing.assert_close(result, sum(weights) * mean_of_those_there)


def test_ties_trims_elects_and_averages_those_that_agree():
    first_tensor, second, third = torch.tensor([[4.0, -1.0, 0.1], [2.0, 3.0, 0.2], [-1.0, -5.0, 3.0]])
    vectors = (first_tensor, second, third)
    largest = [LargestChanges.of([vector[:1], vector[1:]], 2 / 3) for vector in vectors]
    assert [changes.limit for changes in largest] == [1.0, 2.0, 3.0]
    kept_values = [changes.keep(vector) for changes, vector in zip(largest, vectors, strict=True)]
    # Second numbers: -1 + 3 - 5 < 0, so the mean of -1 and -5; the third's -1 is trimmed.
    result = elected([1 / 3] * 3, kept_values, 1.0)
    torch.testing.assert_close(result, torch.tensor([3.0, -3.0, 3.0]))


def test_ties_of_halves_is_half_of_ties_of_wholes():
    first_tensor, second = torch.tensor([[4.0, -1.0, 0.1], [2.0, 3.0, 0.2]])
    kept_values = [LargestChanges.of([item], 2 / 3).keep(item) for item in (first_tensor, second)]
    whole_result = elected([1.0, 1.0], kept_values, 2.0)
    torch.testing.assert_close(elected([0.5, 0.5], kept_values, 1.0), whole_result / 2)
    assert Average(weights=(0.5, 0.5), density=0.2).weights_of(2) == (0.5, 0.5)


def test_dare_keeps_the_mean_and_drops_its_share_by_the_seed():
    unit_tensor = torch.ones(20_000)
    values = dropped(unit_tensor, 0.9, seed=1)
    assert values.unique().tolist() == pytest.approx([0, 10])
    assert float(values.mean()) == pytest.approx(1, abs=0.1)
    assert torch.equal(values, dropped(unit_tensor, 0.9, seed=1))
    assert not torch.equal(values, dropped(unit_tensor, 0.9, seed=2))
    assert dropped(unit_tensor, 0.0, seed=1) is unit_tensor


def test_whole_numbers_are_kept_where_they_are_equal_and_refused_elsewhere():
    counts = torch.arange(3)
    assert torch.equal(mean([0.5, 0.5], [counts, counts.clone()]), counts)
    with pytest.raises(ModelError, match="whole"):
        mean([0.5, 0.5], [counts, counts + 1])


def test_a_sum_of_vectors_is_weighted():
    tensor = torch.tensor([1.0, 2.0])
    other_tensor = torch.tensor([3.0, -1.0])
    assert summed([1.0, -0.5], [tensor, other_tensor]).tolist() == [-0.5, 2.5]


# Models in folders


@pytest.fixture
def parts(bert_folder, tmp_path):
    """Two models with separate heads, around encoders that moved from one start."""
    result = []
    for seed in (1, 2):
        model = TASKS["upos"].head(bert_folder, seed=seed)
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for weight in model.parameters():
                weight.add_(0.1 * torch.randn(weight.shape, generator=generator))
        folder = tmp_path / f"model-{seed}"
        save_model(model, load_tokenizer(bert_folder), folder)
        result.append(Averaged(id=str(seed), folder=str(folder), has_head=True))
    return tuple(result)


def weights_in(training, folder: Path):
    save_model(training.model, training.tokenizer, folder)
    return load_file(folder / "model.safetensors")


@pytest.mark.nightly
@pytest.mark.slow
def test_ends_of_paths_and_task_vectors_are_the_models_to_the_bit(parts, make_setting, tmp_path, bert_folder):
    setting = make_setting()
    ends = [load_file(Path(part.folder) / "model.safetensors") for part in parts]

    def average_parts(own, **options):
        return weights_in(Average(**options).train(replace(setting, parts=own)), tmp_path / "made")

    def same(fields, other_fields):
        return fields.keys() == other_fields.keys() and all(
            torch.equal(fields[name], other_fields[name]) for name in fields
        )

    assert same(average_parts(parts[:1]), ends[0])
    assert same(average_parts(parts[:1], weights=(1.0,)), ends[0])
    assert same(average_parts(parts, weights=(1.0, 0.0)), ends[0])
    assert same(average_parts(parts, weights=(0.0, 1.0)), ends[1])
    half_parts = average_parts(parts)
    name = "bert.encoder.layer.0.output.dense.weight"
    start = load_file(bert_folder / "model.safetensors")[name]
    end, other_end = (end[name] for end in ends)
    torch.testing.assert_close(half_parts[name], (end + other_end) / 2)
    # The sum of both vectors; the head, which has no start, is their mean.
    both_parts = average_parts(parts, weights=(1.0, 1.0))
    torch.testing.assert_close(both_parts[name], end + other_end - start, rtol=1e-4, atol=1e-5)
    assert same({"head": both_parts["classifier.weight"]}, {"head": half_parts["classifier.weight"]})
    language = Averaged(id="qab", folder=parts[1].folder, has_head=False)
    with_language = average_parts((parts[0], language), weights=(1.0, 1.0))
    assert same({"encoder": with_language[name]}, {"encoder": both_parts[name]})
    assert torch.equal(with_language["classifier.weight"], ends[0]["classifier.weight"])
    # TIES of one whole vector, and DARE of nothing, are that model within rounding.
    torch.testing.assert_close(average_parts(parts[:1], density=1.0)[name], end)


def test_ids_of_ties_have_a_second_version_and_others_stay():
    assert identity(Average(weights=(0.5, 0.5))) == "111e22c86640"
    assert identity(Average(dropped=0.5)) == "9f2602f687ed"
    assert content(Average(density=0.2))["version"] == 2


def test_rows_hold_the_dev_scores_of_the_parts_and_of_the_average(parts, make_setting):
    training = Average(weights=(40.0, -39.0)).train(replace(make_setting(), parts=parts))
    result = [(row["part"], row["weight"], row["language"]) for row in training.rows]
    assert result == [("1", 40.0, "en"), ("2", -39.0, "en"), ("", None, "en")]
    scores = [row["score"] for row in training.rows]
    assert bool(training.warnings) == (scores[2] < min(scores[:2]) - 0.01)


def test_an_average_that_is_worse_than_all_its_models_is_warned_of():
    from isogloss.methods.weight_arithmetic import _warnings

    def row(score):
        return {"language": "en", "metric": "accuracy", "score": score}

    (text,) = _warnings([row(0.8), row(0.9)], [row(0.3)])
    assert "accuracy" in text
    assert not _warnings([row(0.8), row(0.9)], [row(0.795)])


@pytest.mark.parametrize("strange", ["layers", "subwords", "width"])
def test_what_comes_from_another_encoder_is_refused(strange, parts, make_setting, bert_folder, tmp_path):
    from transformers import AutoConfig, AutoModel

    config = AutoConfig.from_pretrained(bert_folder)
    tokenizer = load_tokenizer(bert_folder)
    if strange == "layers":
        config.num_hidden_layers += 1
    if strange == "width":
        config.intermediate_size *= 2
    if strange == "subwords":
        tokenizer.add_tokens(["zebra"])
    save_model(AutoModel.from_config(config), tokenizer, tmp_path / "strange")
    other_item = Averaged(id="x", folder=str(tmp_path / "strange"), has_head=False)
    message = {"layers": "is a bert of 4 layers", "subwords": "other subwords", "width": "has the shape"}
    with pytest.raises(ModelError, match=message[strange]):
        Average().train(replace(make_setting(), parts=(parts[0], other_item)))


# In recipes

RECIPE = """
title = "Averages"
encoder = ["shipped", { label = "qab", pretrain = PRETRAIN }]

[grid]
corpus = "wikiann"
source = "qaa"
targets = ["qab"]
seeds = [0, 1]
examples = 8
dev_examples = 8
optimization = { epochs = 1, batch_size = 8, checkpoint_every = 0, precision = "float32" }

[[grid.method]]
name = "source-only"
encoders = ["original"]

[[grid.method]]
name = "bilingual"
encoders = ["original"]

[[grid.method]]
name = "average"
label = "mean"
of = ["source-only"]
size = 0
encoders = ["original"]

[[grid.method]]
name = "average"
label = "point"
of = ["source-only", "bilingual"]
weights = [0.75, 0.25]
encoders = ["original"]

[[grid.method]]
name = "average"
label = "vectors"
of = ["source-only", "qab"]
weights = [1.0, 1.0]
encoders = ["original"]

[[grid.method]]
name = "few-shot"
start = "mean"
shots = 0
encoders = ["original"]

[[measure]]
name = "scores"
methods = ["source-only", "mean", "vectors", "few-shot"]
examples = 8

[[measure]]
name = "interpolation"
between = ["source-only", "mean"]
alphas = [0.0, 0.5, 1.0]
examples = 8
""".replace(
    "PRETRAIN",
    '{ start = "shipped", text = ["rawtext"], languages = ["qab"], '
    'method = { name = "masked-language-modelling", steps = 1, block = 32, batch_subwords = 64 } }',
)


def plan_average(tmp_path, text=RECIPE, **changes):
    path = tmp_path / "averages.toml"
    path.write_text(text)
    return plan_recipe(str(path), changes=dotted_changes(**changes))


def averages(runs):
    return [run for run in runs if getattr(run, "parts", None)]


def test_an_average_of_seeds_is_a_run_for_each_group_under_its_first_seed(tmp_path):
    runs = plan_average(tmp_path, grid__seeds=[3, 1, 4, 0], grid__method__2__size=2).runs
    result = [run for run in averages(runs) if len({part.name for part in run.parts}) == len(run.source) == 1]
    assert [(item.seed, sorted(part.seed for part in item.parts)) for item in result if not item.target] == [
        (3, [1, 3]),
        (4, [0, 4]),
    ]
    few_runs = [run for run in runs if run.name == "fine-tune" and run.start]
    assert [few_run.start.seed for few_run in few_runs] == [few_run.seed for few_run in few_runs] == [3, 4]
    assert result[0].label == "average of source-only, 2 seeds"
    assert (result[0].source, result[0].target, result[0].method.weights) == (("qaa",), (), None)


def test_neither_order_nor_names_change_what_an_average_is(tmp_path):
    order = {"grid__method__3__of": ["bilingual", "source-only"], "grid__method__3__weights": [0.25, 0.75]}
    renamed_text = RECIPE.replace('label = "point"', 'label = "other"')
    first_identities, second, third = (
        {identity(run) for run in averages(plan_average(tmp_path, text, **changes).runs)}
        for text, changes in ((RECIPE, {}), (RECIPE, order), (renamed_text, {}))
    )
    assert first_identities == second == third
    (point, _) = (run for run in averages(plan_average(tmp_path).runs) if run.target and len(run.parts) == 2)
    assert point.label in (
        "average of 0.75 source-only + 0.25 bilingual",
        "average of 0.25 bilingual + 0.75 source-only",
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"size": 1}, r"method\[2\]:"),
        ({"size": 3}, r"method\[2\]:.*2.*encoder.*3"),
        ({"of": []}, r"method\[2\]"),
        ({"of": ["source-onli"]}, "of: .*encoder, 'source-onli'"),
        ({"of": ["mean", "source-only"]}, "'mean'.*'mean'"),
        ({"of": ["qab"], "size": 0}, r"of: .*\['qab'\].*models'"),
        ({"of": ["source-only", "original"]}, "encoder.*grid's"),
        ({"weights": [0.5, 0.5]}, "weights: .*2.*1"),
        ({"weights": [-1.0], "density": 0.2}, "weight"),
        ({"of": ["source-only", "bilingual"], "weights": [1.0, -1.0]}, "methods.*weights.*0"),
        ({"density": 0.0}, "density"),
        ({"start": "bilingual"}, "nothing.*start"),
        ({"epochs": 3}, "epochs:"),
        ({"precision": "half"}, "precision:"),
    ],
)
def test_what_cannot_be_averaged_is_refused_in_the_plan(tmp_path, changes, message):
    own_part = {f"grid__method__2__{name}": value for name, value in changes.items()}
    with pytest.raises(ConfigError, match=message):
        plan_average(tmp_path, **own_part)


def test_models_with_and_without_adapters_and_other_methods_of_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="layer-freezing"):
        peft = {"kind": "layer-freezing"}
        plan_average(tmp_path, grid__method__1__peft=peft, grid__method__1__label="bilingual")
    with pytest.raises(ConfigError, match="bilingual"):
        plan_average(tmp_path, grid__method__1__of=["source-only"])
    with pytest.raises(ConfigError, match=r"'bilingual'.*'qad'"):
        plan_average(tmp_path, grid__targets=["qab", "qad"], grid__method__1__targets=["qab"])
    with pytest.raises(ConfigError, match="'shipped'"):
        plan_average(tmp_path, encoder__1__pretrain__vocabulary={"size": 100})


@pytest.mark.nightly
@pytest.mark.slow
def test_averages_are_models_like_any_other(tmp_path):
    head, *methods = RECIPE.split("[[grid.method]]")
    less = [method for method in methods if "bilingual" not in method]
    plan = plan_average(tmp_path, "[[grid.method]]".join((head, *less)))
    first_process = isogloss.run(tmp_path / "averages.toml", out=tmp_path / "one", jobs=1, report=False)
    assert not first_process.outcome.failed
    mean_run = next(
        run for run in plan.runs if run.name == "fine-tune" and run.label.startswith("average of s")
    )
    folder = tmp_path / "one" / isogloss.core.identity.identity(mean_run)

    # A second call after one that ended half-way leaves the same records, also in other processes.
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    (tmp_path / "two" / folder.name / "record.json").unlink()
    (tmp_path / "two" / folder.name / "work").mkdir()
    again = isogloss.run(tmp_path / "averages.toml", out=tmp_path / "two", jobs=2, report=False)
    assert again.outcome.made == [folder.name]
    for path in (tmp_path / "one").glob("*/record.json"):
        assert path.read_bytes() == (tmp_path / "two" / path.parent.name / path.name).read_bytes()
    assert not (folder / "work").exists()

    # The end of a path, the start of few-shot, and a model to use.
    scores = {
        (run.needs[0], row["language"]): row["score"]
        for run in select_kind("measure", first_process.records)
        if run.title.startswith("scores")
        for row in run.rows
        if row.get("main")
    }
    (path,) = (
        run for run in select_kind("measure", first_process.records) if run.title.startswith("interpolation")
    )
    ends = {row["language"]: row["score"] for row in path.rows if row["alpha"] == 1}
    assert ends == {language: scores[folder.name, language] for language in ("qaa", "qab")}
    (few_runs,) = (record for record in first_process.records if record.title.startswith("few-shot"))
    assert few_runs.title.startswith("few-shot (shots=0) after average of source-only, 2 seeds")
    assert {scores[few_runs.id, language] for language in ends} == {
        scores[folder.name, language] for language in ends
    }
    model = isogloss.load_model(folder)
    model.export(tmp_path / "exported")
    weights = load_file(tmp_path / "exported" / "model.safetensors")
    (needs,) = (record.needs for record in first_process.records if record.id == folder.name)
    models = [load_file(tmp_path / "one" / need / "model" / "model.safetensors") for need in needs]
    for name, weight in weights.items():
        torch.testing.assert_close(
            weight, torch.stack([item[name] for item in models if name in item]).mean(0)
        )


# Epochs of one training


@pytest.mark.nightly
@pytest.mark.slow
def test_the_last_epochs_are_averaged_also_after_an_interruption(make_setting, tmp_path, monkeypatch):
    from isogloss.methods.plain import SourceOnly
    from isogloss.training.batching import Bucketed
    from isogloss.training.fit import _Training

    weights_after: list[dict[str, torch.Tensor]] = []
    evaluate = _Training._evaluate

    def watch_evaluation(self, done):
        weights_after.append(weights(self.model))
        evaluate(self, done)

    def train(name, count):
        setting = make_setting(folder=tmp_path / name, epochs=3, averaged_epochs=count)
        return SourceOnly().train(setting)

    with monkeypatch.context() as patch:
        patch.setattr(_Training, "_evaluate", watch_evaluation)
        whole_training = train("whole", 2)
    expected = {
        name: torch.lerp(weights_after[1][name], item, 0.5) for name, item in weights_after[2].items()
    }
    assert equal(whole_training, expected)
    assert [row["epoch"] for row in whole_training.rows if row.get("chosen")] == [2, 3]
    assert equal(train("last", 1), weights_after[2])
    with interrupt_batches(Bucketed, monkeypatch, at=-1):
        train("cut", 2)
    assert equal(train("cut", 2), whole_training)
    undecided_setting = make_setting(folder=tmp_path / "undecided", epochs=3, averaged_epochs=2)
    assert equal(
        fine_tune(undecided_setting, Reads(train=("en",))), whole_training
    )  # No dev set has a part in it.


def test_more_epochs_than_there_are_cannot_be_averaged(tmp_path):
    with pytest.raises(ConfigError, match=r"averaged_epochs: .*2.*1"):
        plan_average(tmp_path, grid__optimization__averaged_epochs=2)
    with pytest.raises(ConfigError, match="patience:"):
        plan_average(tmp_path, grid__optimization__averaged_epochs=1, grid__optimization__patience=1)
