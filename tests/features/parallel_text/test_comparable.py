"""BUCC: two sides with ids and a gold file of translations, or one table."""

import pytest

from corpus_fixtures import NATIVE
from isogloss.data.examples import ComparableText, Translation
from isogloss.features.built_in_languages import BuiltInLanguages
from isogloss.features.built_in_languages.corpora import split_translations
from isogloss.features.parallel_text.comparable import Bucc

PLACE = "bucc2018/de-en/de-en.sample"
OFFICIAL = {
    f"{PLACE}.{end}": NATIVE.joinpath(f"{PLACE}.{end}").read_text("utf-8") for end in ("de", "en", "gold")
}
EXPECTED = [
    ("de-000000002 en-000000003", "Es regnet.", "It is raining."),
    ("de-000000003 en-000000001", "Sie liest ein Buch.", "She is reading a book."),
    ("de-000000001", "Der Hund schläft.", ""),
    ("en-000000002", "", "Nobody came."),
    ("en-000000004", "", "The train is late."),
]


def read(folder, language="de-en", split="dev"):
    return [(example.id, example.first, example.second) for example in Bucc().read(folder, language, split)]


def test_a_pair_is_found_in_either_order_under_the_same_ids(native_files):
    assert read(native_files, "en-de") == [
        (name, second, first_part) for name, first_part, second in EXPECTED
    ]
    turned_names = [
        (name, second, first_example) for name, first_example, second in read(native_files, "fr-en", "test")
    ]
    assert read(native_files, "en-fr", "test") == turned_names


@pytest.mark.parametrize(
    ("place", "split"),
    [
        ("bucc2018/de-en.sample", "dev"),
        ("bucc2018/de-en.dev", "dev"),
        ("bucc2018/de-en/de-en.training", "test"),
        ("bucc2018/de-en.training", "test"),
        ("bucc2018/de-en.test", "test"),
        ("bucc2018/deu-eng.test", "test"),
    ],
)
def test_official_names_and_those_of_xtreme_are_found(put_files, place, split):
    sides = {"de": "deu", "en": "eng"} if "deu" in place else {}
    ends = {name: name.rpartition(".")[2] for name in OFFICIAL}
    folder = put_files(
        {f"{place}.{sides.get(ends[name], ends[name])}": text for name, text in OFFICIAL.items()}
    )
    assert read(folder, split=split) == EXPECTED


def test_official_training_data_is_test_beside_official_test_data_without_gold(put_files):
    sides = {name.replace("sample", "test"): text for name, text in OFFICIAL.items() if "gold" not in name}
    files = {name.replace("sample", "training"): text for name, text in OFFICIAL.items()}
    assert read(put_files({**sides, **files}), split="test") == EXPECTED


def test_many_to_many_translations_are_a_text_each(put_files):
    gold = OFFICIAL[f"{PLACE}.gold"]
    examples = read(put_files({**OFFICIAL, f"{PLACE}.gold": gold + gold + "de-000000002\ten-000000002\n"}))
    assert examples[2] == ("de-000000002 en-000000002", "Es regnet.", "Nobody came.")
    assert examples[:2] + examples[3:] == [item for item in EXPECTED if item[0] != "en-000000002"]


@pytest.mark.parametrize(
    ("end", "line", "messages"),
    [
        ("de", "de-4", "de:4: 'de-4'; expected an id"),
        ("de", "de-4\ta\tb", "de:4: 'de-4\\ta\\tb'; expected an id"),
        ("en", "de-000000001\ta", "en:5: the id 'de-000000001' "),
        (
            "gold",
            "de-000000001\ten-9",
            "gold:3: 'de-000000001\\ten-9'; expected two ids … 'en-9'",
        ),
        ("gold", "de-000000001", "gold:3: 'de-000000001'; expected two ids"),
    ],
)
def test_a_broken_line_is_said_with_its_place(reading_error, end, line, messages):
    name = f"{PLACE}.{end}"
    facts = f"{name[: -len(end)]}{messages}".split(" … ")
    result = reading_error(Bucc(), {**OFFICIAL, name: f"{OFFICIAL[name]}{line}\n"}, "de-en", "dev")
    assert [fact for fact in facts if fact not in result] == []


def test_texts_without_gold_are_an_error_that_says_where_it_is(reading_error):
    files = {name.replace("/de-en/", "/").replace("sample", "test"): text for name, text in OFFICIAL.items()}
    del files["bucc2018/de-en.test.gold"]
    messages = reading_error(Bucc(), files, "de-en", "test")
    assert "no bucc2018/de-en.test.gold" in messages
    assert "XTREME" in messages


@pytest.mark.parametrize(("language", "split"), [("ru-en", "dev"), ("de-en", "train")])
def test_what_there_is_instead_is_said(reading_error, language, split):
    messages = reading_error(Bucc(), OFFICIAL, language, split)
    assert f"no {split} split of corpus 'bucc2018' for language {language!r}" in messages
    assert ("bucc2018 has dev for: de-en" if language == "ru-en" else "For 'de-en' it has: dev") in messages


def test_a_single_language_is_no_pair(reading_error):
    assert "corpus bucc2018: 'de'" in reading_error(Bucc(), OFFICIAL, "de", "dev")


def test_of_three_translations_one_stays_a_pair_and_two_lose_a_side():
    pairs = [Translation(id=str(n), first=f"a{n}", second=f"b{n}") for n in range(4)]
    assert [(translation.first, translation.second) for translation in split_translations(pairs)] == [
        ("a0", "b0"),
        ("", "b1"),
        ("a2", ""),
        ("a3", "b3"),
    ]


def test_the_built_in_languages_have_it_in_both_orders():
    examples, turned_examples = (read(BuiltInLanguages(), pair, "dev") for pair in ("qaa-qab", "qab-qaa"))
    assert [(name, second, first_example) for name, first_example, second in examples] == turned_examples
    kinds = [(bool(first_example), bool(second)) for _, first_example, second in examples]
    assert [kinds.count(kind) for kind in ((True, True), (False, True), (True, False))] == [167, 167, 166]


def test_a_text_of_spaces_alone_is_none(put_files):
    folder = put_files({"bucc2018/de-en.dev.tsv": "id\tde\ten\n1\ta\t \n2\t \t \n"})
    assert list(Bucc().read(folder, "de-en", "dev")) == [ComparableText(id="1", first="a", second="")]
