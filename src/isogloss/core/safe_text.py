"""Text that is safe to show, write or record: without secrets, control characters and direction overrides."""

import os
import re
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from functools import cache

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
