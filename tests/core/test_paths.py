"""Names that others wrote stay below their folder, or are refused by name."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss.core.checksums import CHECKSUMS, read_checksums
from isogloss.core.errors import StorageError
from isogloss.core.paths import below, name_fault, ordinary_bytes

UNSAFE = (
    ("/etc/passwd", "leads out of its folder"),
    ("../x", "leads out of its folder"),
    ("a/../../x", "leads out of its folder"),
    ("a/..", "leads out of its folder"),
    ("", "has an empty part"),
    ("a//b", "has an empty part"),
    ("./a", "has an empty part"),
    ("a/", "has an empty part"),
    ("a\\..\\b", "holds '\\\\'"),
    ("C:x", "holds ':'"),
    ("a\0b", "holds '\\x00'"),
    ("a\x1b[31m", "holds '\\x1b'"),
    ("\ud800", "holds '\\ud800'"),
    ("a" * 300, "is too long"),
    ("ü" * 200, "is too long"),
    (None, "is no text"),
    (["a"], "is no text"),
)


@pytest.mark.parametrize(("name", "fault"), UNSAFE)
def test_a_name_that_means_more_than_a_place_below_is_refused_by_name(tmp_path, name, fault):
    with pytest.raises(StorageError) as error:
        below(tmp_path, name, where="s3://bucket/study")
    assert str(error.value).startswith(f"s3://bucket/study: the name {name!r:.120} {fault}. Nothing is read")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["a", "a/b.json", ".claims/x.1", "a..b", "...", "ü/€ 1+2,3=~"])
def test_a_plain_name_is_a_path_below(tmp_path, name):
    assert below(tmp_path, name) == tmp_path / name


@given(st.lists(st.sampled_from(["..", ".", "", "/", "a", "\\", "C:", "\0"]), max_size=6).map("/".join))
def test_no_name_that_is_taken_leads_out(name):
    inside = ".." not in name.split("/") and Path("/folder", name).is_relative_to("/folder")
    assert name_fault(name) or inside


def test_a_link_that_leads_out_of_the_folder_is_refused_and_one_within_is_not(tmp_path):
    folder = tmp_path / "folder"
    (folder / "real").mkdir(parents=True)
    (folder / "within").symlink_to("real")
    (folder / "out").symlink_to(tmp_path)
    (folder / "circle").symlink_to("circle")
    (tmp_path / "linked").symlink_to("folder")
    assert below(folder, "within/x") == folder / "within" / "x"
    assert below(tmp_path / "linked", "real/x") == tmp_path / "linked" / "real" / "x"
    assert below(folder, "out/x", may_link=True) == folder / "out" / "x"
    with pytest.raises(StorageError, match=r"folder: the name 'out/x' leads out of its folder by a link"):
        below(folder, "out/x")


def test_checksums_that_name_what_is_elsewhere_are_damaged(tmp_path):
    (tmp_path / CHECKSUMS).write_text('{"../../x": {"size": 5, "crc32": "0"}}')
    with pytest.raises(ValueError, match=r"checksums.json: the name '../../x' leads out of its folder"):
        read_checksums(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names there")
def test_what_is_no_ordinary_file_is_never_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "device").symlink_to("/dev/zero")
    for name in ("pipe", "folder", "device"):
        with pytest.raises(OSError, match=r"no ordinary file|Is a directory"):
            ordinary_bytes(tmp_path / name)
    (tmp_path / "file").write_bytes(b"1")
    assert ordinary_bytes(tmp_path / "file") == b"1"
