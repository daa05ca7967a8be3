"""MRPC, SNLI, MultiNLI, CAD-NLI and SICK: their official layouts, and what is left out."""

from dataclasses import replace

import pytest

from isogloss.core.errors import DataError
from isogloss.data import CORPORA
from isogloss.data.catalogue import CAD_NLI
from isogloss.data.examples import SentencePair
from isogloss.tasks import TASKS

ENGLISH = ("cad-nli", "mrpc", "multinli", "sick", "snli")


def read(folder, corpus, split, language="en"):
    return list(CORPORA[corpus].read(folder, language, split))


def test_mrpc_reads_the_official_files_and_glue_s(fixtures):
    assert read(fixtures, "mrpc", "train") == [
        SentencePair(id="1", first='The cat, "Tom", sleeps.', second="Tom the cat is asleep.", label="1"),
        SentencePair(id="2", first="It rained.", second="It snowed.", label="0"),
    ]
    assert [pair.first for pair in read(fixtures, "mrpc", "dev")] == ['A "dog barks.']


def test_tests_without_labels_are_read_but_not_scored(fixtures):
    (pair,) = read(fixtures, "mrpc", "test")
    assert (pair.second, pair.label) == ("The hour is late.", "")
    task = TASKS["paraphrase"]
    with pytest.raises(DataError, match=r"paraphrase: 1 of 1 pairs have no label.*or predict"):
        task.score(task.gold([pair]), ["1"])


def test_snli_leaves_out_pairs_without_an_agreed_label_and_counts_them(fixtures):
    assert [(pair.id, pair.label) for pair in read(fixtures, "snli", "train")] == [
        ("1.jpg#0r1n", "neutral"),
        ("1.jpg#0r2e", "entailment"),
    ]
    assert [pair.id for pair in read(fixtures, "snli", "dev")] == ["2.jpg#1r1c"]
    assert [CORPORA["snli"].left_out(fixtures, "en", split) for split in ("train", "dev")] == [1, 1]


def test_multinli_s_dev_is_matched_and_its_test_mismatched(fixtures):
    assert [pair.id for pair in read(fixtures, "multinli", "dev")] == ["63735n"]
    assert [pair.id for pair in read(fixtures, "multinli", "test")] == ["75290e"]
    assert CORPORA["multinli"].left_out(fixtures, "en", "dev") == 1


def test_cad_nli_has_collections(fixtures):
    assert len(read(fixtures, "cad-nli", "train")) == 2
    assert len(list(replace(CAD_NLI, collection="original").read(fixtures, "en", "train"))) == 1


def test_sick_reads_the_shared_task_s_files_and_the_later_one_of_all_splits(fixtures):
    assert [(pair.id, pair.label) for pair in read(fixtures, "sick", "dev")] == [
        ("4", "contradiction"),
        ("24", "neutral"),
    ]
    assert [pair.id for pair in read(fixtures, "sick", "train")] == ["1"]
    assert [pair.id for pair in read(fixtures, "sick", "test")] == ["6"]


@pytest.mark.parametrize("name", ["multinli", "sick", "snli"])
def test_ids_of_the_corpus_are_kept(again, name):
    example = SentencePair(id="1.jpg#0r1n", first="a", second="b", label="neutral")
    assert again(CORPORA[name], [example], language="sw") == [example]


@pytest.mark.parametrize("name", ["multinli", "sick", "snli"])
def test_id_that_comes_again_is_told_apart(put, name):
    corpus = CORPORA[name]
    example = SentencePair(id="7", first="a", second="b", label="neutral")
    lines = "".join(line + "\n" for line in corpus.write([example, example], "sw"))
    folder = put({corpus.path("sw", "dev"): lines})
    assert list(corpus.read(folder, "sw", "dev")) == [example, replace(example, id="7#2")]


HEADS = {
    "mrpc": ("mrpc/train.tsv", "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String", "2\t1\t2\ta\tb"),
    "snli": ("snli/snli_train.tsv", "sentence1\tsentence2\tgold_label", "a\tb\tneutrl"),
    "multinli": ("MNLI/train.tsv", "pairID\tsentence1\tsentence2\tgold_label", "1\ta\tb\tneutrl"),
    "cad-nli": ("cad-nli/all_combined/train.tsv", "sentence1\tsentence2\tgold_label", "a\tb\t-"),
    "sick": (
        "sick/SICK_train.txt",
        "pair_ID\tsentence_A\tsentence_B\tentailment_judgment",
        "1\ta\tb\tNEUTRL",
    ),
}


@pytest.mark.parametrize("name", ENGLISH)
def test_broken_line_names_file_and_line(message, name):
    file, head, row = HEADS[name]
    text = message(CORPORA[name], {file: f"{head}\n{row}\n"})
    assert f"{file}:2: " in text
    assert "label" in text
    text = message(CORPORA[name], {file: f"{head}\na\n"})
    assert f"{file}:2: 1 columns in 'a'; expected {head.count(chr(9)) + 1}, split by tabs" in text


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "no JSON"),
        ("[1]", "'[1]'; expected a JSON object on each line"),
        ('{"sentence1": "a", "gold_label": "neutral"}', "no text sentence2 or hypo or hypothesis"),
        ('{"sentence1": "a", "sentence2": 3, "gold_label": "neutral"}', "no text sentence2"),
        ('{"sentence1": "a", "sentence2": "b", "gold_label": "nuetral"}', "Did you mean 'neutral'?"),
        ("[" * 100_000, "no JSON"),
    ],
)
def test_broken_json_names_file_and_line(message, line, said):
    good = '{"sentence1": "a", "sentence2": "b", "gold_label": "neutral"}'
    text = message(CORPORA["snli"], {"snli/snli_1.0_train.jsonl": f"{good}\n{line}\n"})
    assert "snli_1.0_train.jsonl:2: " in text
    assert said in text


def test_header_without_the_second_text_is_an_error(message):
    text = message(CORPORA["sick"], {"sick/SICK_train.txt": "pair_ID\tsentence_A\n1\ta\n"})
    assert "SICK_train.txt:1: a header without sentence_B: pair_ID, sentence_A" in text


def test_training_split_without_labels_is_an_error(message):
    text = message(CORPORA["mrpc"], {"mrpc/train.tsv": "index\t#1 String\t#2 String\n1\ta\tb\n"})
    assert "train.tsv:1: a header without Quality" in text
    assert "only a test split may lack them" in text


def test_split_that_is_not_there_names_those_that_are(put):
    folder = put({"snli/snli_dev.tsv": "sentence1\tsentence2\tgold_label\na\tb\tneutral\n"})
    with pytest.raises(DataError, match=r"no train split of corpus 'snli'; it has dev\..*snli\[dev\]"):
        read(folder, "snli", "train")


def test_other_language_than_english_needs_a_file_of_one_s_own(fixtures, put):
    with pytest.raises(
        DataError, match=r"'snli' is English; found language 'sw'.*add a file snli/train-sw\.tsv"
    ):
        read(fixtures, "snli", "train", "sw")
    assert read(put({"snli/train-sw.tsv": "a\tb\tneutral\n"}), "snli", "train", "sw")


def test_empty_folder_says_what_is_in_it(put):
    with pytest.raises(DataError, match=r"no train split of corpus 'mrpc'.*The folder holds: something\.txt"):
        read(put({"something.txt": ""}), "mrpc", "train")
