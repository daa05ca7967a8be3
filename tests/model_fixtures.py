"""Models that many tests need: an encoder, a tagger, models with random heads, a translator."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import tiny_models
from in_translation import setting
from isogloss.data.projection.example_texts import Translated
from isogloss.encoders.mixup import LearnedRatio, Mixup
from isogloss.encoders.saving import save_model
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.methods.plain import SourceOnly
from isogloss.tasks import find_task
from isogloss.translators import TRANSLATORS
from isogloss.translators.setting import TranslateSetting
from isogloss.using import Model
from isogloss.using.provenance import Provenance
from measuring import load

Translate = Callable[..., list[Translated]]


@pytest.fixture(scope="module")
def loaded_encoder(bert_folder):
    """A tiny BERT, and its tokenizer. Nothing may change it."""
    return load(bert_folder)


@pytest.fixture(scope="session", params=["bert", "xlm_roberta"])
def either_folder(request):
    """An encoder whose tokenizer knows segments, and one whose tokenizer does not."""
    return request.getfixturevalue(f"{request.param}_folder")


@pytest.fixture(scope="session")
def either_tokenizer(either_folder):
    return load_tokenizer(either_folder)


@pytest.fixture(scope="module")
def teacher(bert_folder, tmp_path_factory):
    """A source-only tagger's folder."""
    folder = tmp_path_factory.mktemp("teacher")
    training = SourceOnly().train(setting("upos", bert_folder, folder / "work", target=()))
    save_model(training.model, training.tokenizer, folder / "model")
    return folder / "model"


@pytest.fixture
def make_model(bert_folder: Path) -> Callable[..., Model]:
    """Make a model of a task in float32. Its head is random: what it predicts is nonsense."""

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


@pytest.fixture(scope="session")
def marian_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.marian(tmp_path_factory.mktemp("models") / "marian")


@pytest.fixture
def translate(tmp_path: Path, marian_folder: Path) -> Translate:
    """Translate from en into es with the tiny model, in float32, in a new folder unless one is named."""

    def run(texts: Iterable[str], name: str = "seq2seq", folder: Path | None = None, **fields: object):
        setting = TranslateSetting(
            source="en",
            target=str(fields.pop("target", "es")),
            model=str(fields.pop("model", marian_folder)),
            folder=folder or tmp_path / f"{len(list(tmp_path.iterdir()))}",
            precision=str(fields.pop("precision", "float32")),
        )
        return list(TRANSLATORS[name](**fields).translate(texts, setting))

    return run
