"""Stores by their place: a folder, or a URL with a folder of copies in the user's cache."""

from hashlib import sha256
from pathlib import Path, PurePosixPath

from isogloss.core.caches import user_cache
from isogloss.core.errors import StorageError
from isogloss.core.identity import ID
from isogloss.core.progress import OnProgress, no_progress
from isogloss.recipes.recipe_text import Source, folder_for
from isogloss.store.folder_store import FolderStore
from isogloss.store.mirrored_store import MirroredStore
from isogloss.store.remote import is_url, remote_at
from isogloss.store.store import Store


def store_for(recipe: Source, out: str | Path | None) -> Store:
    """Return the store of a recipe's runs: at ``out``, or in a folder named after the recipe."""
    return store_at(out or folder_for(recipe))


def store_at(place: str | Path) -> Store:
    """Return the store in a folder or below a URL, whose copies are in the user's cache."""
    protocol, _, rest = str(place).partition("://")
    if not is_url(place) or protocol in ("file", "local"):
        return FolderStore(_folder(rest or place))
    url = str(place).rstrip("/")
    name = f"{PurePosixPath(rest).name or 'store'}-{sha256(url.encode()).hexdigest()[:12]}"
    root = user_cache() / "stores" / name
    return MirroredStore(remote_at(url, root))


def local_folder(place: str | Path, on_progress: OnProgress = no_progress) -> Path:
    """Return the folder of a store or, by its URL, of one of its runs, with what reports are made from."""
    if not is_url(place):
        return _folder(place)
    above, _, key = str(place).rstrip("/").rpartition("/")
    store = store_at(above if ID.fullmatch(key) else place)
    store.download_records(on_progress)
    return store.root / key if ID.fullmatch(key) else store.root


def _folder(place: str | Path) -> Path:
    path = Path(place)
    try:
        path.exists()
    except OSError as error:  # A name that is too long, a folder nobody may look into.
        raise StorageError(
            f"{place!s:.200}: this folder cannot be looked at ({error.strerror}). Name another one."
        ) from error
    return path


def local_model(place: str | Path) -> Path:
    """Return the folder of a run, with its model."""
    folder = local_folder(place)
    return (
        store_at(str(place).rstrip("/").rpartition("/")[0]).download_model(folder.name)
        if is_url(place)
        else folder
    )
