"""What is asked for: a recipe's text and the changes to it. Cheap to import.

``request`` is a digest of all that a plan is made from. Where a folder was finished for the same request,
nothing has to be planned again.
"""

import json
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from isogloss.core import plug_ins
from isogloss.core.errors import ConfigError
from isogloss.core.paths import from_home, is_there
from isogloss.core.stamps import package_stamp, stamp
from isogloss.recipes.recipe_text import from_toml

Value = TypeVar("Value")

_WORD = re.compile(r"[^\W\d][^\[\]{}\"'=,]*|[./~][^\[\]{}\"'=,]*")
"""What --set reads as text without quotes: a name or a path."""

NET = "hub"
"""The value of ``--data`` for datasets on the Hugging Face hub: no local file shows whether these changed."""


def parse_change(text: str) -> tuple[str, object]:
    """Read one --set key=value; the value is TOML, or a plain word."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"--set {text}: expected key=value, as in --set grid.seeds=[0,1].")
    try:
        return key.strip(), tomllib.loads(f"value = {value}")["value"]
    except ValueError as error:
        if not _WORD.fullmatch(value.strip()):
            raise ConfigError(
                f"--set {text}: the value is no TOML ({error}). Texts in lists and tables stand in quotes: "
                f"--set 'grid.targets=[\"qab\"]'."
            ) from error
        return key.strip(), value.strip()
    except RecursionError as error:
        raise ConfigError(
            f"--set {key}: its lists or tables stand in one another too deeply to be read. Write it flatter."
        ) from error


def once_each(option: str, pairs: Iterable[tuple[str, Value]]) -> dict[str, Value]:
    """Return values by their keys; ConfigError at a key that is given twice: only one of them would count."""
    found: dict[str, Value] = {}
    for key, value in pairs:
        if key in found:
            raise ConfigError(f"{option} {key}: it is given twice. Give it once.")
        found[key] = value
    return found


def request(
    text: str,
    *,
    changes: Mapping[str, object] | None = None,
    scale: str = "",
    data: str | Path | None = None,
    beside: Path = Path(),
) -> str:
    """Return a digest of a recipe, the changes to it, the package, and every file and folder named.

    ``beside`` is the folder of the recipe. Empty where changes cannot be detected: data on the hub, corpora
    and code that the plan alone finds, a recipe that is no TOML.
    """
    named = str(data or "")
    if named == NET:
        return ""
    try:
        body = from_toml(text)
        texts = [named, *_texts(body), *_texts(dict(changes or {}))]
    except (ConfigError, RecursionError):
        return ""
    parts = (part for one in texts for part in one.split("+"))
    if any(part.partition("[")[0].endswith(".toml") for part in parts):
        return ""  # A corpus that is described: what its files are is known to the plan alone.
    if any(":" in one for one in _names({**body, "changes": dict(changes or {})})):
        return ""  # The code of a module: what it is made of is known to the plan alone.
    # "bitext:FOLDER" and "hub:FOLDER" name what stands behind the colon.
    names = {part for one in texts for part in (one, one.partition(":")[2]) if part.strip()}
    paths = [*map(from_home, names), *map(_hub_commits, names)]
    paths += [beside / name for name in _texts(body.get("published")) if name]
    there = [path.absolute() for path in paths if is_there(path)]
    asked = [
        text,
        named,
        scale,
        repr(changes or {}),
        str(Path.cwd()),
        package_stamp(),
        plug_ins.stamp(),
        stamp(there),
    ]
    return sha256(json.dumps(asked).encode()).hexdigest()[:16]


def _texts(value: object) -> Iterator[str]:
    """Yield every text in a recipe, or in changes to it."""
    if isinstance(value, Path | str):
        yield str(value)
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _texts(part)


def _names(value: object) -> Iterator[str]:
    """Yield what the tables of a recipe, or of changes to it, call themselves."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from (str(part),) if str(key).rpartition(".")[2] in ("name", "kind") else _names(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _names(part)


def _hub_commits(name: str) -> Path:
    """Return where the hub's client keeps the commits of a model's branches and tags."""
    home = Path(os.environ.get("HF_HOME", "~/.cache/huggingface"))
    cache = Path(os.environ.get("HF_HUB_CACHE", home / "hub")).expanduser()
    return cache / f"models--{name.partition('@')[0].replace('/', '--')}" / "refs"
