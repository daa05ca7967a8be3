import errno
import json
import os
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss.core.checksums import CHECKSUMS
from isogloss.core.errors import StorageError
from isogloss.core.processes import host
from isogloss.core.records import RECORD, Record, read_record, write_record, write_text

VALUE = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
ROW = st.dictionaries(st.text(), VALUE, max_size=5)


def a_record(folder, **changes):
    return Record(**{"id": folder.name, "kind": "measure", "title": "é", "run": {"x": [1]}, **changes})


@given(rows=st.lists(ROW, max_size=4), warnings=st.lists(st.text()), needs=st.lists(st.text()))
def test_a_record_is_read_as_it_was_written(tmp_path_factory, rows, warnings, needs):
    folder = tmp_path_factory.mktemp("abc")
    record = a_record(folder, rows=rows, warnings=tuple(warnings), needs=tuple(needs))
    write_record(folder, record)
    assert read_record(folder) == record


def test_equal_records_are_equal_bytes(tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()
        write_record(tmp_path / name, a_record(tmp_path, rows=[{"b": 1, "a": 0.1}]))
    assert (tmp_path / "a" / RECORD).read_bytes() == (tmp_path / "b" / RECORD).read_bytes()


def test_a_record_makes_its_folder_and_leaves_its_checksum_and_nothing_else(tmp_path):
    write_record(tmp_path / "deep" / "x", a_record(tmp_path / "x"))
    assert sorted(path.name for path in (tmp_path / "deep" / "x").iterdir()) == [CHECKSUMS, RECORD]


def test_a_digit_that_changed_in_a_record_is_damage(tmp_path):
    write_record(tmp_path, a_record(tmp_path, rows=[{"score": 0.125}]))
    path = tmp_path / RECORD
    path.write_bytes(path.read_bytes().replace(b"0.125", b"0.175"))
    with pytest.raises(StorageError, match=r"damaged \(checksum \w{8}, not \w{8} as it was written"):
        read_record(tmp_path)
    (tmp_path / CHECKSUMS).unlink()  # As in folders of earlier versions.
    assert read_record(tmp_path).rows == [{"score": 0.175}]


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"record.json": 3}', '{"record.json": {"size": "x"}}'])
def test_damaged_checksums_are_damage(tmp_path, text):
    write_record(tmp_path, a_record(tmp_path))
    (tmp_path / CHECKSUMS).write_text(text)
    with pytest.raises(StorageError, match=f"damaged .ValueError: {CHECKSUMS} cannot be read"):
        read_record(tmp_path)


def test_a_record_is_strict_json(tmp_path):
    """nan and infinity are no JSON: what reads records besides Python would stumble over them."""
    rows = [{"std": float("nan"), "loss": float("inf"), "score": 0.5}]
    write_record(tmp_path, a_record(tmp_path, rows=rows))

    def refuse(constant):
        raise AssertionError(constant)

    body = json.loads((tmp_path / RECORD).read_text(encoding="utf-8"), parse_constant=refuse)
    assert body["rows"] == [{"std": None, "loss": None, "score": 0.5}]


WHOLE = {"id": "x", "kind": "k", "title": "t", "run": {}, "needs": [], "rows": [], "warnings": []}


def without(name):
    return {key: value for key, value in WHOLE.items() if key != name}


DAMAGED = [
    "",
    "{",
    "null",
    "[]",
    "3",
    "{}",
    "[" * 100_000,
    json.dumps(WHOLE)[:-1],
    *(json.dumps(without(name)) for name in WHOLE),
    *(json.dumps({**WHOLE, name: None}) for name in WHOLE),
    *(json.dumps({**WHOLE, name: 3}) for name in WHOLE),
    json.dumps({**WHOLE, "more": 1}),
    json.dumps({**WHOLE, "id": "y"}),
    json.dumps({**WHOLE, "rows": [3]}),
    json.dumps({**WHOLE, "rows": [{"a": [1]}]}),
    json.dumps({**WHOLE, "needs": [3]}),
    json.dumps({**WHOLE, "warnings": "text"}),
]


@pytest.mark.parametrize("text", DAMAGED)
def test_a_damaged_record_is_an_error_that_names_the_file(tmp_path, text):
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / RECORD).write_text(text)
    with pytest.raises(StorageError) as caught:
        read_record(tmp_path / "x")
    assert str(tmp_path / "x" / RECORD) in str(caught.value)
    assert "damaged" in str(caught.value)
    assert "Delete the file and run again; only this run is repeated." in str(caught.value)


def test_the_undamaged_one_is_read(tmp_path):
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / RECORD).write_text(json.dumps(WHOLE))
    assert read_record(tmp_path / "x").kind == "k"


def test_bytes_that_are_no_text_are_damage(tmp_path):
    (tmp_path / RECORD).write_bytes(b"\xff\xfe{")
    with pytest.raises(StorageError, match="damaged"):
        read_record(tmp_path)


def test_a_record_that_is_not_there_is_an_error_that_names_the_file(tmp_path):
    with pytest.raises(StorageError, match=re.escape(str(tmp_path / RECORD))):
        read_record(tmp_path)


def test_what_a_process_left_that_was_killed_while_it_wrote_is_removed(tmp_path):
    ended = subprocess.Popen(["true"])
    ended.wait()
    (tmp_path / f".file.{host()}-{ended.pid}-1.tmp").touch()
    (tmp_path / ".file.another-7-7.tmp").touch()
    write_text(tmp_path / "file", "text")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".file.another-7-7.tmp", "file"]


def full(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("failing", ["os.fsync", "pathlib.Path.replace", "pathlib.Path.open"])
def test_a_full_disk_is_a_storage_error_and_leaves_nothing(tmp_path, monkeypatch, failing):
    monkeypatch.setattr(failing, full)
    with pytest.raises(StorageError) as caught:
        write_text(tmp_path / "x" / "file.json", "text")
    assert str(tmp_path / "x" / "file.json") in str(caught.value)
    assert "No space left on device" in str(caught.value)
    assert "run the same command again" in str(caught.value)
    assert list((tmp_path / "x").iterdir()) == []


def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch):
    write_text(tmp_path / "file", "old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError):
        write_text(tmp_path / "file", "new")
    assert (tmp_path / "file").read_text() == "old"


def test_a_file_in_the_place_of_the_folder_is_a_storage_error(tmp_path):
    (tmp_path / "x").write_text("")
    with pytest.raises(StorageError, match="cannot write"):
        write_text(tmp_path / "x" / "file", "text")


@pytest.mark.parametrize(("kind", "advice"), [("ENOSPC", "Free some space or"), ("EACCES", "Mend that or")])
def test_more_space_is_advised_where_it_would_help(tmp_path, monkeypatch, kind, advice):
    def refused(*_, **__):
        raise OSError(getattr(errno, kind), "no")

    monkeypatch.setattr(os, "fsync", refused)
    with pytest.raises(StorageError, match=f"{advice} choose another place for it"):
        write_text(tmp_path / "file", "new")


def test_text_that_cannot_be_encoded_leaves_nothing(tmp_path):
    with pytest.raises(UnicodeEncodeError):
        write_text(tmp_path / "file", "\ud800")
    assert list(tmp_path.iterdir()) == []


def test_records_need_no_torch():
    code = "import sys, isogloss.core.records, isogloss.core.run_parts; sys.exit('torch' in sys.modules)"
    place = os.environ | {"PYTHONPATH": ":".join(sys.path)}
    assert subprocess.run([sys.executable, "-c", code], env=place, check=False).returncode == 0
