"""Encoders that start from others: from files, from one of the recipe, in whatever order they stand."""

from dataclasses import replace
from pathlib import Path

import pytest

from isogloss.core.errors import ConfigError
from isogloss.core.identity import identity
from isogloss.features.adjustment.run import Adjust
from isogloss.features.pretraining.run import Pretrain
from isogloss.planning.plan import plan_recipe
from isogloss.runs.fine_tune import FineTune
from isogloss.runs.pretrained import Pretrained
from isogloss.runs.run import needs
from tiny import select_kind

RECIPE = """
title = "Further"

[[encoder]]
label = "more"
pretrain = { start = "adjusted", text = ["rawtext"], languages = ["qac"], method = { block = 32 } }

[[encoder]]
label = "here"
pretrained = "shipped"

[[adjust]]
name = "contrastive-alignment"
label = "adjusted"
start = "here"
bitext = "bitext"
pairs = ["qaa-qac"]

[[adjust]]
name = "contrastive-alignment"
label = "adjusted again"
start = "more"
bitext = "bitext"
pairs = ["qaa-qac"]

[grid]
corpus = "ud"
task = "upos"
source = "qaa"
targets = ["qac"]
seeds = [0]
method = [{ name = "source-only" }]
"""


NEW = {"text": ["rawtext"], "languages": ["qaa"]}


def test_an_encoder_starts_from_an_adjusted_one_and_is_adjusted_again(plan):
    runs = plan()
    (more,) = select_kind(Pretrain, runs)
    first_run, again = select_kind(Adjust, runs)
    assert (more.start, again.encoder, first_run.encoder.source) == (first_run, more, "shipped")
    assert more.architecture is None and more.original is more and again.original is more
    assert again.root == first_run.encoder and isinstance(first_run.encoder, Pretrained)
    assert runs.index(first_run) < runs.index(more) < runs.index(again) and first_run in needs(more)
    assert more.label.endswith(f", pretrained further on qac ({identity(more)[:6]})")
    assert len(select_kind(FineTune, runs)) == 4


def test_a_start_that_exists_is_named_by_its_files(plan):
    (more, *_) = select_kind(Pretrain, plan(**{"encoder.0.pretrain.start": "shipped"}))
    assert isinstance(more.start, Pretrained) and more.start.data and not needs(more)


@pytest.mark.parametrize("seeds", [[0, 1], [1, 2]])
def test_an_encoder_goes_on_from_that_of_its_own_seed(plan, seeds):
    new_value = {"text": ["rawtext"], "languages": ["qaa"], "seed": [0, 1, 2]}
    changes = {"encoder.1": {"label": "here", "pretrain": new_value}, "encoder.0.pretrain.start": "here"}
    runs = plan(**changes, **{"encoder.0.pretrain.seed": seeds, "adjust": [], "grid.seeds": seeds})
    further = [run for run in select_kind(Pretrain, runs) if run.start]
    assert [(run.seed, run.start.seed) for run in further] == [(seed, seed) for seed in seeds]
    tuned_seeds = [(run.seed, run.encoder.seed) for run in select_kind(FineTune, runs) if run.encoder.start]
    assert tuned_seeds == [(seed, seed) for seed in seeds]


def test_a_shared_architecture_is_none_of_an_encoder_that_has_a_start(plan):
    runs = plan(pretrain={"architecture": {"layers": 2}, "method": {"steps": 3}})
    (more,) = select_kind(Pretrain, runs)
    assert more.architecture is None and more.method.training.steps == 3


def test_replayed_text_is_read_from_its_own_corpora_or_those_of_the_encoder(plan):
    replay = {"languages": ["qaa", "qab"], "share": 0.2}
    (run,) = select_kind(Pretrain, plan(**{"encoder.0.pretrain.replay": replay}))
    assert run.languages_read == ("qac", "qaa", "qab") and run.corpora("qab") == ("rawtext",)
    other_item = replace(run, replay=replace(run.replay, text=("bible",)))
    assert other_item.corpora("qab") == ("bible",) and other_item.corpora("qac") == ("rawtext",)
    (plain_run,) = select_kind(Pretrain, plan())
    assert len({identity(run) for run in (run, other_item, plain_run)}) == 3 and run.data != plain_run.data


def test_bitext_is_aligned_for_embeddings_from_translations(plan):
    new_value = {"size": 50, "embeddings": "translations", "bitext": "bitext", "pairs": ["qaa-qac"]}
    runs = plan(**{"encoder.0.pretrain.vocabulary": new_value})
    (more,) = select_kind(Pretrain, runs)
    (aligned_words,) = more.aligned
    assert (aligned_words.languages, aligned_words.bitext) == (
        "qaa-qac",
        "bitext",
    ) and aligned_words in needs(more)
    assert more.start.aligned == (aligned_words,)  # The adjustment before reads the same.


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"encoder.0.pretrain.architecture": {"layers": 2}},
            r"encoder\[0\].pretrain.architecture: .*'adjusted'",
        ),
        ({"encoder.0.pretrain.start": "adjusted again"}, "'adjusted again'.*encoder"),
        ({"adjust.0.name": "centring"}, r"encoder\[0\].pretrain.start: .*'adjusted'.*language's"),
        ({"encoder.0.pretrain.method.block": 300}, r"(?=.*300)(?=.*256)"),
        ({"encoder.0.pretrain.start": "adjuster"}, r"'adjuster'.*'adjusted'\?"),
        (
            {"encoder.0.pretrain": {**NEW, "vocabulary": {"size": 5}}},
            "vocabulary: .*encoder",
        ),
        (
            {"encoder.0.pretrain.vocabulary": {"size": 5, "embeddings": "translations"}},
            "'translations', bitext ''",
        ),
        (
            {"encoder.0.pretrain.vocabulary": {"size": 5, "embeddings": "translations",
             "bitext": "bitext", "pairs": ["qac-qaa"]}},
            "pairs: .*'qac-qaa'",
        ),
        ({"encoder.0.pretrain.vocabulary": {"size": 5, "embeddings": "mean"}}, "embeddings: .*'mean'"),
        ({"encoder.0.pretrain.vocabulary": {"siz": 5}}, "siz: .*'size'"),
        (
            {"encoder.0.pretrain.replay": {"languages": ["qaa"], "shares": 1.0}},
            "replay.shares: .*'share'",
        ),
        ({"encoder.0.pretrain.replay": {"languages": ["qaa"], "share": 2.0}}, "share: .*2.0"),
        ({"encoder.0.pretrain.replay": {"languages": ["qac"]}}, "replay.languages: .*'qac'"),
        (
            {"encoder.0.pretrain": {**NEW, "replay": {"languages": ["qac"]}}},
            "replay: .*''",
        ),
        (
            {"encoder.0.pretrain.replay": {"languages": ["qaa"]},
             "encoder.0.pretrain.modules": {"kind": "adapter"}},
            "replay: .*qaa.*languages.*fallback",
        ),
        (
            {"encoder.0.pretrain.method.name": "meta-learning"},
            "encoder",
        ),
        ({"adjust.0.examples": [20, 40], "encoder.0.pretrain.start": "adjusted 20", "adjust.1.start": "hare"},
         "encoder.*'hare'"),
    ],
)  # fmt: skip
def test_mistakes_are_found_before_anything_is_made(plan, changes, message):
    with pytest.raises(ConfigError, match=message):
        plan(**changes)


def test_a_run_has_the_architecture_of_a_new_encoder_or_a_start(plan):
    (more,) = select_kind(Pretrain, plan())
    with pytest.raises(ConfigError, match="either"):
        Pretrain(text=more.text, languages=more.languages, method=more.method, start=more.start)


@pytest.mark.parametrize(("name", "starts"), [("continue_pretraining", 3), ("extend_vocabulary", 4)])
def test_the_examples_train_the_shipped_encoder_further(name, starts):
    runs = plan_recipe(str(Path(__file__).parents[2] / "examples" / f"{name}.toml"), scale="small").runs
    result = select_kind(Pretrain, runs)
    assert [run.start.source for run in result] == ["shipped"] * starts
    assert {run.method.training.steps for run in result} == {20}
