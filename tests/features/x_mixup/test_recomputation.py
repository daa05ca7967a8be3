"""Layers that are recomputed for the gradients give the same results, without side effects."""

from contextlib import ExitStack, nullcontext

import pytest
import torch
from torch import nn

from isogloss.core.errors import ModelError
from isogloss.encoders import FAMILIES
from isogloss.encoders.added.active_language import active_language
from isogloss.encoders.computation import recomputed_layers
from isogloss.encoders.mixup import Mixup, mixing
from isogloss.features.x_mixup.mixed_model import last_states
from networks import fresh, hooks, modular, stir_modules

IDS = torch.tensor([[2, 7, 9, 11, 3], [2, 8, 8, 10, 3]])


def gradients(model, *, anew, languages=(), mixup=None):
    """Compute gradients after all contexts of the forward pass. Also return the recorded states."""
    model.train().zero_grad()
    torch.manual_seed(0)
    with ExitStack() as contexts:
        if anew:
            contexts.enter_context(recomputed_layers(model))
        if languages:
            contexts.enter_context(active_language(model, languages))
        trace = contexts.enter_context(mixing(model, mixup, None)) if mixup else None
        states = contexts.enter_context(last_states(model))
        model(input_ids=IDS)
    (last_state,) = states
    hooks_before = hooks(model)
    last_state.square().mean().backward()
    assert hooks(model) == hooks_before
    grads = {
        name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None
    }
    ratio = (
        {name: weight.grad.clone() for name, weight in mixup.ratio_module.named_parameters()} if mixup else {}
    )
    return {"": last_state.detach(), **grads, **ratio, **({"trace": trace.ratios} if trace else {})}


def assert_same(left, right):
    assert left.keys() == right.keys()
    assert all(torch.equal(left[name], right[name]) for name in left)


def test_gradients_are_those_of_a_single_pass_to_the_bit(encoder_folder):
    once, anew = (gradients(fresh(encoder_folder), anew=anew) for anew in (False, True))
    assert_same(once, anew)


def test_each_layer_runs_twice_and_hooks_around_it_once(encoder_folder):
    model = fresh(encoder_folder)
    family = FAMILIES[model.config.model_type]
    fields = {"around": 0, "inside": 0}

    def counting(name):
        return lambda *_: fields.update({name: fields[name] + 1})

    for site in family.sites(model):
        model.get_submodule(site.block).register_forward_hook(counting("around"))
        model.get_submodule(site.feed_forward_in).register_forward_hook(counting("inside"))
    gradients(model, anew=True)
    layers = len(family.sites(model))
    assert fields == {"around": layers, "inside": 2 * layers}
    with recomputed_layers(model) as index:
        assert index == layers
    assert not any("forward" in vars(model.get_submodule(site.block)) for site in family.sites(model))


def test_less_is_kept_for_the_gradients(encoder_folder):
    def count_kept(*, anew):
        model = fresh(encoder_folder).train()
        numbers = []
        counted_hooks = torch.autograd.graph.saved_tensors_hooks(
            lambda tensor: numbers.append(tensor.numel()) or tensor, lambda item: item
        )
        with counted_hooks, recomputed_layers(model) if anew else nullcontext():
            model(input_ids=IDS)
        return sum(numbers)

    assert 0 < count_kept(anew=True) < count_kept(anew=False) / 3


@pytest.mark.parametrize("kind", ["feed-forward", "attention", "adapter", "shared-adapter"])
def test_a_layer_runs_again_in_the_languages_of_the_first_time(bert_folder, kind):
    def compute_gradients(languages, *, anew):
        return gradients(stir_modules(modular(fresh(bert_folder), kind)), anew=anew, languages=languages)

    for languages in (("sw",), ("sw", "en")):
        assert_same(compute_gradients(languages, anew=False), compute_gradients(languages, anew=True))


@pytest.mark.parametrize("kind", [None, "attention", "adapter"])
@pytest.mark.parametrize("layer", [1, 3])
def test_a_layer_that_mixes_mixes_again(bert_folder, kind, layer):
    def compute_mixed_gradients(*, anew):
        model = fresh(bert_folder)
        if kind:
            model = stir_modules(modular(model, kind))
        return gradients(model, anew=anew, languages=("en", "sw") if kind else (), mixup=Mixup(layer=layer))

    once = compute_mixed_gradients(anew=False)
    anew = compute_mixed_gradients(anew=True)
    assert_same(once, anew)
    assert once["trace"].shape == (1,)
    assert not torch.equal(once[""], gradients(fresh(bert_folder), anew=False)[""])


def test_a_model_without_layers_is_refused():
    refusal = pytest.raises(ModelError, match=r"^Linear: gradient checkpointing .* gradient_checkpointing\.$")
    with refusal, recomputed_layers(nn.Linear(2, 2)):
        raise AssertionError


def test_layers_are_restored_after_an_error(bert_folder):
    model = fresh(bert_folder)
    with pytest.raises(KeyboardInterrupt), recomputed_layers(model):
        raise KeyboardInterrupt
    assert "forward" not in vars(model.encoder.layer[0])
