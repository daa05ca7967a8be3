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
    lock_file,
    open_new_file,
    read_file,
    remove,
    rename,
)
from isogloss.core.untrusted import join_safely
from isogloss.store.leases import LEASES

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

PATIENCE = 600.0
"""Seconds to wait for a store that does not answer."""

WHEN_LEAVING = 20.0
"""Seconds that a process waits for such a store after it received SIGTERM."""

FIRST_WAIT = 0.5
LONGEST_WAIT = 5.0
"""Maximum seconds between two attempts. The wait doubles each time, but signs of life must not pause for
long."""

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
"""Package for each protocol whose file system creates a file only if it does not exist, in one step.

Other file systems of fsspec check for a file, then write it, which two processes can do at the same time.
"""

T = TypeVar("T")


@dataclass(eq=False)
class Remote:
    """Files below a URL, by their names from there, and a folder with copies under the same names."""

    url: str
    root: Path
    patience: float = PATIENCE
    interruptions: int = 0
    """Number of times the store has not answered."""
    listed: dict[str, int] = field(default_factory=dict)
    """Files at the last listing, and files written since, with their sizes."""
    uploading: threading.Lock = field(default_factory=threading.Lock)
    """Lock for uploading or removing checkpoints."""
    answered: bool = False
    """Whether the store has ever answered. Until then its URL may be wrong, so requests do not wait."""

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle without the connection, so that each process connects for itself."""
        return remote_at, (self.url, self.root), {"answered": self.answered}

    def check(self) -> None:
        """Raise ConfigError or StorageError unless processes can share runs here. Test files are removed."""
        protocol = self.url.partition("://")[0]
        name = f"{LEASES}/check.{token_hex(8)}"
        if protocol not in CREATING:
            raise ConfigError(
                f"{self.url}: runs cannot be shared here: it is not known of {protocol}:// that it creates a "
                f"file for one process alone. Use a folder, or one of {', '.join(CREATING)}."
            )
        self._call(lambda files, path: files.pipe_file(path, b"1", mode="create"), name, waits=False)
        try:
            with suppress(StorageError):  # Creating the file a second time must fail.
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
        """Write a file and return True, or return False if it exists."""

        def create(files: "AbstractFileSystem", path: str) -> bool:
            try:
                files.pipe_file(path, content, mode="create")
            except Exception:  # Errors differ, and a lost answer looks like a refusal.
                existing = _read(files, path)
                if existing is None:
                    raise
                return existing == content
            return True

        return self._call(create, name)

    def read(self, name: str, *, waits: bool = True) -> bytes | None:
        """Return the content of a file, or None if it is missing."""
        return self._call(_read, name, waits=waits)

    def note(self, name: str, content: bytes | None) -> None:
        """Record in ``listed`` the size of a file that was read, or that it is missing (None)."""
        if content is None:
            self.listed.pop(name, None)
        else:
            self.listed[name] = len(content)

    def write(self, name: str, content: bytes, *, waits: bool = True) -> None:
        """Write a file, whether it exists or not."""
        self._call(lambda files, path: files.pipe_file(path, content), name, waits=waits)
        self.note(name, content)

    def remove(self, names: Iterable[str], *, waits: bool = True) -> None:
        """Remove files if they exist."""

        def remove(files: "AbstractFileSystem", path: str) -> None:
            with suppress(FileNotFoundError):
                files.rm_file(path)

        for name in names:
            self._call(remove, name, waits=waits)
            self.listed.pop(name, None)

    def exists(self, name: str) -> bool:
        """Return whether a file exists, without a cache.

        The file is read, because file systems list the folder to find out that a file is missing. A listing
        costs as much as ten reads.
        """
        return self.read(name) is not None

    def listing(self, inside: str = "") -> dict[str, int]:
        """Return the sizes of all files below a folder, by name. Default: all files.

        Raises StorageError for an unsafe name.
        """

        def find(files: "AbstractFileSystem", path: str) -> dict[str, int]:
            files.invalidate_cache()
            infos = files.find(path, detail=True)
            start = path.removesuffix(inside).rstrip("/") + "/"
            return {name.removeprefix(start): int(info["size"]) for name, info in infos.items()}

        paths = self._call(find, inside)
        for name in paths.keys() - {""}:
            join_safely(
                self.root, name.removesuffix("/"), self.url
            )  # Some clients make an object for a folder.
        return paths

    def is_here(self, manifest: str) -> bool:
        """Return whether the copies of all files of a manifest have its sizes and checksums."""
        try:
            checksums = self.files_of(manifest, read_file(self.root, manifest))
        except (FileNotFoundError, IrregularFileError):
            return False
        return bool(checksums) and not self._missing(checksums, self.root)

    def download(self, manifest: str) -> bool:
        """Download the missing files of a manifest, then the manifest. Returns False without a manifest."""
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

    def upload(self, names: Iterable[str], manifest: str, *, last_name: str = "") -> None:
        """Upload local files, then their manifest, then the file ``last_name``.

        Files that are equal in an earlier manifest are not uploaded again. Its other files are removed.
        """
        checksums = {name: Checksum.of_file(self.root, name) for name in sorted(names)}
        content = as_text(checksums).encode()
        if last_name:  # The local files are complete, whether they arrive or not.
            write_bytes(self.root, manifest, content)
        earlier_manifest = self.read(manifest) if manifest in self.listed else None
        earlier = self.files_of(manifest, earlier_manifest or b"")
        changed_names = [
            name
            for name, checksum in checksums.items()
            if checksum != earlier.get(name) and name != last_name
        ]
        self._upload_files([name for name in changed_names if not name.endswith(MADE)])
        if last_name and self.exists(last_name):  # A different process was quicker. Its circumstances differ.
            return
        self._upload_files([name for name in changed_names if name.endswith(MADE)])
        if content != earlier_manifest:
            self.write(manifest, content)
        if last_name:
            self._upload_files([last_name])
        else:
            write_bytes(self.root, manifest, content)
        self.remove(earlier.keys() - checksums.keys())

    def download_files(
        self,
        checksums: Mapping[str, Checksum],
        target: Path | None = None,
        on_progress: OnProgress = no_progress,
    ) -> None:
        """Download missing files into a folder. Default: the folder of copies.

        A file is missing unless it has the right size and, if known, the right checksum.
        """
        root = target or self.root
        left = {name: checksums[name] for name in self._missing(checksums, root)}
        for _ in range(ATTEMPTS):
            names = list(left)
            for begin in one_by_one(range(0, len(names), AT_ONCE), "copying records", on_progress):
                for name in self._download_parts(
                    {name: left[name] for name in names[begin : begin + AT_ONCE]}, root
                ):
                    del left[name]
        for name, checksum in left.items():
            raise StorageError(
                f"{self.url}/{name}: this file arrives damaged: these are not the {checksum.size:,} "
                f"bytes that were written. Remove {name.partition('/')[0]}/record.json there and run again: "
                f"only this run is repeated."
            )

    def _download_parts(self, checksums: Mapping[str, Checksum], root: Path) -> list[str]:
        """Download files under temporary names, rename the undamaged ones, and return their names."""
        parts = {name: temporary_name(name, "tmp") for name in checksums}
        with writing(root):
            for part in parts.values():
                make_folder(root, part.rpartition("/")[0])
                os.close(open_new_file(root, part))  # Creates a regular file, so that no link is followed.

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

    def _upload_files(self, names: Collection[str]) -> None:
        def put_files(files: "AbstractFileSystem", path: str) -> None:
            files.put([str(self.root / name) for name in names], [f"{path}/{name}" for name in names])

        if names:
            self._call(put_files, "")

    def _missing(self, checksums: Mapping[str, Checksum], root: Path) -> list[str]:
        return [name for name, checksum in checksums.items() if not _is_whole(root, name, checksum)]

    def _call(self, call: Callable[["AbstractFileSystem", str], T], name: str, *, waits: bool = True) -> T:
        """Call a function with the file system and the path of a file.

        Raises StorageError if the store does not answer for too long.
        """
        files, root = _open(self.url, os.getpid())
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
                raise self._describe_refusal(error) from error
            except Exception as error:  # Packages raise different errors for lost connections.
                if getattr(error, "errno", None) in DISK_FULL_ERRORS:
                    raise storage_error(self.root, OSError(*error.args)) from error
                self.interruptions += 1
                patience = min(self.patience, WHEN_LEAVING) if interruption_requested() else self.patience
                if not (waits and self.answered) or time.monotonic() - began + wait > patience:
                    raise self._away(error) from error
            time.sleep(wait)
            wait = min(2 * wait, LONGEST_WAIT)

    def _describe_refusal(self, error: OSError) -> StorageError:
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
def _open(url: str, _: int) -> tuple["AbstractFileSystem", str]:
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
    except Exception as error:  # Some file systems connect here and raise different errors.
        raise ConfigError(
            f"{url}: the store cannot be opened ({one_line(error)}). Expected a URL as in s3://bucket/study."
        ) from error
    return files, path.rstrip("/")


def _read(files: "AbstractFileSystem", path: str) -> bytes | None:
    try:
        return bytes(files.cat_file(path, max_concurrency=1))  # With more, s3fs first requests the size.
    except FileNotFoundError:
        return None


def _is_whole(root: Path, name: str, checksum: Checksum) -> bool:
    if file_size(root, name) != checksum.size:
        return False
    return not checksum.crc32 or not difference(cached_checksum(root, name), checksum)


@contextmanager
def _one_at_a_time(root: Path, name: str) -> Iterator[None]:
    """Keep other processes of this machine from downloading the same files, if the cache can be locked."""
    parent, slash, base = name.rpartition("/")
    with writing(root / name):
        make_folder(root, parent)
    with ExitStack() as stack:
        with suppress(OSError):  # Without a lock, each process downloads the files.
            stack.enter_context(lock_file(root, f"{parent}{slash}.{base}.lock", wait=True))
        yield
