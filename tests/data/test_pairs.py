import pytest

from isogloss.core.errors import DataError
from isogloss.data.catalogue import PAWSX, XNLI
from isogloss.data.examples import SentencePair


def test_official_file_gives_the_rows_of_one_language_with_equal_ids(fixtures):
    english, swahili = (list(XNLI.read(fixtures, language, "dev")) for language in ("en", "sw"))
    assert english[0] == SentencePair(
        id="1", first="The cat sleeps.", second='The "cat is old.', label="neutral"
    )
    assert swahili[1].label == "contradiction"
    assert [pair.id for pair in english] == [pair.id for pair in swahili] == ["1", "2"]


def test_language_the_official_file_lacks_is_read_from_its_own(fixtures):
    (pair,) = XNLI.read(fixtures, "kn", "dev")
    assert pair.label == "contradiction"


def test_language_that_is_nowhere_lists_those_of_the_file(fixtures):
    with pytest.raises(DataError, match=r"xnli\.dev\.tsv: no rows of language 'swa'.*'sw'.*It has: en, sw"):
        XNLI.read(fixtures, "swa", "dev")


def test_training_file_spells_contradiction_in_its_own_way(fixtures):
    pairs = list(XNLI.read(fixtures, "en", "train"))
    assert [pair.label for pair in pairs] == ["contradiction", "entailment"]


def test_multinli_s_own_header_is_understood(put):
    text = "gold_label\tpairID\tsentence1\tsentence2\nneutral\tx\ta\tb\n"
    (pair,) = XNLI.read(put({"multinli_1.0/multinli_1.0_train.txt": text}), "en", "train")
    assert (pair.first, pair.second, pair.label) == ("a", "b", "neutral")


def test_pawsx_takes_ids_from_the_file_where_it_has_them(fixtures):
    assert [pair.id for pair in PAWSX.read(fixtures, "de", "dev")] == ["4", "6"]
    assert [(pair.id, pair.label) for pair in PAWSX.read(fixtures, "sw", "dev")] == [("1", "1")]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("a\tb", "2 columns in 'a\\tb'; expected 3, split by tabs"),
        ("a\tb\tneutral\tx", "4 columns"),
        ("", "1 columns"),
        ("a\tb\tmaybe", "label 'maybe'; expected one of entailment, neutral, contradiction"),
        ("a\tb\t-", "no label ('-')"),
        ("a\tb\t", "Take the rows without a label out of the file"),
    ],
)
def test_broken_row_names_file_and_line(message, line, said):
    text = message(XNLI, {"xnli/train-en.tsv": f"a\tb\tneutral\n{line}\n"})
    assert "xnli/train-en.tsv:2: " in text
    assert said in text


def test_a_blank_text_is_an_error_where_one_measures(message, put):
    rows = "a\tb\tneutral\na\t \tneutral\n"
    text = message(XNLI, {"xnli/test-en.tsv": rows}, split="test")
    assert (
        "xnli/test-en.tsv:2: a text that is blank; expected two texts. Give it, or take the row out." in text
    )
    assert len(list(XNLI.read(put({"xnli/train-en.tsv": rows}), "en", "train"))) == 2


def test_row_of_another_width_than_the_header_is_an_error_in_any_language(message):
    rows = "language\tgold_label\tsentence1\tsentence2\nen\tneutral\ta\tb\nsw\n"
    text = message(XNLI, {"xnli/xnli.dev.tsv": rows}, split="dev")
    assert "xnli.dev.tsv:3: 1 columns in 'sw'; expected 4" in text


def test_header_without_label_is_an_error(message):
    text = message(XNLI, {"xnli/train-en.tsv": "sentence1\tsentence2\nb\tc\n"})
    assert "train-en.tsv:1: a header without gold_label or label" in text


def test_empty_split_is_an_error(message):
    assert "train-en.tsv:1: the split is empty" in message(XNLI, {"xnli/train-en.tsv": ""})


def test_first_pair_that_looks_like_a_header_is_written_below_one(again):
    pairs = [SentencePair(id="1", first="premise", second="hypothesis", label="neutral")]
    assert list(XNLI.write(pairs, "en")) == [
        "sentence1\tsentence2\tgold_label",
        "premise\thypothesis\tneutral",
    ]
    assert again(XNLI, pairs) == pairs


def test_text_that_begins_with_a_byte_order_mark_keeps_it(again):
    pairs = [SentencePair(id=str(n), first="\ufeffa", second="b", label="neutral") for n in (1, 2)]
    assert again(XNLI, pairs) == pairs


def test_column_that_is_there_twice_is_an_error(message):
    text = message(PAWSX, {"pawsx/de/train.tsv": "id\tsentence1\tsentence2\tsentence2\tlabel\n"}, "de")
    assert "train.tsv:1: a column twice in the header" in text


def test_empty_id_is_an_error(message):
    rows = "id\tsentence1\tsentence2\tlabel\n\ta\tb\t1\n"
    assert "train.tsv:2: an empty id" in message(PAWSX, {"pawsx/de/train.tsv": rows}, "de")
