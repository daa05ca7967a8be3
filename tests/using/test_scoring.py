"""A saved model scores what its run recorded; what it predicts is written as the corpus is."""

from dataclasses import replace

import pytest

from isogloss.core.errors import ConfigError, DataError
from isogloss.core.records import read_record
from isogloss.data import CORPORA
from isogloss.data.built_in import BuiltInFolder
from isogloss.data.conllu import read_conllu
from isogloss.data.files import DiskFolder, disk_file
from isogloss.data.sources import Sources
from isogloss.using import Wanted, evaluate, load_model


@pytest.fixture(scope="module")
def run(tiny_runs):
    return next(path.parent for path in sorted(tiny_runs.glob("*/model")))


@pytest.fixture(scope="module")
def model(run):
    return load_model(run)


def test_scores_are_those_of_the_run(model, run, tiny_runs):
    records = [read_record(path.parent) for path in tiny_runs.glob("*/record.json")]
    (record,) = [
        one for one in records if one.needs == (run.name,) and one.run["diagnostic"]["kind"] == "scores"
    ]

    class First(Sources):
        """The first examples, as the tiny recipe has them."""

        def examples(self, corpus, language, split, *, treebanks=(), examples=0):
            return super().examples(
                corpus, language, split, treebanks=treebanks, examples=examples or record.run["examples"]
            )

    languages = tuple(record.run["languages"])
    rows = evaluate(model, Wanted(corpus="wikiann", languages=languages, split="dev"), First())
    names = ("language", "split", "metric", "score", "baseline", "examples", "method", "corpus", "task")
    assert [{name: row[name] for name in names} for row in rows] == [
        {name: row[name] for name in names} for row in record.rows
    ]


def test_predictions_are_files_of_the_corpus(model, tmp_path):
    folder = tmp_path / "data" / "panx"
    folder.mkdir(parents=True)
    lines = list(
        CORPORA["wikiann"].write(list(CORPORA["wikiann"].read(BuiltInFolder(), "qaa", "test"))[:9], "en")
    )
    (folder / "test-en.tsv").write_text("\n".join(lines) + "\n")
    wanted = Wanted(corpus="wikiann", languages=("en",))
    model = replace(model, origin=replace(model.origin, source=("de",), target=()))
    (row,) = evaluate(model, wanted, Sources(str(folder.parent)), predictions=tmp_path / "out")
    assert row["baseline"] is None  # There is no train split.
    corpus = CORPORA["wikiann"]
    gold = list(corpus.read(DiskFolder(folder.parent), "en", "test"))
    written = list(corpus.read(DiskFolder(tmp_path / "out" / model.origin.run), "en", "test"))
    assert [one.words for one in written] == [one.words for one in gold]
    assert [one.tags for one in written] == model.predict_examples(gold)
    assert row["score"] == model.score(gold)
    assert row["examples"] == 9


def test_pairs_are_scored_beside_the_majority(pair_model, tmp_path):
    model = load_model(pair_model)
    (row,) = model.evaluate("pawsx", ["qab"], split="dev")
    assert 0.4 < row["baseline"] < 1
    wanted = Wanted(corpus="pawsx", languages=("qab",), split="dev")
    evaluate(model, wanted, Sources(), predictions=tmp_path)
    (file,) = (path for path in tmp_path.rglob("*") if path.is_file())
    assert {line.split("\t")[2] for line in file.read_text().splitlines()} <= {"0", "1"}


def test_trees_are_written_into_the_lines_of_the_treebank(make_model, tmp_path):
    model = make_model("parsing")
    wanted = Wanted(corpus="ud", languages=("qaa",), split="dev")

    class Few(Sources):
        def examples(self, *where, examples=0, **more):
            return super().examples(*where, examples=6, **more)

    (row,) = evaluate(model, wanted, Few(), predictions=tmp_path)
    assert (row["metric"], row["examples"]) == ("las", 6)
    assert {"uas", "conll2018_las"} <= row.keys()
    gold = Few().examples("ud", "qaa", "dev")
    (file,) = (path for path in tmp_path.rglob("*") if path.is_file())
    written = list(read_conllu(disk_file(file)))
    trees = model.predict_examples(gold)
    assert [(one.heads, one.relations) for one in written] == [(one.heads, one.relations) for one in trees]
    assert [(one.id, one.tags) for one in written] == [(one.id, one.tags) for one in gold]


def test_answers_are_written_as_the_official_scripts_read_them(tmp_path):
    import json
    from types import SimpleNamespace

    from isogloss.using.kinds import KINDS
    from isogloss.using.scoring import write_predictions

    examples = list(CORPORA["squad"].read(BuiltInFolder(), "qaa", "dev"))[:3]
    model = SimpleNamespace(kind=KINDS["qa"])
    wanted = Wanted(corpus="squad", languages=("qaa",), split="dev")
    path = write_predictions(model, wanted, "qaa", examples, ["é", "", "b"], tmp_path)
    assert json.loads(path.read_text()) == dict(
        zip([one.id for one in examples], ["é", "", "b"], strict=True)
    )


def test_what_cannot_be_scored_is_refused(model, tmp_path):
    with pytest.raises(ConfigError, match=r"corpus 'xnli' holds nli, not ner. Choose one of: wikiann"):
        evaluate(model, Wanted(corpus="xnli", languages=("qaa",)), Sources())
    with pytest.raises(ConfigError, match=r"no corpus 'wikian'. Did you mean 'wikiann'"):
        model.evaluate("wikian", ["qaa"])
    with pytest.raises(ConfigError, match=r"--split: no split 'tset'. Did you mean 'test'"):
        model.evaluate("wikiann", ["qaa"], split="tset")
    with pytest.raises(ConfigError, match="--language: 'Ansa' is no language code"):
        model.evaluate("wikiann", ["Ansa"])
    with pytest.raises(DataError, match="Give --data DIR"):
        model.evaluate("wikiann", ["en"])
    with pytest.raises(DataError, match="no test split of corpus 'wikiann' for language 'en'"):
        model.evaluate("wikiann", ["en"], data=tmp_path)


def test_progress_names_the_languages(model):
    told = []
    model.evaluate("wikiann", ["qaa", "qab"], split="dev", tell=told.append)
    assert [(one.done, one.remark) for one in told] == [(0, "qaa"), (1, "qab"), (2, "")]
