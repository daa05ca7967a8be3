"""Models that differ in what does not move, or in names, are refused. An encoder is an origin."""

import pytest
import torch
from torch import nn

import isogloss
from any_models import make_model
from isogloss.core.errors import ModelError
from says import says

LABELS = {0: "neg", 1: "pos"}
FAMILIES = ("bert", "xlm-roberta", "distilbert", "gpt2", "electra")


def classifier(name="bert", seed=0, labels=LABELS, auto="AutoModelForSequenceClassification"):
    """Return a classifier with the weights of ``make_model`` and a change by seed."""
    model, _ = make_model(name, auto, num_labels=len(labels), id2label=labels)
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for weight in model.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
    return model


def size(model):
    with torch.no_grad():
        return float(sum(weight.square().sum() for weight in model.parameters()))


class Normed(nn.Sequential):
    def __init__(self, mean=0.0):
        super().__init__(nn.Linear(2, 2), nn.BatchNorm1d(2))
        self[1].running_mean.fill_(mean)


DIFFERENT = {
    "a parameter of the end": (nn.Linear(2, 2, bias=False), nn.Linear(2, 2), ("bias", "end")),
    "a parameter of the start": (nn.Linear(2, 2), nn.Linear(2, 2, bias=False), ("bias", "start")),
    "statistics": (Normed(), Normed(1.0), ("running_mean", "start and end")),
    "labels": (
        classifier(),
        classifier(labels={0: "pos", 1: "neg"}),
        ("class 0", "'neg'", "'pos'", "id2label"),
    ),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_a_path_between_models_that_differ_otherwise_is_refused(name):
    start, end, facts = DIFFERENT[name]
    with says(ModelError, "path", *facts):
        isogloss.path(start, end, size, [0, 1])


@pytest.mark.parametrize("function", ["plane", "deltas"])
def test_three_models_that_differ_in_a_parameter_are_refused(function):
    models = [nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False), nn.Linear(2, 2)]
    with says(ModelError, function, "second", "bias"):
        getattr(isogloss, function)(*models, **({"score": size} if function == "plane" else {}))


def test_heads_of_other_labels_are_not_averaged():
    with says(ModelError, "average", "class 0", "model 1"):
        isogloss.average([classifier(), classifier(labels={0: "pos", 1: "neg"})])
    plain_result = {0: "LABEL_0", 1: "LABEL_1"}
    assert isogloss.average([classifier(), classifier(labels=plain_result)]).config.id2label == LABELS


@pytest.mark.parametrize("family", FAMILIES)
def test_an_encoder_is_the_origin_of_task_vectors_and_heads_have_their_mean(family):
    origin, _ = make_model(family)
    models = [classifier(family, seed) for seed in (1, 2)]
    weights = isogloss.average(models, [1, 1], origin=origin).state_dict()
    prefix = f"{models[0].base_model_prefix}."
    states = [model.state_dict() for model in models]
    encoder = {f"{prefix}{name}": weight for name, weight in origin.state_dict().items()}
    assert weights.keys() == states[0].keys()
    for name, weight in weights.items():
        first_state, second = (state[name].double() for state in states)
        expected = (
            (first_state + second) / 2
            if name not in encoder
            else first_state + second - encoder[name].double()
        )
        torch.testing.assert_close(weight.double(), expected, rtol=1e-5, atol=1e-6)


def test_deltas_from_an_encoder_are_of_the_encoders():
    origin, _ = make_model("bert")
    models = [classifier(seed=seed) for seed in (1, 2)]
    whole_deltas = isogloss.deltas(origin, *models)
    single_deltas = isogloss.deltas(origin, *(model.bert for model in models))
    assert whole_deltas.equals(single_deltas) and "layer 3" in whole_deltas.index
