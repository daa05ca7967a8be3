"""Entries that the features of isogloss add to its tables.

A feature is a folder of ``isogloss/features`` with a file ``feature.toml``. It lists names and their objects
by the groups that packages outside use (``core.plug_ins``). Reading it imports no feature.
"""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

FEATURES = Path(__file__).parents[1] / "features"
DECLARATION = "feature.toml"


def feature_entries(group: str) -> Mapping[str, str]:
    """Return the "module:object" of each name that features add to a group, by feature and in their order."""
    return {
        name: place
        for declaration in _read_declarations()
        for name, place in declaration.get(group, {}).items()
    }


@cache
def _read_declarations() -> tuple[Mapping[str, Mapping[str, str]], ...]:
    paths = sorted(FEATURES.glob(f"*/{DECLARATION}"))
    return tuple(tomllib.loads(path.read_text(encoding="utf-8")) for path in paths)
