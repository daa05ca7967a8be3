"""Machines that share a bucket share the work: each run is computed once, and resumes on any machine.

Machines are processes with separate caches. The bucket belongs to a local S3 server.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import isogloss
from forked import PROGRAM, Forked
from isogloss.core.records import RECORD
from isogloss.features.buckets.remote import Remote
from isogloss.store import store_at
from isogloss.store.leases import LEASES
from isogloss.store.store import PRECISION, WORK
from killed import wait_until
from s3_server import BUCKET, S3, s3_server

pytest.importorskip("s3fs")
pytest.importorskip("moto.server")

AWAY = 10.0
"""Seconds the store is away. What the client waits by itself is less."""

PATIENCE = 180
"""Seconds a busy machine may take until what is waited for."""


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    with s3_server() as server:
        yield server


@pytest.fixture
def see_bucket(s3, monkeypatch, tmp_path) -> None:
    """Let this process see the bucket, with a separate cache."""
    for name, value in s3.environment_of("here").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "here"))


def start_machine(s3: S3, machine: Path, *words: str) -> Forked:
    environment: Mapping[str, str] = {
        **os.environ,
        **s3.environment_of(machine.name),
        "XDG_CACHE_HOME": str(machine),
    }
    words = (*PROGRAM, "run", *words, "--engine", "serial", "--quiet")
    return Forked(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def place(name: str, folder: Path) -> Remote:
    """Return a new place in the bucket, in which "auto" is the precision known in a folder."""
    remote = store_at(f"s3://{BUCKET}/{name}").remote
    remote.write(PRECISION, (folder / PRECISION).read_bytes())
    return remote


def records(remote: Remote) -> dict[str, bytes | None]:
    names = [name for name in remote.listing() if name.endswith(f"/{RECORD}")]
    return {name.partition("/")[0]: remote.read(name) for name in names}


@pytest.mark.nightly
def test_machines_share_a_bucket_though_one_leaves_and_the_store_is_away_for_a_while(
    s3, see_bucket, undisturbed_study, tmp_path
):
    folder, single_study = undisturbed_study
    remote = place("shared", folder)
    words = str(folder / "r.toml"), "--out", remote.url
    first_item = start_machine(s3, tmp_path / "a", *words, "--no-report")
    wait_until(lambda: checkpoints(tmp_path / "a") or first_item.poll() is not None)
    first_item.send_signal(signal.SIGTERM)
    assert first_item.wait(PATIENCE) == 143
    left = checkpoints(tmp_path / "a")
    assert left
    (run,) = {name.partition("/")[0] for name in remote.listing() if name.endswith("/work.json")}
    assert {name.partition(f"/{WORK}/")[2] for name in remote.listing(f"{run}/{WORK}")} == set(left)

    s3.tell("hold")
    pair = [
        start_machine(s3, tmp_path / "b", *words),
        start_machine(s3, tmp_path / "c", *words, "--no-report"),
    ]
    # Whoever begins while the store is away leaves at once: both have begun when both would lease a run.
    wait_until(lambda: s3.tell("held") == "2" or any(item.poll() is not None for item in pair))
    s3.tell("go")
    wait_until(lambda: list_checkpoints(tmp_path, run) or any(item.poll() is not None for item in pair))
    assert None in [item.poll() for item in pair]
    assert min(list_checkpoints(tmp_path, run)) >= left[0]  # Nobody started over.
    s3.tell("away")
    time.sleep(AWAY)
    s3.tell("back")
    assert [(process.wait(PATIENCE), process.stderr.read()) for process in pair] == [(0, "")] * 2
    assert records(remote) == single_study
    logs = [remote.read(name) for name in remote.listing(f"{LEASES}/log")]
    events = [json.loads(line) for log in logs for line in log.splitlines()]
    finished_runs = Counter(event["run"] for event in events if event["event"] == "finished")
    assert {key: finished_runs[key] for key in single_study} == dict.fromkeys(single_study, 1)
    assert len(remote.listing(LEASES)) == len(logs) == 3  # No leases are left.
    assert remote.listing(f"{run}/{WORK}") == {}
    (page,) = (tmp_path / "b").rglob("report.html")
    assert remote.read("report.html") == page.read_bytes()


def list_checkpoints(folder: Path, run: str) -> list[str]:
    """List the files of whole checkpoints of a run on the machines that came later."""
    return [text for machine in "bc" for text in checkpoints(folder / machine, run)]


def checkpoints(machine: Path, run: str = "*") -> list[str]:
    """List the files of whole checkpoints by their names in the work of their run."""
    paths = machine.glob(f"isogloss/stores/*/{run}/{WORK}/checkpoint-*/*")
    return sorted(str(path.relative_to(path.parents[1])) for path in paths)


MANY = """
import sys, time
from pathlib import Path
from isogloss.store.leases import Leases
from isogloss.features.buckets.remote import Remote
from isogloss.features.buckets.mirrored_store import RemoteBoard
remote = Remote(sys.argv[1], Path())
leases = Leases(RemoteBoard(remote))
remote.write(f"ready/{sys.argv[2]}", b"")
while len(remote.listing("ready")) < 3:
    pass
for key in map(str, range(25)):
    with leases.lease_run(key) as lease:
        if lease is not None and not remote.exists(key):
            print(key)
            remote.write(key, b"")
            time.sleep(0.1)
        if lease is not None:
            lease.ending = "finished"
"""


@pytest.mark.slow
def test_processes_that_race_in_a_bucket_make_each_run_once(s3, see_bucket):
    url = f"s3://{BUCKET}/race"
    words = [sys.executable, "-c", MANY, url]
    environment = {**os.environ, **s3.environment_of()}
    racing = [Forked([*words, str(index)], env=environment, stdout=subprocess.PIPE) for index in range(3)]
    parts = [item.communicate(timeout=PATIENCE)[0].split() for item in racing]
    assert Counter(key for keys in parts for key in keys) == dict.fromkeys(
        (str(element) for element in range(25)), 1
    )
    assert [process.returncode for process in racing] == [0] * 3
    assert sum(bool(part) for part in parts) > 1


@pytest.mark.slow
def test_a_bucket_that_is_not_there_is_said_before_anything_is_made(see_bucket, undisturbed_study, tmp_path):
    with pytest.raises(isogloss.IsoglossError, match="s3://nowhere/study:"):
        isogloss.run(undisturbed_study[0] / "r.toml", out="s3://nowhere/study", jobs=1)
    assert not list((tmp_path / "here").rglob(RECORD))


FEW = 10
"""Requests of a run, besides one for each further file that it makes."""

OWN = (RECORD, "made.json", "checksums.json", "files.json")
"""Files that every run has in a bucket."""


@pytest.mark.slow
def test_a_run_takes_few_requests_and_no_listing(s3, see_bucket, undisturbed_study):
    folder, single_study = undisturbed_study
    remote = place("few", folder)
    s3.tell("counts")
    began = time.monotonic()
    isogloss.run(folder / "r.toml", out=remote.url, engine="serial", jobs=1, report=False)
    counts = Counter(json.loads(s3.tell("counts")))
    passes = time.monotonic() - began  # One listing a second, and some at the beginning.
    assert counts.pop("LIST") <= passes + 5
    assert records(remote) == single_study
    for key in single_study:
        further = [name for name in remote.listing(key) if name.partition("/")[2] not in OWN]
        requests = {name: count for name, count in counts.items() if f"/{key}" in name}
        assert sum(requests.values()) - len(further) <= FEW, requests
