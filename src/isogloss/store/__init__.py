"""Stores by their address, which is a folder, or a URL with copies in the user's cache."""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path, PurePosixPath

from isogloss.core.errors import StorageError, missing_feature
from isogloss.core.identity import ID
from isogloss.core.progress import OnProgress, no_progress
from isogloss.core.registry import Registry
from isogloss.core.untrusted import user_cache
from isogloss.store.store import Store

STORES: Registry[Callable[[str, Path], Store]] = Registry({}, group="stores")
"""Functions that open a store below a URL, with copies of its files in a folder.

Names of packages are protocols (``home`` opens home://study). The store of isogloss opens all other URLs.
"""


def is_url(path: str | Path) -> bool:
    """Return whether a path is a URL rather than a folder."""
    return "://" in str(path)


def store_at(address: str | Path) -> Store:
    """Return the store in a folder or below a URL, whose copies are in the user's cache."""
    protocol, _, location = str(address).partition("://")
    if not is_url(address) or protocol in ("file", "local"):
        return Store(_folder(location or address))
    url = str(address).rstrip("/")
    name = f"{PurePosixPath(location).name or 'store'}-{sha256(url.encode()).hexdigest()[:12]}"
    root = user_cache() / "stores" / name
    for store in [protocol] if protocol in STORES else STORES.places:
        return STORES[store](url, root)
    raise missing_feature(f"{url}: a store below a URL", "Name a folder, or install isogloss again.")


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
