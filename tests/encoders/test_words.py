import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from isogloss.core.errors import ModelError
from isogloss.encoders.loading import load_tokenizer
from isogloss.encoders.subwords import special_subwords, split_words

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.sampled_from(
    ["the", "cat", "happened", "việt nam", "\u200b", "", " ", "\u00ad", "．"]
)
sentences = st.lists(st.lists(words, max_size=6), max_size=4)


@pytest.fixture(scope="module", params=["bert", "xlm_roberta", "deberta_v2", "modernbert"])
def tokenizer(request):
    return load_tokenizer(request.getfixturevalue(f"{request.param}_folder"))


@given(sentences)
@settings(max_examples=60, deadline=None)
def test_every_word_has_subwords_in_order(tokenizer, sentences):
    split = split_words(sentences, tokenizer)
    assert len(split) == len(sentences)
    for one, given_words in zip(split, sentences, strict=True):
        assert len(one.subwords) == len(one.words)
        assert list(one.words) == sorted(one.words)
        assert set(one.words) == set(range(len(given_words)))
        assert [one.words[place] for place in one.first()] == list(range(len(given_words)))


@given(sentences)
@settings(max_examples=60, deadline=None)
def test_splitting_a_sentence_is_splitting_its_words_one_by_one(tokenizer, sentences):
    for one, given_words in zip(split_words(sentences, tokenizer), sentences, strict=True):
        alone = [part.subwords for part in split_words([[word] for word in given_words], tokenizer)]
        assert one.subwords == tuple(subword for subwords in alone for subword in subwords)


def test_subwords_are_the_tokenizers_own(bert_folder, xlm_roberta_folder):
    sentence = ["the", "happened", "casing", "cats"]
    expected = {
        bert_folder: ["the", "happened", "casing", "cat", "##s"],
        xlm_roberta_folder: ["▁the", "▁happened", "▁casing", "▁cat", "s"],
    }
    for folder, pieces in expected.items():
        tokenizer = load_tokenizer(folder)
        (split,) = split_words([sentence], tokenizer)
        assert tokenizer.convert_ids_to_tokens(list(split.subwords)) == pieces
        assert split.words == (0, 1, 2, 3, 3)
        assert split.first() == [0, 1, 2, 3]


def test_words_that_vanish_become_the_unknown_subword(tokenizer):
    (split,) = split_words([["the", "", "cat", ""]], tokenizer)
    places = split.first()
    assert [split.words[place] for place in places] == [0, 1, 2, 3]
    assert split.words.count(1) == split.words.count(3) == 1
    assert split.subwords[places[1]] == split.subwords[places[3]] == tokenizer.unk_token_id


def test_words_with_a_space_inside_stay_one_word(tokenizer):
    (split,) = split_words([["a", "the cat", "ran"]], tokenizer)
    assert sorted(set(split.words)) == [0, 1, 2] and split.words.count(1) >= 2
    assert list(split.subwords) == tokenizer(" a the cat ran", add_special_tokens=False)["input_ids"]


def test_words_that_look_like_special_subwords_are_only_words(tokenizer):
    for special in (tokenizer.cls_token, tokenizer.sep_token, tokenizer.pad_token, tokenizer.mask_token):
        (split,) = split_words([["the", special, "cat"]], tokenizer)
        assert set(split.words) == {0, 1, 2}


def test_special_subwords_frame_a_text_as_the_tokenizer_does(tokenizer):
    (split,) = split_words([["the", "cat"]], tokenizer)
    first, last = special_subwords(tokenizer)
    assert tokenizer(" the cat")["input_ids"] == [first, *split.subwords, last]


@pytest.mark.parametrize(
    "text", [" the unbelievable cat", " и это", " 日本 語", " यह हिन्दी", " هذا نص", " Ünïcödé 👍🏽"]
)
def test_words_of_bytes_are_those_of_running_text_after_a_space(modernbert_folder, text):
    tokenizer = load_tokenizer(modernbert_folder)
    (split,) = split_words([text.split()], tokenizer)
    assert list(split.subwords) == tokenizer(text, add_special_tokens=False)["input_ids"]
    pieces = tokenizer.convert_ids_to_tokens([split.subwords[place] for place in split.first()])
    assert all(piece.startswith("Ġ") for piece in pieces)


def test_words_of_pieces_with_their_space_are_those_of_running_text():
    """As mmBERT has it: a space becomes ▁ and is put before no text."""
    vocabulary = {piece: number for number, piece in enumerate(["<unk>", "▁", "a", "b", "▁a", "▁b", "ab"])}
    backend = Tokenizer(models.BPE(vocabulary, [("▁", "a"), ("▁", "b"), ("a", "b")], unk_token="<unk>"))
    backend.normalizer = normalizers.Replace(" ", "▁")
    backend.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>")
    (split,) = split_words([["a", "ba", "b"]], tokenizer)
    assert tokenizer.convert_ids_to_tokens(list(split.subwords)) == ["▁a", "▁b", "a", "▁b"]
    assert split.words == (0, 1, 1, 2)


def test_tokenizers_without_special_subwords_are_refused(bert_folder):
    tokenizer = load_tokenizer(bert_folder)
    tokenizer.sep_token = None
    with pytest.raises(ModelError, match="no subwords that open and close a text"):
        special_subwords(tokenizer)
