"""Translations in the layouts of XTREME, XNLI, PAWS-X and X-Mixup: from one language into a second."""

import json
from dataclasses import replace

import pytest

from isogloss.core.errors import DataError
from isogloss.data.corpora.catalogue import CORPORA
from isogloss.data.corpus import paths
from isogloss.data.examples import SentencePair
from says import says

XNLI = CORPORA["xnli"]
MLQA = CORPORA["mlqa"]

ROWS = "the cat\tthe dog\tpaka\tmbwa\tneutral\nit rains\tit is wet\tmvua\tmaji\tcontradictory\n"
OWN = "premise\thypo\tlabel\npaka\tmbwa\tneutral\nmvua\tmaji\tcontradictory\n"
PAIRS = [
    SentencePair(id="1", first="paka", second="mbwa", label="neutral"),
    SentencePair(id="2", first="mvua", second="maji", label="contradiction"),
]


def read(folder, corpus, language, split="train"):
    return list(CORPORA[corpus].read(folder, language, split))


@pytest.mark.parametrize(
    ("file", "text", "language", "split"),
    [
        ("xnli/translate-train/en-sw-translated.tsv", ROWS, "en-sw", "train"),
        ("xtreme_translations/XNLI/translate-train/en-sw-translated.tsv", ROWS, "en-sw", "train"),
        ("XNLI/translate-test/test-en-sw-translated.tsv", ROWS, "en-sw", "test"),
        ("xnli/multinli.train.sw.tsv", OWN, "en-sw", "train"),
        ("XNLI-MT-1.0/multinli/multinli.train.sw.tsv", OWN, "en-sw", "train"),
        ("xnli/XNLI-MT-1.0/multinli/multinli.train.sw.tsv", OWN, "en-sw", "train"),
        ("xnli/translate-test/test.de.tsv", OWN.partition("\n")[2], "de-en", "test"),
        ("xnli/translate-train-en/multinli.train.sw-en.tsv", OWN, "en-sw-en", "train"),
        ("xnli/translate-train/en-sw-en-translated.tsv", ROWS, "en-sw-en", "train"),
        ("xnli/translate-train/eng-swa-translated.tsv", ROWS, "en-sw", "train"),
        ("xnli/multinli.train.swh_Latn.tsv", OWN, "en-sw", "train"),
        ("xnli/translate-test/test.deu.tsv", OWN.partition("\n")[2], "de-en", "test"),
    ],
)
def test_every_layout_of_translated_pairs_gives_the_translation(put_files, file, text, language, split):
    assert read(put_files({file: text}), "xnli", language, split) == PAIRS


def test_rows_that_lost_their_label_are_left_out_counted_and_numbered(native_files, put_files):
    assert CORPORA["xnli"].left_out(native_files, "en-sw", "train") == 1
    folder = put_files({"pawsx/translate-train/en-de-translated.tsv": "a\tb\tc\td\t1\na\tb\tc\td\tLabel\n"})
    assert [example.id for example in read(folder, "pawsx", "en-de")] == ["1"]
    assert CORPORA["pawsx"].left_out(folder, "en-de", "train") == 1


def test_own_files_of_a_language_leave_no_row_out(reading_error, put_files):
    text = reading_error(
        CORPORA["xnli"], {"xnli/train-sw.tsv": "a\tb\tneutral\na row that broke\n"}, language="sw"
    )
    assert "train-sw.tsv:2: 1 cell;" in text
    folder = put_files({"pawsx/train-de.tsv": "a\tb\t1\n"})
    assert CORPORA["pawsx"].left_out(folder, "de", "train") == 0


def test_translated_test_may_lack_labels_as_xtreme_s_do(put_files):
    folder = put_files({"xnli/translate-test/test-sw-en-translated.tsv": "paka\tmbwa\tcat\tdog\n"})
    assert read(folder, "xnli", "sw-en", "test") == [
        SentencePair(id="1", first="cat", second="dog", label="")
    ]


def test_xtreme_s_test_files_without_labels_are_read_and_others_are_not(put_files):
    folder = put_files({"xnli/test-sw.tsv": "paka\tmbwa\n", "xnli/dev-sw.tsv": "paka\tmbwa\n"})
    assert read(folder, "xnli", "sw", "test") == [SentencePair(id="1", first="paka", second="mbwa", label="")]
    with says(DataError, "dev-sw.tsv:1:", "'gold_label'", "'label'"):
        read(folder, "xnli", "sw", "dev")


def test_translation_is_never_taken_for_the_other_direction(put_files):
    folder = put_files(
        {"xnli/multinli.train.sw.tsv": OWN, "xnli/translate-test/test.sw.tsv": "a\tb\tneutral\n"}
    )
    for language, split in (("sw-en", "train"), ("en-sw", "test"), ("de-sw", "train"), ("en-sw-en", "train")):
        with pytest.raises(DataError, match=f"{split}.*'xnli'.*'{language}'"):
            read(folder, "xnli", language, split)


def test_paths_name_only_what_a_pair_has():
    assert all("{" not in path for path in paths(XNLI.translations, "de-fr", "train"))
    assert "xnli/multinli.train.sw.tsv" in paths(XNLI.translations, "en-sw", "train")
    english = paths(CORPORA["snli"].layouts, "en", "train")  # They say no language, however it is spelled.
    assert len(set(english)) == len(english)
    assert not any("multinli" in path for path in paths(XNLI.translations, "de-fr", "train"))


@pytest.mark.parametrize("name", ["xnli", "pawsx", "squad", "mlqa", "tydiqa"])
def test_path_of_a_pair_is_where_its_translation_is_looked_for(name, put_files):
    corpus = CORPORA[name]
    path = corpus.path("en-sw", "dev")
    assert "en-sw" in path
    assert len(corpus.files(put_files({path: ""}), "en-sw", "dev")) == 1


def squad(*answers, passage="paka na mbwa"):
    """Give a file of one question for each list of answers."""
    qas = [
        {"id": f"q{n}", "question": "nani?", "answers": [{"text": t, "answer_start": s} for s, t in answer]}
        for n, answer in enumerate(answers)
    ]
    return json.dumps({"data": [{"title": "", "paragraphs": [{"context": passage, "qas": qas}]}]})


FOUND = [(0, "paka")]
QUESTIONS = [
    ("squad", "squad/translate-train/squad.translate.train.en-sw.json", "en-sw", "train"),
    ("squad", "squad/squad.translate.train.en-sw.json", "en-sw", "train"),
    ("squad", "xtreme_translations/SQuAD/translate-dev/squad.translate.dev.en-sw.json", "en-sw", "dev"),
    ("squad", "squad/translate-train-en/squad.translate.train.en-sw-en.json", "en-sw-en", "train"),
    ("squad", "xquad/translate-test/xquad.translate.test.sw-en.json", "sw-en", "test"),
    ("mlqa", "mlqa/translate-test/mlqa.translate.test.hi-en.json", "hi-en", "test"),
    ("tydiqa", "tydiqa/translate-train/tydiqa.translate.train.en-sw.json", "en-sw", "train"),
    ("tydiqa", "TyDiQA-GoldP/translate-test/tydiqa.translate.test.sw-en.json", "sw-en", "dev"),
]


@pytest.mark.parametrize(("corpus", "file", "language", "split"), QUESTIONS)
def test_lost_answers_of_translated_questions_are_left_out_and_counted(
    put_files, corpus, file, language, split
):
    folder = put_files({file: squad(FOUND, [(-1, "tembo")], [], [(-1, "x"), *FOUND], [(3, "paka")])})
    examples = read(folder, corpus, language, split)
    assert [(example.id, example.answers) for example in examples] == [
        (name, ((0, "paka"),)) for name in ("q0", "q3", "q4")
    ]
    assert [bool(example.repaired) for example in examples] == [False, False, True]
    assert CORPORA[corpus].left_out(folder, language, split) == 2


def test_answers_of_own_files_must_stand_where_they_say(reading_error):
    text = reading_error(CORPORA["squad"], {"squad/train-sw.json": squad([(3, "tembo")])}, language="sw")
    assert "qas[0] (question q0): answer 'tembo' at 3" in text
    text = reading_error(CORPORA["squad"], {"squad/train-sw.json": squad([])}, language="sw")
    assert "question" in text


def test_own_files_leave_no_question_out(put_files):
    folder = put_files(
        {"squad/train-sw.json": squad(FOUND), "tydiqa-goldp/swahili_tydiqa_dev.json": squad(FOUND)}
    )
    assert CORPORA["squad"].left_out(folder, "sw", "train") == 0
    assert CORPORA["tydiqa"].left_out(folder, "sw", "dev") == 0


def test_mlqa_in_translation_is_compared_by_the_rules_of_what_is_read(put_files):
    folder = put_files({"mlqa/translate-test/mlqa.translate.test.hi-en.json": squad(FOUND)})
    assert [example.language for example in read(folder, "mlqa", "hi-en", "test")] == ["en"]
    with says(DataError, "'mlqa'"):
        replace(MLQA, collection="de").read(folder, "hi-en", "test")
