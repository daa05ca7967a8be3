"""The user's cache: where what can be had or made again lies, beside everything else of that kind."""

import os
from pathlib import Path


def user_cache() -> Path:
    """Return the folder for what can be had or made again: of XDG, else ~/.cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "isogloss"
