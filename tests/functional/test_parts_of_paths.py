"""Paths and planes along which a part of the models moves."""

from copy import deepcopy

import pytest
import torch
from torch import nn

import isogloss
from each import each
from isogloss.core.errors import ConfigError
from isogloss.diagnostics.weight_space import parameter_names
from isogloss.tasks import TASKS

INPUTS = {"input_ids": torch.tensor([[2, 5, 6, 7, 3]])}


@pytest.fixture(scope="module")
def ends(bert_folder):
    start, end = (TASKS["upos"].head(bert_folder, seed=seed) for seed in (0, 1))
    with torch.no_grad():
        for weight in end.base_model.parameters():
            weight.add_(0.1)
    return start, end


def logit(model):
    return float(model(**INPUTS).logits[0, 1, 0])


@pytest.mark.parametrize("part", ["encoder", "head"])
def test_a_part_moves_and_the_rest_is_that_of_the_start(ends, part):
    start, end = ends
    scores = isogloss.path(start, end, logit, alphas=[0.0, 0.5, 1.0], part=part)["score"]
    for alpha in each(scores.index):
        expected = deepcopy(start)
        parameters = dict(expected.named_parameters())
        other_parameters = dict(end.named_parameters())
        with torch.no_grad():
            for name in parameter_names(expected, part):
                parameters[name].lerp_(other_parameters[name], alpha)
            assert scores[alpha] == pytest.approx(logit(expected), abs=1e-6)


def test_a_plane_of_the_head_has_paths_on_its_axes_and_one_pass_per_input(ends):
    start, end = ends
    third = deepcopy(end)
    with torch.no_grad():
        for weight in third.classifier.parameters():
            weight.mul_(3)
    computed_value = []
    hook = start.base_model.embeddings.register_forward_hook(lambda *_: computed_value.append(1))
    plane = isogloss.plane(start, end, third, logit, alphas=[0.0, 1.0], part="head")["score"].unstack()
    hook.remove()
    assert len(computed_value) == 1
    for column, other_end in ((plane[0.0], end), (plane.loc[0.0], third)):
        path = isogloss.path(start, other_end, logit, alphas=[0.0, 1.0], part="head")["score"]
        assert column.tolist() == path.tolist()


def test_the_callers_models_stay_as_they_are(ends):
    weights_before = [{name: weight.clone() for name, weight in model.state_dict().items()} for model in ends]
    isogloss.path(*ends, logit, alphas=[0.3], part="head")
    for model, weights in zip(ends, weights_before, strict=True):
        assert "forward" not in vars(model.base_model)
        assert all(torch.equal(weight, weights[name]) for name, weight in model.state_dict().items())


@pytest.mark.parametrize("part", ["encoder", "head"])
def test_a_part_of_a_model_without_a_head_is_refused(ends, part):
    for model in (nn.Linear(2, 1), ends[0].base_model):
        with pytest.raises(ConfigError, match=rf"path: .*'{part}'.*{type(model).__name__}"):
            isogloss.path(model, deepcopy(model), lambda _: 0.0, part=part)


@pytest.mark.parametrize("name", ["path", "plane", "score_parts"])
def test_a_score_that_fails_leaves_gradients_on(name):
    """An iterator that is not finished must not keep the caller's thread from computing gradients."""
    models = [torch.nn.Linear(2, 2) for _ in range(3)]

    def fail(model):
        assert not torch.is_grad_enabled()
        raise ZeroDivisionError("a score")

    with pytest.raises(ZeroDivisionError) as error:
        getattr(isogloss, name)(*models[: 3 if name == "plane" else 2], fail)
    assert torch.is_grad_enabled()
    assert error.traceback  # It holds the frames of the iterator.
