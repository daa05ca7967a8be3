import pytest

from isogloss.core.errors import DataError
from isogloss.data.catalogue import UDPOS, WIKIANN
from isogloss.data.examples import TaggedSentence


def test_wikiann_reads_both_layouts_and_keeps_tags_as_found(fixtures):
    english = list(WIKIANN.read(fixtures, "en", "train"))
    assert english[0].words == ("Ada", "Lovelace", "saw", "London")
    assert english[1] == TaggedSentence(id="2", words=("River", "bank"), tags=("I-LOC", "O"))
    swahili = list(WIKIANN.read(fixtures, "sw", "train"))
    assert [sentence.words for sentence in swahili] == [("Mto", "Nile"), ("a:b",)]


def test_udpos_reads_universal_tags(fixtures):
    sentences = list(UDPOS.read(fixtures, "en", "train"))
    assert [sentence.tags for sentence in sentences] == [("NOUN", "VERB", "PUNCT"), ("INTJ",)]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("London", "1 columns in 'London'; expected a word, a tab and its tag"),
        ("a\tO\tO", "3 columns"),
        (" ", "1 columns"),
        ("London\tB-GPE", "tag 'B-GPE'; expected one of B-LOC, B-ORG"),
        ("London\tB-LOCATION", "Did you mean 'B-LOC'? Correct the line."),
        ("London\tI-Per", "Did you mean 'I-PER'?"),
        ("London\tB-DATE", "I-PER, O. The task knows the types LOC, ORG, PER alone: give the words of any"),
        ("London\t", "tag ''"),
        ("\tO", "no word before tag 'O'"),
    ],
)
def test_broken_line_names_file_and_line(message, line, said):
    text = message(WIKIANN, {"panx/train-en.tsv": f"a\tO\n\n{line}\n"})
    assert "panx/train-en.tsv:3: " in text
    assert said in text


def test_original_layout_without_its_prefix_is_an_error(message):
    text = message(WIKIANN, {"wikiann/en/train": "en:a\tO\nb\tO\n"})
    assert "wikiann/en/train:2: word 'b'; expected 'en:' before each word" in text


def test_unknown_universal_tag_is_an_error(message):
    assert "train-en.tsv:1: tag 'NN'" in message(UDPOS, {"udpos/train-en.tsv": "a\tNN\n"})


def test_missing_language_lists_those_that_are_there(fixtures):
    with pytest.raises(DataError) as caught:
        WIKIANN.read(fixtures, "enn", "train")
    assert "wikiann has train for: en, sw. Did you mean 'en'?" in str(caught.value)
    assert "Looked for panx/train-enn.tsv" in str(caught.value)


def test_missing_split_lists_those_of_the_language(fixtures):
    with pytest.raises(DataError, match="For 'sw' it has: train"):
        WIKIANN.read(fixtures, "sw", "test")


def test_empty_folder_says_what_is_in_it(put):
    with pytest.raises(DataError, match=r"The folder holds: something\.txt"):
        WIKIANN.read(put({"something.txt": ""}), "en", "train")
