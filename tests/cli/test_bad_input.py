"""Mistakes of users give one line with advice: exit code 2, no traceback, nothing trained."""

import errno
import json
import os
import shutil
from pathlib import Path

import pytest

from isogloss.core import atomic_files
from isogloss.core.errors import ModelError
from isogloss.training import fit
from says import check_wording
from tiny import TINY, tiny

WIKIANN = "Anna\tB-PER\nsaw\tO\nRome\tB-LOC\n\n"


@pytest.fixture
def get_refusal(command, tmp_path, monkeypatch):
    """Give a function that runs the tiny recipe with changes and returns the message before any training."""

    def forbid_training(*_, **__):
        raise AssertionError("a training began")

    def run(*arguments, **changes):
        monkeypatch.setattr(fit._Training, "run", forbid_training)
        sets = [
            part for key, value in changes.items() for part in ("--set", f"{key.replace('__', '.')}={value}")
        ]
        out_option = [] if "--out" in arguments else ["--out", tmp_path / "runs"]
        return command("run", tiny(tmp_path), *out_option, "--jobs", 1, *sets, *arguments).message

    return run


@pytest.fixture
def data(tmp_path):
    """A folder with a tiny English WikiANN, written by hand."""
    folder = tmp_path / "data" / "panx"
    folder.mkdir(parents=True)
    for split in ("train", "dev"):
        (folder / f"{split}-en.tsv").write_text(WIKIANN * 8)
    return folder.parent


@pytest.fixture
def encoder(bert_folder, tmp_path):
    return Path(shutil.copytree(bert_folder, tmp_path / "encoder"))


def test_a_data_folder_that_is_not_there(get_refusal, tmp_path):
    message = get_refusal("--data", tmp_path / "dta", grid__source="en")
    check_wording(message, f"{tmp_path / 'dta'}:", "--data")


def test_a_real_language_that_is_not_in_the_folder(get_refusal, data):
    message = get_refusal("--data", data, grid__source="de")
    assert "corpus 'wikiann'" in message
    assert "en" in message.partition("has train for")[2]


@pytest.mark.parametrize(
    ("change", "beginning"),
    [
        ({"grid__corpus": "wikian"}, "grid.corpus: no corpus 'wikian'. Did you mean 'wikiann'? Known:"),
        ({"grid__method__0__name": "source-onyl"}, "grid.method[0]: no method 'source-onyl'. Did you mean"),
        ({"grid__method__0__epoch": 3}, "grid.method[0]: epoch: method source-only "),
        ({"grid__seds": "[0]"}, "grid.seds: no such field. Did you mean 'seeds'? Fields: corpus,"),
        ({"measure__0__name": "score"}, "measure[0]: no diagnostic 'score'. Did you mean 'scores'?"),
    ],
)
def test_a_name_that_is_unknown(get_refusal, change, beginning):
    assert get_refusal(**change).startswith(f"tiny.toml: {beginning}")


@pytest.mark.parametrize(
    ("change", "excerpt"),
    [
        ({"grid__source": "en"}, "--data DIR"),
        ({"grid__source": "qaz"}, "qaz:"),
        ({"grid__source": "English"}, "grid.source:"),
        ({"encoder": "'{pretrain}'"}, "no such folder"),
    ],
)
def test_a_language_or_an_encoder_that_is_not_there(get_refusal, change, excerpt):
    assert excerpt in get_refusal(**change)


@pytest.mark.parametrize(
    ("file", "text", "fact"),
    [
        ("train", "\n", "train-en.tsv:1:"),
        (
            "train",
            WIKIANN + "Anna B-PER\n",
            "train-en.tsv:5: 1 column in 'Anna B-PER'",
        ),
        (
            "dev",
            WIKIANN + "Anna\tB-PRS\n\n",
            "dev-en.tsv:5: label 'B-PRS'; expected one of O, B-LOC, I-LOC, B-ORG, I-ORG, B-PER, I-PER",
        ),
        ("dev", WIKIANN + "An\xffna\tO\n\n", "dev-en.tsv:5: byte 0xff at byte 3"),
    ],
)
def test_a_data_file_with_a_broken_line(get_refusal, data, file, text, fact):
    (data / "panx" / f"{file}-en.tsv").write_text(text, encoding="latin-1")
    check_wording(get_refusal("--data", data, grid__source="en"), f"{data}/panx/{fact}")


def test_an_encoder_folder_that_is_not_there(get_refusal, encoder):
    assert "'encoder'?" in get_refusal(encoder=f"{encoder.parent}/encodr")


@pytest.mark.parametrize(
    ("file", "beginning"),
    [
        ("tokenizer.json", "no tokenizer (tokenizer.json, vocab.txt"),
        ("model.safetensors", "no model.safetensors (found: config.json"),
        ("config.json", "no config.json"),
    ],
)
def test_an_encoder_folder_without_a_part(get_refusal, encoder, file, beginning):
    (encoder / file).unlink()
    message = get_refusal(encoder=encoder)
    assert message.startswith(f"tiny.toml: encoder: {encoder}: {beginning}")


def test_an_encoder_with_damaged_weights(get_refusal, encoder):
    weights = encoder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    assert "weights" in get_refusal(encoder=encoder)


def test_a_limit_beyond_the_positions_of_the_encoder(get_refusal, encoder):
    message = get_refusal(encoder=encoder, grid__optimization__limit=161)
    assert "encoder 'encoder'" in message


def test_a_hub_name_without_a_network(get_refusal, monkeypatch):
    from huggingface_hub.errors import LocalEntryNotFoundError

    def snapshot(*_, **__):
        raise LocalEntryNotFoundError("no network")

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    message = get_refusal(encoder="somebody/small-bert")
    assert message.startswith("somebody/small-bert: ")


def test_a_download_that_is_interrupted(get_refusal, monkeypatch):
    def snapshot(*_, local_files_only=False, **__):
        from huggingface_hub.errors import LocalEntryNotFoundError

        if local_files_only:
            raise LocalEntryNotFoundError("not in the cache")
        raise ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    message = get_refusal(encoder="somebody/small-bert")
    assert "(ConnectionResetError" in message
    assert "command" in message


def test_a_recipe_nested_too_deeply(command, tmp_path):
    (tmp_path / "deep.toml").write_text(f"title = {'[' * 5000}{']' * 5000}\n")
    check_wording(command("run", tmp_path / "deep.toml").message, "deep.toml:")
    check_wording(command("run", tiny(tmp_path), "--set", f"title={'[' * 5000}").message, "--set title:")


def test_the_place_of_a_mistake_is_said_once(command, tmp_path):
    message = command("align", "bitext", "qaa-qab", "--aligner", "fast-alien", "--out", tmp_path).message
    assert message.startswith("command line: align: no word aligner 'fast-alien'.")


def test_a_full_disk(command, tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(atomic_files.os, "fsync", full)
    message = command("run", tiny(tmp_path), "--out", tmp_path / "runs", "--jobs", 1).message
    assert "device)" in message
    assert not list((tmp_path / "runs").glob("*.json"))


@pytest.mark.slow
def test_a_disk_that_is_full_when_the_model_is_saved(command, tmp_path, monkeypatch):
    from isogloss.encoders import saving

    def full(model, tokenizer, folder, extra_writers, difference):
        raise atomic_files.storage_error(folder, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))

    monkeypatch.setattr(saving, "save_model", full)
    output = command(
        "run", tiny(tmp_path), "--out", tmp_path / "runs", "--jobs", 1, "--quiet", "--scale", "least"
    )
    assert "No space left on device" in output.message
    assert not list((tmp_path / "runs").glob("*/record.json"))


@pytest.fixture
def damaged_runs(tiny_runs, tmp_path):
    """A copy of finished runs, and the record of one that is to be damaged."""
    runs = Path(shutil.copytree(tiny_runs, tmp_path / "runs"))
    return runs, min(runs.glob("*/record.json"))


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["", "{", "[]", "null", '{"id": "x"}'])
def test_a_record_damaged_by_hand_is_named(command, damaged_runs, damage):
    runs, record = damaged_runs
    record.write_text(damage)
    message = command("show", record.parent.name, "--in", runs).message
    assert message.startswith(f"{record}:")
    (line,) = [
        line for line in command("list", "runs", "--in", runs, "--json").lines if line["kind"] == "damaged"
    ]
    assert line["run"] == record.parent.name
    assert line["what"] == message


@pytest.mark.nightly
@pytest.mark.slow
def test_a_damaged_record_is_set_aside_and_made_again(command, damaged_runs, tmp_path):
    runs, record = damaged_runs
    record.write_text("{")
    bytes_by_path = {path: path.read_bytes() for path in runs.glob("*/record.json") if path != record}
    again = command("run", tiny(tmp_path), "--out", runs, "--jobs", 1, "--no-report")
    assert again.status == 0
    assert "record" in again.err
    assert "Set aside as damaged-record.json, and made again." in again.err
    assert json.loads(record.read_text())["id"] == record.parent.name
    assert {path: path.read_bytes() for path in bytes_by_path} == bytes_by_path


def test_an_out_that_is_a_file(get_refusal, tmp_path):
    (tmp_path / "file").write_text("x")
    check_wording(get_refusal("--out", tmp_path / "file"), f"{tmp_path / 'file'}:", "--out")
    assert "cannot write (Not a directory)" in get_refusal("--out", tmp_path / "file" / "below")


def test_a_recipe_that_is_a_folder(command, tmp_path):
    tiny(tmp_path)
    check_wording(command("run", tmp_path).message, f"{tmp_path}:", "tiny.toml")


def test_a_recipe_that_is_binary(command, tmp_path):
    (tmp_path / "recipe.toml").write_bytes(bytes(range(128, 256)))
    assert "recipe" in command("run", tmp_path / "recipe.toml").message


def test_a_recipe_that_is_no_toml_names_the_line(command, tmp_path):
    message = command("run", tiny(tmp_path, TINY.replace('source = "qaa"', "source = qaa"))).message
    assert message.startswith("tiny.toml: invalid TOML (Invalid value (at line 7, column 10)")


def test_a_recipe_that_is_not_there(command, tmp_path):
    message = command("run", tiny(tmp_path).with_name("tiney.toml")).message
    assert "'tiny.toml'?" in message


def test_a_report_on_nothing(command, tmp_path):
    assert "nothing" in command("report", tmp_path).message
    assert "nothing" in command("report", tmp_path / "lost").message


def test_runs_that_are_not_there(command, tmp_path, tiny_runs):
    message = command("list", "runs", "--in", tmp_path / "lost").message
    check_wording(message, f"{tmp_path / 'lost'}:", "--in")
    assert "'zzz'" in command("show", "zzz", "--in", tiny_runs).message
    assert f"{tiny_runs}:" in command("show", "", "--in", tiny_runs).message
    assert f"{tmp_path}:" in command("predict", tmp_path, "-").message


def test_a_prediction_from_what_has_no_head(command, tiny_runs):
    paths = sorted(tiny_runs.glob("*/record.json"))
    measurement = next(path for path in paths if json.loads(path.read_text())["kind"] == "measure")
    assert "fine-tune" in command("predict", measurement.parent, "-").message


def test_a_prediction_of_what_is_no_text(command, tiny_runs, tmp_path):
    model = next(path for path in sorted(tiny_runs.glob("*/model"))).parent
    (tmp_path / "text").write_bytes(b"a\xff\xfe")
    assert "text:1:" in command("predict", model, tmp_path / "text").message
    assert "no such file" in command("predict", model, tmp_path / "lost").message
    shutil.copytree(model, tmp_path / model.name)
    shutil.rmtree(tmp_path / model.name / "model")
    assert isinstance(command("predict", tmp_path / model.name, "-").message, str)
    assert ModelError.exit_code == 2


def test_a_place_for_a_recipe_that_is_none(command, tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    for words in (("init",), ("recipes", "copy", "quickstart", "--to")):
        for force in ((), ("--force",)):
            message = command(*words, tmp_path / "folder", *force).message
            assert message.startswith(f"{tmp_path / 'folder'}: ")
        assert (
            f"{tmp_path / 'file' / 'r.toml'}: cannot write"
            in command(*words, tmp_path / "file/r.toml").message
        )


def test_a_file_of_the_system_that_nobody_expects_is_named(command, tmp_path, monkeypatch):
    def get_refusal(self, *_, **__):
        raise PermissionError(errno.EACCES, "Permission denied", str(self))

    monkeypatch.setattr(Path, "glob", get_refusal)
    message = command("list", "runs", "--in", tmp_path).message
    assert message.startswith(f"{tmp_path}: Permission denied.")


@pytest.mark.parametrize(
    "words", [("run", "quickstart", "--set"), ("search", "quickstart", "--over"), ("list",)]
)
def test_a_value_of_70000_letters_is_not_repeated(command, words):
    assert len(command(*words, "x" * 70_000).message) < 600
