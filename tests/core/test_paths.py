"""What others wrote into a folder leads nowhere else."""

import pytest

from isogloss.core.checksums import CHECKSUMS, read_checksums
from isogloss.core.errors import StorageError
from isogloss.core.untrusted import below, is_safe, within


@pytest.mark.parametrize("name", [None, 5, ["a"], {}])
def test_a_name_that_is_no_text_is_refused(tmp_path, name):
    assert not is_safe(name)
    with pytest.raises(StorageError, match="leads out of the folder or is invalid"):
        below(tmp_path, name)


def test_a_link_that_leads_out_of_the_folder_is_refused_and_one_within_is_not(tmp_path):
    folder = tmp_path / "folder"
    (folder / "real").mkdir(parents=True)
    (folder / "within").symlink_to("real")
    (folder / "out").symlink_to(tmp_path)
    (folder / "circle").symlink_to("circle")
    (tmp_path / "linked").symlink_to("folder")
    assert within(folder, "within/x") == folder / "within" / "x"
    assert within(tmp_path / "linked", "real/x") == tmp_path / "linked" / "real" / "x"
    assert within(folder, "circle") == folder / "circle"  # To be written, it is replaced.
    with pytest.raises(StorageError, match=r"folder/out/x: a link leads out of .*folder, and nothing"):
        within(folder, "out/x")


def test_checksums_that_name_what_is_elsewhere_are_refused(tmp_path):
    (tmp_path / CHECKSUMS).write_text('{"../../x": {"size": 5, "crc32": "0"}}')
    with pytest.raises(StorageError, match=r"checksums.json: the name '../../x' leads out"):
        read_checksums(tmp_path)
