"""A recipe for parsing, from its plan to records, on the built-in languages."""

import pytest
import torch

import isogloss
from isogloss.core.runs import FineTune
from isogloss.data import CORPORA
from isogloss.data.sources import BuiltInLanguages
from isogloss.experiments.running import plan_recipe
from isogloss.tasks import TASKS
from isogloss.tasks.spanning_tree import is_tree
from tiny import tiny

RECIPE = """
title = "Tiny parser"
encoder = "shipped"

[grid]
corpus = "ud"
task = "parsing"
source = "qaa"
targets = ["qab"]
seeds = [0]
examples = 24
dev_examples = 8
optimization = { epochs = 2, learning_rate = 5e-4, batch_size = 8 }

[[grid.method]]
name = "source-only"

[[grid.method]]
name = "bilingual"

[[measure]]
name = "scores"
examples = 8

[[measure]]
name = "interpolation"
examples = 8
alphas = [0.0, 1.0]
"""


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parsing")
    return isogloss.run(tiny(folder, RECIPE), out=folder / "runs", jobs=1)


def records(result, kind):
    return [record for record in result.records if record.kind == kind]


def test_a_parsing_recipe_is_planned(tmp_path):
    runs = plan_recipe(str(tiny(tmp_path, RECIPE)), out=tmp_path / "runs").runs
    assert [run.task for run in runs if isinstance(run, FineTune)] == ["parsing", "parsing"]


def test_a_parsing_recipe_runs_and_learns(result):
    assert not result.outcome.failed
    for record in records(result, "fine-tune"):
        scores = [row["score"] for row in record.rows if row.get("metric") == "las"]
        assert 0 <= min(scores) < max(scores) <= 1


def test_scores_and_ends_of_the_path_agree(result):
    rows = [row for record in records(result, "measure") for row in record.rows]
    models = {record.run["method"]["kind"]: record.id for record in records(result, "fine-tune")}
    scores = {(row["model"], row["language"]): row["score"] for row in rows if row.get("main")}
    ends = {(row["alpha"], row["language"]): row["score"] for row in rows if "alpha" in row}
    for language in ("qaa", "qab"):
        assert ends[0.0, language] == scores[models["source-only"], language]
        assert ends[1.0, language] == scores[models["bilingual"], language]


def test_a_finished_parser_is_loaded_and_parses(result):
    run = records(result, "fine-tune")[0].id
    model = isogloss.load_model(result.out / run)
    dev = list(CORPORA["ud"].read(BuiltInLanguages(), "qab", "dev"))[:5]
    trees = model.predict(dev)
    assert all(
        is_tree(tree.heads) and len(tree.heads) == len(one.words)
        for tree, one in zip(trees, dev, strict=True)
    )
    assert 0 <= model.score(dev) <= 1


def test_transformers_loads_the_encoder_of_a_finished_parser(result):
    from transformers import AutoModel

    folder = result.out / records(result, "fine-tune")[0].id / "model"
    encoder = AutoModel.from_pretrained(folder)
    ours = TASKS["parsing"].head(folder, seed=0).base_model.state_dict()
    theirs = encoder.state_dict()
    assert all(torch.equal(weight, theirs[name]) for name, weight in ours.items())


def test_trees_of_the_built_in_languages_are_trees_that_can_be_learned():
    folder = BuiltInLanguages()
    known = set(TASKS["parsing"].labels)
    for language in folder.maker.languages:
        for sentence in CORPORA["ud"].read(folder, language, "dev"):
            assert is_tree(sentence.heads)
            assert {relation.partition(":")[0] for relation in sentence.relations} <= known
            roots = [
                head for head, name in zip(sentence.heads, sentence.relations, strict=True) if name == "root"
            ]
            assert roots == [0]
