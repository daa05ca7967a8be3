"""Unusable folders and hub names, and their messages. The hub's client is replaced, without network."""

import errno
import json
import shutil
import sys
from pathlib import Path

import huggingface_hub
import pytest
from huggingface_hub.errors import LocalEntryNotFoundError, RepositoryNotFoundError, RevisionNotFoundError

from isogloss.core.errors import StorageError
from isogloss.encoders.folders import hub_commit, load_encoder_config
from isogloss.encoders.loading import load_masked_lm, load_model
from isogloss.encoders.saving import save_model
from isogloss.encoders.tokenizers import load_tokenizer
from networks import change_config, refusal, same, tagger
from says import check_wording


@pytest.fixture
def folder(bert_folder, tmp_path):
    """A copy of the BERT folder that a test may break."""
    return Path(shutil.copytree(bert_folder, tmp_path / "encoder"))


def test_missing_folders_are_named_with_the_nearest(folder):
    for source in (folder.with_name("encodr"), str(folder.with_name("encodr"))):
        text = refusal(load_model, source)
        assert text.startswith(f"{source}:")
        assert "model.safetensors" in text


def test_files_and_empty_folders_are_no_model_folders(folder, tmp_path):
    (tmp_path / "empty").mkdir()
    assert "(it is empty)" in refusal(load_model, tmp_path / "empty")
    check_wording(refusal(load_model, folder / "config.json"), f"{folder / 'config.json'}:")


@pytest.mark.parametrize("load", [load_model, load_tokenizer, load_encoder_config])
def test_folders_without_config_say_what_was_found(folder, load):
    (folder / "config.json").unlink()
    text = refusal(load, folder)
    assert text.startswith(f"{folder}: no config.json")
    assert "(found: model.safetensors, tokenizer" in text and "save_pretrained" in text


def cut(length):
    return lambda folder: (folder / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes()[:length])


def without_padding(folder):
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "pad_token": None}))


WEIGHTS = "model.safetensors"
BROKEN = {
    "no JSON": (
        lambda folder: (folder / "config.json").write_text("{"),
        load_encoder_config,
        "{folder}/config.json: invalid JSON",
    ),
    "impossible": (
        lambda folder: change_config(folder, hidden_size="large"),
        load_model,
        "{folder}: … AutoConfig (",
    ),
    "unknown architecture": (
        lambda folder: change_config(folder, model_type="gpt2"),
        load_model,
        "the architecture 'gpt2' is not supported. Supported: bert, camembert, deberta-v2, distilbert, "
        "eurobert, gemma3_text, llama, m2m_100, modernbert, mt5, qwen3, rembert, roberta, xlm-roberta, "
        "xlm-roberta-xl, xmod.",
    ),
    "no tokenizer": (
        lambda folder: (folder / "tokenizer.json").unlink(),
        load_tokenizer,
        "no tokenizer (tokenizer.json, vocab.txt, vocab.json, sentencepiece.bpe.model, spm.model) (found: "
        "config.json, model.safetensors, tokenizer_config.json). … "
        "AutoTokenizer.from_pretrained(NAME).save_pretrained('{folder}')",
    ),
    "damaged tokenizer": (
        lambda folder: (folder / "tokenizer.json").write_text("{"),
        load_tokenizer,
        "{folder}: … AutoTokenizer (",
    ),
    "no padding": (without_padding, load_tokenizer, "{folder}: … pad_token"),
    "no weights": (
        lambda folder: (folder / WEIGHTS).unlink(),
        load_model,
        "{folder}: no model.safetensors (found: config.json",
    ),
    "pickle": (
        lambda folder: (folder / WEIGHTS).rename(folder / "pytorch_model.bin"),
        load_masked_lm,
        "{folder}: … (pytorch_model.bin) … from transformers import AutoModelForMaskedLM; "
        "AutoModelForMaskedLM.from_pretrained('{folder}').save_pretrained('{folder}')",
    ),
    "empty weights": (cut(0), load_model, "{folder}/model.safetensors: … header"),
    "half a header": (cut(4), load_model, "{folder}/model.safetensors: … header"),
    "half the weights": (cut(2000), load_model, "{folder}/model.safetensors: … header"),
}


@pytest.mark.parametrize(("change", "load", "message"), BROKEN.values(), ids=BROKEN)
def test_broken_folders_are_refused_with_the_reason_and_what_to_do(folder, change, load, message):
    change(folder)
    facts = message.replace("{folder}", str(folder)).split(" … ")
    result = refusal(load, folder)
    assert [fact for fact in facts if fact not in result] == []


def test_a_config_that_is_no_object_is_named(folder):
    (folder / "config.json").write_text("[]")
    check_wording(refusal(load_encoder_config, folder), f"{folder}/config.json:", "JSON")


CONFIG = "config.json"
TOKENIZER = "tokenizer_config.json"
WRONG = [
    (CONFIG, {"architectures": 9223372036854775808}, "{path}: architectures: "),
    (CONFIG, {"architectures": [[]]}, "{path}: architectures.0: "),
    (CONFIG, {"id2label": [3]}, "{path}: id2label: "),
    (CONFIG, {"id2label": {"0": []}}, "{path}: id2label.0: "),
    (CONFIG, {"num_hidden_layers": 10**9}, "{path}: num_hidden_layers: "),
    (CONFIG, {"hidden_size": [128]}, "{folder}: … Auto"),
    (CONFIG, {"vocab_size": "many"}, "{folder}: … Auto"),
    (CONFIG, {"model_type": ["bert"]}, "{path}: model_type: "),
    (TOKENIZER, {"model_max_length": [512]}, "{folder}: … AutoTokenizer ("),
    ("tokenizer.json", {"model": 3}, "{folder}: … AutoTokenizer ("),
    ("tokenizer.json", {"normalizer": [[]]}, "{folder}: … AutoTokenizer ("),
]


@pytest.mark.parametrize(("name", "values", "message"), WRONG)
def test_values_of_wrong_types_are_refused_in_a_line(folder, name, values, message):
    path = folder / name
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))
    text = refusal(load_model if name == CONFIG else load_tokenizer, folder)
    place, *facts = message.format(path=path, folder=folder).split(" … ")
    assert text.startswith(place)
    assert [fact for fact in facts if fact not in text] == []
    assert text.endswith("again.")
    assert len(text.splitlines()) == 1


@pytest.mark.parametrize("content", [b"{", b"\xff", b"[" * 9999, b'{"a": ' * 999 + b"1" + b"}" * 999])
def test_a_config_that_is_no_json_or_too_deep_is_named(folder, content):
    (folder / CONFIG).write_bytes(content)
    assert refusal(load_encoder_config, folder).startswith(f"{folder / CONFIG}: invalid JSON (")


@pytest.mark.parametrize("shards", [[3], {"a": 3}, {"a": []}])
def test_an_index_of_another_shape_is_named(folder, shards):
    (folder / WEIGHTS).rename(folder / "model-00001-of-00001.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": shards}))
    assert refusal(load_model, folder).startswith(f"{folder}/model.safetensors.index.json: no weight_map")


def test_weights_that_may_not_be_read_are_named(folder, monkeypatch):
    def refuse_access(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("safetensors.safe_open", refuse_access)
    with pytest.raises(StorageError) as error:
        load_model(folder)
    assert f"{folder / WEIGHTS}: cannot read (Permission denied)" in str(error.value)


def test_missing_shards_are_named(folder):
    model = load_masked_lm(folder)
    (folder / "model.safetensors").unlink()
    model.save_pretrained(folder, max_shard_size="20KB")
    assert same(load_masked_lm(folder), model)
    shard = sorted(folder.glob("model-*.safetensors"))[1]
    shard.unlink()
    assert refusal(load_model, folder).startswith(f"{shard}:")


def test_weights_without_the_whole_encoder_are_refused(folder):
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    part = {name: value for name, value in weights.items() if ".layer.2." not in name}
    save_file(part, folder / "model.safetensors", metadata={"format": "pt"})
    assert "weights lack encoder.layer.2." in refusal(load_model, folder)
    text = refusal(tagger, folder)
    assert "the weights lack bert.encoder.layer.2." in text


def test_weights_of_another_shape_are_refused(folder):
    change_config(folder, vocab_size=load_encoder_config(folder).vocab_size + 1)
    for load in (load_masked_lm, load_model, tagger):
        assert "config.json" in refusal(load, folder)


def test_encoders_without_masked_lm_head_are_no_masked_lm(encoder_folder, tmp_path):
    save_model(load_model(encoder_folder), load_tokenizer(encoder_folder), tmp_path / "encoder")
    message = refusal(load_masked_lm, tmp_path / "encoder")
    assert "weights lack " in message and "AutoModelForMaskedLM" in message


def test_code_that_comes_with_a_model_is_not_run(folder):
    change_config(folder, auto_map={"AutoConfig": "evil.Config", "AutoModel": "evil.Model"})
    (folder / "evil.py").write_text("raise SystemExit('ran')")
    assert load_model(folder).config.model_type == "bert"


def test_sentencepiece_that_is_not_installed_is_named(deberta_v2_folder, tmp_path, monkeypatch):
    shutil.copytree(deberta_v2_folder, tmp_path / "encoder")
    model = tmp_path / "encoder" / "spm.model"
    (tmp_path / "encoder" / "tokenizer.json").rename(model)
    monkeypatch.setitem(sys.modules, "sentencepiece.sentencepiece_model_pb2", None)
    message = refusal(load_tokenizer, tmp_path / "encoder")
    assert message.startswith(f"{model}: ")
    assert "pip install sentencepiece protobuf" in message and "tokenizer.json" in message


# The hub


class Hub:
    """Stands for ``snapshot_download``: a cache, and what asking the network gives."""

    def __init__(self, cached=None, online=None):
        self.cached = cached
        self.online = online
        self.asked = []

    def __call__(self, name, *, revision, allow_patterns, ignore_patterns=None, local_files_only=False):
        self.asked.append((name, local_files_only))
        result = self.cached if local_files_only else self.online
        if result is None:
            raise LocalEntryNotFoundError("not there")
        if isinstance(result, Exception):
            raise result
        return str(result)


@pytest.fixture
def hub(monkeypatch):
    def make(**inputs):
        result = Hub(**inputs)
        monkeypatch.setattr(huggingface_hub, "snapshot_download", result)
        return result

    return make


def get_refusal(kind):
    error = kind.__new__(kind)  # Its constructor wants a whole HTTP response.
    Exception.__init__(error, "refused")
    return error


def test_what_is_in_the_cache_is_used_without_the_network(hub, bert_folder):
    arguments = hub(cached=bert_folder).asked
    for load in (load_model, load_tokenizer, load_encoder_config):
        load("some/encoder")
    assert arguments == [("some/encoder", True)] * 3


def test_what_is_not_in_the_cache_is_downloaded(hub, bert_folder):
    arguments = hub(online=bert_folder).asked
    assert load_model("encoder").config.model_type == "bert"
    assert arguments == [("encoder", True), ("encoder", False)]


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
    text = refusal(load_model, "some/encoder")
    assert " has config.json, spm.model, " in text
    assert "AutoModel.from_pretrained('some/encoder').save_pretrained('FOLDER')" in text
    assert text.endswith("Then give FOLDER.")


def test_unreachable_hubs_are_answered_with_the_way_round(hub):
    hub()
    command = "hf download some/encoder --local-dir FOLDER"
    check_wording(refusal(load_model, "some/encoder"), "some/encoder:", command)


def test_unknown_names_are_told_from_unreachable_hubs(hub):
    hub(online=get_refusal(RepositoryNotFoundError))
    assert "some/encoder:" in refusal(load_model, "some/encoder")


def test_an_unknown_revision_is_told_from_an_unknown_name(hub):
    hub(online=get_refusal(RevisionNotFoundError))
    message = refusal(load_model, "some/encoder@v2")
    assert message.startswith("some/encoder@v2: some/encoder ")
    assert "no revision 'v2'" in message and message.endswith("@v2.")


@pytest.mark.parametrize("revision", ["", "@step-20", "@{commit}", "@step--20"])
def test_a_revision_is_a_branch_a_tag_or_a_commit(hub_cache, bert_folder, distilbert_folder, revision):
    commit = hub_cache("some/encoder", bert_folder, revision="step--20" if "--" in revision else "step-20")
    other_hub_cache = hub_cache("some/encoder", distilbert_folder)
    name = f"some/encoder{revision.format(commit=commit)}"
    assert hub_commit(name) == (commit if revision else other_hub_cache)
    assert load_model(name).config.model_type == ("bert" if revision else "distilbert")
    assert load_encoder_config(name).model_type == ("bert" if revision else "distilbert")


def test_a_commit_is_not_known_where_neither_cache_nor_hub_can_be_asked(hub_cache, bert_folder):
    hub_cache("some/encoder", bert_folder)
    assert hub_commit("some/encodr") is None
    assert hub_commit("some/encoder@v2") is None
    text = refusal(load_model, "some/encoder@v2")
    assert text.startswith("some/encoder@v2:")
    assert "hf download some/encoder --revision v2 --local-dir" in text


def test_interrupted_downloads_resume(hub):
    hub(online=ConnectionResetError("peer\nwent away"))
    text = refusal(load_model, "some/encoder")
    assert "(ConnectionResetError:" in text
    assert "command" in text


def test_a_disk_that_fills_up_is_a_storage_error(hub):
    hub(online=OSError(errno.ENOSPC, "No space left on device"))
    assert "No space left on device" in refusal(load_model, "some/encoder", error=StorageError)


@pytest.mark.parametrize(
    "source",
    [
        *("/nowhere/encoder", "./nowhere", "a/b/c", Path("some/encoder"), "sp ace"),
        *("a--b", "a..b@v2", "me/a.git", "-a", "me/a-", "a" * 97),  # Names that the hub's client refuses.
    ],
)
def test_paths_are_never_asked_of_the_hub(hub, source):
    arguments = hub().asked
    assert "no such folder" in refusal(load_model, source)
    assert arguments == []


def test_a_name_beside_other_folders_is_a_path(hub, tmp_path, monkeypatch):
    arguments = hub().asked
    (tmp_path / "runs" / "encoder").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert "runs/encodr:" in refusal(load_model, "runs/encodr")
    assert arguments == []


@pytest.mark.parametrize("name", ["../../elsewhere.safetensors", "/etc/passwd", "a\\b"])
def test_shards_elsewhere_are_refused_by_name(folder, name):
    (folder / "model.safetensors").unlink()
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": {"x": name}}))
    assert f"{index}: the name {name!r} leads out" in refusal(load_model, folder)
    for damaged_texts in (["x"], {"x": 5}):
        index.write_text(json.dumps({"weight_map": damaged_texts}))
        assert f"{index}: no weight_map of names" in refusal(load_model, folder)
