"""Bitext in every published form, parallel treebanks, and the report of what is suspicious in it."""

import gzip
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss.core.errors import ConfigError, DataError
from isogloss.data.examples import Translation
from isogloss.data.formats.word_links import pair_words
from isogloss.data.sources import Sources
from isogloss.features.alignment.bitext_report import check_bitext, own_share, scripts_in
from isogloss.features.parallel_text.bitext import Bitext
from isogloss.features.parallel_text.gold_links import flip_languages
from says import check_wording, says


def read(folder, pair, split="train", **fields):
    return list(Bitext(**fields).read(folder, pair, split))


@pytest.mark.parametrize(
    ("english", "yoruba"), [("eng", "yor"), ("eng_Latn", "yor_Latn"), ("en", "yor"), ("en", "yor-Latn")]
)
def test_languages_are_found_however_names_and_headers_spell_them(put_files, english, yoruba):
    pair = f"{yoruba}-{english}"
    interval = (
        {"own/table.tsv": f"id\t{yoruba}\t{english}\n1\tìwé\tbook\n"},
        {f"own/train.{pair}.{yoruba}": "ìwé\n", f"own/train.{pair}.{english}": "book\n"},
        {f"own/{pair}.{yoruba}.train": "ìwé\n", f"own/{pair}.{english}.train": "book\n"},
        {f"own/mined.{pair}.tsv": "1.1\tìwé\tbook\n"},
        {f"own/{yoruba}{english}.src-tgt": "ìwé ||| book\n"},
    )
    for files in interval:
        folder = put_files(files)
        assert read(folder, "en-yo", collection="own") == [Translation(id="1", first="book", second="ìwé")]
        for file in files:
            (folder.path / file).unlink()


@pytest.mark.parametrize(
    ("pair", "split", "collection"),
    [
        ("en-fr", "train", "bitext"),
        ("en-fr", "test", "word-alignment"),
        ("de-en", "test", "tatoeba"),
        ("en-sw", "train", "bible"),
    ],
)
def test_exchanged_languages_give_exchanged_pairs(native_files, pair, split, collection):
    first_part, second = pair.split("-")
    straight = read(native_files, pair, split, collection=collection)
    assert read(native_files, f"{second}-{first_part}", split, collection=collection) == [
        flip_languages(value) for value in straight
    ]


def test_known_test_set_is_training_data_where_that_is_said(native_files):
    assert len(read(native_files, "en-hi", collection="tico19", whole="train")) == 1


def test_own_files_without_split_names_are_train_and_several_are_joined(put_files):
    folder = put_files({f"mine/{n}.en-fr.{side}": f"{n}\n" for n in "ab" for side in ("en", "fr")})
    assert [pair.id for pair in read(folder, "en-fr", collection="mine")] == ["a.en-fr.en:1", "b.en-fr.en:1"]


def test_pairs_with_an_empty_line_are_left_out_and_the_others_keep_their_numbers(put_files):
    folder = put_files(files(english="a b\n\nc\nd\n", french="x\ny\n \nz\n", links="0-0\n\n\n0-0\n"))
    assert [
        (example.id, example.second, example.links) for example in read(folder, "en-fr", collection="own")
    ] == [
        ("1", "x", ((0, 0),)),
        ("4", "z", ((0, 0),)),
    ]
    sources = Sources(str(folder.path))
    assert sources.remarks("bitext:own", "en-fr", "train") == (
        "bitext en-fr train: 2 rows without a label, an answer or a translation are skipped.",
    )


@pytest.mark.parametrize("pair", ["en", "en-", "-fr", "en-fr-de", "en-en"])
def test_what_is_no_pair_is_refused(native_files, pair):
    with pytest.raises(ConfigError, match=r"^corpus bitext: .*en-fr"):
        read(native_files, pair)


def files(english="a b\nc\n", french="x\ny z\n", links="0-0\n0-1\n"):
    return {
        "own/train.en-fr.en": english,
        "own/train.en-fr.fr": french,
        "own/train.en-fr.align": links,
    }


OWN = Bitext(collection="own", whole="train")
GOLD = {"own/enfr.src-tgt": "a ||| b\n", "own/enfr.gold": "0-1\n"}
MINED = "1.21\tgood day\tbuenos días\n1.04\tgood\tbueno\n1.03\tbad\tgato\n"


def table(*rows):
    return {"own/en-fr.train.tsv": "".join(f"{row}\n" for row in rows)}


@pytest.mark.parametrize(
    ("broken_files", "messages"),
    [
        (files(french="x\n"), "train.en-fr.fr:2: the file ends; .* expected the partner of line 2"),
        (files(english="a b\n"), "en:2: the file ends.*partner of line 2 of .*train.en-fr.fr, and as many"),
        (files(links="0-0\n"), "train.en-fr.align:2: the file ends"),
        (
            files(french="x\ny z\nu\nv\n"),
            "train.en-fr.en has 2, .*train.en-fr.fr has 4, .*together",
        ),
        (files(links="0-0\n0:1\n"), "train.en-fr.align:2: link '0:1'"),
        (files(links="0-0\n1-1\n"), "train.en-fr.align:2: link '1-1'; expected i-j"),
        (files(links="0-1\n0-0\n"), "train.en-fr.align:1: .* from 0 for 2 and 1 words"),
        ({"own/train.en-fr.en": "a\n"}, "train.en-fr.en: .* does not exist; expected both"),
        (table("id\ten\tfr\tlinks", "1\ta\tb\t0-1"), "en-fr.train.tsv:2: link '0-1'"),
        (table("id\ten\tfr\tlinks", "1\ta\tb\t-0-0"), "en-fr.train.tsv:2: link '-0-0'"),
        (table("id\ten\tfr\ten"), "tsv:1: .* en, fr, en; expected"),
        (
            table("id\ten\tfr\tde\tlinks"),
            "tsv:1: .* en, fr, de, links; expected",
        ),
        ({"own/enfr.src-tgt": "a b\n"}, "enfr.src-tgt:1: 1 sides"),
        ({"own/enfr.src-tgt": "a |||  \n"}, "enfr.src-tgt:1: 2 sides"),
        (GOLD, "enfr.gold:1: link '0-1'; expected i-j .*ipj.* from 1"),
        *(
            (
                {"own/WikiMatrix.en-fr.tsv": f"{MINED}{line}\n"},
                "fr.tsv:4: .*expected .*margin",
            )
            for line in ("good\tbueno", "x\tgood\tbueno", "nan\tgood\tbueno", "1.1\t \tbueno", "")
        ),
    ],
)
def test_what_is_broken_is_named_with_its_place(reading_error, broken_files, messages):
    assert re.search(messages, reading_error(OWN, broken_files, "en-fr"))


@pytest.mark.parametrize(
    ("empty_files", "file"),
    [
        (files(english=" \n\n"), "train.en-fr.en"),
        (table("id\ten\tfr", "1\t\tb"), "en-fr.train.tsv"),
    ],
)
def test_a_split_without_a_pair_is_named_with_its_file(reading_error, empty_files, file):
    check_wording(reading_error(OWN, empty_files, "en-fr"), f"{file}:1:")


@pytest.mark.parametrize("space", ["\u3000", "\u00a0", "\u2028", "\u0085"])
def test_links_count_the_words_that_spaces_part_and_no_other_white_space(put_files, space):
    texts = {"gold/enfr.src-tgt": f"a{space} {space} b ||| x y\n", "gold/enfr.gold": "3-2\n"}
    (pair,) = read(put_files(texts), "en-fr", "train", collection="gold", whole="train")
    assert pair.links == ((2, 1),)
    assert pair_words(pair)[0] == (f"a{space}", space, "b")


def test_raw_text_has_the_words_of_the_tokenizer(put_files):
    folder = put_files({"bible/verses.tsv": "verse\ten\tfr\nGEN 1:2\tAnd God said, “Go!”\tL'homme vint.\n"})
    (pair,) = read(folder, "en-fr", collection="bible")
    assert pair_words(pair) == (
        ("And", "God", "said", ",", "“", "Go", "!", "”"),
        ("L'", "homme", "vint", "."),
    )
    assert pair_words(flip_languages(pair)) == pair_words(pair)[::-1]


def test_a_table_without_ids_is_told_that_they_come_first(reading_error):
    messages = reading_error(OWN, {"own/verses.tsv": "en\tfr\na\tb\n"}, "en-fr")
    assert "Its tables have: fr." in messages and "with both columns after ids" in messages


@pytest.mark.parametrize("name", ["mined/WikiMatrix.en-es.tsv", "mined/train.en-es.tsv"])
def test_mined_pairs_below_the_margin_are_left_out(put_files, name):
    folder = put_files({name: MINED})
    assert [pair.id for pair in read(folder, "en-es", collection="mined")] == ["1", "2"]
    assert [pair.first for pair in read(folder, "en-es", collection="mined", margin=1.2)] == ["good day"]
    assert len(read(folder, "en-es", collection="mined", margin=0.0)) == 3


def test_mined_pairs_are_found_in_either_order_and_packed(put_files):
    folder = put_files({"mined/WikiMatrix.en-es.tsv.gz": gzip.compress(MINED.encode())})
    examples = read(folder, "en-es", collection="mined")
    assert read(folder, "es-en", collection="mined") == [flip_languages(value) for value in examples]


def test_a_margin_that_no_pair_has_is_said_with_the_highest(reading_error):
    messages = reading_error(
        Bitext(collection="mined", margin=1.5), {"mined/WikiMatrix.en-es.tsv": MINED}, "en-es"
    )
    check_wording(messages, "WikiMatrix.en-es.tsv:", "1.5", "1.21")


def test_collection_of_mined_text_has_no_languages_in_a_header(reading_error):
    messages = reading_error(Bitext(collection="mined"), {"mined/WikiMatrix.en-es.tsv": MINED}, "en-fr")
    assert "Its tables have" not in messages


@pytest.mark.parametrize(
    ("first_name", "second"),
    [
        ("OPUS.en-es.en", "OPUS.en-es.es"),
        ("Tatoeba.en-es.en", "Tatoeba.en-es.es"),
        ("train.en-es.en", "train.en-es.es"),
        ("en-es.en.train", "en-es.es.train"),
        ("en-es.en.all", "en-es.es.all"),
    ],
)
def test_names_of_opus_and_xlm_are_found_in_either_order(put_files, first_name, second):
    folder = put_files({f"own/{first_name}": "good\n", f"own/{second}": "bueno\n"})
    (pair,) = read(folder, "en-es", collection="own")
    assert (pair.first, pair.second) == ("good", "bueno")
    assert read(folder, "es-en", collection="own") == [flip_languages(pair)]


@pytest.mark.parametrize("name", ["valid.en-es.{}", "en-es.{}.valid", "dev.en-es.{}"])
def test_files_named_valid_are_the_development_split(put_files, name):
    folder = put_files({f"own/{name.format(side)}": f"{side}\n" for side in ("en", "es")})
    assert [pair.first for pair in read(folder, "en-es", "dev", collection="own")] == ["en"]


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


def files_parallel_treebanks(english=ENGLISH, german=GERMAN, place="ud-pud/"):
    return {
        f"{place}UD_English-PUD/en_pud-ud-test.conllu": english,
        f"{place}UD_German-PUD/de_pud-ud-test.conllu": german,
    }


def read_parallel_treebanks(folder, pair, split="test"):
    return list(Bitext(collection="pud").read(folder, pair, split))


@pytest.mark.parametrize("place", ["ud/", "ud-pud/", "ud-treebanks-v2.16/", ""])
def test_sentences_are_matched_by_sent_id_and_have_their_own_text(put_files, place):
    assert read_parallel_treebanks(put_files(files_parallel_treebanks(place=place)), "en-de") == [
        Translation(id="n1", first="A = “cat”.", second="Eine Katze."),
        Translation(id="n2", first="dog", second="Ein Hund."),
    ]


def test_the_words_are_those_of_the_treebanks(put_files):
    assert [
        pair_words(example)
        for example in read_parallel_treebanks(put_files(files_parallel_treebanks()), "en-de")
    ] == [
        (("cat",), ("Katze",)),
        (("dog",), ("Hund",)),
    ]


def test_the_pair_is_read_in_either_order(put_files):
    examples = read_parallel_treebanks(put_files(files_parallel_treebanks()), "de-en")
    assert [(example.id, example.first, example.second) for example in examples] == [
        ("n2", "Ein Hund.", "dog"),
        ("n1", "Eine Katze.", "A = “cat”."),
    ]


def test_a_split_that_is_not_there_names_the_one_that_is(put_files):
    with says(DataError, "'en-de'", "test"):
        read_parallel_treebanks(put_files(files_parallel_treebanks()), "en-de", "dev")


def test_a_sentence_without_its_translation_is_an_error(put_files):
    folder = put_files(files_parallel_treebanks(german=treebank(("n1", "", "Katze"))))
    with pytest.raises(DataError, match=r"parallel: .*1.*en_pud.*de_pud.*n2"):
        read_parallel_treebanks(folder, "en-de")


def test_another_collection_names_this_one(put_files):
    with says(DataError, "'en-de'", "collection = 'pud'"):
        list(Bitext(collection="tatoeba").read(put_files(files_parallel_treebanks()), "en-de", "test"))


@pytest.mark.slow
@pytest.mark.parametrize("pair", ["en-de", "en-th", "hi-ru"])
def test_the_parallel_treebanks_have_a_thousand_sentences(real_data, pair):
    examples = read_parallel_treebanks(real_data, pair)
    assert len(examples) == len({example.id for example in examples}) == 1000
    assert all(
        example.first.strip() and example.second.strip() and example.links is None for example in examples
    )


def pairs(*texts):
    return [
        Translation(id=f"{n}", first=first_text, second=second)
        for n, (first_text, second) in enumerate(texts)
    ]


GOOD = pairs(*((f"one two three {n}", f"один два три {n}") for n in range(40)))


def test_report_counts_what_is_there():
    bitext = check_bitext(
        [*GOOD, *pairs(("one two three 0", "один два три 0"), ("a b c", "a b c"))], "en", "ru"
    )
    assert (bitext.pairs, bitext.duplicates, bitext.identical, bitext.length_outliers) == (42, 1, 1, 0)
    assert (bitext.first.mean_words, bitext.first.longest_words, bitext.first.empty) == (
        (41 * 4 + 3) / 42,
        4,
        0,
    )
    assert bitext.second.other_script == 1


def test_good_bitext_has_no_warning():
    assert check_bitext(GOOD, "en", "ru").warnings == ()
    assert check_bitext(GOOD).warnings == ()


def test_exchanged_languages_are_noticed_by_their_scripts():
    bitext = check_bitext(GOOD, "ru", "en")
    assert [side.own_script for side in (bitext.first, bitext.second)] == [0.0, 0.0]
    assert "40 of 40 pairs (100.0%) are not in the script of Russian" in bitext.warnings[0]
    assert "English" in bitext.warnings[1]


def test_each_kind_of_suspicion_is_said():
    bitext = check_bitext(
        pairs(
            ("a b c d e f g h i j k l", "x"),
            ("a b", "a b"),
            ("a b", "a b"),
            ("", "x y"),
            *[("a b", "u v")] * 3,
        )
    )
    text = " ".join(bitext.warnings)
    for words in (
        "differ much in length",
        "repeat an earlier pair",
        "same text on both sides",
        "no words on one side",
    ):
        assert words in text
    assert bitext.first.empty == 1


def test_no_pair_is_said():
    assert check_bitext([]).warnings == ("No pairs.",)


def test_a_language_that_is_longer_throughout_has_no_outliers():
    translations = pairs(*(("a b c", "u v w x y z u v w x y z") for _ in range(9)))
    assert check_bitext(translations).length_outliers == 0
    assert check_bitext([*translations, *pairs(("a b c d e f", "u v"))]).length_outliers == 1


def test_scripts_are_those_of_letters_alone():
    assert scripts_in("Größe 12! вот") == {"LATIN": 5, "CYRILLIC": 3}
    assert own_share(scripts_in("東京タワーへ"), "ja") == 1.0
    assert own_share(scripts_in("12 !?"), "en") is None
    assert own_share(scripts_in("abc"), "xxx") is None


@given(st.text())
def test_every_letter_is_counted_once(text):
    assert scripts_in(text).total() == sum(str.isalpha(value) for value in text)
    assert sum(str.isalpha(value) for value in text) == 0 or 0 <= own_share(scripts_in(text), "en") <= 1
