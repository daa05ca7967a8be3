"""Stores by their address, which is a folder, or a URL with copies in the user's cache."""

from hashlib import sha256
from pathlib import Path, PurePosixPath

from isogloss.core.errors import StorageError
from isogloss.core.identity import ID
from isogloss.core.progress import OnProgress, no_progress
from isogloss.core.untrusted import user_cache
from isogloss.store.mirrored_store import MirroredStore
from isogloss.store.remote import is_url, remote_at
from isogloss.store.store import Store


def store_at(address: str | Path) -> Store:
    """Return the store in a folder or below a URL, whose copies are in the user's cache."""
    protocol, _, location = str(address).partition("://")
    if not is_url(address) or protocol in ("file", "local"):
        return Store(_folder(location or address))
    url = str(address).rstrip("/")
    name = f"{PurePosixPath(location).name or 'store'}-{sha256(url.encode()).hexdigest()[:12]}"
    root = user_cache() / "stores" / name
    return MirroredStore(root, remote_at(url, root))


def local_folder(address: str | Path, on_progress: OnProgress = no_progress) -> Path:
    """Return the local folder of a store, or of a run by URL, with the files that reports read."""
    if not is_url(address):
        return _folder(address)
    parent, _, key = str(address).rstrip("/").rpartition("/")
    store = store_at(parent if ID.fullmatch(key) else address)
    store.download_records(on_progress)
    return store.root / key if ID.fullmatch(key) else store.root


def _folder(address: str | Path) -> Path:
    path = Path(address)
    try:
        path.exists()
    except OSError as error:  # Such as a name that is too long, or a missing permission.
        raise StorageError(
            f"{address!s:.200}: this folder cannot be looked at ({error.strerror}). Name another one."
        ) from error
    return path


def local_model(address: str | Path) -> Path:
    """Return the folder of a run and its model."""
    folder = local_folder(address)
    return (
        store_at(str(address).rstrip("/").rpartition("/")[0]).download_model(folder.name)
        if is_url(address)
        else folder
    )
