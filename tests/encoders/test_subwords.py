"""Subwords of words, of texts and of pairs, in every script. Windows over what is too long."""

import itertools
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from each import each
from isogloss.core.errors import ModelError
from isogloss.encoders.subwords import Window, pair_frame, special_subwords, split_words, windows
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.pretraining.new_tokenizers import train_tokenizer
from isogloss.features.question_answering.split_texts import split_texts

# Words

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.sampled_from(
    ["the", "cat", "happened", "việt nam", "\u200b", "", " ", "\u00ad", "．"]
)
SENTENCES = st.lists(st.lists(WORDS, max_size=6), max_size=4)


@pytest.fixture(scope="module", params=["bert", "xlm_roberta", "deberta_v2", "modernbert"])
def family_tokenizer(request):
    return load_tokenizer(request.getfixturevalue(f"{request.param}_folder"))


@given(SENTENCES)
def test_every_word_has_subwords_in_order(family_tokenizer, sentences):
    split = split_words(sentences, family_tokenizer)
    assert len(split) == len(sentences)
    for sentence, given_words in zip(split, sentences, strict=True):
        assert len(sentence.subwords) == len(sentence.words)
        assert list(sentence.words) == sorted(sentence.words)
        assert set(sentence.words) == set(range(len(given_words)))
        assert [sentence.words[place] for place in sentence.first()] == list(range(len(given_words)))


@given(SENTENCES)
def test_splitting_a_sentence_is_splitting_its_words_one_by_one(family_tokenizer, sentences):
    for word, given_words in zip(split_words(sentences, family_tokenizer), sentences, strict=True):
        single_subwords = [
            part.subwords for part in split_words([[word] for word in given_words], family_tokenizer)
        ]
        assert word.subwords == tuple(subword for subwords in single_subwords for subword in subwords)


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


def test_words_that_vanish_become_the_unknown_subword(family_tokenizer):
    (split,) = split_words([["the", "", "cat", ""]], family_tokenizer)
    places = split.first()
    assert [split.words[place] for place in places] == [0, 1, 2, 3]
    assert split.words.count(1) == split.words.count(3) == 1
    assert split.subwords[places[1]] == split.subwords[places[3]] == family_tokenizer.unk_token_id


def test_words_with_a_space_inside_stay_one_word(family_tokenizer):
    (split,) = split_words([["a", "the cat", "ran"]], family_tokenizer)
    assert sorted(set(split.words)) == [0, 1, 2] and split.words.count(1) >= 2
    assert list(split.subwords) == family_tokenizer(" a the cat ran", add_special_tokens=False)["input_ids"]


def test_words_that_look_like_special_subwords_are_only_words(family_tokenizer):
    for special in (
        family_tokenizer.cls_token,
        family_tokenizer.sep_token,
        family_tokenizer.pad_token,
        family_tokenizer.mask_token,
    ):
        (split,) = split_words([["the", special, "cat"]], family_tokenizer)
        assert set(split.words) == {0, 1, 2}


def test_special_subwords_frame_a_text_as_the_tokenizer_does(family_tokenizer):
    (split,) = split_words([["the", "cat"]], family_tokenizer)
    first_special_subword, last_special_subword = special_subwords(family_tokenizer)
    assert family_tokenizer(" the cat")["input_ids"] == [
        first_special_subword,
        *split.subwords,
        last_special_subword,
    ]


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
    vocabulary = {piece: index for index, piece in enumerate(["<unk>", "▁", "a", "b", "▁a", "▁b", "ab"])}
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
    with pytest.raises(ModelError, match="subwords"):
        special_subwords(tokenizer)


# Texts

SCRIPTS = {
    "latin": "the naïve café of São Paulo, 1887 (built)",
    "nfd": unicodedata.normalize("NFD", "Été à Hà Nội, über Ärger"),
    "arabic": "وُلِدَ في القاهرة عام ١٩٤٦، ثم سافر",
    "hindi": "हिन्दी में क्षत्रिय, ज़िंदगी और कर्म।",
    "thai": "เขาเกิดที่กรุงเทพฯ เมื่อปี พ.ศ. ๒๔๘๙ ครับ",
    "chinese": "他于1946年出生在《北京》，中国。",
    "korean": unicodedata.normalize("NFD", "서울에서 태어났다"),
    "emoji": "so 👍🏽 good 👩‍👩‍👧 and 🇫🇷🇩🇪 too 😀",
    "spaces": "  two\u00a0 spaces\u3000and\ta tab\n ",
}
TEXTS = list(SCRIPTS.values())


def byte_level():
    """A tokenizer of bytes, as ModernBERT's: one character can be several subwords, a space begins them."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *letters]
    model = Tokenizer(models.BPE({name: index for index, name in enumerate(names)}, []))
    model.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    model.decoder = decoders.ByteLevel()
    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    return PreTrainedTokenizerFast(tokenizer_object=model, **special)


def lower_without_accents():
    tokenizer = train_tokenizer(TEXTS, family="bert", size=400)
    tokenizer.backend_tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True, strip_accents=True)
    return tokenizer


def compatible():
    tokenizer = train_tokenizer(TEXTS, family="xlm-roberta", size=400)
    tokenizer.backend_tokenizer.normalizer = normalizers.NFKC()
    return tokenizer


def spaces_inside():
    """XLM-R's pieces as newer releases make them: the space before a word is in its subword."""
    tokenizer = train_tokenizer(TEXTS, family="xlm-roberta", size=400)
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    return tokenizer


TOKENIZERS = {
    "bert": lambda: train_tokenizer(TEXTS, family="bert", size=400),
    "bert-uncased": lower_without_accents,
    "xlm-roberta": lambda: train_tokenizer(TEXTS, family="xlm-roberta", size=400),
    "xlm-roberta-nfkc": compatible,
    "xlm-roberta-spaces": spaces_inside,
    "byte-level": byte_level,
}


@pytest.fixture(scope="module", params=TOKENIZERS)
def tokenizer(request):
    return TOKENIZERS[request.param]()


def pieces(text, tokenizer):
    (split,) = split_texts([text], tokenizer)
    numbers = list(split.characters)
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def check(text, spans):
    """Each has characters, none begins or ends with a space, no two begin together, no letter is missed.

    What a normaliser drops after a space, or before all else, belongs to no subword.
    """
    assert all(0 <= begin < end <= len(text) for begin, end in spans)
    assert not any(text[begin].isspace() or text[end - 1].isspace() for begin, end in spans)
    assert spans == sorted(spans)
    assert len({begin for begin, _ in spans}) == len(spans)
    covered_places = {place for begin, end in spans for place in range(begin, end)}
    missed_places = [
        place for place, letter in enumerate(text) if place not in covered_places and not letter.isspace()
    ]
    assert all(
        place - 1 in missed_places or not place or text[place - 1].isspace() for place in missed_places
    )


@pytest.mark.each_value
@pytest.mark.parametrize("script", SCRIPTS)
def test_every_letter_of_every_script_belongs_to_a_subword(tokenizer, script):
    text = SCRIPTS[script]
    spans = pieces(text, tokenizer)
    check(text, spans)
    assert not text[: spans[0][0]].strip()


@given(st.text(max_size=30) | st.lists(st.sampled_from("".join(TEXTS)), max_size=30).map("".join))
def test_places_are_in_order_and_lose_nothing_but_what_a_text_begins_with(tokenizer, text):
    check(text, pieces(text, tokenizer))


@given(st.data())
def test_places_between_two_characters_are_those_that_share_one_with_them(tokenizer, data):
    text = data.draw(st.sampled_from(TEXTS))
    begin = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(begin, len(text)))
    (split,) = split_texts([text], tokenizer)
    expected = [
        place for place, (left, right) in enumerate(pieces(text, tokenizer)) if left < end and right > begin
    ]
    result = list(split.between(begin, end))
    assert result == expected or begin == end


def test_words_of_each_script_are_found_whole():
    tokenizer = train_tokenizer(TEXTS, family="bert", size=400)
    for script, word in {
        "nfd": unicodedata.normalize("NFD", "Nội"),
        "hindi": "क्षत्रिय",
        "arabic": "القاهرة",
        "chinese": "北京",
        "emoji": "👩‍👩‍👧",
        "korean": unicodedata.normalize("NFD", "서울에서"),
    }.items():
        text = SCRIPTS[script]
        (split,) = split_texts([text], tokenizer)
        begin = text.index(word)
        places = split.between(begin, begin + len(word))
        result = text[split.characters[2 * places[0]] : split.characters[2 * places[-1] + 1]]
        assert result == word, script


@pytest.mark.parametrize("normalizer", ["bert-uncased", "xlm-roberta-nfkc"])
def test_marks_that_a_normaliser_drops_or_joins_stay_with_their_letter(normalizer):
    tokenizer = TOKENIZERS[normalizer]()
    text = unicodedata.normalize("NFD", "é Hà Nội ü")
    ends = {end for _, end in pieces(text, tokenizer)}
    assert not any(unicodedata.combining(text[end]) for end in each(ends - {len(text)}))


@pytest.mark.slow
def test_a_frame_is_what_the_tokenizer_puts_around_a_pair(bert_folder, xlm_roberta_folder):
    for folder in (bert_folder, xlm_roberta_folder):
        tokenizer = load_tokenizer(folder)
        frame = pair_frame(tokenizer)
        assert frame.special == tokenizer.num_special_tokens_to_add(pair=True)
        for first_name, second in (("the cat", "sat on the mat"), ("a", "dog"), ("ran", "")):
            input_ids, other_input_ids = (
                tokenizer(text, add_special_tokens=False)["input_ids"] for text in (first_name, second)
            )
            encodings = tokenizer([first_name], [second], return_token_type_ids=True)
            assert list(frame.subwords(input_ids, other_input_ids)) == encodings["input_ids"][0]
            segments = frame.segments_of(len(input_ids), len(other_input_ids))
            assert list(segments or bytes(len(encodings["input_ids"][0]))) == encodings["token_type_ids"][0]


# Windows


@st.composite
def cases(draw):
    limit = draw(st.integers(1, 24))
    return draw(st.integers(0, 120)), limit, draw(st.integers(0, limit - 1))


def context(window, position, length):
    left = position - window.start if window.start > 0 else length
    right = window.stop - 1 - position if window.stop < length else length
    return min(left, right)


@given(cases())
def test_every_position_is_owned_once_and_in_order(case):
    length, limit, overlap = case
    owned_positions = [
        position
        for window in windows(length, limit=limit, overlap=overlap)
        for position in range(window.own_start, window.own_stop)
    ]
    assert owned_positions == list(range(length))


@given(cases())
def test_the_owner_shows_most_context_and_is_the_first_that_does(case):
    length, limit, overlap = case
    result = windows(length, limit=limit, overlap=overlap)
    for position in range(length):
        showing = [window for window in result if window.start <= position < window.stop]
        best_showing = max(showing, key=lambda window: context(window, position, length))
        assert best_showing.own_start <= position < best_showing.own_stop


@given(cases())
def test_windows_are_full_and_overlap_enough(case):
    length, limit, overlap = case
    result = windows(length, limit=limit, overlap=overlap)
    assert (result[0].start, result[-1].stop) == (0, length)
    assert all(window.stop - window.start == min(limit, length) for window in result)
    for left, right in itertools.pairwise(result):
        assert left.start < right.start
        assert left.stop - right.start >= overlap


@given(cases())
def test_no_window_is_needless(case):
    length, limit, overlap = case
    result = windows(length, limit=limit, overlap=overlap)
    assert len(result) == (1 if length <= limit else 1 + -(-(length - limit) // (limit - overlap)))
    if length <= limit:
        assert result == [Window(0, length, 0, length)]


@pytest.mark.parametrize(("limit", "overlap"), [(4, 4), (4, 7), (4, -1), (0, 0)])
def test_impossible_overlaps_are_refused(limit, overlap):
    with pytest.raises(ValueError, match=f"{limit}.*{overlap}"):
        windows(10, limit=limit, overlap=overlap)
