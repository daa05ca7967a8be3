"""Files below a URL have one creator, arrive whole or not at all, and show the progress of a run."""

import json
import os
import pickle
import sys
import time
from pathlib import Path

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import isogloss
from isogloss.core.checksums import Checksum
from isogloss.core.errors import ConfigError, StorageError
from isogloss.core.identity import content, identity
from isogloss.core.processes import Interrupted
from isogloss.core.records import MADE, RECORD, Record
from isogloss.features.buckets import mirrored_store as module
from isogloss.features.buckets.mirrored_store import CHECKPOINTS, FILES, LINES, MirroredStore, RemoteBoard
from isogloss.features.buckets.remote import Remote
from isogloss.runs.pretrained import Pretrained
from isogloss.store import local_folder, local_model, store_at
from isogloss.store.leases import LEASES, Lease, Leases
from isogloss.store.store import WORK, Store
from tiny import PAIRS, tiny

RUN = Pretrained(source="shipped", data="0")
KEY = identity(RUN)
FINISHED = Record(id=KEY, kind=RUN.name, title="t", run=content(RUN), rows=[])


@pytest.fixture
def remote(tmp_path):
    fsspec.filesystem("memory").store.clear()
    return Remote("memory://place/study", tmp_path / "here", patience=0)


@pytest.fixture
def store(remote):
    return MirroredStore(remote.root, remote)


def elsewhere(store: Store, tmp_path: Path) -> Store:
    """The same store, seen from a second machine."""
    root = tmp_path / "there"
    return MirroredStore(root, Remote(store.remote.url, root, patience=0))


class Faulty(MemoryFileSystem):
    """A file system that ignores that a file is to be created, cuts what it gives, or breaks off."""

    protocol = ("abfss",)
    overwrites, cuts, fails, away = False, 0, "", 0

    def pipe_file(self, path, value, mode="overwrite", **kwargs):
        self.answer()
        return super().pipe_file(path, value, mode="overwrite" if self.overwrites else mode, **kwargs)

    def put_file(self, lpath, rpath, **kwargs):
        if self.fails and rpath.endswith(self.fails):
            raise ConnectionResetError("the connection broke")
        return super().put_file(lpath, rpath, **kwargs)

    def get_file(self, rpath, lpath, **kwargs):
        super().get_file(rpath, lpath, **kwargs)
        if type(self).cuts:
            type(self).cuts -= 1
            os.truncate(lpath, 3)

    def answer(self):
        if type(self).away:
            type(self).away -= 1
            raise ConnectionError("nobody answers")


@pytest.fixture
def faulty(tmp_path, monkeypatch):
    """A store on such a file system, whose faults are set on ``Faulty``."""
    fsspec.register_implementation("abfss", Faulty, clobber=True)
    fsspec.filesystem("memory").store.clear()
    for name in ("overwrites", "cuts", "fails", "away"):
        monkeypatch.setattr(Faulty, name, getattr(Faulty, name))
    root = tmp_path / "here"
    return MirroredStore(root, Remote("abfss://place/study", root, patience=0))


def finish_run(store: Store, seconds: int = 1) -> None:
    """Make the run: a model and a record."""
    store.start(RUN)
    store.model(RUN).mkdir()
    (store.model(RUN) / "weights").write_text("a whole model")
    store.finish(FINISHED, {"seconds": seconds})


def test_a_file_is_created_once_and_whoever_wrote_it_is_told_so_again(remote):
    assert remote.create("a", b"mine")
    assert not remote.create("a", b"yours")
    assert remote.create("a", b"mine")  # The first answer may have been lost.
    assert remote.read("a") == b"mine"


def test_a_place_is_checked_and_nothing_is_left_there(remote):
    remote.check()
    assert remote.listing() == {}


def test_a_file_system_that_cannot_create_for_one_alone_is_refused(faulty, tmp_path):
    with pytest.raises(ConfigError, match=r"dir://.*s3"):
        MirroredStore(tmp_path, Remote("dir://study", tmp_path)).write_plan([], {})
    assert not list(tmp_path.iterdir())
    Faulty.overwrites = True
    with pytest.raises(ConfigError, match="over"):
        faulty.remote.check()


@pytest.mark.parametrize("url", ["s3://me:hidden@bucket/study", "https://host/study?token=hidden"])
def test_secrets_in_a_url_are_refused_and_not_repeated(url):
    with pytest.raises(ConfigError) as error:
        store_at(url)
    assert "hidden" not in str(error.value)


def test_a_protocol_that_nobody_knows_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"nothing://study: .*\(ValueError"):
        Remote("nothing://study", tmp_path).read("a")


@pytest.mark.parametrize("url", ["s3://", "filecache::s3://bucket/study"])
def test_what_is_no_place_is_refused(url):
    with pytest.raises(ConfigError, match=r"URL.*s3://bucket/study"):
        store_at(url)


def test_a_package_that_is_missing_is_named_with_its_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(ConfigError, match=r'"isogloss\[s3\]"'):
        Remote("s3a://bucket/study", tmp_path).check()


def test_a_folder_as_a_url_is_a_folder(tmp_path):
    assert store_at(f"file://{tmp_path}") == Store(tmp_path) == store_at(tmp_path)


@pytest.mark.slow
def test_a_store_that_does_not_answer_is_waited_for_and_then_given_up(faulty):
    Faulty.away = 1
    with pytest.raises(StorageError, match=r"answer.*command"):
        faulty.remote.write("a", b"")
    Faulty.away = 1
    patient = Remote(faulty.remote.url, faulty.root, patience=5)
    with pytest.raises(StorageError, match="answer"):
        patient.write("a", b"")  # It never has.
    patient.check()
    Faulty.away, patient.interruptions = 1, 0
    patient.write("a", b"1")
    assert (patient.read("a"), patient.interruptions) == (b"1", 1)


def test_a_run_is_finished_when_its_record_is_there_too(store, tmp_path):
    second_store = elsewhere(store, tmp_path)
    assert not second_store.is_finished(RUN)
    finish_run(store)
    assert store.is_finished(RUN)
    assert (second_store.is_finished(RUN), second_store.is_finished(RUN, afresh=True)) == (False, True)
    second_store.refresh()
    assert second_store.is_finished(RUN)
    assert second_store.record(RUN) == FINISHED


def test_what_a_run_made_is_brought_down_once(store, tmp_path):
    finish_run(store)
    second_store = elsewhere(store, tmp_path)
    second_store.download([RUN])
    assert (second_store.model(RUN) / "weights").read_text() == "a whole model"
    assert second_store.is_finished(RUN)
    fsspec.filesystem("memory").store.clear()
    second_store.download([RUN])  # Nothing is asked for again.
    with pytest.raises(StorageError, match=r"whole.*record.json"):
        elsewhere(store, tmp_path / "third").download([RUN])


def test_a_damaged_copy_is_brought_again(store, tmp_path):
    finish_run(store)
    second_store = elsewhere(store, tmp_path)
    second_store.download([RUN])
    (second_store.model(RUN) / "weights").write_text("half")
    second_store.download([RUN])
    assert (second_store.model(RUN) / "weights").read_text() == "a whole model"


def test_a_truncated_download_is_found_and_repeated(faulty, tmp_path):
    finish_run(faulty)
    second_store = elsewhere(faulty, tmp_path)
    Faulty.cuts = 1
    second_store.download([RUN])
    assert (second_store.model(RUN) / "weights").read_text() == "a whole model"
    third = elsewhere(faulty, tmp_path / "third")
    Faulty.cuts = 99
    with pytest.raises(StorageError, match=f"{KEY}/record.json"):
        third.download([RUN])
    assert [path for path in third.folder(RUN).rglob("*") if path.is_file()] == [
        third.folder(RUN) / f".{FILES}.lock"
    ]


def test_equal_sizes_with_other_content_are_found_by_their_checksum(store, tmp_path):
    finish_run(store)
    store.remote.write(f"{KEY}/model/weights", b"a whole modem")
    with pytest.raises(StorageError, match="arrives"):
        elsewhere(store, tmp_path).download([RUN])


def test_an_upload_that_broke_off_is_gone_on_with_and_no_run_is_made_again(faulty):
    Faulty.fails = RECORD
    with pytest.raises(StorageError, match="connection"):
        finish_run(faulty)
    assert not faulty.is_finished(RUN, afresh=True)
    Faulty.fails = ""
    assert faulty.finished_meanwhile(RUN)
    assert faulty.is_finished(RUN, afresh=True)


def test_what_went_up_while_this_process_was_paused_stays(store, tmp_path, monkeypatch):
    """The duration of a run varies, so its file would not match the other machine's manifest."""
    second_store, upload = elsewhere(store, tmp_path), Remote._upload_files

    def pause_upload(remote, names):
        monkeypatch.setattr(Remote, "_upload_files", upload)
        finish_run(second_store, seconds=22)
        upload(remote, names)

    monkeypatch.setattr(Remote, "_upload_files", pause_upload)
    finish_run(store, seconds=1)
    third = MirroredStore(tmp_path / "third", Remote(store.remote.url, tmp_path / "third", patience=0))
    third.download([RUN])
    assert json.loads((third.folder(RUN) / MADE).read_text())["seconds"] == 22


def test_a_remote_lease_that_was_removed_is_not_written_anew(store):
    board = RemoteBoard(store.remote)
    board.create("run.1", b"1")
    assert board.write("run.1", b"2")
    assert board.read("run.1") == b"2"
    board.remove("run.1")
    assert not board.write("run.1", b"3")
    assert board.read("run.1") is None


def test_a_record_here_without_what_the_run_made_is_no_finished_run(store):
    """If a finished run was removed elsewhere, this machine may have only its record."""
    finish_run(store)
    store.remote.remove(store.remote.listing())
    (store.model(RUN) / "weights").unlink()
    store.refresh()
    assert not store.finished_meanwhile(RUN)


def test_a_failure_is_known_elsewhere_until_it_is_forgotten(store, tmp_path):
    second_store = elsewhere(store, tmp_path)
    store.fail(RUN, "why")
    assert (second_store.failure(RUN), second_store.failure(RUN, afresh=True)) == ("", "why")
    second_store.download_records()
    assert second_store.failure(RUN) == "why"
    store.forget_failure(RUN)
    second_store.download_records()
    assert second_store.failure(RUN) == ""
    assert not (second_store.folder(RUN) / "failed.json").exists()


def checkpoint(store: Store, step: int) -> Path:
    path = store.folder(RUN) / "work" / "inner" / f"checkpoint-{step:09d}" / "state.json"
    path.parent.mkdir(parents=True)
    path.write_text(str(step))
    (store.folder(RUN) / "work" / "text").write_text("is made again")
    return path


def test_the_last_checkpoint_goes_up_when_a_run_is_left_and_comes_down_elsewhere(store, tmp_path):
    first_checkpoint, lease = checkpoint(store, 5), Lease(KEY, 1)
    with pytest.raises(Interrupted), store.uploading_checkpoints(RUN, lease):
        raise Interrupted
    first_checkpoint.unlink()
    first_checkpoint.parent.rmdir()
    last_checkpoint = checkpoint(store, 10)
    with pytest.raises(Interrupted), store.uploading_checkpoints(RUN, lease):
        raise Interrupted
    second_store = elsewhere(store, tmp_path)
    assert second_store.download_checkpoints(RUN) == ""
    work = second_store.folder(RUN) / "work"
    assert [path.relative_to(work) for path in work.rglob("*") if path.is_file()] == [
        last_checkpoint.relative_to(store.folder(RUN) / "work")
    ]
    assert not [name for name in store.remote.listing() if "checkpoint-000000005" in name]
    (work / "later").touch()  # It goes on from there …
    assert second_store.download_checkpoints(RUN) == ""
    assert (work / "later").exists()
    finish_run(second_store)  # … to the end, where nobody needs them any more.
    assert not [name for name in store.remote.listing() if "work" in name]


def test_checkpoints_go_up_while_a_run_is_made_unless_it_was_lost(store, monkeypatch):
    monkeypatch.setattr(module, "UPLOAD_EVERY", 0.01)
    checkpoint(store, 5)
    lost_lease, held_lease = Lease(KEY, 1, lost=True), Lease(KEY, 2)
    with store.uploading_checkpoints(RUN, lost_lease):
        time.sleep(0.1)
    assert store.remote.listing() == {}
    with store.uploading_checkpoints(RUN, held_lease):
        for _ in range(500):
            if store.remote.exists(f"{KEY}/{CHECKPOINTS}"):
                break
            time.sleep(0.01)
    assert f"{KEY}/{WORK}/inner/checkpoint-000000005/state.json" in store.remote.listing()


def test_a_checkpoint_that_is_not_whole_is_none(store, tmp_path):
    checkpoint(store, 5)
    with pytest.raises(Interrupted), store.uploading_checkpoints(RUN, Lease(KEY, 1)):
        raise Interrupted
    store.remote.write(f"{KEY}/{WORK}/inner/checkpoint-000000005/state.json", b"50")
    second_store = elsewhere(store, tmp_path)
    assert "these checkpoints are not whole" in second_store.download_checkpoints(RUN)
    assert not (second_store.folder(RUN) / "work").exists()


def test_an_answer_that_took_long_counts_as_an_interruption(remote, monkeypatch):
    board = RemoteBoard(remote)
    board.read("a")
    assert board.interruptions == 0
    monkeypatch.setattr(module, "SLOW_READ", 0)
    board.read("a")
    assert board.interruptions == 1


def test_the_log_of_leases_is_written_in_parts(remote, monkeypatch):
    monkeypatch.setattr(module, "LOG_EVERY", 1e9)
    board = RemoteBoard(remote)
    leases = Leases(board, log="log")
    for number in range(LINES // 2 + 1):
        with leases.lease_run(str(number)) as lease:
            lease.ending = "finished"
    log_parts = [name for name in remote.listing() if f"{LEASES}/log/" in name]
    assert len(log_parts) == 1  # The first line; the others wait.
    leases.flush_log()
    names = sorted(remote.listing())
    assert len(names) == 2
    assert all(name.startswith(f"{LEASES}/log/") for name in names)
    lines = [json.loads(line) for name in names for line in remote.read(name).splitlines()]
    assert len(lines) == LINES + 2


def test_a_store_is_sent_to_other_processes_without_what_it_knows(store, monkeypatch, tmp_path):
    store.remote.listed["x"] = 1
    sent_store = pickle.loads(pickle.dumps(store))
    assert (sent_store.root, sent_store.remote.url, sent_store.remote.listed) == (
        store.root,
        store.remote.url,
        {},
    )


def test_a_copy_is_not_brought_where_it_is_here(remote):
    remote.write("a", b"123")
    remote.download_files({"a": Checksum(3)})
    remote.write("a", b"456")
    remote.download_files({"a": Checksum(3)})
    assert (remote.root / "a").read_bytes() == b"123"


@pytest.mark.nightly
@pytest.mark.slow
def test_a_study_below_a_url_is_run_read_and_reported_as_in_a_folder(tmp_path, monkeypatch):
    fsspec.filesystem("memory").store.clear()
    url, recipe = "memory://place/whole", tiny(tmp_path, PAIRS)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "one"))
    first_study = isogloss.run(recipe, out=url, jobs=1)
    assert isogloss.run(recipe, out=url, jobs=1).outcome.made == []
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "two"))
    study = isogloss.read(url)
    assert study.out != first_study.out
    assert study.frame("scores").equals(first_study.frame("scores"))
    assert study.report.html.read_bytes() == first_study.report.html.read_bytes()
    assert store_at(url).remote.read("report.html") == first_study.report.html.read_bytes()
    model = next(run.id for run in study.runs if run.kind == "fine-tune")
    assert not (local_folder(f"{url}/{model}") / "model").exists()
    assert (local_model(f"{url}/{model}") / "model" / "config.json").exists()


def test_names_that_lead_out_are_refused_before_anything_is_brought(store, tmp_path):
    finish_run(store)
    manifest = json.loads(store.remote.read(f"{KEY}/{FILES}"))
    for name in (f"{KEY}/../../x", "/x", "0123456789ab/model/x"):
        store.remote.write(f"{KEY}/{FILES}", json.dumps(manifest | {name: Checksum(1).__dict__}).encode())
        second_store = elsewhere(store, tmp_path)
        with pytest.raises(StorageError, match=f"study/{KEY}/{FILES}: .*'{name}'"):
            second_store.download([RUN])
        assert not second_store.model(RUN).exists()


def test_checkpoints_that_lead_out_are_refused_by_name(store, tmp_path):
    store.remote.write(f"{KEY}/{CHECKPOINTS}", b'{"../x": {"size": 1, "crc32": ""}}')
    with pytest.raises(StorageError, match=r"work.json: .*'../x'"):
        elsewhere(store, tmp_path).download_checkpoints(RUN)


def test_copies_do_not_follow_a_link_out_of_their_folder(store, tmp_path):
    finish_run(store)
    second_store, victim = elsewhere(store, tmp_path), tmp_path / "victim"
    victim.mkdir()
    second_store.root.mkdir()
    (second_store.root / KEY).symlink_to(victim)
    with pytest.raises(StorageError, match=f"{KEY}:"):
        second_store.download_records()
    assert not list(victim.iterdir())


@pytest.mark.parametrize("base", [f"../../{KEY}/model", "../../../evil/model", "/etc", 5])
def test_a_base_that_is_no_other_run_of_the_store_is_not_brought(store, tmp_path, base):
    store.start(RUN)
    store.model(RUN).mkdir()
    (store.model(RUN) / "difference.json").write_text(json.dumps({"base": base}))
    store.finish(FINISHED, {})
    second_store = elsewhere(store, tmp_path)
    assert second_store.download_model(KEY) == second_store.folder(RUN)
    assert [path.name for path in second_store.root.iterdir()] == [KEY]


def test_only_runs_and_the_plan_are_brought_for_reports(store, tmp_path):
    finish_run(store)
    store.remote.write("notes/record.json", b"{}")
    store.remote.write("notes/failed.json", b"{}")
    second_store = elsewhere(store, tmp_path)
    second_store.download_records()
    assert [path.name for path in second_store.root.iterdir()] == [KEY]
