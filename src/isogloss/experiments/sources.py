"""Where a run's examples come from: the built-in languages, or the folder the user named with --data."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

from isogloss.core.errors import ConfigError, DataError, unknown_name
from isogloss.data import CORPORA
from isogloss.data.built_in import folder_for
from isogloss.data.corpora import Corpus, Split
from isogloss.data.examples import Example
from isogloss.data.files import DiskFolder, Folder

Treebanks = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Sources:
    """Corpora by name, read from the right folder for each language."""

    data: Path | None = None

    def corpus(self, name: str, treebanks: Treebanks = ()) -> Corpus:
        """Return a corpus by name; "bitext:bible" is the collection bible of corpus bitext.

        ConfigError, with the nearest name, when there is no such corpus or it has no such choice.
        """
        plain, _, collection = name.partition(":")
        if plain not in CORPORA:
            raise unknown_name("corpus", "corpus", plain, CORPORA)
        corpus: Any = CORPORA[plain]
        wanted = {"treebanks": treebanks, "collection": collection}
        changes = {field: value for field, value in wanted.items() if value}
        for field in changes.keys() - {field.name for field in fields(corpus)}:
            raise ConfigError(
                f"corpus {plain!r} has no {field} to choose from: {changes[field]!r}. Leave it out."
            )
        return replace(corpus, **changes)  # type: ignore[no-any-return]

    def stream(
        self, corpus: str, language: str, split: Split, *, treebanks: Treebanks = (), examples: int = 0
    ) -> Iterator[Example]:
        """Read the first examples of a split (0: all of them), one at a time."""
        read = self.corpus(corpus, treebanks).read(self.folder(language), language, split)
        return islice(read, examples or None)

    def examples(
        self, corpus: str, language: str, split: Split, *, treebanks: Treebanks = (), examples: int = 0
    ) -> list[Example]:
        """Read the first examples of a split (0: all); DataError when there are none."""
        found = list(self.stream(corpus, language, split, treebanks=treebanks, examples=examples))
        if not found:
            raise DataError(
                f"{corpus} {language} {split}: the split is empty. Choose another split or language."
            )
        return found

    def fingerprint(self, corpus: str, language: str, split: Split, *, treebanks: Treebanks = ()) -> str:
        """Return a fingerprint of the files a split is read from; DataError when they are not there."""
        files = self.corpus(corpus, treebanks).files(self.folder(language), language, split)
        return "+".join(file.fingerprint() for file in files)

    def folder(self, language: str) -> Folder:
        """Return the folder a language's files are in; a pair such as en-fr goes by its first language."""
        return folder_for(language.split("-", maxsplit=1)[0], DiskFolder(self.data) if self.data else None)


def joined(fingerprints: list[str]) -> str:
    """Return one short fingerprint for several."""
    return sha256("\n".join(fingerprints).encode()).hexdigest()[:16]
