import pytest
import torch
from measuring import Toy, equal, weights
from torch import nn

from isogloss.core.errors import ModelError
from isogloss.diagnostics.weights import PARTS, chosen_parameters, standing_in, weights_of
from isogloss.tasks import TASKS


def stand_ins(model, value=1.0):
    return {
        name: nn.Parameter(torch.full_like(weight, value), requires_grad=False)
        for name, weight in model.named_parameters()
    }


def parameters(model):
    return [(name, id(weight), weight.requires_grad) for name, weight in model.named_parameters()]


@pytest.mark.parametrize("task", ["upos", "nli"])
def test_encoder_and_head_are_all(encoder_folder, task):
    model = TASKS[task].head(encoder_folder, seed=0)
    every, encoder, head = (chosen_parameters(model, part) for part in PARTS)
    assert every == [name for name, _ in model.named_parameters()]
    assert sorted(encoder + head) == sorted(every)
    assert {f"{model.base_model_prefix}.{name}" for name, _ in model.base_model.named_parameters()} == set(
        encoder
    )
    assert {"classifier", "pre_classifier", "pooler", "head"} >= {name.split(".")[0] for name in head} > set()


def test_weights_are_given_in_the_order_of_their_names():
    model = Toy(0)
    names = chosen_parameters(model, "all")
    for order in (names, names[::-1]):
        assert all(
            torch.equal(weight, model.get_parameter(name))
            for name, weight in zip(order, weights_of(model, order), strict=True)
        )


def test_models_that_do_not_match_are_an_error_that_names_the_parameter():
    with pytest.raises(ModelError, match=r"one has no parameter 'encoder\.2\.bias'. Both must come from one"):
        weights_of(Toy(0), ["encoder.0.bias", "encoder.2.bias"])


def test_stand_ins_are_used_and_leave_nothing_behind():
    model = Toy(0)
    before, held, state = weights(model), parameters(model), list(model.state_dict())
    x = torch.ones(2, 4)
    own = model(x)
    with standing_in(model, stand_ins(model)):
        assert not torch.equal(model(x), own)
        assert all(bool((weight == 1).all()) for weight in model.parameters())
        assert list(model.state_dict()) == state
    assert equal(weights(model), before)
    assert parameters(model) == held
    assert torch.equal(model(x), own)
    assert all(not module._forward_pre_hooks for module in model.modules())


def test_stand_ins_leave_nothing_behind_after_an_error():
    model = Toy(0)
    before, held = weights(model), parameters(model)
    with pytest.raises(KeyboardInterrupt), standing_in(model, stand_ins(model)):
        raise KeyboardInterrupt
    assert equal(weights(model), before)
    assert parameters(model) == held


def test_a_stand_in_that_cannot_take_its_place_leaves_nothing_behind():
    model = Toy(0)
    held = parameters(model)
    wrong = {**stand_ins(model), "classifier.bias": torch.ones(2)}
    with pytest.raises(TypeError), standing_in(model, wrong):
        pytest.fail("a tensor is no parameter")
    assert parameters(model) == held


def test_stand_ins_can_move_while_they_stand_in():
    model = Toy(0)
    moving = stand_ins(model, 0.0)
    with standing_in(model, moving), torch.no_grad():
        assert not model(torch.ones(1, 4)).any()
        moving["classifier.bias"].fill_(3.0)
        assert (model(torch.ones(1, 4)) == 3).all()
