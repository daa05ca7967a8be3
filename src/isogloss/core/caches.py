"""The user's cache, for what can be downloaded or made again."""

import os
from pathlib import Path


def user_cache() -> Path:
    """Return the cache folder: below XDG_CACHE_HOME, else ~/.cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "isogloss"
