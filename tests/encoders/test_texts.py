import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

from isogloss.encoders import load_tokenizer, train_tokenizer
from isogloss.encoders.subwords import pair_frame, split_texts

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
    from transformers import PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *letters]
    model = Tokenizer(models.BPE({name: number for number, name in enumerate(names)}, []))
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
    covered = {place for begin, end in spans for place in range(begin, end)}
    missed = [place for place, letter in enumerate(text) if place not in covered and not letter.isspace()]
    assert all(place - 1 in missed or not place or text[place - 1].isspace() for place in missed)


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
        place for place, (one, other) in enumerate(pieces(text, tokenizer)) if one < end and other > begin
    ]
    found = list(split.between(begin, end))
    assert found == expected or begin == end


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
        found = text[split.characters[2 * places[0]] : split.characters[2 * places[-1] + 1]]
        assert found == word, script


@pytest.mark.parametrize("normalizer", ["bert-uncased", "xlm-roberta-nfkc"])
def test_marks_that_a_normaliser_drops_or_joins_stay_with_their_letter(normalizer):
    tokenizer = TOKENIZERS[normalizer]()
    text = unicodedata.normalize("NFD", "é Hà Nội ü")
    ends = {end for _, end in pieces(text, tokenizer)}
    assert not any(unicodedata.combining(text[end]) for end in ends if end < len(text))


def test_a_frame_is_what_the_tokenizer_puts_around_a_pair(bert_folder, xlm_roberta_folder):
    for folder in (bert_folder, xlm_roberta_folder):
        tokenizer = load_tokenizer(folder)
        frame = pair_frame(tokenizer)
        assert frame.special == tokenizer.num_special_tokens_to_add(pair=True)
        for first, second in (("the cat", "sat on the mat"), ("a", "dog"), ("ran", "")):
            one, other = (tokenizer(text, add_special_tokens=False)["input_ids"] for text in (first, second))
            both = tokenizer([first], [second], return_token_type_ids=True)
            assert list(frame.subwords(one, other)) == both["input_ids"][0]
            segments = frame.segments_of(len(one), len(other))
            assert list(segments or bytes(len(both["input_ids"][0]))) == both["token_type_ids"][0]


def test_no_texts_are_no_work():
    assert split_texts([], None) == []
