"""Parallel treebanks as bitext: sentences matched by sent_id."""

import pytest

from isogloss.core.errors import DataError
from isogloss.data.bitext import Bitext
from isogloss.data.examples import Translation
from isogloss.data.word_links import pair_words

WORD = "1\t{}\t_\tNOUN\t_\t_\t0\troot\t_\t_"


def treebank(*sentences):
    """Make a file of sentences of one word each: sent_id, text (empty: none), word."""
    blocks = []
    for name, text, word in sentences:
        lines = [f"# sent_id = {name}", *([f"# text = {text}"] if text else []), WORD.format(word)]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + "\n\n"


ENGLISH = treebank(("n1", "A = “cat”.", "cat"), ("n2", "", "dog"))
GERMAN = treebank(("n2", "Ein Hund.", "Hund"), ("n1", "Eine Katze.", "Katze"))


def files(english=ENGLISH, german=GERMAN, place="ud-pud/"):
    return {
        f"{place}UD_English-PUD/en_pud-ud-test.conllu": english,
        f"{place}UD_German-PUD/de_pud-ud-test.conllu": german,
    }


def read(folder, pair, split="test"):
    return list(Bitext(collection="pud").read(folder, pair, split))


@pytest.mark.parametrize("place", ["ud/", "ud-pud/", "ud-treebanks-v2.16/", ""])
def test_sentences_are_matched_by_sent_id_and_have_their_own_text(put, place):
    assert read(put(files(place=place)), "en-de") == [
        Translation(id="n1", first="A = “cat”.", second="Eine Katze."),
        Translation(id="n2", first="dog", second="Ein Hund."),
    ]


def test_the_words_are_those_of_the_treebanks(put):
    assert [pair_words(one) for one in read(put(files()), "en-de")] == [
        (("cat",), ("Katze",)),
        (("dog",), ("Hund",)),
    ]


def test_the_pair_is_read_in_either_order(put):
    found = read(put(files()), "de-en")
    assert [(one.id, one.first, one.second) for one in found] == [
        ("n2", "Ein Hund.", "dog"),
        ("n1", "Eine Katze.", "A = “cat”."),
    ]


def test_a_split_that_is_not_there_names_the_one_that_is(put):
    with pytest.raises(DataError, match="no dev split of bitext 'en-de'; it has test"):
        read(put(files()), "en-de", "dev")


def test_a_sentence_without_its_translation_is_an_error(put):
    folder = put(files(german=treebank(("n1", "", "Katze"))))
    with pytest.raises(DataError, match=r"are not parallel: 1 of .*en_pud.* are not in .*de_pud.*ids n2"):
        read(folder, "en-de")


def test_another_collection_names_this_one(put):
    with pytest.raises(DataError, match="Collections that have 'en-de': pud; say collection = 'pud'"):
        list(Bitext(collection="tatoeba").read(put(files()), "en-de", "test"))


@pytest.mark.parametrize("pair", ["en-de", "en-th", "hi-ru"])
def test_the_parallel_treebanks_have_a_thousand_sentences(real_data, pair):
    found = read(real_data, pair)
    assert len(found) == len({one.id for one in found}) == 1000
    assert all(one.first.strip() and one.second.strip() and one.links is None for one in found)
