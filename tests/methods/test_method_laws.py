"""Laws of every method: neutral settings, seeds, resuming, and encoders with modules or maps of languages."""

from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from functools import cache

import pytest
import torch

import in_translation
from aligned import translations
from isogloss.core.errors import ConfigError
from isogloss.core.identity import derive
from isogloss.core.run_parts import Modules, with_fields
from isogloss.encoders.added.active_language import LanguageMaps, language_maps_of
from isogloss.encoders.added.added_weights import language_parameters, write_language_maps
from isogloss.encoders.added.language_layers import LanguageMap
from isogloss.encoders.added.language_modules import add_modules, modules_of
from isogloss.encoders.loading import load_whole
from isogloss.encoders.saving import save_model
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.adjustment.methods import (
    Centring,
    ContrastiveAlignment,
    CrossLingualAdjustment,
    Procrustes,
)
from isogloss.features.adjustment.term import AlignmentTerm
from isogloss.features.averaging.method import Average
from isogloss.features.consistency.method import Consistency, ModelConsistency
from isogloss.features.multi_task.term import MultiTask
from isogloss.features.peft.methods import LoRA, LotteryTicket, TaskAdapter
from isogloss.features.pretraining.starts import set_dropout
from isogloss.features.regularization.terms import L2SP, R3F
from isogloss.features.self_training.method import SelfTraining
from isogloss.features.x_mixup.method import XMixup
from isogloss.methods import ADJUSTMENTS, AUXILIARY_LOSSES, METHODS, PEFT, PRETRAINING, TRANSLATION_TRAINING
from isogloss.methods.plain import (
    Bilingual,
    FewShot,
    GivenWeights,
    OracleStopping,
    SourceOnly,
    TargetOnly,
    TranslateTrain,
)
from isogloss.recipes.request import parse_change
from isogloss.tasks import TASKS
from isogloss.training import fit
from isogloss.training.batches_ahead import BatchesAhead
from isogloss.training.batching import Bucketed
from isogloss.training.setting import AdjustSetting
from tiny import lines
from trained import equal, interrupt_batches, weights

LANGUAGES = ("en", "de", "fr")
WITH = AlignmentTerm(bitext="x", alpha=1.0, pairs=4)
NEAR = ModelConsistency()
TASKS_TOO = MultiTask(tasks=("upos", "qa"))
SMOOTH = R3F(dropout="separate")
HELD = L2SP(weight=1.0)

SILVER = SelfTraining(threshold=0.0)

FINE_TUNING = {
    "source-only": (SourceOnly(), None, "en"),
    "oracle-stopping": (OracleStopping(), None, "en"),
    "target-only": (TargetOnly(), None, "de"),
    "bilingual": (Bilingual(), None, "en de"),
    "few-shot": (FewShot(shots=24), None, "de"),
    "translate-train": (TranslateTrain(), None, "en de"),
    "consistency": (Consistency(), None, "en de"),
    "x-mixup": (XMixup(layer=1), None, "en de"),
    "self-training": (SILVER, None, "en de"),
    "source-only + alignment-loss": (SourceOnly(), WITH, "en de"),
    "few-shot + alignment-loss": (FewShot(shots=24), WITH, "en de"),
    "x-mixup + alignment-loss": (XMixup(layer=1), WITH, "en de"),
    "consistency + model-consistency": (Consistency(), NEAR, "en de"),
    "source-only + multi-task": (SourceOnly(), TASKS_TOO, "en"),
    "source-only + r3f": (SourceOnly(), SMOOTH, "en"),
    "x-mixup + r3f": (XMixup(layer=1), SMOOTH, "en de"),
    "source-only + l2-sp": (SourceOnly(), HELD, "en"),
    "few-shot + l2-sp": (FewShot(shots=24), HELD, "de"),
}
"""Each method, an auxiliary loss it carries, and the languages it trains on."""

STACKED = ("source-only", "x-mixup", "source-only + alignment-loss", "few-shot")
"""Trainings on a task's adapter that are not left to the slow tests."""

HEAD = ("classifier", "bert.pooler")
"""Beginnings of the names of the head's weights."""

PLAIN = {name: method for name, (method, auxiliary, _) in FINE_TUNING.items() if not auxiliary}

ADJUSTING = {
    "cross-lingual-adjustment": with_fields(CrossLingualAdjustment(), batch_size=8, precision="float32"),
    "contrastive-alignment": with_fields(ContrastiveAlignment(), batch_size=8, stay=1.0, precision="float32"),
    "procrustes": Procrustes(precision="float32"),
    "centring": Centring(precision="float32"),
}
TABLES = {**METHODS, **AUXILIARY_LOSSES, **PEFT, **PRETRAINING, **ADJUSTMENTS, **TRANSLATION_TRAINING}


def test_every_method_is_held_to_these_laws():
    trains_nothing = {GivenWeights.name, Average.name}
    needs_adapters = {name for name, method in METHODS.items() if method.peft_kinds}  # They have own tests.
    assert needs_adapters == {"flare"}
    assert PLAIN.keys() == METHODS.keys() - trains_nothing - needs_adapters
    assert {auxiliary.name for _, auxiliary, _ in FINE_TUNING.values() if auxiliary} == set(AUXILIARY_LOSSES)
    assert ADJUSTING.keys() == ADJUSTMENTS.keys()


@pytest.mark.parametrize("method", TABLES.values(), ids=TABLES)
def test_methods_are_frozen_and_listed_by_their_name(method):
    assert is_dataclass(method) and method.__dataclass_params__.frozen
    assert TABLES[method.name] is method
    hash(method())


IMPOSSIBLE = """
masked-language-modelling steps=-1 block=7 batch_subwords=15 masked=0.0 masked=1.5 temperature=0.0
    translation=-0.1 translation=1.1 vocabulary_lines=0 evaluate_every=0 accumulation=0
meta-learning steps=-1 validation=-0.1 validation=1.0 validation_subwords=15 own_learning_rate=-0.1
    inner_learning_rate=-0.1 accumulation=2 gradient_checkpointing=true optimizer_states="8-bit"
translation-modelling heads=3
"""
"""Values of single fields. Indented lines continue the one before."""


@pytest.mark.parametrize(
    ("name", "change"),
    [
        (name, item)
        for name, *own_part in (str.split(line) for line in lines(IMPOSSIBLE))
        for item in own_part
    ],
)
def test_values_that_cannot_be_are_refused(name, change):
    field, value = parse_change(change)
    with pytest.raises(ConfigError, match=rf"^{name}: {field} cannot be {value}\b"):
        with_fields(TABLES[name](), **{field: value})


def test_every_file_holds_methods_of_the_tables():
    from pathlib import Path

    import isogloss.methods as package

    files = {path.stem for path in Path(package.__file__).parent.glob("[!_]*.py")}
    assert files - {"presets", "weight_arithmetic"} == {
        kind.__module__.rpartition(".")[2]
        for kind in TABLES.values()
        if not kind.__module__.startswith("isogloss.features.")
    }


def test_an_auxiliary_loss_is_a_value_of_a_setting_and_no_field_of_a_method():
    names = {name: {field.name for field in fields(kind)} for name, kind in METHODS.items()}
    assert not [name for name, own_name in names.items() if {"bitext", "auxiliary"} & own_name]


# Encoders with modules or maps of languages, and trainings that several laws look at.


@pytest.fixture(scope="module")
def with_modules(bert_folder, tmp_path_factory):
    """Save an encoder with modules. ``stir`` makes the modules of its languages differ."""

    @cache
    def encoder_with_modules(kind, languages=LANGUAGES, *, stir=0.02, **fields):
        model = load_whole(bert_folder)
        add_modules(model, Modules(kind=kind, **fields), languages, seed=0)
        generator = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for language in languages:
                for weight in language_parameters(model, language).values():
                    weight.add_(stir * torch.empty_like(weight).normal_(generator=generator))
        folder = tmp_path_factory.mktemp("with-modules") / "encoder"
        save_model(model, load_tokenizer(bert_folder), folder)
        return folder

    return encoder_with_modules


@pytest.fixture(scope="module")
def mapped_folder(bert_folder, tmp_path_factory):
    """Add a map of de to a copy of the encoder: the identity, or a rotation."""
    from shutil import copytree

    @cache
    def mapped_encoder(rotated_value):
        folder = tmp_path_factory.mktemp("mapped") / "encoder"
        copytree(bert_folder, folder)
        rotation = torch.linalg.qr(torch.randn(32, 32, generator=torch.Generator().manual_seed(0))).Q
        matrix = rotation if rotated_value else torch.eye(32)
        write_language_maps(LanguageMaps("en", {"de": LanguageMap(matrix, torch.zeros(32))}), folder)
        return folder

    return mapped_encoder


def train(method, auxiliary, encoder, folder, *, task="nli", seed=0, peft=None, **options):
    options = {"batch_size": 8, "checkpoint_every": 2, **options}
    setting = in_translation.setting(task, encoder, folder, target=("de",), seed=seed, **options)
    if auxiliary == NEAR or method == SILVER:
        setting = replace(setting, teacher=str(folder / "teacher"))
        save_model(TASKS[task].head(encoder, seed=9), load_tokenizer(encoder), folder / "teacher")
    further = (
        tuple(in_translation.further(element) for element in TASKS_TOO.tasks)
        if auxiliary == TASKS_TOO
        else ()
    )
    setting = replace(setting, auxiliary=auxiliary, further=further, peft=peft)
    return method.train(replace(setting, bitext={"en-de": translations(20)}))


@pytest.fixture(scope="module")
def train_once(tmp_path_factory):
    """Train each method on each encoder with each seed once. Read the result, do not change it."""

    @cache
    def cached_training(method, auxiliary, encoder, seed=0):
        return train(method, auxiliary, encoder, tmp_path_factory.mktemp("work"), seed=seed)

    return cached_training


EACH = pytest.mark.parametrize("name", FINE_TUNING)
OWN_LOSS = [name for name, (item, auxiliary, _) in FINE_TUNING.items() if auxiliary or hasattr(item, "loss")]
EACH_LOSS = pytest.mark.parametrize("name", ["source-only", *OWN_LOSS])
"""Methods that differ in more than in which examples they read."""


@pytest.mark.slow
@pytest.mark.parametrize("name", PLAIN)
def test_an_auxiliary_loss_without_weight_is_the_plain_method_to_the_bit(name, train_once, bert_folder):
    plain_training = train_once(PLAIN[name], None, bert_folder)
    plain_record = train_once(PLAIN[name], AlignmentTerm(bitext="x", alpha=0.0), bert_folder)
    assert equal(plain_record, plain_training)
    assert plain_record.rows == plain_training.rows
    assert not equal(train_once(PLAIN[name], WITH, bert_folder), plain_training)


@pytest.mark.slow
@EACH
def test_the_seed_decides_the_model_of_a_training_that_was_interrupted_too(
    name, train_once, with_modules, tmp_path, monkeypatch
):
    """The checkpoint has no moments of the modules of fr, which no batch is in."""
    method, auxiliary, _ = FINE_TUNING[name]
    encoder = with_modules("adapter")
    whole_training = train_once(method, auxiliary, encoder)
    assert not equal(train_once(method, auxiliary, encoder, seed=1), whole_training)
    with interrupt_batches(Bucketed, monkeypatch, at=-1):
        train(method, auxiliary, encoder, tmp_path)
    assert list(tmp_path.glob("checkpoint-*"))
    again = train(method, auxiliary, encoder, tmp_path)
    assert equal(again, whole_training)
    assert again.rows == whole_training.rows


def tensors_within(value):
    """Yield all tensors of a batch, whatever holds them."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors_within(item)
    elif isinstance(value, dict):
        yield from tensors_within(list(value.values()))
    elif is_dataclass(value) and not isinstance(value, type):
        yield from tensors_within([getattr(value, field.name) for field in fields(value)])


@pytest.fixture
def ahead(monkeypatch):
    """Let a thread make all batches ahead, as with a GPU. Return the tensors of each batch that is used."""
    used = []

    class CheckedBatches(BatchesAhead):
        def __getitem__(self, step):
            batch = super().__getitem__(step)
            used.append([tensor.data_ptr() in pinned for tensor in tensors_within(batch)])
            return batch

    pinned = {}

    def pin_memory(tensor):
        copy = tensor.clone()
        pinned[copy.data_ptr()] = copy  # Kept, so that no other tensor gets its address.
        return copy

    @contextmanager
    def made_ahead(batches, device):
        checked = CheckedBatches(batches)
        yield checked
        checked.stop()

    monkeypatch.setattr(torch.Tensor, "pin_memory", pin_memory)
    monkeypatch.setattr(fit, "made_ahead", made_ahead)
    return used


@pytest.mark.slow
@EACH_LOSS
def test_batches_that_a_thread_makes_give_the_same_model_to_the_bit(
    name, train_once, bert_folder, ahead, tmp_path
):
    method, auxiliary, _ = FINE_TUNING[name]
    plain_training = train_once(method, auxiliary, bert_folder)
    ahead.clear()
    training = train(method, auxiliary, bert_folder, tmp_path)
    assert ahead and all(all(batch) for batch in ahead)
    assert any(ahead)
    assert equal(training, plain_training)
    assert training.rows == plain_training.rows


# Less memory.


@pytest.mark.slow
@EACH_LOSS
def test_layers_that_are_computed_anew_give_the_same_model_to_the_bit(
    name, train_once, with_modules, tmp_path
):
    """With dropout, modules of languages and hooks: all is as it was when a layer runs again."""
    method, auxiliary, _ = FINE_TUNING[name]
    for kind in ("adapter", "attention") if name == "x-mixup" else ("adapter",):
        whole_training = train_once(method, auxiliary, with_modules(kind))
        encoder = with_modules(kind)
        training = train(method, auxiliary, encoder, tmp_path / kind, gradient_checkpointing=True)
        assert equal(training, whole_training)
        assert training.rows == whole_training.rows
        assert "forward" not in vars(training.model.base_model.encoder.layer[0])


@pytest.fixture(scope="module")
def undropped_folder(with_modules, tmp_path_factory):
    """Save an encoder with modules that drops nothing."""
    model = load_whole(with_modules("adapter"))
    set_dropout(model.config, 0.0)
    folder = tmp_path_factory.mktemp("undropped") / "encoder"
    save_model(model, load_tokenizer(with_modules("adapter")), folder)
    return folder


@pytest.mark.slow
@EACH_LOSS
def test_batches_in_parts_give_the_same_model_within_rounding(name, undropped_folder, tmp_path):
    method, auxiliary, _ = FINE_TUNING[name]
    # Adam's ε is large, so that it does not make rounding as large as gradients.
    whole_training, parts = (
        train(
            method,
            auxiliary,
            undropped_folder,
            tmp_path / str(count),
            epsilon=0.1,
            accumulation=count,
            epochs=1,
        )
        for count in (1, 3)
    )
    assert not equal(whole_training, parts)
    result = weights(parts)
    weights_before = weights(load_whole(undropped_folder))
    for item, weight in weights(whole_training).items():
        torch.testing.assert_close(result[item], weight, rtol=1e-4, atol=2e-6)
    moved_differences = [
        float((weight - weights_before[first_item]).abs().max())
        for first_item, weight in result.items()
        if first_item in weights_before
    ]
    assert max(moved_differences) > 1e-4


@pytest.mark.sample(6)
@EACH
def test_the_languages_that_are_trained_on_are_those_whose_modules_move(name, train_once, with_modules):
    method, auxiliary, moved_fine_tuning = FINE_TUNING[name]
    model_before = load_whole(with_modules("adapter"))
    training = train_once(method, auxiliary, with_modules("adapter"))
    for language in LANGUAGES:
        same_value = same_modules(language, model_before, training.model)
        assert not any(same_value) if language in moved_fine_tuning.split() else all(same_value), language
    scores = [row["score"] for row in training.rows if "score" in row]
    assert scores and all(score == score for score in scores)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name not in STACKED)) for name in FINE_TUNING]
)
def test_an_adapter_of_the_task_moves_and_nothing_beneath_it(name, with_modules, tmp_path):
    """MAD-X: the language adapters, including those at the embeddings, and the encoder stay unchanged."""
    method, auxiliary, _ = FINE_TUNING[name]
    encoder = with_modules("adapter", invertible=True)
    peft = TaskAdapter(reduction=4)
    weights_before = weights(TASKS["nli"].head(encoder, seed=derive(0, "head")))
    if name.startswith("few-shot"):
        first_training = train(SourceOnly(), None, encoder, tmp_path / "work", peft=peft, epochs=1)
        save_model(
            first_training.model,
            first_training.tokenizer,
            tmp_path / "first",
            difference=first_training.difference,
        )
        encoder = tmp_path / "first"
        weights_before = weights(first_training)
    training = train(method, auxiliary, encoder, tmp_path / "again", peft=peft, epochs=1)
    now = weights(training)
    moved_keys = {
        key for key in now if key not in weights_before or not torch.equal(now[key], weights_before[key])
    }
    assert moved_keys == {key for key in now if "task_adapter" in key or key.startswith(HEAD)}
    save_model(
        training.model, training.tokenizer, tmp_path / "saved", training.extra_writers, training.difference
    )
    assert equal(TASKS["nli"].head(tmp_path / "saved", seed=9), training)


def same_modules(language, *models):
    own_language_parameters = [language_parameters(model, language).values() for model in models]
    return [torch.equal(x, y) for x, y in zip(*own_language_parameters, strict=True)]


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["feed-forward", "attention"])
def test_modules_of_every_kind_move(kind, train_once, with_modules):
    model_before = load_whole(with_modules(kind))
    training = train_once(Bilingual(), None, with_modules(kind))
    moved_value = {
        language: not any(same_modules(language, model_before, training.model)) for language in LANGUAGES
    }
    assert moved_value == {"en": True, "de": True, "fr": False}


@pytest.mark.slow
@EACH
def test_modules_that_one_language_has_for_all_are_no_modules_to_the_bit(
    name, train_once, bert_folder, with_modules
):
    method, auxiliary, _ = FINE_TUNING[name]
    plain_training = train_once(method, auxiliary, bert_folder)
    training = train_once(method, auxiliary, with_modules("attention", ("en",), fallback="en", stir=0.0))
    assert equal(training, plain_training)
    assert training.rows == plain_training.rows


@pytest.mark.sample(6)
@EACH
def test_a_language_without_modules_is_refused_before_anything_is_read(name, with_modules, tmp_path):
    def never(language):
        raise AssertionError(language)

    method, auxiliary, _ = FINE_TUNING[name]
    setting = in_translation.setting(
        "nli", with_modules("adapter", ("eo",)), tmp_path / "work", target=("de",)
    )
    setting = replace(
        setting, train=never, dev=never, auxiliary=auxiliary, bitext={"en-de": translations(20)}
    )
    with pytest.raises(ConfigError, match=r"adapter.*'..'"):
        method.train(setting)


@pytest.mark.slow
@EACH
def test_each_language_is_read_through_its_map(name, train_once, bert_folder, mapped_folder):
    method, auxiliary, languages = FINE_TUNING[name]
    plain_training = train_once(method, auxiliary, bert_folder)
    assert equal(train_once(method, auxiliary, mapped_folder(False)), plain_training)
    training = train_once(method, auxiliary, mapped_folder(True))
    assert equal(training, plain_training) == (languages == "en")
    assert language_maps_of(training.model) is not None


@pytest.mark.parametrize("method", [SourceOnly(), FewShot(shots=8)], ids=lambda field: field.name)
def test_what_goes_on_from_a_model_has_its_modules(method, train_once, with_modules, tmp_path):
    first_training = train_once(SourceOnly(), None, with_modules("adapter"))
    save_model(first_training.model, first_training.tokenizer, tmp_path / "first")
    again = train(method, None, tmp_path / "first", tmp_path / "again")
    assert modules_of(again.model) == modules_of(first_training.model)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "peft"),
    [
        *((name, LoRA()) for name in ["source-only", *OWN_LOSS]),
        ("x-mixup + alignment-loss", LotteryTicket(share=0.1)),
    ],
    ids=str,
)
def test_any_method_trains_a_part_of_the_weights_and_goes_on_where_it_was_interrupted(
    name, peft, with_modules, tmp_path, monkeypatch
):
    method, auxiliary, _ = FINE_TUNING[name]
    encoder = with_modules("adapter")
    whole_training = train(method, auxiliary, encoder, tmp_path / "whole", peft=peft)
    weights_before = weights(load_whole(encoder).base_model)
    now = {
        key: weight for key, weight in weights(whole_training.model.base_model).items() if "pooler" not in key
    }
    moved_means = {key: (item != weights_before[key]).float().mean() for key, item in now.items()}
    own_texts = ("query.weight", "value.weight") if peft.name == "lora" else ("",)
    assert all(key.endswith(own_texts) for key, share in moved_means.items() if share)
    assert (
        0
        < sum(share * now[key].numel() for key, share in moved_means.items())
        < 0.2 * sum(torch.numel(element) for element in now.values())
    )
    save_model(
        whole_training.model,
        whole_training.tokenizer,
        tmp_path / "model",
        whole_training.extra_writers,
        whole_training.difference,
    )
    assert equal(whole_training, TASKS["nli"].head(tmp_path / "model", seed=1))
    with interrupt_batches(Bucketed, monkeypatch, at=-1):
        train(method, auxiliary, encoder, tmp_path / "again", peft=peft)
    again = train(method, auxiliary, encoder, tmp_path / "again", peft=peft)
    assert equal(again, whole_training) and again.rows == whole_training.rows


@pytest.mark.nightly
@pytest.mark.slow
def test_labels_of_translations_come_from_a_teacher_with_modules(with_modules, tmp_path):
    encoder = with_modules("attention")
    teacher = train(SourceOnly(), None, encoder, tmp_path / "teacher work", task="upos")
    save_model(teacher.model, teacher.tokenizer, tmp_path / "teacher")
    setting = in_translation.setting("upos", encoder, tmp_path / "work", teacher=tmp_path / "teacher")
    assert XMixup().train(setting).rows


# Adjusting an encoder.


@pytest.fixture
def adjust_encoder(tmp_path):
    def adjust_encoder(method, encoder, name="work", *, bitext=None):
        bitext = {"en-de": translations(24)} if bitext is None else bitext
        return method.train(AdjustSetting(start=str(encoder), bitext=bitext, folder=tmp_path / name, seed=0))

    return adjust_encoder


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("name", ADJUSTING)
def test_adjusting_with_modules_for_all_is_adjusting_to_the_bit(
    name, bert_folder, with_modules, adjust_encoder
):
    plain_training = adjust_encoder(ADJUSTING[name], bert_folder, "plain")
    folder = with_modules("feed-forward", ("en",), fallback="en", stir=0.0)
    training = adjust_encoder(ADJUSTING[name], folder, "found")
    expected = weights(plain_training.model)
    weights_value = weights(training.model)
    assert expected and all(torch.equal(weights_value[item], expected[item]) for item in expected)
    if maps := language_maps_of(plain_training.model):
        assert torch.equal(language_maps_of(training.model).maps["de"].matrix, maps.maps["de"].matrix)


TRAINED = [name for name in ADJUSTING if not ADJUSTMENTS[name].maps]


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAINED)
def test_without_sentence_pairs_or_steps_an_encoder_is_not_adjusted(name, bert_folder, adjust_encoder):
    start = load_whole(bert_folder)
    method = ADJUSTING[name]
    assert equal(adjust_encoder(method, bert_folder, bitext={}).model, start)
    assert equal(adjust_encoder(method, bert_folder, bitext={"en-de": []}).model, start)
    assert equal(adjust_encoder(with_fields(method, epochs=0), bert_folder).model, start)


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAINED)
def test_an_adjustment_that_was_interrupted_ends_as_if_it_was_not(
    name, bert_folder, adjust_encoder, monkeypatch, tmp_path
):
    method = with_fields(ADJUSTING[name], checkpoint_every=1)
    whole_training = adjust_encoder(method, bert_folder, "whole")
    with interrupt_batches(Bucketed, monkeypatch, at=-1):
        adjust_encoder(method, bert_folder)
    assert list((tmp_path / "work").glob("checkpoint-*"))
    again = adjust_encoder(method, bert_folder)
    assert equal(again.model, whole_training.model)
    assert again.rows == whole_training.rows


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAINED)
def test_pairs_that_a_thread_collates_give_the_same_encoder_to_the_bit(
    name, bert_folder, adjust_encoder, request
):
    plain_training = adjust_encoder(ADJUSTING[name], bert_folder, "plain")
    ahead = request.getfixturevalue("ahead")
    training = adjust_encoder(ADJUSTING[name], bert_folder)
    assert ahead and all(batch and all(batch) for batch in ahead)
    assert equal(training.model, plain_training.model)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["feed-forward", "attention", "adapter"])
@pytest.mark.parametrize("name", TRAINED)
def test_adjusting_moves_the_modules_of_both_languages_and_no_other(name, kind, with_modules, adjust_encoder):
    model_before = load_whole(with_modules(kind))
    model = adjust_encoder(ADJUSTING[name], with_modules(kind)).model
    still = {language: all(same_modules(language, model_before, model)) for language in LANGUAGES}
    assert still == {"en": False, "de": False, "fr": True}


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("dropout", [True, False])
@pytest.mark.parametrize("name", TRAINED)
def test_adjusting_with_layers_that_are_computed_anew_is_the_same_to_the_bit(
    name, dropout, with_modules, adjust_encoder
):
    method = with_fields(ADJUSTING[name], dropout=dropout)
    whole_training = adjust_encoder(method, with_modules("attention"), "whole")
    training = adjust_encoder(with_fields(method, gradient_checkpointing=True), with_modules("attention"))
    assert equal(training, whole_training)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("form", ["sum", "mean"])
def test_adjusting_in_parts_is_the_same_within_rounding(form, with_modules, adjust_encoder):
    method = with_fields(ADJUSTING["cross-lingual-adjustment"], dropout=False, form=form, epsilon=0.1)
    whole_training = adjust_encoder(method, with_modules("adapter"), "whole")
    training = adjust_encoder(with_fields(method, accumulation=3), with_modules("adapter"))
    assert not equal(training, whole_training)
    for name, weight in weights(whole_training.model).items():
        torch.testing.assert_close(weights(training.model)[name], weight, rtol=1e-4, atol=2e-6)


def test_contrast_in_parts_is_refused():
    with pytest.raises(ConfigError, match=r"accumulation.*2:"):
        with_fields(ContrastiveAlignment(), accumulation=2)


@pytest.mark.parametrize("name", ADJUSTING)
def test_adjusting_in_a_language_without_modules_is_refused(name, with_modules, adjust_encoder):
    with pytest.raises(ConfigError, match="'de'"):
        adjust_encoder(ADJUSTING[name], with_modules("adapter", ("en", "fr")))


@pytest.mark.nightly
@pytest.mark.slow
def test_an_encoder_carries_modules_and_maps(with_modules, adjust_encoder, tmp_path):
    training = adjust_encoder(ADJUSTING["procrustes"], with_modules("adapter"))
    save_model(training.model, training.tokenizer, tmp_path / "both")
    again = load_whole(tmp_path / "both")
    assert modules_of(again) is not None and language_maps_of(again) is not None
    tuned_training = train(Bilingual(), None, tmp_path / "both", tmp_path / "tuned")
    assert modules_of(tuned_training.model) is not None and language_maps_of(tuned_training.model) is not None
