"""New subwords: old ones keep their ids, old text its split and its states. Embeddings are what they say."""

import random
from collections import Counter

import pytest
import torch

from isogloss.core.errors import ConfigError, StorageError
from isogloss.data.examples import Translation
from isogloss.encoders.families import family_of
from isogloss.encoders.learned_subwords import write_tokenizer
from isogloss.encoders.loading import load_masked_lm, load_whole
from isogloss.encoders.saving import save_model
from isogloss.encoders.subwords import split_words
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.pretraining.new_subwords import (
    add_embeddings,
    add_subwords,
    added_subwords,
    read_subwords,
    subword_averages,
    word_translations,
)
from isogloss.features.pretraining.starts import load_text_tokenizer, load_to_continue
from made_up import SPANS, TEXT

WORDS = ("sitting", "hatter", "catly", "slowest", "ωμέγα", "αβγ", "ωμω")
"""Words of known letters, and of unknown ones."""


def lines(count=60):
    rng = random.Random(0)
    return [" ".join(rng.choices(WORDS, k=5)) for _ in range(count)]


def _ids(word, tokenizer):
    return split_words([[word]], tokenizer)[0].subwords


@pytest.fixture
def tokenizers(encoder_folder):
    """Load a tokenizer twice, and extend one of them."""
    old_text_tokenizer = load_text_tokenizer(encoder_folder)
    new_text_tokenizer = load_text_tokenizer(encoder_folder)
    add_subwords(new_text_tokenizer, lines(), size=90)
    return old_text_tokenizer, new_text_tokenizer


def test_old_subwords_keep_their_ids_and_old_text_its_split(tokenizers):
    old_tokenizer, new_tokenizer = tokenizers
    added_fields = added_subwords(old_tokenizer, new_tokenizer)
    assert 10 < len(added_fields) <= 90
    assert {
        piece: index for piece, index in new_tokenizer.get_vocab().items() if index not in added_fields
    } == old_tokenizer.get_vocab()
    assert [new_tokenizer(text)["input_ids"] for text in SPANS] == [
        old_tokenizer(text)["input_ids"] for text in SPANS
    ]
    split = new_tokenizer("sitting ωμέγα")["input_ids"]
    assert set(split) & added_fields.keys() and new_tokenizer.unk_token_id not in split
    assert len(split) < len(old_tokenizer("sitting")["input_ids"]) + 5


def test_the_same_text_gives_the_same_subwords_and_a_file_gives_them_back(
    tokenizers, encoder_folder, tmp_path
):
    _, new_tokenizer = tokenizers
    again = load_text_tokenizer(encoder_folder)
    add_subwords(again, lines(), size=90)
    assert again.backend_tokenizer.to_str() == new_tokenizer.backend_tokenizer.to_str()
    write_tokenizer(new_tokenizer, tmp_path / "kept.json")
    read = load_text_tokenizer(encoder_folder)
    read_subwords(read, tmp_path / "kept.json")
    assert read.backend_tokenizer.to_str() == new_tokenizer.backend_tokenizer.to_str()
    (tmp_path / "kept.json").write_text("{}")
    with pytest.raises(StorageError, match="tokenizer"):
        read_subwords(read, tmp_path / "kept.json")


def test_states_and_scores_without_new_subwords_are_equal_to_the_bit(tokenizers, encoder_folder, tmp_path):
    old_tokenizer, new_tokenizer = tokenizers
    model_before = load_whole(encoder_folder)
    model_after = load_to_continue(encoder_folder, seed=0)
    sources = subword_averages(old_tokenizer, added_subwords(old_tokenizer, new_tokenizer))
    add_embeddings(model_after, sources, special=set(old_tokenizer.all_special_ids), seed=0)
    save_model(model_after, new_tokenizer, tmp_path / "saved")
    model_after = load_masked_lm(tmp_path / "saved")
    new_tokenizer = load_tokenizer(tmp_path / "saved")
    assert model_after.config.vocab_size == max(new_tokenizer.get_vocab().values()) + 1
    row = old_tokenizer(list(SPANS), padding=True, return_tensors="pt")
    assert torch.equal(
        new_tokenizer(list(SPANS), padding=True, return_tensors="pt")["input_ids"], row["input_ids"]
    )
    with torch.inference_mode():
        last_hidden_state, other_last_hidden_state = (
            model.eval().base_model(**row).last_hidden_state for model in (model_before, model_after)
        )
        scores = [
            family_of(model).masked_lm_scores(model, last_hidden_state)
            for model in (model_before, model_after)
        ]
    assert torch.equal(last_hidden_state, other_last_hidden_state)
    assert scores[1].shape[-1] == model_after.config.vocab_size
    assert torch.allclose(scores[0], scores[1][..., : scores[0].shape[-1]], atol=1e-6)


def test_averages_are_those_of_the_old_split(tokenizers, encoder_folder):
    old_tokenizer, new_tokenizer = tokenizers
    table = load_whole(encoder_folder).get_input_embeddings().weight.detach()
    model = load_to_continue(encoder_folder, seed=0)
    added_values = added_subwords(old_tokenizer, new_tokenizer)
    sources = subword_averages(old_tokenizer, added_values)
    add_embeddings(model, sources, special=set(old_tokenizer.all_special_ids), seed=0)
    weight = model.get_input_embeddings().weight.detach()
    known_values = [added_value for added_value in added_values if sources[added_value]]
    assert torch.equal(weight[: len(table)], table) and len(known_values) > 5
    for known_value in known_values:
        ids = list(Counter(sources[known_value]).elements())
        assert torch.allclose(weight[known_value], table[ids].mean(dim=0), atol=1e-6)
    whole_subwords = {
        word: _ids(word, new_tokenizer)[0] for word in WORDS if len(_ids(word, new_tokenizer)) == 1
    }
    assert whole_subwords.keys() & {"sitting", "hatter", "catly", "slowest"}
    for word, known_value in whole_subwords.items():
        split = [part for part in _ids(word, old_tokenizer) if part != old_tokenizer.unk_token_id]
        assert sources[known_value] == Counter(split)


@pytest.mark.slow
def test_random_rows_have_the_old_ones_mean_and_variance_and_their_own_seed(bert_folder):
    def rows(seed):
        model = load_to_continue(bert_folder, seed=0)
        old_count = len(model.get_input_embeddings().weight)
        add_embeddings(model, {old_count + n: {} for n in range(3000)}, special={0, 1, 2, 3, 4}, seed=seed)
        table = model.get_input_embeddings().weight.detach()
        return table[5:old_count], table[old_count:]

    known_row, drawn_row = rows(0)
    assert torch.allclose(drawn_row.mean(dim=0), known_row.mean(dim=0), atol=0.03)
    assert torch.allclose(drawn_row.std(dim=0), known_row.std(dim=0), rtol=0.1)
    assert torch.equal(rows(0)[1], drawn_row) and not torch.equal(rows(1)[1], drawn_row)


def test_translations_are_counted_by_links(tokenizers):
    old_tokenizer, new_tokenizer = tokenizers
    added_fields = added_subwords(old_tokenizer, new_tokenizer)
    pairs = [
        Translation(id="0", first="the cat", second="αβγ sitting", links=((0, 0), (1, 1))),
        Translation(id="1", first="cat", second="αβγ", links=((0, 0),)),
        Translation(id="2", first="mat", second="αβγ", links=()),
    ]
    fields = word_translations(old_tokenizer, new_tokenizer, added_fields, pairs)
    (subword, *_) = new_tokenizer(" αβγ", add_special_tokens=False)["input_ids"][-1:]
    the, cat = (Counter(_ids(word, old_tokenizer)) for word in ("the", "cat"))
    expected = Counter()
    for parts in (the, cat):
        for part, count in parts.items():
            expected[part] += count / parts.total()
    assert fields[subword] == pytest.approx(expected)
    assert fields.keys() <= added_fields.keys()


def test_tokens_beside_the_vocabulary_keep_their_ids(xlm_roberta_folder, tmp_path):
    beside = load_tokenizer(xlm_roberta_folder)
    beside.add_tokens(["<one>", "<two>"])
    model = load_whole(xlm_roberta_folder)
    model.resize_token_embeddings(len(beside) + 5)
    save_model(model, beside, tmp_path / "beside")
    old_text_tokenizer, new_text_tokenizer = (load_text_tokenizer(tmp_path / "beside") for _ in range(2))
    add_subwords(new_text_tokenizer, lines(), size=90)
    save_model(model, new_text_tokenizer, tmp_path / "saved")
    saved_tokenizer = load_tokenizer(tmp_path / "saved")
    assert saved_tokenizer.get_vocab() == new_text_tokenizer.get_vocab() and min(
        added_subwords(old_text_tokenizer, saved_tokenizer)
    ) == len(old_text_tokenizer)
    text = f"{TEXT} <two> sitting <one>"
    assert saved_tokenizer(text)["input_ids"] == new_text_tokenizer(text)["input_ids"]
    assert saved_tokenizer("<two>")["input_ids"] == old_text_tokenizer("<two>")["input_ids"]


def test_too_few_for_the_characters_is_refused(bert_folder):
    with pytest.raises(ConfigError, match=r"3 subwords.*vocabulary.size"):
        add_subwords(load_text_tokenizer(bert_folder), lines(), size=3)
