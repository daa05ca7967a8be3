"""Fetch corpora: the official files, each to the place where the corpus's reader finds it.

What is there and right is left alone; what is there and is another file is never overwritten. A record of
each fetched file (``.fetched/…json``: where from, size, checksum) lets a later call tell the two apart, also
where nobody published a checksum.
"""

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from isogloss.core.locking import locked
from isogloss.core.progress import OnProgress, Progress, no_progress
from isogloss.data.downloading import Link, Patience, checksum, download, storing
from isogloss.data.releases import Release
from isogloss.data.unpacking import not_ours, unpack

RECORDS = ".fetched"
LOCK = f"{RECORDS}/lock"
WAIT = 0.5
"""Seconds between looks whether another process has done its fetching."""


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """What is known about a file that was fetched: the record beside it."""

    url: str
    size: int
    sha256: str
    published: bool
    """Whether the checksum was published; else it is that of the first download."""
    languages: tuple[str, ...] = ()
    """The languages whose members were taken; empty: all."""
    files: dict[str, str] = field(default_factory=dict)
    """The checksum of each file, by its place."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """What became of one release."""

    release: Release
    fetched: Fetched
    was_there: bool


def is_there(release: Release, folder: Path, languages: Sequence[str] = ()) -> Fetched | None:
    """Tell what is known of a release that is there; DataError where another file is in its place."""
    record = _record(release, folder)
    if release.to:
        return _plain_there(release, folder, record)
    if record is None or not _covers(record.languages, languages):
        return None
    for place, digest in record.files.items():
        if not (folder / place).is_file():
            return None
        if checksum(folder / place) != digest:
            raise not_ours(folder / place, digest)
    return record


def fetch(
    releases: Sequence[Release],
    folder: Path,
    *,
    languages: Sequence[str] = (),
    patience: Patience | None = None,
    on_progress: OnProgress = no_progress,
) -> Iterator[Result]:
    """Fetch what is not there yet and give each release when it is; archives stay in ``downloads``.

    With languages, only their members are taken out of archives. Only one process fetches into a folder at a
    time; another waits.
    """
    patience = patience or Patience()
    with _alone(folder, patience.sleep, on_progress):
        for release in releases:
            there = is_there(release, folder, languages)
            fetched = there or _fetch(release, folder, languages, patience, on_progress)
            if _record(release, folder) != fetched:
                _write_record(release, folder, fetched)
            yield Result(release=release, fetched=fetched, was_there=there is not None)


def _fetch(
    release: Release, folder: Path, languages: Sequence[str], patience: Patience, on_progress: OnProgress
) -> Fetched:
    path = folder / release.place
    known = _record(release, folder)
    got = _found_here(release, path, known)
    if got is None:
        arrived = download(_link(release, known), path, patience=patience, on_progress=on_progress)
        got = _fetched(release, arrived.size, arrived.sha256)
    if release.take:
        on_progress(Progress(path.name, got.size, got.size, "taking the files out"))
        got = _unpacked(release, got, folder, _wider(known, languages))
    else:
        got = replace(got, files={release.to: got.sha256})
    return got


def _found_here(release: Release, path: Path, known: Fetched | None) -> Fetched | None:
    """Take an archive that lies there already, put there by hand or by an earlier call."""
    if not path.is_file():
        return None
    digest = checksum(path)
    expected = release.sha256 or (known.sha256 if known else "")
    if expected and digest != expected:
        raise not_ours(path, expected)
    return _fetched(release, path.stat().st_size, digest)


def _plain_there(release: Release, folder: Path, record: Fetched | None) -> Fetched | None:
    path = folder / release.to
    if not path.is_file():
        return None
    got = _found_here(release, path, record)
    return replace(got, files={release.to: got.sha256}) if got else None


def _unpacked(release: Release, got: Fetched, folder: Path, languages: tuple[str, ...]) -> Fetched:
    taken = unpack(
        folder / release.place,
        lambda member: release.places(member, languages),
        folder,
        asked={number: pattern for number, (pattern, _) in enumerate(release.take)},
    )
    return replace(got, files=taken, languages=languages)


def _fetched(release: Release, size: int, digest: str) -> Fetched:
    return Fetched(url=release.url, size=size, sha256=digest, published=bool(release.sha256))


def _link(release: Release, known: Fetched | None) -> Link:
    recorded = "" if known is None or known.url != release.url else known.sha256
    return Link(
        url=release.url,
        size=release.size,
        sha256=release.sha256 or recorded,
        known_from="the published checksum" if release.sha256 else _FIRST.format(release.place),
        by_hand=f"If it can be had elsewhere, put it as {release.place} into the folder and fetch again.",
    )


_FIRST = f"that of the first download ({RECORDS}/{{}}.json; delete it to trust the new one)"


def _covers(there: Sequence[str], wanted: Sequence[str]) -> bool:
    return not there or (bool(wanted) and set(wanted) <= set(there))


def _wider(known: Fetched | None, languages: Sequence[str]) -> tuple[str, ...]:
    """Give the languages to take: those of now and of before, so that the record covers both."""
    if not languages or (known and known.files and not known.languages):
        return ()
    return tuple(sorted({*languages, *(known.languages if known else ())}))


def _record_path(release: Release, folder: Path) -> Path:
    return folder / RECORDS / f"{release.place}.json"


def _record(release: Release, folder: Path) -> Fetched | None:
    """Read the record; one that is damaged or of another address counts as none."""
    try:
        body: Any = json.loads(_record_path(release, folder).read_text(encoding="utf-8"))
        known = Fetched(**{**body, "languages": tuple(body["languages"])})
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return known if known.url == release.url else None


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
        with ExitStack() as held:
            with storing(path):
                free = held.enter_context(locked(path))
            if free:
                yield
                return
        waited = f"another process fetches into it; waiting for {time.monotonic() - began:.0f} s"
        on_progress(Progress(str(folder), 0, 1, waited))
        sleep(WAIT)
