"""Files from others in a shared folder never lead outside it, nor block a process forever."""

import ast
import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from isogloss.core import shared_files as shared
from isogloss.core.atomic_files import atomic_file, atomic_folder, sweep_folder, temporary_name, write_bytes
from isogloss.core.errors import StorageError
from isogloss.core.shared_files import IrregularFileError

RUN = "0123456789ab"

Act = Callable[[Path, str], object]


def fill_folder(folder: Path, name: str) -> None:
    with atomic_folder(folder, name) as new_folder:
        (new_folder / "x").write_text("theirs")


def write_file(folder: Path, name: str) -> None:
    with atomic_file(folder, name) as file:
        file.write("theirs")


def hold_lock(folder: Path, name: str) -> None:
    with shared.lock_file(folder, name, wait=True):
        pass


WRITES: dict[str, Act] = {
    "create": lambda folder, name: shared.create_file(folder, name, b"theirs"),
    "overwrite": lambda folder, name: shared.overwrite_file(folder, name, lambda _: b"theirs"),
    "append": lambda folder, name: shared.append_file(folder, name, b"theirs"),
    "new": lambda folder, name: os.close(shared.open_new_file(folder, name)),
    "write": lambda folder, name: write_bytes(folder, name, b"theirs"),
    "write text": write_file,
    "fill a folder": fill_folder,
    "make folders": lambda folder, name: shared.make_folders(folder, f"{name}/inside"),
    "make a new folder": shared.make_new_folder,
    "lock": hold_lock,
    "remove": shared.remove,
    "rename": lambda folder, name: shared.rename(folder, name, f"{name}-new"),
    "sweep": sweep_folder,
}

READS: dict[str, Act] = {
    "read": shared.read_file,
    "open": lambda folder, name: shared.open_file(folder, name).close(),
    "list": shared.entries,
    "list all": lambda folder, name: list(shared.list_files(folder, name)),
}


def victim(tmp_path: Path) -> Path:
    (tmp_path / "outside" / "b").mkdir(parents=True)
    for name in ("c", "b/c", "b/x"):
        (tmp_path / "outside" / name).write_text("mine")
    return tmp_path / "outside"


def contents(folder: Path) -> dict[Path, str]:
    return {path: path.read_text() if path.is_file() else "" for path in folder.rglob("*")}


@pytest.mark.parametrize("act", [*WRITES, *READS])
@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize("top", ["runs", f"runs/{RUN}"])
@pytest.mark.parametrize("target", ["", "b", "b/c", "nothing"])
def test_a_link_at_any_depth_leads_nowhere(tmp_path, act, depth, top, target):
    outside = victim(tmp_path)
    old_contents = contents(outside)
    name = "a/b/c"
    link = tmp_path / top / "/".join(name.split("/")[: depth + 1])
    link.parent.mkdir(parents=True)
    link.symlink_to(outside / target)
    try:
        outcome = {**WRITES, **READS}[act](tmp_path / top, name)
    except OSError as error:
        assert str(link) in str(error) or act in ("write", "write text", "fill a folder")
    except StorageError as error:
        assert str(link) in str(error)
    else:
        assert act not in READS or not outcome
    assert contents(outside) == old_contents


@pytest.mark.parametrize("act", [*WRITES, *READS])
def test_a_link_in_the_place_of_a_run_leads_nowhere(tmp_path, act):
    """The folder that is given is within it, as of those who know of no folder of runs."""
    outside = victim(tmp_path)
    old_contents = contents(outside)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / RUN).symlink_to(outside)
    with pytest.raises((OSError, StorageError), match=RUN):
        {**WRITES, **READS}[act](tmp_path / "runs" / RUN, "b/c")
    assert contents(outside) == old_contents


def test_a_link_on_the_way_to_the_folder_is_the_users_own(tmp_path):
    (tmp_path / "scratch").mkdir()
    (tmp_path / "runs").symlink_to("scratch")
    write_bytes(tmp_path / "runs", f"{RUN}/x", b"1")
    assert shared.read_file(tmp_path / "runs" / RUN, "x") == (tmp_path / "scratch" / RUN / "x").read_bytes()


@pytest.mark.parametrize("name", ["../x", "/x", "a//b", ".", "a/../../x", "a\0b"])
@pytest.mark.parametrize("act", [*WRITES, *READS])
def test_a_name_that_leads_out_is_refused(tmp_path, act, name):
    (tmp_path / "runs" / "a").mkdir(parents=True)
    (tmp_path / "x").write_text("mine")
    with pytest.raises((OSError, ValueError, StorageError)):
        {**WRITES, **READS}[act](tmp_path / "runs", name)
    assert (tmp_path / "x").read_text() == "mine"


@pytest.mark.parametrize("act", ["read", "open", "overwrite", "append", "lock"])
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_what_is_no_regular_file_is_not_waited_for(tmp_path, act, make):
    make(tmp_path / "x")
    errors: list[BaseException] = []

    def attempt() -> None:
        try:
            {**WRITES, **READS}[act](tmp_path, "x")
        except OSError as error:
            errors.append(error)

    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    thread.join(60)
    (error,) = errors
    assert isinstance(error, IrregularFileError)
    assert str(tmp_path / "x") in str(error)


def test_a_second_name_of_a_file_is_not_written_through(tmp_path):
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "x").hardlink_to(tmp_path / "mine")
    for act in ("overwrite", "append"):
        with pytest.raises(IrregularFileError, match="link"):
            WRITES[act](tmp_path, "x")
    WRITES["write"](tmp_path, "x")
    assert (tmp_path / "mine").read_text() == "mine"


def test_a_file_of_any_size_is_read_up_to_a_bound(tmp_path):
    with (tmp_path / "x").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(IrregularFileError, match=r"1,099,511,627,776 .*67,108,864.*x'") as error:
        shared.read_file(tmp_path, "x")
    assert error.value.errno == errno.EINVAL


@pytest.mark.parametrize("end", ["tmp", "old"])
@pytest.mark.parametrize("act", ["write", "write text", "fill a folder"])
@pytest.mark.parametrize("target", ["c", "b", "nothing"])
def test_a_link_under_the_name_of_a_temporary_file_is_removed(tmp_path, act, end, target):
    """Readers of a lease know the name of its process, and so the names of its temporary files."""
    outside = victim(tmp_path)
    old_contents = contents(outside)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / temporary_name("x", end)).symlink_to(outside / target)
    WRITES[act](tmp_path / "runs", "x")
    assert contents(outside) == old_contents
    assert (tmp_path / "runs" / "x").exists() and not (tmp_path / "runs" / "x").is_symlink()


SHARED = (
    "features",
    "store",
    "engine",
    "reports",
    "runs",
    "training",
    "methods",
    "translators",
    "using",
    "study",
    "api",
)
"""Packages that open files of shared folders."""

SHARED_MODULES = (
    "core/records", "core/atomic_files", "core/checksums", "data/result_files", "data/examples",
    "features/built_in_languages/__init__", "tasks/masked_lm",
)  # fmt: skip

PATH_CALLS = {
    "open", "read_text", "read_bytes", "write_text", "write_bytes", "unlink", "mkdir", "touch", "rmdir",
    "symlink_to", "hardlink_to", "chmod", "glob", "rglob", "iterdir",
}  # fmt: skip
"""Methods of paths that open, list or change files."""

SYSTEM_CALLS = {
    "os": {"open", "remove", "unlink", "rename", "replace", "mkdir", "makedirs", "scandir", "walk"},
    "shutil": {"rmtree", "move", "copyfile", "copytree", "copy"},
}

ELSEWHERE = {
    "core/checksums.py": {"open", "walk", "rglob"},  # Stamps, and hashes of models that the user named.
    "core/atomic_files.py": {"rglob", "chmod"},  # In a new folder of this process.
    "features/fetching/downloading.py": {"open", "write_text", "mkdir", "unlink"},  # In the user's data.
    "features/fetching/hub_address.py": {"read_text", "glob"},  # In the user's cache, and in the hub's.
    "features/fetching/releases.py": {"read_text", "iterdir"},  # Files of the package.
    "features/fetching/unpacking.py": {"open"},  # The archive, and its members.
    "engine/devices.py": {"open", "mkdir"},  # In the user's cache.
    "features/statistical_alignment/eflomal.py": {"open"},  # In a temporary folder.
    "features/word_order/functions.py": {"mkdir"},  # The folder that the caller named.
    "features/searching/search.py": {"read_bytes"},  # The recipe that the user named.
    "features/cluster/slurm_jobs.py": {"mkdir", "chmod", "glob"},  # In the user's cache.
    "features/built_in_languages/family.py": {"read_text"},  # A file of the package, as in the next one.
    "features/claims/four_papers.py": {"read_text"},
    "features/alignment/bitext_report.py": {"read_text"},
    "features/described_corpora/commands.py": {"iterdir", "rmdir", "unlink"},  # Its own, after a failure.
    "features/described_corpora/describer.py": {"read_text"},  # Files of the package, as the next ones.
    "features/described_corpora/shipped_corpora.py": {"glob"},
    "features/described_corpora/starting.py": {"iterdir", "read_bytes", "write_bytes"},  # The user's table.
    "features/multi_task/term.py": {"mkdir"},  # In a new folder of this process.
    "methods/presets.py": {"read_text"},  # A file of the package.
    "reports/page.py": {"read_text"},
    "reports/sections.py": {"read_text"},
    "reports/tables.py": {"read_text"},
    "reports/verdicts.py": {"read_text"},
    "training/checkpoints.py": {"open"},  # In a new folder of this process.
    "training/memory.py": {"read_text", "write_text"},  # Files of the system.
    "features/publishing/adapterhub.py": {"mkdir"},  # In a new folder of this process, as in the next ones.
    "features/publishing/adapters.py": {"write_text"},
    "features/publishing/encoder_exports.py": {"mkdir", "write_text"},
    "features/publishing/exporting.py": {"read_text", "write_text", "mkdir", "rmdir", "iterdir", "rglob"},
    "features/publishing/onnx_model.py": {"glob", "open"},  # Weights of a model that the user named.
    "features/publishing/onnx_scores.py": {"write_text"},
    "features/publishing/printing.py": {"rglob"},  # The folder that it wrote.
    "features/publishing/pushing.py": {"write_text", "chmod"},  # In the user's cache.
    "using/provenance.py": {"glob", "rglob"},  # Looks for links and names; opens nothing.
    "features/explorer/server.py": {"read_text", "open", "write_text"},  # The package, a browser, its page.
}
"""Calls for files outside shared folders, with the reason."""


def calls_of(path: Path) -> set[str]:
    calls = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        function = node.func if isinstance(node, ast.Call) else None
        if isinstance(function, ast.Name) and function.id == "open":
            calls.add("open")
        if isinstance(function, ast.Attribute):
            owner = function.value.id if isinstance(function.value, ast.Name) else ""
            if function.attr in SYSTEM_CALLS.get(owner, PATH_CALLS):
                calls.add(function.attr)
    return calls


def test_no_other_module_opens_files_of_a_shared_folder():
    root = Path(shared.__file__).parents[1]
    calls_by_module = {}
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if name.split("/")[0].removesuffix(".py") in SHARED or name.removesuffix(".py") in SHARED_MODULES:
            calls_by_module[name] = calls_of(path)
    assert {name: calls for name, calls in calls_by_module.items() if calls} == ELSEWHERE


@pytest.mark.parametrize("act", ["create", "overwrite", "append"])
def test_a_file_is_written_to_its_end_although_the_disk_takes_a_part_at_a_time(tmp_path, monkeypatch, act):
    class Slow(shared.FileIO):
        def write(self, content):
            return super().write(bytes(content)[:2])

    if act != "create":
        (tmp_path / "x").touch()
    monkeypatch.setattr(shared, "FileIO", Slow)
    WRITES[act](tmp_path, "x")
    assert (tmp_path / "x").read_bytes() == b"theirs"


def fill_as_libraries_do(folder: Path, name: str) -> None:
    """Fill a folder with files and folders that only their owner can read, for any umask."""
    with atomic_folder(folder, name) as new_folder:
        (new_folder / "deep").mkdir(mode=0o700)
        (new_folder / "deep" / "weights").touch(mode=0o600)


MADE: dict[str, Act] = {
    name: act for name, act in WRITES.items() if name not in ("overwrite", "remove", "rename", "sweep")
}
MADE["fill as libraries do"] = fill_as_libraries_do


@pytest.mark.skipif(os.name == "nt", reason="files have no such modes there")
@pytest.mark.parametrize("act", MADE)
@pytest.mark.parametrize("umask", [0o022, 0o007, 0o077])
@pytest.mark.parametrize("mode", [0o2775, 0o2770, 0o2750])
@pytest.mark.parametrize("parent", ["", "new", f"new/{RUN}"])
def test_all_that_is_made_in_a_folder_of_a_group_is_the_group_s(tmp_path, act, umask, mode, parent):
    group = tmp_path / "group"
    group.mkdir()
    group.chmod(mode)
    old_umask = os.umask(umask)
    try:
        shared.make_folders(group / parent)
        MADE[act](group / parent, "made")
    finally:
        os.umask(old_umask)
    paths = list(group.rglob("*"))
    assert paths
    for path in paths:
        status = path.stat()
        group_bits = mode & (0o070 if path.is_dir() else 0o060)
        assert status.st_mode & group_bits == group_bits, path
        assert status.st_mode & 0o007 & umask == 0, path
        assert status.st_gid == group.stat().st_gid


@pytest.mark.skipif(os.name == "nt", reason="files have no such modes there")
@pytest.mark.parametrize("act", MADE)
def test_what_is_made_in_other_folders_has_the_mode_that_the_umask_gives(tmp_path, act):
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    old_umask = os.umask(0o022)
    try:
        MADE[act](folder, "made")
    finally:
        os.umask(old_umask)
    assert {path.stat().st_mode & 0o777 for path in folder.rglob("*")} <= {0o755, 0o644}
