"""Datasets of the Hugging Face hub at a commit.

The commit of ``OWNER/NAME@main`` is requested once and does not change afterwards.
"""

import re
from contextlib import suppress
from functools import partial
from pathlib import Path

from isogloss.core.atomic_files import write_text
from isogloss.core.errors import ConfigError, DataError, StorageError, one_line
from isogloss.core.untrusted import is_safe

DATASET = re.compile(r"(?P<name>[\w.-]+(/[\w.-]+)?)(@(?P<revision>[\w./-]+))?")
"""A dataset, with its branch, tag or commit after @."""

COMMIT = re.compile(r"[0-9a-f]{40}")
MAIN = "main"

_FILE = re.compile(r"hub:(?P<name>[\w.-]+/[\w.-]+)@(?P<revision>[\w.-]+)/(?P<path>.+)")
"""A file of a dataset."""


def pin_commit(dataset: str, records: Path) -> str:
    """Return a dataset of the hub with its commit.

    The commit of a branch is requested once and recorded in a file. Raises ConfigError for a text that is not
    the name of a dataset, DataError if the commit cannot be determined.
    """
    match = DATASET.fullmatch(dataset)
    if not match or not is_safe(dataset):
        raise ConfigError(
            f"hub: found {dataset!r}; expected owner/name, owner/name@BRANCH or owner/name@COMMIT."
        )
    name = match["name"]
    commit = match["revision"] or MAIN
    if not COMMIT.fullmatch(commit):
        record = records / "commits" / f"{name}@{commit}"
        recorded_commit = ""
        with suppress(OSError, ValueError):
            recorded_commit = record.read_text(encoding="utf-8").strip()
        commit = recorded_commit if COMMIT.fullmatch(recorded_commit) else _commit(name, commit)
        if commit != recorded_commit:
            with suppress(StorageError):  # The next call looks it up again.
                write_text(record.parent, record.name, f"{commit}\n")
    return f"{name}@{commit}"


def _commit(name: str, revision: str) -> str:
    from huggingface_hub import HfApi
    from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

    try:
        return str(HfApi().dataset_info(name, revision=revision).sha)
    except (RevisionNotFoundError, RepositoryNotFoundError) as error:
        raise DataError(
            f"hub: the Hugging Face hub has no dataset {name} with a revision {revision!r}, or it requires a "
            f"login. Check both names."
        ) from error
    except Exception as error:  # The hub's client raises errors of several HTTP libraries.
        raise DataError(
            f"hub: the commit of {name}@{revision} cannot be determined ({one_line(error):.200}). Try "
            f"again with a network, or state the commit ({name}@COMMIT): data read earlier needs no network."
        ) from error


def pin_address(url: str, records: Path, *, resolve: bool = False) -> str:
    """Return the address of a file with the commit of its dataset.

    An address of a different site is unchanged. So is an unknown commit, unless ``resolve`` looks it up.
    """
    match = _FILE.fullmatch(url)
    if not match:
        return url
    name = match["name"]
    revision = match["revision"]
    if not resolve and not (records / "commits" / f"{name}@{revision}").is_file():
        return url
    return f"hub:{pin_commit(f'{name}@{revision}', records)}/{match['path']}"


def address(url: str) -> str:
    """Return the URL from which a file is downloaded, at ``HF_ENDPOINT`` for files of the hub."""
    match = _FILE.fullmatch(url)
    if not match:
        return url
    from huggingface_hub import constants

    return f"{constants.ENDPOINT}/datasets/{match['name']}/resolve/{match['revision']}/{match['path']}"


def snapshot(dataset: str, pattern: str, name: str) -> Path:
    """Return the folder of a dataset at a commit in the hub's cache, with the files of a pattern.

    They are downloaded if the cache lacks them. Raises DataError if the download fails.
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
