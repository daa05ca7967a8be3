"""Lemmas of CoNLL-U from a description to models in use: reading, plans, methods, measurements, commands."""

import json
from itertools import islice
from pathlib import Path

import pytest

import isogloss
from isogloss.core.errors import ConfigError, DataError
from isogloss.data.lemma_rules import lemma_by
from isogloss.features.built_in_languages import examples
from isogloss.features.described_corpora.contents import inspect_splits
from isogloss.features.described_corpora.descriptions import describe_corpus
from isogloss.features.translation.run import Translate
from isogloss.planning.plan import plan_recipe
from isogloss.runs.fine_tune import FineTune
from isogloss.using import load_model
from says import says

LEMMAS = 'kind = "tagging"\nfiles = "{language}.{split}.conllu"\ncolumns = { label = "LEMMA" }\n'

HAND_WRITTEN = """\
# sent_id = 1
1\tLos\tel\tDET\t_\t_\t2\tdet\t_\t_
2-3\tvámonos\t_\t_\t_\t_\t_\t_\t_\t_
2\tvamos\tir\tVERB\t_\t_\t0\troot\t_\t_
3\tnos\tnosotros\tPRON\t_\t_\t2\tobj\t_\t_
3.1\tvacío\tvacío\tNOUN\t_\t_\t_\t_\t2:obj\t_

1\tİstanbul'da\tİstanbul\tPROPN\t_\t_\t0\troot\t_\t_
2\tIŞIK\tışık\tNOUN\t_\t_\t1\tdep\t_\t_
3\tiPhone'lar\tiPhone\tPROPN\t_\t_\t1\tdep\t_\t_
4\tnull\tnull\tNUM\t_\t_\t1\tdep\t_\t_
5\txx\t_\tX\t_\t_\t1\tdep\t_\t_
6\t_\t_\tSYM\t_\t_\t1\tdep\t_\t_

1\tوالكتاب\tكتاب\tNOUN\t_\t_\t0\troot\t_\t_
2\tالكتب\tكتاب\tNOUN\t_\t_\t1\tdep\t_\t_

"""


def corpus_of(folder, text, *more, files=("sw.train.conllu",)):
    """Describe files of lemmas."""
    for name in files:
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "lemmas.toml").write_text("".join([LEMMAS, *more]), encoding="utf-8")
    return describe_corpus(folder / "lemmas.toml")


def test_lemmas_are_read_of_words_alone_and_make_the_rules(tmp_path):
    corpus = corpus_of(tmp_path, HAND_WRITTEN * 2)
    assert (corpus.tasks, corpus.predicts) == (("lemmas",), "lemma")
    sentences = list(corpus.read(None, "sw", "train"))
    assert sentences[0].words == ("Los", "vamos", "nos") and sentences[0].tags == ("el", "ir", "nosotros")
    assert sentences[1].tags == ("İstanbul", "ışık", "iPhone", "null", "_", "_")
    assert corpus.labels[0] == "?" and "is el" not in corpus.labels and "keep | -3" in corpus.labels
    task = isogloss.tasks.find_task("lemmas", corpus.labels)
    numbers = task.label_numbers(sentences)
    pairs = [
        (lemma_by(corpus.labels[index], word), lemma)
        for sentence, words in zip(sentences, numbers, strict=True)
        for word, lemma, index in zip(sentence.words, sentence.tags, words, strict=True)
        if lemma != "_"
    ]
    assert len(pairs) == 18 and all(pair == lemma for pair, lemma in pairs)


@pytest.mark.parametrize(
    "text",
    [
        'kind = "tagging"\npredicts = "lemma"\nfiles = "{language}.{split}.conllu"\n',
        'kind = "tagging"\nfiles = "{language}.{split}.conllu"\ncolumns = { label = 2 }\n',
        'kind = "tagging"\npredicts = "lemma"\nfiles = "{language}.{split}.jsonl"\n',
    ],
)
def test_lemmas_are_described_by_their_column_or_as_what_is_predicted(tmp_path, text):
    (tmp_path / "sw.train.conllu").write_text(HAND_WRITTEN * 2, encoding="utf-8")
    line = json.dumps({"words": ["dogs", "null"], "labels": ["dog", "null"]})
    (tmp_path / "sw.train.jsonl").write_text(f"{line}\n{line}\n", encoding="utf-8")
    (tmp_path / "lemmas.toml").write_text(text, encoding="utf-8")
    corpus = describe_corpus(tmp_path / "lemmas.toml")
    assert corpus.tasks == ("lemmas",) and "lower |" in corpus.labels
    first_example, *_ = corpus.read(None, "sw", "train")
    assert first_example.tags in (("el", "ir", "nosotros"), ("dog", "null"))


def test_what_lemmas_cannot_have_is_refused_and_a_missing_one_is_an_error(tmp_path):
    with says(ConfigError, "labels: ", "Remove it"):
        corpus_of(tmp_path, HAND_WRITTEN, 'labels = ["lower |"]\n')
    with says(DataError, "sw.train.conllu:5", "no lemma"):
        list(corpus_of(tmp_path, HAND_WRITTEN.replace("\tnosotros\t", "\t\t")).read(None, "sw", "train"))


def test_a_file_without_lemmas_is_unlabelled_and_rules_too_rare_are_counted(tmp_path):
    bare_text = "1\tcats\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n"
    (tmp_path / "sw.test.conllu").write_text(bare_text, encoding="utf-8")
    (tmp_path / "sw.dev.conllu").write_text(bare_text.replace("\t_\tNOUN", "\tdog\tNOUN"), encoding="utf-8")
    corpus = corpus_of(tmp_path, HAND_WRITTEN * 2)
    assert corpus.lacks_labels(None, "sw", "test") and not corpus.lacks_labels(None, "sw", "dev")
    remarks = {split.split: " ".join(split.remarks) for split in inspect_splits(corpus)}
    assert "0.00% of lemmas" in remarks["train"] and "100.00% of lemmas" in remarks["dev"]
    assert "no labels" in remarks["test"]


RECIPE = """
title = "Lemmas"
encoder = "shipped"

[translate]
name = "built-in"

[grid]
corpus = "lemmas.toml"
source = "qaa"
targets = ["qab"]
seeds = [0]
dev_examples = 12
optimization = { epochs = 1, batch_size = 8, checkpoint_every = 0, precision = "float32" }

[[grid.method]]
name = "source-only"
auxiliary = { name = "multi-task", tasks = ["word-tagging:parts.toml"] }

[[grid.method]]
name = "bilingual"
auxiliary = { name = "alignment-loss", bitext = "bitext[dev]", pairs = 2 }

[[grid.method]]
name = "few-shot"
start = "bilingual + alignment-loss"
shots = 4

[[grid.method]]
name = "target-only"

[[grid.method]]
name = "x-mixup"

[[grid.method]]
name = "consistency"

[[measure]]
name = "scores"
split = "test"

[[measure]]
name = "interpolation"
between = ["bilingual + alignment-loss", "few-shot"]
alphas = [0.0, 1.0]
sentences = 2

[[measure]]
name = "plane"
between = ["few-shot", "consistency", "target-only"]
alphas = [0.0, 1.0]

[[measure]]
name = "label-free"
split = "test"
"""


def lemma_of(word: str) -> str:
    return word[:-1].lower() if len(word) > 3 else word.lower()


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Sentences of built-in languages, whose longer words lose a letter in their lemma."""
    folder = tmp_path_factory.mktemp("lemmas")
    for language, split in ((item, split) for item in ("qaa", "qab") for split in ("train", "dev", "test")):
        sentences = [
            "".join(
                f"{index}\t{word}\t{lemma_of(word)}\tX\t_\tEnd={word[-1]}\t0\troot\t_\t_\n"
                for index, word in enumerate(sentence.words, start=1)
            )
            for sentence in islice(examples("wikiann", language, split), 24)
        ]
        (folder / f"{language}.{split}.conllu").write_text("\n".join(sentences), encoding="utf-8")
    (folder / "lemmas.toml").write_text(LEMMAS, encoding="utf-8")
    (folder / "parts.toml").write_text(LEMMAS.replace("LEMMA", "FEATS"), encoding="utf-8")
    (folder / "own.toml").write_text(RECIPE, encoding="utf-8")
    return folder


def test_the_plan_has_rules_as_labels_and_translations_without_lemmas(folder):
    runs = plan_recipe(str(folder / "own.toml")).runs
    models = [run for run in runs if isinstance(run, FineTune)]
    assert {run.task for run in models} == {"lemmas"}
    assert all({"?", "lower |", "lower | -1"} <= set(run.labels) for run in models)
    assert {run.tags for run in runs if isinstance(run, Translate)} == {None}


def test_lemmas_are_not_projected_onto_translations(folder):
    changes = {"grid.method": [{"name": "translate-train"}], "measure": []}
    with says(ConfigError, "lemmas", "translate-train", "[translate]", "x-mixup"):
        plan_recipe(str(folder / "own.toml"), changes=changes)


@pytest.mark.nightly
@pytest.mark.slow
def test_methods_and_measurements_work_on_lemmas(folder, tmp_path):
    result = isogloss.run(folder / "own.toml", out=tmp_path / "runs", jobs=1, report=True)
    assert not result.outcome.failed
    scores = result.frame("scores")
    assert set(scores["task"]) == {"lemmas"} and set(scores["metric"]) == {"accuracy"}
    assert len(set(scores["method"])) == 6
    assert (len(result.frame("interpolation")), len(result.frame("plane"))) == (4, 8)
    (trained_model,) = (
        record.id
        for record in result.records
        if record.kind == "fine-tune" and record.run["method"]["kind"] == "bilingual"
    )
    model = load_model(tmp_path / "runs" / trained_model)
    (row,) = model.evaluate("lemmas", ["qab"], data=str(folder))
    bilingual = scores[(scores["method"] == "bilingual + alignment-loss") & (scores["language"] == "qab")]
    assert row["score"] == bilingual["score"].item() and row["baseline"] > 0
    lemmas = model.predict([["Tavo", "mi"]])[0]
    assert len(lemmas) == 2 and not any("|" in lemma for lemma in lemmas)
