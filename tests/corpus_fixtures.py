"""Fixtures of tests that read corpora: the small native files, and a way to write one and read it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fake_downloads import Server, running
from isogloss.core.errors import InputError
from isogloss.data.corpus import Corpus
from isogloss.data.examples import Example
from isogloss.data.files import DiskFolder
from isogloss.features.described_corpora.corpus import DescribedCorpus
from isogloss.features.described_corpora.descriptions import describe_corpus

NATIVE = Path(__file__).parent / "data" / "fixtures"


@pytest.fixture(scope="session")
def native_files() -> DiskFolder:
    return DiskFolder(NATIVE)


@pytest.fixture
def put_files(tmp_path: Path) -> Callable[..., DiskFolder]:
    """Write files, given as path=text pairs in a dict, and give their folder."""

    def write_files(files: dict[str, str | bytes]) -> DiskFolder:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return DiskFolder(tmp_path)

    return write_files


@pytest.fixture(scope="session")
def running_server() -> Iterator[Server]:
    server, http = running()
    yield server
    http.shutdown()
    http.server_close()


@pytest.fixture
def server(running_server: Server) -> Server:
    """Give the HTTP server, with nothing on it."""
    for collection in (running_server.files, running_server.behaviours, running_server.requests):
        collection.clear()
    return running_server


@pytest.fixture
def own_corpus(put_files: Callable[..., DiskFolder]) -> Callable[..., DescribedCorpus]:
    """Write the description of a corpus with its files (rows: as parquet), and return the corpus."""

    def write_corpus(
        body: str, files: dict[str, str | list[dict[str, object]]] | None = None
    ) -> DescribedCorpus:
        contents = {
            name: parquet(content) if isinstance(content, list) else content
            for name, content in (files or {}).items()
        }
        return describe_corpus(put_files({**contents, "own.toml": body}).path / "own.toml")

    return write_corpus


def parquet(rows: list[dict[str, object]]) -> bytes:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    stream = pyarrow.BufferOutputStream()
    write_table(pyarrow.Table.from_pylist(rows), stream)
    return stream.getvalue().to_pybytes()


@pytest.fixture
def reading_error(put_files: Callable[..., DiskFolder]) -> Callable[..., str]:
    """Give the message of the error that reading these files raises."""

    def find_message(
        corpus: Corpus, files: dict[str, str | bytes], language: str = "en", split: str = "train"
    ) -> str:
        with pytest.raises(InputError) as error:
            list(corpus.read(put_files(files), language, split))
        return str(error.value)

    return find_message


@pytest.fixture
def read_back(put_files: Callable[..., DiskFolder]) -> Callable[..., list[Example]]:
    """Write examples in the native format and read them back."""

    def write_and_read(
        corpus: Corpus, examples: list[Example], language: str = "en", split: str = "train"
    ) -> list[Example]:
        text = "".join(line + "\n" for line in corpus.write(examples, language))
        return list(corpus.read(put_files({corpus.path(language, split): text}), language, split))

    return write_and_read
