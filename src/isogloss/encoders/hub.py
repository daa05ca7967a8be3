"""The Hugging Face hub: from a model's name to a folder in the local cache, downloading what is not there."""

import errno
from collections.abc import Callable, Sequence
from pathlib import Path

from isogloss.core.errors import IsoglossError, ModelError
from isogloss.core.records import storage_error


def hub_folder(name: str, patterns: Sequence[str], complete: Callable[[Path], bool]) -> Path:
    """Return a folder with the files of a hub model that match the patterns.

    What is in the cache and ``complete`` is used without asking the network. An interrupted download is
    taken up where it stopped. ModelError when the hub itself has not all that is needed.
    """
    cached = _cached(name, patterns)
    if cached and complete(cached):
        return cached
    folder = _download(name, patterns)
    if not complete(folder):
        raise _incomplete(name, folder, patterns)
    return folder


def _cached(name: str, patterns: Sequence[str]) -> Path | None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, allow_patterns=list(patterns), local_files_only=True))
    except LocalEntryNotFoundError:
        return None


def _download(name: str, patterns: Sequence[str]) -> Path:
    from huggingface_hub import snapshot_download

    try:
        # Subfolders hold the same weights in other formats.
        return Path(snapshot_download(name, allow_patterns=list(patterns), ignore_patterns=["*/*"]))
    except Exception as error:  # The hub's client lets through errors of several HTTP libraries.
        raise _download_error(name, error) from error


def _download_error(name: str, error: Exception) -> IsoglossError:
    from huggingface_hub.errors import LocalEntryNotFoundError, RepositoryNotFoundError

    if isinstance(error, RepositoryNotFoundError):
        return ModelError(
            f"{name}: neither a folder here nor a model on the Hugging Face hub (or one that needs a login). "
            f"Check the name, or give the folder."
        )
    if isinstance(error, LocalEntryNotFoundError):
        return ModelError(
            f"{name}: not found locally, and the Hugging Face hub cannot be reached. On a connected machine: "
            f"hf download {name} --local-dir FOLDER; then give that folder instead of the name."
        )
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return storage_error(Path(name), error)
    return ModelError(
        f"{name}: the download was interrupted ({_one_line(error)}). Run the same command again: it resumes. "
        f"If it keeps failing: hf download {name} --local-dir FOLDER, and give that folder."
    )


def _incomplete(name: str, folder: Path, patterns: Sequence[str]) -> ModelError:
    found = ", ".join(sorted(path.name for path in folder.iterdir())) or "nothing"
    return ModelError(
        f"{name}: of {', '.join(patterns)} the Hugging Face hub has {found}, which is not enough. If its "
        f"weights are only there as pickle (.bin), which can run code when it is read, convert them, if you "
        f"trust where they come from: from transformers import AutoModel, AutoTokenizer; "
        f"AutoModel.from_pretrained({name!r}).save_pretrained('FOLDER'); "
        f"AutoTokenizer.from_pretrained({name!r}).save_pretrained('FOLDER'). Then give FOLDER."
    )


def _one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())
