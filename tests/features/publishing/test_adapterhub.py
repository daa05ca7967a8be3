"""Adapters of AdapterHub: outputs equal the outputs of its library, which wrote the files in adapterhub."""

import json
import pickle
from pathlib import Path
from shutil import copytree
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
import torch
from safetensors.torch import load_file

from isogloss.core.errors import ConfigError, ModelError
from isogloss.core.run_parts import Modules
from isogloss.encoders.added.active_language import active_language
from isogloss.encoders.added.language_modules import add_modules, modules_of
from isogloss.encoders.loading import load_masked_lm
from isogloss.features.publishing.adapterhub import (
    ADAPTER_CONFIG,
    check_writable,
    read_hub_adapter,
    with_hub_adapters,
    write_hub_adapters,
)
from networks import refusal
from says import check_wording, says

MADE = Path(__file__).with_name("adapterhub")
KINDS = [
    *(("bert", kind) for kind in ("pfeiffer", "pfeiffer-invertible", "houlsby", "houlsby-invertible")),
    *(("bert", "mad-x-2"), ("bert", "task")),
    *(("xlm-roberta", kind) for kind in ("pfeiffer-invertible", "houlsby-invertible", "mad-x-2", "task")),
]


def attach_adapters(family, kind, *, task=False, leave_out=(), language="en"):
    languages = {language: read_hub_adapter(MADE / family / kind)}
    task_adapter = read_hub_adapter(MADE / family / "task") if task else None
    return with_hub_adapters(str(MADE / family / "base"), languages, task_adapter, leave_out)


def load_expected(family):
    return load_file(MADE / family / "expected.safetensors")


def output(model, ids):
    with torch.no_grad(), active_language(model, "en"):
        return model(ids, output_hidden_states=True)


@pytest.fixture
def alter_config(tmp_path):
    """Copy an adapter folder with other values in its configuration."""

    def alter(kind="pfeiffer", name=ADAPTER_CONFIG, **values):
        folder = Path(copytree(MADE / "bert" / kind, tmp_path / kind))
        body = json.loads((folder / name).read_text())
        body["config"] |= values
        (folder / name).write_text(json.dumps(body | {k: v for k, v in values.items() if k in body}))
        return folder

    return alter


@pytest.mark.each_value
@pytest.mark.parametrize(("family", "kind"), KINDS)
def test_a_languages_adapter_gives_the_librarys_states_and_scores(family, kind):
    theirs = load_expected(family)
    model = attach_adapters(family, kind)
    ours = output(model, theirs["ids"])
    torch.testing.assert_close(ours.hidden_states[-1], theirs[f"{kind}/states"], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(ours.logits, theirs[f"{kind}/scores"], atol=1e-5, rtol=1e-5)
    plain_logits = load_masked_lm(MADE / family / "base")(theirs["ids"]).logits
    assert not torch.allclose(ours.logits, plain_logits, atol=0.1)


@pytest.mark.parametrize(("family", "kind"), [entry for entry in KINDS if "task" not in entry])
def test_a_task_stacks_on_a_language_as_in_the_library(family, kind):
    theirs = load_expected(family)
    model = attach_adapters(family, kind, task=True)
    tags = output(model, theirs["ids"]).logits
    torch.testing.assert_close(tags, theirs[f"{kind}/tags"], atol=1e-5, rtol=1e-5)
    assert tuple(model.config.id2label.values()) == ("DET", "NOUN", "VERB")


@pytest.mark.parametrize(("family", "kind"), KINDS)
def test_what_is_written_is_what_was_read_to_the_bit(family, kind, tmp_path):
    folders = write_hub_adapters(attach_adapters(family, kind, task=True), tmp_path, "me/base@c0ffee")
    assert folders == ["en", "task"]
    for name, theirs in (("en", kind), ("task", "task")):
        ours, original = (
            read_hub_adapter(folder / name) for folder, name in ((tmp_path, name), (MADE / family, theirs))
        )
        assert ours.config == original.config
        assert ours.weights.keys() == original.weights.keys()
        assert all(torch.equal(ours.weights[key], weight) for key, weight in original.weights.items())
    assert ours.head == original.head and len(ours.head_weights) == 2
    assert all(map(torch.equal, ours.head_weights, original.head_weights))
    assert json.loads((tmp_path / "en" / ADAPTER_CONFIG).read_text())["model_name"] == "me/base@c0ffee"


def test_the_last_layers_adapter_can_be_left_out_as_in_mad_x_2():
    theirs = load_expected("bert")
    plain_adapters = attach_adapters("bert", "pfeiffer-invertible", leave_out=(-1,))
    assert modules_of(plain_adapters).modules.leave_out == (-1,)
    first_item, last_value = (
        torch.equal(
            output(plain_adapters, theirs["ids"]).hidden_states[layer],
            output(attach_adapters("bert", "pfeiffer-invertible"), theirs["ids"]).hidden_states[layer],
        )
        for layer in (1, 2)
    )
    assert first_item and not last_value


def test_a_pickle_is_read_only_where_it_is_asked_for():
    folder = MADE / "bert" / "pickled"
    assert "pytorch_adapter.bin:" in refusal(read_hub_adapter, folder)
    weights = read_hub_adapter(folder, pickle=True).weights
    original = read_hub_adapter(MADE / "bert" / "pfeiffer-invertible").weights
    assert weights.keys() == original.keys()
    assert all(torch.equal(weights[name], weight) for name, weight in original.items())


class Calls:
    def __reduce__(self):
        return (Path.touch, (Path("was_run"),))


def test_a_pickle_with_more_than_weights_runs_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = Path(copytree(MADE / "bert" / "pickled", tmp_path / "evil"))
    (folder / "pytorch_adapter.bin").write_bytes(pickle.dumps({"weight": Calls()}, protocol=2))
    with pytest.raises(ModelError, match="weights"):
        read_hub_adapter(folder, pickle=True)
    assert not (tmp_path / "was_run").exists()


@pytest.mark.parametrize("weights", [{1: torch.zeros(1)}, {"x": 3}, [1, 2], {(1, 2): "x"}])
def test_a_pickle_of_anything_but_named_tensors_is_refused(tmp_path, weights):
    folder = Path(copytree(MADE / "bert" / "pickled", tmp_path / "odd"))
    torch.save(weights, folder / "pytorch_adapter.bin")
    with pytest.raises(ModelError, match=r"pytorch_adapter.bin:"):
        read_hub_adapter(folder, pickle=True)


def test_a_pickle_that_unpacks_to_far_more_is_refused_before_it_is_read(tmp_path):
    folder = Path(copytree(MADE / "bert" / "pickled", tmp_path / "packed"))
    path = folder / "pytorch_adapter.bin"
    with ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, bytes(64 << 20) if name.endswith("data/0") else content)
    assert path.stat().st_size < 1 << 20
    with pytest.raises(ModelError, match=r"pytorch_adapter.bin: .*67,"):
        read_hub_adapter(folder, pickle=True)


def test_a_folder_without_such_adapters_is_described(tmp_path):
    assert "adapter_config.json" in refusal(read_hub_adapter, tmp_path)
    (tmp_path / ADAPTER_CONFIG).write_text('{"peft_type": "LORA"}')
    assert "encoder" in refusal(read_hub_adapter, tmp_path)


def test_old_names_of_weights_are_read(tmp_path):
    folder = Path(copytree(MADE / "bert" / "pickled", tmp_path / "old"))
    path = folder / "pytorch_adapter.bin"
    old_weights = {
        name.replace(".adapters.", ".layer_text_lang_adapters.").replace(
            "invertible_adapters", "invertible_lang_adapters"
        ): weight
        for name, weight in torch.load(path, weights_only=True).items()
    }
    torch.save(old_weights, path)
    weights = read_hub_adapter(folder, pickle=True).weights
    assert weights.keys() == read_hub_adapter(MADE / "bert" / "pfeiffer-invertible").weights.keys()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"is_parallel": True}, "config.is_parallel:"),
        ({"scaling": "learned"}, "config.scaling"),
        ({"inv_adapter": "glow"}, "config.inv_adapter: Input should be 'nice'"),
        ({"reduction_factor": {"default": 16}}, "config.reduction_factor"),
        ({"non_linearity": "leakyrelu"}, "config.non_linearity"),
    ],
)
def test_what_has_no_equal_here_is_refused(alter_config, values, message):
    assert message in refusal(read_hub_adapter, alter_config(**values))


def test_a_head_without_equal_is_refused(alter_config):
    assert "type tagging" in refusal(read_hub_adapter, alter_config("task", "head_config.json", layers=3))


def test_adapters_of_another_encoder_or_kind_are_refused(alter_config):
    base = str(MADE / "bert" / "base")
    other_adapter = read_hub_adapter(MADE / "xlm-roberta" / "mad-x-2")
    assert "xlm-roberta" in refusal(with_hub_adapters, base, {"en": other_adapter}, None)
    wide = read_hub_adapter(alter_config(reduction_factor=2))
    assert "shape (4,)" in refusal(with_hub_adapters, base, {"en": wide}, None)
    two = {"en": read_hub_adapter(MADE / "bert" / "houlsby"), "sw": wide}
    check_wording(refusal(with_hub_adapters, base, two, None, error=ConfigError), " sw ", " en ")


def test_a_tasks_adapter_before_the_norm_is_refused_on_languages_behind_it(alter_config):
    task = read_hub_adapter(alter_config("task", original_ln_before=False))
    languages = {"en": read_hub_adapter(MADE / "bert" / "mad-x-2")}
    message = refusal(with_hub_adapters, str(MADE / "bert" / "base"), languages, task, error=ConfigError)
    assert "states behind" in message


@pytest.mark.parametrize("kind", ["pfeiffer-invertible", "houlsby-invertible"])
def test_a_languages_adapter_is_not_taken_for_a_tasks(kind):
    folder = MADE / "bert" / kind
    with says(ModelError, f"{folder}:", "inv_adapter", "a language's", f"--language CODE={folder}"):
        with_hub_adapters(str(MADE / "bert" / "base"), {}, read_hub_adapter(folder))


def test_only_adapters_are_written():
    model = load_masked_lm(MADE / "bert" / "base")
    check_wording(refusal(check_writable, model, error=ConfigError), "--adapter:")
    add_modules(model, Modules(kind="attention"), ("en", "sw"), seed=0)
    assert "attention modules" in refusal(check_writable, model, error=ConfigError)
