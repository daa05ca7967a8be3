"""Settings of measurements: toy models whose scores anybody can compute, and tiny encoders."""

from pathlib import Path

import torch
from torch import nn

from isogloss.core.run_parts import Modules
from isogloss.data.examples import Translation
from isogloss.diagnostics.setting import MeasureSetting, Subject
from isogloss.encoders.added.added_weights import language_parameters
from isogloss.encoders.added.language_modules import add_modules
from isogloss.encoders.loading import load_masked_lm
from isogloss.encoders.saving import save_model
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.built_in_languages.corpora import split_translations
from isogloss.training.parallel_text import BitextSentences
from made_up import TEXT

WORDS = TEXT.split()


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


def equal(left, right):
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


def points(seed, *shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def vectors(seed, rows=12, dim=6):
    return torch.randn(rows, dim, generator=torch.Generator().manual_seed(seed))


def rotation(seed, dim):
    return torch.linalg.qr(points(seed, dim, dim))[0]


def load(folder):
    return load_masked_lm(folder), load_tokenizer(folder)


def translations(firsts, seconds, links=None):
    pairs = zip(firsts, seconds, strict=True)
    return [Translation(id=str(n), first=a, second=b, links=links) for n, (a, b) in enumerate(pairs)]


def modular(folder, place, kind, *, seed=0, noise=0.3, load=load_masked_lm):
    """Save an encoder with separate modules for fr, moved by noise drawn from a seed."""
    model = load(folder)
    add_modules(model, Modules(kind=kind), ("en", "fr"), seed=0)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in language_parameters(model, "fr").values():
            weight.add_(noise * torch.empty_like(weight).normal_(generator=generator))
    save_model(model, load_tokenizer(folder), place)
    return place


def subject(name="x", rows=()):
    return Subject(id=name, rows=tuple(rows), folder=Path(name))


def measure_setting(
    models, evaluation=None, *, languages=("en", "de"), source=("en",), bitext=None, on_progress=None
):
    """Return the setting of a measurement of models (or encoders) by number."""
    subjects = tuple(subject(str(index)) for index in range(len(models)))
    return MeasureSetting(
        subjects=subjects,
        languages=languages,
        split="dev",
        source=source,
        load=lambda example: models[int(example.id)],
        evaluation=evaluation or (lambda _: None),
        encoder=lambda example: models[int(example.id)],
        bitext=bitext or (lambda _: []),
        comparable=lambda pair, _: list(split_translations(bitext(pair))),
        parallel=BitextSentences(bitext or (lambda _: [])),
        on_progress=on_progress or (lambda _: None),
    )
