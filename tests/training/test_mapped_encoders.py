"""Fine-tuning an encoder with language maps: the source as without, other languages through their maps."""

from dataclasses import replace
from shutil import copytree

import pytest
import torch

from isogloss.core.errors import ConfigError
from isogloss.encoders.added.active_language import LanguageMaps, active_language, language_maps_of
from isogloss.encoders.added.added_weights import write_language_maps
from isogloss.encoders.added.language_layers import LanguageMap
from isogloss.encoders.saving import save_model
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.methods.plain import Bilingual, FewShot, SourceOnly, TargetOnly, TranslateTrain
from isogloss.training.evaluation import evaluation
from isogloss.training.fine_tuning import plain_training
from made_up import tagged_sentences


@pytest.fixture
def mapped_folder(bert_folder, tmp_path):
    """Add a map of xx to a copy of the encoder."""

    def folder(matrix, name="mapped"):
        copytree(bert_folder, tmp_path / name)
        maps = {"xx": LanguageMap(matrix, torch.zeros(32))}
        write_language_maps(LanguageMaps("en", maps), tmp_path / name)
        return tmp_path / name

    return folder


def draw_rotation():
    return torch.linalg.qr(torch.randn(32, 32, generator=torch.Generator().manual_seed(0))).Q


def test_each_batch_says_its_language(make_setting, bert_folder):
    setting = make_setting()
    tokenizer = load_tokenizer(bert_folder)
    train = {language: tagged_sentences(language, 20) for language in ("en", "en-xx")}
    batches = plain_training(setting, None, tokenizer, train).batches
    own_subwords = {
        language: {row.subwords for row in encode_group(setting, tokenizer, group)}
        for language, group in train.items()
    }
    languages = []
    for step in range(len(batches)):
        batch = batches[step]
        (language,) = batch.languages
        languages.append(language)
        for row, subwords in enumerate(batch.subwords):
            mask = None if batch.mask is None else batch.mask[row].bool()
            assert tuple((subwords if mask is None else subwords[mask]).tolist()) in own_subwords[language]
    assert set(languages) == {"en", "en-xx"}
    assert len(languages) == setting.optimization.epochs * batches.steps_per_epoch


def encode_group(setting, tokenizer, group):
    rows = setting.task.encode(group, tokenizer, limit=48, overlap=8)
    return [replace(row, subwords=tuple(row.subwords)) for row in rows]


def test_evaluation_reads_a_language_through_its_map(make_setting, mapped_folder):
    setting = make_setting(encoder=mapped_folder(draw_rotation()))
    model = setting.task.head(setting.start, seed=0)
    tokenizer = load_tokenizer(setting.start)
    dev = tagged_sentences("xx", 10)

    def scores(language):
        held_evaluation = evaluation(setting.task, dev, tokenizer, setting.optimization, language=language)
        return torch.cat(held_evaluation.scores(model))

    source, target, pair = (scores(language) for language in ("en", "xx", "en-xx"))
    assert torch.equal(target, pair)
    assert not torch.allclose(source, target)
    with active_language(model, "xx"):
        assert torch.equal(scores("en"), target)
    with pytest.raises(ConfigError, match="unspecified"):
        scores("")


@pytest.mark.slow
def test_a_language_without_a_map_is_refused_before_anything_is_read(make_setting, mapped_folder):
    def never(language):
        raise AssertionError(language)

    setting = replace(
        make_setting(("en",), ("xy",), encoder=mapped_folder(draw_rotation())), train=never, dev=never
    )
    for method in (TargetOnly(), Bilingual(), TranslateTrain()):
        with pytest.raises(ConfigError, match=r"'xy'.*'xx'\?.*en"):
            method.train(setting)


@pytest.mark.slow
def test_what_goes_on_from_such_a_model_has_its_maps(make_setting, mapped_folder, tmp_path):
    first_training = SourceOnly().train(make_setting(encoder=mapped_folder(draw_rotation())))
    save_model(first_training.model, first_training.tokenizer, tmp_path / "first")
    again = make_setting(("en",), ("xx",), encoder=tmp_path / "first", folder=tmp_path / "again")
    maps = language_maps_of(FewShot(shots=4).train(again).model)
    assert torch.equal(maps.maps["xx"].matrix, draw_rotation())
