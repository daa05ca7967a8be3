"""Every method on an encoder with language modules: each row through its own language's, others untouched."""

from dataclasses import replace

import pytest
import torch

import in_translation
from aligned import translations
from isogloss.core.errors import ConfigError
from isogloss.core.runs import Modules
from isogloss.encoders import load_tokenizer, load_whole, save_model
from isogloss.encoders.language_context import language_maps_of
from isogloss.encoders.language_modules import add_modules, language_parameters, modules_of
from isogloss.methods import ADJUSTMENTS, METHODS
from isogloss.methods.centring import Centring
from isogloss.methods.consistency import Consistency
from isogloss.methods.continual import Continual, ContinualFewShot
from isogloss.methods.contrastive_alignment import ContrastiveAlignment
from isogloss.methods.cross_lingual_adjustment import CrossLingualAdjustment
from isogloss.methods.plain import Bilingual, FewShot, SourceOnly, TargetOnly, TranslateTrain
from isogloss.methods.procrustes import Procrustes
from isogloss.methods.x_mixup import XMixup
from isogloss.training.batching import Bucketed
from isogloss.training.setting import AdjustSetting
from trained import interrupted, weights

LANGUAGES = ("en", "de", "fr")
OWN = ("feed-forward", "attention", "adapter")

FINE_TUNING = {
    "source-only": (SourceOnly(), "en"),
    "target-only": (TargetOnly(), "de"),
    "bilingual": (Bilingual(), "en de"),
    "few-shot": (FewShot(shots=8), "de"),
    "translate-train": (TranslateTrain(), "en de"),
    "consistency": (Consistency(), "en de"),
    "continual": (Continual(bitext="x", alpha=1.0), "en de"),
    "continual-few-shot": (ContinualFewShot(shots=8, bitext="x", alpha=1.0), "en de"),
    "x-mixup": (XMixup(layer=1), "en de"),
}
"""Each method, and the languages it trains on."""

ADJUSTING = {
    "cross-lingual-adjustment": CrossLingualAdjustment(batch_size=8, precision="float32"),
    "contrastive-alignment": ContrastiveAlignment(batch_size=8, stay=1.0, precision="float32"),
    "procrustes": Procrustes(precision="float32"),
    "centring": Centring(precision="float32"),
}


def test_every_method_is_here():
    assert FINE_TUNING.keys() == METHODS.keys()
    assert ADJUSTING.keys() == ADJUSTMENTS.keys()


@pytest.fixture
def with_modules(bert_folder, tmp_path):
    """Save an encoder with modules; ``stir`` lets those of its languages differ."""

    def made(kind, languages=LANGUAGES, *, fallback="", stir=0.0):
        model = load_whole(bert_folder)
        add_modules(model, Modules(kind=kind, fallback=fallback), languages, seed=0)
        generator = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for language in languages:
                for weight in language_parameters(model, language).values():
                    weight.add_(stir * torch.empty_like(weight).normal_(generator=generator))
        folder = tmp_path / f"{kind} {len(languages)} {stir}"
        save_model(model, load_tokenizer(bert_folder), folder)
        return folder

    return made


def trained(method, encoder, folder, *, task="nli", seed=0, epochs=1):
    made = in_translation.setting(task, encoder, folder, target=("de",), epochs=epochs, seed=seed)
    return method.train(replace(made, bitext={"en-de": translations(20)}))


@pytest.mark.parametrize(("method", "_"), FINE_TUNING.values(), ids=FINE_TUNING)
def test_modules_that_one_language_has_for_all_are_no_modules_to_the_bit(
    method, _, bert_folder, with_modules, tmp_path
):
    plain = trained(method, bert_folder, tmp_path / "plain")
    found = trained(method, with_modules("attention", ("en",), fallback="en"), tmp_path / "found")
    expected, there = weights(plain.model), weights(found.model)
    assert there.keys() == expected.keys()
    assert all(torch.equal(there[name], expected[name]) for name in expected)
    assert found.rows == plain.rows


@pytest.mark.parametrize("kind", OWN)
@pytest.mark.parametrize(("method", "moved"), FINE_TUNING.values(), ids=FINE_TUNING)
def test_the_languages_that_are_trained_on_are_those_whose_modules_move(
    method, moved, kind, with_modules, tmp_path
):
    encoder = with_modules(kind, stir=0.02)
    before = load_whole(encoder)
    found = trained(method, encoder, tmp_path / "found")
    for language in LANGUAGES:
        own = [language_parameters(one, language).values() for one in (before, found.model)]
        same = [torch.equal(x, y) for x, y in zip(*own, strict=True)]
        assert not any(same) if language in moved.split() else all(same), language
    assert all(row["score"] == row["score"] for row in found.rows if "score" in row)


@pytest.mark.parametrize("method", [SourceOnly(), FewShot(shots=8)], ids=lambda one: one.name)
def test_what_goes_on_from_such_a_model_has_its_modules(method, with_modules, tmp_path):
    first = trained(SourceOnly(), with_modules("adapter"), tmp_path / "first work")
    save_model(first.model, first.tokenizer, tmp_path / "first")
    again = trained(method, tmp_path / "first", tmp_path / "again")
    assert modules_of(again.model) == modules_of(first.model)


def test_labels_of_translations_come_from_a_teacher_with_modules(with_modules, tmp_path):
    encoder = with_modules("attention", stir=0.02)
    teacher = trained(SourceOnly(), encoder, tmp_path / "teacher work", task="upos")
    save_model(teacher.model, teacher.tokenizer, tmp_path / "teacher")
    made = in_translation.setting("upos", encoder, tmp_path / "work", teacher=tmp_path / "teacher", epochs=1)
    assert XMixup().train(made).rows


@pytest.mark.parametrize(("method", "_"), FINE_TUNING.values(), ids=FINE_TUNING)
def test_a_language_without_modules_is_refused_before_anything_is_read(method, _, with_modules, tmp_path):
    def never(language):
        raise AssertionError(language)

    made = in_translation.setting("nli", with_modules("adapter", ("eo",)), tmp_path / "work", target=("de",))
    with pytest.raises(ConfigError, match=r"adapter modules for each language, and none for '..'"):
        method.train(replace(made, train=never, dev=never, bitext={"en-de": translations(20)}))


@pytest.fixture
def adjusted(tmp_path):
    def made(method, encoder, name="work"):
        bitext = {"en-de": translations(24)}
        return method.train(AdjustSetting(start=str(encoder), bitext=bitext, folder=tmp_path / name, seed=0))

    return made


@pytest.mark.parametrize("method", ADJUSTING.values(), ids=ADJUSTING)
def test_adjusting_with_modules_for_all_is_adjusting_to_the_bit(method, bert_folder, with_modules, adjusted):
    plain = adjusted(method, bert_folder, "plain")
    found = adjusted(method, with_modules("feed-forward", ("en",), fallback="en"), "found")
    expected, there = weights(plain.model), weights(found.model)
    assert all(torch.equal(there[name], expected[name]) for name in expected)
    if maps := language_maps_of(plain.model):
        assert torch.equal(language_maps_of(found.model).maps["de"].matrix, maps.maps["de"].matrix)


@pytest.mark.parametrize("kind", OWN)
@pytest.mark.parametrize("name", ["cross-lingual-adjustment", "contrastive-alignment"])
def test_adjusting_moves_the_modules_of_both_languages_and_no_other(name, kind, with_modules, adjusted):
    encoder = with_modules(kind, stir=0.02)
    before, found = load_whole(encoder), adjusted(ADJUSTING[name], encoder).model
    for language in LANGUAGES:
        own = [language_parameters(one, language).values() for one in (before, found)]
        same = [torch.equal(x, y) for x, y in zip(*own, strict=True)]
        assert all(same) if language == "fr" else not all(same)


def test_adjusting_in_a_language_without_modules_is_refused(with_modules, adjusted):
    for method in ADJUSTING.values():
        with pytest.raises(ConfigError, match="none for 'de'"):
            adjusted(method, with_modules("adapter", ("en", "fr")))


def test_an_encoder_carries_modules_and_maps(with_modules, adjusted, tmp_path):
    found = adjusted(ADJUSTING["procrustes"], with_modules("adapter", stir=0.02))
    save_model(found.model, found.tokenizer, tmp_path / "both")
    again = load_whole(tmp_path / "both")
    assert modules_of(again) is not None and language_maps_of(again) is not None
    tuned = trained(Bilingual(), tmp_path / "both", tmp_path / "tuned")
    assert modules_of(tuned.model) is not None and language_maps_of(tuned.model) is not None


@pytest.mark.parametrize(("method", "_"), FINE_TUNING.values(), ids=FINE_TUNING)
def test_a_training_that_was_interrupted_ends_as_if_it_was_not(
    method, _, with_modules, tmp_path, monkeypatch
):
    """The checkpoint has no moments of the modules of fr, which no batch is in."""
    encoder = with_modules("adapter", stir=0.02)
    whole = trained(method, encoder, tmp_path / "whole", epochs=2)
    with interrupted(Bucketed, monkeypatch, at=-1):
        trained(method, encoder, tmp_path / "again", epochs=2)
    assert list((tmp_path / "again").glob("checkpoint-*"))
    again = trained(method, encoder, tmp_path / "again", epochs=2)
    there = weights(again.model)
    assert all(torch.equal(there[name], weight) for name, weight in weights(whole.model).items())
    assert again.rows == whole.rows


@pytest.mark.parametrize(("method", "_"), FINE_TUNING.values(), ids=FINE_TUNING)
def test_the_seed_decides_the_model(method, _, with_modules, tmp_path):
    encoder = with_modules("adapter", stir=0.02)
    one, same, other = (
        weights(trained(method, encoder, tmp_path / f"{number}", seed=seed).model)
        for number, seed in enumerate((0, 0, 1))
    )
    assert all(torch.equal(same[name], weight) for name, weight in one.items())
    assert not all(torch.equal(other[name], weight) for name, weight in one.items())
