"""Texts that may be paths: what people write is looked up without failing where it is none."""

from pathlib import Path


def from_home(text: str | Path) -> Path:
    """Return a path with ~ as the home folder; one of a user there is not, as in "~5 %", stays as it is."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)


def is_there(path: Path) -> bool:
    """Return whether a path exists and may be looked at; a sentence that is too long for a name does not."""
    try:
        return path.exists()
    except OSError:
        return False
