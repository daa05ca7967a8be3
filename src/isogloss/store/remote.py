"""Files below a URL, through fsspec, and their local copies. Only this module uses fsspec.

Object stores write a single file atomically, but not a group of files. So a group (of a run, of its
checkpoints, of a report) has a manifest with sizes and checksums, which is written last. A group exists when
its manifest does. Downloads are compared with the manifest before they get their names.

If a store does not answer, this module waits. Credentials come from the package of the file system
(configuration and environment), and are neither written nor printed here.
"""

import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, TypeVar

from isogloss.core.atomic_files import (
    DISK_FULL_ERRORS,
    make_folder,
    storage_error,
    temporary_name,
    write_bytes,
    writing,
)
from isogloss.core.checksums import Checksum, as_text, cached_checksum, difference, from_text
from isogloss.core.errors import ConfigError, IsoglossError, StorageError, one_line
from isogloss.core.processes import interruption_requested
from isogloss.core.progress import OnProgress, no_progress, one_by_one
from isogloss.core.records import MADE
from isogloss.core.shared_files import (
    IrregularFileError,
    file_size,
    locked,
    open_new_file,
    read_file,
    remove,
    rename,
)
from isogloss.core.untrusted import below
from isogloss.store.leases import LEASES

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

PATIENCE = 600.0
"""Seconds to wait for a store that does not answer."""

WHEN_LEAVING = 20.0
"""Seconds that a process that received SIGTERM waits for such a store."""

FIRST_WAIT = 0.5
LONGEST_WAIT = 5.0
"""Seconds between attempts: twice as long each time. Signs of life must not pause for long."""

AT_ONCE = 256
"""Files requested per call."""

ATTEMPTS = 3
"""Number of downloads of a file that arrives damaged."""

CREATING = {
    **dict.fromkeys(("s3", "s3a"), "isogloss[s3]"),
    **dict.fromkeys(("gs", "gcs"), "gcsfs"),
    **dict.fromkeys(("az", "abfs", "abfss"), "adlfs"),
    "memory": "fsspec",
}
"""Protocols whose file systems create a file only if it does not exist, in one step: what to install.

Other file systems of fsspec check for a file, then write it, which two processes can do at once.
"""

T = TypeVar("T")


def is_url(path: str | Path) -> bool:
    """Return whether a path is a URL rather than a folder."""
    return "://" in str(path)


@dataclass(eq=False)
class Remote:
    """Files below a URL, by their names from there, and the folder with their copies under the same names."""

    url: str
    root: Path
    patience: float = PATIENCE
    interruptions: int = 0
    """Number of times the store has not answered."""
    listed: dict[str, int] = field(default_factory=dict)
    """The files that were there at the last look or were written since, with their sizes."""
    uploading: threading.Lock = field(default_factory=threading.Lock)
    """Held while checkpoints are uploaded, or removed."""
    answered: bool = False
    """Whether the store has answered: until then its URL may be wrong, so it is not waited for."""

    def __reduce__(self) -> tuple[object, ...]:
        """Let other processes connect by themselves."""
        return remote_at, (self.url, self.root), {"answered": self.answered}

    def check(self) -> None:
        """Raise ConfigError or StorageError unless processes can share runs here; leave nothing behind."""
        protocol = self.url.partition("://")[0]
        name = f"{LEASES}/check.{token_hex(8)}"
        if protocol not in CREATING:
            raise ConfigError(
                f"{self.url}: runs cannot be shared here: it is not known of {protocol}:// that it creates a "
                f"file for one process alone. Use a folder, or one of {', '.join(CREATING)}."
            )
        self._call(lambda files, path: files.pipe_file(path, b"1", mode="create"), name, waits=False)
        try:
            with suppress(StorageError):  # It should be refused, in whatever words.
                self._call(lambda files, path: files.pipe_file(path, b"2", mode="create"), name, waits=False)
            if self.read(name) != b"1":
                raise ConfigError(
                    f"{self.url}: runs cannot be shared here: this server writes over a file that was to be "
                    f"created only if missing (S3: If-None-Match), so that two processes could make "
                    f"the same run. Use a server that heeds it, or a folder."
                )
        finally:
            self.remove([name])

    def create(self, name: str, content: bytes) -> bool:
        """Write a file unless it is there; False if another one is."""

        def create(files: "AbstractFileSystem", path: str) -> bool:
            try:
                files.pipe_file(path, content, mode="create")
            except Exception:  # Stores differ in how they refuse, and a lost answer looks like a refusal.
                existing = _read(files, path)
                if existing is None:
                    raise
                return existing == content
            return True

        return self._call(create, name)

    def read(self, name: str, *, waits: bool = True) -> bytes | None:
        """Return the content of a file; None if it is missing."""
        return self._call(_read, name, waits=waits)

    def note(self, name: str, content: bytes | None) -> None:
        """Note in ``listed`` that a file was there when it was read, or was not (None)."""
        if content is None:
            self.listed.pop(name, None)
        else:
            self.listed[name] = len(content)

    def write(self, name: str, content: bytes, *, waits: bool = True) -> None:
        """Write a file, whether it is there or not."""
        self._call(lambda files, path: files.pipe_file(path, content), name, waits=waits)
        self.note(name, content)

    def remove(self, names: Iterable[str], *, waits: bool = True) -> None:
        """Remove files, as far as they are there."""

        def remove(files: "AbstractFileSystem", path: str) -> None:
            with suppress(FileNotFoundError):
                files.rm_file(path)

        for name in names:
            self._call(remove, name, waits=waits)
            self.listed.pop(name, None)

    def exists(self, name: str) -> bool:
        """Return whether a file exists, without a cache.

        It is read: file systems list the folder where they are asked about a file that is missing, and a
        listing costs as much as ten reads.
        """
        return self.read(name) is not None

    def listing(self, inside: str = "") -> dict[str, int]:
        """Return the sizes of all files below a name (or of all), by name; StorageError for an unsafe one."""

        def find(files: "AbstractFileSystem", path: str) -> dict[str, int]:
            files.invalidate_cache()
            infos = files.find(path, detail=True)
            start = path.removesuffix(inside).rstrip("/") + "/"
            return {name.removeprefix(start): int(info["size"]) for name, info in infos.items()}

        paths = self._call(find, inside)
        for name in filter(None, paths):
            below(self.root, name.removesuffix("/"), self.url)  # Some clients make an object for a folder.
        return paths

    def is_here(self, manifest: str) -> bool:
        """Return whether the copies of all files of a manifest are here, by their sizes and checksums."""
        try:
            checksums = self.files_of(manifest, read_file(self.root, manifest))
        except (FileNotFoundError, IrregularFileError):
            return False
        return bool(checksums) and not self._missing(checksums, self.root)

    def download(self, manifest: str) -> bool:
        """Download the files of a manifest that are not here, then the manifest; False without a manifest."""
        if self.is_here(manifest):
            return True
        with _one_at_a_time(self.root, manifest):
            content = None if self.is_here(manifest) else self.read(manifest)
            if content is None:
                return self.is_here(manifest)
            checksums = self.files_of(manifest, content)
            self.download_files(checksums)
            write_bytes(self.root, manifest, content)
        return bool(checksums)

    def files_of(self, manifest: str, content: bytes) -> dict[str, Checksum]:
        """Return the files that a manifest lists. Empty for a damaged manifest.

        Raises StorageError for an unsafe name, or a name that does not belong to the manifest's run.
        """
        try:
            checksums = from_text(content, f"{self.url}/{manifest}")
        except ValueError:
            return {}
        run = manifest.rpartition("/")[0]
        for name in checksums if run else ():
            if not name.startswith(f"{run}/"):
                raise StorageError(
                    f"{self.url}/{manifest}: {name[:120]!r} is no file of run {run}; refused, and nothing "
                    f"was written. Whoever made it is not to be trusted: use another copy of these runs."
                )
        return checksums

    def upload(self, names: Iterable[str], manifest: str, *, last: str = "") -> None:
        """Write files that are here, their manifest, and the ``last`` one of them after it.

        Files in an earlier manifest are not uploaded again, and are removed where they are no longer here.
        """
        checksums = {name: Checksum.of_file(self.root, name) for name in sorted(names)}
        content = as_text(checksums).encode()
        if last:  # What is here is whole, whether it arrives or not.
            write_bytes(self.root, manifest, content)
        earlier_manifest = self.read(manifest) if manifest in self.listed else None
        earlier = self.files_of(manifest, earlier_manifest or b"")
        changed_names = [
            name for name, checksum in checksums.items() if checksum != earlier.get(name) and name != last
        ]
        self._put([name for name in changed_names if not name.endswith(MADE)])
        if last and self.exists(last):  # Another process was quicker, and its circumstances are others.
            return
        self._put([name for name in changed_names if name.endswith(MADE)])
        if content != earlier_manifest:
            self.write(manifest, content)
        if last:
            self._put([last])
        else:
            write_bytes(self.root, manifest, content)
        self.remove(earlier.keys() - checksums.keys())

    def download_files(
        self, checksums: Mapping[str, Checksum], to: Path | None = None, on_progress: OnProgress = no_progress
    ) -> None:
        """Download files that are not here, into the folder of copies or another one.

        A file is here if it has the size and, where that is known, the checksum.
        """
        root = to or self.root
        left = {name: checksums[name] for name in self._missing(checksums, root)}
        for _ in range(ATTEMPTS):
            names = list(left)
            for begin in one_by_one(range(0, len(names), AT_ONCE), "copying records", on_progress):
                for name in self._downloaded(
                    {name: left[name] for name in names[begin : begin + AT_ONCE]}, root
                ):
                    del left[name]
        for name, checksum in left.items():
            raise StorageError(
                f"{self.url}/{name}: this file arrives damaged: these are not the {checksum.size:,} "
                f"bytes that were written. Remove {name.partition('/')[0]}/record.json there and run again: "
                f"only this run is repeated."
            )

    def _downloaded(self, checksums: Mapping[str, Checksum], root: Path) -> list[str]:
        """Download files under temporary names, rename those that are right, and return their names."""
        parts = {name: temporary_name(name, "tmp") for name in checksums}
        with writing(root):
            for part in parts.values():
                make_folder(root, part.rpartition("/")[0])
                os.close(open_new_file(root, part))  # What it is written through is no link.

        def get(files: "AbstractFileSystem", path: str) -> None:
            files.get([f"{path}/{name}" for name in parts], [str(root / part) for part in parts.values()])

        right = []
        try:
            self._call(get, "")
            for name, part in parts.items():
                if not difference(Checksum.of_file(root, part), checksums[name]):
                    rename(root, part, name)
                    right.append(name)
        finally:
            for part in parts.values():
                remove(root, part)
        return right

    def _put(self, names: Collection[str]) -> None:
        def put(files: "AbstractFileSystem", path: str) -> None:
            files.put([str(self.root / name) for name in names], [f"{path}/{name}" for name in names])

        if names:
            self._call(put, "")

    def _missing(self, checksums: Mapping[str, Checksum], root: Path) -> list[str]:
        return [name for name, checksum in checksums.items() if not _is_whole(root, name, checksum)]

    def _call(self, call: Callable[["AbstractFileSystem", str], T], name: str, *, waits: bool = True) -> T:
        """Call with the file system and a file's path in it; StorageError if it does not answer for long."""
        files, root = _opened(self.url, os.getpid())
        path = f"{root}/{name}".rstrip("/")
        began = time.monotonic()
        wait = FIRST_WAIT
        while True:
            try:
                answer = call(files, path)
                self.answered = True
                return answer
            except (IsoglossError, TypeError, AttributeError, NotImplementedError):
                raise
            except (PermissionError, FileNotFoundError) as error:
                raise self._refused(error) from error
            except Exception as error:  # Each package has its own for a connection that broke.
                if getattr(error, "errno", None) in DISK_FULL_ERRORS:
                    raise storage_error(self.root, OSError(*error.args)) from error
                self.interruptions += 1
                patience = min(self.patience, WHEN_LEAVING) if interruption_requested() else self.patience
                if not (waits and self.answered) or time.monotonic() - began + wait > patience:
                    raise self._away(error) from error
            time.sleep(wait)
            wait = min(2 * wait, LONGEST_WAIT)

    def _refused(self, error: OSError) -> StorageError:
        return StorageError(
            f"{self.url}: the store refuses ({one_line(error)}). Look whether the bucket is "
            f"there and your credentials may read and write it; run the same command again to continue."
        )

    def _away(self, error: Exception) -> StorageError:
        return StorageError(
            f"{self.url}: the store does not answer ({one_line(error)}). What is finished is "
            f"kept in {self.root}; run the same command again to continue."
        )


@cache
def remote_at(url: str, root: Path) -> Remote:
    """Return the files below a URL, the same object for all callers in this process.

    Raises ConfigError for an invalid location.
    """
    address, _, path = url.rstrip("/").partition("://")[2].partition("/")
    if ":" in address.partition("@")[0] and "@" in address:
        raise ConfigError(
            f"{url.partition(':')[0]}://…@{address.rpartition('@')[2]}: passwords in a URL end in plans and "
            f"logs. Put them where the file system looks for them: its configuration or environment."
        )
    if "?" in url or "::" in url or not (address or path):
        raise ConfigError(
            f"{url.partition('?')[0]}: expected a plain URL, as in s3://bucket/study, without ? or ::."
        )
    return Remote(url.rstrip("/"), root)


@cache
def _opened(url: str, _: int) -> tuple["AbstractFileSystem", str]:
    """Return a file system and the path of a URL in it.

    A forked process cannot use its parent's file systems.
    """
    protocol = url.partition("://")[0]
    try:
        from fsspec.core import url_to_fs

        files, path = url_to_fs(url, use_listings_cache=False, skip_instance_cache=True)
    except ImportError as error:
        package = CREATING.get(protocol, "")
        advice = f' Install: pip install "{package}"' if package else ""
        raise ConfigError(
            f"{url}: the package for {protocol}:// is not installed ({error}).{advice}"
        ) from error
    except Exception as error:  # Some connect at once, and raise different errors.
        raise ConfigError(
            f"{url}: the store cannot be opened ({one_line(error)}). Expected a URL as in s3://bucket/study."
        ) from error
    return files, path.rstrip("/")


def _read(files: "AbstractFileSystem", path: str) -> bytes | None:
    try:
        return bytes(files.cat_file(path, max_concurrency=1))  # With more, s3fs asks for the size first.
    except FileNotFoundError:
        return None


def _is_whole(root: Path, name: str, checksum: Checksum) -> bool:
    if file_size(root, name) != checksum.size:
        return False
    return not checksum.crc32 or not difference(cached_checksum(root, name), checksum)


@contextmanager
def _one_at_a_time(root: Path, name: str) -> Iterator[None]:
    """Keep other processes of this machine from downloading the same, where the cache can be locked."""
    parent, slash, base = name.rpartition("/")
    with writing(root / name):
        make_folder(root, parent)
    with ExitStack() as stack:
        with suppress(OSError):  # Without a lock each downloads it for itself.
            stack.enter_context(locked(root, f"{parent}{slash}.{base}.lock", wait=True))
        yield
