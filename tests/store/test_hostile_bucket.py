"""A bucket that others may write to leads nobody's files out of the copies' folder, whatever its keys are."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from isogloss.cli import main
from isogloss.core.checksums import Checksum, as_text
from isogloss.core.errors import StorageError
from isogloss.core.untrusted import is_safe, join_safely
from killed import RECIPE
from s3_server import BUCKET, S3, s3_server

pytest.importorskip("s3fs")
pytest.importorskip("moto.server")

BODY = b"written by the bucket's other user\n"
CHECKSUM = Checksum.of(BODY)


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    with s3_server() as server:
        yield server


@pytest.fixture
def bucket(s3, monkeypatch, tmp_path):
    """Let this process see the bucket, with a separate cache. Return a function that uploads an object."""
    import boto3

    for name, value in s3.environment_of("here").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    client = boto3.client("s3", endpoint_url=s3.address)
    return lambda key, body: client.put_object(Bucket=BUCKET, Key=key, Body=body)


@pytest.fixture
def study(runs_of) -> Path:
    return runs_of("undisturbed", RECIPE)


def shared(
    put_bucket: Callable[[str, bytes], object], study: Path, name: str, *, listed_name: str = ""
) -> str:
    """Put a finished study into the bucket, with one more file in the list of each run. Return its URL."""
    put_bucket(f"{name}/plan.json", (study / "plan.json").read_bytes())
    for run in study.glob("?" * 12):
        files = {
            path.relative_to(study).as_posix(): path.read_bytes() for path in run.rglob("*") if path.is_file()
        }
        for file, body in files.items():
            put_bucket(f"{name}/{file}", body)
        sums = {file: Checksum.of(body) for file, body in files.items()}
        if listed_name:
            sums[listed_name.replace("RUN", run.name)] = CHECKSUM
        put_bucket(f"{name}/{run.name}/files.json", as_text(sums).encode())
    return f"s3://{BUCKET}/{name}"


def call_command(capsys, *words: object) -> tuple[int, str]:
    capsys.readouterr()
    with pytest.raises(SystemExit) as end:
        main([str(word) for word in words])
    return int(end.value.code or 0), capsys.readouterr().err


def files_in(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


def is_of_the_cache(path: Path, folder: Path) -> bool:
    """Whether a file is a copy of a bucket's, or the list of this machine's current runs."""
    cache = folder / "cache" / "isogloss"
    return path.is_relative_to(cache / "stores") or path.is_relative_to(cache / "running")


def model_of(study: Path) -> str:
    kinds = {path.parent.name: json.loads(path.read_text())["kind"] for path in study.glob("*/record.json")}
    return next(run for run, kind in kinds.items() if kind == "fine-tune")


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize(
    "key", ["VICTIM/record.json", "RUN/../../../escaped", "RUN\\..\\windows", "RUN//made.json"]
)
def test_a_key_that_leads_out_is_refused_by_every_verb_before_anything_is_written(
    study, bucket, tmp_path, capsys, key
):
    run = model_of(study)
    victim = tmp_path / "victim"
    url = shared(bucket, study, f"keys-{abs(hash(key))}")
    bad_text = key.replace("VICTIM", str(victim)).replace("RUN", run)
    bucket(f"{url.removeprefix(f's3://{BUCKET}/')}/{bad_text}", BODY)
    (tmp_path / "in.txt").write_text("a b\n")
    (tmp_path / "r.toml").write_text(RECIPE)
    for words in (
        ("report", url),
        ("show", run, "--in", url),
        ("list", "runs", "--in", url),
        ("choose", url),
        ("compare", url, "--against", "source-only"),
        ("predict", f"{url}/{run}", tmp_path / "in.txt"),
        ("export", f"{url}/{run}", tmp_path / "exported"),
        ("run", tmp_path / "r.toml", "--out", url, "--engine", "serial"),
    ):
        status, error = call_command(capsys, *words)
        assert status == 2, (words, error)
        assert repr(bad_text)[1:-1] in error
        assert error.count("\n") == 1
    outside = {path for path in files_in(tmp_path) if not is_of_the_cache(path, tmp_path)}
    assert outside == {tmp_path / "in.txt", tmp_path / "r.toml"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "listed_name", ["/VICTIM/absolute", "RUN/../../../escaped", "RUN\\..\\windows", "plan.json"]
)
def test_a_name_in_the_list_of_a_run_s_files_that_leads_out_is_refused(
    bucket, study, tmp_path, capsys, listed_name
):
    run = model_of(study)
    victim = tmp_path / "victim"
    name = listed_name.replace("/VICTIM", str(victim))
    url = shared(bucket, study, f"listed-{abs(hash(listed_name))}", listed_name=name)
    (tmp_path / "in.txt").write_text("a b\n")
    for words in (
        ("predict", f"{url}/{run}", tmp_path / "in.txt"),
        ("export", f"{url}/{run}", tmp_path / "out"),
    ):
        status, error = call_command(capsys, *words)
        assert status == 2, error
        assert "nothing was written" in error
    cache = tmp_path / "cache" / "isogloss" / "stores"
    outside = {path for path in files_in(tmp_path) if not is_of_the_cache(path, tmp_path)}
    assert outside == {tmp_path / "in.txt"}
    assert not [path for path in files_in(cache) if path.read_bytes() == BODY]


@pytest.mark.parametrize(
    "name",
    [
        "",
        "/a",
        "a//b",
        "a/",
        "..",
        "a/../b",
        "./a",
        "a\\b",
        "c:a",
        "a\0b",
        "a\nb",
        "a" * 256,
        "\ud800",
        "a|b",
    ],
)
def test_a_name_that_may_lead_out_of_a_folder_is_refused_and_shown(name, tmp_path):
    assert not is_safe(name)
    with pytest.raises(StorageError, match="nothing"):
        join_safely(tmp_path, name)


@pytest.mark.parametrize("name", ["a", "a/b.json", ".claims/x.1", "figures/ä ö.pdf", "a..b", "...", "-x"])
def test_a_plain_name_is_a_path_below_the_folder(name, tmp_path):
    assert join_safely(tmp_path, name) == tmp_path / name
