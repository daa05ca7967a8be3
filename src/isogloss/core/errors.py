"""Errors, their messages and locations, and the nearest match of a name.

IsoglossError
├── InputError          the user's input is wrong; exit code 2
│   ├── ConfigError     a recipe, a field, a name
│   │   └── MissingPackageError   what it requires is not installed
│   └── DataError       a corpus: folder, file, line, label
├── ModelError          an encoder or model folder cannot be used; exit code 2
├── StorageError        the disk is full, or a record was damaged; exit code 2
└── RunError            a run started and could not finish; exit code 1
    └── DivergedError   a loss or weight is no longer a finite number

A message has a location, what was found, what is allowed and what to do. Text that is safe to show, write or
record has no secrets, control characters or direction overrides.
"""

import os
import re
import sys
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from functools import cache
from pathlib import PurePath

USUAL_NAMES = {"fp32": "float32", "bf16": "bfloat16"}
"""Names of other programs, and ours."""

MIN_NAME_SIMILARITY = 0.5
"""Least similarity (difflib's ratio) at which a name is worth suggesting."""


MODEL_PACKAGES = ("torch", "transformers", "tokenizers", "safetensors", "accelerate")
"""Packages installed by the extra ``torch``."""

_FIELD = re.compile(r"[.\[][\w.\[\]-]*: ")
"""Start of a message with a field relative to the location around it (.method[0], [1]), unlike a path."""

MAX_WORD, MAX_MESSAGE_START, MAX_MESSAGE_END = 300, 1000, 400
"""Maximum length of a shown message in characters: per word, and at the start and end of a longer message."""


def shorten_message(message: str) -> str:
    """Return a message in one line, without the ends of endless words and, if too long still, its middle."""
    text = re.sub(rf"(\S{{{MAX_WORD}}})\S+", r"\1…", " ".join(message.splitlines()))
    return (
        text
        if len(text) <= MAX_MESSAGE_START + MAX_MESSAGE_END
        else f"{text[:MAX_MESSAGE_START]} … {text[-MAX_MESSAGE_END:]}"
    )


class IsoglossError(Exception):
    """Any error that isogloss raises on purpose. Secrets are removed from its message."""

    exit_code = 1

    def __init__(self, message: str = "") -> None:
        super().__init__(shorten_message(mask_secrets(message)))


class InputError(IsoglossError):
    """The input is wrong. Nothing was trained."""

    exit_code = 2


class ConfigError(InputError):
    """A recipe, a field or a name is wrong."""


class MissingPackageError(ConfigError):
    """A package that runs require is not installed."""

    def __init__(self, message: str, requirement: str) -> None:
        super().__init__(message)
        self.requirement = requirement
        """The package, and how to install it."""


class DataError(InputError):
    """A corpus cannot be read: folder, file, line or label."""


class ModelError(InputError):
    """An encoder or model folder cannot be used."""


class StorageError(InputError):
    """The disk is full, or a record was damaged.

    ``path`` and ``number`` are the file and the error number of the system where one of its calls failed.
    """

    def __init__(self, message: str = "", *, path: str = "", number: int | None = None) -> None:
        super().__init__(message)
        self.path = path
        self.number = number


class RunError(IsoglossError):
    """A run started and could not finish."""


class DivergedError(RunError):
    """Training left the numbers that make sense."""


@contextmanager
def add_location(location: str) -> Iterator[None]:
    """Prefix input errors raised within with their location: a file, a field. Nested locations are joined.

    A location that begins with a dot or bracket continues the one around it: ``grid`` and ``.method[0]`` give
    ``grid.method[0]: ``, ``grid`` and ``method`` give ``grid: method: ``.
    """
    try:
        yield
    except InputError as error:
        separator = "" if _FIELD.match(str(error)) else ": "
        error.args = (shorten_message(mask_secrets(f"{location}{separator}{error}")),)
        raise


@contextmanager
def explaining_missing_models() -> Iterator[None]:
    """Turn a failed import of a package for models into a ConfigError that names what to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in MODEL_PACKAGES:
            raise
        raise ConfigError(
            f"{package} is not installed. Predictions can be compared and runs read and reported without "
            f'it; models require it: pip install "isogloss[torch]".'
        ) from error


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return " Did you mean 'x'?" for the nearest of the names, or an empty text."""
    names = list(names)
    usual_name = USUAL_NAMES.get(name)
    if usual_name in names:
        return f" Did you mean {usual_name!r}?"
    matches = get_close_matches(name, names, n=1, cutoff=MIN_NAME_SIMILARITY)
    return f" Did you mean {matches[0]!r}?" if matches else ""


def did_you_mean_file(name: str, names: Iterable[str]) -> str:
    """Return `` Did you mean 'x.txt'?`` for the nearest of file names.

    Stems decide, because many names share an ending. Among equal stems, the nearest whole name is suggested.
    """
    names_of_stems = dict[str, list[str]]()
    for candidate in names:
        names_of_stems.setdefault(PurePath(candidate).stem, []).append(candidate)
    stems = get_close_matches(PurePath(name).stem, names_of_stems, n=1, cutoff=MIN_NAME_SIMILARITY)
    if not stems:
        return ""
    (nearest,) = get_close_matches(name, names_of_stems[stems[0]], n=1, cutoff=0.0)
    return f" Did you mean {nearest!r}?"


def unknown_name(field: str, thing: str, name: str, known_names: Iterable[str]) -> ConfigError:
    """Build the error for a name that is not in a table: the field, what was found, what is allowed."""
    names = sorted(set(known_names))
    prefix = f"{field}: " if field else ""
    return ConfigError(f"{prefix}no {thing} {name!r}.{did_you_mean(name, names)} Known: {', '.join(names)}.")


def check_named(field: str, thing: str, known_names: Collection[str], *names: str) -> None:
    """Raise ConfigError at the first name that is not in a table."""
    for name in names:
        if name not in known_names:
            raise unknown_name(field, thing, name, known_names)


def one_line(error: BaseException) -> str:
    """Return an error's type and message in one line, without secrets.

    Errors of foreign code may have no message, or one that raises an error itself.
    """
    try:
        message = " ".join(str(error).split())
    except Exception:
        message = "its message cannot be shown"
    name = type(error).__name__
    return mask_secrets(f"{name}: {message}" if message else name)


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
"""Patterns of secrets. All repetitions before them are bounded, so that no message takes long."""


def mask_secrets(text: str) -> str:
    """Mask the secrets in a text: matches of a pattern, and values of this process's environment."""
    for value in _secrets():
        text = text.replace(value, MASK)
    return without_secrets(text)


def without_secrets(text: str) -> str:
    """Mask what matches the pattern of a secret: the result is the same on every machine, as in records."""
    return _SECRETS.sub(lambda match: f"{match['prefix'] or match['url'] or ''}{MASK}", text)


def _secrets() -> Iterator[str]:
    """Yield the secrets of the environment, and the token of the hub's library where that is loaded."""
    for name in (variable for variable in os.environ if _names_a_secret(variable)):
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


def escape_surrogates(text: str) -> str:
    r"""Return the text with bytes of paths that are not UTF-8 as \\xff, which can be written to any file."""
    if text.isascii():
        return text
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


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


def missing_feature(subject: str, advice: str) -> ConfigError:
    """Return the error for what belongs to a feature that is not installed, with what to do instead."""
    return ConfigError(
        f"{subject} belongs to a feature whose folder in isogloss/features is missing. {advice}"
    )
