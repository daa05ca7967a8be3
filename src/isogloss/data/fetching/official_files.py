"""Fetch the official files of corpora to the paths that their readers search.

Files that exist and are right are left alone; a file with other content is never overwritten. A record of
each fetched file (``.fetched/…json``: address, size, checksum) lets a later call compare, also where no
checksum is published.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from isogloss.core.atomic_files import make_folder, write_text
from isogloss.core.progress import OnProgress, Progress, no_progress
from isogloss.core.shared_files import locked, read_file
from isogloss.core.untrusted import is_safe, parse_json
from isogloss.data.fetching.downloading import Link, RetryPolicy, checksum, download, storing
from isogloss.data.fetching.hub_address import address, at_commit
from isogloss.data.fetching.releases import Release
from isogloss.data.fetching.unpacking import unofficial_file, unpack

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
class FetchedRelease:
    """The outcome for one release."""

    release: Release
    fetched: Fetched
    was_there: bool


def existing(release: Release, folder: Path, languages: Sequence[str] = ()) -> Fetched | None:
    """Return the record of a release that exists, else None; DataError for a file with other content."""
    release = replace(release, url=at_commit(release.url, folder / RECORDS))
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
) -> Iterator[FetchedRelease]:
    """Fetch the releases that are missing, and yield each once it exists; archives stay in ``downloads``.

    With languages, only their members are extracted from archives. One process at a time fetches into a
    folder; others wait.
    """
    retry = retry or RetryPolicy()
    with _alone(folder, retry.sleep, on_progress):
        for named in releases:
            release = replace(named, url=at_commit(named.url, folder / RECORDS, resolve=True))
            present = existing(release, folder, languages)
            fetched = present or _fetch(release, folder, languages, retry, on_progress)
            if _record(release, folder) != fetched:
                _write_record(release, folder, fetched)
            yield FetchedRelease(release=release, fetched=fetched, was_there=present is not None)


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
        url=address(release.url),
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


def _record_name(release: Release) -> str:
    return f"{RECORDS}/{release.target}.json"


def _record(release: Release, folder: Path) -> Fetched | None:
    """Read the record; one that is damaged or of another address counts as none."""
    try:
        body: Any = parse_json(read_file(folder, _record_name(release)))
        record = Fetched(**{**body, "languages": tuple(body["languages"])})
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return record if record.url == release.url and all(map(is_safe, record.files)) else None


def _write_record(release: Release, folder: Path, fetched: Fetched) -> None:
    write_text(folder, _record_name(release), json.dumps(asdict(fetched), indent=1) + "\n")


@contextmanager
def _alone(folder: Path, sleep: Callable[[float], None], on_progress: OnProgress) -> Iterator[None]:
    """Wait until no other process fetches into the folder; the lock of a dead one does not count."""
    path = folder / LOCK
    with storing(path):
        make_folder(folder, LOCK.rpartition("/")[0])
    began = time.monotonic()
    while True:
        with ExitStack() as locks:
            with storing(path):
                free = locks.enter_context(locked(folder, LOCK))
            if free:
                yield
                return
        waited = f"another process fetches into it; waiting for {time.monotonic() - began:.0f} s"
        on_progress(Progress(str(folder), 0, 1, waited))
        sleep(WAIT)
