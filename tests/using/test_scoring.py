"""A saved model scores what its run recorded. What it predicts is written as the corpus is."""

from dataclasses import replace

import pytest
import torch

from isogloss.core.errors import ConfigError, DataError
from isogloss.core.records import read_record
from isogloss.data.corpora.catalogue import CORPORA
from isogloss.data.files import DiskFolder, disk_file
from isogloss.data.formats.conllu import read_conllu
from isogloss.data.sources import Sources
from isogloss.features.built_in_languages import BuiltInLanguages
from isogloss.tasks import find_task
from isogloss.tasks.inputs import examples_of
from isogloss.using import EvaluateOptions, evaluate, load_model


@pytest.fixture(autouse=True)
def one_thread():
    """Compute with as many threads as runs do: the last digits of a sum depend on it."""
    num_threads_before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(num_threads_before)


@pytest.fixture(scope="module")
def run(tiny_runs):
    return next(path.parent for path in sorted(tiny_runs.glob("*/model")))


@pytest.fixture(scope="module")
def model(run):
    return load_model(run)


def test_scores_are_those_of_the_run(model, run, tiny_runs):
    records = [read_record(path.parent) for path in tiny_runs.glob("*/record.json")]
    (record,) = [
        item for item in records if item.needs == (run.name,) and item.run["diagnostic"]["kind"] == "scores"
    ]

    class First(Sources):
        """The first examples, as the tiny recipe has them."""

        def examples(self, corpus, language, split, *, treebanks=(), examples=0):
            return super().examples(
                corpus, language, split, treebanks=treebanks, examples=examples or record.run["examples"]
            )

    languages = tuple(record.run["languages"])
    rows = evaluate(model, EvaluateOptions(corpus="wikiann", languages=languages, split="dev"), First())
    assert rows_by_language(rows) == rows_by_language(record.rows)
    assert {(row["corpus"], row["task"], row["run"]) for row in rows} == {("wikiann", "ner", run.name)}


NAMES = ("language", "split", "baseline", "examples")


def rows_by_language(rows):
    """Return a row for each language with all its measures, from rows of ``evaluate`` or of a record."""
    fields = {}
    for row in rows:
        own_part = fields.setdefault(
            row["language"], {name: row[name] for name in NAMES if row.get("main", True)}
        )
        own_part[row["metric"]] = row["score"]
        own_part |= {
            name: row[name]
            for name in ("word_f1", "seqeval_f1", "macro_f1", "weighted_f1", "mcc")
            if name in row
        }
    return list(fields.values())


def test_predictions_are_files_of_the_corpus(model, tmp_path):
    folder = tmp_path / "data" / "panx"
    folder.mkdir(parents=True)
    lines = list(
        CORPORA["wikiann"].write(list(CORPORA["wikiann"].read(BuiltInLanguages(), "qaa", "test"))[:9], "en")
    )
    (folder / "test-en.tsv").write_text("\n".join(lines) + "\n")
    options = EvaluateOptions(corpus="wikiann", languages=("en",))
    model = replace(model, provenance=replace(model.provenance, source=("de",), target=()))
    (row,) = evaluate(model, options, Sources(str(folder.parent)), predictions=tmp_path / "out")
    assert row["baseline"] is None  # There is no train split.
    corpus = CORPORA["wikiann"]
    gold = list(corpus.read(DiskFolder(folder.parent), "en", "test"))
    examples = list(corpus.read(DiskFolder(tmp_path / "out" / model.provenance.run), "en", "test"))
    assert [example.words for example in examples] == [sentence.words for sentence in gold]
    assert [example.tags for example in examples] == model.predict(gold)
    assert row["score"] == model.score(gold)
    assert row["examples"] == 9


@pytest.mark.nightly
@pytest.mark.slow
def test_pairs_are_scored_beside_the_majority(pair_model, tmp_path):
    model = load_model(pair_model)
    (row,) = model.evaluate("pawsx", ["qab"], split="dev")
    assert 0.4 < row["baseline"] < 1
    options = EvaluateOptions(corpus="pawsx", languages=("qab",), split="dev")
    evaluate(model, options, Sources(), predictions=tmp_path)
    (file,) = tmp_path.rglob("*.tsv")
    assert {line.split("\t")[2] for line in file.read_text().splitlines()} <= {"0", "1"}


def test_trees_are_written_into_the_lines_of_the_treebank(make_model, tmp_path):
    model = make_model("parsing")
    options = EvaluateOptions(corpus="ud", languages=("qaa",), split="dev")

    class Few(Sources):
        def examples(self, *where, examples=0, **more):
            return super().examples(*where, examples=6, **more)

    (row,) = evaluate(model, options, Few(), predictions=tmp_path)
    assert (row["metric"], row["examples"]) == ("las", 6)
    assert {"uas", "conll2018_las"} <= row.keys()
    gold = Few().examples("ud", "qaa", "dev")
    (file,) = (path for path in tmp_path.rglob("*") if path.is_file())
    sentences = list(read_conllu(disk_file(file)))
    trees = model.predict(gold)
    assert [(sentence.heads, sentence.relations) for sentence in sentences] == [
        (tree.heads, tree.relations) for tree in trees
    ]
    assert [(sentence.id, sentence.tags) for sentence in sentences] == [
        (example.id, example.tags) for example in gold
    ]


def test_a_target_is_scored_alone_whatever_treebanks_the_model_was_trained_on(make_model, tmp_path):
    rows = "1\tAnna\t_\tPROPN\t_\t_\t0\troot\t_\t_\n2\tja\t_\t{}\t_\t_\t1\tcc\t_\t_\n\n"
    for name, text in (
        ("UD_Telugu-MTG/te_mtg-ud-train.conllu", rows.format("PROPN")),
        ("UD_Estonian-EWT/et_ewt-ud-test.conllu", rows.format("CCONJ")),
    ):
        (tmp_path / "ud" / name).parent.mkdir(parents=True)
        (tmp_path / "ud" / name).write_text(text)
    model = make_model(source=("te",), target=("et",), treebanks=(("te", "MTG"), ("et", "EWT")))
    options = EvaluateOptions(corpus="ud", languages=("et",))
    (row,) = evaluate(model, options, Sources(str(tmp_path)))
    assert (row["language"], row["examples"], row["baseline"]) == ("et", 1, 0.5)
    with pytest.raises(ConfigError, match="--treebank te:"):
        evaluate(model, replace(options, treebanks=(("te", "MTG"),)), Sources(str(tmp_path)))


def test_answers_are_written_as_the_official_scripts_read_them(tmp_path):
    import json
    from types import SimpleNamespace

    from isogloss.tasks import TASKS
    from isogloss.using.kinds import kind_of
    from isogloss.using.scoring import write_predictions

    examples = list(CORPORA["squad"].read(BuiltInLanguages(), "qaa", "dev"))[:3]
    model = SimpleNamespace(kind=kind_of(TASKS["qa"]), task=TASKS["qa"])
    options = EvaluateOptions(corpus="squad", languages=("qaa",), split="dev")
    path = write_predictions(model, options, "qaa", examples, ["é", "", "b"], tmp_path)
    assert json.loads(path.read_text()) == dict(
        zip([example.id for example in examples], ["é", "", "b"], strict=True)
    )


def test_what_cannot_be_scored_is_refused(model, tmp_path):
    with pytest.raises(ConfigError, match=r"'xnli'.*nli.*ner"):
        evaluate(model, EvaluateOptions(corpus="xnli", languages=("qaa",)), Sources())
    emotions = replace(model, task=find_task("multi-label-classification", ("joy",)))
    with pytest.raises(ConfigError, match="multi-label-classification"):
        emotions.evaluate("xnli", ["qaa"])
    with pytest.raises(ConfigError, match=r"'wikian'.*'wikiann'"):
        model.evaluate("wikian", ["qaa"])
    with pytest.raises(ConfigError, match=r"Model.evaluate: split: .*'tset'.*'test'"):
        model.evaluate("wikiann", ["qaa"], split="tset")
    with pytest.raises(ConfigError, match=r"--language: .*'Ansa'"):
        model.evaluate("wikiann", ["Ansa"])
    with pytest.raises(DataError, match="Give --data DIR"):
        model.evaluate("wikiann", ["en"])
    with pytest.raises(DataError, match=r"'wikiann'.*'en'"):
        model.evaluate("wikiann", ["en"], data=tmp_path)


@pytest.mark.nightly
@pytest.mark.slow
def test_progress_names_the_languages(model):
    reports = []
    model.evaluate("wikiann", ["qaa", "qab"], split="dev", on_progress=reports.append)
    languages = [report for report in reports if report.what != "scoring"]
    assert [(language.done, language.remark) for language in languages] == [(0, "qaa"), (1, "qab"), (2, "")]


@pytest.mark.nightly
@pytest.mark.slow
def test_progress_counts_the_rows_that_are_scored(model):
    reports = []
    model.evaluate("wikiann", ["qaa"], split="dev", on_progress=reports.append)
    rows = [report for report in reports if report.what == "scoring"]
    assert len(rows) > 1
    assert [row.done for row in rows] == sorted(row.done for row in rows)
    assert {(row.total, row.remark) for row in rows} == {(rows[-1].done, "qaa")}


class FirstFifty(Sources):
    """As many examples as the mixing recipe measures on."""

    def examples(self, corpus, language, split, *, treebanks=(), examples=0):
        return super().examples(corpus, language, split, treebanks=treebanks, examples=examples or 50)


@pytest.fixture(scope="module")
def mixing_model(mixup_runs):
    return load_model(next(path.parents[1] for path in mixup_runs.glob("*/model/mixup.json")))


def rows_of(runs, diagnostic):
    records = [read_record(path.parent) for path in runs.glob("*/record.json")]
    (rows,) = [
        record.rows
        for record in records
        if record.kind == "measure" and record.run["diagnostic"]["kind"] == diagnostic
    ]
    return rows


@pytest.mark.slow
def test_paired_scores_are_those_of_the_recipe_to_the_last_digit(mixing_model, mixup_runs):
    measured_rows = rows_of(mixup_runs, "scores")
    options = EvaluateOptions(corpus="ud", languages=("qaa", "qab"), split="dev", inputs="paired")
    rows = evaluate(mixing_model, options, FirstFifty())
    assert {"accuracy", "seqeval_f1"} < rows_by_language(measured_rows)[0].keys()
    assert rows_by_language(rows) == rows_by_language(measured_rows)
    assert rows[1]["corpus"] == "ud paired"
    with pytest.warns(UserWarning, match="--inputs"):
        plain_score = evaluate(mixing_model, replace(options, inputs=""), FirstFifty())
    assert plain_score[0]["score"] == rows[0]["score"]  # The source is never mixed.
    assert rows_by_language(plain_score)[1] != rows_by_language(rows)[1]


def test_a_sweep_has_the_paired_score_at_what_was_trained(mixup_runs):
    (measured_row,) = [
        row for row in rows_of(mixup_runs, "scores") if (row["language"], row["main"]) == ("qab", True)
    ]
    swept = rows_of(mixup_runs, "mixup-sweep")
    (trained_row,) = [row for row in swept if row["trained"]]
    assert (trained_row["layer"], trained_row["ratio"]) == (2, 0.5)
    for name in ("model", "language", "split", "metric", "score", "baseline", "examples"):
        assert trained_row[name] == measured_row[name]
    assert [(row["layer"], row["ratio"]) for row in swept] == [
        (1, 0.0),
        (1, 1.0),
        (2, 0.5),
        (3, 0.0),
        (3, 1.0),
    ]
    assert len({row["score"] for row in swept if row["ratio"] == 0}) == 1
    assert len({row["score"] for row in swept}) > 2
    assert all(0 <= row["mean"] <= row["ratio"] for row in swept)


@pytest.mark.nightly
@pytest.mark.slow
def test_predictions_on_paired_inputs_lie_apart_from_others(mixing_model, tmp_path):
    options = EvaluateOptions(corpus="ud", languages=("qab",), split="dev", inputs="paired")
    (row,) = evaluate(mixing_model, options, FirstFifty(), predictions=tmp_path)
    (file,) = tmp_path.rglob("*.conllu")
    assert file.is_relative_to(tmp_path / mixing_model.provenance.run / "paired")
    gold = FirstFifty().examples("ud", "qab", "dev")
    examples = FirstFifty().examples("ud", "qab-qaa", "dev")
    tags = [sentence.tags for sentence in read_conllu(disk_file(file))]
    assert tags == [tuple(prediction) for prediction in mixing_model.predict(gold, translations=examples)]
    assert row["score"] == mixing_model.score(gold, translations=examples)


def test_examples_without_a_translation_are_told_of(mixing_model):
    class Few(FirstFifty):
        def examples(self, corpus, language, split, *, treebanks=(), examples=0):
            result = super().examples(corpus, language, split, treebanks=treebanks, examples=examples)
            return result[3:] if language == "qab-qaa" else result

    reports = []
    options = EvaluateOptions(corpus="ud", languages=("qab",), split="dev", inputs="paired")
    evaluate(mixing_model, options, Few(), warn=reports.append)
    assert len(reports) == 1
    assert reports[0].startswith("qab:")


@pytest.mark.slow
@pytest.mark.parametrize("inputs", ["translated", "mixed", "mixed-second"])
def test_inputs_are_those_of_recipes(pair_model, tmp_path, inputs):
    model = load_model(pair_model)
    options = EvaluateOptions(corpus="pawsx", languages=("qab",), split="dev", inputs=inputs)
    (row,) = evaluate(model, options, FirstFifty(), predictions=tmp_path)
    expected = examples_of(
        inputs, "qab", ("qaa",), lambda language: FirstFifty().examples("pawsx", language, "dev")
    )
    assert (row["corpus"], row["score"]) == (f"pawsx {inputs}", model.score(expected))
    (file,) = (tmp_path / model.provenance.run / inputs).rglob("*.tsv")
    texts = [tuple(line.split("\t")[:2]) for line in file.read_text().splitlines()]
    assert texts == [(pair.first, pair.second) for pair in expected]


def test_inputs_that_a_model_cannot_take_are_refused(model, mixing_model, pair_model):
    def get_refusal(item, **options):
        with pytest.raises(ConfigError) as error:
            evaluate(
                item, EvaluateOptions(**({"corpus": "wikiann", "languages": ("qab",)} | options)), Sources()
            )
        return str(error.value)

    assert "--inputs: no kind of inputs 'piared'. Did you mean 'paired'" in get_refusal(
        model, inputs="piared"
    )
    assert "--inputs: 'mixed' is for nli and paraphrase and pair-regression, not for ner" in get_refusal(
        model, inputs="mixed"
    )
    refusal = get_refusal(model, inputs="paired")
    assert refusal.startswith("--inputs paired: this model (") and "mix" in refusal
    bare_mixing_model = replace(mixing_model, provenance=replace(mixing_model.provenance, source=()))
    assert "translate" in get_refusal(bare_mixing_model, corpus="ud", inputs="paired")
