import errno
import os

import pytest

from isogloss.core.atomic_files import (
    guard_folder,
    is_outage,
    is_reachable,
    make_folder,
    reading_error,
    storage_error,
)
from isogloss.core.errors import StorageError


def test_no_folder_is_made_in_the_place_of_one_that_went_away(tmp_path):
    (tmp_path / "runs" / "mark").mkdir(parents=True)
    with guard_folder(tmp_path / "runs", "mark"):
        make_folder(tmp_path / "runs" / "one" / "deep")
        (tmp_path / "runs").rename(tmp_path / "away")
        for missing in ("runs", "runs/one/deep", "runs/two"):
            with pytest.raises(OSError, match="gone"):
                make_folder(tmp_path / missing)
        make_folder(tmp_path / "beside")
        assert not (tmp_path / "runs").exists()
        (tmp_path / "runs").mkdir()  # As the place of a mount is, that was lost.
        with pytest.raises(OSError, match="gone"):
            make_folder(tmp_path / "runs" / "two")
    make_folder(tmp_path / "runs" / "two")


@pytest.mark.parametrize(("kind", "may_go_by"), [("EIO", True), ("ESTALE", True), ("ENOSPC", False)])
def test_an_error_of_a_folder_that_answers_says_whether_it_may_go_by(tmp_path, kind, may_go_by):
    (tmp_path / "mark").touch()
    error = StorageError("cannot read")
    error.__cause__ = OSError(getattr(errno, kind), "no", str(tmp_path / "record.json"))
    assert is_outage(error, tmp_path, "mark") is may_go_by
    assert is_outage(error, tmp_path / "elsewhere", "mark")
    assert not is_reachable(tmp_path / "elsewhere", "mark")


@pytest.mark.parametrize("error_number", [errno.EACCES, errno.EPERM])
@pytest.mark.parametrize("explained_reading_error", [reading_error, storage_error])
@pytest.mark.parametrize("name", ["file", "file/missing", "missing/deeper"])
def test_a_refusal_says_whose_the_file_is_and_what_its_owner_can_do(
    tmp_path, explained_reading_error, error_number, name
):
    (tmp_path / "file").touch()
    (tmp_path / "file").chmod(0o640)
    tmp_path.chmod(0o2750)
    is_missing = name.startswith("missing")
    refuses, mode = (tmp_path, "drwxr-s---") if is_missing else (tmp_path / "file", "-rw-r-----")
    message = str(explained_reading_error(tmp_path / name, OSError(error_number, os.strerror(error_number))))
    for fact in (
        f"{tmp_path / name}: cannot",
        os.strerror(error_number),
        f"{refuses} belongs to ",
        mode,
        "chmod -R g+rwX",
    ):
        assert fact in message


def test_an_error_of_another_kind_names_no_owner(tmp_path):
    assert "belongs" not in str(storage_error(tmp_path, OSError(errno.ENOSPC, "full")))
