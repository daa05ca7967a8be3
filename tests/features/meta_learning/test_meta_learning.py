from dataclasses import replace

import pytest
import torch

from each import each
from isogloss.core.errors import ConfigError, DataError
from isogloss.core.identity import content, derive
from isogloss.core.run_parts import Modules, with_fields
from isogloss.encoders import FAMILIES
from isogloss.encoders.added.added_weights import language_parameters, shared_parameters
from isogloss.encoders.added.language_modules import modules_of
from isogloss.encoders.loading import load_masked_lm
from isogloss.encoders.saving import save_model
from isogloss.features.meta_learning import algorithm as module
from isogloss.features.meta_learning import method as meta_learning
from isogloss.features.meta_learning.algorithm import MetaBatches, MetaLearningModel, Validation, meta_batches
from isogloss.features.meta_learning.method import MetaLearning
from isogloss.tasks.masked_lm import masked_lm_loss
from isogloss.training.fit import fit
from isogloss.training.text_training import begin_pretraining
from made_up_text import TINY, lines, text_setting
from trained import equal, interrupt_batches, weights

LANGUAGES = ("en", "sw")
METHOD = with_fields(MetaLearning(), **TINY, batch_subwords=48, validation=0.2, evaluate_every=4)


@pytest.fixture
def setting(tmp_path):
    return modular(tmp_path)


def modular(folder, family="bert", kind="adapter"):
    options = {"languages": LANGUAGES, "vocabulary": 300, "positions": 32, "modules": Modules(kind=kind)}
    return text_setting(folder / "work", family=family, **options, held_out=lambda item: lines(item, 9))


# What it is


@pytest.mark.slow
def test_modules_that_never_move_leave_plain_training_of_what_is_shared(setting, tmp_path):
    ours = with_fields(METHOD, own_learning_rate=0.0).train(setting)
    start = begin_pretraining(replace(setting, folder=tmp_path / "plain"), METHOD)
    batches = meta_batches(
        start.streams,
        start.sampling,
        start.masking,
        validation=Validation(share=0.2, batch_subwords=48),
        updates=METHOD.updates,
        seed=setting.seed,
    )
    for language in setting.languages:
        for language_parameter in language_parameters(start.model, language).values():
            language_parameter.requires_grad_(False)
    fit(start.model, batches.train, masked_lm_loss, updates=METHOD.updates, seed=setting.seed)
    assert equal(weights(ours), weights(start.model))


@pytest.mark.nightly
@pytest.mark.slow
def test_modules_of_both_languages_are_learned_and_come_apart(setting, tmp_path):
    model_before = begin_pretraining(replace(setting, folder=tmp_path / "before"), METHOD).model
    training = METHOD.train(setting)
    for result in (
        shared_parameters,
        lambda first_item: language_parameters(first_item, "en"),
        lambda first_item: language_parameters(first_item, "sw"),
    ):
        now = result(training.model)
        then = result(model_before)
        assert any(not torch.equal(now[name], then[name]) for name in now)
    item, other_language_parameters = (
        list(language_parameters(training.model, language).values()) for language in setting.languages
    )
    assert any(not torch.equal(a, b) for a, b in zip(item, other_language_parameters, strict=True))
    assert all(parameter.requires_grad for parameter in training.model.parameters())


@pytest.mark.nightly
@pytest.mark.slow
def test_vectors_at_the_embeddings_move_by_the_training_loss_with_what_is_shared(setting, monkeypatch):
    """They belong to theta: φ has only the adapters, and the vectors move even if φ is fixed."""
    learners = []
    monkeypatch.setattr(
        module,
        "MetaLearningModel",
        lambda *args, **kw: learners.append(args) or MetaLearningModel(*args, **kw),
    )
    method = with_fields(METHOD, own_learning_rate=0.0)
    training = method.train(replace(setting, modules=Modules(kind="adapter", embedding=True)))
    ((_, own_learner, _),) = learners
    for language in LANGUAGES:
        names = language_parameters(training.model, language).keys() - own_learner[language].keys()
        (vector,) = (language_parameters(training.model, language)[name] for name in names)
        assert (
            own_learner[language].keys()
            == language_parameters(training.model, language, embedding=False).keys()
        )
        assert vector.abs().min() > 0


def test_validation_batches_are_of_held_out_text_where_released(setting):
    """Then all training text is trained on, and perplexity is measured on what the batches are of."""
    method = with_fields(METHOD, validation_text="held-out", evaluate_every=None)
    assert method.holds_out and not with_fields(METHOD, evaluate_every=None).holds_out
    start = begin_pretraining(setting, method)
    assert start.held_out.keys() == start.streams.keys() == set(LANGUAGES)
    validation = Validation(share=0.2, batch_subwords=48, text=start.held_out)
    options = {"validation": validation, "updates": METHOD.updates, "seed": 0}
    batches = meta_batches(start.streams, start.sampling, start.masking, **options)
    for language in LANGUAGES:
        assert batches.validation[language].streams == {language: start.held_out[language]}
        assert batches.train.streams[language] is start.streams[language]
    assert "validation_text" not in content(METHOD)
    with pytest.raises(DataError, match=r"validation_text.*held-out"):
        begin_pretraining(replace(setting, held_out=None), method)


@pytest.mark.nightly
@pytest.mark.slow
def test_it_learns_a_text_that_says_the_same_again_and_again(setting):
    method = with_fields(METHOD, steps=100, learning_rate=1e-2, checkpoint_every=0, evaluate_every=20)
    fields = {"text": lambda language: list(lines(language, 1)) * 40, "held_out": lambda item: lines(item, 1)}
    training = method.train(replace(setting, **fields))
    for language in LANGUAGES:
        scores = [row["score"] for row in training.rows if row.get("language") == language and "score" in row]
        assert scores[-1] < 0.6 * scores[0]


@pytest.mark.slow
@pytest.mark.parametrize("inner_step", ["plain", "preconditioned"])
def test_one_that_was_interrupted_ends_as_if_it_was_not(setting, tmp_path, monkeypatch, inner_step):
    method = with_fields(METHOD, inner_step=inner_step)
    whole_training = method.train(replace(setting, folder=tmp_path / "whole"))
    for stop in (0, 4, 7):
        stopped_setting = replace(setting, folder=tmp_path / str(stop))
        with interrupt_batches(MetaBatches, monkeypatch, at=stop):
            method.train(stopped_setting)
        again = method.train(stopped_setting)
        assert equal(again, whole_training)
        assert again.rows == whole_training.rows


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "kind"),
    [
        *((family, "adapter") for family, item in FAMILIES.items() if "new-encoders" not in item.lacks),
        ("bert", "feed-forward"),
        ("modernbert", "attention"),
    ],
)
def test_every_family_and_kind_of_module_is_meta_learned_in_bfloat16_and_loads(tmp_path, family, kind):
    setting = modular(tmp_path, family, kind)
    method = with_fields(METHOD, precision="bfloat16", steps=3)
    training = with_fields(method, evaluate_every=None).train(setting)
    save_model(training.model, training.tokenizer, tmp_path / "encoder")
    loaded_model = load_masked_lm(tmp_path / "encoder")
    assert modules_of(loaded_model) == modules_of(training.model)
    assert equal(loaded_model, training)


@pytest.mark.nightly
@pytest.mark.slow
def test_rows_tell_of_losses_terms_and_perplexity(setting, monkeypatch):
    monkeypatch.setattr(meta_learning, "LOG_TERMS_EVERY", 4)
    training = METHOD.train(setting)
    looks = [row for row in training.rows if "second_term" in row]
    assert [row["step"] for row in looks] == [4, 8]
    assert all(row["language"] in LANGUAGES for row in looks)
    assert all(row[name] > 0 for row in looks for name in ("train_loss", "validation_loss", "first_term"))
    measured_rows = [row for row in training.rows if row.get("metric") == "perplexity"]
    assert [(row["step"], row["language"]) for row in measured_rows] == [
        (step, language) for step in (4, 8) for language in LANGUAGES
    ]


def test_validation_text_is_neither_trained_on_nor_what_perplexity_is_of(setting):
    start = begin_pretraining(setting, METHOD)
    batches = meta_batches(
        start.streams,
        start.sampling,
        start.masking,
        validation=Validation(share=0.2, batch_subwords=48),
        updates=METHOD.updates,
        seed=derive(0, "any"),
    )
    for language, stream in each(batches.train.streams.items()):
        (distance,) = batches.validation[language].streams.values()
        assert stream.subwords is start.streams[language].subwords is distance.subwords
        assert not set(stream.starts) & set(distance.starts)


def test_validation_text_may_be_all_text_that_is_trained_on(setting):
    options = with_fields(METHOD, validation=0.0)
    start = begin_pretraining(setting, options)
    distance = Validation(share=options.validation, batch_subwords=48)
    common = {"validation": distance, "updates": options.updates, "seed": 0}
    batches = meta_batches(start.streams, start.sampling, start.masking, **common)
    for language, stream in each(start.streams.items()):
        assert batches.train.streams[language] is stream
        assert batches.validation[language].streams == {language: stream}
    first_batch = batches[0]
    assert all(not torch.equal(first_batch.train.subwords, row.subwords) for row in first_batch.validation)


@pytest.mark.slow
def test_options_of_the_released_code_train_and_are_no_part_of_a_run_without_them(setting):
    released_value = with_fields(METHOD, validation=0.0, own_on_train=True, evaluate_every=None, steps=3)
    training = released_value.train(setting)
    assert len([row for row in training.rows if "loss" in row]) > 0
    assert all(parameter.requires_grad for parameter in training.model.parameters())
    assert "own_on_train" not in content(METHOD) and content(released_value)["own_on_train"] is True


# What is refused


@pytest.mark.parametrize(
    ("modules", "languages", "why"),
    [
        (None, ("en", "sw"), r'modules = \{kind = "adapter"\}'),
        (Modules(kind="shared-adapter"), ("en", "sw"), "shared-adapter .*adapter, feed-forward or attention"),
        (Modules(kind="adapter"), ("en",), r"one language \(en\)"),
    ],
)
def test_an_encoder_without_modules_of_several_languages_is_refused(setting, modules, languages, why):
    def unread(language):
        raise AssertionError(language)

    wrong = replace(setting, modules=modules, languages=languages, text=unread)
    with pytest.raises(ConfigError, match=f"^meta-learning: .*{why}"):
        METHOD.train(wrong)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"second_order": "exakt"}, "second_order: .*'exakt'.*'exact'"),
        ({"inner_step": "adam"}, "inner_step: .*'adam'"),
    ],
)
def test_unknown_forms_are_refused_with_those_there_are(wrong, why):
    with pytest.raises(ConfigError, match=why):
        with_fields(METHOD, **wrong)


def test_a_language_with_too_little_text_is_named(setting):
    with pytest.raises(DataError, match=r"sw: .*0\.2"):
        METHOD.train(replace(setting, text=lambda item: lines(item, 60 if item == "en" else 1)))
