"""Users of one group make the runs of one folder, whatever their umask. Others are refused in a line."""

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import isogloss
from isogloss.store.store import WORK
from killed import RECIPE, count_runs, left, records, wait_until
from tiny import as_precise_as

pytestmark = pytest.mark.slow

GROUP = 30_000
OTHER_GROUP = 30_001
ADA = 20_001
BEN = 20_002
STRANGER = 20_003
"""Numbers of groups and of users, which need no name."""

UMASKS = {ADA: 0o022, BEN: 0o077}

UNSHARE = ("unshare", "--mount", "sh", "-c")

PROJECT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Users:
    """Runs programs as another user of this machine."""

    place: Path
    """A folder that every user can enter."""

    def begin(self, user: int, group: int, umask: int, words: list[str]) -> "subprocess.Popen[str]":
        """Start a program as a user of a group."""
        home = self.place / f"home-{user}"
        if not home.exists():
            home.mkdir()
            os.chown(home, user, group)
        change = f"umask {umask:03o}; exec setpriv --reuid {user} --regid {group} --clear-groups"
        script = "\n".join([*self._opened(), f'{change} "$@"'])
        return subprocess.Popen(
            [*UNSHARE, script, "sh", *words],
            cwd=home, env={**os.environ, "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def call(self, user: int, group: int, umask: int, words: list[str]) -> tuple[int, str]:
        """Run a program as a user of a group. Return its status and what it printed."""
        process = self.begin(user, group, umask, words)
        output, errors = process.communicate(timeout=600)
        return process.returncode, output + errors

    def _opened(self) -> Iterator[str]:
        """Yield commands after which all users can enter the folders of Python and the project.

        Below a closed folder, such as the home of root, these folders are shown, only to this program.
        """
        needed_paths = [Path(sys.base_prefix).resolve(), Path(sys.prefix).absolute(), PROJECT]
        for closed_parent in {_closed_parent(path) for path in needed_paths} - {None}:
            paths_below = [path for path in needed_paths if closed_parent in path.parents]
            for index, path in enumerate(paths_below):
                yield f"mkdir -p {self.place}/{index} && mount --bind {path} {self.place}/{index}"
            yield f"mount -t tmpfs -o mode=755 none {closed_parent}"
            for index, path in enumerate(paths_below):
                yield f"mkdir -p {path} && mount --bind {self.place}/{index} {path}"


def _closed_parent(path: Path) -> Path | None:
    """Return the topmost folder around a path that other users cannot enter."""
    parents = reversed(path.parents)
    return next((parent for parent in parents if not parent.stat().st_mode & stat.S_IXOTH), None)


@pytest.fixture
def users() -> Iterator[Users]:
    """Programs as other users, and a folder that they can enter. Pytest's own is closed to them."""
    if not shutil.which("setpriv") or os.getuid() or subprocess.run([*UNSHARE, ":"], check=False).returncode:
        pytest.skip("no other user can be made up here")
    place = Path(tempfile.mkdtemp())
    place.chmod(0o755)
    try:
        yield Users(place)
    finally:
        shutil.rmtree(place)


@pytest.fixture
def shared(users: Users) -> Path:
    """A recipe, and a shared folder of runs of the group."""
    (users.place / "r.toml").write_text(RECIPE)
    folder = users.place / "runs"
    folder.mkdir()
    os.chown(folder, 0, GROUP)
    folder.chmod(0o2770)
    return folder


def run_words(path: Path) -> list[str]:
    words = (
        "run",
        str(path.parent / "r.toml"),
        "--out",
        str(path),
        "--engine",
        "serial",
        "--quiet",
        "--no-report",
    )
    return [sys.executable, "-m", "isogloss", *words]


def check_ownership(folder: Path) -> None:
    """Assert that the whole folder belongs to the group, which may read and write it."""
    for path in folder.rglob("*"):
        status = path.lstat()
        assert status.st_gid == GROUP, path
        assert (status.st_mode >> 3) & 0o6 == 0o6, (path, oct(status.st_mode))
        assert not path.is_dir() or status.st_mode & stat.S_ISGID, path


@pytest.mark.nightly
def test_two_users_of_a_group_share_the_runs_of_a_folder(users: Users, shared: Path) -> None:
    processes = [users.begin(user, GROUP, umask, run_words(shared)) for user, umask in UMASKS.items()]
    for process in processes:
        output, errors = process.communicate(timeout=600)
        assert (process.returncode, output, errors) == (0, "", "")
    assert set(count_runs(shared).values()) == {1} and len(count_runs(shared)) == len(records(shared))
    assert left(shared) == []
    report = [sys.executable, "-m", "isogloss", "report", str(shared)]
    for user, umask in UMASKS.items():
        assert users.call(user, GROUP, umask, report)[0] == 0
    check_ownership(shared)
    expected = as_precise_as(shared, users.place / "alone")
    isogloss.run(users.place / "r.toml", out=expected, jobs=1, report=False)
    assert records(shared) == records(expected)


@pytest.mark.nightly
def test_what_a_user_began_who_was_killed_another_user_ends(users: Users, shared: Path) -> None:
    killed_beginning = users.begin(ADA, GROUP, 0o077, run_words(shared))
    wait_until(lambda: any(shared.glob(f"*/{WORK}/checkpoint-*")) or killed_beginning.poll() is not None)
    killed_beginning.kill()
    assert killed_beginning.wait() == -signal.SIGKILL
    assert users.call(BEN, GROUP, 0o077, run_words(shared)) == (0, "")
    assert set(count_runs(shared).values()) == {1} and len(count_runs(shared)) == len(records(shared)) > 2
    assert left(shared) == []
    check_ownership(shared)


def test_a_user_of_another_group_is_refused_in_a_line_that_says_whose_the_folder_is(
    users: Users, shared: Path
) -> None:
    status, result = users.call(STRANGER, OTHER_GROUP, 0o022, run_words(shared))
    assert (status, result.count("\n")) == (2, 1), result
    assert "Permission denied" in result and f"belongs to root:{GROUP}" in result and "chmod" in result
    assert list(shared.rglob("*")) == []
