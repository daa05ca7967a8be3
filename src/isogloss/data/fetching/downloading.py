"""Download one file; under its name only the complete and verified file ever appears.

Bytes go to ``NAME.part``, which the next attempt or call resumes if the server still has the same version.
Only a file of the expected size and checksum is renamed. httpx2 handles redirects, proxies, certificates
and time-outs.
"""

import json
import os
import shutil
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from hashlib import file_digest
from pathlib import Path
from typing import TYPE_CHECKING

from isogloss.core import VERSION
from isogloss.core.errors import DataError, StorageError, masked
from isogloss.core.progress import OnProgress, Progress, no_progress
from isogloss.core.untrusted import parse_json, read_regular

if TYPE_CHECKING:
    import httpx2

ENOUGH_PROGRESS = 1 << 20
"""Bytes; a failed attempt that brought as many does not count."""

PROGRESS_INTERVAL = 0.1
"""Seconds."""

SLOWEST = 1024
"""Bytes a second; a slower server counts as timed out."""

RETRYABLE = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses after which a retry may succeed (RFC 9110)."""

PARTIAL, RANGE_NOT_SATISFIABLE = 206, 416


@dataclass(frozen=True, kw_only=True)
class Link:
    """A file to download, with its expected size and checksum."""

    url: str
    size: int | None = None
    most: int = 100_000_000
    """Bytes that are taken where the size is not known."""
    sha256: str = ""
    known_from: str = "the published checksum"
    """Origin of the checksum, for the message on a mismatch."""
    by_hand: str = ""
    """Advice for the user where the file is unavailable."""


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    """Attempts, waits and time-out."""

    attempts: int = 6
    """Consecutive failures before giving up."""
    first_wait: float = 1.0
    """Seconds before the second attempt; each further wait is twice as long."""
    longest_wait: float = 120.0
    """Seconds; the longest wait that a server may ask for."""
    timeout: float = 30.0
    """Seconds without enough bytes before the connection is closed."""
    sleep: Callable[[float], None] = field(default=time.sleep)


@dataclass(frozen=True, kw_only=True)
class Downloaded:
    """Size and checksum of a downloaded file."""

    size: int
    sha256: str


class TryAgainError(Exception):
    """A failure worth a retry, after the ``wait`` seconds that the server asked for."""

    def __init__(self, what: str, *, wait: float = 0.0, restart: bool = False) -> None:
        super().__init__(masked(what))
        self.wait = wait
        self.restart = restart
        """Whether the partial file must be discarded."""


def download(
    link: Link, path: Path, *, retry: RetryPolicy | None = None, on_progress: OnProgress = no_progress
) -> Downloaded:
    """Download a file to a path; DataError or StorageError, and no file, where that fails."""
    with storing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    try:
        return _download(link, path, retry or RetryPolicy(), on_progress)
    except DataError as error:
        raise DataError(f"{error} {link.by_hand}".strip()) from error


def checksum(path: Path) -> str:
    """Return a file's SHA-256."""
    with storing(path), path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


@contextmanager
def storing(path: Path) -> Iterator[None]:
    """Turn OSError into StorageError."""
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"{path}: cannot be written or read ({error.strerror or error}). Free some space or choose "
            f"another --to, then run the same command again: it goes on where it stopped."
        ) from error


def megabytes(size: int) -> str:
    """Format a number of bytes."""
    return f"{size / 1e6:,.1f} MB" if size >= 1e5 else f"{size / 1e3:,.1f} kB"


def _download(link: Link, path: Path, retry: RetryPolicy, on_progress: OnProgress) -> Downloaded:
    part = _PartialFile(path.with_name(path.name + ".part"))
    failed = 0
    while True:
        size_before = part.size()
        try:
            _attempt(link, part, retry.timeout, _Meter(path.name, on_progress))
            return _finished(link, part, path, resumed=size_before > 0)
        except TryAgainError as trouble:
            if trouble.restart:
                part.remove()
            failed = 1 if part.size() - size_before >= ENOUGH_PROGRESS else failed + 1
            wait = max(trouble.wait, min(retry.first_wait * 2 ** (failed - 1), retry.longest_wait))
            if failed >= retry.attempts or wait > retry.longest_wait:
                raise _given_up(link, part, trouble, failed) from trouble
            on_progress(Progress(path.name, part.size(), link.size or 0, f"{trouble}; again in {wait:.0f} s"))
            retry.sleep(wait)


def _attempt(link: Link, part: "_PartialFile", timeout: float, meter: "_Meter") -> None:
    start, validator = part.resume_point(link)
    if start and start == link.size:
        return
    headers = {"User-Agent": f"isogloss/{VERSION}", "Accept-Encoding": "identity"}
    if start:
        headers |= {"Range": f"bytes={start}-", **({"If-Range": validator} if validator else {})}
    with _response(link.url, headers, timeout) as response:
        packed = _is_packed(link.url, response)
        start, total = _range(response, start, packed=packed)
        now = "" if packed else _validator(response)
        _check_total(link, response, total)
        if start and validator and now not in ("", validator):
            raise TryAgainError("the server's file has changed since the download began", restart=True)
        ends = {"content-length", "transfer-encoding"} & set(response.headers)
        if not ends and link.size is None and not link.sha256:
            raise TryAgainError("the server does not say how long the file is")
        expected = total if link.size is None else link.size
        if expected is not None and link.size is None and expected > link.most:
            raise _too_large(link, f"the server says that it has {expected:,} bytes")
        _check_room(part.path, (total or 0) - start)
        meter.begin(start, expected, link)
        blocks = response.iter_bytes() if packed else response.iter_raw()
        _store(_fast_enough(blocks, timeout), part, start, {"url": link.url, "validator": now}, meter)
    if expected is not None and part.size() < expected:
        raise TryAgainError(f"the server ended after {part.size():,} of {expected:,} bytes")


@contextmanager
def _response(url: str, headers: dict[str, str], timeout: float) -> Iterator["httpx2.Response"]:
    """Open the response; TryAgainError where a retry may help, DataError where not."""
    import httpx2  # late: what exists can be listed without it

    client = httpx2.Client(
        headers=headers,
        timeout=timeout,
        follow_redirects=True,
        event_hooks={"response": [_check_redirect]},
        limits=httpx2.Limits(max_keepalive_connections=0),  # A server may close one while it is asked again.
    )
    try:
        with client, client.stream("GET", url) as response:
            _check_status(url, response)
            yield response
    except httpx2.UnsupportedProtocol as error:
        raise DataError(f"{url}: only http and https can be fetched.") from error
    except (httpx2.TooManyRedirects, httpx2.InvalidURL) as error:
        raise DataError(f"{url}: the file cannot be had ({error}).") from error
    except httpx2.ConnectError as error:
        raise _no_answer(url, error) from error
    except httpx2.RequestError as error:
        raise TryAgainError(f"the connection broke ({error})") from error


def _check_redirect(response: "httpx2.Response") -> None:
    """Refuse a redirect from https to anything less safe."""
    target = response.url.join(response.headers.get("Location", ""))
    if response.has_redirect_location and target.scheme not in ("https", response.url.scheme):
        raise DataError(
            f"{response.url}: the server redirects to {target}, which is less safe than https; refused. "
            f"Check whether the corpus has moved, and report it."
        )


def _check_status(url: str, response: "httpx2.Response") -> None:
    status = f"{response.status_code} {response.reason_phrase}"
    if response.status_code in RETRYABLE:
        raise TryAgainError(f"the server says {status}", wait=_requested_wait(response))
    if response.status_code == RANGE_NOT_SATISFIABLE:
        raise TryAgainError("the server's file is shorter than the part downloaded", restart=True)
    if not response.is_success:
        problem = "does not exist" if response.status_code in (404, 410) else "is not available"
        raise DataError(f"{url}: the file {problem} (the server says {status}).")


def _requested_wait(response: "httpx2.Response") -> float:
    """Return the seconds that the server asks for (Retry-After); 0 for none."""
    value = response.headers.get("Retry-After", "")
    if value.isdigit():
        return float(value)
    try:  # By the server's clock, where it sends it: ours may be wrong.
        now = response.headers.get("Date")
        since = parsedate_to_datetime(now).timestamp() if now else time.time()
        return max(0.0, parsedate_to_datetime(value).timestamp() - since)
    except ValueError:
        return 0.0


def _no_answer(url: str, error: Exception) -> Exception:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return DataError(
                f"{url}: the server's certificate cannot be trusted ({cause.verify_message}). Check this "
                f"machine's date and, where a proxy reads along, its certificates."
            )
        cause = cause.__cause__ or cause.__context__
    return TryAgainError(f"no answer ({error})")


def _is_packed(url: str, response: "httpx2.Response") -> bool:
    """Return whether the server compressed the file unasked (not whether the file itself is compressed)."""
    encoding = response.headers.get("Content-Encoding", "identity").lower()
    if encoding not in ("identity", "gzip", "x-gzip"):
        raise TryAgainError(f"the server sent it in encoding {encoding!r}, which was not asked for")
    return encoding != "identity" and not url.partition("?")[0].endswith((".gz", ".tgz"))


def _range(response: "httpx2.Response", start: int, *, packed: bool) -> tuple[int, int | None]:
    """Return the offset of the first byte sent and the size of the whole file."""
    length = response.headers.get("Content-Length", "")
    if response.status_code != PARTIAL:
        return 0, int(length) if length.isdigit() and not packed else None
    sent = response.headers.get("Content-Range", "nothing")
    if packed or not sent.startswith(f"bytes {start}-"):
        raise TryAgainError(f"asked for bytes from {start} on, the server sent {sent}", restart=True)
    total = sent.rpartition("/")[2]
    return start, int(total) if total.isdigit() else None


def _validator(response: "httpx2.Response") -> str:
    etag = response.headers.get("ETag", "")
    if etag.startswith('"'):  # A weak one (W/"…") does not say that the bytes are equal.
        return str(etag)
    return "" if etag else str(response.headers.get("Last-Modified", ""))


def _check_total(link: Link, response: "httpx2.Response", total: int | None) -> None:
    if link.size is not None and total is not None and total != link.size:
        kind = response.headers.get("Content-Type", "of no type").partition(";")[0]
        raise DataError(
            f"{link.url}: the server has {total:,} bytes ({kind}); the published file has "
            f"{link.size:,}. It was changed, or something between answers in its place."
        )


def _check_room(path: Path, needed: int) -> None:
    with storing(path):
        free = shutil.disk_usage(path.parent).free
    if needed > free:
        raise StorageError(
            f"{path.parent}: {megabytes(needed)} are needed and {megabytes(free)} are free. Free some space "
            f"or choose another --to."
        )


def _fast_enough(blocks: Iterator[bytes], timeout: float) -> Iterator[bytes]:
    since, began = 0, time.monotonic()
    for block in blocks:
        since += len(block)
        yield block
        if (spent := time.monotonic() - began) >= timeout:
            if since < SLOWEST * spent:
                raise TryAgainError(f"the server gave {since} bytes in {spent:.0f} s")
            since, began = 0, time.monotonic()


def _store(
    blocks: Iterator[bytes], part: "_PartialFile", start: int, note: dict[str, str], meter: "_Meter"
) -> None:
    """Write blocks from byte ``start`` on, and the version of the file to the note."""
    with storing(part.path), part.path.open("r+b" if start else "wb") as file:
        file.seek(start)
        file.truncate()
        part.note.write_text(json.dumps(note))
        for block in blocks:
            file.write(block)
            meter.add(len(block))
        file.flush()
        os.fsync(file.fileno())


def _finished(link: Link, part: "_PartialFile", path: Path, *, resumed: bool) -> Downloaded:
    downloaded = Downloaded(size=part.size(), sha256=checksum(part.path))
    if link.sha256 and downloaded.sha256 != link.sha256:
        part.remove()
        if resumed:  # The two halves may be of two versions; a new download may still be right.
            raise TryAgainError("the parts of several attempts do not fit together")
        raise DataError(
            f"{link.url}: the {downloaded.size:,} bytes downloaded have SHA-256 {downloaded.sha256}; "
            f"{link.known_from} is {link.sha256}. They were deleted. The file was changed or is not the "
            f"right one."
        )
    with storing(path):
        part.path.replace(path)
        part.remove()
    return downloaded


def _given_up(link: Link, part: "_PartialFile", trouble: TryAgainError, failed: int) -> DataError:
    size = f"{megabytes(part.size())} are kept, and the" if part.size() else "The"
    tried = f"after {failed} attempt{'s' if failed > 1 else ''}"
    tried += f", since it asks to wait {trouble.wait:.0f} s" if trouble.wait else ""
    return DataError(
        f"{link.url}: {trouble}; given up {tried}. {size} same command resumes the download later."
    )


def _too_large(link: Link, size: str) -> DataError:
    return DataError(
        f"{link.url}: {size}, and its size is not known beforehand: at most {link.most:,} bytes are taken. "
        f"Look whether the address is right; if it is, download it by hand."
    )


@dataclass(frozen=True)
class _PartialFile:
    """The partial file, and a note of the version it belongs to."""

    path: Path

    @property
    def note(self) -> Path:
        return self.path.with_name(self.path.name + ".json")

    def size(self) -> int:
        return self.path.stat().st_size if self.path.is_file() else 0

    def resume_point(self, link: Link) -> tuple[int, str]:
        """Return the byte to resume from and the version; 0 where the version is unknown."""
        try:
            note = dict(parse_json(read_regular(self.note)))
        except (OSError, ValueError, TypeError):
            note = {}
        validator = str(note.get("validator") or "")
        is_same_file = note.get("url") == link.url and (validator or link.sha256)
        fits = link.size is None or self.size() <= link.size
        return (self.size(), validator) if is_same_file and fits else (0, "")

    def remove(self) -> None:
        for path in (self.path, self.note):
            with suppress(OSError):
                path.unlink()


class _Meter:
    """Reports position and speed of a download a few times a second."""

    def __init__(self, what: str, on_progress: OnProgress) -> None:
        self.what = what
        self.on_progress = on_progress

    def begin(self, start: int, most: int | None, link: Link) -> None:
        self.done = self.first = start
        self.most = most
        self.link = link
        self.began = self.reported = time.monotonic()

    def add(self, size: int) -> None:
        """Count bytes; TryAgainError for more than expected, DataError for too many of an unknown size."""
        self.done += size
        if self.most is None and self.done > self.link.most:
            raise _too_large(self.link, f"more than {self.link.most:,} bytes came")
        if self.most is not None and self.done > self.most:
            raise TryAgainError(f"more than its {self.most:,} bytes came", restart=True)
        now = time.monotonic()
        if now - self.reported >= PROGRESS_INTERVAL or self.done == self.most:
            self.reported = now
            speed = megabytes(int((self.done - self.first) / max(now - self.began, 1e-6)))
            of = f" of {megabytes(self.most)}" if self.most else ""
            remark = f"{megabytes(self.done)}{of}, {speed}/s"
            self.on_progress(Progress(self.what, self.done, self.most or self.done + 1, remark))
