"""A bucket that others write to: no name in it leads out of the folder of copies, whichever verb reads it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import fsspec
import pytest

from isogloss.core.checksums import Checksum, as_text
from s3_server import BUCKET, S3, s3_server
from tiny import PAIRS, tiny

pytest.importorskip("s3fs")
pytest.importorskip("moto.server")

pytestmark = pytest.mark.slow

EVIL = b"written by the bucket's other user\n"
NAMES = ("{victim}/absolute", "{run}/../../../escaped", "{run}\\..\\..\\windows", "{run}//double", "C:/drive")


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    with s3_server() as server:
        yield server


@pytest.fixture
def bucket(s3, monkeypatch, tmp_path, runs_of) -> Callable[..., tuple[str, str]]:
    """Put a finished study into a new place of the bucket; return its URL and the id of its model.

    ``keys`` are further objects, ``listed`` further names in the manifest of each run.
    """
    for name, value in s3.environment_of("here").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    runs = runs_of("pairs", PAIRS)
    (model,) = (path.parent.name for path in runs.glob("*/model"))

    def put(*, keys: tuple[str, ...] = (), listed: tuple[str, ...] = ()) -> tuple[str, str]:
        files = fsspec.filesystem("s3")
        place = f"{BUCKET}/{tmp_path.name}"
        names = {"victim": str(tmp_path / "victim"), "run": model}
        for path in (path for path in runs.rglob("*") if path.is_file() and ".claims" not in path.parts):
            files.pipe_file(f"{place}/{path.relative_to(runs).as_posix()}", path.read_bytes())
        for folder in (path.parent for path in runs.glob("*/record.json")):
            told = {
                path.relative_to(runs).as_posix(): Checksum.of_file(path)
                for path in folder.rglob("*")
                if path.is_file()
            }
            told |= {name.format(**names): Checksum.of(EVIL) for name in listed}
            files.pipe_file(f"{place}/{folder.name}/files.json", as_text(told).encode())
        for name in keys:
            files.call_s3(
                "put_object", Bucket=BUCKET, Key=f"{tmp_path.name}/{name.format(**names)}", Body=EVIL
            )
        return f"s3://{place}", model

    return put


def written(folder: Path) -> set[str]:
    """List what was written, but for what lies in the folder of copies."""
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and path.relative_to(folder).parts[:3] != ("cache", "isogloss", "stores")
    }


def verbs(url: str, model: str, folder: Path) -> dict[str, list[object]]:
    text = folder / "in.txt"
    text.write_text("a\tb\n")
    return {
        "report": ["report", url],
        "show": ["show", model, "--in", url],
        "list": ["list", "runs", "--in", url],
        "compare": ["compare", url, "--against", "source-only"],
        "choose": ["choose", url],
        "predict": ["predict", f"{url}/{model}", text],
        "export": ["export", f"{url}/{model}", folder / "out"],
        "run": ["run", tiny(folder, PAIRS), "--out", url, "--engine", "serial", "--quiet"],
    }


VERBS = ("report", "show", "list", "compare", "choose", "predict", "export", "run")


@pytest.mark.parametrize(
    ("verb", "name"), [*((verb, NAMES[0]) for verb in VERBS), *(("report", name) for name in NAMES[1:])]
)
def test_a_key_that_leads_out_of_the_copies_is_refused_by_its_name(command, bucket, tmp_path, verb, name):
    url, model = bucket(keys=(f"{name}/record.json",))
    words = verbs(url, model, tmp_path)[verb]
    before = written(tmp_path)
    message = command(*words).message
    assert name.format(victim=tmp_path / "victim", run=model)[:30].replace("\\", "\\\\") in message
    assert written(tmp_path) == before
    assert not list(tmp_path.rglob("record.json"))  # Nothing was brought at all.


@pytest.mark.parametrize(
    ("verb", "name"),
    [("export", NAMES[0]), *(("predict", name) for name in (*NAMES, "0123456789ab/model/x"))],
)
def test_a_manifest_that_leads_out_of_the_copies_is_refused_by_the_name(
    command, bucket, tmp_path, verb, name
):
    url, model = bucket(listed=(name,))
    words = verbs(url, model, tmp_path)[verb]
    before = written(tmp_path)
    message = command(*words).message
    assert f"{model}/files.json: the name" in message
    assert written(tmp_path) == before
    assert not list(tmp_path.rglob("model.safetensors"))
