"""Sources by name: built-in languages, folders, recently read splits."""

from dataclasses import replace
from itertools import product

import pytest

from isogloss.core.errors import DataError
from isogloss.data.corpora.catalogue import CORPORA
from isogloss.data.corpus import SPLITS
from isogloss.data.examples import (
    ParsedSentence,
    Question,
    SentencePair,
    TaggedSentence,
    TextLine,
    Translation,
)
from isogloss.data.files import DiskFolder
from isogloss.data.sources import RecentExamples, Sources, source_of
from isogloss.features.built_in_languages import (
    GENERATED_AS,
    BuiltInLanguages,
    built_in_size,
    corpora,
    generating,
    translating,
)
from isogloss.features.parallel_text.bitext import Bitext
from isogloss.features.parallel_text.gold_links import flip_languages
from says import says


def count_reads(calls, *examples):
    def read():
        calls.append(examples)
        return iter(examples)

    return read


def test_a_split_is_read_once_and_given_as_a_list_of_its_own():
    recent = RecentExamples(10)
    calls = []
    first_examples = recent.examples("a", count_reads(calls, 1, 2))
    first_examples.clear()
    assert recent.examples("a", count_reads(calls, 1, 2)) == [1, 2]
    assert len(calls) == 1


def test_the_split_not_asked_for_longest_is_forgotten_when_there_are_too_many_examples():
    recent = RecentExamples(5)
    calls = []
    for name in ("a", "b", "a", "c"):
        recent.examples(name, count_reads(calls, name, name))
    assert len(calls) == 3
    recent.examples("a", count_reads(calls, "a", "a"))
    assert len(calls) == 3
    recent.examples("b", count_reads(calls, "b", "b"))
    assert len(calls) == 4


def test_a_split_longer_than_the_limit_is_not_kept_and_drives_nothing_out():
    recent = RecentExamples(3)
    calls = []
    recent.examples("short", count_reads(calls, 1))
    for _ in range(2):
        assert recent.examples("long", count_reads(calls, 1, 2, 3, 4)) == [1, 2, 3, 4]
    recent.examples("short", count_reads(calls, 1))
    assert len(calls) == 3


def test_a_file_that_changed_is_read_anew(tmp_path):
    folder = tmp_path / "rawtext" / "en"
    folder.mkdir(parents=True)
    file = folder / "train.txt"
    file.write_text("one\ntwo\n", encoding="utf-8")
    sources = Sources(str(tmp_path))
    assert [example.text for example in sources.examples("rawtext", "en", "train")] == ["one", "two"]
    file.write_text("three\n", encoding="utf-8")
    assert [example.text for example in sources.examples("rawtext", "en", "train")] == ["three"]
    file.unlink()
    with pytest.raises(DataError):
        sources.examples("rawtext", "en", "train")


MADE = {
    "ud": ParsedSentence(
        id="1", words=("ba", "du"), tags=("NOUN", "VERB"), heads=(2, 0), relations=("nsubj", "root")
    ),
    "wikiann": TaggedSentence(id="1", words=("Ba",), tags=("B-PER",)),
    "xnli": SentencePair(id="1", first="ba du", second="du", label="neutral"),
    "pawsx": SentencePair(id="1", first="ba du", second="du ba", label="1"),
    "squad": Question(id="1", passage="ba du", question="ba?", answers=((3, "du"),)),
    "text": TextLine(id="train:1", text="ba du"),
}

TEXTS = {name: {"first": "translated"} for name in ("xnli", "pawsx")}


@pytest.fixture
def generated_splits(monkeypatch):
    """Give three built-in languages one example per split. Return the splits that were generated."""
    calls = []

    def examples(corpus, language, split):
        calls.append((corpus, language, split))
        return iter([MADE[corpus]])

    def translations(first, second, split, *, corpus="bitext"):
        return iter([Translation(id="1", first=f"{first} a", second=second, links=((0, 0), (1, 0)))])

    def translate_corpus(corpus, languages, split, *, noise):
        return iter(
            [replace(MADE[corpus], id="7", **TEXTS.get(corpus, {"question": f"{languages} {split}"}))]
        )

    monkeypatch.setattr(corpora, "LANGUAGES", dict.fromkeys(("qaa", "qab", "qac")))
    monkeypatch.setattr(corpora, "VERSION", 3)
    for make in (examples, translations):
        monkeypatch.setattr(generating, make.__name__, make)
    monkeypatch.setattr(translating, "translate_corpus", translate_corpus)
    return calls


@pytest.mark.usefixtures("generated_splits")
@pytest.mark.parametrize("name", GENERATED_AS)
def test_every_corpus_is_read_through_its_native_format(name):
    (example,) = CORPORA[name].read(BuiltInLanguages(), "qab", "train")
    expected = MADE[GENERATED_AS[name]]
    own_fields = [
        field for field in expected.__slots__ if field not in {"lines", "where"}
    ]  # Those say where it stood.
    assert own_fields
    assert [getattr(example, field) for field in own_fields] == [
        getattr(expected, field) for field in own_fields
    ]


@pytest.mark.usefixtures("generated_splits")
def test_bitext_is_given_in_both_directions():
    folder = BuiltInLanguages()
    (pair,) = Bitext().read(folder, "qaa-qac", "dev")
    assert pair == Translation(id="1", first="qaa a", second="qac", links=((0, 0), (1, 0)))
    assert list(Bitext().read(folder, "qac-qaa", "dev")) == [flip_languages(pair)]


@pytest.mark.usefixtures("generated_splits")
def test_export_reads_back_the_very_same(tmp_path):
    messages = []
    folder = BuiltInLanguages()
    folder.export(tmp_path, messages.append)
    disk = DiskFolder(tmp_path)
    for name in GENERATED_AS:
        for language, split in product(("qaa", "qac"), SPLITS):
            examples = list(CORPORA[name].read(folder, language, split))
            assert list(CORPORA[name].read(disk, language, split)) == examples
    assert list(Bitext().read(disk, "qab-qaa", "test")) == list(Bitext().read(folder, "qab-qaa", "test"))
    assert messages[-1].done == messages[-1].total == len(messages) - 1


@pytest.mark.usefixtures("generated_splits")
@pytest.mark.parametrize("languages", ["qaa-qab", "qac-qaa", "qab-qac-qab"])
@pytest.mark.parametrize("split", SPLITS)
def test_pairs_of_languages_are_translations(languages, split):
    folder = BuiltInLanguages()
    for name in ("xnli", "pawsx"):
        (pair,) = CORPORA[name].read(folder, languages, split)
        assert pair == replace(MADE[name], first="translated")
    (question,) = CORPORA["squad"].read(folder, languages, split)
    assert question == replace(MADE["squad"], id="7", question=f"{languages} {split}")


@pytest.mark.usefixtures("generated_splits")
def test_translations_have_noise_in_their_fingerprints_and_other_files_do_not():
    folder = BuiltInLanguages()
    (file,) = CORPORA["xnli"].files(folder, "qaa-qab", "train")
    assert file.fingerprint() == "built-in-3-xnli/translate-train/qaa-qab-translated.tsv-noise-0.05"
    (file,) = CORPORA["xnli"].files(folder, "qab", "train")
    assert file.fingerprint() == "built-in-3-xnli/train-qab.tsv"


def test_running_text_is_not_there_in_translation():
    with says(DataError, "'rawtext'", "'qaa-qab'"):
        CORPORA["rawtext"].read(BuiltInLanguages(), "qaa-qab", "train")


@pytest.mark.usefixtures("generated_splits")
def test_translation_of_a_language_there_is_not_lists_pairs():
    with says(DataError, "qaa-qab, qaa-qab-qaa, qaa-qac"):
        CORPORA["xnli"].read(BuiltInLanguages(), "qaa-qtz", "train")


@pytest.mark.slow
def test_translations_of_this_package_s_languages_keep_ids_and_labels():
    folder = BuiltInLanguages()
    for name in ("xnli", "pawsx"):
        source, translated_examples = (
            list(CORPORA[name].read(folder, language, "dev")) for language in ("qab", "qab-qaa")
        )
        assert [(example.id, example.label) for example in source] == [
            (translated_example.id, translated_example.label) for translated_example in translated_examples
        ]
        assert all(pair.first != two.first for pair, two in zip(source, translated_examples, strict=True))


def test_finding_and_fingerprints_make_no_example(generated_splits):
    (file,) = CORPORA["ud"].files(BuiltInLanguages(), "qaa", "train")
    assert file.fingerprint() == "built-in-3-ud/UD_qaa-BuiltIn/qaa_builtin-ud-train.conllu"
    assert generated_splits == []


def test_what_is_inside_are_the_folders_of_the_corpora():
    folder = BuiltInLanguages()
    assert folder.inside() == ["bitext", "panx", "pawsx", "rawtext", "squad", "ud", "xnli"]


@pytest.mark.usefixtures("generated_splits")
def test_unknown_built_in_language_lists_those_there_are():
    with says(DataError, "qaa, qab, qac"):
        CORPORA["wikiann"].read(BuiltInLanguages(), "qtz", "train")


def test_real_language_is_read_from_the_users_folder(tmp_path):
    disk = DiskFolder(tmp_path)
    assert source_of("en", disk) is disk
    assert source_of("en-fr", disk) is disk


def test_real_language_without_a_folder_says_give_data():
    with says(DataError, "--data DIR"):
        source_of("en-sw", None)


def test_pair_of_a_built_in_and_a_real_language_is_refused(tmp_path):
    for pair in ("qaa-en", "en-qaa"):
        with pytest.raises(DataError, match=f"^{pair}: "):
            Sources(str(tmp_path)).examples("bitext", pair, "dev")


@pytest.mark.parametrize(
    ("corpus", "language", "split"),
    [
        ("ud", "qaa", "dev"),
        ("rawtext", "qab", "test"),
        ("squad", "qad", "test"),
        ("bitext", "qaa-qab", "dev"),
        ("bitext:bitext-large", "qaa-qab", "test"),
    ],
)
def test_the_size_of_a_split_is_known_without_reading_it(corpus, language, split):
    read = Sources().stream(corpus, language, split)
    assert built_in_size(corpus, language, split) == sum(1 for _ in read)


@pytest.mark.parametrize(
    ("corpus", "language"),
    [("ud", "en"), ("xnli", "qaa-qab"), ("bitext", "en-fr"), ("bitext:bible", "qaa-qab"), ("ud+ud", "qaa")],
)
def test_the_size_of_other_corpora_is_not_known(corpus, language):
    assert built_in_size(corpus, language, "dev") is None
