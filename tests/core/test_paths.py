"""What others wrote into a folder leads nowhere else."""

import pytest

from isogloss.core.atomic_files import check_unicode
from isogloss.core.checksums import CHECKSUMS, read_checksums
from isogloss.core.errors import StorageError, in_unicode
from isogloss.core.untrusted import below, is_safe, within
from isogloss.encoders.folders import existing_folder
from isogloss.store.store import Store
from isogloss.using.exporting import check_free


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


def test_bytes_that_are_not_utf8_are_shown_and_paths_with_them_refused_for_weights(tmp_path):
    odd = "odd\udcff"
    assert in_unicode(f"{odd} ä") == "odd\\xff ä"
    assert in_unicode("ä") == "ä"
    in_unicode(odd).encode()
    check_unicode(tmp_path / "ä")
    for act in (
        check_unicode,
        lambda folder: Store(folder).write_plan([], {}),
        existing_folder,
        lambda folder: check_free(folder, force=False),
    ):
        with pytest.raises(StorageError, match=r"odd\\xff: this path has bytes that are not UTF-8"):
            act(tmp_path / odd)
    Store(tmp_path / "runs").write_plan([], {"recipe": odd, "command": f"run {odd}"})
    assert "odd" in (tmp_path / "runs" / "plan.json").read_text(encoding="utf-8")
    assert Store(tmp_path / "runs").plan()
