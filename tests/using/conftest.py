"""Models with random heads: what is predicted is nonsense, how it is predicted and written is not."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from isogloss.encoders.mixup import LearnedRatio, Mixup
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.tasks import find_task
from isogloss.using import Model
from isogloss.using.provenance import Provenance


@pytest.fixture
def make_model(bert_folder: Path) -> Callable[..., Model]:
    """Make a model of a task in float32, with a random head on a tiny encoder."""

    def make(task: str = "upos", encoder: Path | None = None, limit: int = 32, **options: object) -> Model:
        folder = encoder or bert_folder
        fields = {
            "run": "0123456789ab",
            "title": f"source-only: made-up {task} en, seed 0",
            "task": task,
            "corpus": "ud",
            "method": "source-only",
            "encoder": "tiny",
            "source": ("en",),
            "target": (),
            "limit": limit,
            "overlap": 8,
            "versions": {"isogloss": "0.1.0"},
        }
        solved_task = find_task(task, ("sports", "politics"))
        network = solved_task.head(folder, seed=0)
        provenance = Provenance(**(fields | options))
        return Model(network, load_tokenizer(folder), solved_task, provenance, precision="float32")

    return make


@pytest.fixture
def make_mixing(make_model: Callable[..., Model]) -> Callable[..., Model]:
    """Make a model that mixes each input with its translation into English."""

    def make(task: str = "upos", encoder: Path | None = None, **options: object) -> Model:
        ratio = LearnedRatio()
        with torch.no_grad():
            ratio.weight.fill_(-0.5)
            ratio.bias.fill_(2.0)
        model = make_model(task, encoder, **({"limit": 64, "method": "x-mixup", "target": ("de",)} | options))
        return replace(model, mixup=Mixup(layer=2, ratio=0.9, ratio_module=ratio))

    return make
