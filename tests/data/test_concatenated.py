from dataclasses import replace
from pathlib import Path

import pytest

from isogloss.core.errors import ConfigError, DataError
from isogloss.data.corpora.catalogue import CORPORA
from isogloss.data.corpora.concatenated import Concatenated, join_corpora, parts_of
from says import says

FILES = {
    "snli/snli_dev.tsv": "sentence1\tsentence2\tgold_label\na\tb\tneutral\nc\td\tentailment\n",
    "snli/snli_test.tsv": "sentence1\tsentence2\tgold_label\ne\tf\tneutral\n",
    "sick/SICK_train.txt": "pair_ID\tsentence_A\tsentence_B\tentailment_judgment\n9\tg\th\tNEUTRAL\n",
    "sick/SICK_trial.txt": "pair_ID\tsentence_A\tsentence_B\tentailment_judgment\n5\ti\tj\tENTAILMENT\n",
}


def corpus(name):
    return join_corpora(name, CORPORA.__getitem__)


def test_parts_are_read_in_turn_with_ids_of_their_own(put_files):
    folder = put_files(FILES)
    assert [example.id for example in corpus("snli+sick").read(folder, "en", "dev")] == [
        "snli:1",
        "snli:2",
        "sick:5",
    ]
    assert [example.id for example in corpus("sick+snli").read(folder, "en", "dev")] == [
        "sick:5",
        "snli:1",
        "snli:2",
    ]


def test_named_splits_of_a_part_are_its_training_data_and_it_has_no_other(put_files):
    folder = put_files(FILES)
    whole_corpora = corpus("snli[dev,test]+sick")
    assert [example.id for example in whole_corpora.read(folder, "en", "train")] == [
        "snli:dev:1",
        "snli:dev:2",
        "snli:test:1",
        "sick:9",
    ]
    assert [example.id for example in whole_corpora.read(folder, "en", "dev")] == ["sick:5"]


def test_files_are_those_of_all_parts(put_files):
    folder = put_files(FILES)
    files = corpus("snli[dev,test]+sick").files(folder, "en", "train")
    assert [Path(file.name).name for file in files] == ["snli_dev.tsv", "snli_test.tsv", "SICK_train.txt"]


def test_part_alone_keeps_its_ids_unless_its_splits_are_named(put_files):
    assert corpus("sick") is CORPORA["sick"]
    assert [example.id for example in corpus("sick[dev]").read(put_files(FILES), "en", "train")] == ["sick:5"]


def test_part_that_lacks_a_split_is_an_error_before_the_first_example(put_files):
    with says(DataError, "'snli'", "dev, test"):
        corpus("sick+snli").read(put_files(FILES), "en", "train")


def test_whole_without_a_split_says_which_corpus_to_join(put_files):
    with says(DataError, "'snli[dev]+sick[dev]'"):
        corpus("snli[dev]+sick[dev]").read(put_files(FILES), "en", "dev")


def test_joined_corpora_have_the_tasks_that_all_have():
    assert corpus("snli+cad-nli+sick+xnli").tasks == ("nli",)
    assert corpus("mrpc+pawsx").tasks == ("paraphrase",)
    with pytest.raises(ConfigError, match=r"nli.*paraphrase"):
        corpus("snli+mrpc")


def test_joined_corpus_says_whose_licences_hold():
    assert corpus("snli+sick").about.licence == "snli: CC BY-SA 4.0; sick: CC BY-NC-SA 3.0"
    assert "snli" in corpus("snli+sick").about.url


def test_name_is_what_the_recipe_says():
    for name in ("snli[dev,test]+cad-nli+sick", "mrpc+pawsx", "snli[test]"):
        assert corpus(name).name == name


def test_collection_of_a_corpus_is_a_part_of_its_own(native_files):
    def one(name):
        plain_part, _, collection = name.partition(":")
        return replace(CORPORA["cad-nli"], collection=collection) if collection else CORPORA[plain_part]

    whole_corpora = join_corpora("cad-nli:original+cad-nli", one)
    assert [pair.id for pair in whole_corpora.read(native_files, "en", "train")] == [
        "cad-nli:original:1",
        "cad-nli:1",
        "cad-nli:2",
    ]


def test_nothing_is_written():
    whole_corpora = corpus("snli+sick")
    assert isinstance(whole_corpora, Concatenated)
    for write in (lambda: whole_corpora.write([], "en"), lambda: whole_corpora.path("en", "train")):
        with says(DataError, "'snli+sick'", "en"):
            write()


def test_names_are_taken_apart():
    assert parts_of("snli[dev, test] + cad-nli:original") == [
        ("snli", ("dev", "test")),
        ("cad-nli:original", ()),
    ]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "^corpus '': ''.*snli"),
        ("snli+", r"^corpus 'snli\+': ''"),
        ("snli[dev", r"^corpus 'snli\[dev': 'snli\[dev'"),
        ("snli]dev[", r"^corpus 'snli\]dev\['"),
        ("[dev]", r"^corpus '\[dev\]'"),
        ("snli[]", "'' .*train, dev, test"),
        ("snli[dve]", "'dve' .*'dev'.*train, dev, test"),
        ("snli[dev,dev]", "'dev' .*twice"),
        ("snli+sick+snli", ": snli .*twice"),
        ("snli+snli[dev]", ": snli .*twice"),
    ],
)
def test_name_that_cannot_be_taken_apart_says_how_to_write_it(name, message):
    with pytest.raises(ConfigError, match=message):
        parts_of(name)
