"""A file with its final name is complete and right, whatever the server does. Else an error gives advice."""

import errno
import gzip
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from fake_downloads import Behaviour, Server, drip, drop, hang, refuse, send, send_chunks
from isogloss.core.errors import DataError, InputError, StorageError
from isogloss.core.progress import Progress
from isogloss.features.fetching import downloading
from isogloss.features.fetching.downloading import Downloaded, Link, RetryPolicy, download
from says import says

BODY = bytes(range(256)) * 4000
SUM = sha256(BODY).hexdigest()
OTHER = BODY[::-1]


@pytest.fixture
def waits() -> list[float]:
    """The seconds that were waited. Nobody sleeps."""
    return []


@pytest.fixture
def get(server: Server, tmp_path: Path, waits: list[float]):
    def get(
        *behaviours: Behaviour,
        body: bytes = BODY,
        name: str = "a.zip",
        on_progress=lambda _: None,
        **known_values,
    ):
        url = server.put(name, body, *behaviours)
        retry = RetryPolicy(timeout=known_values.pop("timeout", 5.0), sleep=waits.append)
        return download(Link(url=url, **known_values), tmp_path / name, retry=retry, on_progress=on_progress)

    return get


@pytest.fixture
def get_refusal(get, tmp_path: Path):
    def get_refusal(*behaviours: Behaviour, **known_values) -> str:
        with pytest.raises(InputError) as error:
            get(*behaviours, **known_values)
        assert not (tmp_path / "a.zip").exists()
        return str(error.value)

    return get_refusal


def right(result: Downloaded, path: Path) -> None:
    assert path.read_bytes() == BODY
    assert result == Downloaded(size=len(BODY), sha256=SUM)
    assert list(path.parent.iterdir()) == [path]


def test_a_file_arrives_whole_and_alone(get, tmp_path, waits):
    right(get(), tmp_path / "a.zip")
    assert waits == []


@pytest.mark.parametrize("known_values", [{}, {"sha256": SUM}, {"size": len(BODY), "sha256": SUM}])
def test_a_broken_connection_is_gone_on_with_where_it_broke(get, server, tmp_path, known_values):
    right(get(send(cut=300_000), send(cut=500_000), send(), **known_values), tmp_path / "a.zip")
    assert server.starts == [0, 300_000, 800_000]


@pytest.mark.parametrize(
    "trouble",
    [
        drop,
        refuse(503),
        refuse(429, Retry_After="2"),
        refuse(500),
        send(cut=1000),
        send(cut=1000, ranges=False),
        send(cut=1000, etag=""),
        send(cut=1000, etag='W/"weak"'),
        send(cut=1000, length=-1),
        send_chunks(cut=True),
        send(headers={"Content-Encoding": "br"}),
    ],
)
def test_a_trouble_that_passes_leaves_the_right_file(get, tmp_path, waits, trouble):
    right(get(trouble, send()), tmp_path / "a.zip")
    assert len(waits) == 1


@pytest.mark.slow
@given(cuts=some.lists(some.integers(0, 2000), max_size=4), ranges=some.booleans())
@settings(max_examples=10)
def test_any_series_of_breaks_leaves_the_right_file(running_server, tmp_path_factory, cuts, ranges):
    body = BODY[:3000]
    url = running_server.put("b", body, *(send(cut=cut, ranges=ranges) for cut in cuts), send(ranges=ranges))
    path = tmp_path_factory.mktemp("cuts") / "b"
    download(Link(url=url), path, retry=RetryPolicy(sleep=lambda _: None))
    assert path.read_bytes() == body


def test_a_length_that_lies_upwards_is_found_out_in_the_end(get, tmp_path, waits):
    right(get(send(length=len(BODY) + 5), send(), send()), tmp_path / "a.zip")
    assert len(waits) == 2


@pytest.mark.slow
def test_waits_double_and_a_server_that_asks_for_more_gets_it(get, waits):
    get(drop, drop, refuse(429, Retry_After="30"), drop, send())
    assert waits == [1, 2, 30, 8]


def test_a_date_to_try_again_is_understood(get, waits):
    get(refuse(503, Retry_After="Wed, 21 Oct 2015 07:28:00 GMT"), send())
    assert waits == [1]


def test_a_server_that_asks_for_hours_is_left_alone_and_what_came_is_kept(get_refusal, waits, tmp_path):
    message = get_refusal(send(cut=400_000), refuse(429, Retry_After="7200"))
    assert "429" in message
    assert "asks to wait 7200 s" in message
    assert "400.0 kB" in message or "0.4 MB" in message
    assert waits == [1]
    assert (tmp_path / "a.zip.part").stat().st_size == 400_000


@pytest.mark.slow
def test_a_server_that_never_answers_is_given_up_with_advice(get_refusal, waits):
    message = get_refusal(drop, by_hand="Put it there yourself.")
    assert "given up after 6 attempts" in message
    assert message.endswith("Put it there yourself.")
    assert waits == [1, 2, 4, 8, 16]


@pytest.mark.slow
def test_an_attempt_that_brought_much_is_none_in_vain(get, tmp_path, monkeypatch):
    monkeypatch.setattr(downloading, "ENOUGH_PROGRESS", 50_000)
    right(get(*[send(cut=60_000)] * 17, send()), tmp_path / "a.zip")


def test_a_later_call_goes_on_where_an_earlier_one_stopped(get, get_refusal, server, tmp_path):
    get_refusal(send(cut=200_000), refuse(404))
    right(get(send()), tmp_path / "a.zip")
    assert server.starts[-1] == 200_000


def test_an_interrupted_download_keeps_its_part(get, server, tmp_path):
    def interrupt(progress: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        get(send(), on_progress=interrupt)
    kept_size = (tmp_path / "a.zip.part").stat().st_size
    assert kept_size
    assert not (tmp_path / "a.zip").exists()
    right(get(send()), tmp_path / "a.zip")
    assert server.starts == [0, kept_size] or kept_size == len(BODY)


def careless(handler, body):
    del handler.headers["If-Range"]
    send(etag='"new"')(handler, body)


@pytest.mark.parametrize(
    ("etag", "then", "known_values"),
    [
        ('"old"', send(etag='"new"'), {}),
        ('"old"', send(etag='"new"'), {"sha256": SUM}),
        ('"old"', careless, {}),
        ("", send(etag=""), {"sha256": SUM}),
    ],
)
def test_halves_of_two_versions_never_pass_for_a_file(server, tmp_path, waits, etag, then, known_values):
    link = Link(url=server.put("a.zip", OTHER, send(cut=100_000, etag=etag), refuse(404)), **known_values)
    with pytest.raises(DataError):
        download(link, tmp_path / "a.zip", retry=RetryPolicy(sleep=waits.append))
    server.put("a.zip", BODY, then)
    right(download(link, tmp_path / "a.zip", retry=RetryPolicy(sleep=waits.append)), tmp_path / "a.zip")


def test_a_range_from_the_wrong_byte_is_not_believed(get, server, tmp_path):
    right(get(send(cut=100_000), send(shift=7), send()), tmp_path / "a.zip")
    assert server.starts == [0, 100_000, 0]


def test_a_part_longer_than_the_file_is_begun_anew(get, tmp_path):
    (tmp_path / "a.zip.part").write_bytes(BODY + b"more")
    right(get(send(), sha256=SUM), tmp_path / "a.zip")


@pytest.mark.parametrize("note", ["", "{", "[]", "3", "[1]"])
def test_a_part_of_unknown_origin_is_begun_anew(get, server, tmp_path, note):
    (tmp_path / "a.zip.part").write_bytes(OTHER[:5000])
    (tmp_path / "a.zip.part.json").write_text(note)
    right(get(send()), tmp_path / "a.zip")
    assert server.starts == [0]


def test_a_part_that_was_whole_needs_no_more_bytes(get, server, tmp_path):
    refused_at = server.put("a.zip", BODY, refuse(404))
    (tmp_path / "a.zip.part").write_bytes(BODY)
    (tmp_path / "a.zip.part.json").write_text(f'{{"url": "{refused_at}", "validator": ""}}')
    right(get(refuse(404), size=len(BODY), sha256=SUM), tmp_path / "a.zip")
    assert server.requests == []


def test_wrong_bytes_are_deleted_and_both_sums_said(get_refusal, tmp_path):
    message = get_refusal(send(), body=OTHER, size=len(BODY), sha256=SUM)
    assert SUM in message
    assert sha256(OTHER).hexdigest() in message
    assert "deleted" in message
    assert list(tmp_path.iterdir()) == []


def test_another_size_than_published_is_refused_before_a_byte_is_kept(get_refusal, tmp_path, waits):
    message = get_refusal(
        send(headers={"Content-Type": "text/html"}), body=b"<html>Please log in", size=999, sha256=SUM
    )
    assert "(text/html)" in message
    assert list(tmp_path.iterdir()) == []
    assert waits == []


def test_more_bytes_than_published_are_cut_off(get_refusal):
    assert "1,000 bytes" in get_refusal(send_chunks(), size=1000)


def test_a_length_that_lies_downwards_is_found_by_the_checksum(get_refusal):
    assert SUM in get_refusal(send(length=500), sha256=SUM)


def test_a_file_without_any_end_to_be_seen_is_not_trusted(get_refusal):
    assert "length" in get_refusal(send(length=-1))


@pytest.mark.parametrize(
    ("behaviour", "known_values"), [(send(length=-1), {"sha256": SUM}), (send_chunks(), {})]
)
def test_a_length_that_is_not_said_is_no_trouble_where_the_end_shows(get, tmp_path, behaviour, known_values):
    right(get(behaviour, **known_values), tmp_path / "a.zip")


@pytest.mark.parametrize(
    ("status", "name"),
    [(404, "does not exist"), (410, "does not exist"), (403, "is not available"), (401, "is not available")],
)
def test_a_file_that_is_refused_is_asked_for_once(get_refusal, server, waits, status, name):
    message = get_refusal(refuse(status), by_hand="Take it from elsewhere.")
    assert f"{name}" in message
    assert message.endswith("Take it from elsewhere.")
    assert server.url("a.zip") in message
    assert (len(server.requests), waits) == (1, [])


def test_packing_nobody_asked_for_is_undone(get, tmp_path):
    packed_compress = gzip.compress(BODY)

    def behaviour(handler, body):
        send(headers={"Content-Encoding": "gzip"})(handler, packed_compress)

    right(get(behaviour, size=len(BODY), sha256=SUM), tmp_path / "a.zip")


def test_a_packed_file_labelled_as_packing_stays_packed(get, server, tmp_path):
    result = get(send(headers={"Content-Encoding": "gzip"}), name="a.tar.gz")
    assert (tmp_path / "a.tar.gz").read_bytes() == BODY
    assert result.sha256 == SUM


@pytest.mark.slow
@pytest.mark.parametrize("slow", [drip(0.02), hang])
def test_a_server_too_slow_to_end_counts_as_silent(get, tmp_path, slow):
    right(get(slow, send(), timeout=0.2), tmp_path / "a.zip")


def test_a_redirect_is_followed_with_the_range(get, server, tmp_path):
    server.put("there", BODY, send(cut=100_000), send())
    get_here = refuse(302, Location=f"http://localhost:{server.port}/there")
    right(get(get_here), tmp_path / "a.zip")
    assert [path for path, _ in server.requests] == ["a.zip", "there"] * 2
    assert server.starts[-1] == 100_000


@pytest.mark.parametrize("name", ["http://elsewhere/a", "ftp://elsewhere/a", "file:///etc/passwd"])
def test_a_redirect_to_a_less_safe_place_is_refused(name):
    answer = httpx2.Response(302, headers={"Location": name}, request=httpx2.Request("GET", "https://here/a"))
    with pytest.raises(DataError, match="refused"):
        downloading._check_redirect(answer)


def test_only_http_is_fetched(tmp_path):
    with pytest.raises(DataError, match="https"):
        download(Link(url="file:///etc/passwd"), tmp_path / "a.zip")


def test_a_full_disk_is_said_before_the_first_byte(get, monkeypatch, tmp_path):
    monkeypatch.setattr(downloading.shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    with says(StorageError, "1.0", "--to"):
        get()


def test_a_disk_that_fills_up_keeps_what_came(get, monkeypatch, tmp_path, server):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(downloading.os, "fsync", full)
        with says(StorageError, "--to"):
            get()
    right(get(), tmp_path / "a.zip")


def test_a_folder_that_cannot_be_written_is_said(server, tmp_path):
    (tmp_path / "a").write_text("a file where a folder should be")
    with pytest.raises(StorageError, match="written"):
        download(Link(url=server.put("b", BODY)), tmp_path / "a" / "b")


def test_progress_says_bytes_and_speed(get):
    messages: list[Progress] = []
    get(on_progress=messages.append)
    assert (messages[-1].done, messages[-1].total) == (len(BODY), len(BODY))
    assert "1.0 MB of 1.0 MB, " in messages[-1].remark
    assert messages[-1].remark.endswith("/s")


@pytest.mark.parametrize("behaviour", [send_chunks(), send(length=-1)])
def test_a_file_of_unknown_size_is_taken_up_to_a_bound(get, get_refusal, tmp_path, behaviour):
    refusal = get_refusal(behaviour, most=len(BODY) - 1, sha256="0" * 64)
    assert "a.zip: " in refusal and f"at most {len(BODY) - 1:,} bytes" in refusal
    assert get(behaviour, most=len(BODY), sha256=SUM) == Downloaded(size=len(BODY), sha256=SUM)


def test_a_file_without_a_published_size_has_a_bound():
    assert Link(url="https://x/y").most == 100_000_000
