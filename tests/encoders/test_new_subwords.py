"""New subwords: old ones keep their ids, old text its split and its states; embeddings are what they say."""

import random
from collections import Counter

import pytest
import torch

from isogloss.core.errors import ConfigError, StorageError
from isogloss.data.examples import Translation
from isogloss.encoders.families import family_of
from isogloss.encoders.initial import load_text_tokenizer, load_to_continue
from isogloss.encoders.loading import load_masked_lm, load_whole
from isogloss.encoders.new_subwords import (
    add_embeddings,
    add_subwords,
    added_subwords,
    read_subwords,
    subword_averages,
    word_translations,
)
from isogloss.encoders.saving import save_model
from isogloss.encoders.subwords import split_words
from isogloss.encoders.tokenizers import load_tokenizer, write_tokenizer
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
    old, new = load_text_tokenizer(encoder_folder), load_text_tokenizer(encoder_folder)
    add_subwords(new, lines(), size=90)
    return old, new


def test_old_subwords_keep_their_ids_and_old_text_its_split(tokenizers):
    old, new = tokenizers
    added = added_subwords(old, new)
    assert 10 < len(added) <= 90
    assert {
        piece: number for piece, number in new.get_vocab().items() if number not in added
    } == old.get_vocab()
    assert [new(text)["input_ids"] for text in SPANS] == [old(text)["input_ids"] for text in SPANS]
    split = new("sitting ωμέγα")["input_ids"]
    assert set(split) & added.keys() and new.unk_token_id not in split
    assert len(split) < len(old("sitting")["input_ids"]) + 5


def test_the_same_text_gives_the_same_subwords_and_a_file_gives_them_back(
    tokenizers, encoder_folder, tmp_path
):
    _, new = tokenizers
    again = load_text_tokenizer(encoder_folder)
    add_subwords(again, lines(), size=90)
    assert again.backend_tokenizer.to_str() == new.backend_tokenizer.to_str()
    write_tokenizer(new, tmp_path / "kept.json")
    read = load_text_tokenizer(encoder_folder)
    read_subwords(read, tmp_path / "kept.json")
    assert read.backend_tokenizer.to_str() == new.backend_tokenizer.to_str()
    (tmp_path / "kept.json").write_text("{}")
    with pytest.raises(StorageError, match="tokenizer"):
        read_subwords(read, tmp_path / "kept.json")


def test_states_and_scores_without_new_subwords_are_equal_to_the_bit(tokenizers, encoder_folder, tmp_path):
    old, new = tokenizers
    before, after = load_whole(encoder_folder), load_to_continue(encoder_folder, seed=0)
    sources = subword_averages(old, added_subwords(old, new))
    add_embeddings(after, sources, special=set(old.all_special_ids), seed=0)
    save_model(after, new, tmp_path / "saved")
    after, new = load_masked_lm(tmp_path / "saved"), load_tokenizer(tmp_path / "saved")
    assert after.config.vocab_size == max(new.get_vocab().values()) + 1
    given = old(list(SPANS), padding=True, return_tensors="pt")
    assert torch.equal(new(list(SPANS), padding=True, return_tensors="pt")["input_ids"], given["input_ids"])
    with torch.inference_mode():
        one, other = (model.eval().base_model(**given).last_hidden_state for model in (before, after))
        scores = [family_of(model).masked_lm_scores(model, one) for model in (before, after)]
    assert torch.equal(one, other)
    assert scores[1].shape[-1] == after.config.vocab_size
    assert torch.allclose(scores[0], scores[1][..., : scores[0].shape[-1]], atol=1e-6)


def test_averages_are_those_of_the_old_split(tokenizers, encoder_folder):
    old, new = tokenizers
    table = load_whole(encoder_folder).get_input_embeddings().weight.detach()
    model = load_to_continue(encoder_folder, seed=0)
    added = added_subwords(old, new)
    sources = subword_averages(old, added)
    add_embeddings(model, sources, special=set(old.all_special_ids), seed=0)
    found = model.get_input_embeddings().weight.detach()
    known = [number for number in added if sources[number]]
    assert torch.equal(found[: len(table)], table) and len(known) > 5
    for number in known:
        ids = list(Counter(sources[number]).elements())
        assert torch.allclose(found[number], table[ids].mean(dim=0), atol=1e-6)
    whole = {word: _ids(word, new)[0] for word in WORDS if len(_ids(word, new)) == 1}
    assert whole.keys() & {"sitting", "hatter", "catly", "slowest"}
    for word, number in whole.items():
        split = [part for part in _ids(word, old) if part != old.unk_token_id]
        assert sources[number] == Counter(split)


@pytest.mark.slow
def test_random_rows_have_the_old_ones_mean_and_variance_and_their_own_seed(bert_folder):
    def rows(seed):
        model = load_to_continue(bert_folder, seed=0)
        old = len(model.get_input_embeddings().weight)
        add_embeddings(model, {old + n: {} for n in range(3000)}, special={0, 1, 2, 3, 4}, seed=seed)
        table = model.get_input_embeddings().weight.detach()
        return table[5:old], table[old:]

    known, drawn = rows(0)
    assert torch.allclose(drawn.mean(dim=0), known.mean(dim=0), atol=0.03)
    assert torch.allclose(drawn.std(dim=0), known.std(dim=0), rtol=0.1)
    assert torch.equal(rows(0)[1], drawn) and not torch.equal(rows(1)[1], drawn)


def test_translations_are_counted_by_links(tokenizers):
    old, new = tokenizers
    added = added_subwords(old, new)
    pairs = [
        Translation(id="0", first="the cat", second="αβγ sitting", links=((0, 0), (1, 1))),
        Translation(id="1", first="cat", second="αβγ", links=((0, 0),)),
        Translation(id="2", first="mat", second="αβγ", links=()),
    ]
    found = word_translations(old, new, added, pairs)
    (subword, *_) = new(" αβγ", add_special_tokens=False)["input_ids"][-1:]
    the, cat = (Counter(_ids(word, old)) for word in ("the", "cat"))
    expected = Counter()
    for parts in (the, cat):
        for part, count in parts.items():
            expected[part] += count / parts.total()
    assert found[subword] == pytest.approx(expected)
    assert found.keys() <= added.keys()


def test_tokens_beside_the_vocabulary_keep_their_ids(xlm_roberta_folder, tmp_path):
    beside = load_tokenizer(xlm_roberta_folder)
    beside.add_tokens(["<one>", "<two>"])
    model = load_whole(xlm_roberta_folder)
    model.resize_token_embeddings(len(beside) + 5)
    save_model(model, beside, tmp_path / "beside")
    old, new = (load_text_tokenizer(tmp_path / "beside") for _ in range(2))
    add_subwords(new, lines(), size=90)
    save_model(model, new, tmp_path / "saved")
    saved = load_tokenizer(tmp_path / "saved")
    assert saved.get_vocab() == new.get_vocab() and min(added_subwords(old, saved)) == len(old)
    text = f"{TEXT} <two> sitting <one>"
    assert saved(text)["input_ids"] == new(text)["input_ids"]
    assert saved("<two>")["input_ids"] == old("<two>")["input_ids"]


def test_too_few_for_the_characters_is_refused(bert_folder):
    with pytest.raises(ConfigError, match=r"3 subwords.*vocabulary.size"):
        add_subwords(load_text_tokenizer(bert_folder), lines(), size=3)
