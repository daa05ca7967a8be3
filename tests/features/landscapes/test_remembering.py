"""States that are computed once: equal scores for every family and task, and as many passes as batches."""

from collections import Counter
from functools import partial

import pytest
import torch

from isogloss.core.run_parts import Optimization, Updates
from isogloss.diagnostics.weight_space import parameter_names, weights_of
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.landscapes import scored_points
from isogloss.features.landscapes.diagnostic import Interpolation, Plane
from isogloss.features.landscapes.remembering import RememberedStates
from isogloss.training.evaluation import evaluation
from measuring import measure_setting
from task_examples import SMALL_TASKS, examples_of

FLOAT32 = Optimization(updates=Updates(precision="float32"))


def evaluation_of(name, folder, language=""):
    return evaluation(
        SMALL_TASKS[name], examples_of(name), load_tokenizer(folder), FLOAT32, language=language
    )


def count_passes(model):
    """Count how often the encoder of a model computes."""
    passes = Counter()
    model.base_model.register_forward_hook(lambda *_: passes.update(["calls"]))
    inner = next(module for name, module in model.base_model.named_modules() if "embed" in name.lower())
    inner.register_forward_hook(lambda *_: passes.update(["computed"]))
    return passes


@pytest.mark.parametrize("name", SMALL_TASKS)
def test_scores_with_remembered_states_are_those_without(name, bert_folder):
    _check_equal(name, bert_folder)


@pytest.mark.each_value
@pytest.mark.parametrize("name", ["upos", "nli"])
def test_scores_are_equal_in_every_family(name, any_language_folder):
    _check_equal(name, any_language_folder)


@pytest.mark.nightly
@pytest.mark.parametrize("name", SMALL_TASKS)
def test_scores_are_equal_in_every_family_and_task(name, any_language_folder):
    _check_equal(name, any_language_folder)


def _check_equal(name, folder):
    model = SMALL_TASKS[name].head(folder, seed=0)
    read = evaluation_of(name, folder)
    states = RememberedStates()
    with states.recall(model):
        old_scores = read.scores(model)
    assert states.stored > 0
    assert "forward" not in vars(model.base_model)
    head = weights_of(model, parameter_names(model, "head"))
    for number, weight in enumerate(head):
        weight.add_(torch.randn(weight.shape, generator=torch.Generator().manual_seed(number)))
    with states.recall(model):
        new_scores = read.scores(model)
    expected = read.scores(model)
    assert all(map(torch.equal, new_scores, expected))
    assert not any(map(torch.equal, new_scores, old_scores))


@pytest.mark.parametrize("diagnostic", [Interpolation, Plane])
def test_only_the_head_moves_and_the_encoder_computes_once(diagnostic, bert_folder):
    names = ("source-only", "bilingual", "target-only")[: 2 if diagnostic is Interpolation else 3]
    models = [SMALL_TASKS["upos"].head(bert_folder, seed=seed) for seed in range(len(names))]
    evaluations = {language: evaluation_of("upos", bert_folder, language) for language in ("en", "de")}
    setting = measure_setting(models, evaluations.__getitem__)
    passes = count_passes(models[0])
    rows = diagnostic(between=names, part="head", alphas=(0.0, 0.5, 1.0)).measure(setting)
    batches = sum(len(read.batches) for read in evaluations.values())
    points = 3 if diagnostic is Interpolation else 9
    assert passes == {"calls": points * batches, "computed": batches}
    scores = {row.score for row in rows}
    assert len(scores) > 1


def test_a_path_of_the_head_scores_each_point_as_one_without_memory(bert_folder, monkeypatch):
    models = [SMALL_TASKS["upos"].head(bert_folder, seed=seed) for seed in (0, 1)]
    setting = measure_setting(models, lambda language: evaluation_of("upos", bert_folder, language))
    diagnostic = Interpolation(between=("source-only", "bilingual"), part="head", alphas=(-0.5, 0.3, 1.5))
    expected_rows = diagnostic.measure(setting)
    monkeypatch.setattr(scored_points, "RememberedStates", partial(RememberedStates, largest=0))
    passes = count_passes(models[0])
    assert diagnostic.measure(setting) == expected_rows
    assert passes["calls"] == passes["computed"]


def test_languages_and_other_inputs_are_not_mixed_up(bert_folder):
    model = SMALL_TASKS["nli"].head(bert_folder, seed=0).eval()
    passes = count_passes(model)
    states = RememberedStates()
    ids = torch.tensor([[2, 5, 6, 3]])
    calls = [
        ("en", {"input_ids": ids}),
        ("en", {"input_ids": ids.clone()}),
        ("de", {"input_ids": ids}),
        ("en", {"input_ids": ids, "attention_mask": torch.tensor([[1, 1, 1, 0]])}),
        ("en", {"input_ids": ids.T}),
        ("en", {"input_ids": ids, "output_hidden_states": True}),
    ]
    for language, inputs in calls:
        with torch.no_grad(), states.recall(model, language=language):
            model.base_model(**inputs)
    assert passes == {"calls": 6, "computed": 5}


def test_nothing_is_remembered_while_training_or_beyond_the_bytes_allowed(bert_folder):
    model = SMALL_TASKS["nli"].head(bert_folder, seed=0).train()
    passes = count_passes(model)
    ids = torch.tensor([[2, 5, 6, 3]])
    for states in (RememberedStates(), RememberedStates(largest=100)):
        for _ in range(2):
            with torch.no_grad(), states.recall(model):
                model(input_ids=ids)
        assert states.stored == 0
        model.eval()
    assert passes == {"calls": 4, "computed": 4}


def test_a_replaced_forward_is_put_back(bert_folder):
    model = SMALL_TASKS["nli"].head(bert_folder, seed=0).eval()
    own_forward = model.base_model.forward
    model.base_model.forward = own_forward
    with pytest.raises(ZeroDivisionError), RememberedStates().recall(model):
        raise ZeroDivisionError
    assert vars(model.base_model)["forward"] is own_forward
