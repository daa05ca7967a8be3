"""A recipe for parsing, from its plan to records, on the built-in languages."""

import pytest
import torch

import isogloss
from each import each
from isogloss.data.corpora.catalogue import CORPORA
from isogloss.features.built_in_languages import LANGUAGES, BuiltInLanguages
from isogloss.features.parsing.dependency_trees import is_tree
from isogloss.runs.fine_tune import FineTune
from isogloss.tasks import TASKS
from says import check_wording
from tiny import select_kind

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


def test_a_parsing_recipe_is_planned(plan):
    assert [run.task for run in select_kind(FineTune, plan())] == ["parsing", "parsing"]


@pytest.mark.slow
def test_a_parsing_recipe_runs_and_learns(finished_study):
    for record in each(select_kind("fine-tune", finished_study.records)):
        scores = [row["score"] for row in record.rows if row.get("metric") == "las"]
        assert 0 <= min(scores) < max(scores) <= 1


@pytest.mark.slow
def test_scores_and_ends_of_the_path_agree(finished_study):
    rows = [row for record in select_kind("measure", finished_study.records) for row in record.rows]
    models = {
        record.run["method"]["kind"]: record.id for record in select_kind("fine-tune", finished_study.records)
    }
    scores = {(row["model"], row["language"]): row["score"] for row in rows if row.get("main")}
    ends = {(row["alpha"], row["language"]): row["score"] for row in rows if "alpha" in row}
    for language in ("qaa", "qab"):
        assert ends[0.0, language] == scores[models["source-only"], language]
        assert ends[1.0, language] == scores[models["bilingual"], language]


@pytest.mark.slow
def test_a_finished_parser_is_loaded_and_parses(finished_study):
    run = select_kind("fine-tune", finished_study.records)[0].id
    model = isogloss.load_model(finished_study.out / run)
    dev = list(CORPORA["ud"].read(BuiltInLanguages(), "qab", "dev"))[:5]
    trees = model.predict(dev)
    assert all(
        is_tree(tree.heads) and len(tree.heads) == len(sentence.words)
        for tree, sentence in zip(trees, dev, strict=True)
    )
    assert 0 <= model.score(dev) <= 1


@pytest.mark.slow
def test_transformers_loads_the_encoder_of_a_finished_parser(finished_study):
    from transformers import AutoModel

    folder = finished_study.out / select_kind("fine-tune", finished_study.records)[0].id / "model"
    encoder = AutoModel.from_pretrained(folder)
    ours = TASKS["parsing"].head(folder, seed=0).base_model.state_dict()
    theirs = encoder.state_dict()
    assert all(torch.equal(weight, theirs[name]) for name, weight in each(ours.items()))


@pytest.mark.nightly
@pytest.mark.slow
def test_trees_of_the_built_in_languages_are_trees_that_can_be_learned():
    folder = BuiltInLanguages()
    known_labels = set(TASKS["parsing"].labels)
    for language in LANGUAGES:
        for sentence in each(CORPORA["ud"].read(folder, language, "dev")):
            assert is_tree(sentence.heads)
            assert {relation.partition(":")[0] for relation in sentence.relations} <= known_labels
            roots = [
                head for head, name in zip(sentence.heads, sentence.relations, strict=True) if name == "root"
            ]
            assert roots == [0]


def test_trees_cannot_begin_with_a_head_of_zeros(get_refusal):
    with_zeros = get_refusal(RECIPE, grid__optimization__head_weights="zeros")
    check_wording(with_zeros, "head_weights", "parsing")
