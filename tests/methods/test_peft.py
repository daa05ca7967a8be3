"""Parameter-efficient fine-tuning changes nothing before the first step, and then only its weights."""

import json
from copy import deepcopy
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import in_translation
import isogloss
from isogloss.core.errors import ConfigError, ModelError
from isogloss.core.rows.models import Contributions
from isogloss.core.run_parts import Modules
from isogloss.diagnostics.setting import MeasureSetting, Subject
from isogloss.encoders import FAMILIES
from isogloss.encoders.added.language_modules import add_modules
from isogloss.encoders.added.module_settings import KINDS as KINDS_OF_MODULES
from isogloss.encoders.added.sparse_deltas import encoder_weights
from isogloss.encoders.families import family_of
from isogloss.encoders.family import head_parameters
from isogloss.encoders.loading import load_whole, unmerge
from isogloss.encoders.saving import save_model
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.landscapes.diagnostic import Interpolation
from isogloss.features.module_swap.freezing import PartFreezing
from isogloss.features.peft.methods import IA3, DoRA, LayerFreezing, LoRA, LotteryTicket, TaskAdapter
from isogloss.features.peft.peft_adapters import merge_adapters
from isogloss.methods import PEFT
from isogloss.methods.plain import Bilingual, SourceOnly
from isogloss.tasks import TASKS
from isogloss.training.evaluation import evaluation
from isogloss.training.memory import shape_of
from isogloss.training.parallel_text import BitextSentences
from isogloss.training.setting import PeftSetting
from says import says
from trained import equal, weights

KINDS = {
    "lora": LoRA(rank=4),
    "dora": DoRA(rank=4),
    "ia3": IA3(),
    "lt-sft": LotteryTicket(share=0.1),
    "adapter": TaskAdapter(reduction=4),
    "layer-freezing": LayerFreezing(layers=1),
    "part-freezing": PartFreezing(learned=("layer 2", "layer 3 feed-forward")),
}
ADDED = "task_adapter"
"""In the names of the weights that one kind adds and cannot merge."""

EACH = pytest.mark.parametrize("name", KINDS)


def test_every_kind_is_held_to_these_laws():
    assert KINDS.keys() == PEFT.keys()
    assert all(type(kind) is PEFT[name] for name, kind in KINDS.items())


def put_into(peft, model, folder):
    return peft.prepare(
        PeftSetting(model=model, train_all=lambda: stir(deepcopy(model)), folder=folder, seed=0)
    )


def stir(model):
    """Train without training: what may change is changed at random."""
    draw = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.requires_grad:
                weight.add_(0.1 * torch.empty_like(weight).normal_(generator=draw))
    return model


def score_model(model, encoder):
    setting = in_translation.setting("upos", encoder, Path(), epochs=1)
    return evaluation(setting.task, setting.dev("en"), load_tokenizer(encoder), setting.optimization).scores(
        model
    )


@pytest.mark.each_value
@EACH
def test_before_the_first_step_no_score_differs_to_the_bit(name, encoder_folder, tmp_path):
    model = TASKS["upos"].head(encoder_folder, seed=0)
    weights_before = weights(model)
    scores = score_model(model, encoder_folder)
    put_into(KINDS[name], model, tmp_path)
    now = score_model(model, encoder_folder)
    assert all(torch.equal(left, right) for left, right in zip(now, scores, strict=True))
    KINDS[name].finish(model, str(encoder_folder))
    fields = {key: weight for key, weight in weights(model).items() if ADDED not in key}
    assert fields.keys() == weights_before.keys()
    assert all(torch.allclose(field, weights_before[key], atol=1e-6) for key, field in fields.items())


@EACH
def test_what_is_kept_scores_as_it_did_in_training_where_weights_are_tied(name, mt5_folder, tmp_path):
    model = TASKS["upos"].head(mt5_folder, seed=0)
    put_into(KINDS[name], model, tmp_path)
    trained_scores = score_model(stir(model), mt5_folder)
    KINDS[name].finish(model, str(mt5_folder))
    for score, trained_score in zip(score_model(model, mt5_folder), trained_scores, strict=True):
        torch.testing.assert_close(score, trained_score, rtol=1e-4, atol=1e-4)


@pytest.fixture
def stirred_adapters(tmp_path):
    def adapt_model(peft, encoder, task="upos"):
        model = TASKS[task].head(encoder, seed=0)
        put_into(peft, model, tmp_path)
        difference = peft.finish(stir(model), str(encoder))
        save_model(model, load_tokenizer(encoder), tmp_path / "run" / "model", difference=difference)
        return model, tmp_path / "run" / "model"

    return adapt_model


@pytest.mark.each_value
@EACH
def test_a_model_of_any_family_is_loaded_as_it_was_saved_to_the_bit(name, encoder_folder, stirred_adapters):
    model, folder = stirred_adapters(KINDS[name], encoder_folder)
    assert equal(TASKS["upos"].head(folder, seed=5), model)


@pytest.mark.each_value
@EACH
@pytest.mark.parametrize("task", TASKS)
def test_a_model_of_any_task_is_loaded_as_it_was_saved_to_the_bit(name, task, bert_folder, stirred_adapters):
    model, folder = stirred_adapters(KINDS[name], bert_folder, task)
    assert equal(TASKS[task].head(folder, seed=5), model)


@pytest.fixture(scope="module")
def train_adapters(tmp_path_factory, bert_folder):
    @cache
    def train(method, peft):
        setting = in_translation.setting("upos", bert_folder, tmp_path_factory.mktemp("work"))
        return method.train(replace(setting, peft=peft))

    return train


OWN = {
    "lora": ("query", "value"),
    "dora": ("query", "value"),
    "ia3": ("key", "value", "output.dense"),
    "adapter": (ADDED,),
    "layer-freezing": ("layer.1", "layer.2"),
    "part-freezing": ("layer.1", "layer.2.intermediate", "layer.2.output"),
}


@pytest.mark.parametrize("name", OWN)
def test_weights_around_the_adapters_stay_to_the_bit(name, train_adapters, bert_folder):
    weights_before = weights(TASKS["upos"].head(bert_folder, seed=0))
    result = weights(train_adapters(SourceOnly(), KINDS[name]))
    moved_keys = {
        key
        for key in result
        if key not in weights_before or not torch.equal(result[key], weights_before[key])
    }
    assert moved_keys and all(
        key.startswith("classifier") or any(item in key for item in OWN[name]) for key in moved_keys
    )


@pytest.mark.slow
def test_of_the_weights_of_a_ticket_those_that_changed_most_move_and_no_others(train_adapters, bert_folder):
    encoder_weights_before = encoder_weights(TASKS["upos"].head(bert_folder, seed=0))
    whole_encoder_weights, result = (
        encoder_weights(train_adapters(SourceOnly(), item).model) for item in (None, KINDS["lt-sft"])
    )
    changes = torch.cat(
        [
            (whole_encoder_weights[name] - encoder_weights_before[name]).abs().flatten()
            for name in encoder_weights_before
        ]
    )
    moved_tensor = torch.cat(
        [(result[name] != encoder_weights_before[name]).flatten() for name in encoder_weights_before]
    )
    assert 0 < moved_tensor.sum() <= round(0.1 * len(moved_tensor))
    assert (
        changes[moved_tensor].min()
        >= changes.sort(descending=True).values[round(0.1 * len(moved_tensor)) - 1]
    )


@pytest.mark.nightly
@pytest.mark.slow
def test_a_ticket_of_all_weights_is_the_plain_training_to_the_bit(train_adapters):
    plain_training = train_adapters(SourceOnly(), None)
    ticket = train_adapters(SourceOnly(), LotteryTicket(share=1.0))
    assert equal(plain_training, ticket)
    assert plain_training.rows == ticket.rows


def test_frozen_layers_are_the_lowest_and_the_embeddings_and_no_others(encoder_folder, tmp_path):
    for layers in (0, 1, 2):
        model = TASKS["upos"].head(encoder_folder, seed=0)
        family = family_of(model)
        put_into(LayerFreezing(layers=layers), model, tmp_path)
        trained_ids = {id(parameter) for parameter in model.parameters() if parameter.requires_grad}
        blocks = [
            [parameter for _, parameter in site.parameters(model, "block")] for site in family.sites(model)
        ]
        assert not trained_ids & {id(parameter) for parameter in family.embeddings(model).parameters()}
        for index, block in enumerate(blocks):
            assert all((id(item) in trained_ids) == (index >= layers) for item in block)
        assert all(id(head_parameter) in trained_ids for head_parameter in head_parameters(model).values())


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS_OF_MODULES)
def test_the_modules_of_languages_in_frozen_layers_are_frozen_too(kind, bert_folder, tmp_path):
    encoder = tmp_path / "encoder"
    model = load_whole(bert_folder)
    add_modules(model, Modules(kind=kind), ("en", "de"), seed=0)
    save_model(model, load_tokenizer(bert_folder), encoder)
    for layers in (0, 2, 3):
        model = TASKS["upos"].head(encoder, seed=0)
        put_into(LayerFreezing(layers=layers), model, tmp_path)
        trained_names = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
        inside = {int(name.partition("layer.")[2][0]) for name in trained_names if "layer." in name}
        assert inside == set(range(layers, 3))
        assert not any("embeddings" in name for name in trained_names)
        difference = LayerFreezing(layers=layers).finish(stir(model), str(encoder))
        folder = tmp_path / str(layers) / "model"
        save_model(model, load_tokenizer(encoder), folder, difference=difference)
        assert equal(TASKS["upos"].head(folder, seed=5), model)


@pytest.mark.parametrize("layers", [0, 2])
def test_freezing_parts_by_name_is_freezing_layers_to_the_bit(layers, train_adapters):
    parts = ("embeddings", *(f"layer {layer}" for layer in range(1, layers + 1)))
    by_layers, by_names = (
        train_adapters(SourceOnly(), kind)
        for kind in (LayerFreezing(layers=layers), PartFreezing(frozen=parts))
    )
    assert equal(by_layers, by_names)
    assert by_layers.rows == by_names.rows


def test_only_learned_parts_and_the_head_move(encoder_folder, tmp_path):
    learned = ("layer 1 attention", "norms")
    model = TASKS["upos"].head(encoder_folder, seed=0)
    parts = isogloss.list_parts(model)
    put_into(PartFreezing(learned=learned), model, tmp_path)
    trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    names = [part for part in parts if part == "layer 1 attention" or part.endswith(" norms")]
    assert trained == {name for part in (*names, "head") for name in parts[part]}


@pytest.mark.parametrize("fields", [{"learned": ("head",)}, {"frozen": ("encoder",)}])
def test_a_probe_trains_the_head_alone(encoder_folder, tmp_path, fields):
    model = TASKS["upos"].head(encoder_folder, seed=0)
    head = set(isogloss.list_parts(model)["head"])
    probe = PartFreezing(**fields)
    put_into(probe, model, tmp_path)
    assert {name for name, parameter in model.named_parameters() if parameter.requires_grad} == head
    assert probe.trained(shape_of(model.config)) == 0


WRONG_PARTS = {
    "both": ({"frozen": ("norms",), "learned": ("norms",)}, ("frozen", "learned")),
    "none": ({"frozen": ()}, ("frozen", "empty")),
    "the head": ({"frozen": ("head",)}, ("frozen", "'head'")),
    "a typing mistake": ({"learned": ("atention",)}, ("learned", "'attention'")),
}


@pytest.mark.parametrize("case", WRONG_PARTS)
def test_parts_that_cannot_be_frozen_are_refused(case):
    fields, facts = WRONG_PARTS[case]
    with says(ConfigError, "part-freezing", *facts):
        PartFreezing(**fields)


def test_more_frozen_layers_than_there_are_are_refused(bert_folder, tmp_path):
    model = TASKS["upos"].head(bert_folder, seed=0)
    with pytest.raises(ConfigError, match=r"layers: .*7.*encoder.*3"):
        put_into(LayerFreezing(layers=7), model, tmp_path)


def test_modules_that_a_family_has_not_are_refused():
    with pytest.raises(ConfigError, match=r"modules: query: .*modernbert"):
        LoRA(modules=("query",)).check(FAMILIES["modernbert"])


# Paths between models with adapters: merged weights, or the adapters themselves.


@pytest.fixture(scope="module")
def ends(train_adapters, bert_folder, tmp_path_factory):
    """Two models whose adapters had the same start, as runs save them."""
    folders = []
    for method in (SourceOnly(), Bilingual()):
        training = train_adapters(method, KINDS["lora"])
        folder = tmp_path_factory.mktemp("end") / "run" / "model"
        folder.parent.mkdir()
        save_model(training.model, training.tokenizer, folder, difference=training.difference)
        folders.append(folder)
    return folders


def load_head(folder):
    return TASKS["upos"].head(folder, seed=0)


def load_unmerged(folder):
    model = load_head(folder)
    unmerge(model, folder)
    return model


def follow_path(ends, part, alphas=(0.0, 0.5, 1.0)):
    """Return the weights that a path passes, merged."""
    result = []

    def note_model(model):
        copy = deepcopy(model)
        if part == "factors":
            merge_adapters(copy)
        result.append(weights(copy))
        return 0.0

    setting = MeasureSetting(
        subjects=tuple(Subject(id=str(end), rows=(), folder=end) for end in ends),
        languages=("en",),
        split="dev",
        source=("en",),
        load=lambda item: load_head(item.folder),
        load_factors=lambda item: load_unmerged(item.folder),
        evaluation=lambda _: SimpleNamespace(
            metric="accuracy",
            examples=[SimpleNamespace(id="0")],
            gold=[()],
            score_by_example=lambda model: (note_model(model), Contributions([0.0], [1.0]), [()]),
        ),
        encoder=lambda _: None,
        bitext=lambda _: [],
        parallel=BitextSentences(lambda _: []),
    )
    rows = Interpolation(alphas=alphas, part=part).measure(setting)
    assert {row.part for row in rows} == {part}
    return result


def test_a_path_of_merged_weights_ends_at_the_models_to_the_bit(ends):
    first_path, middle_path, last_path = follow_path(ends, "all")
    assert equal(first_path, load_head(ends[0])) and equal(last_path, load_head(ends[1]))
    assert all(
        torch.equal(middle_path[name], torch.lerp(first_path[name], last_path[name], 0.5))
        for name in middle_path
    )


@pytest.mark.nightly
@pytest.mark.slow
def test_a_path_of_factors_ends_at_the_models_and_goes_another_way(ends):
    merged_path = follow_path(ends, "all")
    factors = follow_path(ends, "factors")
    for item, factor in zip((merged_path[0], merged_path[2]), (factors[0], factors[2]), strict=True):
        assert equal(item, factor)  # Merged as they are when loaded: to the bit.
    name = "bert.encoder.layer.0.attention.self.query.weight"
    a, b = (
        [
            load_unmerged(end).get_parameter(name.replace("weight", f"lora_{side}.default.weight"))
            for end in ends
        ]
        for side in "AB"
    )
    difference_before = load_head(ends[0]).get_parameter(name) - 2 * b[0] @ a[0]  # alpha / rank = 2
    expected = difference_before + 2 * (sum(b) / 2) @ (sum(a) / 2)
    assert torch.allclose(factors[1][name], expected, atol=1e-5)
    assert not torch.allclose(factors[1][name], merged_path[1][name], atol=1e-7)


def test_models_without_adapters_have_no_factors(bert_folder):
    with pytest.raises(ModelError, match="adapters"):
        unmerge(load_head(bert_folder), bert_folder)


def test_modules_with_language_adapters_after_them_are_refused(bert_folder, tmp_path):
    model = TASKS["upos"].head(bert_folder, seed=0)
    add_modules(model, Modules(kind="adapter"), ("en", "de"), seed=0)
    put_into(LoRA(), deepcopy(model), tmp_path)
    with pytest.raises(ConfigError, match=r"modules: attention_output: .*encoder"):
        put_into(LoRA(modules=("attention_output",)), model, tmp_path)


def test_an_encoder_of_the_hub_is_named_by_its_commit(bert_folder, hub_cache, stirred_adapters):
    commit = hub_cache("someone/bert", bert_folder)
    model, folder = stirred_adapters(LoRA(), f"someone/bert@{commit}")
    data = json.loads((folder / "adapter_config.json").read_text())
    assert (data["base_model_name_or_path"], data["revision"]) == ("someone/bert", commit)
    assert equal(TASKS["upos"].head(folder, seed=5), model)


def test_without_the_library_the_extra_is_named(monkeypatch):
    monkeypatch.setattr("isogloss.features.peft.adapted_modules.find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r'peft lora: .*"isogloss\[peft\]"'):
        LoRA().check(FAMILIES["bert"])
