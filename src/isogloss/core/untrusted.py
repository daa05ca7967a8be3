"""Untrusted input: text made safe to show, write or record, and JSON that is read strictly.

Safe text has no secrets, control characters or direction overrides. JSON is of bounded depth, and anything
else raises ValueError.
"""

import errno
import json
import math
import os
import re
import sys
import unicodedata
from collections.abc import Hashable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

MASK = "***"

MIN_SECRET_LENGTH = 8
"""Characters of a value in the environment that counts as a secret."""

_NAMES = re.compile(
    r"TOKEN|SECRET|PASSWORD|PASSWD|(?:API|ACCESS|ACCOUNT|STORAGE)_?KEY|CREDENTIAL|CONNECTION_STRING",
    re.IGNORECASE,
)
"""Parts of the names of environment variables that contain secrets."""

_SECRETS = re.compile(
    r"""
    (?P<prefix>
        \bbearer\s+ | \bauthorization["']?\s{0,9}[:=]\s{0,9}["']?\w{1,20}\s+
        | [?&;](?:x-amz-[a-z-]{1,40}|[a-z_-]{0,40}(?:token|secret|signature|password|api_?key)|sig)=
        | passw(?:or)?d["']?(?:\s{0,9}=\s{0,9}|:)["']?(?=\S)
        | (?:token|secret|api_?key)["']?[:=]\s{0,9}["']?(?=[^\s"']{0,200}\d)
    )
    [^\s"'&;,<>@]{4,}
    | (?P<url>\b[a-z][a-z0-9+.-]{1,20}:/{1,2})[^/\s"']{1,500}(?=@)         # https://user:password@host
    | \bhf_[A-Za-z0-9]{10,} | \b(?:AKIA|ASIA)[0-9A-Z]{12,} | \bgh[pousr]_[A-Za-z0-9]{16,}
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""Patterns of secrets; all repetitions before them are bounded, so that no message takes long."""


def masked(text: str) -> str:
    """Mask the secrets in a text: those that match a pattern, and those of this process's environment."""
    for value in _secrets():
        text = text.replace(value, MASK)
    return _SECRETS.sub(lambda match: f"{match['prefix'] or match['url'] or ''}{MASK}", text)


def _secrets() -> Iterator[str]:
    """Yield the secrets of the environment, and the token of the hub's library where that is loaded."""
    for name in filter(_names_a_secret, os.environ):
        value = os.environ[name]
        if len(value) >= MIN_SECRET_LENGTH and not os.path.exists(value):  # noqa: PTH110
            yield value
    hub = sys.modules.get("huggingface_hub")
    with suppress(OSError, ValueError):  # Its file may be one that cannot be read.
        if token := hub and hub.get_token():
            yield token


@cache
def _names_a_secret(name: str) -> bool:
    """Return whether an environment variable of this name contains a secret."""
    return bool(_NAMES.search(name))


DIRECTION_CONTROLS = {*map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A))}
"""Unicode's embeddings, overrides and isolates, which change the direction of the text after them."""


LEADING_FOLDERS = re.compile(r"""(?<![^ \n])(['"(`]*)(?:\w:)?[/\\](?:[^ \n]*[/\\])?""")
"""Everything before the last part of an absolute path: the opening bracket or quote, and the folders."""


def plain(text: str) -> str:
    """Return the text without control characters (except line ends and tabs) and direction overrides."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        letter
        for letter in text
        if letter in "\n\t" or (unicodedata.category(letter) != "Cc" and letter not in DIRECTION_CONTROLS)
    )


def without_folders(text: object) -> str:
    """Return printable text without the folders of absolute paths, which differ between machines."""
    return LEADING_FOLDERS.sub(r"\1…/", plain(str(text)))


T = TypeVar("T")

MAX_JSON_DEPTH = 100
"""Levels of nesting that are read; what walks through a value calls itself several times a level."""

_HALF = re.compile(r"\\u[dD][89a-fA-F]")
"""The escape of half a surrogate pair, with or without its other half."""


def parse_json(content: str | bytes) -> Any:
    """Return the value of a JSON text.

    ValueError, briefly worded, for text that is not JSON or not UTF-8, numbers that are not finite, a lone
    surrogate, and nesting beyond ``MAX_JSON_DEPTH``.
    """
    text = content if isinstance(content, str) else content.decode()
    try:
        value = json.loads(text, parse_constant=_finite, parse_float=_finite)
        level: list[Any] = [[value]]
        depth = 0
        while level := [child for part in level for child in _inside(part) if isinstance(child, dict | list)]:
            depth += 1
            if depth > MAX_JSON_DEPTH:
                raise RecursionError
    except RecursionError:
        raise ValueError(f"nested more than {MAX_JSON_DEPTH} levels deep") from None
    if _HALF.search(text):
        json.dumps(value, ensure_ascii=False).encode()
    return value


def read_regular(path: Path) -> bytes:
    """Return a file's content; OSError for a pipe or device in its place too, which might never end."""
    if not path.is_file() and path.exists():
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return path.read_bytes()


def fitting(shape: type[T], value: object) -> T:
    """Return a value of JSON as a type, such as a dataclass; ValueError names the first wrong field."""
    try:
        return cast(T, _adapter(cast(Hashable, shape)).validate_python(value))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "all of it"
        raise ValueError(f"{where:.60}: {first['msg']:.200}") from error


@cache
def _adapter(shape: Hashable) -> TypeAdapter[Any]:
    return TypeAdapter(cast(Any, shape))


def _inside(part: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return part.values() if isinstance(part, dict) else part


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{digits:.40} is no finite number")
    return value
