"""A byte that changed in any file of a study is found by its readers, in a folder and in a bucket."""

import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from isogloss.core.checksums import CHECKSUMS, Checksum, as_text
from isogloss.core.errors import StorageError
from isogloss.core.records import FAILED, MADE, PLAN, PREDICTIONS, RECORD, Made, Plan, read_made, read_record
from isogloss.data.result_files import read_answers, read_predictions
from isogloss.features.buckets.mirrored_store import FILES
from isogloss.store import store_at
from isogloss.store.store import PRECISION, Store, json_or_empty
from isogloss.using.provenance import check_undamaged
from killed import RECIPE

FOUND = "found"
"""Results of a reader that report a damaged file."""


def reads(path: Path) -> object:
    """Return all that is read of a file of a study, or that it is damaged."""
    folder = path.parent
    store = Store(path.parent)
    try:
        match path.name:
            case name if name == PLAN:
                return store.plan() if store.plan() != Plan() else FOUND
            case name if name in (PRECISION, FAILED):
                return json_or_empty(store.read(name), dict[str, str]) or FOUND
            case name if name == MADE:
                return read_made(folder) if read_made(folder) != Made() else FOUND
            case name if name in (RECORD, CHECKSUMS):
                return read_record(folder)
            case name if name == PREDICTIONS:
                return repr(read_predictions(path)), read_answers(path)
            case _:
                check_undamaged(folder.parent if folder.name == "model" else folder)
                return path.read_bytes()
    except StorageError as error:
        assert path.name in str(error) or RECORD in str(error)
        return FOUND


def flips(content: bytes, count: int, seed: str) -> Iterator[bytes]:
    """Yield the content with one byte changed, at the ends and at other places."""
    draw = random.Random(seed)
    places = {0, len(content) - 1, *(draw.randrange(len(content)) for _ in range(count))}
    for place in sorted(places):
        changed_bytes = bytes([content[place] ^ draw.randrange(1, 256)])
        yield content[:place] + changed_bytes + content[place + 1 :]


@pytest.fixture(scope="module")
def study(runs_of: Callable[[str, str], Path]) -> Path:
    runs = runs_of("undisturbed", RECIPE)
    Store(runs).precision(lambda: "float32")
    return runs


def files_of(study: Path) -> list[Path]:
    """Return a file of each name: small ones of a run without a model, and all of one with a model."""
    model = min(study.glob("*/model")).parent
    scores = next(path.parent for path in sorted(study.glob(f"*/{PREDICTIONS}")))
    inside = [path for path in sorted(model.rglob("*")) if path.is_file()]
    return [study / PLAN, study / PRECISION, *inside, *sorted(scores.iterdir())]


def find_undetected(path: Path, count: int) -> list[bytes]:
    content = path.read_bytes()
    right = reads(path)
    assert right != FOUND
    missed_value = []
    for flipped_value in flips(content, count, path.name):
        path.write_bytes(flipped_value)
        if reads(path) not in (right, FOUND):
            missed_value.append(flipped_value)
    path.write_bytes(content)
    return missed_value


@pytest.mark.slow
@pytest.mark.parametrize("count", [3, pytest.param(400, marks=pytest.mark.nightly)])
def test_a_flipped_byte_of_a_folder_is_found(study, count):
    missed_fields = {
        path.relative_to(study).as_posix(): find_undetected(path, count) for path in files_of(study)
    }
    assert {name: flipped_field for name, flipped_field in missed_fields.items() if flipped_field} == {}


def put_into_bucket(study: Path, url: str) -> None:
    """Put a study into a bucket in memory."""
    import fsspec

    bucket = fsspec.filesystem("memory")
    name = url.removeprefix("memory:/")
    bucket.pipe_file(f"{name}/{PLAN}", (study / PLAN).read_bytes())
    for run in {path.parent for path in study.glob(f"*/{RECORD}")}:
        inside = [path for path in run.rglob("*") if path.is_file()]
        sums = {path.relative_to(study).as_posix(): Checksum.of(path.read_bytes()) for path in inside}
        for path in inside:
            bucket.pipe_file(f"{name}/{path.relative_to(study).as_posix()}", path.read_bytes())
        bucket.pipe_file(f"{name}/{run.name}/{FILES}", as_text(sums).encode())


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, pytest.param(60, marks=pytest.mark.nightly)])
def test_a_flipped_byte_of_a_copy_is_found_and_copied_again(study, tmp_path, monkeypatch, count):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    url = f"memory://flipped-{count}"
    put_into_bucket(study, url)
    store = store_at(url)
    store.download_records()
    records = sorted(path for path in store.root.rglob("*") if path.is_file())
    assert {path.name for path in records} >= {PLAN, RECORD, MADE, CHECKSUMS, PREDICTIONS}
    for path in records:
        if not path.name.startswith("."):
            content = path.read_bytes()
            right = reads(path)
            for flipped_value in flips(content, count, path.name):
                path.write_bytes(flipped_value)
                assert reads(path) in (right, FOUND), path
                store.download_records()
                assert reads(path) == right, path
    key = next(study.glob("*/model")).parent.name
    store.download_model(key)
    for path in sorted((store.root / key / "model").iterdir()):
        content = path.read_bytes()
        for flipped_value in flips(content, count, path.name):
            path.write_bytes(flipped_value)
            assert reads(path) == FOUND
            store.download_model(key)
            assert path.read_bytes() == content


def test_a_record_without_its_checksum_among_others_is_damaged(tmp_path, study):
    model = next(study.glob("*/model"))
    run = shutil.copytree(model.parent, tmp_path / "runs" / model.parent.name)
    sums = json.loads((run / CHECKSUMS).read_text())
    (run / CHECKSUMS).write_text(json.dumps({name: entry for name, entry in sums.items() if name != RECORD}))
    with pytest.raises(StorageError, match=f"{RECORD}: .*{CHECKSUMS}"):
        read_record(run)
