"""Files from others in a folder never lead outside it."""

import json

import pytest

from isogloss.core.atomic_files import check_unicode
from isogloss.core.checksums import CHECKSUMS, from_text, read_checksums
from isogloss.core.errors import StorageError, escape_surrogates
from isogloss.core.processes import has_ended, host
from isogloss.core.untrusted import check_outside_runs, is_safe, join_safely, parse_json
from isogloss.encoders.folders import existing_folder
from isogloss.features.publishing.exporting import check_free
from isogloss.store.store import Store


@pytest.mark.parametrize("name", [None, 5, ["a"], {}])
def test_a_name_that_is_no_text_is_refused(tmp_path, name):
    assert not is_safe(name)
    with pytest.raises(StorageError, match="invalid"):
        join_safely(tmp_path, name)


def test_checksums_that_name_what_is_elsewhere_are_refused(tmp_path):
    (tmp_path / CHECKSUMS).write_text('{"../../x": {"size": 5, "crc32": "0"}}')
    with pytest.raises(StorageError, match=r"checksums.json: .*'../../x'"):
        read_checksums(tmp_path)


@pytest.mark.parametrize(
    ("sums", "why"),
    [
        ({"a": {"size": -1, "crc32": ""}}, "-1"),
        ({"a": {"size": 1.5, "crc32": ""}}, "1.5"),
        ({"a": {"size": 10**30, "crc32": ""}}, "1000"),
        ({"a": {"size": True, "crc32": ""}}, "True"),
        ({"a": {"size": 1, "crc32": 5}}, "5"),
        ({"a": {"size": 1, "crc32": "0"}, "a/b": {"size": 1, "crc32": "0"}}, "'a'"),
        ({"a": {"size": 1}}, "crc32"),
        ({"a": []}, "size"),
        ([1], "items"),
    ],
)
def test_checksums_that_cannot_be_are_damage(sums, why):
    with pytest.raises(ValueError, match=why):
        from_text(json.dumps(sums))


@pytest.mark.parametrize("inside", ["record.json", ".claims", "0123456789ab/record.json", "runs/.claims"])
def test_nothing_else_is_written_where_runs_are(tmp_path, inside):
    folder = tmp_path / "runs"
    (folder / inside).parent.mkdir(parents=True)
    (folder / inside).touch()
    for place in (folder, (folder / inside).parent, (folder / inside).parent / "new"):
        with pytest.raises(StorageError, match=f"{place}:"):
            check_outside_runs(place)
    check_outside_runs(tmp_path / "elsewhere")


@pytest.mark.parametrize("text", ["9" * 500, "-" + "9" * 5000, '{"a": [' + "9" * 100_000 + "]}"])
def test_numbers_of_thousands_of_digits_are_refused(text):
    with pytest.raises(ValueError, match=r"[0-9,]+ digits"):
        parse_json(text)


@pytest.mark.parametrize("name", ["\u00b2", "\u0661", "9" * 5000, "9" * 30, "0", "-1", "", "1.0", "1 "])
def test_the_name_of_a_process_with_an_odd_number_is_of_none_that_ended(name):
    assert not has_ended(f"{host()}-{name}-1")
    assert not has_ended(f"{host()}-{name}")


def test_bytes_that_are_not_utf8_are_shown_and_paths_with_them_refused_for_weights(tmp_path):
    odd = "odd\udcff"
    assert escape_surrogates(f"{odd} ä") == "odd\\xff ä"
    assert escape_surrogates("ä") == "ä"
    escape_surrogates(odd).encode()
    check_unicode(tmp_path / "ä")
    for act in (
        check_unicode,
        lambda folder: Store(folder).write_plan([], {}),
        existing_folder,
        lambda folder: check_free(folder, force=False),
    ):
        with pytest.raises(StorageError, match=r"odd\\xff: .*UTF-8"):
            act(tmp_path / odd)
    Store(tmp_path / "runs").write_plan([], {"recipe": odd, "command": f"run {odd}"})
    assert "odd" in (tmp_path / "runs" / "plan.json").read_text(encoding="utf-8")
    assert Store(tmp_path / "runs").plan()
