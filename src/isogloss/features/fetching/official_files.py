"""Fetch the official files of corpora to the paths that their readers search.

Correct files are not fetched again, and files with different content are never overwritten. A record of each
fetched file (``.fetched/…json``: address, size, checksum) lets later calls compare, even if no checksum is
published.
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
from isogloss.core.shared_files import lock_file, read_file
from isogloss.core.untrusted import is_safe, parse_json
from isogloss.features.fetching.downloading import Link, RetryPolicy, checksum, download, storing
from isogloss.features.fetching.hub_address import address, pin_address
from isogloss.features.fetching.releases import Release
from isogloss.features.fetching.unpacking import unofficial_file, unpack

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
    """Whether the checksum is published, instead of computed at the first download."""
    languages: tuple[str, ...] = ()
    """Languages whose members were extracted, or empty for all."""
    files: dict[str, str] = field(default_factory=dict)
    """Checksums by path."""


@dataclass(frozen=True, kw_only=True)
class FetchedRelease:
    """The outcome for one release."""

    release: Release
    fetched: Fetched
    was_there: bool


def existing(release: Release, folder: Path, languages: Sequence[str] = ()) -> Fetched | None:
    """Return the record of an existing release, or None.

    None is for missing files and for archives from which further languages are needed. Raises DataError for a
    file with different content.
    """
    release = replace(release, url=pin_address(release.url, folder / RECORDS))
    record = _record(release, folder)
    if release.to:
        return _existing_file(release, folder / release.to, record)
    if record is None or (record.languages and not (languages and set(languages) <= set(record.languages))):
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
    """Fetch missing releases, and yield each when it exists.

    Archives stay in ``downloads``. With languages, only their members are extracted from archives. Only one
    process at a time fetches into a folder; others wait.
    """
    retry = retry or RetryPolicy()
    with _locked_folder(folder, retry.sleep, on_progress):
        for official in releases:
            release = replace(official, url=pin_address(official.url, folder / RECORDS, resolve=True))
            existing_record = existing(release, folder, languages)
            record = existing_record or _fetch(release, folder, languages, retry, on_progress)
            if _record(release, folder) != record:
                _write_record(release, folder, record)
            yield FetchedRelease(release=release, fetched=record, was_there=existing_record is not None)


def _fetch(
    release: Release, folder: Path, languages: Sequence[str], retry: RetryPolicy, on_progress: OnProgress
) -> Fetched:
    path = folder / release.target
    old_record = _record(release, folder)
    record = _existing_file(release, path, old_record)
    if record is None:
        download_facts = download(_link(release, old_record), path, retry=retry, on_progress=on_progress)
        record = _new_record(release, download_facts.size, download_facts.sha256)
    if not release.take:
        return record
    on_progress(Progress(path.name, record.size, record.size, "unpacking"))
    languages = _languages_to_extract(old_record, languages)
    checksums = unpack(
        path,
        lambda member: release.targets(member, languages),
        folder,
        patterns={index: pattern for index, (pattern, _) in enumerate(release.take)},
    )
    return replace(record, files=checksums, languages=languages)


def _existing_file(release: Release, path: Path, record: Fetched | None) -> Fetched | None:
    """Return the record of an existing file, put there by hand or by an earlier call.

    Raises DataError if its checksum differs from the expected one.
    """
    if not path.is_file():
        return None
    digest = checksum(path)
    official_digest = release.sha256 or (record.sha256 if record else "")
    if official_digest and digest != official_digest:
        raise unofficial_file(path, official_digest)
    return _new_record(release, path.stat().st_size, digest)


def _new_record(release: Release, size: int, digest: str) -> Fetched:
    files = {release.to: digest} if release.to else {}
    return Fetched(url=release.url, size=size, sha256=digest, published=bool(release.sha256), files=files)


def _link(release: Release, record: Fetched | None) -> Link:
    first_checksum = "" if record is None or record.url != release.url else record.sha256
    return Link(
        url=address(release.url),
        size=release.size,
        sha256=release.sha256 or first_checksum,
        known_from="the published checksum" if release.sha256 else _FIRST.format(release.target),
        by_hand=f"If you find it elsewhere, put it into the folder as {release.target} and fetch again.",
    )


_FIRST = f"the checksum of the first download ({RECORDS}/{{}}.json; delete it to trust the new one)"


def _languages_to_extract(record: Fetched | None, languages: Sequence[str]) -> tuple[str, ...]:
    """Return the requested languages and those in the record, or () for all."""
    if not languages or (record and record.files and not record.languages):
        return ()
    return tuple(sorted({*languages, *(record.languages if record else ())}))


def _record_name(release: Release) -> str:
    return f"{RECORDS}/{release.target}.json"


def _record(release: Release, folder: Path) -> Fetched | None:
    """Read the record of a release, or return None.

    A record that is damaged or has a different address counts as none.
    """
    try:
        body: Any = parse_json(read_file(folder, _record_name(release)))
        record = Fetched(**{**body, "languages": tuple(body["languages"])})
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return record if record.url == release.url and all(is_safe(path) for path in record.files) else None


def _write_record(release: Release, folder: Path, record: Fetched) -> None:
    write_text(folder, _record_name(release), json.dumps(asdict(record), indent=1) + "\n")


@contextmanager
def _locked_folder(folder: Path, sleep: Callable[[float], None], on_progress: OnProgress) -> Iterator[None]:
    """Wait until no other process fetches into the folder, then lock it.

    A lock of a dead process does not count.
    """
    path = folder / LOCK
    with storing(path):
        make_folder(folder, LOCK.rpartition("/")[0])
    start = time.monotonic()
    while True:
        with ExitStack() as locks:
            with storing(path):
                is_free = locks.enter_context(lock_file(folder, LOCK))
            if is_free:
                yield
                return
        remark = f"a different process fetches into it; waiting for {time.monotonic() - start:.0f} s"
        on_progress(Progress(str(folder), 0, 1, remark))
        sleep(WAIT)
