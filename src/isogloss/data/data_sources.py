"""Sources of data by the name in ``--data``, and providers of corpora that are absent. Features add both."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from isogloss.core.errors import missing_feature
from isogloss.core.registry import Registry
from isogloss.data.corpus import Source
from isogloss.data.files import DiskFolder, File

HUB = "hub"
"""Value of ``--data`` for the Hugging Face hub, where descriptions of corpora name datasets. ``hub:DIR`` is a
folder with parquet files of datasets."""


class DataSource(Protocol):
    """A source of data that ``--data`` names, with the datasets in it."""

    @property
    def records(self) -> Path:
        """Folder of files that record the commit of each dataset."""

    def open(self, path: str) -> Source:
        """Return the source of corpora. ``path`` is the text after the name and a colon. Default: empty."""

    def find_spellings(self, corpus: str) -> Mapping[str, str]:
        """Return the codes of languages in the names of a corpus's files, by our codes.

        Raises ConfigError if it lacks the corpus.
        """

    def pin_commit(self, dataset: str) -> str:
        """Return a dataset with its commit. The commit of a branch is looked up once.

        Raises ConfigError for an invalid name, DataError if the commit cannot be determined.
        """

    def open_split(self, dataset: str, path: str) -> File:
        """Return the rows of a split (``config/split``) of a dataset as JSON lines."""


class CorpusProvider(Protocol):
    """A way to get corpora that are absent."""

    def give_advice(self, corpus: str, language: str = "") -> str:
        """Return the advice how to get a corpus of the package, in a language or a pair of languages."""

    def list_corpora(self, languages: Sequence[str]) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        """Return heads and rows of the corpora in some languages.

        Raises ConfigError without any.
        """


DATA_SOURCES: Registry[DataSource] = Registry({}, features="data-sources")

CORPUS_PROVIDERS: Registry[CorpusProvider] = Registry({}, features="corpus-providers")


def find_data_source(name: str) -> DataSource:
    """Return a source of data by name. Raises ConfigError if the feature that adds it is missing."""
    if name not in DATA_SOURCES:
        raise missing_feature(f"{name}: this source of data", "Give --data DIR, or install isogloss again.")
    return DATA_SOURCES[name]


def data_source(text: str) -> Source | None:
    """Return the source that ``--data`` names, or None for an empty text.

    A source is in the table, such as the hub or a folder of its parquet files, or it is a folder of corpora.
    """
    if not text:
        return None
    name, colon, path = text.partition(":")
    if name in (HUB, *DATA_SOURCES) and (path or not colon):
        return find_data_source(name).open(path)
    return DiskFolder(Path(text))


def give_advice(corpus: str, language: str = "") -> str:
    """Return the advice how to get a corpus of the package whose files are absent."""
    advice = [provider.give_advice(corpus, language) for provider in CORPUS_PROVIDERS.values()]
    return " ".join(advice) or "Download its files, and give --data DATA."
