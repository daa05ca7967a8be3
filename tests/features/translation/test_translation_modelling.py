"""A translation model is trained, resumed, saved, read by transformers, by seq2seq and by CTranslate2."""

from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from isogloss.core.errors import DataError
from isogloss.core.run_parts import with_fields
from isogloss.data.examples import Translation
from isogloss.encoders.saving import save_model
from isogloss.features.built_in_languages import translations
from isogloss.features.translation import seq2seq_models as seq2seq
from isogloss.features.translation.modelling import (
    TranslationModelling,
    TranslationRow,
    TranslationSetting,
    _PairBatches,
    collate_translations,
    translation_loss,
)
from isogloss.features.translation.seq2seq_models import read_translation_tokenizer
from isogloss.training.setting import Trained
from isogloss.translators import TRANSLATORS
from isogloss.translators.setting import TranslateSetting
from trained import equal, interrupt_batches

SMALL = with_fields(
    TranslationModelling(),
    steps=12,
    batch_subwords=256,
    layers=1,
    dim=32,
    heads=2,
    feed_forward=64,
    vocabulary=300,
    longest=40,
    learning_rate=5e-3,
    dev_sentences=4,
    evaluations=2,
    precision="float32",
    checkpoint_every=5,
)


@cache
def bitext(
    count: int = 150, split: str = "train", words: int = 99, pairs: tuple[str, ...] = ("qaa-qab", "qaa-qac")
) -> dict[str, list[Translation]]:
    """Translations of each pair, whose first text has at most ``words`` words."""
    fields = {pair: translations(*pair.split("-"), split) for pair in pairs}
    short_fields = {
        pair: (item for item in own_field if len(item.first.split()) <= words)
        for pair, own_field in fields.items()
    }
    return {pair: list(islice(own_short_field, count)) for pair, own_short_field in short_fields.items()}


def setting(folder: Path, **changes: Any) -> TranslationSetting:
    inputs = {"bitext": bitext(), "dev": bitext(5, "dev", 3), "folder": folder, "seed": 1, **changes}
    return TranslationSetting(**inputs)


@pytest.fixture(scope="module", autouse=True)
def brief():
    """Cut translations early: a model that has learned little does not end them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(seq2seq, "RATIO", 1)
        yield


@pytest.fixture(scope="module")
def trained_translator(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return SMALL.train(setting(tmp_path_factory.mktemp("trained")))


@pytest.fixture(scope="module")
def folder(trained_translator, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("saved") / "model"
    save_model(trained_translator.model, trained_translator.tokenizer, place)
    return place


def test_texts_are_as_long_as_longest_says(tmp_path) -> None:
    text = " ".join(("wa mi so le " * 150).split()[:590])
    bitext = {"qaa-qab": [Translation(id="0", first=text, second=text)]}
    method = with_fields(SMALL, steps=1, longest=600, batch_subwords=600)
    rows = method.train(setting(tmp_path, bitext=bitext, dev={})).rows
    assert rows[0] == {"language": "qaa-qab", "pairs": 1, "left_out": 0}


@pytest.mark.nightly
@pytest.mark.slow
def test_both_directions_of_every_pair_are_scored_on_dev(trained_translator) -> None:
    rows = [row for row in trained_translator.rows if "score" in row]
    assert [(row["step"], row["language"]) for row in rows] == [
        (step, way) for step in (6, 12) for way in ("qaa-qab", "qab-qaa", "qaa-qac", "qac-qaa")
    ]
    assert all(row["metric"] == "chrf" and 0 <= row["score"] <= 1 for row in rows)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize(
    ("less", "tolerance"), [({"gradient_checkpointing": True}, 0.0), ({"accumulation": 3}, 2e-5)]
)
def test_less_memory_gives_the_same_model(tmp_path, less, tolerance) -> None:
    method = with_fields(SMALL, steps=3, dev_sentences=1, evaluations=1, epsilon=1e-3)
    method = replace(method, dropout=0.1 if "gradient_checkpointing" in less else 0.0)
    whole_training = method.train(setting(tmp_path / "whole"))
    training = with_fields(method, **less).train(setting(tmp_path / "found"))
    for left, right in zip(training.model.parameters(), whole_training.model.parameters(), strict=True):
        torch.testing.assert_close(left, right, rtol=0, atol=tolerance)


def test_padding_is_never_learned_so_that_translations_begin_from_zeros(trained_translator) -> None:
    model = trained_translator.model
    padding = trained_translator.tokenizer.pad_token_id
    assert padding == len(trained_translator.tokenizer) - 1
    assert not model.model.shared.weight[padding].any()
    assert model.lm_head.weight.data_ptr() == model.model.shared.weight.data_ptr()


@pytest.mark.nightly
@pytest.mark.slow
def test_an_interrupted_training_ends_with_the_weights_of_an_uninterrupted_one(
    trained_translator, tmp_path, monkeypatch
) -> None:
    with interrupt_batches(_PairBatches, monkeypatch, at=8):
        SMALL.train(setting(tmp_path))
    assert list(tmp_path.glob("checkpoint-*"))
    again = SMALL.train(setting(tmp_path))
    assert equal(again, trained_translator)
    assert again.tokenizer.get_vocab() == trained_translator.tokenizer.get_vocab()
    assert again.rows == trained_translator.rows


def test_the_saved_tokenizer_is_the_one_trained(trained_translator, folder) -> None:
    from transformers import AutoTokenizer

    text = "fodu zonfuposa ﬁ tuyindoga ."
    loaded_model = AutoTokenizer.from_pretrained(folder)
    again = read_translation_tokenizer(folder / "tokenizer.json")
    assert (
        loaded_model(text)["input_ids"]
        == again(text)["input_ids"]
        == trained_translator.tokenizer(text)["input_ids"]
    )
    assert loaded_model(text)["input_ids"][-1] == loaded_model.eos_token_id


@pytest.mark.nightly
@pytest.mark.slow
def test_one_folder_serves_every_direction_in_transformers_and_ctranslate2(folder, tmp_path) -> None:
    pytest.importorskip("ctranslate2")
    texts = [pair.first for pair in bitext(6, "dev")["qaa-qab"]]
    for target in ("qab", "qac"):
        same_value = [
            left == right for left, right in zip(*both(folder, texts, target, tmp_path / target), strict=True)
        ]
        assert sum(same_value) >= len(texts) - 1  # A tie may fall the other way.


def test_the_loss_of_a_batch_does_not_depend_on_its_padding(trained_translator) -> None:
    model = trained_translator.model
    padding = trained_translator.tokenizer.pad_token_id
    rows = [
        TranslationRow(np.array([2, 9, 8, 0]), np.array([9, 0])),
        TranslationRow(np.array([2, 9, 0]), np.array([7] * 9 + [0])),
    ]
    distance = [collate_translations([row], padding=padding) for row in rows]
    joint_translations = collate_translations(rows, padding=padding)
    with torch.no_grad():
        means = torch.stack([translation_loss(model, batch) for batch in distance])
        whole_translation_loss = translation_loss(model, joint_translations)
    weights = torch.tensor([2.0, 10.0])
    assert torch.allclose((means * weights).sum() / 12, whole_translation_loss, atol=1e-5)


def test_every_pair_comes_once_an_epoch_within_the_budget() -> None:
    rows = [TranslationRow(np.array([index] * (1 + index % 7)), np.array([0])) for index in range(50)]
    batches = _PairBatches(rows, with_fields(SMALL, batch_subwords=40), seed=3, padding=99)
    count = len(batches._epoch(0))
    texts = [batches[step].text for step in range(count)]
    assert sorted(int(text[row, 0]) for text in texts for row in range(len(text))) == list(range(50))
    assert all(text.numel() <= 40 for text in texts)
    assert torch.equal(batches[1].text, texts[1])


@pytest.mark.slow
def test_pairs_that_are_too_long_are_left_out_and_told(tmp_path) -> None:
    method = with_fields(SMALL, steps=1, longest=9, evaluations=1)
    training = method.train(setting(tmp_path, dev={}))
    row = training.rows[0]
    assert row["language"] == "qaa-qab"
    assert row["pairs"] > 0 < row["left_out"]
    assert row["pairs"] + row["left_out"] == 150
    with pytest.raises(DataError, match="Raise longest"):
        with_fields(method, longest=1).train(setting(tmp_path / "none", dev={}))


@pytest.mark.nightly
@pytest.mark.slow
def test_a_model_learns_to_translate_built_in_languages(tmp_path) -> None:
    pairs, dev = (bitext(*items, 3, ("qaa-qab",)) for items in ((1500, "train"), (30, "dev")))
    wider = {"dim": 64, "feed_forward": 128, "learning_rate": 1e-2, "checkpoint_every": 0}
    method = with_fields(SMALL, **wider, steps=240, dev_sentences=30, evaluations=1)
    training = method.train(setting(tmp_path, bitext=pairs, dev=dev))
    scores = [row["score"] for row in training.rows if "score" in row]
    assert len(scores) == 2
    assert min(scores) > 0.2  # .58 and .42; .04 after thirty steps
    save_model(training.model, training.tokenizer, tmp_path / "model")
    ours, theirs = both(tmp_path / "model", [pair.first for pair in dev["qaa-qab"]], "qab", tmp_path / "out")
    assert len(set(ours)) > 10
    assert sum(left == right for left, right in zip(ours, theirs, strict=True)) >= len(ours) - 1


def both(model: Path, texts: list[str], target: str, place: Path) -> tuple[list[str], list[str]]:
    """Translate from qaa with transformers and with CTranslate2."""
    where = TranslateSetting(source="qaa", target=target, model=str(model), folder=place, precision="float32")
    result = [
        [item.text for item in TRANSLATORS[name]().translate(texts, replace(where, folder=place / name))]
        for name in ("seq2seq", "ctranslate2")
    ]
    return result[0], result[1]
