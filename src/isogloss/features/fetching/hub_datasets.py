"""Corpora of the Hugging Face hub, read on first use, and folders of described files that are fetched.

The hub's datasets of the catalogue's corpora become files in their native formats, generated when they are
read, so that readers, fingerprints and runs treat them like files on disk. Only parquet files are read, from
the branch into which the hub converts every dataset or from a local folder of the same layout. Code that
comes with a dataset is never run. Labels are read by name, never as numbers whose order would have to be
known.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from isogloss.core.errors import DataError, add_location, one_line
from isogloss.core.languages import is_built_in, language_name
from isogloss.core.untrusted import user_cache
from isogloss.data.corpora.catalogue import CORPORA
from isogloss.data.corpora.texts_and_trees import DEFAULTS, Ud
from isogloss.data.corpus import SPLITS, Corpus, Source, Split, not_there
from isogloss.data.examples import Example, ParsedSentence
from isogloss.data.files import DiskFolder, File
from isogloss.data.formats.kinds import KINDS, labelled_rows
from isogloss.data.formats.reading import LINES, Reading
from isogloss.data.formats.tables import ExampleColumns, parquet_rows

if TYPE_CHECKING:
    from isogloss.data.hub_rows import Row

HUB = "hub"
"""Value of ``--data`` for the hub. ``hub:DIR`` is a folder with parquet files of datasets."""

CONVERTED = "refs/convert/parquet"
"""Branch of a dataset where the hub stores it as CONFIG/SPLIT/NNNN.parquet."""

LAYOUTS = ("{config}/{split}/*.parquet", "{config}/{split}-*.parquet", "{config}/*-{split}.parquet")
"""Paths of parquet files in a dataset: on that branch, as saved now, and as saved by older versions."""

NOT_A_WORD = ("None", "_", None, "")
"""Heads of the rows of multi-word ranges and empty nodes."""

ALL: Mapping[Split, str] = {"train": "train", "dev": "validation", "test": "test"}
"""Usual names of our splits on the hub."""

ON_HUB: Mapping[str, str] = {str(split): name for split, name in ALL.items()}
"""The same mapping, for lookups by any text."""

HUB_SPLITS: Mapping[str, Split] = {name: split for split, name in ALL.items() if name != split}
"""Our splits by names on the hub, where these differ."""

EVAL_RESULTS = ".eval_results"
"""Folder of a model's repository from which the hub reads its scores, one YAML file per dataset."""

LABEL_COLUMNS = ("label", "ner_tags", "pos_tags", "upos")


class HubSplit(NamedTuple):
    """One split of one language of a dataset that contains a corpus of the catalogue."""

    corpus: Corpus
    repository: str
    config: str
    language: str
    split: Split
    hub_split: str
    treebank: str
    """Treebank named in the table, or "" for the default treebank of the language."""
    kind: Literal["pair", "tagging", "span", "trees"]
    spelled: Mapping[str, str]
    """Our labels by their spelling on the hub, where it differs."""
    ids_by_language: bool
    """Whether a file has all languages, and ids begin with the English name of the language (TyDi QA)."""


@lru_cache(maxsize=1)
def hub_splits() -> dict[str, HubSplit]:
    """Return all splits of the hub by the corpus's path of that language and split."""
    table = tomllib.loads((files("isogloss.data") / "hub.toml").read_text(encoding="utf-8"))
    splits = (
        split
        for entry in table["dataset"]
        for language in (*entry["languages"].split(), *entry.get("configs", ()))
        for split in _splits_of(entry, language)
    )
    return {split.corpus.path(split.language, split.split): split for split in splits}


def hub_split(corpus: str, language: str, split: str, treebank: str = "") -> HubSplit | None:
    """Return the split of the hub on which a score was measured, or None if the hub lacks it.

    Built-in languages are never on the hub.
    """
    return None if is_built_in(language) else _splits_by_test_set().get((corpus, language, split, treebank))


def eval_result(split: HubSplit, score: float, notes: str) -> dict[str, object]:
    """Return an entry of a model's ``.eval_results`` for a score in [0, 1], stored in percent."""
    dataset = {"id": split.repository, "task_id": split.config or "default"}
    return {"dataset": dataset, "value": round(100 * score, 2), "notes": notes}


@lru_cache(maxsize=1)
def _splits_by_test_set() -> dict[tuple[str, str, str, str], HubSplit]:
    return {
        (split.corpus.name, split.language, split.split, split.treebank): split
        for split in hub_splits().values()
    }


def _splits_of(entry: Mapping[str, Any], language: str) -> Iterator[HubSplit]:
    """Yield the splits of a language in an entry of hub.toml, which documents its fields."""
    treebank = entry.get("treebank") or DEFAULTS[language] if entry["kind"] == "trees" else ""
    corpus = Ud(treebanks=((language, treebank),)) if treebank else CORPORA[entry["corpus"]]
    repository, _, config = entry["address"].partition(":")
    names = {"language": entry.get("configs", {}).get(language, language), "name": language_name(language)}
    for questions in entry.get("questions", "").split() or [""]:
        for split, hub_split in entry.get("splits", ALL).items():
            yield HubSplit(
                corpus=corpus.choose(questions) if questions else corpus,
                repository=repository,
                config=config.format(**names, questions=questions, treebank=treebank.lower()),
                language=language,
                split=split,
                hub_split=hub_split,
                treebank=entry.get("treebank", ""),
                kind=entry["kind"],
                spelled=entry.get("spelled", {}),
                ids_by_language=entry.get("ids_by_language", False),
            )


def data_source(text: str) -> Source | None:
    """Return the source that ``--data`` names, or None for an empty text.

    Sources are the hub, a folder of its parquet files, or a folder of corpora.
    """
    if not text:
        return None
    kind, colon, path = text.partition(":")
    if kind == HUB and (path or not colon):
        return HubDatasets(DiskFolder(Path(path)) if path else None)
    return DiskFolder(Path(text))


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
        from isogloss.data.fetching.releases import fetchable

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
        from isogloss.data.hub_rows import VERSION

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
    from isogloss.data.fetching.official_files import fetch
    from isogloss.data.fetching.releases import releases

    official = [file for file in releases(corpus).select() if file.has(languages)]
    for _ in fetch(official, folder, languages=languages):
        pass


def _dataset(entry: HubSplit) -> str:
    """Return a dataset at the commit of its converted files that was found on first use."""
    from isogloss.data.fetching.hub_address import pin_commit

    return pin_commit(f"{entry.repository}@{CONVERTED}", user_cache() / HUB)


def _download_split(entry: HubSplit) -> DiskFolder:
    """Return the folder of a dataset's converted files, with the files of this split downloaded once."""
    from isogloss.data.fetching.hub_address import snapshot

    pattern = LAYOUTS[0].format(config=entry.config, split=entry.hub_split)
    return DiskFolder(snapshot(_dataset(entry), pattern, entry.repository))


def _examples(entry: HubSplit, rows: Iterator[Row], name: str) -> Iterator[Example]:
    """Yield the examples of a dataset.

    Raises DataError if columns or labels differ from the corpus's.
    """
    from isogloss.data.hub_rows import NO_LABEL

    advice = f"See the card of {entry.repository}; save it with these columns and labels"
    if entry.kind == "trees":
        yield from _trees(rows, f"{advice}.")
        return
    lines = (json.dumps(row, ensure_ascii=False) for row in _own_rows(entry, rows))
    reading = Reading(
        kind=entry.kind,
        table=ExampleColumns(
            format="jsonl", columns={**KINDS[entry.kind].columns["jsonl"], "id": "id"}, optional=("id",)
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
    from isogloss.data.hub_rows import with_label_names

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
