"""Raw text, verses and tagged sentences in lines."""

from itertools import chain

import pytest

from isogloss.core.errors import DataError
from isogloss.data.corpora.catalogue import CORPORA
from isogloss.data.corpora.texts_and_trees import RawText
from isogloss.data.corpus import SPLITS
from isogloss.data.examples import TaggedSentence
from isogloss.data.files import DiskFolder
from isogloss.features.parallel_text.bible import Bible
from isogloss.features.parallel_text.bitext import Bitext
from isogloss.features.parallel_text.forms import verse_split
from says import says


def test_dev_text_is_no_training_text(put_files):
    folder = put_files({"rawtext/en/a.txt": "train\n", "rawtext/en/dev/a.txt": "dev\n"})
    assert [line.text for line in RawText().read(folder, "en", "train")] == ["train"]
    assert [line.text for line in RawText().read(folder, "en", "dev")] == ["dev"]


@pytest.mark.parametrize("spelling", ["zh_Hant", "zh-Hant"])
def test_a_script_is_found_in_both_spellings_and_listed_in_ours(put_files, spelling):
    folder = put_files({f"rawtext/{spelling}/a.txt": "字\n"})
    assert [line.text for line in RawText().read(folder, "zh_Hant", "train")] == ["字"]
    with says(DataError, "zh_Hant"):
        RawText().read(folder, "zh", "train")


@pytest.mark.parametrize("spelling", ["yo", "yor", "yo_Latn", "yo-Latn", "yor_Latn", "yor-Latn"])
def test_a_usual_script_goes_without_saying_also_where_files_say_it(put_files, spelling):
    folder = put_files({f"rawtext/{spelling}/a.txt": "ọ̀rọ̀\n", "rawtext/kor_Hang/a.txt": "말\n"})
    assert [line.text for line in RawText().read(folder, "yo", "train")] == ["ọ̀rọ̀"]
    assert [line.text for line in RawText().read(folder, "ko", "train")] == ["말"]
    with pytest.raises(DataError, match="language 'uz_Latn'"):
        RawText().read(folder, "uz_Latn", "train")
    for language_code, language in (
        ("tgl", "tl"),
        ("tgl_Latn", "tl"),
        ("swh", "sw"),
        ("als_Latn", "sq"),
        ("prs", "fa_AF"),
    ):
        other_files = put_files({f"rawtext/{language_code}/a.txt": "salita\n"})
        assert [line.text for line in RawText().read(other_files, language, "train")] == ["salita"]
        (other_files.path / f"rawtext/{language_code}/a.txt").unlink()
    verses = put_files({"bible/own.tsv": f"verse\t{spelling}\nGEN 1:1\tọ̀rọ̀\n"})
    assert [verse.text for verse in Bible().read(verses, "yo", "train")] == ["ọ̀rọ̀"]
    words = put_files({f"wikiann/{spelling}/train": f"{spelling}:ọ̀rọ̀\tO\n"})
    assert [example.words for example in CORPORA["wikiann"].read(words, "yo", "train")] == [("ọ̀rọ̀",)]


def test_splits_part_the_verses(native_files):
    verses = {split: [v.id for v in Bible().read(native_files, "en", split)] for split in SPLITS}
    everything = [f"GEN 1:{i}" for i in range(1, 81)]
    assert sorted(chain.from_iterable(verses.values())) == sorted(everything)
    assert len(verses["train"]) > 60
    assert verses["dev"] and verses["test"]


def test_held_out_verses_are_the_same_in_every_language_and_in_bitext(native_files):
    test = {line.id for line in Bible().read(native_files, "en", "test")}
    assert {line.id for line in Bible().read(native_files, "fr", "test")} == test
    assert {pair.id for pair in Bitext(collection="bible").read(native_files, "en-fr", "test")} == test


def test_verse_split_is_what_it_always_was():
    """Change it and every encoder pretrained so far has seen what is now its test."""
    verses = [
        f"{book} {chapter}:{verse}" for book in ("GEN", "MAT") for chapter in range(40) for verse in range(40)
    ]
    counts = [sum(verse_split(verse) == split for verse in verses) for split in SPLITS]
    assert counts == [2930, 125, 145]
    assert verse_split("GEN 3:7") == "test"
    assert verse_split("GEN 1:1") == "train"


def test_verses_a_language_does_not_have_are_left_out(native_files):
    read = [int(v.id.partition(":")[2]) for split in SPLITS for v in Bible().read(native_files, "sw", split)]
    assert sorted(read) == list(range(2, 81, 2))


def test_books_are_documents(put_files):
    folder = put_files(
        {"bible/a.tsv": "verse\ten\n" + "".join(f"{b} 1:{i}\tx\n" for b in ("GEN", "EXO") for i in range(9))}
    )
    assert {(v.id[:3], v.document) for v in Bible().read(folder, "en", "train")} == {("GEN", 0), ("EXO", 1)}


def test_masakhapos_has_a_space_before_the_tag_and_files_of_either_code(tmp_path):
    for language, text in (("swa", "kwa ADP\n, PUNCT\n"), ("yo", "a b NOUN\n")):
        file = tmp_path / f"masakhapos/{language}/test.txt"
        file.parent.mkdir(parents=True)
        file.write_text(text, encoding="utf-8")
    (swahili,) = CORPORA["masakhapos"].read(DiskFolder(tmp_path), "sw", "test")
    assert swahili == TaggedSentence(id="1", words=("kwa", ","), tags=("ADP", "PUNCT"))
    (yoruba,) = CORPORA["masakhapos"].read(DiskFolder(tmp_path), "yo", "test")
    assert yoruba.words == ("a b",)
    with pytest.raises(DataError, match="sw, yo"):
        CORPORA["masakhapos"].read(DiskFolder(tmp_path), "ha", "test")


@pytest.mark.parametrize(
    ("corpus", "file", "line", "messages"),
    [
        (Bible(), "bible/a.tsv", "GEN 1:2", "1 columns; expected 3"),
        (Bible(), "bible/a.tsv", "GEN 1:2\ta\tb\tc", "4 columns"),
        (Bible(), "bible/a.tsv", "GEN 1:1\ta\tb", "'GEN 1:1'"),
        (Bible(), "bible/a.tsv", "\ta\tb", "the id ''"),
        (
            CORPORA["masakhapos"],
            "masakhapos/en/train.txt",
            "kwa",
            "1 column in 'kwa'; expected a word, a space and its tag",
        ),
        (CORPORA["udpos"], "udpos/train-en.tsv", "a\tNN", "label 'NN'"),
        (CORPORA["wikiann"], "wikiann/en/train", "b\tO", "word 'b'; expected 'en:' before each word"),
        *(
            (CORPORA["wikiann"], "panx/train-en.tsv", line, message)
            for line, message in (
                ("London", "1 column in 'London'; expected a word, a tab and its tag"),
                ("a\tO\tO", "3 columns"),
                ("London\tB-GPE", "label 'B-GPE'; expected one of O, B-LOC"),
                ("London\tB-LOCATION", "Did you mean 'B-LOC'? Correct the line."),
                ("London\tI-Per", "Did you mean 'I-PER'?"),
                (
                    "London\tB-DATE",
                    "I-PER. ",
                ),
                ("London\t", "no label; expected one of O"),
                ("\tO", "the word ''; expected"),
            )
        ),
    ],
    ids=lambda value: str(getattr(value, "name", value)),
)
def test_what_is_broken_is_named_with_its_line(reading_error, corpus, file, line, messages):
    text_before = "verse\ten\tfr\nGEN 1:1\ta\tb\n" if file.startswith("bible") else "\n\n"
    text = reading_error(corpus, {file: f"{text_before}{line}\n"})
    assert f"{file}:3: " in text
    assert messages in text
