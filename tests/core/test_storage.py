import errno

import pytest

from isogloss.core.atomic_files import guarded, is_outage, is_reachable, make_folder
from isogloss.core.errors import StorageError


def test_no_folder_is_made_in_the_place_of_one_that_went_away(tmp_path):
    (tmp_path / "runs" / "mark").mkdir(parents=True)
    with guarded(tmp_path / "runs", "mark"):
        make_folder(tmp_path / "runs" / "one" / "deep")
        (tmp_path / "runs").rename(tmp_path / "away")
        for missing in ("runs", "runs/one/deep", "runs/two"):
            with pytest.raises(OSError, match="runs has gone away"):
                make_folder(tmp_path / missing)
        make_folder(tmp_path / "beside")
        assert not (tmp_path / "runs").exists()
        (tmp_path / "runs").mkdir()  # As the place of a mount is, that was lost.
        with pytest.raises(OSError, match="runs has gone away"):
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
