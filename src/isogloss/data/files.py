"""Text files and folders of files on disk.

Readers take numbered lines from a ``File``, whether it is plain, .gz, .xz or generated.
"""

import gzip
import json
import lzma
import re
import zlib
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from io import BufferedIOBase, BufferedReader
from pathlib import Path
from typing import Literal, Protocol, cast

from isogloss.core.checksums import sha256_of
from isogloss.core.errors import DataError, did_you_mean
from isogloss.core.untrusted import is_there

SUFFIXES = ("", ".gz", ".xz")
"""Suffixes that a file name may have. The first that exists is read."""

MANY = 12
"""Longest list of names that a message shows in full."""

LONGEST = 300
"""Number of characters of the offending text that a message shows."""

LONGEST_PATTERN = 1_000
"""Maximum characters in a pattern of file names. Matching a longer one may take exponential time."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class File:
    """A text file: its ``name`` for messages, its lines, and a fingerprint of its content."""

    name: str
    read: Callable[[], Iterator[str]]
    fingerprint: Callable[[], str]

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield each line with its number, counted from 1, without its line end."""
        for line_number, line in enumerate(self.read(), start=1):
            yield line_number, line.removesuffix("\n").removesuffix("\r")

    def broken(
        self, line_number: int, problem: str, expected: str, advice: str = "Correct the line"
    ) -> DataError:
        """Build the error for a broken line: its number, what was found, what is expected, and advice."""
        return DataError(f"{self.name}:{line_number}: {short(problem)}; expected {expected}. {advice}.")

    @property
    def plain_name(self) -> str:
        """The name without .gz or .xz."""
        return self.name.removesuffix(".gz").removesuffix(".xz")

    @property
    def base_name(self) -> str:
        """The plain name without its folders."""
        return self.plain_name.replace("\\", "/").rpartition("/")[2]


def short(text: str) -> str:
    """Truncate offending text for a message, because a damaged file may have very long lines."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def some(names: Iterable[str]) -> str:
    """Join the first names for a message and count the others."""
    names = list(names)
    remainder = f" and {len(names) - MANY} more" if len(names) > MANY else ""
    return (short(", ".join(names[:MANY])) or "nothing") + remainder


def is_unicode(text: str) -> bool:
    """Return whether a text can be encoded as UTF-8.

    It cannot if it has half a surrogate pair, which JSON's escapes may spell.
    """
    return text.isascii() or not _SURROGATE.search(text)


def unique_keys(members: list[tuple[str, object]]) -> dict[str, object]:
    """Build a JSON object.

    Raises ValueError for a repeated key, because Python would silently keep the last value.
    """
    body = dict(members)
    if len(body) < len(members):
        names = [name for name, _ in members]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice[:40]!r} occurs twice in an object")
    return body


def numbered_objects(file: File) -> Iterator[tuple[int, str, dict[str, object]]]:
    """Yield number, line and object of each JSON line, and skip empty lines.

    Raises DataError at a line that is not a JSON object.
    """
    for line_number, line in file.lines():
        if line.strip():
            yield line_number, line, parse_object(file, line_number, line)


def parse_object(file: File, line_number: int, line: str) -> dict[str, object]:
    """Return the object of a JSON line.

    Raises DataError if the line is not a JSON object of valid Unicode text, or repeats a key.
    """
    try:
        body = json.loads(line, object_pairs_hook=unique_keys)
        json.dumps(body, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise file.broken(line_number, f"invalid JSON ({error})", "a JSON object") from error
    if not isinstance(body, dict):
        raise file.broken(line_number, f"{line[:60]!r}", "a JSON object")
    return body


class FilePlace(Protocol):
    """A place that contains or generates files."""

    @property
    def name(self) -> str:
        """Name in messages."""
        ...

    def inside(self) -> list[str]:
        """Return the names of its direct contents, sorted, for messages."""
        ...


class Folder(FilePlace, Protocol):
    """A folder that finds files under the official (or our) folder names of corpora."""

    def find(self, patterns: Iterable[str]) -> list[File]:
        """Return the files of the first pattern with matches, sorted by name, or an empty list."""
        ...


class Findable(Protocol):
    """A corpus, which knows the names of its files."""

    def find(self, folder: Folder, language: str, split: Literal["train", "dev", "test"]) -> list[File]:
        """Find the files of one split.

        Raises DataError, naming the existing files, if the split has none.
        """
        ...


@dataclass(frozen=True)
class DiskFolder:
    """A folder on disk. ``en.tsv`` is also found as ``en.tsv.gz`` or ``en.tsv.xz``."""

    path: Path

    def __post_init__(self) -> None:
        if not (is_there(self.path) and self.path.is_dir()):
            raise _no_folder(self.path)

    @property
    def name(self) -> str:
        """The path as the user gave it."""
        return str(self.path)

    def find(self, patterns: Iterable[str]) -> list[File]:
        """Return the files of the first pattern with matches, sorted by name, or an empty list."""
        for pattern in patterns:
            if paths := self._matching(pattern):
                return [disk_file(path) for path in paths]
        return []

    def files(self, corpus: Findable, language: str, split: Literal["train", "dev", "test"]) -> list[File]:
        """Return the files of one split of a corpus."""
        return corpus.find(self, language, split)

    def folder(self, corpus: str, languages: Sequence[str] = ()) -> "DiskFolder":  # noqa: ARG002
        """Return this folder for every described corpus."""
        return self

    def inside(self) -> list[str]:
        """Return the names of its direct contents, without hidden ones, sorted."""
        return _names(self.path)

    def _matching(self, pattern: str) -> list[Path]:
        paths: dict[str, Path] = {}
        try:
            if len(pattern) > LONGEST_PATTERN:
                raise ValueError(f"{len(pattern):,} characters")
            for path, suffix in ((path, end) for end in SUFFIXES for path in self.path.glob(pattern + end)):
                if path.is_file():
                    paths.setdefault(str(path).removesuffix(suffix), path)
        except (OSError, ValueError, NotImplementedError) as error:  # The pattern is too long, or absolute.
            raise DataError(
                f"{self.path}: {pattern!r:.80}: not a pattern of file names ({error!s:.80})."
            ) from error
        return [paths[name] for name in sorted(paths)]


def disk_file(path: Path) -> File:
    """Return a file on disk, plain, .gz or .xz.

    Nothing is read yet. Reading raises DataError for damaged, missing or non-UTF-8 files.
    """
    return File(name=str(path), read=lambda: _read(path), fingerprint=lambda: _fingerprint(path))


def byte_stream(name: str, stream: Iterable[bytes]) -> File:
    """Return a stream of lines, such as standard input, as a file that can be read once."""
    return File(name=name, read=lambda: _decode_lines(stream, name), fingerprint=lambda: "")


def _decode_lines(stream: Iterable[bytes], name: str) -> Iterator[str]:
    for line_number, line in enumerate(_with_line_feeds(iter(stream)), start=1):
        yield _decode(line if line_number > 1 else line.removeprefix(BYTE_ORDER_MARK), name, line_number)


def _with_line_feeds(stream: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the lines of a file, ended by line feeds.

    A file of two lines or more is left as it is. In a file of one line, carriage returns end lines.
    """
    first_line = next(stream, b"")
    second_line = b""
    if b"\r" in first_line.rstrip(b"\r\n"):
        second_line = next(stream, b"")
        if not second_line:
            yield from (
                first_line.replace(b"\r\n", b"\r")
                .replace(b"\n", b"\r")
                .replace(b"\r", b"\n")
                .splitlines(keepends=True)
            )
            return
    yield from (line for line in (first_line, second_line) if line)
    yield from stream


def _read(path: Path) -> Iterator[str]:
    line_count = 0
    try:
        with closing(_open(path)) as stream:
            for line in _decode_lines(stream, str(path)):
                line_count += 1
                yield line
    except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(
            f"{path}:{line_count + 1}: the file ends too early or is damaged ({error}); expected a whole "
            f"{path.suffix} file. Fetch it again."
        ) from error
    except OSError as error:
        raise _unreadable(path, error) from error


def _open(path: Path) -> BufferedIOBase:
    if path.suffix == ".gz":
        return BufferedReader(cast(BufferedReader, gzip.open(path)))  # twice as fast line by line
    if path.suffix == ".xz":
        return BufferedReader(cast(BufferedReader, lzma.open(path, format=lzma.FORMAT_XZ)))
    return path.open("rb")


def _decode(line: bytes, name: str, line_number: int) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        if line_number == 1 and line.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
            raise DataError(
                f"{name}:1: this is UTF-16; expected UTF-8 text. Save the file as UTF-8."
            ) from error
        raise DataError(
            f"{name}:{line_number}: byte {line[error.start]:#04x} at byte {error.start + 1} of the line is "
            f"not UTF-8 ({error.reason}); expected UTF-8 text. Save the file as UTF-8 or fetch it again."
        ) from error


def _fingerprint(path: Path) -> str:
    try:
        return sha256_of(path).hex()
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> DataError:
    return DataError(
        f"{path}: cannot be read ({error.strerror or error}). Check the path and its permissions."
    )


def _no_folder(path: Path) -> DataError:
    if is_there(path):
        return DataError(f"{path}: this is a file; --data needs a folder of corpora. Give that folder.")
    names = [name for name in _names(path.parent) if (path.parent / name).is_dir()]
    parent = f"{path.parent} has: {some(names)}." if names else f"{path.parent} is empty or missing."
    return DataError(
        f"{path}: no such folder.{did_you_mean(path.name, names)} {parent} Give --data a folder that exists."
    )


def _names(path: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in path.iterdir() if not entry.name.startswith("."))
    except OSError:
        return []
