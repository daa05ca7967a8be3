"""Averages of models, of task vectors and of language vectors, and those that are refused."""

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
from isogloss.features.averaging.method import Average
from isogloss.features.averaging.weight_arithmetic import (
    LargestChanges,
    drop_changes,
    elect_signs,
    mean,
    sum_weighted,
)
from isogloss.planning.plan import plan_recipe
from isogloss.tasks import TASKS
from isogloss.training.fine_tuning import fine_tune
from isogloss.training.setting import Averaged, Reads
from says import says
from tiny import dotted_changes, select_kind
from trained import equal, interrupt_batches, weights

NUMBERS = st.floats(-4, 4, width=32)
TENSORS = st.lists(st.lists(NUMBERS, min_size=3, max_size=3).map(torch.tensor), min_size=2, max_size=4)


# The equations


@given(TENSORS)
def test_a_mean_of_one_model_or_of_equal_ones_is_that_model_to_the_bit(tensors):
    tensor = tensors[0]
    assert torch.equal(mean([0.1], [tensor]), tensor)
    assert torch.equal(mean([0.1, 0.7, -0.2], [tensor] * 3), tensor)
    for end, parts in enumerate(([1.0, 0.0], [0.0, 1.0])):
        assert torch.equal(mean(parts, tensors[:2]), tensors[end])


@given(TENSORS, st.lists(st.sampled_from([-1.0, -0.5, 0.25, 1.0, 2.0]), min_size=4, max_size=4))
def test_a_mean_is_the_weighted_sum_in_any_order(tensors, weights):
    weights = weights[: len(tensors)]
    assume(total := sum(weights))
    expected = sum(w / total * tensor.double() for w, tensor in zip(weights, tensors, strict=True))
    for average in (mean(weights, tensors), mean(weights[::-1], tensors[::-1])):
        torch.testing.assert_close(average.double(), expected, rtol=1e-4, atol=1e-3)


@given(TENSORS)
def test_ties_of_vectors_that_agree_in_sign_is_their_scaled_mean(tensors):
    agreeing = [tensor.abs() for tensor in tensors]
    weights = [0.7] * len(agreeing)
    kept_changes = [LargestChanges.of([vector], 1.0).keep(vector) for vector in agreeing]
    merged_vector = elect_signs(weights, kept_changes, sum(weights))
    mean_of_those_there = torch.stack(agreeing).sum(0) / torch.stack(agreeing).sign().sum(0).clamp(min=1)
    torch.testing.assert_close(merged_vector, sum(weights) * mean_of_those_there)


def test_ties_trims_elects_and_averages_those_that_agree():
    first_vector, second_vector, third_vector = torch.tensor(
        [[4.0, -1.0, 0.1], [2.0, 3.0, 0.2], [-1.0, -5.0, 3.0]]
    )
    vectors = (first_vector, second_vector, third_vector)
    largest = [LargestChanges.of([vector[:1], vector[1:]], 2 / 3) for vector in vectors]
    assert [changes.limit for changes in largest] == [1.0, 2.0, 3.0]
    kept_changes = [changes.keep(vector) for changes, vector in zip(largest, vectors, strict=True)]
    # Second numbers: -1 + 3 - 5 < 0, so the mean of -1 and -5; the third's -1 is trimmed.
    merged_vector = elect_signs([1 / 3] * 3, kept_changes, 1.0)
    torch.testing.assert_close(merged_vector, torch.tensor([3.0, -3.0, 3.0]))


def test_ties_of_halves_is_half_of_ties_of_wholes():
    first_vector, second_vector = torch.tensor([[4.0, -1.0, 0.1], [2.0, 3.0, 0.2]])
    kept_changes = [
        LargestChanges.of([vector], 2 / 3).keep(vector) for vector in (first_vector, second_vector)
    ]
    whole_vector = elect_signs([1.0, 1.0], kept_changes, 2.0)
    torch.testing.assert_close(elect_signs([0.5, 0.5], kept_changes, 1.0), whole_vector / 2)
    assert Average(weights=(0.5, 0.5), density=0.2).weights_of(2) == (0.5, 0.5)


def test_dare_keeps_the_mean_and_drops_its_share_by_the_seed():
    changes = torch.ones(20_000)
    sparse_changes = drop_changes(changes, 0.9, seed=1)
    assert sparse_changes.unique().tolist() == pytest.approx([0, 10])
    assert float(sparse_changes.mean()) == pytest.approx(1, abs=0.1)
    assert torch.equal(sparse_changes, drop_changes(changes, 0.9, seed=1))
    assert not torch.equal(sparse_changes, drop_changes(changes, 0.9, seed=2))
    assert drop_changes(changes, 0.0, seed=1) is changes


def test_whole_numbers_are_kept_where_they_are_equal_and_refused_elsewhere():
    counts = torch.arange(3)
    assert torch.equal(mean([0.5, 0.5], [counts, counts.clone()]), counts)
    with pytest.raises(ModelError, match="whole"):
        mean([0.5, 0.5], [counts, counts + 1])


def test_a_sum_of_vectors_is_weighted():
    first_vector = torch.tensor([1.0, 2.0])
    second_vector = torch.tensor([3.0, -1.0])
    assert sum_weighted([1.0, -0.5], [first_vector, second_vector]).tolist() == [-0.5, 2.5]


# Models in folders


@pytest.fixture
def parts(bert_folder, tmp_path):
    """Two models with separate heads, around encoders that moved from one start."""
    models = []
    for seed in (1, 2):
        model = TASKS["upos"].head(bert_folder, seed=seed)
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for weight in model.parameters():
                weight.add_(0.1 * torch.randn(weight.shape, generator=generator))
        folder = tmp_path / f"model-{seed}"
        save_model(model, load_tokenizer(bert_folder), folder)
        models.append(Averaged(id=str(seed), folder=str(folder), has_head=True))
    return tuple(models)


def weights_in(trained, folder: Path):
    save_model(trained.model, trained.tokenizer, folder)
    return load_file(folder / "model.safetensors")


@pytest.mark.nightly
@pytest.mark.slow
def test_ends_of_paths_and_task_vectors_are_the_models_to_the_bit(parts, make_setting, tmp_path, bert_folder):
    setting = make_setting()
    ends = [load_file(Path(part.folder) / "model.safetensors") for part in parts]

    def average_parts(own_parts, **fields):
        return weights_in(Average(**fields).train(replace(setting, parts=own_parts)), tmp_path / "made")

    def same(tensors, expected):
        return tensors.keys() == expected.keys() and all(
            torch.equal(tensors[name], expected[name]) for name in tensors
        )

    assert same(average_parts(parts[:1]), ends[0])
    assert same(average_parts(parts[:1], weights=(1.0,)), ends[0])
    assert same(average_parts(parts, weights=(1.0, 0.0)), ends[0])
    assert same(average_parts(parts, weights=(0.0, 1.0)), ends[1])
    mean_weights = average_parts(parts)
    name = "bert.encoder.layer.0.output.dense.weight"
    start = load_file(bert_folder / "model.safetensors")[name]
    first_weight, second_weight = (end[name] for end in ends)
    torch.testing.assert_close(mean_weights[name], (first_weight + second_weight) / 2)
    # The sum of both vectors; the head, which has no start, is their mean.
    sum_weights = average_parts(parts, weights=(1.0, 1.0))
    torch.testing.assert_close(sum_weights[name], first_weight + second_weight - start, rtol=1e-4, atol=1e-5)
    assert same({"head": sum_weights["classifier.weight"]}, {"head": mean_weights["classifier.weight"]})
    language = Averaged(id="qab", folder=parts[1].folder, has_head=False)
    with_language = average_parts((parts[0], language), weights=(1.0, 1.0))
    assert same({"encoder": with_language[name]}, {"encoder": sum_weights[name]})
    assert torch.equal(with_language["classifier.weight"], ends[0]["classifier.weight"])
    # TIES of one whole vector, and DARE of nothing, are that model within rounding.
    torch.testing.assert_close(average_parts(parts[:1], density=1.0)[name], first_weight)


def test_ids_of_ties_have_a_second_version_and_others_stay():
    assert identity(Average(weights=(0.5, 0.5))) == "111e22c86640"
    assert identity(Average(dropped=0.5)) == "9f2602f687ed"
    assert content(Average(density=0.2))["version"] == 2
    assert "outer_weights" not in content(Average(weights=(0.5, 0.5)))


def test_rows_hold_the_dev_scores_of_the_parts_and_of_the_average(parts, make_setting):
    training = Average(weights=(40.0, -39.0)).train(replace(make_setting(), parts=parts))
    keys = [(row["part"], row["weight"], row["language"]) for row in training.rows]
    assert keys == [("1", 40.0, "en"), ("2", -39.0, "en"), ("", None, "en")]
    first_score, second_score, score = (row["score"] for row in training.rows)
    assert score < min(first_score, second_score) - 0.01
    assert len(training.warnings) == 1
    assert Average().train(replace(make_setting(), parts=[parts[0], parts[0]])).warnings == ()


def test_an_average_that_is_worse_than_all_its_models_is_warned_of():
    from isogloss.features.averaging.weight_arithmetic import _warnings

    def row(score):
        return {"language": "en", "metric": "accuracy", "score": score}

    (text,) = _warnings([row(0.8), row(0.9)], [row(0.3)])
    assert "accuracy" in text
    assert not _warnings([row(0.8), row(0.9)], [row(0.795)])


@pytest.mark.parametrize("strange", ["layers", "subwords", "width"])
def test_what_comes_from_another_encoder_is_refused(strange, parts, make_setting, bert_folder, tmp_path):
    from transformers import AutoConfig, AutoModel

    config, tokenizer = AutoConfig.from_pretrained(bert_folder), load_tokenizer(bert_folder)
    if strange == "layers":
        config.num_hidden_layers += 1
    if strange == "width":
        config.intermediate_size *= 2
    if strange == "subwords":
        tokenizer.add_tokens(["zebra"])
    save_model(AutoModel.from_config(config), tokenizer, tmp_path / "strange")
    strange_part = Averaged(id="x", folder=str(tmp_path / "strange"), has_head=False)
    message = {"layers": "is a bert of 4 layers", "subwords": "other subwords", "width": "has the shape"}
    with pytest.raises(ModelError, match=message[strange]):
        Average().train(replace(make_setting(), parts=(parts[0], strange_part)))


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
    average_runs = [
        run for run in averages(runs) if len({part.name for part in run.parts}) == len(run.source) == 1
    ]
    assert [
        (run.seed, sorted(part.seed for part in run.parts)) for run in average_runs if not run.target
    ] == [
        (3, [1, 3]),
        (4, [0, 4]),
    ]
    few_shot_runs = [run for run in runs if run.name == "fine-tune" and run.start]
    assert [run.start.seed for run in few_shot_runs] == [run.seed for run in few_shot_runs] == [3, 4]
    assert average_runs[0].label == "average of source-only, 2 seeds"
    assert (average_runs[0].source, average_runs[0].target, average_runs[0].method.weights) == (
        ("qaa",),
        (),
        None,
    )


def test_neither_order_nor_names_change_what_an_average_is(tmp_path):
    order = {"grid__method__3__of": ["bilingual", "source-only"], "grid__method__3__weights": [0.25, 0.75]}
    renamed_recipe = RECIPE.replace('label = "point"', 'label = "other"')
    first_ids, second_ids, third_ids = (
        {identity(run) for run in averages(plan_average(tmp_path, text, **changes).runs)}
        for text, changes in ((RECIPE, {}), (RECIPE, order), (renamed_recipe, {}))
    )
    assert first_ids == second_ids == third_ids
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
    fields = {f"grid__method__2__{name}": value for name, value in changes.items()}
    with pytest.raises(ConfigError, match=message):
        plan_average(tmp_path, **fields)


def test_outer_weights_are_planned_with_their_parts(tmp_path):
    """The order of the parts in a recipe changes nothing, and seeds share a weight."""
    swap = {"weights": [1.0, 0.0], "outer_weights": [0.0, 1.0], "lowest": 1, "highest": 1}
    turned = {"weights": [0.0, 1.0], "outer_weights": [1.0, 0.0], "lowest": 1, "highest": 1}

    def plan_swap(of, fields):
        fields = {f"grid__method__4__{name}": value for name, value in {"of": of, **fields}.items()}
        return [run for run in averages(plan_average(tmp_path, **fields).runs) if run.method.outer_weights]

    swaps = plan_swap(["source-only", "qab"], swap)
    turned_swaps = plan_swap(["qab", "source-only"], turned)
    assert [identity(run) for run in swaps] == [identity(run) for run in turned_swaps]
    for run in swaps:
        model = [part.name == "fine-tune" for part in run.parts]
        assert run.method.weights == tuple(float(is_model) for is_model in model)
        assert run.method.outer_weights == tuple(float(not is_model) for is_model in model)
    with says(ConfigError, "outer_weights", "1", "2"):
        plan_swap(["source-only", "qab"], {**swap, "outer_weights": [1.0]})
    with says(ConfigError, "lowest = 3", "highest = 1", "4 layers"):
        plan_swap(["source-only", "qab"], {**swap, "lowest": 3})


def test_a_swap_of_models_in_folders_is_the_function_s(parts, make_setting, tmp_path):
    swap = {"weights": (1.0, 0.0), "outer_weights": (0.0, 1.0), "lowest": 1, "highest": 1}
    trained = Average(**swap).train(replace(make_setting(), parts=parts))
    models = [TASKS["upos"].head(part.folder, seed=None) for part in parts]
    expected = isogloss.average(models, **swap).state_dict()
    assert equal(trained.model.state_dict(), expected)


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
    first_study = isogloss.run(tmp_path / "averages.toml", out=tmp_path / "one", jobs=1, report=False)
    assert not first_study.outcome.failed
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
        (record.needs[0], row["language"]): row["score"]
        for record in select_kind("measure", first_study.records)
        if record.title.startswith("scores")
        for row in record.rows
        if row.get("main")
    }
    (path,) = (
        record
        for record in select_kind("measure", first_study.records)
        if record.title.startswith("interpolation")
    )
    ends = {row["language"]: row["score"] for row in path.rows if row["alpha"] == 1}
    assert ends == {language: scores[folder.name, language] for language in ("qaa", "qab")}
    (few_shot_record,) = (record for record in first_study.records if record.title.startswith("few-shot"))
    assert few_shot_record.title.startswith("few-shot (shots=0) after average of source-only, 2 seeds")
    assert {scores[few_shot_record.id, language] for language in ends} == {
        scores[folder.name, language] for language in ends
    }
    model = isogloss.load_model(folder)
    model.export(tmp_path / "exported")
    weights = load_file(tmp_path / "exported" / "model.safetensors")
    (needs,) = (record.needs for record in first_study.records if record.id == folder.name)
    models = [load_file(tmp_path / "one" / run_id / "model" / "model.safetensors") for run_id in needs]
    for name, weight in weights.items():
        torch.testing.assert_close(
            weight, torch.stack([part[name] for part in models if name in part]).mean(0)
        )


# Epochs of one training


@pytest.mark.nightly
@pytest.mark.slow
def test_the_last_epochs_are_averaged_also_after_an_interruption(make_setting, tmp_path, monkeypatch):
    from isogloss.methods.plain import SourceOnly
    from isogloss.training.batching import Bucketed
    from isogloss.training.fit import _Training

    weights_by_epoch: list[dict[str, torch.Tensor]] = []
    evaluate = _Training._evaluate

    def watch_evaluation(self, done):
        weights_by_epoch.append(weights(self.model))
        evaluate(self, done)

    def train(name, count):
        setting = make_setting(folder=tmp_path / name, epochs=3, averaged_epochs=count)
        return SourceOnly().train(setting)

    with monkeypatch.context() as patch:
        patch.setattr(_Training, "_evaluate", watch_evaluation)
        whole_training = train("whole", 2)
    expected = {
        name: torch.lerp(weights_by_epoch[1][name], weight, 0.5)
        for name, weight in weights_by_epoch[2].items()
    }
    assert equal(whole_training, expected)
    assert [row["epoch"] for row in whole_training.rows if row.get("chosen")] == [2, 3]
    assert equal(train("last", 1), weights_by_epoch[2])
    with interrupt_batches(Bucketed, monkeypatch, at=-1):
        train("cut", 2)
    assert equal(train("cut", 2), whole_training)
    setting_without_dev = make_setting(folder=tmp_path / "undecided", epochs=3, averaged_epochs=2)
    # No dev set has a part in it.
    assert equal(fine_tune(setting_without_dev, Reads(train=("en",))), whole_training)


def test_more_epochs_than_there_are_cannot_be_averaged(tmp_path):
    with pytest.raises(ConfigError, match=r"averaged_epochs: .*2.*1"):
        plan_average(tmp_path, grid__optimization__averaged_epochs=2)
    with pytest.raises(ConfigError, match="patience:"):
        plan_average(tmp_path, grid__optimization__averaged_epochs=1, grid__optimization__patience=1)
