"""Helpers for tests of encoders: loading with heads, comparing weights, language modules that differ."""

import json
from copy import deepcopy
from functools import cache

import pytest
import torch
from torch import nn

from isogloss.core.errors import ModelError
from isogloss.core.run_parts import Modules
from isogloss.encoders.added.added_weights import language_parameters
from isogloss.encoders.added.language_modules import add_modules, modules_of
from isogloss.encoders.loading import load_model, load_whole, load_with_new_head, load_with_own_head
from isogloss.encoders.tokenizers import load_tokenizer

LABELS = ("O", "B-PER", "I-PER")
LANGUAGES = ("en", "sw", "to")
"""``to`` is Tongan, and a function of every torch module."""

IDS = torch.tensor([[2, 7, 9, 11, 3]])


@cache
def _load_cached(folder, attention):
    return load_model(folder, attention=attention)


def fresh(folder, *, attention="sdpa"):
    """Return an encoder for one test, without reading its folder again."""
    return deepcopy(_load_cached(folder, attention))


def tagger(folder, *, seed=0, labels=LABELS, **options):
    return load_with_new_head(folder, "AutoModelForTokenClassification", labels=labels, seed=seed, **options)


def with_own_head(folder, *, seed=0, labels=LABELS, out=3):
    return load_with_own_head(folder, lambda dim: nn.Linear(dim, out), labels=labels, seed=seed)


LOADS = {"encoder": load_model, "whole": load_whole, "head": tagger, "own head": with_own_head}


def same(left, right):
    """Compare two models, or two dictionaries of weights, to the bit."""
    ours, theirs = (model if isinstance(model, dict) else model.state_dict() for model in (left, right))
    return ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)


def change_config(folder, **fields):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **fields}))


def batch_of(folder):
    """Return a batch of two texts, one of them padded."""
    tokenizer = load_tokenizer(folder)
    return dict(tokenizer(["the cat sat", "a dog ran over hills"], padding=True, return_tensors="pt"))


def weights(model):
    return {name: weight.detach().clone() for name, weight in model.named_parameters()}


def hooks(model):
    return sum(len(part._forward_hooks) + len(part._forward_pre_hooks) for part in model.modules())


def refusal(load, *args, error=ModelError):
    """Give the error's message, which is one line."""
    with pytest.raises(error) as row:
        load(*args)
    assert "\n" not in str(row.value)
    return str(row.value)


def modular(model, kind, languages=LANGUAGES, **fields):
    add_modules(model, Modules(kind=kind, **fields), languages, seed=0)
    return model


def stir_modules(model, *, seed=1, size=0.1):
    """Let the modules of all languages differ."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for language in modules_of(model).languages:
            for weight in language_parameters(model, language).values():
                weight.add_(torch.empty_like(weight).normal_(0, size, generator=generator))
    return model
