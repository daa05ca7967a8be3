"""Folders of peft, of every method, family and head: isogloss gives peft's numbers, or the true reason."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import transformers

from each import each
from isogloss import IsoglossError, load_encoder, load_model
from isogloss.encoders.added.peft_folders import complete_folder
from isogloss.encoders.loading import unmerge
from says import says

peft = pytest.importorskip("peft")

from peft_cases import (  # noqa: E402  # They need peft.
    QV,
    Case,
    Saved,
    base_of,
    batch_for,
    bert_cases,
    distance,
    family_cases,
    logits_of,
    lora_case,
    save,
    verdict_on,
)

UNREAD = {
    "VB-LoRA": "VBLORA",
    "VB-LoRA of the best vectors": "VBLORA",
    "Lily": "LILY",
    "prefix": "PREFIX_TUNING",
    "prompt": "PROMPT_TUNING",
    "P-tuning": "P_TUNING",
    "cartridge": "CARTRIDGE",
    "UniLoRA": "UNILORA",
    "FRoD": "FROD",
}
"""The methods that are not merged with the same outputs, with peft's names of their types."""

LIKE = {"roberta": "xlm-roberta", "camembert": "xlm-roberta"}
"""Families without a separate tiny encoder, with a family of the same structure."""

Save = Callable[[Case], Saved]


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    """The folder of the models that adapters are trained on."""
    return tmp_path_factory.mktemp("bases")


@pytest.fixture
def saved_case(request, place, tmp_path, monkeypatch) -> Save:
    """Save a case as peft does, and keep what isogloss makes of it away from other tests."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def make(case: Case) -> Saved:
        folder = request.getfixturevalue(f"{LIKE.get(case.family, case.family).replace('-', '_')}_folder")
        if case.family in LIKE:
            folder = _like(folder, case.family, place / case.family)
        return save(case, base_of(case, folder, place), tmp_path / "theirs")

    return make


def _like(folder: Path, family: str, place: Path) -> Path:
    """Make an encoder of a family that is built like another one."""
    if not place.is_dir():
        fields = transformers.AutoConfig.from_pretrained(folder).to_dict()
        del fields["model_type"], fields["architectures"]
        config = transformers.AutoConfig.for_model(family, **fields)
        with torch.random.fork_rng():
            torch.manual_seed(0)
            transformers.AutoModelForMaskedLM.from_config(config).save_pretrained(place)
        transformers.AutoTokenizer.from_pretrained(folder).save_pretrained(place)
    return place


def check(case: Case, saved_folder: Save) -> None:
    """Compare isogloss with peft. Skip what peft itself refuses."""
    try:
        theirs = saved_folder(case)
    except (ValueError, TypeError) as error:
        pytest.skip(f"peft: {error}"[:200])
    verdict = verdict_on(theirs)
    if case.name in UNREAD:
        assert (verdict.kind, UNREAD[case.name] in verdict.details) == ("refused", True), verdict
        assert "cache" not in verdict.details and "damaged" not in verdict.details
    elif theirs.again > theirs.rounding and verdict.kind == "refused":
        assert "saved without" in verdict.details or "weights lack" in verdict.details, verdict
    else:
        assert verdict.kind == "equal", verdict


SAMPLE = (
    lora_case("dense", ["dense"], "bert", "SEQ_CLS"),
    lora_case("classifier", [*QV, "classifier"], "bert", "SEQ_CLS", task_type=None),
    lora_case("all linear", "all-linear", "xlm-roberta", "SEQ_CLS"),
    lora_case("attention and dense", ["Wqkv", "dense"], "modernbert", "TOKEN_CLS"),
    lora_case("all linear", "all-linear", "llama", "SEQ_CLS"),
    lora_case("a layer", QV, "bert", "SEQ_CLS", modules_to_save=["encoder.layer.2"], use_dora=True),
    Case(name="prefix", kind="PrefixTuningConfig", options={"num_virtual_tokens": 4}),
)


@pytest.mark.slow
@pytest.mark.parametrize("case", SAMPLE, ids=str)
def test_a_folder_of_peft_gives_its_numbers(case, saved_case):
    check(case, saved_case)


@pytest.mark.nightly
@pytest.mark.parametrize("case", bert_cases(), ids=str)
def test_every_method_of_peft_gives_its_numbers(case, saved_case):
    check(case, saved_case)


@pytest.mark.nightly
@pytest.mark.parametrize("case", family_cases(), ids=str)
def test_every_family_and_head_gives_its_numbers(case, saved_case):
    check(case, saved_case)


DAMAGED = (
    lora_case("dense", ["dense"], "bert", "SEQ_CLS"),
    lora_case("all linear", "all-linear", "xlm-roberta", "SEQ_CLS"),
    lora_case("all biases", ["Wqkv", "dense"], "modernbert", "TOKEN_CLS", bias="all"),
    lora_case("tokens", ["q_proj"], "llama", "SEQ_CLS", trainable_token_indices=[7, 8]),
    lora_case("no head", QV, "bert", "FEATURE_EXTRACTION"),
)
CHANGES = ("removed", "renamed", "reshaped", "added")


def _damage_weights(weights: dict[str, torch.Tensor], name: str, kind: str) -> dict[str, torch.Tensor]:
    weight = weights[name]
    if kind == "added":
        return {**weights, f"{name}.more": weight.clone()}
    other_items = {other_name: value for other_name, value in weights.items() if other_name != name}
    new_value = {
        "removed": {},
        "renamed": {f"{name}x": weight},
        "reshaped": {name: weight.repeat_interleave(2, -1)},
    }
    return {**other_items, **new_value[kind]}


def check_damage(case: Case, saved_folder: Save, kind: str, *, is_whole: bool) -> None:
    """Damage one weight after another. The error names it."""
    from safetensors.torch import load_file, save_file

    theirs = saved_folder(case)
    path = theirs.folder / "adapter_model.safetensors"
    whole_file = load_file(path)
    names = sorted(whole_file)
    heads = [
        name for name in names if name.removeprefix("base_model.model.").startswith(("classifier", "score"))
    ]
    for name in each([*names[::5], *heads] if is_whole else [names[0], *heads[:1]]):
        save_file(_damage_weights(whole_file, name, kind), path, metadata={"format": "pt"})
        verdict = verdict_on(theirs)
        assert verdict.kind == "refused", (name, verdict)
        assert name.removeprefix("base_model.model.") in verdict.details, (name, verdict)


@pytest.mark.slow
@pytest.mark.parametrize("kind", CHANGES)
def test_a_damaged_weight_is_named(kind, saved_case):
    check_damage(DAMAGED[1], saved_case, kind, is_whole=False)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", CHANGES)
@pytest.mark.parametrize("case", DAMAGED, ids=str)
def test_damaged_weights_of_every_kind_are_named(case, kind, saved_case):
    check_damage(case, saved_case, kind, is_whole=True)


@pytest.mark.slow
@pytest.mark.parametrize("fields", [{"num_hidden_layers": 2}, {"num_hidden_layers": 4}, {"hidden_size": 16}])
def test_adapters_of_another_encoder_are_refused(fields, saved_case, tmp_path):
    theirs = saved_case(SAMPLE[0])
    path = theirs.folder / "adapter_config.json"
    body = json.loads(path.read_text())
    config = transformers.AutoConfig.from_pretrained(body["base_model_name_or_path"])
    config.update(fields)
    transformers.AutoModelForSequenceClassification.from_config(config).save_pretrained(tmp_path / "other")
    transformers.AutoTokenizer.from_pretrained(body["base_model_name_or_path"]).save_pretrained(
        tmp_path / "other"
    )
    path.write_text(json.dumps(body | {"base_model_name_or_path": str(tmp_path / "other")}))
    for load in (load_encoder, load_model):
        with pytest.raises(IsoglossError) as error:
            load(theirs.folder)
        facts = ("adapter_model.safetensors", "encoder.layer.", "base_model_name_or_path")
        assert all(fact in str(error.value) for fact in facts)


@pytest.mark.slow
def test_each_of_two_adapters_is_read(saved_case, tmp_path):
    theirs = saved_case(SAMPLE[0])
    base = json.loads((theirs.folder / "adapter_config.json").read_text())["base_model_name_or_path"]
    model = peft.PeftModel.from_pretrained(
        transformers.AutoModelForSequenceClassification.from_pretrained(base), theirs.folder
    )
    config = replace(SAMPLE[0], options={"target_modules": ["key"], "init_lora_weights": False}).config()
    model.add_adapter("other", config)
    model.save_pretrained(tmp_path / "both")
    batch = batch_for(model.config)
    for name, folder in (("default", tmp_path / "both"), ("other", tmp_path / "both" / "other")):
        model.set_adapter(name)
        with torch.no_grad():
            expected = logits_of(model.eval(), batch)
            ours = logits_of(load_model(folder, precision="float32").network, batch)
        assert distance(ours, expected) < theirs.rounding


@pytest.mark.slow
def test_adapters_of_a_head_are_subtracted_before_they_are_added_again(saved_case):
    theirs = saved_case(SAMPLE[1])
    network = load_model(theirs.folder, precision="float32").network
    unmerge(network, complete_folder(theirs.folder))
    with torch.no_grad():
        assert distance(logits_of(network, theirs.batch), theirs.logits) < theirs.rounding


@pytest.mark.slow
def test_a_type_that_is_not_merged_is_named_first(saved_case):
    theirs = saved_case(SAMPLE[-1])
    for load in (load_encoder, load_model):
        with says(IsoglossError, str(theirs.folder), "PREFIX_TUNING", "LORA"):
            load(theirs.folder)
