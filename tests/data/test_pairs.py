"""Labelled pairs in the official layouts of XNLI, PAWS-X, MRPC, SNLI, MultiNLI, CAD-NLI and SICK."""

import re
from dataclasses import replace

import pytest

from isogloss.core.errors import DataError
from isogloss.data.corpora.catalogue import CORPORA
from isogloss.data.examples import SentencePair
from isogloss.tasks import TASKS
from says import says

XNLI = CORPORA["xnli"]


def test_a_language_column_may_spell_the_language_otherwise(put_files, native_files):
    rows = native_files.find(["xnli/xnli.dev.tsv"])[0]
    text = "".join(f"{line}\n" for _, line in rows.lines())
    folder = put_files({"xnli/xnli.dev.tsv": text.replace("\nsw\t", "\nswh\t")})
    assert list(XNLI.read(folder, "sw", "dev")) == list(XNLI.read(native_files, "sw", "dev")) != []


def test_multinli_s_own_header_is_understood(put_files):
    text = "gold_label\tpairID\tsentence1\tsentence2\nneutral\tx\ta\tb\n"
    (pair,) = XNLI.read(put_files({"multinli_1.0/multinli_1.0_train.txt": text}), "en", "train")
    assert (pair.first, pair.second, pair.label) == ("a", "b", "neutral")


def test_training_data_may_have_a_blank_text(put_files):
    rows = "a\tb\tneutral\na\t \tneutral\n"
    assert len(list(XNLI.read(put_files({"xnli/train-en.tsv": rows}), "en", "train"))) == 2


def test_first_pair_that_looks_like_a_header_is_written_below_one(read_back):
    pairs = [SentencePair(id="1", first="premise", second="hypothesis", label="neutral")]
    assert list(XNLI.write(pairs, "en")) == [
        "sentence1\tsentence2\tgold_label",
        "premise\thypothesis\tneutral",
    ]
    assert read_back(XNLI, pairs) == pairs


def read(folder, corpus, split, language="en"):
    return list(CORPORA[corpus].read(folder, language, split))


def test_tests_without_labels_are_read_but_not_scored(native_files):
    (pair,) = read(native_files, "mrpc", "test")
    assert (pair.second, pair.label) == ("The hour is late.", "")
    task = TASKS["paraphrase"]
    with says(DataError, "paraphrase:"):
        task.score(task.gold([pair]), ["1"])


@pytest.mark.parametrize(("name", "split"), [("snli", "train"), ("snli", "dev"), ("multinli", "dev")])
def test_pairs_without_an_agreed_label_are_left_out_and_counted(native_files, name, split):
    assert CORPORA[name].left_out(native_files, "en", split) == 1


@pytest.mark.parametrize("name", ["multinli", "sick", "snli"])
def test_ids_of_the_corpus_are_kept(read_back, name):
    example = SentencePair(id="1.jpg#0r1n", first="a", second="b", label="neutral")
    assert read_back(CORPORA[name], [example], language="sw") == [example]


@pytest.mark.parametrize("name", ["multinli", "sick", "snli"])
def test_id_that_comes_again_is_told_apart(put_files, name):
    corpus = CORPORA[name]
    example = SentencePair(id="7", first="a", second="b", label="neutral")
    lines = "".join(line + "\n" for line in corpus.write([example, example], "sw"))
    folder = put_files({corpus.path("sw", "dev"): lines})
    assert list(corpus.read(folder, "sw", "dev")) == [example, replace(example, id="7#2")]


XNLI_DEV = "language\tgold_label\tsentence1\tsentence2\nen\tneutral\ta\tb\nsw\n"
SICK = "pair_ID\tsentence_A\tsentence_B\tentailment_judgment"
OBJECT = '{"sentence1": "a", "sentence2": "b", "gold_label": "neutral"}\n'


def messages_below(head, row):
    """Messages for a row without a label of the corpus, and for a row that lost its columns."""
    width = f"1 cell; expected {head.count(chr(9)) + 1}"
    return (f"{head}\n{row}\n", "2: .*label"), (f"{head}\na\n", f"2: {width}")


@pytest.mark.parametrize(
    ("file", "text", "texts"),
    [
        *(
            ("xnli/train-en.tsv", f"a\tb\tneutral\n{line}\n", f"2: {message}")
            for line, message in (
                ("a\tb", "2 cells; expected 3 as in the first row. Correct the line."),
                ("a\tb\tneutral\tx", "4 cells"),
                ("", "1 cell;"),
                ("a\tb\tmaybe", "label 'maybe'; expected one of entailment, neutral, contradiction"),
                ("a\tb\t-", "label '-'; .* without a label"),
                ("a\tb\t", "no label; .* without a label"),
            )
        ),
        (
            "xnli/test-en.tsv",
            "a\tb\tneutral\na\t \tneutral\n",
            "2: second is ' '",
        ),
        ("xnli/xnli.dev.tsv", XNLI_DEV, "3: 1 cell; expected 4"),  # in any language
        ("xnli/train-en.tsv", "sentence1\tsentence2\nb\tc\n", "1: a header without 'gold_label' or 'label'"),
        (
            "pawsx/en/train.tsv",
            "id\tsentence1\tsentence2\tsentence2\tlabel\n",
            "1: 2 columns 'sentence2'; expected one",
        ),
        ("pawsx/en/train.tsv", "id\tsentence1\tsentence2\tlabel\n\ta\tb\t1\n", "2: an empty id"),
        *(
            (file, text, message)
            for file, head, row in (
                ("mrpc/train.tsv", "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String", "2\t1\t2\ta\tb"),
                ("snli/snli_train.tsv", "sentence1\tsentence2\tgold_label", "a\tb\tneutrl"),
                (
                    "MNLI/train.tsv",
                    "pairID\tsentence1\tsentence2\tgold_label",
                    "1\ta\tb\tx",
                ),
                ("cad-nli/all_combined/train.tsv", "sentence1\tsentence2\tgold_label", "a\tb\t-"),
                ("sick/SICK_train.txt", SICK, "1\ta\tb\tNEUTRL"),
            )
            for text, message in messages_below(head, row)
        ),
        (
            "sick/SICK_train.txt",
            "pair_ID\tsentence_A\n1\ta\n",
            "1: a header without 'sentence_B'.*; the file has pair_ID, sent",
        ),
        (
            "mrpc/train.tsv",
            "index\t#1 String\t#2 String\n1\ta\tb\n",
            "1: a header without 'Quality'.*only a test split may lack labels",
        ),
        *(
            ("snli/snli_1.0_train.jsonl", f"{OBJECT}{line}\n", f"2: {message}")
            for line, message in (
                ("{", ".*JSON"),
                ("[" * 100_000, ".*JSON"),
                ("[1]", r"'\[1\]'"),
                (
                    '{"sentence1": "a", "gold_label": "neutral"}',
                    "no column 'sentence2' or 'hypo' or 'hypothesis' for",
                ),
                (
                    '{"sentence1": "a", "sentence2": 3, "gold_label": "neutral"}',
                    "second is '3'; expected a text",
                ),
                (OBJECT.strip().replace("neutral", "nuetral"), "label 'nuetral'.*Did you mean 'neutral'?"),
            )
        ),
    ],
    ids=lambda value: ascii(value)[:60],
)
def test_what_is_broken_is_named_with_its_line(reading_error, file, text, texts):
    name = file.partition("/")[0]
    corpus = CORPORA["multinli" if name == "MNLI" else name]
    split = next((language for language in ("dev", "test") if language in file), "train")
    assert re.search(rf"{file}:{texts}", reading_error(corpus, {file: text}, split=split))


def test_split_that_is_not_there_names_those_that_are(put_files):
    folder = put_files({"snli/snli_dev.tsv": "sentence1\tsentence2\tgold_label\na\tb\tneutral\n"})
    with says(DataError, "'snli'", "dev"):
        read(folder, "snli", "train")


def test_other_language_than_english_needs_a_file_of_one_s_own(native_files, put_files):
    with says(DataError, "'snli'", "'sw'"):
        read(native_files, "snli", "train", "sw")
    assert read(put_files({"snli/train-sw.tsv": "a\tb\tneutral\n"}), "snli", "train", "sw")
