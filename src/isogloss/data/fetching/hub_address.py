"""Datasets of the Hugging Face hub at a commit: ``OWNER/NAME@main`` is looked up once and then remains."""

import re
from contextlib import suppress
from functools import partial
from pathlib import Path

from isogloss.core.atomic_files import write_text
from isogloss.core.errors import ConfigError, DataError, StorageError, one_line
from isogloss.core.untrusted import is_safe

DATASET = re.compile(r"(?P<name>[\w.-]+(/[\w.-]+)?)(@(?P<revision>[\w./-]+))?")
"""A dataset, and after @ its branch, tag or commit."""

COMMIT = re.compile(r"[0-9a-f]{40}")
MAIN = "main"

_FILE = re.compile(r"hub:(?P<name>[\w.-]+/[\w.-]+)@(?P<revision>[\w.-]+)/(?P<path>.+)")
"""A file of a dataset."""


def pinned(dataset: str, records: Path) -> str:
    """Return a dataset of the hub with its commit; that of a branch is looked up once and written to a file.

    ConfigError for a text that names no dataset, DataError where the commit cannot be looked up.
    """
    match = DATASET.fullmatch(dataset)
    if not match or not is_safe(dataset):
        raise ConfigError(
            f"hub: found {dataset!r}; expected owner/name, owner/name@BRANCH or owner/name@COMMIT."
        )
    name, commit = match["name"], match["revision"] or MAIN
    if not COMMIT.fullmatch(commit):
        record = records / "commits" / f"{name}@{commit}"
        recorded = ""
        with suppress(OSError, ValueError):
            recorded = record.read_text(encoding="utf-8").strip()
        commit = recorded if COMMIT.fullmatch(recorded) else _commit(name, commit)
        if commit != recorded:
            with suppress(StorageError):  # Then it is looked up again.
                write_text(record.parent, record.name, f"{commit}\n")
    return f"{name}@{commit}"


def _commit(name: str, revision: str) -> str:
    from huggingface_hub import HfApi
    from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

    try:
        return str(HfApi().dataset_info(name, revision=revision).sha)
    except (RevisionNotFoundError, RepositoryNotFoundError) as error:
        raise DataError(
            f"hub: no dataset {name} with a revision {revision!r} is on the Hugging Face hub, or it needs a "
            f"login. Check both names."
        ) from error
    except Exception as error:  # The hub's client raises errors of several HTTP libraries.
        raise DataError(
            f"hub: the commit of {name}@{revision} cannot be looked up ({one_line(error):.200}). Try again "
            f"with a network; or write it, {name}@COMMIT, which needs none where the data have been read."
        ) from error


def at_commit(url: str, records: Path, *, resolve: bool = False) -> str:
    """Return the address of a file with the commit of its dataset, if it is known or to be looked up."""
    match = _FILE.fullmatch(url)
    if not match:
        return url
    name, revision = match["name"], match["revision"]
    if not resolve and not (records / "commits" / f"{name}@{revision}").is_file():
        return url
    return f"hub:{pinned(f'{name}@{revision}', records)}/{match['path']}"


def address(url: str) -> str:
    """Return where a file is downloaded from: one of the hub at ``HF_ENDPOINT``."""
    match = _FILE.fullmatch(url)
    if not match:
        return url
    from huggingface_hub import constants

    return f"{constants.ENDPOINT}/datasets/{match['name']}/resolve/{match['revision']}/{match['path']}"


def snapshot(dataset: str, pattern: str, name: str) -> Path:
    """Return the folder of a dataset at a commit in the hub's cache, with the files that match a pattern.

    They are downloaded where the cache lacks them; DataError where they cannot be.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    repository, _, commit = dataset.partition("@")
    download = partial(snapshot_download, repository, repo_type="dataset", revision=commit)
    with suppress(LocalEntryNotFoundError):
        folder = Path(download(allow_patterns=[pattern], local_files_only=True))
        if any(folder.glob(pattern)):
            return folder
    try:
        return Path(download(allow_patterns=[pattern]))
    except Exception as error:  # The hub's client raises errors of several HTTP libraries.
        raise DataError(
            f"{name}: it cannot be downloaded ({one_line(error):.250}). Check that the network works; or "
            f"fetch the official files: isogloss fetch."
        ) from error
