"""One request over HTTP: what the answer means, and whether asking again can help.

The standard library's client does all that is needed (redirects, proxies, certificates), so fetching adds
no dependency.
"""

import http.client
import re
import ssl
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from isogloss.core.errors import DataError
from isogloss.core.version import VERSION

BLOCK = 1 << 18
"""Bytes taken at once."""

SLOWEST = 1024
"""Bytes a second; a server that gives less over a whole timeout is as good as silent."""

MAY_PASS = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Answers after which it is worth asking again (RFC 9110)."""

PARTIAL = 206
PAST_THE_END = 416

_RANGE = re.compile(r"bytes (?:(\d+)-\d+|\*)/(\d+|\*)")
_GZIP = ("gzip", "x-gzip")


class TryAgainError(Exception):
    """Something that may pass; ``wait`` are the seconds the server asked for."""

    def __init__(self, what: str, *, wait: float = 0.0, restart: bool = False) -> None:
        super().__init__(what)
        self.wait = wait
        self.restart = restart
        """Whether what is there already must not be gone on with."""


@dataclass(frozen=True)
class Reply:
    """An answer that has (a part of) the file in it."""

    start: int
    """The first byte of the file that the blocks hold."""
    total: int | None
    """Bytes of the whole file, where the server says."""
    validator: str
    """ETag or date of this version of the file; empty where it cannot be gone on with later."""
    kind: str
    """Its Content-Type."""
    ends: bool
    """Whether an end that comes too early would show."""
    blocks: Callable[[], Iterator[bytes]]


@contextmanager
def ask(url: str, *, start: int = 0, validator: str = "", timeout: float = 30.0) -> Iterator[Reply]:
    """Ask for a file from byte ``start`` on, but for the whole if it is not the version of ``validator``.

    TryAgainError where another attempt may help, DataError where not.
    """
    headers = {"User-Agent": f"isogloss/{VERSION}", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
        headers |= {"If-Range": validator} if validator else {}
    with _opened(url, headers, timeout) as response:
        yield _reply(url, response, start, timeout)


@contextmanager
def _opened(url: str, headers: dict[str, str], timeout: float) -> Iterator[Any]:
    try:
        response = _opener().open(urllib.request.Request(_checked(url), headers=headers), timeout=timeout)  # noqa: S310 (_checked)
    except urllib.error.HTTPError as error:
        with error:
            raise _refusal(url, error) from error
    except (OSError, http.client.HTTPException) as error:
        raise _no_answer(url, error) from error
    with response:
        yield response


def _checked(url: str) -> str:
    if urlsplit(url).scheme not in ("http", "https"):
        raise DataError(f"{url}: only http and https can be fetched.")
    return url


def _opener() -> urllib.request.OpenerDirector:
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        SafeRedirects(),
    ):
        opener.add_handler(handler)
    return opener


class SafeRedirects(urllib.request.HTTPRedirectHandler):
    """Follow redirects, but never to a place that is less safe than where one comes from."""

    def redirect_request(self, req: urllib.request.Request, *answer: Any) -> urllib.request.Request | None:
        """Give the next request, with the same headers."""
        there = str(answer[-1])
        if urlsplit(there).scheme != "https" and urlsplit(there).scheme != urlsplit(req.full_url).scheme:
            raise DataError(
                f"{req.full_url}: the server sends us on to {there}, which is less safe than https; "
                f"refused. Look whether the corpus has moved, and report it."
            )
        return super().redirect_request(req, *answer)


def _reply(url: str, response: Any, start: int, timeout: float) -> Reply:
    encoding = (response.headers.get("Content-Encoding") or "identity").lower()
    packed = encoding in _GZIP and not urlsplit(url).path.endswith((".gz", ".tgz"))
    if encoding not in ("identity", *_GZIP):
        raise TryAgainError(f"the server sent it in encoding {encoding!r}, which was not asked for")
    first, total = _range(response, start)
    if packed and first:
        raise TryAgainError("the server packs the file and cannot go on inside it", restart=True)
    if packed:
        return Reply(0, None, "", "", ends=True, blocks=lambda: _unpacked(_blocks(response, timeout)))
    return Reply(
        start=first,
        total=total,
        validator=_validator(response.headers),
        kind=response.headers.get_content_type(),
        ends=total is not None or response.chunked,
        blocks=lambda: _blocks(response, timeout),
    )


def _range(response: Any, start: int) -> tuple[int, int | None]:
    """Give the first byte that was sent and the bytes of the whole file."""
    length = response.headers.get("Content-Length", "")
    if response.status != PARTIAL:
        return 0, int(length) if length.isdigit() else None
    match = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
    first = int(match[1]) if match and match[1] else -1
    if first != start:
        found = response.headers.get("Content-Range", "nothing")
        raise TryAgainError(f"asked for bytes from {start} on, the server sent {found}", restart=True)
    return first, int(match[2]) if match and match[2] != "*" else None


def _validator(headers: Any) -> str:
    etag = headers.get("ETag") or ""
    if etag.startswith('"'):  # A weak one (W/"…") does not say that the bytes are equal.
        return str(etag)
    return "" if etag else str(headers.get("Last-Modified") or "")


def _blocks(response: Any, timeout: float) -> Iterator[bytes]:
    length = response.headers.get("Content-Length", "")
    received = since = 0
    began = time.monotonic()
    while True:
        try:
            block = response.read1(BLOCK)
        except (OSError, http.client.HTTPException) as error:
            raise TryAgainError(f"the connection broke after {received:,} bytes ({error})") from error
        if not block:
            break
        received += len(block)
        since += len(block)
        yield block
        if (spent := time.monotonic() - began) >= timeout:
            if since < SLOWEST * spent:
                raise TryAgainError(f"the server gave {since} bytes in {spent:.0f} s")
            began, since = time.monotonic(), 0
    if length.isdigit() and received < int(length):
        raise TryAgainError(f"the connection ended after {received:,} of {int(length):,} bytes")


def _unpacked(blocks: Iterator[bytes]) -> Iterator[bytes]:
    unpack = zlib.decompressobj(wbits=31)
    try:
        for block in blocks:
            yield unpack.decompress(block)
    except zlib.error as error:
        raise TryAgainError(f"the server's packing is damaged ({error})") from error
    if not unpack.eof:
        raise TryAgainError("the server's packing ends too early")


def _refusal(url: str, error: urllib.error.HTTPError) -> Exception:
    says = f"{error.code} {error.reason}"
    if error.code in MAY_PASS:
        return TryAgainError(f"the server says {says}", wait=_asked_to_wait(error.headers))
    if error.code == PAST_THE_END:
        return TryAgainError("the file there is shorter than what is here already", restart=True)
    what = "is not there" if error.code in (404, 410) else "cannot be had"
    return DataError(f"{url}: the file {what} (the server says {says}).")


def _asked_to_wait(headers: Any) -> float:
    value = headers.get("Retry-After", "")
    if value.isdigit():
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return 0.0


def _no_answer(url: str, error: Exception) -> Exception:
    reason = getattr(error, "reason", error)
    if isinstance(reason, ssl.SSLCertVerificationError):
        return DataError(
            f"{url}: the server's certificate cannot be trusted ({reason.verify_message}). Check this "
            f"machine's date and, where a proxy reads along, its certificates."
        )
    return TryAgainError(f"no answer ({reason})")
