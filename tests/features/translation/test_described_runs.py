"""Corpora that somebody described go through recipes, methods, measurements, models in use, and commands."""

import json
import shutil
from itertools import islice
from pathlib import Path

import pytest

import isogloss
from isogloss.core.errors import ConfigError
from isogloss.features.built_in_languages import examples
from isogloss.features.translation.run import Translate
from isogloss.planning.plan import plan_recipe, plan_recipes
from isogloss.runs.fine_tune import FineTune
from isogloss.runs.measure import Measure
from isogloss.using import load_model
from says import says

TOPICS = 'kind = "text"\nfiles = "topics-{language}-{split}.tsv"\n'
DATES = 'kind = "tagging"\nlabels = ["LOC", "ORG", "DATE"]\nfiles = "{language}/{split}.txt"\n'
RECIPE = """
title = "Our own labels"
encoder = "shipped"

[translate]
name = "built-in"

[grid]
corpus = ["topics.toml", "dates.toml"]
source = "qaa"
targets = ["qab"]
seeds = [0]
dev_examples = 12
optimization = { epochs = 1, batch_size = 8, checkpoint_every = 0, precision = "float32" }

[[grid.method]]
name = "source-only"

[[grid.method]]
name = "bilingual"

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
name = "interpolation"
alphas = [0.0, 1.0]

[[measure]]
name = "cka"
corpus = "topics.toml"
split = "test"
seeds = [0]
methods = ["x-mixup"]
"""


PICKS = """
kind = "choice"
files = "{language}-{split}.jsonl"
columns = { context = "premise", prompt = "asks" }
"""
CHOICES = """
title = "Our own choices"
encoder = "shipped"

[translate]
name = "built-in"

[grid]
corpus = "picks.toml"
source = "qaa"
targets = ["qab"]
seeds = [0]
dev_examples = 8
optimization = { epochs = 1, batch_size = 4, checkpoint_every = 0, precision = "float32" }

[[grid.method]]
name = "source-only"

[[grid.method]]
name = "consistency"
accumulation = 3

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
between = ["source-only", "x-mixup"]
alphas = [0.0, 1.0]

[[measure]]
name = "cka"
corpus = "picks.toml"
split = "test"
methods = ["x-mixup"]
inputs = "paired"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Sentences of built-in languages: what is named in them is their topic. Persons are called dates."""
    folder = tmp_path_factory.mktemp("described")
    for language, split in ((item, split) for item in ("qaa", "qab") for split in ("train", "dev", "test")):
        sentences = list(islice(examples("wikiann", language, split), 24))
        topics = folder / f"topics-{language}-{split}.tsv"
        rows = [f"{_topic(sentence.tags)}\t{' '.join(sentence.words)}" for sentence in sentences]
        topics.write_text("\n".join(["label\ttext", *rows]) + "\n", encoding="utf-8")
        (folder / language).mkdir(exist_ok=True)
        lines = [
            "".join(f"{w} {t.replace('PER', 'DATE')}\n" for w, t in zip(s.words, s.tags, strict=True))
            for s in sentences
        ]
        (folder / language / f"{split}.txt").write_text("\n".join(lines), encoding="utf-8")
    (folder / "topics.toml").write_text(TOPICS, encoding="utf-8")
    (folder / "dates.toml").write_text(DATES, encoding="utf-8")
    (folder / "own.toml").write_text(RECIPE, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def choices(tmp_path_factory) -> Path:
    """Sentences of built-in languages: which of two to four continues the first?"""
    folder = tmp_path_factory.mktemp("choices")
    for language, split in ((item, split) for item in ("qaa", "qab") for split in ("train", "dev", "test")):
        texts = [" ".join(example.words) for example in islice(examples("wikiann", language, split), 60)]
        rows = [
            {"premise": texts[n], "asks": "next", "options": texts[12 + 4 * n :][: 2 + n % 3], "label": n % 2}
            for n in range(12)
        ]
        (folder / f"{language}-{split}.jsonl").write_text(
            "\n".join(json.dumps(value) for value in rows), encoding="utf-8"
        )
    (folder / "picks.toml").write_text(PICKS, encoding="utf-8")
    (folder / "own.toml").write_text(CHOICES, encoding="utf-8")
    return folder


def _topic(tags) -> str:
    return next((tag[2:].lower() for tag in tags if tag != "O"), "none")


def select_kind(kind, runs):
    return [run for run in runs if isinstance(run, kind)]


def test_the_plan_knows_tasks_labels_and_names(folder):
    runs = plan_recipe(str(folder / "own.toml")).runs
    models = select_kind(FineTune, runs)
    assert {(run.corpus, run.task) for run in models} == {
        ("topics", "text-classification"),
        ("dates", "span-tagging"),
    }
    assert {run.labels for run in models if run.corpus == "dates"} == {
        ("O", "B-LOC", "I-LOC", "B-ORG", "I-ORG", "B-DATE", "I-DATE")
    }
    assert {run.labels for run in models if run.corpus == "topics"} == {("loc", "none", "org", "per")}
    assert not any(str(folder) in repr(run) for run in runs)
    assert {(run.corpus, run.languages, run.tags) for run in select_kind(Translate, runs)} == {
        ("topics", "qaa-qab", None),
        ("topics", "qaa-qab-qaa", None),
        ("dates", "qaa-qab", None),  # x-mixup, whose teacher labels it
        ("dates", "qaa-qab", "links"),
        ("dates", "qaa-qab-qaa", None),
    }


def test_several_recipes_on_described_corpora_are_planned_together(folder, tmp_path):
    recipe = str(folder / "own.toml")
    single_plan = plan_recipe(recipe)
    recipes = plan_recipes([recipe, recipe], out=tmp_path)
    assert recipes.sources.described == single_plan.sources.described
    assert recipes.runs == single_plan.runs
    other_folder = tmp_path / "other"
    shutil.copytree(folder, other_folder)
    with says(isogloss.IsoglossError, "'topics'"):
        plan_recipes([recipe, str(other_folder / "own.toml")], out=tmp_path)


def test_what_does_not_fit_is_refused_in_the_plan(folder):
    for change, message in (
        ({"grid.corpus": "topic.toml"}, r"topic\.toml:"),
        ({"grid.task": "ner"}, "'topics'.*'ner'.*text-classification"),
        ({"grid.corpus": "topics.toml+dates.toml"}, "task"),
        ({"grid.targets": ["qac"]}, "'topics'.*'qac'"),
    ):
        with pytest.raises(isogloss.IsoglossError, match=message):
            plan_recipe(str(folder / "own.toml"), changes=change)


MEASURED = """
title = "NLI of our own, and lines of bitext"
encoder = "shipped"

[grid]
corpus = "xnli"
source = "qaa"
targets = ["qab"]
seeds = [0]

[[grid.method]]
name = "source-only"

[[measure]]
name = "scores"
corpus = "own-nli.toml"
split = "test"

[[measure]]
name = "retrieval"
corpus = "own-lines.toml"
split = "test"
"""


def test_models_of_xnli_are_measured_on_described_nli_and_on_lines_of_bitext(tmp_path):
    table = "first\tsecond\tlabel\na\tb\tneutral\n"
    labels = '["contradiction", "entailment", "neutral"]'
    files = {
        **{f"nli-{language}.tsv": table for language in ("qaa", "qab")},
        **{f"test.{language}": f"{language}\n" for language in ("qaa", "qab")},
        "own-nli.toml": f'kind = "pair"\nfiles = {{ test = "nli-{{language}}.tsv" }}\nlabels = {labels}\n',
        "own-lines.toml": 'kind = "bitext"\nfiles = { test = "test.{language}" }\nformat = "lines"\n',
        "own.toml": MEASURED,
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    runs = plan_recipe(str(tmp_path / "own.toml")).runs
    assert {(run.task, run.labels) for run in select_kind(FineTune, runs)} == {("nli", None)}
    assert {run.diagnostic.name: run.corpus for run in select_kind(Measure, runs)} == {
        "scores": "own-nli",
        "retrieval": "own-lines",
    }


@pytest.mark.nightly
@pytest.mark.slow
def test_a_recipe_runs_in_other_processes_and_its_models_are_used(folder, tmp_path):
    result = isogloss.run(folder / "own.toml", out=tmp_path / "runs", jobs=2, report=False)
    assert not result.outcome.failed
    scores = result.frame("scores")
    assert {(row.task, row.metric) for row in scores.itertuples()} == {
        *(("text-classification", measure) for measure in ("accuracy", "macro_f1", "weighted_f1", "mcc")),
        ("span-tagging", "span_f1"),
        ("span-tagging", "word_f1"),
    }
    folders = {
        record.run["corpus"]: tmp_path / "runs" / record.id
        for record in result.records
        if record.kind == "fine-tune" and record.run["method"]["kind"] == "bilingual"
    }
    topics = load_model(folders["topics"])
    assert topics.predict(["text of one line"])[0] in ("loc", "none", "org", "per")
    assert set(load_model(folders["dates"]).predict([["a", "b"]])[0]) <= {
        "O", "B-LOC", "I-LOC", "B-ORG", "I-ORG", "B-DATE", "I-DATE",
    }  # fmt: skip
    (row,) = topics.evaluate("topics", ["qab"])
    known_score = scores[
        (scores["corpus"] == "topics")
        & (scores["language"] == "qab")
        & (scores["method"] == "bilingual")
        & scores["main"]
    ]
    assert row["score"] == known_score["score"].item()
    with says(ConfigError, "'dates'"):
        topics.evaluate("dates", ["qab"])


def test_a_plan_of_choices_refuses_what_mixes_parts_of_pairs(choices):
    (corpus,) = {run.corpus for run in select_kind(FineTune, plan_recipe(str(choices / "own.toml")).runs)}
    assert corpus == "picks"
    with says(ConfigError, "'mixed-first'", "translated"):
        plan_recipe(str(choices / "own.toml"), changes={"measure.0.inputs": "mixed-first"})


@pytest.mark.nightly
@pytest.mark.slow
def test_methods_and_measurements_work_on_choices(choices, tmp_path):
    result = isogloss.run(choices / "own.toml", out=tmp_path / "runs", report=False)
    assert not result.outcome.failed
    scores = result.frame("scores")
    assert set(scores["task"]) == {"multiple-choice"}
    assert set(scores["metric"]) == {"accuracy"}
    assert set(scores["method"]) == {"source-only", "consistency", "x-mixup"}
    assert (len(result.frame("interpolation")), len(result.frame("cka"))) == (4, 5)
    (trained_model,) = (
        record.id
        for record in result.records
        if record.kind == "fine-tune" and record.run["method"]["kind"] == "source-only"
    )
    model = load_model(tmp_path / "runs" / trained_model)
    plain_score = scores[(scores["method"] == "source-only") & (scores["language"] == "qab")]
    (row,) = model.evaluate("picks", ["qab"], data=str(choices))
    assert row["score"] in set(plain_score["score"])
    rows = [
        json.loads(line) for line in (choices / "qab-test.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    items = [{"context": item["premise"], "prompt": "next", "options": item["options"]} for item in rows]
    predictions = model.predict(items)
    assert (
        row["score"]
        == sum(prediction == item["label"] for prediction, item in zip(predictions, rows, strict=True)) / 12
    )
