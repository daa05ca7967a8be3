"""Fixtures of the readers' tests: the small native files, and a way to write one and read it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from isogloss.core.errors import InputError
from isogloss.data.corpora import Corpus
from isogloss.data.examples import Example
from isogloss.data.files import DiskFolder

FIXTURES = Path(__file__).parent / "fixtures"


@pytest.fixture(scope="session")
def fixtures() -> DiskFolder:
    return DiskFolder(FIXTURES)


@pytest.fixture
def put(tmp_path: Path) -> Callable[..., DiskFolder]:
    """Write files, given as path=text pairs in a dict, and give their folder."""

    def put(files: dict[str, str | bytes]) -> DiskFolder:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return DiskFolder(tmp_path)

    return put


@pytest.fixture
def message(put: Callable[..., DiskFolder]) -> Callable[..., str]:
    """Give the message of the error that reading these files raises."""

    def message(
        corpus: Corpus, files: dict[str, str | bytes], language: str = "en", split: str = "train"
    ) -> str:
        with pytest.raises(InputError) as caught:
            list(corpus.read(put(files), language, split))
        return str(caught.value)

    return message


@pytest.fixture
def again(put: Callable[..., DiskFolder]) -> Callable[..., list[Example]]:
    """Write examples in the native format and read them back."""

    def again(
        corpus: Corpus, examples: list[Example], language: str = "en", split: str = "train"
    ) -> list[Example]:
        text = "".join(line + "\n" for line in corpus.write(examples, language))
        return list(corpus.read(put({corpus.path(language, split): text}), language, split))

    return again
