"""Words of running text and back."""

import pytest

from isogloss.data.tokenization import running_text, words_in

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


@pytest.mark.parametrize(("language", "text", "words"), WRITTEN)
def test_words_of_running_text(language: str, text: str, words: str) -> None:
    assert words_in(text) == tuple(words.split()), language


@pytest.mark.parametrize(("language", "text", "words"), WRITTEN)
def test_words_make_the_text_again(language: str, text: str, words: str) -> None:
    assert running_text(words.split()) == text, language


def test_english_endings_stand_with_their_word() -> None:
    words = "I do n't know what it 's for ."
    assert running_text(words.split()) == "I don't know what it's for."


def test_marks_alone_are_words() -> None:
    words = "- $ 5 10:30 5 % --- U.S. 😀"
    assert words_in("- $5 10:30 5% --- U.S. 😀") == tuple(words.split())


def test_nothing_is_no_words() -> None:
    assert words_in("  ") == ()
    assert running_text(()) == ""
