"""The hub's client is replaced here: no network."""

import errno
from pathlib import Path

import huggingface_hub
import pytest
from huggingface_hub.errors import LocalEntryNotFoundError, RepositoryNotFoundError

from isogloss.core.errors import ModelError, StorageError
from isogloss.encoders.loading import load_encoder_config, load_model, load_tokenizer


class Hub:
    """Stands for ``snapshot_download``: a cache, and what asking the network gives."""

    def __init__(self, cached=None, online=None):
        self.cached, self.online, self.asked = cached, online, []

    def __call__(self, name, *, allow_patterns, ignore_patterns=None, local_files_only=False):
        self.asked.append((name, local_files_only))
        found = self.cached if local_files_only else self.online
        if found is None:
            raise LocalEntryNotFoundError("not there")
        if isinstance(found, Exception):
            raise found
        return str(found)


@pytest.fixture
def hub(monkeypatch):
    def make(**given):
        made = Hub(**given)
        monkeypatch.setattr(huggingface_hub, "snapshot_download", made)
        return made

    return make


def refused(kind):
    error = kind.__new__(kind)  # Its constructor wants a whole HTTP response.
    Exception.__init__(error, "refused")
    return error


def message(source, error=ModelError):
    with pytest.raises(error) as caught:
        load_model(source)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_is_in_the_cache_is_used_without_the_network(hub, bert_folder):
    asked = hub(cached=bert_folder).asked
    for load in (load_model, load_tokenizer, load_encoder_config):
        load("some/encoder")
    assert asked == [("some/encoder", True)] * 3


def test_what_is_not_in_the_cache_is_downloaded(hub, bert_folder):
    asked = hub(online=bert_folder).asked
    assert load_model("encoder").config.model_type == "bert"
    assert asked == [("encoder", True), ("encoder", False)]


def test_half_a_download_is_taken_up_again(hub, bert_folder, tmp_path):
    (tmp_path / "config.json").write_bytes((bert_folder / "config.json").read_bytes())
    hub(cached=tmp_path, online=bert_folder)
    assert load_model("some/encoder").config.model_type == "bert"


def test_weights_the_hub_has_only_as_pickle_are_answered_with_the_way_to_convert_them(
    hub, bert_folder, tmp_path
):
    """As of mDeBERTa-v3: its folder comes without model.safetensors, since pickle is not downloaded."""
    (tmp_path / "config.json").write_bytes((bert_folder / "config.json").read_bytes())
    (tmp_path / "spm.model").write_bytes(b"")
    hub(online=tmp_path)
    text = message("some/encoder")
    assert "the Hugging Face hub has config.json, spm.model, which is not enough." in text
    assert "AutoModel.from_pretrained('some/encoder').save_pretrained('FOLDER')" in text
    assert text.endswith("Then give FOLDER.")


def test_unreachable_hubs_are_answered_with_the_way_round(hub):
    hub()
    assert message("some/encoder") == (
        "some/encoder: not found locally, and the Hugging Face hub cannot be reached. "
        "On a connected machine: hf download some/encoder --local-dir FOLDER; "
        "then give that folder instead of the name."
    )


def test_unknown_names_are_told_from_unreachable_hubs(hub):
    hub(online=refused(RepositoryNotFoundError))
    assert "some/encoder: neither a folder here nor a model on the Hugging Face hub" in message(
        "some/encoder"
    )


def test_interrupted_downloads_resume(hub):
    hub(online=ConnectionResetError("peer\nwent away"))
    text = message("some/encoder")
    assert "the download was interrupted (ConnectionResetError: peer went away)" in text
    assert "Run the same command again: it resumes." in text


def test_a_disk_that_fills_up_is_a_storage_error(hub):
    hub(online=OSError(errno.ENOSPC, "No space left on device"))
    assert "No space left on device" in message("some/encoder", StorageError)


@pytest.mark.parametrize("source", ["/nowhere/encoder", "./nowhere", "a/b/c", Path("some/encoder"), "sp ace"])
def test_paths_are_never_asked_of_the_hub(hub, source):
    asked = hub().asked
    assert "no such folder" in message(source)
    assert asked == []


def test_a_name_beside_other_folders_is_a_path(hub, tmp_path, monkeypatch):
    asked = hub().asked
    (tmp_path / "runs" / "encoder").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert "runs/encodr: no such folder. Did you mean 'encoder'?" in message("runs/encodr")
    assert asked == []
