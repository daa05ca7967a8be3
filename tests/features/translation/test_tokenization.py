"""Words and sentences of running text, and back."""

import sys
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss.data.projection.words import (
    detokenize,
    tokenize,
    word_breaker,
    word_breaking,
    word_offsets,
)
from isogloss.features.translation.sentences import sentences_in


@pytest.fixture
def without_icu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, "icu4py.breakers", None)
    word_breaker.cache_clear()
    yield
    word_breaker.cache_clear()


WRITTEN = [
    ("en", 'He said "no" (twice), didn\'t he?', 'He said " no " ( twice ) , didn\'t he ?'),
    ("es", "¿Qué dijo el Sr. Pérez...? ¡Nada!", "¿ Qué dijo el Sr. Pérez ... ? ¡ Nada !"),
    ("de", "„Ja“, sagte sie.", "„ Ja “ , sagte sie ."),
    ("fr", "«L'homme», dit-il, qu’il aime.", "« L' homme » , dit-il , qu’ il aime ."),
    ("it", "Nell'acqua c'è un'isola dell'amico.", "Nell' acqua c' è un' isola dell' amico ."),
    ("zh", "我2004年爱北京。你好！", "我 2004 年 爱 北 京 。 你 好 ！"),
    ("ja", "東京タワーへ行く。", "東 京 タワー へ 行 く 。"),
    ("hi", "वह गया।", "वह गया ।"),
    ("th", "ฉันรักเธอ", "ฉันรักเธอ"),
]


@pytest.mark.usefixtures("without_icu")
@pytest.mark.parametrize(("language", "text", "words"), WRITTEN)
def test_words_of_running_text(language: str, text: str, words: str) -> None:
    assert tokenize(text) == tuple(words.split()), language
    assert tuple(text[start:end] for start, end in word_offsets(tokenize(text), text)) == tokenize(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("我喜欢自然语言，你呢？", "我 喜欢 自然 语言 ， 你 呢 ？"),
        ("私は東京に住む。", "私 は 東京 に 住む 。"),
        ("ฉันรักภาษาไทย", "ฉัน รัก ภาษา ไทย"),
        ("ຂ້ອຍຮັກພາສາລາວ", "ຂ້ອຍ ຮັກ ພາສາ ລາວ"),
        ("ខ្ញុំស្រឡាញ់ភាសា", "ខ្ញុំ ស្រឡាញ់ ភាសា"),
        ("ကျွန်တော်မြန်မာစာ", "ကျွန်တော် မြန်မာ စာ"),
        ("Il dit «oui» à Zoë.", "Il dit « oui » à Zoë ."),
    ],
)
def test_dictionaries_find_the_words_of_scripts_without_spaces(text: str, words: str) -> None:
    pytest.importorskip("icu4py")
    assert tokenize(text) == tuple(words.split())
    assert tuple(text[start:end] for start, end in word_offsets(tokenize(text), text)) == tokenize(text)


def test_dictionaries_are_named_where_a_language_needs_them(without_icu: None) -> None:
    assert word_breaking(["en", "zh_Hant"]) == ""
    word_breaker.cache_clear()


def test_dictionaries_have_a_version() -> None:
    icu4py = pytest.importorskip("icu4py")
    assert word_breaking(["en", "zh_Hant"]) == f"icu-{icu4py.icu_version}"
    assert word_breaking(["en", "de"]) == ""


@pytest.mark.parametrize(("language", "text", "words"), WRITTEN)
def test_words_make_the_text_again(language: str, text: str, words: str) -> None:
    assert detokenize(words.split()) == text, language


def test_english_endings_stand_with_their_word() -> None:
    words = "I do n't know what it 's for ."
    assert detokenize(words.split()) == "I don't know what it's for."


def test_marks_alone_are_words() -> None:
    words = "- $ 5 10:30 5 % --- U.S. 😀"
    assert tokenize("- $5 10:30 5% --- U.S. 😀") == tuple(words.split())


def test_nothing_is_no_words() -> None:
    assert tokenize("  ") == ()
    assert detokenize(()) == ""


@given(st.text(alphabet=' .!?。！ab A"”।\n', max_size=60))
def test_sentences_put_together_are_the_text(text: str) -> None:
    assert "".join("".join(sentences_in(text)).split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("It rained. We stayed! Why?", ["It rained.", "We stayed!", "Why?"]),
        ('He said "Go." Then he left.', ['He said "Go."', "Then he left."]),
        ("Dr. Smith met J. R. Jones in the U.S. Army.", ["Dr. Smith met J. R. Jones in the U.S. Army."]),
        ("It cost 3.14 and 2. more.", ["It cost 3.14 and 2. more."]),
        ("下雨了。我们留下！为什么？", ["下雨了。", "我们留下！", "为什么？"]),
        ("यह घर है। वह गया।", ["यह घर है।", "वह गया।"]),
        ("هل جاء؟ نعم.", ["هل جاء؟", "نعم."]),
        ("no end at all", ["no end at all"]),
        ("  ", []),
    ],
)
def test_sentences_end_where_a_reader_ends_them(text: str, sentences: list[str]) -> None:
    assert sentences_in(text) == sentences
