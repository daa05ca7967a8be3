"""Looks at toy models: three linear taggers whose scores anybody can compute."""

from pathlib import Path

import torch
from torch import nn

from isogloss.core.runs import Pretrained
from isogloss.diagnostics.setting import MeasureSetting, Subject
from isogloss.training.states import BitextSentences


class Toy(nn.Module):
    """An encoder and a head, each one linear layer, named as Hugging Face names them."""

    base_model_prefix = "encoder"

    def __init__(self, seed):
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.encoder = nn.Sequential(nn.Linear(4, 3), nn.LayerNorm(3))
            self.classifier = nn.Linear(3, 2)
            for weight in self.parameters():
                nn.init.normal_(weight)

    def forward(self, x):
        return self.classifier(self.encoder(x))


def weights(model):
    return {name: weight.detach().clone() for name, weight in model.named_parameters()}


def equal(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def subject(name="x", rows=()):
    return Subject(run=Pretrained(source=name), rows=tuple(rows), folder=Path(name))


def measure_setting(
    models, evaluation=None, *, languages=("en", "de"), source=("en",), bitext=None, on_progress=None
):
    """Give a look at models by number."""
    subjects = tuple(subject(str(number)) for number in range(len(models)))
    return MeasureSetting(
        subjects=subjects,
        languages=languages,
        split="dev",
        source=source,
        load=lambda one: models[int(one.run.source)],
        evaluation=evaluation or (lambda _: None),
        encoder=lambda one: models[int(one.run.source)],
        bitext=bitext or (lambda _: []),
        parallel=BitextSentences(bitext or (lambda _: [])),
        on_progress=on_progress or (lambda _: None),
    )
