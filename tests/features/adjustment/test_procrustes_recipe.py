"""A recipe with maps of languages: trained as without on the source, nearer to it in the mapped language."""

import re

import pytest

from isogloss.core.errors import ConfigError
from isogloss.data.sources import Sources
from isogloss.features.adjustment.run import Adjust
from isogloss.planning.plan import plan_recipe
from isogloss.using import load_model
from tiny import dotted_changes, tiny

RECIPE = """
title = "Maps"
encoder = "shipped"

[align]
name = "fast-align"

[[adjust]]
name = "procrustes"
bitext = "bitext"
pairs = ["qaa-qad"]
examples = 600
precision = "float32"

[grid]
corpus = "ud"
task = "upos"
source = "qaa"
targets = ["qad"]
seeds = [0]
examples = 64
dev_examples = 8
optimization = { epochs = 1, learning_rate = 5e-4, batch_size = 8, precision = "float32" }

[[grid.method]]
name = "source-only"

[[grid.method]]
name = "bilingual"
encoders = ["procrustes"]

[[measure]]
name = "scores"
examples = 40

[[measure]]
name = "retrieval"
corpus = "bitext"
split = "test"
examples = 200
"""


def rows(finished_study, kind, **fields):
    result = [row for record in finished_study.records for row in record.rows if kind in record.title]
    return [row for row in result if all(row.get(name) == value for name, value in fields.items())]


@pytest.mark.nightly
@pytest.mark.slow
def test_retrieval_rises_with_the_rotation(finished_study):
    for options in ({"similarity": "cosine"}, {"similarity": "CSLS 10"}):
        for centred_value in (True, False):
            adjusted_ids = {record.id for record in finished_study.records if record.kind == "adjust"}
            model_ids = {record.id for record in finished_study.records if record.kind == "fine-tune"}
            result = {
                row["model"] in adjusted_ids: row
                for row in rows(finished_study, "retrieval", centred=centred_value, **options)
                if row["model"] not in model_ids
            }
            for way in ("accuracy_forward", "accuracy_backward"):
                assert result[True][way] > result[False][way]


@pytest.mark.nightly
@pytest.mark.slow
def test_the_source_scores_as_without_maps_to_the_bit(finished_study):
    source, target = (
        [row["score"] for row in rows(finished_study, "scores: source-only", language=language, main=True)]
        for language in ("qaa", "qad")
    )
    assert len(source) == len(target) == 2
    assert source[0] == source[1]
    assert target[0] != target[1]


@pytest.mark.nightly
@pytest.mark.slow
def test_models_that_were_trained_are_used_in_a_language(finished_study):
    (run,) = [record.id for record in finished_study.records if record.title.startswith("bilingual")]
    model = load_model(finished_study.out / run, precision="float32")
    assert model.provenance.encoder == "shipped, procrustes on qaa-qad"
    with pytest.raises(ConfigError, match=r"'qab'.*qaa, qad"):
        model.evaluate("ud", ["qad", "qab"], split="dev")
    for language in ("qaa", "qad"):
        (scored_row,) = rows(finished_study, "scores: bilingual", language=language, main=True)
        dev = Sources().examples("ud", language, "dev", examples=40)
        assert model.score(dev, language=language) == scored_row["score"]


@pytest.mark.nightly
def test_a_target_without_a_map_is_refused_when_the_recipe_is_read(tmp_path):
    recipe = tiny(tmp_path, RECIPE)
    with pytest.raises(ConfigError, match=r"encoder 'procrustes'.*'qab'"):
        plan_recipe(str(recipe), changes=dotted_changes(grid__targets=["qad", "qab"]))
    only = {"name": "source-only", "encoders": ["original"], "targets": ["qab"]}
    mapping = {"name": "source-only", "encoders": ["procrustes"], "targets": ["qad"], "label": "mapped"}
    runs = plan_recipe(
        str(recipe), changes=dotted_changes(grid__targets=["qad", "qab"], grid__method=[only, mapping])
    ).runs
    assert any(isinstance(run, Adjust) for run in runs)


@pytest.mark.nightly
def test_mapped_encoders_are_not_adjusted_further(tmp_path):
    first_item = {"name": "centring", "scale": True, "bitext": "bitext", "pairs": ["qaa-qad"]}
    then = {"name": "cross-lingual-adjustment", "bitext": "bitext", "pairs": ["qaa-qad"], "start": "centring"}
    with pytest.raises(ConfigError, match=re.escape("adjust[1]: start: 'centring' maps each language's")):
        plan_recipe(
            str(tiny(tmp_path, RECIPE)), changes={"adjust": [first_item, then], "grid.method": METHOD}
        )


METHOD = [{"name": "source-only"}]
