"""Links of words become links of the subwords that rows show of them."""

from array import array
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from in_translation import link_words, sentences, spell_words
from isogloss.core.errors import DataError
from isogloss.data.examples import TaggedSentence
from isogloss.encoders.subwords import set_causal
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.tasks import TASKS
from isogloss.training.sides import RowPair, check_linked, reversed_links, subword_links

UPOS = TASKS["upos"]
WORDS = ("the", "casings", "happened", "cat", "unhappening", "Anna")
SENTENCE = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8)


@pytest.fixture(scope="module")
def tokenizer(bert_folder):
    return load_tokenizer(bert_folder)


def encode_words(tokenizer, words, tags=(), links=None, **options):
    tagged_sentence = TaggedSentence(id="1", words=tuple(words), tags=tuple(tags), links=links)
    return UPOS.encode([tagged_sentence], tokenizer, **options)


def words_of(row, words, tokenizer):
    """Return the word of each subword of a row that begins a sentence, by splitting words separately."""
    counts = [
        len(tokenizer([[word]], is_split_into_words=True, add_special_tokens=False)["input_ids"][0])
        for word in words
    ]
    places = [word for word, count in enumerate(counts) for _ in range(max(1, count))]
    return [-1, *places[: len(row.subwords) - 2], -1]


@settings(max_examples=10)
@given(data=st.data(), source=SENTENCE, target=SENTENCE)
def test_subwords_are_linked_as_their_words_are(tokenizer, data, source, target):
    pair = st.tuples(st.integers(0, len(source) - 1), st.integers(0, len(target) - 1))
    links = tuple(data.draw(st.lists(pair, max_size=10)))
    (encoding,) = encode_words(tokenizer, source)
    (other_encoding,) = encode_words(tokenizer, target, links=links)
    width = max(len(encoding.subwords), len(other_encoding.subwords)) + 2
    (subword_link,) = subword_links([RowPair(encoding, other_encoding, other_encoding.links)], width=width)
    unit_words = words_of(encoding, source, tokenizer)
    other_words = words_of(other_encoding, target, tokenizer)
    expected = torch.zeros(width, width, dtype=torch.bool)
    for place, word in enumerate(other_words):
        for beside, its in enumerate(unit_words):
            expected[place, beside] = (its, word) in links
    assert torch.equal(subword_link, expected)
    (back,) = subword_links(
        [RowPair(other_encoding, encoding, reversed_links(other_encoding.links))], width=width
    )
    assert torch.equal(back, subword_link.T)


def test_every_subword_of_a_word_is_linked_and_no_special_one(tokenizer):
    (encoding,) = encode_words(tokenizer, ["cat"])
    (other_encoding,) = encode_words(tokenizer, ["casings", "the"], links=((0, 0),))
    assert list(other_encoding.word_of) == [-1, 0, 0, 1, -1]
    (subword_link,) = subword_links([RowPair(encoding, other_encoding, other_encoding.links)], width=6)
    assert subword_link.any(dim=1).tolist() == [False, True, True, False, False, False]
    assert subword_link.any(dim=0).tolist() == [False, True, False, False, False, False]


@pytest.mark.parametrize("causal", [False, True])
def test_which_subword_is_scored_and_which_words_have_tags_does_not_matter(bert_folder, causal):
    tokenizer = load_tokenizer(bert_folder)
    set_causal(tokenizer, causal=causal)
    words = ["casings", "the", "happened"]
    (plain_encoding,) = encode_words(tokenizer, words)
    (encoding,) = encode_words(tokenizer, words, ["", "DET", ""])
    assert encoding.words == (1,) and len(plain_encoding.positions) == 3
    assert plain_encoding.positions[0] == (2 if causal else 1)
    assert encoding.word_of == plain_encoding.word_of == array("i", [-1, 0, 0, 1, 2, -1])


def test_a_window_links_the_words_it_shows_those_too_that_another_scores(tokenizer):
    words = spell_words(sentences("en", 1, longest=40, seed=3)[0].words * 4, "en")
    same_value = tuple((n, n) for n in range(len(words)))
    rows = encode_words(tokenizer, words, links=same_value, limit=20, overlap=8)
    assert len(rows) > 2
    for row in rows:
        text = [word for word in row.word_of if word >= 0]
        assert text == sorted(text) and set(row.words) < set(text)
        (subword_link,) = subword_links([RowPair(row, row, row.links)], width=20)
        for place, word in enumerate(row.word_of):
            expected = [word >= 0 and word == its for its in row.word_of]
            assert subword_link[place, : len(expected)].tolist() == expected
    first_row = rows[0]
    last_row = rows[-1]
    assert not subword_links(
        [RowPair(first_row, last_row, same_value)], width=20
    ).any()  # No word is in both.


def test_links_that_one_pair_lacks_are_known_of_none(tokenizer):
    (row,) = encode_words(tokenizer, WORDS, links=((0, 0),))
    bare_row = replace(row, links=None)
    assert subword_links([RowPair(row, row, row.links), RowPair(row, bare_row, None)], width=20) is None
    assert reversed_links(None) is None
    assert reversed_links(((0, 1), (2, 2))) == [(1, 0), (2, 2)]


@pytest.mark.parametrize("link", [(-1, 0), (0, -1), (0, 6)])
def test_a_link_to_no_word_is_an_error(tokenizer, link):
    text = f"example '1': .*{link[0]}-{link[1]}.*6"
    with pytest.raises(DataError, match=text):
        encode_words(tokenizer, WORDS, links=(link,))


def test_translations_without_links_are_named():
    bare_sentences = sentences("en-de", 3)
    check_linked(link_words(bare_sentences), "en-de")
    text = r"en-de: .*\"links\".*2.*1, 2\)"
    with pytest.raises(DataError, match=text):
        check_linked([*link_words(bare_sentences[:1]), *bare_sentences[1:]], "en-de")
