import gzip

import pytest

from isogloss.core.errors import ConfigError, DataError
from isogloss.data.bitext import Bitext
from isogloss.data.examples import Translation
from isogloss.data.word_links import flipped, pair_words


def read(folder, pair, split="train", **fields):
    return list(Bitext(**fields).read(folder, pair, split))


def test_two_files_and_their_alignments_are_read(fixtures):
    first, second = read(fixtures, "en-fr")
    assert first == Translation(
        id="1", first="the cat sleeps", second="le chat dort", links=((0, 0), (1, 1), (2, 2))
    )
    assert (second.links, second.possible) == (((1, 1),), ((0, 0),))


def test_gold_alignments_are_counted_from_one(fixtures):
    first, second = read(fixtures, "en-fr", "test", collection="word-alignment")
    assert (first.first, first.links, first.possible) == ("the cat sleeps", ((0, 0), (1, 1)), ((2, 2),))
    assert second.links == ((0, 0), (1, 1))


def test_three_letter_names_are_found_by_two_letter_codes(fixtures):
    pairs = read(fixtures, "de-en", "test", collection="tatoeba")
    assert [pair.first for pair in pairs] == ["Guten Tag.", "Es regnet."]
    assert [pair.second for pair in pairs] == ["Good day.", "It is raining."]


@pytest.mark.parametrize(
    ("pair", "split", "collection"),
    [
        ("en-fr", "train", "bitext"),
        ("en-fr", "test", "word-alignment"),
        ("de-en", "test", "tatoeba"),
        ("en-sw", "train", "bible"),
    ],
)
def test_exchanged_languages_give_exchanged_pairs(fixtures, pair, split, collection):
    first, second = pair.split("-")
    straight = read(fixtures, pair, split, collection=collection)
    assert read(fixtures, f"{second}-{first}", split, collection=collection) == list(map(flipped, straight))


def test_known_test_set_is_no_training_data_unless_said(fixtures):
    with pytest.raises(
        DataError, match="collection 'tico19' has no train split of bitext 'en-hi'; it has test"
    ):
        read(fixtures, "en-hi", collection="tico19")
    assert len(read(fixtures, "en-hi", collection="tico19", whole="train")) == 1


def test_split_that_is_not_named_is_not_taken_from_another(fixtures):
    with pytest.raises(DataError, match="has no dev split of bitext 'en-fr'; it has train"):
        read(fixtures, "en-fr", "dev")


def test_own_files_without_split_names_are_train_and_several_are_joined(put):
    folder = put({f"mine/{n}.en-fr.{side}": f"{n}\n" for n in "ab" for side in ("en", "fr")})
    assert [pair.id for pair in read(folder, "en-fr", collection="mine")] == ["a.en-fr.en:1", "b.en-fr.en:1"]


def test_missing_pair_names_the_collections_that_have_it(fixtures):
    with pytest.raises(DataError) as caught:
        read(fixtures, "en-hi")
    assert "no bitext 'en-hi' in collection 'bitext'" in str(caught.value)
    assert "Collections that have 'en-hi': tico19; say collection = 'tico19'" in str(caught.value)


@pytest.mark.parametrize("pair", ["en", "en-", "-fr", "en-fr-de", "en-en"])
def test_what_is_no_pair_is_refused(fixtures, pair):
    with pytest.raises(ConfigError, match="is no pair of languages"):
        read(fixtures, pair)


def files(english="a b\nc\n", french="x\ny z\n", links="0-0\n0-1\n"):
    return {
        "bitext/train.en-fr.en": english,
        "bitext/train.en-fr.fr": french,
        "bitext/train.en-fr.align": links,
    }


@pytest.mark.parametrize(
    ("broken", "place", "said"),
    [
        (files(french="x\n"), "train.en-fr.fr:2: ", "expected the partner of line 2"),
        (files(english="a b\n"), "train.en-fr.en:2: ", "the file ends"),
        (files(links="0-0\n"), "train.en-fr.align:2: ", "the file ends"),
        (files(french="x\n \n"), "train.en-fr.fr:2: ", "an empty line"),
        (files(links="0-0\n0:1\n"), "train.en-fr.align:2: ", "link '0:1'"),
        (files(links="0-0\n1-1\n"), "train.en-fr.align:2: ", "link '1-1'; expected i-j"),
        (files(links="0-1\n0-0\n"), "train.en-fr.align:1: ", "from 0 for 2 and 1 words"),
        ({"bitext/train.en-fr.en": "a\n"}, "train.en-fr.en: ", "is not there; expected both"),
        (
            {"bitext/en-fr.train.tsv": "id\ten\tfr\tlinks\n1\ta\tb\t0-1\n"},
            "en-fr.train.tsv:2: ",
            "link '0-1'",
        ),
        ({"bitext/en-fr.train.tsv": "id\ten\tfr\n1\t\tb\n"}, "en-fr.train.tsv:1: ", "the split is empty"),
    ],
)
def test_broken_line_names_file_and_line(message, broken, place, said):
    text = message(Bitext(), broken, "en-fr")
    assert place in text
    assert said in text


def test_broken_gold_line_names_file_and_line(message):
    corpus = Bitext(collection="gold", whole="train")
    assert "enfr.src-tgt:1: 1 sides" in message(corpus, {"gold/enfr.src-tgt": "a b\n"}, "en-fr")
    said = message(corpus, {"gold/enfr.src-tgt": "a ||| b\n", "gold/enfr.gold": "0-1\n"}, "en-fr")
    assert "enfr.gold:1: link '0-1'; expected i-j (or ipj, only possible) from 1" in said


@pytest.mark.parametrize("space", ["\u3000", "\u00a0", "\u2028", "\u0085"])
def test_links_count_the_words_that_spaces_part_and_no_other_white_space(put, space):
    texts = {"gold/enfr.src-tgt": f"a{space} {space} b ||| x y\n", "gold/enfr.gold": "3-2\n"}
    (pair,) = read(put(texts), "en-fr", "train", collection="gold", whole="train")
    assert pair.links == ((2, 1),)
    assert pair_words(pair)[0] == (f"a{space}", space, "b")


def test_raw_text_has_the_words_of_the_tokenizer(put):
    folder = put({"bible/verses.tsv": "verse\ten\tfr\nGEN 1:2\tAnd God said, “Go!”\tL'homme vint.\n"})
    (pair,) = read(folder, "en-fr", collection="bible")
    assert pair_words(pair) == (
        ("And", "God", "said", ",", "“", "Go", "!", "”"),
        ("L'", "homme", "vint", "."),
    )
    assert pair_words(flipped(pair)) == pair_words(pair)[::-1]


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("id\ten\tfr\ten", "a column twice in en, fr, en; expected each language once"),
        ("id\ten\tfr\tde\tlinks", "links in a table of en, fr, de, links; expected two languages and links"),
    ],
)
def test_table_whose_columns_are_unclear_is_refused(message, header, said):
    row = "\t".join("a" for _ in header.split("\t"))
    text = message(Bitext(), {"bitext/en-fr.train.tsv": f"{header}\n{row}\n"}, "en-fr")
    assert f"en-fr.train.tsv:1: {said}" in text


def test_links_are_what_stands_there_and_not_what_may_be_meant(message):
    said = message(Bitext(), {"bitext/en-fr.train.tsv": "id\ten\tfr\tlinks\n1\ta\tb\t-0-0\n"}, "en-fr")
    assert "en-fr.train.tsv:2: link '-0-0'" in said


def test_side_without_words_is_refused(message):
    corpus = Bitext(collection="gold", whole="train")
    assert "enfr.src-tgt:1: 2 sides" in message(corpus, {"gold/enfr.src-tgt": "a |||  \n"}, "en-fr")


def test_unequal_line_counts_are_said_with_both_counts(message):
    said = message(Bitext(), files(french="x\ny z\nu\nv\n", links="0-0\n0-1\n"), "en-fr")
    assert "train.en-fr.en has 2, " in said
    assert "train.en-fr.fr has 4, " in said
    assert "Fetch or make these files again, together" in said


MINED = "1.21\tgood day\tbuenos días\n1.04\tgood\tbueno\n1.03\tbad\tgato\n"


@pytest.mark.parametrize("name", ["mined/WikiMatrix.en-es.tsv", "mined/train.en-es.tsv"])
def test_mined_pairs_below_the_margin_are_left_out(put, name):
    folder = put({name: MINED})
    assert [pair.id for pair in read(folder, "en-es", collection="mined")] == ["1", "2"]
    assert [pair.first for pair in read(folder, "en-es", collection="mined", margin=1.2)] == ["good day"]
    assert len(read(folder, "en-es", collection="mined", margin=0.0)) == 3


def test_mined_pairs_are_found_in_either_order_and_packed(put):
    folder = put({"mined/WikiMatrix.en-es.tsv.gz": gzip.compress(MINED.encode())})
    there = read(folder, "en-es", collection="mined")
    assert read(folder, "es-en", collection="mined") == list(map(flipped, there))


def test_a_margin_that_no_pair_has_is_said_with_the_highest(message):
    said = message(Bitext(collection="mined", margin=1.5), {"mined/WikiMatrix.en-es.tsv": MINED}, "en-es")
    assert "no pair has a margin of 1.5 or more; the highest is 1.21" in said


@pytest.mark.parametrize("line", ["good\tbueno", "x\tgood\tbueno", "nan\tgood\tbueno", "1.1\t \tbueno", ""])
def test_broken_mined_line_names_file_and_line(message, line):
    said = message(Bitext(collection="mined"), {"mined/WikiMatrix.en-es.tsv": f"{MINED}{line}\n"}, "en-es")
    assert "WikiMatrix.en-es.tsv:4: " in said
    assert "expected a margin score, a text and its translation" in said


def test_collection_of_mined_text_has_no_languages_in_a_header(message):
    said = message(Bitext(collection="mined"), {"mined/WikiMatrix.en-es.tsv": MINED}, "en-fr")
    assert "Its tables have" not in said


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("OPUS.en-es.en", "OPUS.en-es.es"),
        ("Tatoeba.en-es.en", "Tatoeba.en-es.es"),
        ("train.en-es.en", "train.en-es.es"),
        ("en-es.en.train", "en-es.es.train"),
        ("en-es.en.all", "en-es.es.all"),
    ],
)
def test_names_of_opus_and_xlm_are_found_in_either_order(put, first, second):
    folder = put({f"own/{first}": "good\n", f"own/{second}": "bueno\n"})
    (pair,) = read(folder, "en-es", collection="own")
    assert (pair.first, pair.second) == ("good", "bueno")
    assert read(folder, "es-en", collection="own") == [flipped(pair)]


@pytest.mark.parametrize("name", ["valid.en-es.{}", "en-es.{}.valid", "dev.en-es.{}"])
def test_files_named_valid_are_the_development_split(put, name):
    folder = put({f"own/{name.format(side)}": f"{side}\n" for side in ("en", "es")})
    assert [pair.first for pair in read(folder, "en-es", "dev", collection="own")] == ["en"]
