"""The reader of descriptions of corpora, which the tables of isogloss name."""

import tomllib
from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import lru_cache
from pathlib import Path

from isogloss.data.corpora.own import OwnCorpus, ShippedFacts
from isogloss.data.corpus import About
from isogloss.data.json_rows import Rows
from isogloss.features.described_corpora import shipped_corpora


class TomlDescriber:
    """The reader of descriptions in TOML."""

    @property
    def fields(self) -> type[object]:
        """The class of the fields of a description."""
        from isogloss.features.described_corpora.descriptions import Description

        return Description

    def list_shipped(self) -> Mapping[str, Path]:
        """Return the paths of the package's descriptions by name."""
        return shipped_corpora.list_shipped()

    def read_facts(self, name: str) -> ShippedFacts:
        """Return facts of a corpus of the package, unchecked."""
        table = tomllib.loads(self.list_shipped()[name].read_text(encoding="utf-8"))
        return ShippedFacts(table["kind"], About(table["about"], table["url"], table["licence"]))

    def describe(self, path: Path, data: str, *, assume: bool) -> OwnCorpus:
        """Return the corpus that a file describes, read once for each state of the file."""
        modification_time = path.stat().st_mtime_ns if path.is_file() else 0
        return _read_once(str(path), modification_time, data, assume)

    def write_rows(self, description: Mapping[str, object], rows: Mapping[str, Mapping[str, Rows]]) -> Path:
        """Write rows by language and split, and their description, into the user's cache."""
        from isogloss.features.described_corpora.python_rows import write_rows

        return write_rows(description, rows)

    def name_rows(self, path: Path) -> AbstractContextManager[None]:
        """Let errors name rows of Python in place of the lines of their files."""
        from isogloss.features.described_corpora.python_rows import name_rows

        return name_rows(path)


@lru_cache(maxsize=64)
def _read_once(path: str, _modification_time: int, data: str, assume: bool) -> OwnCorpus:
    from isogloss.features.described_corpora.descriptions import describe_corpus

    return describe_corpus(Path(path), data, assume=assume)


TOML = TomlDescriber()
