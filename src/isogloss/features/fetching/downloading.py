"""Download one file, which appears under its name only when complete and verified.

Bytes go to ``NAME.part``, which the next attempt or call resumes if the server still has the same version.
Only a file of the expected size and checksum is renamed. httpx2 handles redirects, proxies, certificates and
time-outs.
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
from isogloss.core.errors import DataError, StorageError, mask_secrets
from isogloss.core.progress import OnProgress, Progress, no_progress
from isogloss.core.sizes import format_size
from isogloss.core.untrusted import parse_json, read_regular

if TYPE_CHECKING:
    import httpx2

ENOUGH_PROGRESS = 1 << 20
"""Bytes of progress in an attempt that reset the count of failures to 1."""

PROGRESS_INTERVAL = 0.1
"""Minimum seconds between two reports of progress."""

SLOWEST = 1024
"""Bytes per second. A slower server counts as timed out."""

RETRYABLE = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses after which a retry may succeed (RFC 9110)."""

PARTIAL = 206
RANGE_NOT_SATISFIABLE = 416


@dataclass(frozen=True, kw_only=True)
class Link:
    """A file to download, with its expected size and checksum."""

    url: str
    size: int | None = None
    most: int = 100_000_000
    """Maximum bytes if the size is not known."""
    sha256: str = ""
    known_from: str = "the published checksum"
    """Origin of the checksum, for the message on a mismatch."""
    by_hand: str = ""
    """Advice for the user if the file is unavailable."""


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    """Attempts, waits and time-out."""

    attempts: int = 6
    """Consecutive failures before giving up."""
    first_wait: float = 1.0
    """Seconds before the second attempt. Each further wait is twice as long."""
    longest_wait: float = 120.0
    """Maximum wait in seconds. If the server requests a longer one, the download fails."""
    timeout: float = 30.0
    """Seconds without enough bytes before the connection is closed."""
    sleep: Callable[[float], None] = field(default=time.sleep)


@dataclass(frozen=True, kw_only=True)
class Downloaded:
    """Size and checksum of a downloaded file."""

    size: int
    sha256: str


class TryAgainError(Exception):
    """A failure worth a retry, after the ``wait`` seconds that the server requested."""

    def __init__(self, reason: str, *, wait: float = 0.0, restart: bool = False) -> None:
        super().__init__(mask_secrets(reason))
        self.wait = wait
        self.restart = restart
        """Whether the partial file must be discarded."""


def download(
    link: Link, path: Path, *, retry: RetryPolicy | None = None, on_progress: OnProgress = no_progress
) -> Downloaded:
    """Download a file to a path and return its size and checksum.

    Raises DataError or StorageError, without creating the file, if the download fails.
    """
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
    """Turn OSError into StorageError, with the path and advice."""
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"{path}: cannot be written or read ({error.strerror or error}). Free some space or choose "
            f"a different --to, then run the same command again: it resumes where it stopped."
        ) from error


def _download(link: Link, path: Path, retry: RetryPolicy, on_progress: OnProgress) -> Downloaded:
    part = _PartialFile(path.with_name(path.name + ".part"))
    failures = 0
    while True:
        size_before = part.size()
        try:
            _attempt(link, part, retry.timeout, _Meter(path.name, on_progress))
            return _verify_and_rename(link, part, path, was_resumed=size_before > 0)
        except TryAgainError as trouble:
            if trouble.restart:
                part.remove()
            failures = 1 if part.size() - size_before >= ENOUGH_PROGRESS else failures + 1
            wait = max(trouble.wait, min(retry.first_wait * 2 ** (failures - 1), retry.longest_wait))
            if failures >= retry.attempts or wait > retry.longest_wait:
                raise _give_up_error(link, part, trouble, failures) from trouble
            on_progress(Progress(path.name, part.size(), link.size or 0, f"{trouble}; again in {wait:.0f} s"))
            retry.sleep(wait)


def _attempt(link: Link, part: "_PartialFile", timeout: float, meter: "_Meter") -> None:
    start, validator = part.resume_point(link)
    if start and start == link.size:
        return
    headers = {"User-Agent": f"isogloss/{VERSION}", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
        if validator:
            headers["If-Range"] = validator
    with _response(link.url, headers, timeout) as response:
        is_packed = _is_packed(link.url, response)
        start, total = _range(response, start, is_packed=is_packed)
        new_validator = "" if is_packed else _validator(response)
        _check_total(link, response, total)
        if start and validator and new_validator not in ("", validator):
            raise TryAgainError("the server's file has changed since the download began", restart=True)
        length_headers = {"content-length", "transfer-encoding"} & set(response.headers)
        if not length_headers and link.size is None and not link.sha256:
            raise TryAgainError("the server does not state the length of the file")
        expected_size = total if link.size is None else link.size
        if expected_size is not None and link.size is None and expected_size > link.most:
            raise _too_large(link, f"the server states {expected_size:,} bytes")
        _check_room(part.path, (total or 0) - start)
        meter.begin(start, expected_size, link)
        blocks = response.iter_bytes() if is_packed else response.iter_raw()
        _store(
            _fast_enough(blocks, timeout), part, start, {"url": link.url, "validator": new_validator}, meter
        )
    if expected_size is not None and part.size() < expected_size:
        raise TryAgainError(f"the server ended after {part.size():,} of {expected_size:,} bytes")


@contextmanager
def _response(url: str, headers: dict[str, str], timeout: float) -> Iterator["httpx2.Response"]:
    """Open the response.

    Raises TryAgainError if a retry may help, else DataError.
    """
    import httpx2  # Listing the corpora does not need it.

    client = httpx2.Client(
        headers=headers,
        timeout=timeout,
        follow_redirects=True,
        event_hooks={"response": [_check_redirect]},
        limits=httpx2.Limits(max_keepalive_connections=0),  # A server may close it during the next request.
    )
    try:
        with client, client.stream("GET", url) as response:
            _check_status(url, response)
            yield response
    except httpx2.UnsupportedProtocol as error:
        raise DataError(f"{url}: only http and https can be fetched.") from error
    except (httpx2.TooManyRedirects, httpx2.InvalidURL) as error:
        raise DataError(f"{url}: the file cannot be fetched ({error}).") from error
    except httpx2.ConnectError as error:
        raise _no_answer(url, error) from error
    except httpx2.RequestError as error:
        raise TryAgainError(f"the connection broke ({error})") from error


def _check_redirect(response: "httpx2.Response") -> None:
    """Raise DataError for a redirect from https to anything less safe."""
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
    """Return the seconds of the Retry-After header, or 0 without one."""
    value = response.headers.get("Retry-After", "")
    if value.isdigit():
        return float(value)
    try:  # Use the server's clock if it sends one, because ours may be wrong.
        date = response.headers.get("Date")
        now = parsedate_to_datetime(date).timestamp() if date else time.time()
        return max(0.0, parsedate_to_datetime(value).timestamp() - now)
    except ValueError:
        return 0.0


def _no_answer(url: str, error: Exception) -> Exception:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return DataError(
                f"{url}: the server's certificate cannot be trusted ({cause.verify_message}). Check this "
                f"machine's date and, if a proxy decrypts traffic, its certificates."
            )
        cause = cause.__cause__ or cause.__context__
    return TryAgainError(f"no answer ({error})")


def _is_packed(url: str, response: "httpx2.Response") -> bool:
    """Return whether the server compressed the file for transfer, not whether the file itself is compressed.

    Raises TryAgainError for an encoding other than gzip.
    """
    encoding = response.headers.get("Content-Encoding", "identity").lower()
    if encoding not in ("identity", "gzip", "x-gzip"):
        raise TryAgainError(f"the server sent it in encoding {encoding!r}, which was not requested")
    return encoding != "identity" and not url.partition("?")[0].endswith((".gz", ".tgz"))


def _range(response: "httpx2.Response", start: int, *, is_packed: bool) -> tuple[int, int | None]:
    """Return the offset of the first byte sent and the size of the whole file."""
    length = response.headers.get("Content-Length", "")
    if response.status_code != PARTIAL:
        return 0, int(length) if length.isdigit() and not is_packed else None
    byte_range = response.headers.get("Content-Range", "nothing")
    if is_packed or not byte_range.startswith(f"bytes {start}-"):
        raise TryAgainError(f"requested bytes from {start}, the server sent {byte_range}", restart=True)
    total = byte_range.rpartition("/")[2]
    return start, int(total) if total.isdigit() else None


def _validator(response: "httpx2.Response") -> str:
    etag = response.headers.get("ETag", "")
    if etag.startswith('"'):  # A weak one (W/"…") does not guarantee equal bytes.
        return str(etag)
    return "" if etag else str(response.headers.get("Last-Modified", ""))


def _check_total(link: Link, response: "httpx2.Response", total: int | None) -> None:
    if link.size is not None and total is not None and total != link.size:
        kind = response.headers.get("Content-Type", "of no type").partition(";")[0]
        raise DataError(
            f"{link.url}: the server has {total:,} bytes ({kind}); the published file has "
            f"{link.size:,}. It was changed, or a proxy answered instead of the server."
        )


def _check_room(path: Path, size: int) -> None:
    with storing(path):
        free_size = shutil.disk_usage(path.parent).free
    if size > free_size:
        raise StorageError(
            f"{path.parent}: {format_size(size)} are needed, {format_size(free_size)} are free. Free some "
            f"space or choose a different --to."
        )


def _fast_enough(blocks: Iterator[bytes], timeout: float) -> Iterator[bytes]:
    """Yield blocks, and raise TryAgainError after ``timeout`` seconds below ``SLOWEST``."""
    received_bytes = 0
    start = time.monotonic()
    for block in blocks:
        received_bytes += len(block)
        yield block
        if (seconds := time.monotonic() - start) >= timeout:
            if received_bytes < SLOWEST * seconds:
                raise TryAgainError(f"the server sent {received_bytes} bytes in {seconds:.0f} s")
            received_bytes = 0
            start = time.monotonic()


def _store(
    blocks: Iterator[bytes], part: "_PartialFile", start: int, note: dict[str, str], meter: "_Meter"
) -> None:
    """Write blocks from byte ``start``, and the file's version to the note."""
    with storing(part.path), part.path.open("r+b" if start else "wb") as file:
        file.seek(start)
        file.truncate()
        part.note.write_text(json.dumps(note))
        for block in blocks:
            file.write(block)
            meter.add(len(block))
        file.flush()
        os.fsync(file.fileno())


def _verify_and_rename(link: Link, part: "_PartialFile", path: Path, *, was_resumed: bool) -> Downloaded:
    facts = Downloaded(size=part.size(), sha256=checksum(part.path))
    if link.sha256 and facts.sha256 != link.sha256:
        part.remove()
        if was_resumed:  # The parts may be from two versions; a new download may still be right.
            raise TryAgainError("the parts from several attempts do not match")
        raise DataError(
            f"{link.url}: the {facts.size:,} bytes downloaded have SHA-256 {facts.sha256}; "
            f"{link.known_from} is {link.sha256}. They were deleted. The file was changed or is not the "
            f"right one."
        )
    with storing(path):
        part.path.replace(path)
        part.remove()
    return facts


def _give_up_error(link: Link, part: "_PartialFile", trouble: TryAgainError, failures: int) -> DataError:
    size = f"{format_size(part.size())} are kept, and the" if part.size() else "The"
    attempts = f"after {failures} attempt{'s' if failures > 1 else ''}"
    attempts += f", since it asks to wait {trouble.wait:.0f} s" if trouble.wait else ""
    return DataError(
        f"{link.url}: {trouble}; given up {attempts}. {size} same command resumes the download later."
    )


def _too_large(link: Link, size: str) -> DataError:
    return DataError(
        f"{link.url}: {size}, and no size is published: at most {link.most:,} bytes are downloaded. Check "
        f"the address; if it is right, download the file by hand."
    )


@dataclass(frozen=True)
class _PartialFile:
    """The partial file, and a note with the version it belongs to."""

    path: Path

    @property
    def note(self) -> Path:
        return self.path.with_name(self.path.name + ".json")

    def size(self) -> int:
        return self.path.stat().st_size if self.path.is_file() else 0

    def resume_point(self, link: Link) -> tuple[int, str]:
        """Return the byte to resume from and the version.

        The byte is 0 if the version is unknown or the partial file is longer than expected.
        """
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
    """Reporter of a download's position and speed, a few times per second."""

    def __init__(self, activity: str, on_progress: OnProgress) -> None:
        self.what = activity
        self.on_progress = on_progress

    def begin(self, start: int, size: int | None, link: Link) -> None:
        self.done = self.first = start
        self.most = size
        self.link = link
        self.began = self.reported = time.monotonic()

    def add(self, size: int) -> None:
        """Count bytes.

        Raises TryAgainError for more bytes than expected, DataError for too many bytes of an unknown size.
        """
        self.done += size
        if self.most is None and self.done > self.link.most:
            raise _too_large(self.link, f"more than {self.link.most:,} bytes arrived")
        if self.most is not None and self.done > self.most:
            raise TryAgainError(f"more than its {self.most:,} bytes arrived", restart=True)
        now = time.monotonic()
        if now - self.reported >= PROGRESS_INTERVAL or self.done == self.most:
            self.reported = now
            speed = format_size(int((self.done - self.first) / max(now - self.began, 1e-6)))
            total = f" of {format_size(self.most)}" if self.most else ""
            remark = f"{format_size(self.done)}{total}, {speed}/s"
            self.on_progress(Progress(self.what, self.done, self.most or self.done + 1, remark))
