from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

import tiny_models
from isogloss.data.projection.example_texts import Translated
from isogloss.translators import TRANSLATORS
from isogloss.translators.setting import TranslateSetting

Translate = Callable[..., list[Translated]]


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
