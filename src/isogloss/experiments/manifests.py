"""Manifests: sizes and checksums of a group of files, by name, as JSON."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import file_digest
from pathlib import Path


@dataclass(frozen=True)
class Content:
    """What a manifest says of a file."""

    size: int
    sha256: str = ""
    """Not compared where it is empty."""


def size_of(path: Path) -> int:
    """Return the size of a file that is here; −1 where there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return -1


def content_of(path: Path, *, summed: bool = True) -> Content:
    """Return what a manifest says of a file that is here; its checksum takes reading it."""
    with path.open("rb") as file:
        return Content(size_of(path), file_digest(file, "sha256").hexdigest() if summed else "")


def manifest_of(told: Mapping[str, Content]) -> bytes:
    """Write a manifest."""
    return (json.dumps({name: asdict(one) for name, one in told.items()}, indent=1) + "\n").encode()


def read_manifest(content: bytes) -> dict[str, Content]:
    """Read a manifest; empty where there is none, or a damaged one."""
    try:
        return {str(name): Content(**one) for name, one in json.loads(content).items()}
    except (ValueError, TypeError, AttributeError):
        return {}
