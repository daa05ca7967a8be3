"""Only the named members of an archive are unpacked: all of them, completely, in the folder, or none."""

import tarfile
from hashlib import sha256
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from each import each
from fake_downloads import make_tar, make_zip, tarred_special
from isogloss.core.errors import DataError, StorageError
from isogloss.features.fetching import unpacking
from isogloss.features.fetching.releases import Release
from isogloss.features.fetching.unpacking import unpack

TEXT = Random(1).randbytes(5000)
TAKE = {"a/{language}/{file}.tsv": "corpus/{file}-{language}.tsv"}
MAKERS = {
    "x.zip": make_zip,
    "x.tar.gz": make_tar,
    "x.tgz": make_tar,
    "x.tar": lambda measurements: make_tar(measurements, packed=False),
}


@pytest.fixture(params=MAKERS)
def kind(request) -> str:
    return request.param


@pytest.fixture
def take(tmp_path: Path):
    """Unpack an archive given as bytes. The folder is otherwise empty."""

    def take(
        body: bytes, name: str = "x.zip", patterns: dict[str, str] = TAKE, languages=()
    ) -> dict[str, str]:
        (tmp_path / name).write_bytes(body)
        release = Release(corpus="c", part="p", url=f"https://x/{name}", take=tuple(patterns.items()))
        arguments = dict(enumerate(patterns))
        return unpack(
            tmp_path / name, lambda item: release.targets(item, languages), tmp_path, patterns=arguments
        )

    return take


@pytest.fixture
def get_refusal(take, tmp_path: Path):
    """Return the message, after checking that nothing was written inside the folder or outside."""

    def get_refusal(*arguments, **names) -> str:
        paths_before = {path for path in tmp_path.parent.rglob("*") if path.is_file()}
        with pytest.raises(DataError) as error:
            take(*arguments, **names)
        left = {path for path in tmp_path.parent.rglob("*") if path.is_file()} - paths_before
        assert {path.name for path in left} <= set(MAKERS)
        return str(error.value)

    return get_refusal


def test_named_members_go_to_their_places_and_no_others(take, kind, tmp_path):
    members = [
        ("a/sw/dev.tsv", TEXT),
        ("a/README", b"no"),
        ("b/a/sw/dev.tsv", b"no"),
        ("a/sw/x/dev.tsv", b"no"),
    ]
    result = take(MAKERS[kind](members), kind)
    assert result == {"corpus/dev-sw.tsv": sha256(TEXT).hexdigest()}
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")} == {
        kind,
        "corpus",
        "corpus/dev-sw.tsv",
    }
    assert (tmp_path / "corpus/dev-sw.tsv").read_bytes() == TEXT


def test_members_of_other_languages_stay_inside(take):
    body = make_zip([("a/sw/dev.tsv", TEXT), ("a/de/dev.tsv", TEXT), ("a/en/dev.tsv", TEXT)])
    assert set(take(body, languages=("sw", "en"))) == {"corpus/dev-sw.tsv", "corpus/dev-en.tsv"}


def test_a_hole_that_comes_twice_is_the_same_text_twice(take):
    patterns = {"{split}/{split}-{language}.json": "{split}-{language}.json"}
    body = make_zip([("dev/dev-sw.json", TEXT), ("dev/test-sw.json", TEXT), ("toast/toast-sw.json", TEXT)])
    assert set(take(body, patterns=patterns)) == {"dev-sw.json"}


@pytest.mark.parametrize("start", ["", "./"])
def test_members_of_archives_in_an_archive_are_found(take, start):
    inner = {
        language: make_tar([(f"{start}train", language.encode() + TEXT), ("extra", b"no")])
        for language in ("sw", "de")
    }
    body = make_tar([(f"{start}{language}.tar.gz", item) for language, item in inner.items()], packed=False)
    result = take(body, "x.tar", {"{language}.tar.gz>{split}": "wikiann/{language}/{split}"})
    assert result == {
        f"wikiann/{language}/train": sha256(language.encode() + TEXT).hexdigest() for language in ("sw", "de")
    }


@pytest.mark.parametrize(
    "name", ["a/sw/...tsv", "a/sw/\\..\\..\\dev.tsv", "a/sw/c:dev.tsv", "a/sw/nul\0.tsv"]
)
def test_a_name_that_would_leave_the_folder_is_refused_or_harmless(take, tmp_path, name):
    try:
        taken_value = take(make_tar([(name, TEXT)]), "x.tar.gz")
    except DataError as error:
        assert "x.tar.gz" in str(error)
    else:
        assert all(
            (tmp_path / path).resolve().is_relative_to(tmp_path.resolve()) for path in each(taken_value)
        )


@pytest.mark.slow
@pytest.mark.parametrize("member", ["../escaped", "/tmp/escaped", "x/../../escaped"])
def test_names_that_leave_the_folder_are_never_taken(get_refusal, kind, member):
    message = get_refusal(
        MAKERS[kind]([(member, TEXT)]), kind, {"a/{file}": "corpus/{file}", "{file}": "{file}"}
    )
    assert "member" in message


@pytest.mark.slow
def test_a_place_out_of_the_folder_is_refused(get_refusal, kind):
    message = get_refusal(MAKERS[kind]([("a/..", TEXT)]), kind, {"a/{file}": "corpus/{file}"})
    assert "'corpus/..'" in message
    assert "copy" in message


@pytest.mark.slow
@pytest.mark.parametrize(
    "match_kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE]
)
def test_what_is_no_plain_file_is_refused(get_refusal, match_kind):
    message = get_refusal(tarred_special("a/sw/dev.tsv", match_kind, "/etc/passwd"), "x.tar.gz")
    assert "'a/sw/dev.tsv' is a " in message
    assert "plain" in message


@pytest.mark.slow
def test_a_link_in_a_zip_is_refused(get_refusal):
    assert "is a link" in get_refusal(make_zip([("a/sw/dev.tsv", b"/etc/passwd")], mode=0o120777))


@pytest.mark.slow
def test_a_member_that_comes_twice_is_refused(get_refusal, kind):
    with pytest.warns(UserWarning) if kind == "x.zip" else pytest.MonkeyPatch.context():
        body = MAKERS[kind]([("a/sw/dev.tsv", TEXT), ("a/sw/dev.tsv", b"other")])
    assert "occurs" in get_refusal(body, kind)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a/sw/dev.tsv", "not/asked/for"])
@pytest.mark.parametrize("bomb", ["x.zip", "x.tar.gz"])
def test_what_swells_beyond_reason_is_refused(get_refusal, take, bomb, name):
    body = MAKERS[bomb]([(name, bytes(40_000_000)), ("a/de/dev.tsv", b"x")])
    if bomb == "x.zip" and name == "not/asked/for":
        assert set(take(body)) == {"corpus/dev-de.tsv"}  # A zip need not be unpacked to pass a member by.
        return
    assert "100 times" in get_refusal(body, bomb)


@pytest.mark.slow
def test_a_zip_that_lies_about_its_size_is_refused(get_refusal):
    body = make_zip([("a/sw/dev.tsv", bytes(3_000_000))])
    size = (3_000_000).to_bytes(4, "little")
    assert body.count(size) >= 1
    assert "damaged" in get_refusal(body.replace(size, (10).to_bytes(4, "little")))


@pytest.mark.slow
def test_an_archive_without_the_members_is_refused_by_name(get_refusal, kind):
    message = get_refusal(MAKERS[kind]([("b/sw/dev.tsv", TEXT)]), kind)
    assert f"{kind}:" in message


@pytest.mark.slow
def test_a_damaged_archive_leaves_nothing(get_refusal, kind):
    body = MAKERS[kind]([("a/sw/dev.tsv", TEXT), ("a/de/dev.tsv", TEXT)])
    message = get_refusal(body[: len(body) // 2], kind)
    assert "damaged" in message
    assert "fetch again" in message


@pytest.mark.slow
@pytest.mark.parametrize("junk", [b"", b"<html>", bytes(2000)])
def test_what_is_no_archive_is_refused(get_refusal, kind, junk):
    assert "fetch again" in get_refusal(junk, kind)


@pytest.mark.slow
@pytest.mark.parametrize("place, value", [(42, 255), (45, 255), (28, 0), (9, 8)])
def test_a_zip_whose_directory_is_damaged_is_an_error(get_refusal, place, value):
    """Damage the member's offset (before the file, after it), its name's length, and the flag for UTF-8."""
    body = bytearray(make_zip([(chr(233) + "/sw/dev.tsv", TEXT[:400])]).replace("é".encode(), b"\xff\xff"))
    body[body.index(b"PK\1\2") + place] = value
    assert "fetch again" in get_refusal(bytes(body))


@pytest.mark.slow
@given(data=some.data())
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_change_to_an_archive_is_an_error_or_harmless(take, tmp_path, data):
    kind = data.draw(some.sampled_from(sorted(MAKERS)))
    body = bytearray(MAKERS[kind]([("a/sw/dev.tsv", TEXT[:400]), ("a/de/dev.tsv", b"text")]))
    for _ in range(data.draw(some.integers(1, 4))):
        body[data.draw(some.integers(0, len(body) - 1))] = data.draw(some.integers(0, 255))
    check_error_or_harmless(take, tmp_path, bytes(body), kind)


def check_error_or_harmless(take, tmp_path, body, kind):
    for path in tmp_path.glob("corpus/*"):
        path.unlink()
    try:
        result = take(body, kind)
    except DataError:
        result = {}
    texts = {f"corpus/{path.name}" for path in tmp_path.glob("corpus/*")}
    assert texts == set(result)


def test_a_file_that_is_there_already_is_never_overwritten(take, get_refusal, tmp_path):
    body = make_zip([("a/sw/dev.tsv", TEXT), ("a/de/dev.tsv", TEXT)])
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus/dev-sw.tsv").write_bytes(b"mine")
    message = get_refusal(body)
    assert "is not overwritten" in message
    assert sha256(b"mine").hexdigest() in message
    (tmp_path / "corpus/dev-sw.tsv").write_bytes(TEXT)
    assert len(take(body)) == 2


def test_a_disk_that_fills_up_leaves_nothing_half(take, tmp_path, monkeypatch):
    def full(*_: object):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(unpacking.os, "fsync", full)
    with pytest.raises(StorageError, match="left"):
        take(make_zip([("a/sw/dev.tsv", TEXT)]))
    assert list(tmp_path.glob("corpus/*")) == []


@pytest.mark.slow
def test_an_encrypted_zip_is_refused(get_refusal):
    body = bytearray(make_zip([("a/sw/dev.tsv", TEXT)]))
    for sign, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        body[body.index(sign) + place] |= 1
    assert "is encrypted" in get_refusal(bytes(body))


def sparse(size: int) -> bytes:
    """Give a tar archive whose member has half a kilobyte, at the end of ``size`` bytes of nothing."""

    def number(value: int, width: int) -> bytes:
        return b"\x80" + value.to_bytes(width - 1, "big")

    header = bytearray(tarfile.TarInfo("a/sw/dev.tsv").tobuf(format=tarfile.GNU_FORMAT))
    header[124:136] = b"%011o\0" % 512
    header[156:157] = tarfile.GNUTYPE_SPARSE
    header[386:410] = number(size - 512, 12) + number(512, 12)
    header[483:495] = number(size, 12)
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + b"x" * 512 + b"\0" * (10240 - 1024)


@pytest.mark.parametrize("size", [1 << 20, 3 << 30, 1 << 50])
def test_a_sparse_member_is_refused(get_refusal, size):
    assert "x.tar:" in get_refusal(sparse(size), "x.tar")
