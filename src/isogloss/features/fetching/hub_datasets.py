"""Corpora of the Hugging Face hub, read on first use, and folders of described files that are fetched.

The hub's datasets of the catalogue's corpora become files in their native formats, generated when they are
read, so that readers, fingerprints and runs treat them like files on disk. Only parquet files are read, from
the branch into which the hub converts every dataset or from a local folder of the same layout. Code that
comes with a dataset is never run. Labels are read by name, never as numbers whose order would have to be
known.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from isogloss.core.errors import DataError, add_location, one_line
from isogloss.core.languages import language_name
from isogloss.core.untrusted import user_cache
from isogloss.data.corpora.texts_and_trees import Ud
from isogloss.data.corpus import SPLITS, Corpus, Split, not_there
from isogloss.data.data_sources import HUB
from isogloss.data.examples import Example, ParsedSentence
from isogloss.data.files import DiskFolder, File
from isogloss.data.formats.corpus_kinds import KINDS
from isogloss.data.formats.formats import ExampleColumns
from isogloss.data.formats.kinds import labelled_rows
from isogloss.data.formats.parquet import parquet_rows
from isogloss.data.formats.reading import LINES, Reading
from isogloss.data.hub_splits import HubSplit, hub_splits
from isogloss.data.json_rows import NO_LABEL, VERSION, Row, with_label_names
from isogloss.features.fetching.hub_address import pin_commit, snapshot
from isogloss.features.fetching.official_files import fetch
from isogloss.features.fetching.releases import fetchable, releases

CONVERTED = "refs/convert/parquet"
"""Branch of a dataset where the hub stores it as CONFIG/SPLIT/NNNN.parquet."""

LAYOUTS = ("{config}/{split}/*.parquet", "{config}/{split}-*.parquet", "{config}/*-{split}.parquet")
"""Paths of parquet files in a dataset: on that branch, as saved now, and as saved by older versions."""

NOT_A_WORD = ("None", "_", None, "")
"""Heads of the rows of multi-word ranges and empty nodes."""


LABEL_COLUMNS = ("label", "ner_tags", "pos_tags", "upos")


@dataclass(frozen=True)
class HubDatasets:
    """Corpora of the hub, or with ``local`` the corpora whose parquet files are in that folder."""

    local: DiskFolder | None = None

    @property
    def name(self) -> str:
        """Name in messages."""
        return f"{HUB}:{self.local.name}" if self.local else "the Hugging Face hub"

    def files(self, corpus: Corpus, language: str, split: Split) -> list[File]:
        """Return the file of a split, which is generated when it is read.

        Raises DataError, naming the existing splits, if the hub lacks it.
        """
        if isinstance(corpus, Ud) and not corpus.treebank_of(language):
            corpus = Ud(treebanks=((language, "PUD"),))  # The hub has PUD and the default treebanks.
        path = corpus.path(language, split)
        hub_split = hub_splits().get(path)
        if hub_split is None or not self._has(hub_split):
            entries = [entry for entry in self._available_splits() if entry.corpus.name == corpus.name]
            languages = {
                split: sorted({entry.language for entry in entries if entry.split == split})
                for split in SPLITS
            }
            raise not_there(self, corpus.name, language, split, available=languages)
        return [self._file(path, hub_split)]

    def folder(self, corpus: str, languages: Sequence[str] = ()) -> DiskFolder | None:
        """Return a folder with the official files of a described corpus, and fetch missing files.

        Nothing is fetched without languages. None is returned if the folder does not exist.
        """
        folder = user_cache() / HUB
        if self.local is None and languages and corpus in fetchable():
            _fetch_once(corpus, tuple(languages), folder)
        return self.local or (DiskFolder(folder) if folder.is_dir() else None)

    def inside(self) -> list[str]:
        """Return the names of the available corpora."""
        return sorted({entry.corpus.name for entry in self._available_splits()})

    def _available_splits(self) -> list[HubSplit]:
        return [entry for entry in hub_splits().values() if self._has(entry)]

    def _has(self, entry: HubSplit) -> bool:
        return self.local is None or bool(_parquet(self.local, entry))

    def _file(self, path: str, entry: HubSplit) -> File:
        name = f"{self.name}/{entry.repository}/{entry.config}/{entry.hub_split} as {path}"

        def read() -> Iterator[str]:
            with add_location(name):
                folder = self.local or _download_split(entry)
                rows = _rows(_parquet(folder, entry))
                yield from (
                    line + "\n" for line in entry.corpus.write(_examples(entry, rows, name), entry.language)
                )

        def fingerprint() -> str:
            facts = (HUB, str(VERSION), entry.repository, entry.config, entry.hub_split, entry.language)
            if self.local:
                version = "+".join(file.fingerprint() for file in _parquet(self.local, entry))
            else:
                with add_location(name):
                    version = _dataset(entry).partition("@")[2]
            return sha256("\n".join((*facts, version)).encode()).hexdigest()

        return File(name, read, fingerprint)


@lru_cache(maxsize=256)
def _fetch_once(corpus: str, languages: tuple[str, ...], folder: Path) -> None:
    official = [file for file in releases(corpus).select() if file.has(languages)]
    for _ in fetch(official, folder, languages=languages):
        pass


def _dataset(entry: HubSplit) -> str:
    """Return a dataset at the commit of its converted files that was found on first use."""
    return pin_commit(f"{entry.repository}@{CONVERTED}", user_cache() / HUB)


def _download_split(entry: HubSplit) -> DiskFolder:
    """Return the folder of a dataset's converted files, with the files of this split downloaded once."""
    pattern = LAYOUTS[0].format(config=entry.config, split=entry.hub_split)
    return DiskFolder(snapshot(_dataset(entry), pattern, entry.repository))


def _examples(entry: HubSplit, rows: Iterator[Row], name: str) -> Iterator[Example]:
    """Yield the examples of a dataset.

    Raises DataError if columns or labels differ from the corpus's.
    """
    advice = f"See the card of {entry.repository}; save it with these columns and labels"
    if entry.kind == "trees":
        yield from _trees(rows, f"{advice}.")
        return
    lines = (json.dumps(row, ensure_ascii=False) for row in _own_rows(entry, rows))
    reading = Reading(
        kind=entry.kind,
        table=ExampleColumns(
            format="jsonl", columns={**KINDS[entry.kind].columns, "id": "id"}, optional=("id",)
        ),
        labels=getattr(entry.corpus, "labels", ()),
        spelled=entry.spelled,
        skip=(str(NO_LABEL), ""),
        may_lack_labels=False,
        official=True,
        blank=True,
    )
    for example in labelled_rows(File(name, lambda: lines, str), reading, LINES):
        if isinstance(example, DataError):
            raise DataError(f"{example} {advice}.")
        if example is not None:
            yield example


def _own_rows(entry: HubSplit, rows: Iterator[Row]) -> Iterator[Row]:
    """Yield the rows of a language that have words, with each text on one line.

    Native formats, except for questions, have one line per text.
    """
    start = f"{language_name(entry.language).lower()}-"
    for row in rows:
        if entry.kind == "span":
            if not entry.ids_by_language or str(row.get("id")).startswith(start):
                yield row
        elif row.get("tokens", True):
            yield {column: _on_one_line(cell) for column, cell in row.items()}


def _on_one_line(cell: Any) -> Any:
    if isinstance(cell, list):
        return [_on_one_line(item) for item in cell]
    return (
        " ".join(cell.split()) if isinstance(cell, str) and any(sign in cell for sign in "\t\n\r") else cell
    )


def _trees(rows: Iterable[Row], advice: str) -> Iterator[ParsedSentence]:
    """Yield trees without multi-word ranges and empty nodes, whose positions the columns lack."""
    for row_number, row in enumerate(rows, start=1):
        try:
            words = [index for index, head in enumerate(row["head"]) if head not in NOT_A_WORD]
            yield ParsedSentence(
                id=str(row.get("idx") or row_number),
                words=tuple(_on_one_line(row["tokens"][index]) for index in words),
                tags=tuple(row["upos"][index] for index in words),
                heads=tuple(int(row["head"][index]) for index in words),
                relations=tuple(row["deprel"][index] for index in words),
            )
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise DataError(f"its columns are not trees ({one_line(error)}). {advice}") from error


def _parquet(folder: DiskFolder, entry: HubSplit) -> list[File]:
    return folder.find(
        parent + layout.format(config=entry.config, split=entry.hub_split)
        for parent in (f"{entry.repository}/", f"{entry.repository.rpartition('/')[2]}/", "")
        for layout in LAYOUTS
    )


def _rows(files: Iterable[File]) -> Iterator[Row]:
    """Yield the rows with names of labels.

    Raises DataError for numbers of labels without names.
    """
    for file in files:
        labels, rows = parquet_rows(file)
        for row in rows:
            for column in LABEL_COLUMNS:
                if column in row and column not in labels and _is_number(row[column]):
                    raise DataError(
                        f"column {column!r} has numbers of labels, and the file lacks their names. "
                        f"Save it with the datasets library, which stores the names."
                    )
            yield with_label_names(row, labels)


def _is_number(value: object) -> bool:
    return isinstance(value[0] if isinstance(value, list) and value else value, int)
