"""Corpora outside the catalogue, which files describe. A feature reads the descriptions.

A process knows such a corpus by its name, once its description is registered.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple, Protocol

from isogloss.core.errors import ConfigError, missing_feature
from isogloss.core.registry import Registry
from isogloss.data.corpora.catalogue import CORPORA
from isogloss.data.corpus import About, CorpusDefaults, Source, Split
from isogloss.data.examples import Example
from isogloss.data.files import File, Folder
from isogloss.data.json_rows import Rows

SUFFIX = ".toml"
"""Suffix of the path of a description."""


class OwnCorpus(CorpusDefaults, ABC):
    """A corpus that a file describes."""

    name: str
    """Name in recipes and reports."""
    about: About
    """Contents, home page and licence."""
    labels: tuple[str, ...]
    """The inventory of labels."""
    hub: str
    """Dataset of the hub with its files, or "" for files on disk."""

    @property
    @abstractmethod
    def tasks(self) -> tuple[str, ...]:
        """Names of the tasks it has labels for, or "text" or "bitext"."""

    @abstractmethod
    def path(self, language: str, split: Split) -> str:
        """Return the path of a file written by ``write``."""

    @abstractmethod
    def find(self, folder: Folder, language: str, split: Split) -> list[File]:
        """Find the files of a split. Raises DataError, naming the existing files, if none exists."""

    @abstractmethod
    def files(self, source: Source | None, language: str, split: Split) -> list[File]:
        """Return the files of a split, next to the description or else below the data folder."""

    @abstractmethod
    def read(self, source: Source | None, language: str, split: Split) -> Iterator[Example]:
        """Yield the examples of a split. Raises DataError with file and line for rows that do not fit."""

    @abstractmethod
    def write(self, examples: Iterable[Example], language: str) -> Iterator[str]:
        """Yield the lines of a file with examples."""

    @property
    @abstractmethod
    def is_shipped(self) -> bool:
        """Whether its description comes with the package."""

    @abstractmethod
    def is_same(self, namesake: "OwnCorpus") -> bool:
        """Return whether a corpus of its name is the same, except for facts that files may change."""

    @abstractmethod
    def state(self) -> str:
        """Return a digest of its description and of the states of all its files next to the description."""

    @abstractmethod
    def has(self, language: str, split: Split) -> bool:
        """Return whether the description names a split. Raises DataError for a language that it lacks."""

    @abstractmethod
    def lacks_labels(self, source: Source | None, language: str, split: Split) -> bool:
        """Return whether no row of a split has a label. Raises DataError if the split does not exist."""

    @abstractmethod
    def remarks(self, source: Source | None, language: str, split: Split) -> Iterator[str]:
        """Yield remarks on decisions about the files of a split, and on the number of skipped rows."""

    @abstractmethod
    def count_options(self) -> int:
        """Return the number of options of a choice."""


class ShippedFacts(NamedTuple):
    """Facts of a corpus whose description comes with the package."""

    kind: str
    about: About


class Describer(Protocol):
    """A reader of descriptions of corpora."""

    @property
    def fields(self) -> type[object]:
        """The class of the fields of a description, for its schema."""

    def list_shipped(self) -> Mapping[str, Path]:
        """Return the paths of the package's descriptions by name."""

    def read_facts(self, name: str) -> ShippedFacts:
        """Return facts of a corpus of the package."""

    def describe(self, path: Path, data: str, *, assume: bool) -> OwnCorpus:
        """Return the corpus that a file describes.

        With ``assume`` and without a data folder, its files may be missing.
        """

    def write_rows(self, description: Mapping[str, object], rows: Mapping[str, Mapping[str, Rows]]) -> Path:
        """Write rows by language and split, and their description, and return its file."""

    def name_rows(self, path: Path) -> AbstractContextManager[None]:
        """Let errors name rows of Python in place of the lines of their files."""


DESCRIBERS: Registry[Describer] = Registry({}, features="corpus-descriptions")
"""Readers of descriptions, by the format of the file: toml."""

KNOWN: dict[str, OwnCorpus] = {}
"""Described corpora known to this process, by name."""


def find_describer() -> Describer:
    """Return the reader of descriptions in TOML. Raises ConfigError if the feature that has it is missing."""
    name = SUFFIX.removeprefix(".")
    if name not in DESCRIBERS:
        raise missing_feature(
            "the reader of descriptions of corpora",
            "Choose a corpus of isogloss list corpora, or install isogloss again.",
        )
    return DESCRIBERS[name]


def list_shipped() -> dict[str, Path]:
    """Return the paths of the package's descriptions by name. Their files are below the data folder."""
    return {name: path for reader in DESCRIBERS.values() for name, path in reader.list_shipped().items()}


def find_about(name: str) -> About:
    """Return the content, home page and licence of a corpus of the catalogue or of the package, if known."""
    if name in CORPORA:
        return CORPORA[name].about
    return find_describer().read_facts(name).about if name in list_shipped() else About()


def register(*corpora: OwnCorpus) -> None:
    """Make corpora known by name.

    Languages and labels of a description may differ between data folders; the last ones count. Raises
    ConfigError if a different corpus has the name.
    """
    for corpus in corpora:
        if not corpus.is_same(KNOWN.get(corpus.name, corpus)):
            raise ConfigError(f"two descriptions are named {corpus.name!r}. Rename one of them.")
        KNOWN[corpus.name] = corpus


def register_corpus(name: str, data: str = "", folder: Path = Path(), *, assume: bool = False) -> str:
    """Return the name of a corpus. If it is the path of a description, read and register the corpus.

    Each of several corpora read as one (``a+b.toml``) is registered. Relative paths start at ``folder`` or
    the working directory. ``Describer.describe`` explains ``assume``.
    """
    if "+" in name and not Path(name).is_file():
        return "+".join(register_corpus(part, data, folder, assume=assume) for part in name.split("+"))
    path, bracket, splits = name.partition("[")
    path = str(list_shipped().get(path, path))
    if not path.endswith(SUFFIX):
        return name
    file = next((file for file in (folder / path, Path(path)) if file.is_file()), Path(path))
    corpus = find_describer().describe(file, data, assume=assume)
    register(corpus)
    return corpus.name + bracket + splits
