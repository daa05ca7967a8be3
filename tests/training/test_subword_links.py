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


def encode_words(tokenizer, words, tags=(), links=None, **how):
    one = TaggedSentence(id="1", words=tuple(words), tags=tuple(tags), links=links)
    return UPOS.encode([one], tokenizer, **how)


def words_of(row, words, tokenizer):
    """Return the word of each subword of a row that begins a sentence, by splitting words separately."""
    counts = [
        len(tokenizer([[one]], is_split_into_words=True, add_special_tokens=False)["input_ids"][0])
        for one in words
    ]
    places = [word for word, count in enumerate(counts) for _ in range(max(1, count))]
    return [-1, *places[: len(row.subwords) - 2], -1]


@settings(max_examples=10)
@given(data=st.data(), source=SENTENCE, target=SENTENCE)
def test_subwords_are_linked_as_their_words_are(tokenizer, data, source, target):
    pair = st.tuples(st.integers(0, len(source) - 1), st.integers(0, len(target) - 1))
    links = tuple(data.draw(st.lists(pair, max_size=10)))
    (one,), (other,) = encode_words(tokenizer, source), encode_words(tokenizer, target, links=links)
    width = max(len(one.subwords), len(other.subwords)) + 2
    (found,) = subword_links([RowPair(one, other, other.links)], width=width)
    ones, others = words_of(one, source, tokenizer), words_of(other, target, tokenizer)
    expected = torch.zeros(width, width, dtype=torch.bool)
    for place, word in enumerate(others):
        for beside, its in enumerate(ones):
            expected[place, beside] = (its, word) in links
    assert torch.equal(found, expected)
    (back,) = subword_links([RowPair(other, one, reversed_links(other.links))], width=width)
    assert torch.equal(back, found.T)


def test_every_subword_of_a_word_is_linked_and_no_special_one(tokenizer):
    (one,), (other,) = (
        encode_words(tokenizer, ["cat"]),
        encode_words(tokenizer, ["casings", "the"], links=((0, 0),)),
    )
    assert list(other.word_of) == [-1, 0, 0, 1, -1]
    (found,) = subword_links([RowPair(one, other, other.links)], width=6)
    assert found.any(dim=1).tolist() == [False, True, True, False, False, False]
    assert found.any(dim=0).tolist() == [False, True, False, False, False, False]


@pytest.mark.parametrize("causal", [False, True])
def test_which_subword_is_scored_and_which_words_have_tags_does_not_matter(bert_folder, causal):
    tokenizer = load_tokenizer(bert_folder)
    set_causal(tokenizer, causal=causal)
    words = ["casings", "the", "happened"]
    (plain,) = encode_words(tokenizer, words)
    (some,) = encode_words(tokenizer, words, ["", "DET", ""])
    assert some.words == (1,) and len(plain.positions) == 3
    assert plain.positions[0] == (2 if causal else 1)
    assert some.word_of == plain.word_of == array("i", [-1, 0, 0, 1, 2, -1])


def test_a_window_links_the_words_it_shows_those_too_that_another_scores(tokenizer):
    words = spell_words(sentences("en", 1, longest=40, seed=3)[0].words * 4, "en")
    same = tuple((n, n) for n in range(len(words)))
    rows = encode_words(tokenizer, words, links=same, limit=20, overlap=8)
    assert len(rows) > 2
    for row in rows:
        shown = [word for word in row.word_of if word >= 0]
        assert shown == sorted(shown) and set(row.words) < set(shown)
        (found,) = subword_links([RowPair(row, row, row.links)], width=20)
        for place, word in enumerate(row.word_of):
            expected = [word >= 0 and word == its for its in row.word_of]
            assert found[place, : len(expected)].tolist() == expected
    first, last = rows[0], rows[-1]
    assert not subword_links([RowPair(first, last, same)], width=20).any()  # No word is in both.


def test_links_that_one_pair_lacks_are_known_of_none(tokenizer):
    (row,) = encode_words(tokenizer, WORDS, links=((0, 0),))
    bare = replace(row, links=None)
    assert subword_links([RowPair(row, row, row.links), RowPair(row, bare, None)], width=20) is None
    assert reversed_links(None) is None
    assert reversed_links(((0, 1), (2, 2))) == [(1, 0), (2, 2)]


@pytest.mark.parametrize("link", [(-1, 0), (0, -1), (0, 6)])
def test_a_link_to_no_word_is_an_error(tokenizer, link):
    said = f"example '1': .*{link[0]}-{link[1]}.*6"
    with pytest.raises(DataError, match=said):
        encode_words(tokenizer, WORDS, links=(link,))


def test_translations_without_links_are_named():
    bare = sentences("en-de", 3)
    check_linked(link_words(bare), "en-de")
    said = r"en-de: .*\"links\".*2.*1, 2\)"
    with pytest.raises(DataError, match=said):
        check_linked([*link_words(bare[:1]), *bare[1:]], "en-de")
