"""Language modules trained on text while all else is frozen: by masked LM and by meta-learning."""

import random
from dataclasses import replace

import numpy as np
import pytest
import torch

from each import each
from isogloss.core.errors import ConfigError
from isogloss.core.run_parts import Architecture, Modules, with_fields
from isogloss.encoders.added.added_weights import language_parameters
from isogloss.encoders.added.language_modules import ensure_modules, modules_of
from isogloss.encoders.added.module_settings import KINDS
from isogloss.encoders.loading import load_masked_lm
from isogloss.features.meta_learning.algorithm import MetaBatches
from isogloss.features.meta_learning.method import MetaLearning
from isogloss.features.pretraining.methods import MaskedLanguageModelling
from isogloss.features.pretraining.parameters import module_parameters
from isogloss.tasks.masked_lm import Masking, Vocabulary, masked_lm_loss
from isogloss.training.fit import fit, training_only
from isogloss.training.setting import TextSetting
from isogloss.training.text_training import begin_pretraining
from trained import equal, interrupt_batches, weights

LETTERS = {"en": "abcdef", "sw": "mnopqr"}
SAME = {
    "steps": 4,
    "batch_subwords": 48,
    "block": 16,
    "learning_rate": 1e-2,
    "precision": "float32",
    "checkpoint_every": 2,
}
MLM = with_fields(MaskedLanguageModelling(), **SAME)
META = with_fields(MetaLearning(), **SAME, validation=0.2)
STACK = Modules(kind="adapter", reduction=2, after="feed-forward", invertible=True)


def lines(language, count=60):
    for index in range(count):
        rng = random.Random(f"{language} {index}")
        yield " ".join("".join(rng.choices(LETTERS[language][:4], k=rng.randint(1, 3))) for _ in range(9))


@pytest.fixture
def setting(tmp_path):
    sizes = {"layers": 1, "dim": 16, "heads": 2, "feed_forward": 32, "vocabulary": 300, "positions": 16}
    return TextSetting(
        text=lines,
        translations=None,
        languages=("en", "sw"),
        architecture=Architecture(**sizes),
        modules=STACK,
        trained="modules",
        folder=tmp_path / "work",
        seed=0,
    )


def begin_before(setting, method):
    return begin_pretraining(replace(setting, folder=setting.folder / "before"), method).model


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", [*KINDS, "mad-x", "mixed", "meta"])
def test_modules_move_and_nothing_else_does_to_the_bit(setting, kind):
    modules = Modules(kind=kind) if kind in KINDS else STACK
    method = with_fields(MLM, mixed=True) if kind == "mixed" else META if kind == "meta" else MLM
    setting, method = replace(setting, modules=modules), with_fields(method, steps=8)
    then = begin_before(setting, method)
    training = method.train(setting)
    own_module_parameters = module_parameters(training.model, setting.languages)
    folder = weights(then)
    for name, weight in each(training.model.named_parameters()):
        assert torch.equal(weight, folder[name]) == (name not in own_module_parameters), name
        assert weight.requires_grad


def test_layers_move_and_the_embeddings_do_not_to_the_bit(setting):
    setting = replace(setting, trained="layers", modules=None)
    then = weights(begin_before(setting, MLM))
    training = MLM.train(setting)
    still = {name for name, weight in weights(training).items() if torch.equal(weight, then[name])}
    assert still == {name for name in then if "embeddings" in name}


def batch(languages, seed=0):
    vocabulary = Vocabulary(size=30, first=2, last=3, padding=0, mask=4, special=(0, 1, 2, 3, 4))
    rng = np.random.default_rng(seed)
    rows = [[rng.integers(5, 30, size=9)] for _ in range(4)]
    return Masking(vocabulary=vocabulary, share=0.4).batch(rows, seed=seed, languages=languages)


@pytest.fixture
def stacked_model(encoder_folder):
    model = load_masked_lm(encoder_folder)
    ensure_modules(model, STACK, ("en", "sw", "to"), seed=0)
    with torch.no_grad():
        for index, weight in enumerate(module_parameters(model, ("en", "sw", "to")).values()):
            weight.normal_(0, 0.3, generator=torch.Generator().manual_seed(index))
    return model


def test_text_of_a_language_moves_its_modules_alone(stacked_model):
    then = weights(stacked_model)
    batches = [batch(("sw",), seed=seed) for seed in range(3)]
    with training_only(stacked_model, module_parameters(stacked_model, ("en", "sw", "to")).values()):
        fit(stacked_model, batches, masked_lm_loss, updates=MLM.updates, seed=0)
    own_language_parameters = language_parameters(stacked_model, "sw")
    assert {
        name for name, weight in weights(stacked_model).items() if not torch.equal(weight, then[name])
    } == set(own_language_parameters)


def test_the_scores_of_each_row_are_those_in_its_language(stacked_model):
    mixed_batch = batch(("sw", "en", "sw", "to"))
    with torch.no_grad():
        whole_loss = masked_lm_loss(stacked_model, mixed_batch)
        losses = [(masked_lm_loss(stacked_model, part), share) for part, share in mixed_batch.parts(4)]
        other_loss = masked_lm_loss(stacked_model, replace(mixed_batch, languages=("sw", "en", "sw", "sw")))
    torch.testing.assert_close(whole_loss, sum(loss * share for loss, share in losses))
    assert not torch.allclose(whole_loss, other_loss)


def test_an_encoder_with_modules_gets_those_of_the_languages_it_lacks(stacked_model):
    then = weights(stacked_model)
    ensure_modules(stacked_model, STACK, ("sw", "fr"), seed=0)
    assert modules_of(stacked_model).languages == ("en", "sw", "to", "fr")
    assert equal({name: weights(stacked_model)[name] for name in then}, then)
    ensure_modules(stacked_model, replace(STACK, fallback="fr"), ("fr",), seed=0)
    assert modules_of(stacked_model).of("xx") == "fr"
    text = "= adapter, reduction = 2.*= adapter, reduction = 4"
    with pytest.raises(ConfigError, match=text):
        ensure_modules(stacked_model, Modules(kind="adapter"), ("fr",), seed=0)


@pytest.mark.nightly
@pytest.mark.slow
def test_meta_learning_of_modules_alone_is_resumed_as_if_never_interrupted(setting, tmp_path, monkeypatch):
    whole_training = META.train(replace(setting, folder=tmp_path / "whole"))
    with interrupt_batches(MetaBatches, monkeypatch, at=3):
        META.train(setting)
    again = META.train(setting)
    assert equal(again, whole_training) and again.rows == whole_training.rows


@pytest.mark.nightly
@pytest.mark.slow
def test_the_imagined_step_counts_though_it_is_never_made(setting):
    training = META.train(setting)
    other_training = with_fields(META, inner_learning_rate=0.5).train(setting)
    assert not equal(training, other_training)
