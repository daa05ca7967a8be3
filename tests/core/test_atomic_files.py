"""Files are written completely or not at all."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from isogloss.core.atomic_files import atomic_file, atomic_folder
from isogloss.core.errors import StorageError
from isogloss.core.processes import Interrupted, host, stopping_if_lost


def names(folder):
    return [path.name for path in folder.iterdir()]


def test_a_file_takes_its_name_when_it_is_whole(tmp_path):
    path = tmp_path / "deep" / "file"
    with atomic_file(path.parent, path.name) as file:
        file.write("é\n")
        assert not path.exists()
    assert path.read_bytes() == "é\n".encode()
    assert names(path.parent) == ["file"]


def test_a_file_that_fails_leaves_what_was_there(tmp_path):
    path = tmp_path / "file"
    path.write_text("before")
    with pytest.raises(KeyboardInterrupt), atomic_file(path.parent, path.name) as file:
        file.write("after")
        raise KeyboardInterrupt
    assert path.read_text() == "before"
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("whole_atomic_file", [atomic_file, atomic_folder])
def test_what_killed_processes_left_is_swept_and_nothing_else(tmp_path, whole_atomic_file):
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    text = f"{host()}-{process.pid}-1"
    (tmp_path / f".[a].{text}.tmp").mkdir()
    (tmp_path / f".[a].{text}.old").write_text("half")
    elsewhere = f".[a].another-{process.pid}-1.tmp"
    kept_places = [
        elsewhere,
        f".[a].{host()}-{os.getppid()}.tmp",
        f".b.{text}.tmp",
        ".[a].x.tmp",
        f".[a].{text}.txt",
    ]
    for name in kept_places:
        (tmp_path / name).write_text("other")
    with whole_atomic_file(tmp_path, "[a]"):
        pass
    assert sorted(names(tmp_path)) == sorted([*kept_places, "[a]"])


def test_what_is_no_ordinary_file_is_not_replaced(tmp_path):
    for path in (tmp_path, "/dev/null"):
        with (
            pytest.raises(StorageError, match="ordinary"),
            atomic_file(Path(path).parent, Path(path).name),
        ):
            pass


def test_a_folder_takes_the_place_of_another_when_it_is_whole(tmp_path):
    path = tmp_path / "folder"
    path.mkdir()
    (path / "old").touch()
    with atomic_folder(path.parent, path.name) as place:
        (place / "new").touch()
        assert names(path) == ["old"]
    assert names(path) == ["new"]
    assert names(tmp_path) == ["folder"]


def test_an_equal_folder_stays_for_those_who_read_it(tmp_path):
    def write(hidden: str) -> None:
        with atomic_folder(tmp_path, "folder") as place:
            (place / "deep").mkdir()
            (place / "deep" / "file").write_text("same")
            (place / ".hidden").write_text(hidden)

    write("one")
    inode = (tmp_path / "folder").stat().st_ino
    write("one")
    assert (tmp_path / "folder").stat().st_ino == inode
    write("two")
    assert (tmp_path / "folder" / ".hidden").read_text() == "two"
    assert names(tmp_path) == ["folder"]


def test_a_folder_that_another_process_makes_at_the_same_time_is_taken(tmp_path, monkeypatch):
    path = tmp_path / "folder"
    replace = os.replace

    def late(source, target, **folders):
        if source.endswith(".tmp"):
            path.mkdir()
            (path / "file").write_text("same")
        return replace(source, target, **folders)

    monkeypatch.setattr(os, "replace", late)
    with atomic_folder(path.parent, path.name) as place:
        (place / "file").write_text("same")
    assert (names(path), names(tmp_path)) == (["file"], ["folder"])


@pytest.mark.parametrize("whole_atomic_file", [atomic_file, atomic_folder])
def test_what_was_lost_to_another_process_gets_no_name(tmp_path, whole_atomic_file):
    def check():
        raise Interrupted

    with pytest.raises(Interrupted), stopping_if_lost(check), whole_atomic_file(tmp_path, "lost"):
        pass
    assert names(tmp_path) == []


def test_a_folder_that_fails_leaves_what_was_there(tmp_path):
    path = tmp_path / "folder"
    path.mkdir()
    with pytest.raises(ValueError, match="no"), atomic_folder(path.parent, path.name) as place:
        (place / "new").touch()
        raise ValueError("no")
    assert names(path) == []
    assert names(tmp_path) == ["folder"]


def test_a_folder_that_cannot_get_its_name_gives_the_old_one_back(tmp_path, monkeypatch):
    path = tmp_path / "folder"
    path.mkdir()
    (path / "old").touch()
    replace = os.replace

    def refuse(source, target, **folders):
        if source.endswith(".tmp"):
            raise OSError(errno.EIO, "broken")
        return replace(source, target, **folders)

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(StorageError, match="write"), atomic_folder(path.parent, path.name):
        pass
    assert names(path) == ["old"]
    assert names(tmp_path) == ["folder"]


@pytest.mark.skipif(os.name == "nt", reason="files have no such modes there")
@pytest.mark.parametrize("umask", [0o002, 0o022, 0o077])
def test_files_of_a_folder_get_the_mode_that_the_umask_gives(tmp_path, umask):
    umask_before = os.umask(umask)
    try:
        with atomic_folder(tmp_path, "folder") as new_atomic_folder:
            (new_atomic_folder / "deep").mkdir()
            (new_atomic_folder / "deep" / "weights").touch(mode=0o600)
            (new_atomic_folder / "link").symlink_to(tmp_path / "outside")
            (tmp_path / "outside").touch(mode=0o600)
    finally:
        os.umask(umask_before)
    assert (tmp_path / "folder" / "deep" / "weights").stat().st_mode & 0o777 == 0o666 & ~umask
    assert (tmp_path / "outside").stat().st_mode & 0o777 == 0o600 & ~umask
