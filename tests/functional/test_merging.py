"""Merges equal their formulas: as many changes as requested in every type of numbers, scaled as stated."""

import pytest
import torch
from torch import nn

import isogloss
from any_models import make_model
from each import each
from isogloss.core.errors import ConfigError, ModelError
from says import says
from trained import equal

TYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
FAMILIES = ("bert", "xlm-roberta", "distilbert", "gpt2", "t5")


def steps_from(origin, distinct, seed):
    """Return a copy of a model, each weight one of few different steps away, as in low precision."""
    moved_model = type(origin)(origin[0].in_features, origin[0].out_features).to(origin[0].weight.dtype)
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight, start in zip(moved_model.parameters(), origin.parameters(), strict=True):
            steps = torch.randint(1, distinct + 1, start.shape, generator=random)
            signs = torch.randint(0, 2, start.shape, generator=random) * 2 - 1
            weight.copy_(start + (steps * signs).to(start) / 64)
    return moved_model


class Ones(nn.Sequential):
    def __init__(self, inner=7, outer=13):
        super().__init__(nn.Linear(inner, outer))
        nn.init.ones_(self[0].weight)
        nn.init.ones_(self[0].bias)


def flat(model):
    return torch.cat([weight.detach().double().flatten() for weight in model.parameters()])


@pytest.mark.parametrize("distinct", [1, 2, 9])
@pytest.mark.parametrize("density", [0.01, 0.2, 0.5, 0.75, 1.0])
@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_exactly_the_share_that_is_named_is_kept_however_many_changes_are_equal(kind, density, distinct):
    origin = Ones().to(kind)
    model = steps_from(origin, distinct, seed=0)
    merged_average = isogloss.average([model], origin=origin, density=density)
    changes = (flat(model) - flat(origin)).abs()
    is_kept = flat(merged_average) != flat(origin)
    assert int(is_kept.sum()) == max(1, round(density * len(changes)))
    assert changes[is_kept].min() >= changes[~is_kept].max() if not is_kept.all() else True
    assert torch.equal(flat(merged_average)[is_kept], flat(model)[is_kept])


def ties_of(models, weights, origin, density, scale):
    """Merge by Yadav et al. (2023), Algorithm 1, one number after the other."""
    start = flat(origin).tolist()
    vectors = [(flat(model) - flat(origin)).tolist() for model in models]
    count = max(1, round(density * len(start)))
    for vector in vectors:
        order = sorted(range(len(vector)), key=lambda place: (-abs(vector[place]), place))
        for place in order[count:]:
            vector[place] = 0.0
    merged_value = []
    for place, value in enumerate(start):
        changes = [(weight, vector[place]) for weight, vector in zip(weights, vectors, strict=True)]
        sign = sum(weight * change for weight, change in changes)
        agreeing = [(weight, change) for weight, change in changes if change * sign > 0]
        total = sum(weight for weight, _ in agreeing)
        mean = sum(weight * change for weight, change in agreeing) / total if agreeing else 0.0
        merged_value.append(value + scale * mean)
    return torch.tensor(merged_value, dtype=torch.float64)


@pytest.mark.parametrize("scale", [None, 1.0, 0.3, -1.0])
@pytest.mark.parametrize("weights", [None, (1.0, 1.0, 1.0), (0.5, 2.0, 1.0)])
@pytest.mark.parametrize("distinct", [2, 50])
def test_ties_is_algorithm_1(distinct, weights, scale):
    origin = Ones().double()
    models = [steps_from(origin, distinct, seed) for seed in (1, 2, 3)]
    average = isogloss.average(models, weights, origin=origin, density=0.4, scale=scale)
    inputs = weights or (1 / 3,) * 3
    expected = ties_of(models, inputs, origin, 0.4, sum(inputs) if scale is None else scale)
    torch.testing.assert_close(flat(average), expected)


def test_a_scale_of_1_makes_weights_relative_as_in_other_libraries():
    origin = Ones().double()
    models = [steps_from(origin, 9, seed) for seed in (1, 2)]
    tensors = [
        flat(isogloss.average(models, weights, origin=origin, density=0.2, scale=1.0))
        for weights in ((1, 1), (0.5, 0.5), (30, 30))
    ]
    for other_tensor in tensors[1:]:
        torch.testing.assert_close(other_tensor, tensors[0])
    torch.testing.assert_close(tensors[0], flat(isogloss.average(models, origin=origin, density=0.2)))


def test_a_scale_without_density_is_refused():
    with says(ConfigError, "scale", "0.5", "density"):
        isogloss.average([Ones(), Ones()], scale=0.5)


@pytest.mark.each_value
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_means_and_task_vectors_are_sums_within_one_rounding(kind, family):
    origin, _ = make_model(family)
    models = [isogloss.move(origin, isogloss.random_direction(origin, seed=seed), 0.1) for seed in (1, 2)]
    origin = origin.to(kind)
    models = [model.to(kind) for model in models]
    widest = 0.0 if kind == torch.float64 else torch.finfo(kind).eps
    for weights, factors in ((None, (0.5, 0.5)), ((1, 1), (1, 1)), ((0.25, 0.75), (0.25, 0.75))):
        result = isogloss.average(models, weights, origin=origin).state_dict()
        states = [model.state_dict() for model in models]
        floating = {name: part for name, part in origin.state_dict().items() if part.is_floating_point()}
        for name, start in each(floating.items()):
            remaining_differences = 1 - sum(factors)
            expected = sum(
                (factor * state[name].double() for factor, state in zip(factors, states, strict=True)),
                start=remaining_differences * start.double(),
            )
            assert result[name].dtype == kind
            torch.testing.assert_close(result[name].double(), expected, rtol=widest + 1e-9, atol=1e-6)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_the_same_changes_are_dropped_at_random_by_the_seed(share):
    origin = Ones().double()
    model = steps_from(origin, 50, seed=0)
    merged_tensors = [
        flat(isogloss.average([model], origin=origin, dropped=share, seed=seed)) for seed in (3, 3, 4)
    ]
    assert torch.equal(merged_tensors[0], merged_tensors[1]) and (
        torch.equal(merged_tensors[0], merged_tensors[2]) == (share == 0)
    )
    changes = flat(model) - flat(origin)
    is_kept = merged_tensors[0] != flat(origin)
    torch.testing.assert_close(merged_tensors[0][is_kept], (flat(origin) + changes / (1 - share))[is_kept])


def swap_layers(task_model, language_model, lowest, highest):
    """Return the tensors of a swap by the names that transformers gives to the layers of BERT."""
    layers = task_model.config.num_hidden_layers
    outer = {*range(lowest), *range(layers - highest, layers)}
    names = [f"bert.encoder.layer.{layer}." for layer in outer]
    names += ["bert.embeddings."] if lowest else []
    names += ["bert.pooler."] if highest else []
    language = language_model.state_dict()
    return {
        name: language[name] if name.startswith(tuple(names)) else tensor
        for name, tensor in task_model.state_dict().items()
    }


def moved_models(family="bert", auto="AutoModelForSequenceClassification", **changes):
    origin, _ = make_model(family, auto, **changes)
    return origin, [
        isogloss.move(origin, isogloss.random_direction(origin, seed=seed), 0.1) for seed in (1, 2)
    ]


@pytest.mark.parametrize(("lowest", "highest"), [(1, 1), (0, 2), (2, 0), (1, 2)])
def test_a_layer_swap_has_the_language_model_s_outer_layers(lowest, highest):
    _, models = moved_models(num_hidden_layers=4)
    swapped = isogloss.average(
        models, (1, 0), outer_weights=(0, 1), lowest=lowest, highest=highest
    ).state_dict()
    expected = swap_layers(*models, lowest, highest)
    assert equal(swapped, expected)
    assert not equal(swapped, models[0].state_dict())


@pytest.mark.parametrize("options", [{}, {"density": 0.3}, {"dropped": 0.4}])
def test_equal_outer_weights_change_nothing(options):
    origin, models = moved_models(num_hidden_layers=3)
    plain = isogloss.average(models, (1, 0.5), origin=origin, **options)
    same = isogloss.average(
        models, (1, 0.5), origin=origin, outer_weights=(1, 0.5), lowest=1, highest=1, **options
    )
    assert equal(plain.state_dict(), same.state_dict())


@pytest.mark.parametrize(
    ("lowest", "highest", "expected"), [(1, 0, "ohmmm"), (0, 1, "mmmho"), (1, 1, "ohmho")]
)
def test_layers_of_transition_have_the_mean_of_both_weights(lowest, highest, expected):
    _, models = moved_models(num_hidden_layers=5)
    swapped = isogloss.average(
        models, (1, 0), outer_weights=(0, 1), lowest=lowest, highest=highest, transition=1
    ).state_dict()
    for layer, kind in each(enumerate(expected)):
        name = f"bert.encoder.layer.{layer}.output.dense.weight"
        task, language = (model.state_dict()[name] for model in models)
        torch.testing.assert_close(
            swapped[name], {"m": task, "o": language, "h": (task + language) / 2}[kind]
        )


def test_each_layer_range_adds_its_vectors_to_the_origin():
    origin, models = moved_models(num_hidden_layers=3)
    weights = {"middle": (1.0, 0.25), "outer": (0.0, 2.0)}
    result = isogloss.average(
        models, weights["middle"], origin=origin, outer_weights=weights["outer"], lowest=1
    ).state_dict()
    for layer, kind in ((0, "outer"), (1, "middle"), (2, "middle")):
        name = f"bert.encoder.layer.{layer}.output.dense.weight"
        start = origin.state_dict()[name]
        vectors = [model.state_dict()[name] - start for model in models]
        expected = start + sum(w * vector for w, vector in zip(weights[kind], vectors, strict=True))
        torch.testing.assert_close(result[name], expected, rtol=1e-4, atol=1e-6)


def test_an_encoder_that_was_trained_on_a_language_has_no_weight_in_the_head():
    origin, (model, _) = moved_models(num_hidden_layers=3)
    result = isogloss.average([model], (1,), origin=origin.base_model, outer_weights=(0,), highest=1)
    assert torch.equal(result.classifier.weight, model.classifier.weight)
    last = "encoder.layer.2.output.dense.weight"
    assert torch.equal(result.base_model.state_dict()[last], origin.base_model.state_dict()[last])


@pytest.mark.parametrize("family", ["xlm-roberta", "distilbert", "gpt2"])
def test_layers_of_other_families_are_swapped(family):
    _, models = moved_models(family, "AutoModel", num_hidden_layers=3)
    swapped = isogloss.average(models, (1, 0), outer_weights=(0, 1), lowest=1, highest=1)
    states = [model.state_dict() for model in (swapped, *models)]
    from_model = [name for name in states[0] if torch.equal(states[0][name], states[1][name])]
    from_language = [name for name in states[0] if torch.equal(states[0][name], states[2][name])]
    assert set(from_model) | set(from_language) == set(states[0])
    assert any(".1." in name for name in set(from_model) - set(from_language))
    assert not any(".1." in name for name in set(from_language) - set(from_model))


OUTER = {
    "weights without layers": ({"outer_weights": (0, 1)}, ("outer_weights", "lowest", "highest")),
    "layers without weights": ({"lowest": 1}, ("outer_weights", "lowest = 1")),
    "all layers": ({"outer_weights": (0, 1), "lowest": 1, "highest": 2}, ("lowest = 1", "highest = 2", "3")),
    "a transition without weights": ({"transition": 1}, ("transition", "outer_weights")),
    "weights of one model": ({"outer_weights": (1,), "lowest": 1}, ("2", "1", "outer_weights")),
    "no origin": ({"outer_weights": (1, 1), "lowest": 1}, ("1 and 2", "origin")),
    "votes below 0": ({"outer_weights": (-1, 1), "lowest": 1, "density": 0.2}, ("-1", "density")),
}


@pytest.mark.parametrize("case", OUTER)
def test_outer_weights_that_do_not_fit_are_refused(case):
    options, facts = OUTER[case]
    _, models = moved_models(num_hidden_layers=3)
    with says(ConfigError, *facts):
        isogloss.average(models, (1, 0), **options)


def test_modules_without_layers_have_no_outer_weights():
    with says(ModelError, "outer_weights", "Ones"):
        isogloss.average([Ones(), Ones()], (1, 0), outer_weights=(0, 1), lowest=1)
