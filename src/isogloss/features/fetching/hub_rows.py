"""Rows of datasets of the Hugging Face hub as JSON lines, and the library that reads them.

A described corpus may name any dataset of plain data (parquet, JSON, CSV, lines of text) at a commit. Code
that comes with a dataset is never run.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeVar

from isogloss.core.errors import ConfigError, DataError, add_location, one_line
from isogloss.data.files import File
from isogloss.data.json_rows import VERSION, json_lines

if TYPE_CHECKING:
    from datasets import DatasetBuilder

Result = TypeVar("Result")


READ_BY = ("parquet", "json", "csv", "text", "conll", "arrow", "cache")
"""Readers of the library that read only data. Others unpickle, or open archives with any content."""


def hub_file(dataset: str, path: str) -> File:
    """Return the rows of ``config/split`` of a dataset as a file that is generated when it is read."""
    config, _, split = path.rpartition("/")
    name = f"hub:{dataset}/{path}"

    def read() -> Iterator[str]:
        with add_location(name):
            builder = _builder(dataset, config, str(library().config.HF_DATASETS_CACHE))
            attempt(builder.download_and_prepare)
            yield from json_lines(attempt(lambda: builder.as_dataset(split=split)))

    facts = ("hub rows", str(VERSION), dataset, config, split)
    return File(name, read, lambda: sha256("\n".join(facts).encode()).hexdigest())


ADVICE = (
    "Check that the dataset has this configuration, split and commit, and that the network works. Data read "
    "earlier needs no network."
)


@lru_cache(maxsize=256)
def _builder(dataset: str, config: str, _cache: str) -> "DatasetBuilder":
    """Return the library's builder of a dataset at a commit, cached because its creation queries the hub.

    Raises DataError for a different commit, or for files that may contain more than data.
    """
    repository, _, commit = dataset.partition("@")
    builder: DatasetBuilder = attempt(
        lambda: library().load_dataset_builder(repository, config or None, revision=commit)
    )
    kinds = {kind.__module__.rpartition(".")[2] for kind in type(builder).__mro__}
    if kinds.isdisjoint(READ_BY):
        raise DataError(
            f"its files are not plain data ({type(builder).__name__}); expected "
            f"{', '.join(READ_BY[:4])}. Save the rows in one of these formats, and describe the files."
        )
    if str(builder.hash) != commit:  # Without a network the library takes any commit that it has.
        raise DataError(
            f"this commit is not on this machine (it has {builder.hash}), and the hub is not reachable. "
            f"{ADVICE}"
        )
    return builder


def attempt(call: Callable[[], Result]) -> Result:
    """Call the library and return the result.

    Raises DataError, in one line, if the library fails.
    """
    # The library raises RuntimeError for a dataset that is a script.
    errors = (OSError, ValueError, KeyError, TypeError, RuntimeError, library().exceptions.DatasetsError)
    try:
        return call()
    except errors as error:
        raise DataError(f"it cannot be read ({one_line(error):.250}). {ADVICE}") from error


def library() -> Any:
    """Return the library datasets.

    Raises ConfigError if it is not installed.
    """
    try:
        import datasets
    except ImportError as error:
        raise ConfigError(
            "hub: the library datasets is not installed. Install it: pip install "
            '"isogloss[hub]"; or fetch the official files: isogloss fetch.'
        ) from error
    return datasets
