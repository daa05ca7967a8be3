import gzip
import lzma
import re
from hashlib import sha256
from pathlib import Path

import pytest

from drawn import HARD
from isogloss.core.errors import DataError
from isogloss.data.files import DiskFolder
from says import says

TEXT = "eins\nzwei\ndrei\n"


def lines(folder, name="a.txt"):
    return [line for _, line in folder.find([name])[0].lines()]


@pytest.mark.parametrize(("suffix", "pack"), [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress)])
def test_file_is_found_plain_or_compressed(put_files, suffix, pack):
    folder = put_files({"a.txt" + suffix: pack(TEXT.encode())})
    assert lines(folder) == ["eins", "zwei", "drei"]
    assert folder.find(["a.txt"])[0].plain_name.endswith("/a.txt")


def test_plain_file_counts_before_its_compressed_copy(put_files):
    folder = put_files(
        {"a.txt": "plain\n", "a.txt.gz": gzip.compress(b"packed\n"), "b.txt.xz": lzma.compress(b"b\n")}
    )
    assert [file.name.rpartition("/")[2] for file in folder.find(["*.txt"])] == ["a.txt", "b.txt.xz"]


def test_first_pattern_that_matches_counts(put_files):
    folder = put_files({"old/a.txt": "old\n", "new/a.txt": "new\n"})
    assert lines(folder, "old/a.txt") == ["old"]
    assert [next(file.read()) for file in folder.find(["none/*", "new/*.txt", "old/*.txt"])] == ["new\n"]
    assert folder.find(["none/*"]) == []


@pytest.mark.parametrize("text", ["﻿eins\nzwei", "eins\r\nzwei\r\n"])
def test_byte_order_mark_and_windows_line_ends_are_no_text(put_files, text):
    assert lines(put_files({"a.txt": text})) == ["eins", "zwei"]


def test_only_newline_ends_a_line(put_files):
    assert lines(put_files({"a.txt": "a\u2028b\x0cc\u0085d\n"})) == ["a\u2028b\x0cc\u0085d"]


@pytest.mark.parametrize(("suffix", "pack"), [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress)])
def test_no_sign_of_any_script_is_changed(put_files, suffix, pack):
    text = "\n".join(HARD) + "\n" + "".join(HARD) + "\n"
    (file,) = put_files({"a.txt" + suffix: pack(text.encode())}).find(["a.txt"])
    assert "".join(file.read()).encode() == text.encode()
    assert [line for _, line in file.lines()] == [*HARD, "".join(HARD)]


def test_compressed_parts_one_after_the_other_are_one_text(put_files):
    for suffix, pack in ((".gz", gzip.compress), (".xz", lzma.compress)):
        assert lines(put_files({"a.txt" + suffix: pack(b"eins\nzw") + pack(b"ei\n")})) == ["eins", "zwei"]


def test_older_lzma_is_no_xz(put_files):
    """Its header is so short that any text may be taken for one."""
    with pytest.raises(DataError, match="is damaged"):
        lines(put_files({"a.txt.xz": lzma.compress(TEXT.encode(), format=lzma.FORMAT_ALONE)}))


def test_text_that_is_no_utf8_names_file_and_line(put_files):
    with says(DataError, "a.txt:2:"):
        lines(put_files({"a.txt": b"eins\nf\xfcnf\n"}))


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress)])
def test_truncated_file_says_fetch_again(put_files, suffix, pack):
    whole_result = pack(("eine Zeile\n" * 5 + TEXT).encode())
    for end in (len(whole_result) - 9, len(whole_result) // 2, 3):
        with pytest.raises(DataError, match=r"a\.txt\.\wz:\d+:"):
            lines(put_files({"a.txt" + suffix: whole_result[:end]}))


@pytest.mark.parametrize("suffix", [".gz", ".xz"])
def test_file_that_is_not_compressed_at_all_is_a_data_error(put_files, suffix):
    with pytest.raises(DataError, match="is damaged"):
        lines(put_files({"a.txt" + suffix: TEXT}))


def test_damaged_bytes_inside_are_a_data_error(put_files):
    whole_result = bytearray(gzip.compress(bytes(range(256)) * 40))
    whole_result[40:60] = b"\x00" * 20
    with pytest.raises(DataError, match="is damaged"):
        lines(put_files({"a.txt.gz": bytes(whole_result)}))


def test_fingerprint_is_the_hash_of_the_bytes_on_disk(put_files):
    packed_compress = gzip.compress(TEXT.encode())
    file = put_files({"a.txt.gz": packed_compress}).find(["a.txt"])[0]
    assert file.fingerprint() == sha256(packed_compress).hexdigest()


def test_missing_folder_names_its_parent_and_the_nearest(put_files, tmp_path):
    put_files({"corpora/a.txt": "", "models/b.txt": ""})
    with pytest.raises(DataError) as error:
        DiskFolder(tmp_path / "corpra")
    assert f"{tmp_path / 'corpra'}:" in str(error.value)
    assert "has: corpora, models" in str(error.value)


def test_file_in_the_place_of_a_folder_is_said_to_be_one(put_files, tmp_path):
    put_files({"a.txt": ""})
    with says(DataError, "--data"):
        DiskFolder(tmp_path / "a.txt")


def test_lines_come_before_the_file_is_read_whole(put_files):
    file = put_files({"a.txt.gz": gzip.compress(b"first\n" + b"\xff" * 200_000)}).find(["a.txt"])[0]
    assert next(file.lines()) == (1, "first")


@pytest.mark.parametrize("pattern", ["a.{laAAA" + "A" * 300, "", "/etc/passwd", "**x"])
def test_a_pattern_that_no_file_can_match_is_an_error_in_a_line(tmp_path, pattern):
    with pytest.raises(DataError, match=re.escape(f"{tmp_path}: {pattern!r:.80}: ")) as error:
        DiskFolder(tmp_path).find([pattern])
    assert len(str(error.value)) < 250 + len(str(tmp_path))


def test_a_data_folder_with_too_long_a_name_is_not_there():
    with pytest.raises(DataError, match="folder"):
        DiskFolder(Path("x" * 300))


def test_a_pattern_of_thousands_of_characters_is_refused_before_it_is_matched(tmp_path):
    with says(DataError, "3,004"):
        DiskFolder(tmp_path).find(["[" * 3_000 + ".csv"])
