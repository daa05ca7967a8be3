"""Several labels per text, numbers for pairs and users' questions work in recipes and models in use."""

import json
from itertools import islice
from pathlib import Path

import pytest
from scipy.stats import spearmanr

import isogloss
from isogloss.core.errors import ConfigError
from isogloss.features.built_in_languages import examples
from isogloss.planning.plan import plan_recipe
from isogloss.runs.fine_tune import FineTune
from isogloss.using import load_model

DESCRIBED = {
    "named": 'kind = "text"\npredicts = "labels"\nfiles = "named-{language}-{split}.jsonl"\n',
    "alike": 'kind = "pair"\npredicts = "number"\nfiles = "alike-{language}-{split}.tsv"\n',
    "asked": 'kind = "span"\nfiles = "asked-{language}-{split}.jsonl"\n',
}
RECIPE = """
title = "Our own answers"
encoder = "shipped"

[translate]
name = "built-in"

[grid]
corpus = ["named.toml", "alike.toml", "asked.toml"]
source = "qaa"
targets = ["qab"]
seeds = [0]
dev_examples = 12
optimization = { epochs = 1, batch_size = 8, checkpoint_every = 0, precision = "float32" }

[[grid.method]]
name = "source-only"

[[grid.method]]
name = "few-shot"
start = "source-only"
shots = 4

[[grid.method]]
name = "translate-train"

[[grid.method]]
name = "x-mixup"

[[measure]]
name = "scores"
split = "test"

[[measure]]
name = "scores"
split = "test"
inputs = "paired"
methods = ["x-mixup"]

[[measure]]
name = "interpolation"
between = ["source-only", "few-shot"]
alphas = [0.0, 1.0]
"""
CONSISTENT = RECIPE.replace('name = "x-mixup"\n\n', 'name = "consistency"\n\n').partition("[[measure]]")[0]
METRICS = {"named": "micro_f1", "alike": "spearman", "asked": "f1"}


def text(sentence) -> str:
    return " ".join(sentence.words)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Names in a sentence. Number of words that a pair shares. Questions of built-in languages."""
    folder = tmp_path_factory.mktemp("answers")
    for language, split in ((item, split) for item in ("qaa", "qab") for split in ("train", "dev", "test")):
        sentences = list(islice(examples("wikiann", language, split), 24))
        names = [
            {"text": text(sentence), "label": sorted({tag[2:] for tag in sentence.tags if tag != "O"})}
            for sentence in sentences
        ]
        pairs = zip(sentences, sentences[1:] + sentences[:1], strict=True)
        similar_texts = [f"{text(a)}\t{text(b)}\t{len(set(a.words) & set(b.words)) / 2}" for a, b in pairs]
        arguments = [
            {
                "context": example.passage,
                "question": example.question,
                "answers": {
                    "text": [t for _, t in example.answers],
                    "answer_start": [s for s, _ in example.answers],
                },
            }
            for example in islice(examples("squad", language, split), 12)
        ]
        for name, rows in (("named", names), ("asked", arguments)):
            lines = "".join(json.dumps(row) + "\n" for row in rows)
            (folder / f"{name}-{language}-{split}.jsonl").write_text(lines, encoding="utf-8")
        table = "\n".join(["first\tsecond\tlabel", *similar_texts]) + "\n"
        (folder / f"alike-{language}-{split}.tsv").write_text(table, encoding="utf-8")
    for name, body in DESCRIBED.items():
        (folder / f"{name}.toml").write_text(body, encoding="utf-8")
    (folder / "own.toml").write_text(RECIPE, encoding="utf-8")
    (folder / "consistent.toml").write_text(CONSISTENT, encoding="utf-8")
    return folder


def test_the_labels_of_many_are_part_of_a_run_and_numbers_have_none(folder):
    runs = [run for run in plan_recipe(str(folder / "own.toml")).runs if isinstance(run, FineTune)]
    assert {(run.corpus, run.task, run.labels) for run in runs} == {
        ("named", "multi-label-classification", ("LOC", "ORG", "PER")),
        ("alike", "pair-regression", None),
        ("asked", "qa", None),
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"grid.corpus": "alike.toml"}, "consistency: .*'pair-regression'.*KL"),
        ({"grid.corpus": "asked.toml"}, "consistency: .*'qa'"),
        (
            {"grid.corpus": "named.toml", "grid.method.1.per": "label"},
            "few-shot: .*= 'label'.*multi-label-class",
        ),
        (
            {"grid.corpus": "named.toml", "measure": [{"name": "scores", "inputs": "mixed"}]},
            "'mixed'.*nli.*paraphrase.*pair-regression.*multi-label-classification",
        ),
    ],
)
def test_what_has_no_meaning_for_an_answer_is_refused_in_the_plan(folder, changes, message):
    with pytest.raises(ConfigError, match=message):
        plan_recipe(str(folder / "consistent.toml"), changes=changes)


def test_several_labels_of_a_text_may_be_consistent(folder):
    assert plan_recipe(str(folder / "consistent.toml"), changes={"grid.corpus": "named.toml"}).runs


@pytest.mark.nightly
@pytest.mark.slow
def test_methods_measurements_and_models_in_use_know_them(folder, tmp_path):
    result = isogloss.run(folder / "own.toml", out=tmp_path / "runs", report=False)
    assert not result.outcome.failed
    frame = result.frame("scores")
    scores = frame[frame["main"]]
    assert dict(zip(scores["corpus"], scores["metric"], strict=True)) == METRICS
    assert set(scores["method"]) == {"source-only", "few-shot", "translate-train", "x-mixup"}
    assert scores["baseline"].notna().all()
    assert len(result.frame("interpolation")) == 3 * 4
    models = {
        record.run["corpus"]: load_model(tmp_path / "runs" / record.id, precision="float32")
        for record in result.records
        if record.kind == "fine-tune" and record.run["method"]["kind"] == "source-only"
    }
    plain_score = scores[(scores["method"] == "source-only") & (scores["language"] == "qab")]
    for name, model in models.items():
        (row,) = model.evaluate(name, ["qab"], data=str(folder))
        assert row["score"] == pytest.approx(
            plain_score[plain_score["corpus"] == name]["score"].item(), abs=1e-6
        )
    rows = [line.split("\t") for line in (folder / "alike-qab-test.tsv").read_text().splitlines()[1:]]
    numbers = models["alike"].predict([row[:2] for row in rows])
    expected = spearmanr([float(row[2]) for row in rows], numbers).statistic
    known_score = plain_score[plain_score["corpus"] == "alike"]["score"].item()
    assert known_score == pytest.approx(expected, abs=1e-6)
    with pytest.raises(ConfigError, match="pair-regression"):
        models["alike"].predict([["a", "b"]], scores=True)
    (felt,) = models["named"].predict(["a b c"], scores=True)
    assert felt.answer == tuple(name for name, score in felt.scores.items() if score > 0.5)
    assert list(felt.scores) == ["LOC", "ORG", "PER"]
