"""Fetch the official files of corpora to the paths that their readers search, by one table for each corpus.

Tables are ``official/xnli.toml`` and others. A file either goes where the reader looks (``to``), or it is an
archive of which some members do (``take``). Sizes and checksums are the published ones, or those of the file
at a pinned commit; without a checksum, none has been published.

Files that exist and are right are left alone; a file with other content is never overwritten. A record of
each fetched file (``.fetched/…json``: address, size, checksum) lets a later call compare, also where no
checksum is published.
"""

import json
import os
import re
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from isogloss.core.errors import ConfigError, DataError, check_named, did_you_mean, unknown_name
from isogloss.core.processes import locked
from isogloss.core.progress import OnProgress, Progress, no_progress
from isogloss.core.untrusted import is_safe
from isogloss.data.fetching.downloading import Link, RetryPolicy, checksum, download, storing
from isogloss.data.fetching.unpacking import unofficial_file, unpack

DOWNLOADS = "downloads"
"""Folder, below the data folder, of archives; they may be deleted once their members are taken."""

HOLES = {"language": "[a-z]{2,3}", "split": "train|dev|test"}
"""What a named hole of a member pattern may be; any other hole is anything without a slash."""

_HOLE = re.compile(r"\{([a-z]+)\}")


@dataclass(frozen=True, kw_only=True)
class Release:
    """One official file."""

    corpus: str
    part: str
    """Name of the part, as in ``xnli:train``."""
    url: str
    size: int | None = None
    """Bytes, where published."""
    sha256: str = ""
    """Empty where no checksum is published."""
    languages: tuple[str, ...] = ()
    """The languages of its text; empty where unknown."""
    licence: str = ""
    """Where it differs from the corpus's."""
    to: str = ""
    """Target path below the data folder; empty for an archive."""
    take: tuple[tuple[str, str], ...] = ()
    """Which members of an archive go where, with holes such as ``{language}`` in both names."""

    @property
    def target(self) -> str:
        """Path of the downloaded file below the data folder."""
        return self.to or f"{DOWNLOADS}/{PurePosixPath(urlsplit(self.url).path).name}"

    def targets(self, member: str, languages: Sequence[str] = ()) -> list[tuple[int, str]]:
        """Give, for a member of the archive, the number of each pattern it matches and where it goes.

        With languages, members of others are left out.
        """
        targets = []
        for number, (pattern, target) in enumerate(self.take):
            match = _pattern(pattern).fullmatch(member)
            if match and (not languages or match.groupdict().get("language", languages[0]) in languages):
                targets.append((number, _HOLE.sub(lambda hole, match=match: str(match[hole[1]]), target)))  # type: ignore[misc]
        return targets


@dataclass(frozen=True, kw_only=True)
class Releases:
    """The official files of one corpus."""

    corpus: str
    files: tuple[Release, ...] = ()
    default: tuple[str, ...] = ()
    """Parts fetched where none is named."""
    by_hand: str = ""
    """Advice for what cannot be fetched."""
    parts_by_hand: Mapping[str, str] = field(default_factory=dict)
    """The same by part."""

    @property
    def parts(self) -> list[str]:
        """All parts, in the order of the table."""
        return list(dict.fromkeys(file.part for file in self.files))

    def chosen(self, part: str) -> list[Release]:
        """Return the files of one part, or of the default parts; an error lists the parts."""
        if part in self.parts_by_hand:
            raise DataError(f"{self.corpus}:{part}: it cannot be fetched. {self.parts_by_hand[part]}")
        if not self.files:
            raise DataError(f"{self.corpus}: it cannot be fetched. {self.by_hand}")
        if part and part not in self.parts:
            raise unknown_name(self.corpus, "part", part, [*self.parts, *self.parts_by_hand])
        return [file for file in self.files if file.part in ([part] if part else self.default)]


def releases(corpus: str) -> Releases:
    """Read a corpus's table; ConfigError, with the nearest name, where it has none."""
    check_named("fetch", "corpus", fetchable(), corpus)
    return _read(corpus)


def fetchable() -> list[str]:
    """Return the names of the corpora that have a table, sorted."""
    folder = files("isogloss.data.fetching") / "official"
    return sorted(
        entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml")
    )


def chosen(names: Iterable[str], languages: Sequence[str] = ()) -> list[Release]:
    """Return the files of corpora or parts (``xnli``, ``xnli:train``), those of some languages only.

    ConfigError for a language that none of them has, and for a corpus that has none of the languages.
    """
    names = list(dict.fromkeys(names))
    by_name = {name: releases(name.partition(":")[0]).chosen(name.partition(":")[2]) for name in names}
    files = [file for named in by_name.values() for file in named]
    for language in languages:
        if not any(_has(file, [language]) for file in files):
            raise _lacks(language, names, files)
    for name, named in by_name.items():
        if languages and not any(_has(file, languages) for file in named):
            raise _lacks(" ".join(languages), [name], named)
    return [file for file in dict.fromkeys(files) if not languages or _has(file, languages)]


def _has(file: Release, languages: Sequence[str]) -> bool:
    return not file.languages or not set(languages).isdisjoint(file.languages)


def _lacks(language: str, names: Sequence[str], releases: Sequence[Release]) -> ConfigError:
    codes = sorted({language for file in releases for language in file.languages})
    return ConfigError(
        f"--language {language}: no file of {', '.join(names)} is in it.{did_you_mean(language, codes)} "
        f"Choose among: {', '.join(codes)}."
    )


@lru_cache(maxsize=64)
def _read(corpus: str) -> Releases:
    table = tomllib.loads(
        (files("isogloss.data.fetching") / "official" / f"{corpus}.toml").read_text(encoding="utf-8")
    )
    rows = [
        {**row, "languages": tuple(row.get("languages", ())), "take": tuple(row.get("take", {}).items())}
        for row in table.pop("file", ())
    ]
    default = tuple(table.pop("default", dict.fromkeys(row["part"] for row in rows)))
    released = tuple(Release(**{"corpus": corpus, **row}) for row in rows)
    return Releases(corpus=corpus, files=released, default=default, **table)


@lru_cache(maxsize=64)
def _pattern(pattern: str) -> re.Pattern[str]:
    """Turn a pattern with holes into a regular expression; repeated holes must match the same text."""
    names: set[str] = set()
    expression = ""
    for number, piece in enumerate(_HOLE.split(pattern)):
        if number % 2 == 0:
            expression += re.escape(piece)
        elif piece in names:
            expression += f"(?P={piece})"
        else:
            names.add(piece)
            expression += f"(?P<{piece}>{HOLES.get(piece, '[^/]+?')})"
    return re.compile(expression)


RECORDS = ".fetched"
LOCK = f"{RECORDS}/lock"
WAIT = 0.5
"""Seconds between attempts to lock the folder."""


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """The record of a fetched file."""

    url: str
    size: int
    sha256: str
    published: bool
    """Whether the checksum is the published one, not that of the first download."""
    languages: tuple[str, ...] = ()
    """The languages whose members were extracted; empty for all."""
    files: dict[str, str] = field(default_factory=dict)
    """Checksums by path."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """The outcome for one release."""

    release: Release
    fetched: Fetched
    was_there: bool


def existing(release: Release, folder: Path, languages: Sequence[str] = ()) -> Fetched | None:
    """Return the record of a release that exists, else None; DataError for a file with other content."""
    record = _record(release, folder)
    if release.to:
        return _existing_file(release, folder / release.to, record)
    if record is None or (record.languages and not (languages and {*languages} <= {*record.languages})):
        return None
    for target, digest in record.files.items():
        if not (folder / target).is_file():
            return None
        if checksum(folder / target) != digest:
            raise unofficial_file(folder / target, digest)
    return record


def fetch(
    releases: Sequence[Release],
    folder: Path,
    *,
    languages: Sequence[str] = (),
    retry: RetryPolicy | None = None,
    on_progress: OnProgress = no_progress,
) -> Iterator[Result]:
    """Fetch the releases that are missing, and yield each once it exists; archives stay in ``downloads``.

    With languages, only their members are extracted from archives. One process at a time fetches into a
    folder; others wait.
    """
    retry = retry or RetryPolicy()
    with _alone(folder, retry.sleep, on_progress):
        for release in releases:
            present = existing(release, folder, languages)
            fetched = present or _fetch(release, folder, languages, retry, on_progress)
            if _record(release, folder) != fetched:
                _write_record(release, folder, fetched)
            yield Result(release=release, fetched=fetched, was_there=present is not None)


def _fetch(
    release: Release, folder: Path, languages: Sequence[str], retry: RetryPolicy, on_progress: OnProgress
) -> Fetched:
    path = folder / release.target
    record = _record(release, folder)
    fetched = _existing_file(release, path, record)
    if fetched is None:
        downloaded = download(_link(release, record), path, retry=retry, on_progress=on_progress)
        fetched = _fetched(release, downloaded.size, downloaded.sha256)
    if not release.take:
        return fetched
    on_progress(Progress(path.name, fetched.size, fetched.size, "unpacking"))
    languages = _wider(record, languages)
    unpacked = unpack(
        path,
        lambda member: release.targets(member, languages),
        folder,
        patterns={number: pattern for number, (pattern, _) in enumerate(release.take)},
    )
    return replace(fetched, files=unpacked, languages=languages)


def _existing_file(release: Release, path: Path, record: Fetched | None) -> Fetched | None:
    """Return the record of a file that was put there by hand or by an earlier call."""
    if not path.is_file():
        return None
    digest = checksum(path)
    expected = release.sha256 or (record.sha256 if record else "")
    if expected and digest != expected:
        raise unofficial_file(path, expected)
    return _fetched(release, path.stat().st_size, digest)


def _fetched(release: Release, size: int, digest: str) -> Fetched:
    files = {release.to: digest} if release.to else {}
    return Fetched(url=release.url, size=size, sha256=digest, published=bool(release.sha256), files=files)


def _link(release: Release, fetched: Fetched | None) -> Link:
    recorded = "" if fetched is None or fetched.url != release.url else fetched.sha256
    return Link(
        url=release.url,
        size=release.size,
        sha256=release.sha256 or recorded,
        known_from="the published checksum" if release.sha256 else _FIRST.format(release.target),
        by_hand=f"If you find it elsewhere, put it as {release.target} into the folder and fetch again.",
    )


_FIRST = f"that of the first download ({RECORDS}/{{}}.json; delete it to trust the new one)"


def _wider(fetched: Fetched | None, languages: Sequence[str]) -> tuple[str, ...]:
    """Return the languages to extract: the requested ones and those of the record."""
    if not languages or (fetched and fetched.files and not fetched.languages):
        return ()
    return tuple(sorted({*languages, *(fetched.languages if fetched else ())}))


def _record_path(release: Release, folder: Path) -> Path:
    return folder / RECORDS / f"{release.target}.json"


def _record(release: Release, folder: Path) -> Fetched | None:
    """Read the record; one that is damaged or of another address counts as none."""
    try:
        body: Any = json.loads(_record_path(release, folder).read_text(encoding="utf-8"))
        record = Fetched(**{**body, "languages": tuple(body["languages"])})
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return record if record.url == release.url and all(map(is_safe, record.files)) else None


def _write_record(release: Release, folder: Path, fetched: Fetched) -> None:
    path = _record_path(release, folder)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with storing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps(asdict(fetched), indent=1) + "\n", encoding="utf-8")
        temporary.replace(path)


@contextmanager
def _alone(folder: Path, sleep: Callable[[float], None], on_progress: OnProgress) -> Iterator[None]:
    """Wait until no other process fetches into the folder; the lock of a dead one does not count."""
    path = folder / LOCK
    with storing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    while True:
        with ExitStack() as locks:
            with storing(path):
                free = locks.enter_context(locked(path))
            if free:
                yield
                return
        waited = f"another process fetches into it; waiting for {time.monotonic() - began:.0f} s"
        on_progress(Progress(str(folder), 0, 1, waited))
        sleep(WAIT)
