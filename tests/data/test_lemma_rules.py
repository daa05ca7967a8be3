"""Edit rules from words to lemmas: each makes its own lemma, and of other words what one expects."""

from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from isogloss.data.formats.conllu import read_sentences
from isogloss.data.lemma_rules import MOST_RULES, UNLISTED, inventory_of, lemma_by, rule_of

texts = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=12)


@given(texts, texts)
@example("İyi", "iyi")
@example("İstanbul'da", "İstanbul")
@example("IŞIK", "ışık")
@example("straße", "STRASSE")
@example("ΛΌΓΟΣ", "λόγος")
@example("à  la", "au | à\\s la")
@example("الكتابُ", "كِتَاب")
@example("_", "_")
def test_a_rule_makes_its_lemma_of_its_word(word, lemma):
    assert lemma_by(rule_of(word, lemma), word) == lemma


@pytest.mark.parametrize(
    ("word", "lemma", "rule"),
    [
        ("the", "the", "lower |"),
        ("The", "the", "lower |"),
        ("Cats", "cat", "lower | -1"),
        ("Anna", "Anna", "title |"),
        ("ANNA", "Anna", "title |"),
        ("USA", "USA", "upper |"),
        ("iPhones", "iPhone", "keep | -1"),
        ("Häuser", "Haus", "title =1 -1 +a | -2"),
        ("gegeben", "geben", "lower -2 |"),
        ("went", "go", "is go"),
        ("aux", "à le", "is à le"),
        ("10 000", "10000", "lower =1 -2 | +0"),
        ("kitaplar", "kitap", "lower | -3"),
        ("İstanbul'da", "İstanbul", "keep | -3"),
        ("والكتاب", "كتاب", "lower -3 |"),
    ],
)
def test_rules_of_words(word, lemma, rule):
    assert rule_of(word, lemma) == rule


@pytest.mark.parametrize(
    ("rule", "word", "lemma"),
    [
        ("lower | -1", "Dogs", "dog"),
        ("lower | -1", "s", None),
        ("title =1 -1 +a | -2", "Bälger", "Balg"),
        ("title =1 -1 +a | -2", "Häu", None),
        ("keep | -1", "iPads", "iPad"),
        ("is go", "s", "go"),
        (r"lower | +\s\\x", "a", "a \\x"),
        (UNLISTED, "a", None),
    ],
)
def test_a_rule_of_other_words_or_none_for_those_too_short(rule, word, lemma):
    assert lemma_by(rule, word) == lemma


def test_an_inventory_has_frequent_rules_alone_and_a_class_for_all_others():
    counts = Counter({"lower | -1": 2, "lower |": 5, "is go": 1, "keep | -1": 2})
    assert inventory_of(counts) == (UNLISTED, "lower |", "keep | -1", "lower | -1")
    many = {f"is {index}": 2 for index in range(MOST_RULES + 1)}
    assert len(inventory_of(many)) == MOST_RULES + 1
    assert inventory_of({}) == (UNLISTED,)


@pytest.mark.nightly
@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("place", ["ud", "ud-pud", "ud-extra", "ud-legacy"])
def test_every_lemma_of_the_treebanks_is_made_by_its_rule(real_data, place):
    files = real_data.find([f"{place}/*/*.conllu"])
    words = {
        (columns[1], columns[2])
        for file in files
        for block in read_sentences(file)
        for _, columns in block.rows
    }
    assert len(words) > 10_000
    assert all(lemma_by(rule_of(word, lemma), word) == lemma for word, lemma in words)
