"""Contrastive alignment is InfoNCE on words or sentences, neutral without steps, and finds translations."""

from dataclasses import replace

import pytest
import torch

from aligned import Slowly, load_in_float64, translations
from isogloss.core.run_parts import with_fields
from isogloss.encoders.loading import load_model, load_whole
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.adjustment.aligned_batches import aligned_batch, bidirectional_contrast
from isogloss.features.adjustment.methods import ContrastiveAlignment
from isogloss.features.representations.geometry import retrieval_accuracy
from isogloss.similarity.nearest import directions
from isogloss.training.bitext import PairEncoding, read_bitext
from isogloss.training.setting import AdjustSetting
from isogloss.training.states import sentence_states

FAST = with_fields(ContrastiveAlignment(), precision="float32", batch_size=8, learning_rate=1e-3)


@pytest.fixture
def setting(bert_folder, tmp_path):
    pairs = {"en-xx": translations(24)}
    return AdjustSetting(start=str(bert_folder), bitext=pairs, folder=tmp_path / "work", seed=0)


def batch_of(folder, pairs, pulled_text):
    bitext = read_bitext({"en-xx": pairs}, load_tokenizer(folder), PairEncoding(pulled=pulled_text))
    return aligned_batch(bitext, range(len(bitext)))


def test_words_are_contrasted_as_by_hand(encoder_folder):
    pairs = translations(4)
    model = load_whole(encoder_folder, attention="eager")
    ours = ContrastiveAlignment().loss(model, None, batch_of(encoder_folder, pairs, "words"))
    slow = load_in_float64(encoder_folder)
    slowly = Slowly(encoder_folder, aligned="words")
    linked_items = [item for pair in pairs for item in slowly.items(slow, pair)[0]]
    texts = [(p.first.split()[i], p.second.split()[j]) for p in pairs for i, j in p.links]
    same_tensor = torch.tensor([[a[0] == b[0] or a[1] == b[1] for b in texts] for a in texts])
    x, y = (torch.stack(side) for side in zip(*linked_items, strict=True))
    expected = bidirectional_contrast(x, y, same_tensor, temperature=0.1)
    torch.testing.assert_close(ours.double(), expected, rtol=1e-4, atol=1e-6)


def test_sentences_are_contrasted_by_their_means(bert_folder):
    pairs = translations(4)
    tokenizer = load_tokenizer(bert_folder)
    model = load_model(bert_folder)
    ours = with_fields(ContrastiveAlignment(), level="sentence").loss(
        model, None, batch_of(bert_folder, pairs, "sentences")
    )
    x, y = (
        sentence_states(model, tokenizer, [getattr(p, side) for p in pairs], precision="float32")[0]
        for side in ("first", "second")
    )
    expected = bidirectional_contrast(x, y, torch.eye(4, dtype=torch.bool), temperature=0.1)
    torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.nightly
@pytest.mark.slow
def test_translations_find_each_other_afterwards(setting, bert_folder):
    method = with_fields(FAST, level="sentence", epochs=8, dropout=False)
    sides = [[getattr(pair, side) for pair in setting.bitext["en-xx"]] for side in ("first", "second")]

    def accuracy(model):
        tokenizer = load_tokenizer(bert_folder)
        states = [sentence_states(model, tokenizer, side, precision="float32")[0] for side in sides]
        return retrieval_accuracy(*(directions(side, centred=True) for side in states))

    assert accuracy(method.train(setting).model) > accuracy(load_model(bert_folder)) + 0.2


@pytest.mark.nightly
@pytest.mark.slow
def test_staying_keeps_states_nearer_to_where_they_were(setting, tmp_path, bert_folder):
    free_training = FAST.train(setting)
    held_training = with_fields(FAST, stay=100.0).train(replace(setting, folder=tmp_path / "held"))
    tokenizer = load_tokenizer(bert_folder)
    texts = [pair.first for pair in setting.bitext["en-xx"]]
    start, *ends = (
        sentence_states(model, tokenizer, texts, precision="float32")[0]
        for model in (load_model(bert_folder), free_training.model, held_training.model)
    )
    moved_norms = [float((end - start).norm()) for end in ends]
    assert 0 < moved_norms[1] < moved_norms[0]
