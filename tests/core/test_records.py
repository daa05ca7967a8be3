import errno
import json
import math
import os
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss.core.atomic_files import sweep_folder, write_text
from isogloss.core.checksums import CHECKSUMS
from isogloss.core.errors import StorageError
from isogloss.core.identity import identity
from isogloss.core.processes import Interrupted, host, stopping_if_lost
from isogloss.core.records import MADE, RECORD, Made, Record, read_made, read_record, run_files, write_record
from isogloss.core.rows import LARGEST_INTEGER
from isogloss.core.untrusted import MAX_JSON_DEPTH, parse_json
from says import check_wording

TEXT = st.text(st.characters(codec="utf-8"))
WHOLE_NUMBER = st.integers(-LARGEST_INTEGER, LARGEST_INTEGER)
VALUE = st.none() | st.booleans() | WHOLE_NUMBER | st.floats(allow_nan=False, allow_infinity=False) | TEXT
ROW = st.dictionaries(TEXT, VALUE, max_size=5)
RUN = {"kind": "measure", "x": [1]}


@pytest.fixture
def folder(tmp_path):
    """The folder of a run, named by its id."""
    return tmp_path / identity(RUN)


def a_record(**changes):
    return Record(**{"id": identity(RUN), "kind": "measure", "title": "é", "run": RUN, **changes})


@given(rows=st.lists(ROW, max_size=4), warnings=st.lists(TEXT), needs=st.lists(TEXT))
def test_a_record_is_read_as_it_was_written(tmp_path_factory, rows, warnings, needs):
    folder = tmp_path_factory.mktemp("abc") / identity(RUN)
    record = a_record(rows=rows, warnings=tuple(warnings), needs=tuple(needs))
    write_record(folder, record)
    assert read_record(folder) == record


def test_equal_records_are_equal_bytes(tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()
        write_record(tmp_path / name, a_record(rows=[{"b": 1, "a": 0.1}]))
    assert (tmp_path / "a" / RECORD).read_bytes() == (tmp_path / "b" / RECORD).read_bytes()


def test_a_record_makes_its_folder_and_leaves_its_checksum_and_nothing_else(tmp_path):
    write_record(tmp_path / "deep" / "x", a_record())
    assert sorted(path.name for path in (tmp_path / "deep" / "x").iterdir()) == [CHECKSUMS, RECORD]


def test_a_digit_that_changed_in_a_record_is_damage(folder):
    write_record(folder, a_record(rows=[{"score": 0.125}]))
    path = folder / RECORD
    path.write_bytes(path.read_bytes().replace(b"0.125", b"0.175"))
    with pytest.raises(StorageError, match=r"\b[0-9a-f]{8}\b.*\b[0-9a-f]{8}\b") as error:
        read_record(folder)
    message = re.sub(r"\b[0-9a-f]{8}\b", "CRC", str(error.value))
    check_wording(message.replace(folder.name, "RUN"), f"RUN/{RECORD}:", "CRC")
    (folder / CHECKSUMS).unlink()  # As in folders of earlier versions.
    assert read_record(folder).rows == [{"score": 0.175}]


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"record.json": 3}', '{"record.json": {"size": "x"}}'])
def test_damaged_checksums_are_damage(folder, text):
    write_record(folder, a_record())
    (folder / CHECKSUMS).write_text(text)
    with pytest.raises(StorageError, match=f"damaged .ValueError: .*{CHECKSUMS}"):
        read_record(folder)


def test_a_record_is_strict_json(tmp_path):
    """JSON has neither nan nor infinity, so other readers than Python would fail on them."""
    rows = [{"std": float("nan"), "loss": float("inf"), "score": 0.5}]
    write_record(tmp_path, a_record(rows=rows))

    def refuse(constant):
        raise AssertionError(constant)

    body = json.loads((tmp_path / RECORD).read_text(encoding="utf-8"), parse_constant=refuse)
    assert body["rows"] == [{"std": None, "loss": None, "score": 0.5}]


WHOLE = {
    "id": identity(RUN),
    "kind": "measure",
    "title": "t",
    "run": RUN,
    "needs": [],
    "rows": [],
    "warnings": [],
}


def write_whole(run):
    """Give a whole record of a run, with its id."""
    return json.dumps({**WHOLE, "run": run, "id": identity(run)})


def drop_field(name):
    return {key: value for key, value in WHOLE.items() if key != name}


DEEP = []
for _ in range(MAX_JSON_DEPTH):
    DEEP = [DEEP]

DAMAGED = [
    "",
    "{",
    "null",
    "[]",
    "3",
    "{}",
    "[" * 100_000,
    json.dumps(WHOLE)[:-1],
    *(json.dumps(drop_field(name)) for name in WHOLE),
    *(json.dumps({**WHOLE, name: None}) for name in WHOLE),
    *(json.dumps({**WHOLE, name: 3}) for name in WHOLE),
    json.dumps({**WHOLE, "more": 1}),
    json.dumps({**WHOLE, "id": "y"}),
    json.dumps({**WHOLE, "rows": [3]}),
    json.dumps({**WHOLE, "rows": [{"a": [1]}]}),
    json.dumps({**WHOLE, "needs": [3]}),
    json.dumps({**WHOLE, "warnings": "text"}),
    json.dumps({**WHOLE, "run": {**RUN, "x": [2]}}),
    json.dumps({**WHOLE, "kind": "align"}),
    write_whole({"kind": 3}),
    write_whole({}),
    json.dumps({**WHOLE, "title": "\ud800"}),
    json.dumps({**WHOLE, "rows": [{"a": "\udfff"}]}),
    json.dumps({**WHOLE, "rows": [{"a": LARGEST_INTEGER + 1}]}),
    json.dumps({**WHOLE, "rows": [{"a": math.nan}]}),
    json.dumps(WHOLE).replace('"rows": []', '"rows": [{"a": 1e999}]'),
    json.dumps(WHOLE).replace('"rows": []', f'"rows": [{{"a": {"9" * 5000}}}]'),
    write_whole({**RUN, "x": DEEP}),
]


@pytest.mark.parametrize("text", DAMAGED)
def test_a_damaged_record_is_an_error_that_names_the_file(tmp_path, text):
    names = re.search(r'"id": "(\w{12})"', text)
    folder = tmp_path / (names[1] if names else WHOLE["id"])
    folder.mkdir()
    (folder / RECORD).write_text(text)
    with pytest.raises(StorageError) as error:
        read_record(folder)
    assert str(error.value).startswith(f"{folder / RECORD}:")
    assert len(str(error.value)) < 400
    assert "repeated" in str(error.value)


def test_the_undamaged_one_is_read(folder):
    folder.mkdir()
    (folder / RECORD).write_text(json.dumps(WHOLE))
    assert read_record(folder).kind == "measure"


@pytest.mark.parametrize(
    "content", [b"\xff\xfe{", b'{"title": "\xed\xa0\x80"}', json.dumps(WHOLE).encode("utf-16")]
)
def test_bytes_that_are_no_text_are_damage(folder, content):
    folder.mkdir()
    (folder / RECORD).write_bytes(content)
    with pytest.raises(StorageError, match=r"damaged \(UnicodeDecodeError"):
        read_record(folder)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero")])
@pytest.mark.parametrize("name", [RECORD, CHECKSUMS])
def test_what_is_no_file_in_the_place_of_one_is_not_waited_for(folder, make, name):
    write_record(folder, a_record())
    (folder / name).unlink()
    make(folder / name)
    with pytest.raises(StorageError, match=rf"{RECORD}: .*(regular|symbolic)"):
        read_record(folder)


@pytest.mark.parametrize("content", ["", "[]", "[" * 9999, '{"versions": [3]}', '{"seconds": "x"}'])
def test_damaged_circumstances_are_not_known(tmp_path, content):
    (tmp_path / MADE).write_text(content)
    assert read_made(tmp_path) == Made()


def test_a_record_that_is_not_there_is_an_error_that_names_the_file(tmp_path):
    with pytest.raises(StorageError, match=re.escape(str(tmp_path / RECORD))):
        read_record(tmp_path)


def test_what_a_process_left_that_was_killed_while_it_wrote_is_removed(tmp_path):
    process = subprocess.Popen(["true"])
    process.wait()
    (tmp_path / f".file.{host()}-{process.pid}-1.tmp").touch()
    (tmp_path / ".file.another-7-7.tmp").touch()
    write_text(tmp_path, "file", "text")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".file.another-7-7.tmp", "file"]


def test_who_lost_a_run_sweeps_nothing_of_who_makes_it_elsewhere(tmp_path):
    def check():
        raise Interrupted

    (tmp_path / ".file.another-7-7.tmp").touch()
    with pytest.raises(Interrupted), stopping_if_lost(check):
        sweep_folder(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".file.another-7-7.tmp"]
    sweep_folder(tmp_path)
    assert list(tmp_path.iterdir()) == []


def full(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")


OPEN = os.open


def full_for_new_files(path, flags, *args, **options):
    return full() if flags & os.O_CREAT else OPEN(path, flags, *args, **options)


@pytest.mark.parametrize(
    ("failing", "fails"), [("os.fsync", full), ("os.replace", full), ("os.open", full_for_new_files)]
)
def test_a_full_disk_is_a_storage_error_and_leaves_nothing(tmp_path, monkeypatch, failing, fails):
    monkeypatch.setattr(failing, fails)
    with pytest.raises(StorageError) as error:
        write_text(tmp_path / "x", "file.json", "text")
    assert str(tmp_path / "x" / "file.json") in str(error.value)
    assert "No space left on device" in str(error.value)
    assert "command" in str(error.value)
    assert list((tmp_path / "x").iterdir()) == []


def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch):
    write_text(tmp_path, "file", "old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError):
        write_text(tmp_path, "file", "new")
    assert (tmp_path / "file").read_text() == "old"


def test_a_file_in_the_place_of_the_folder_is_a_storage_error(tmp_path):
    (tmp_path / "x").write_text("")
    with pytest.raises(StorageError, match="write"):
        write_text(tmp_path / "x", "file", "text")


@pytest.mark.parametrize(
    ("kind", "advice"),
    [
        ("ENOSPC", "space"),
        ("EROFS", "Fix"),
        ("EACCES", "right"),
    ],
)
def test_more_space_is_advised_where_it_would_help(tmp_path, monkeypatch, kind, advice):
    def refuse_access(*_, **__):
        raise OSError(getattr(errno, kind), "no")

    monkeypatch.setattr(os, "fsync", refuse_access)
    with pytest.raises(StorageError, match=rf"\(no\)\. .*\b{advice}\b"):
        write_text(tmp_path, "file", "new")


def test_text_that_cannot_be_encoded_leaves_nothing(tmp_path):
    with pytest.raises(UnicodeEncodeError):
        write_text(tmp_path, "file", "\ud800")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_records_need_no_torch():
    program = "import sys, isogloss.core.records, isogloss.core.run_parts; sys.exit('torch' in sys.modules)"
    place = os.environ | {"PYTHONPATH": ":".join(sys.path)}
    assert subprocess.run([sys.executable, "-c", program], env=place, check=False).returncode == 0


@pytest.mark.parametrize("brackets", [("[", "]"), ('{"x": ', "}")])
def test_json_is_read_to_its_depth_and_no_deeper(brackets):
    first_bracket, last_bracket = brackets
    texts = [
        first_bracket * depth + "[]" + last_bracket * depth for depth in (MAX_JSON_DEPTH - 1, MAX_JSON_DEPTH)
    ]
    assert json.dumps(parse_json(texts[0])) == texts[0]
    with pytest.raises(ValueError, match=f"nested.*{MAX_JSON_DEPTH}"):
        parse_json(texts[1])
    assert parse_json(f"[{'[], ' * 500}[]]") == [[]] * 501


def test_files_of_runs_are_those_in_the_folders_below(tmp_path):
    for name in ("a/record.json", "a/other.json", ".b/failed.json", "record.json", "a/deeper/record.json"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    files = run_files(tmp_path, "record.json", "failed.json")
    assert sorted(path.relative_to(tmp_path).as_posix() for path in files) == [
        ".b/failed.json",
        "a/record.json",
    ]
    assert not list(run_files(tmp_path / "none", "record.json"))
