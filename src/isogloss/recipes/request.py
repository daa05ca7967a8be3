"""A request: a recipe's text, the changes to it, and the values that a search may try.

Its digest covers everything that a plan depends on. If a folder was finished for the same request, nothing
has to be planned again. This module is cheap to import.
"""

import json
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from isogloss.core import plug_ins
from isogloss.core.checksums import package_stamp, stamp
from isogloss.core.errors import ConfigError
from isogloss.core.untrusted import from_home, is_there
from isogloss.recipes.recipe_text import from_toml

if TYPE_CHECKING:
    pass


Value = TypeVar("Value")

_WORD = re.compile(r"[^\W\d][^\[\]{}\"'=,]*|[./~][^\[\]{}\"'=,]*")
"""What --set reads as text without quotes: a name or a path."""

HUB = "hub"
"""The value of ``--data`` for datasets on the Hugging Face hub: no local file shows whether these changed."""


def parse_change(text: str) -> tuple[str, object]:
    """Read a --set key=value. The value is TOML or a plain word."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"--set {text}: expected key=value, as in --set grid.seeds=[0,1].")
    try:
        return key.strip(), tomllib.loads(f"value = {value}")["value"]
    except ValueError as error:
        if not _WORD.fullmatch(value.strip()):
            raise ConfigError(
                f"--set {text}: the value is not valid TOML ({error}). Quote texts in lists and tables: "
                f"--set 'grid.targets=[\"qab\"]'."
            ) from error
        return key.strip(), value.strip()
    except RecursionError as error:
        raise ConfigError(f"--set {key}: its lists or tables are nested too deeply. Flatten them.") from error


def unique_keys(option: str, pairs: Iterable[tuple[str, Value]]) -> dict[str, Value]:
    """Return an option's values by key. Raises ConfigError for a key that occurs twice."""
    values: dict[str, Value] = {}
    for key, value in pairs:
        if key in values:
            raise ConfigError(f"{option} {key}: it occurs twice. Give it once.")
        values[key] = value
    return values


def request_digest(
    text: str,
    *,
    changes: Mapping[str, object] | None = None,
    scale: str = "",
    data: str | Path | None = None,
    folder: Path = Path(),
) -> str:
    """Return a digest of a request and the package. Empty where changes to it cannot be detected.

    It never equals the digest of a plan that also depends on files found by planning (``planned_parts``).
    """
    return digest_request(request_parts(text, changes=changes, scale=scale, data=data, folder=folder))


def digest_request(parts: Mapping[str, str]) -> str:
    """Return a digest of the parts of a request and the package. Empty without parts."""
    return _digest_of([*parts.values(), package_stamp()]) if parts else ""


def request_parts(
    text: str,
    *,
    changes: Mapping[str, object] | None = None,
    scale: str = "",
    data: str | Path | None = None,
    folder: Path = Path(),
) -> dict[str, str]:
    """Return digests of a recipe in ``folder``, the changes to it, plug-ins, and every file it names.

    Empty where changes cannot be detected: code that only planning finds, a recipe that is not TOML. Files of
    described corpora and data on the hub are not among them: planning finds them (``planned_parts``).
    """
    data_folder = str(data or "")
    try:
        body = from_toml(text)
        texts = [data_folder, *_texts(body), *_texts(dict(changes or {}))]
    except (ConfigError, RecursionError):
        return {}
    if any(":" in name for name in _names({**body, "changes": dict(changes or {})})):
        return {}  # The code of a class that is named by its module.
    # "bitext:FOLDER" and "hub:FOLDER" name a folder after the colon.
    names = {name for value in texts for name in (value, value.partition(":")[2]) if name.strip()}
    paths = [*(from_home(path_name) for path_name in names), *(_hub_commits(hub_name) for hub_name in names)]
    paths += [folder / name for name in _texts(body.get("published")) if name]
    return {
        "recipe": _digest_of([text]),
        "scale or --set": _digest_of([scale, repr(changes or {})]),
        "folder of data or current folder": _digest_of([data_folder, str(Path.cwd())]),
        "set of plug-ins": _digest_of([plug_ins.stamp()]),
        "file of data or encoders": stamp(path.absolute() for path in paths if is_there(path)),
    }


def _digest_of(texts: Sequence[str]) -> str:
    return sha256(json.dumps(texts).encode()).hexdigest()[:16]


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, Path | str):
        yield str(value)
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _texts(part)


def _names(value: object) -> Iterator[str]:
    """Yield the values of ``name`` and ``kind`` in the tables of a recipe, or of changes to it."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from (str(part),) if str(key).rpartition(".")[2] in ("name", "kind") else _names(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _names(part)


def _hub_commits(name: str) -> Path:
    """Return the folder where the hub's client caches the commits of a model's branches and tags."""
    home = Path(os.environ.get("HF_HOME", "~/.cache/huggingface"))
    cache = Path(os.environ.get("HF_HUB_CACHE", home / "hub")).expanduser()
    return cache / f"models--{name.partition('@')[0].replace('/', '--')}" / "refs"


def toml_or_text(text: str) -> Any:
    """Read a value as TOML, or else as a text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text.strip()
