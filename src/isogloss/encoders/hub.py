"""Models on the Hugging Face hub, read from the local cache or else downloaded."""

import errno
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from isogloss.core.atomic_files import storage_error
from isogloss.core.errors import IsoglossError, ModelError, one_line
from isogloss.core.untrusted import from_home, is_there

HUB_NAME = re.compile(r"(?![^@]*(--|\.\.|\.git(@|$)))(\b[\w.-]+\b/)?\b[\w.-]{1,96}\b(@[\w.-]+)?")
"""A model's name on the hub, as its client accepts it. The part after @ is a branch, tag or commit."""


def is_hub_name(source: str) -> bool:
    """Return whether a text has the form of a hub name, and neither it nor its parent is a path."""
    path = from_home(source)
    path_exists = is_there(path) or ("/" in source and path.parent.is_dir())
    return bool(HUB_NAME.fullmatch(source)) and not path_exists


def hub_folder(name: str, patterns: Sequence[str], complete: Callable[[Path], bool]) -> Path:
    """Return the folder of a hub model (``name`` or ``name@revision``), with the files matching the patterns.

    A ``complete`` folder in the cache is used without the network. Interrupted downloads are resumed. Raises
    ModelError if the hub lacks required files.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    repository, _, revision = name.partition("@")
    download = partial(
        snapshot_download, repository, revision=revision or None, allow_patterns=list(patterns)
    )
    try:
        cache_folder: Path | None = Path(download(local_files_only=True))
    except LocalEntryNotFoundError:
        cache_folder = None
    if cache_folder and complete(cache_folder):
        return cache_folder
    try:
        folder = Path(download(ignore_patterns=["*/*"]))  # Subfolders contain the weights in other formats.
    except Exception as error:  # The hub's client raises errors of several HTTP libraries.
        raise _download_error(name, error) from error
    if not complete(folder):
        raise _incomplete(name, folder, patterns)
    return folder


def pinned_name(name: str, commit: str | None) -> str:
    """Return a hub name at a commit, which replaces its revision, or the name itself without a commit."""
    return f"{name.partition('@')[0]}@{commit}" if commit else name


def unreachable(name: str) -> ModelError:
    """Build the error for a model that is not in the cache while the hub cannot be reached."""
    return ModelError(
        f"{name}: not found locally, and the Hugging Face hub cannot be reached. On a connected machine: "
        f"hf download {name.replace('@', ' --revision ')} --local-dir FOLDER; then give that folder instead "
        f"of the name."
    )


def _download_error(name: str, error: Exception) -> IsoglossError:
    from huggingface_hub.errors import (
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    repository, _, revision = name.partition("@")
    if isinstance(error, RevisionNotFoundError):
        return ModelError(
            f"{name}: {repository} is on the Hugging Face hub, but has no revision {revision!r}. Give one of "
            f"its branches, tags or commits, or remove @{revision}."
        )
    if isinstance(error, RepositoryNotFoundError):
        return ModelError(
            f"{name}: neither a folder here nor a model on the Hugging Face hub (or one that needs a login). "
            f"Check the name, or give the folder."
        )
    if isinstance(error, LocalEntryNotFoundError):
        return unreachable(name)
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return storage_error(Path(name), error)
    return ModelError(
        f"{name}: the download was interrupted ({one_line(error)}). Run the same command again: it resumes. "
        f"If it keeps failing: hf download {name} --local-dir FOLDER, and give that folder."
    )


def _incomplete(name: str, folder: Path, patterns: Sequence[str]) -> ModelError:
    names = ", ".join(sorted(path.name for path in folder.iterdir())) or "nothing"
    repository, _, revision = name.partition("@")
    arguments = f"{repository!r}, revision={revision!r}" if revision else repr(repository)
    if (folder / "adapter_config.json").exists():
        revision = f" --revision {revision}" if revision else ""
        return ModelError(
            f"{name}: these are adapters, without the model that they belong to. Download them: hf download "
            f"{repository}{revision} --local-dir FOLDER; then give that folder."
        )
    return ModelError(
        f"{name}: the Hugging Face hub has {names}, but {', '.join(patterns)} are needed. If its "
        f"weights are only there as pickle (.bin), which can run code when it is read, convert them, if you "
        f"trust where they come from: from transformers import AutoModel, AutoTokenizer; "
        f"AutoModel.from_pretrained({arguments}).save_pretrained('FOLDER'); "
        f"AutoTokenizer.from_pretrained({arguments}).save_pretrained('FOLDER'). Then give FOLDER."
    )
