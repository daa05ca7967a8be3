"""Hugging Face datasets as a source: files in the corpora's native formats, made when they are read.

So they take the same way through readers, fingerprints and runs as files on disk (``built_in`` does the same
for the built-in languages). Only parquet files are read, those of the branch into which the hub converts
every dataset, or of a local folder with the same layout: no code that comes with a dataset is ever run.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from isogloss.core.errors import ConfigError, DataError
from isogloss.data.conllu import Ud
from isogloss.data.corpora import SPLITS, Corpus, Source, Split, not_there
from isogloss.data.examples import Example
from isogloss.data.files import DiskFolder, File
from isogloss.data.hub_sources import DatasetSplit, Row, dataset_splits, with_names

HUB = "hub"
"""What ``--data`` says for the hub; ``hub:DIR`` is a folder with parquet files of datasets."""

CONVERTED = "refs/convert/parquet"
"""The branch of a dataset where the hub keeps it as CONFIG/SPLIT/NNNN.parquet."""

LAYOUTS = ("{config}/{split}/*.parquet", "{config}/{split}-*.parquet", "{config}/*-{split}.parquet")
"""Where parquet files lie in the folder of a dataset: on that branch, as saved now, as saved earlier."""

VERSION = 1
"""Part of the fingerprints; raise it when rows give other lines than before."""


def data_source(text: str) -> Source | None:
    """Give what ``--data`` means: nothing, the hub, parquet files of it, or a folder of corpora."""
    if not text:
        return None
    kind, colon, path = text.partition(":")
    if kind == HUB and (path or not colon):
        return HubDatasets(DiskFolder(Path(path)) if path else None)
    return DiskFolder(Path(text))


@dataclass(frozen=True)
class HubDatasets:
    """Corpora of the hub; with ``local``, only those whose parquet files are there."""

    local: DiskFolder | None = None

    def __post_init__(self) -> None:
        _library()

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"{HUB}:{self.local.name}" if self.local else "the Hugging Face hub"

    def files(self, corpus: Corpus, language: str, split: Split) -> list[File]:
        """Give the one file of a split, which is made when it is read."""
        if isinstance(corpus, Ud) and not corpus.named(language):
            corpus = Ud(treebanks=((language, "PUD"),))  # The only one that the hub has beside the defaults.
        path = corpus.path(language, split)
        place = dataset_splits().get(path)
        if place is None or not self._has(place):
            of_it = [
                one for one in dataset_splits().values() if one.corpus.name == corpus.name and self._has(one)
            ]
            there = {split: sorted({one.language for one in of_it if one.split == split}) for split in SPLITS}
            raise not_there(self, corpus.name, language, split, there=there)
        return [self._file(path, place)]

    def inside(self) -> list[str]:
        """Give the corpora that are there."""
        return sorted({place.corpus.name for place in dataset_splits().values() if self._has(place)})

    def _has(self, place: DatasetSplit) -> bool:
        return self.local is None or bool(_parquet(self.local, place))

    def _file(self, path: str, place: DatasetSplit) -> File:
        name = f"{self.name}/{place.dataset.repository}/{place.config}/{place.hub_split} as {path}"
        rows = _local_rows(self.local, place, name) if self.local else _hub_rows(place, name)
        return File(name, _lines(place, rows.read, name), lambda: _fingerprint(place, rows.version()))


@dataclass(frozen=True)
class _Rows:
    """Rows and the version they are of."""

    read: Callable[[], Iterator[Row]]
    version: Callable[[], str]


def _lines(place: DatasetSplit, rows: Callable[[], Iterator[Row]], name: str) -> Callable[[], Iterator[str]]:
    def read() -> Iterator[str]:
        for line in place.corpus.write(_examples(place, rows(), name), place.language):
            yield line + "\n"

    return read


def _examples(place: DatasetSplit, rows: Iterator[Row], name: str) -> Iterator[Example]:
    examples = place.dataset.rows(rows, place.language)
    while True:
        try:
            example = next(examples, None)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise DataError(
                f"{name}: its columns are not those of {place.dataset.repository} "
                f"({type(error).__name__}: {error}). Look at the dataset's card; save it with these columns."
            ) from error
        if example is None:
            return
        yield example


def _fingerprint(place: DatasetSplit, version: str) -> str:
    what = (
        HUB,
        str(VERSION),
        place.dataset.repository,
        place.config,
        place.hub_split,
        place.language,
        version,
    )
    return sha256("\n".join(what).encode()).hexdigest()


def _parquet(local: DiskFolder, place: DatasetSplit) -> list[File]:
    repository = place.dataset.repository
    return local.find(
        f"{folder}/{layout.format(config=place.config, split=place.hub_split)}"
        for folder in (repository, repository.rpartition("/")[2])
        for layout in LAYOUTS
    )


def _local_rows(local: DiskFolder, place: DatasetSplit, name: str) -> _Rows:
    files = _parquet(local, place)

    def read() -> Iterator[Row]:
        names = [str(file.name) for file in files]
        builder = _try(
            name, lambda: _library().load_dataset_builder("parquet", data_files={place.hub_split: names})
        )
        yield from _rows(_try(name, lambda: builder.as_streaming_dataset(place.hub_split)), name)

    return _Rows(read, lambda: "+".join(file.fingerprint() for file in files))


def _hub_rows(place: DatasetSplit, name: str) -> _Rows:
    def read() -> Iterator[Row]:
        builder = _hub_builder(place.dataset.repository, place.config, place.hub_split, name)
        _try(name, builder.download_and_prepare)
        yield from _rows(_try(name, lambda: builder.as_dataset(split=place.hub_split)), name)

    def version() -> str:
        builder = _hub_builder(place.dataset.repository, place.config, place.hub_split, name)
        return str(builder.hash)  # The commit of the branch, which the library has looked up.

    return _Rows(read, version)


@lru_cache(maxsize=256)
def _hub_builder(repository: str, config: str, split: str, name: str) -> Any:
    files = {split: f"{config}/{split}/*.parquet"}
    return _try(
        name,
        lambda: _library().load_dataset_builder(repository, data_files=files, revision=CONVERTED),
    )


def _rows(dataset: Any, name: str) -> Iterator[Row]:
    names = {column: _names_of(kind) for column, kind in (dataset.features or {}).items()}
    rows = iter(with_names(dataset, {column: known for column, known in names.items() if known}, name))
    while True:
        row = _try(name, lambda: next(rows, None))
        if row is None:
            return
        yield row


def _names_of(kind: Any) -> list[str]:
    """Give the names of a label's values, also of a list of labels; none for any other column."""
    return list(getattr(kind, "names", None) or getattr(getattr(kind, "feature", None), "names", None) or ())


def _try(name: str, call: Callable[[], Any]) -> Any:
    """Say what the library could not do, in one line."""
    errors = (OSError, ValueError, KeyError, TypeError, _library().exceptions.DatasetsError)
    try:
        return call()
    except errors as error:
        what = " ".join(str(error).split())[:200]
        raise DataError(
            f"{name}: it cannot be read ({type(error).__name__}: {what}). Look whether the dataset is there "
            f"and the network is; or fetch the corpus's official files: isogloss fetch."
        ) from error


def _library() -> Any:
    try:
        import datasets
    except ImportError as error:
        raise ConfigError(
            f"--data {HUB}: the library datasets is not installed. Install it: pip install "
            f'"isogloss[hub]"; or fetch the official files: isogloss fetch.'
        ) from error
    return datasets
