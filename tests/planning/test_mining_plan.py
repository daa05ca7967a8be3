"""Mining in a recipe, for every encoder and each model's encoder, on comparable text of dev and of test."""

import shutil
from pathlib import Path

import pytest

from each import each
from isogloss.core.errors import ConfigError, DataError
from isogloss.core.identity import identity
from isogloss.runs.measure import Measure

RECIPE = """
title = "Mining"
encoder = "shipped"

[grid]
corpus = "wikiann"
source = "qaa"
targets = ["qab"]
seeds = [0]

[[grid.method]]
name = "source-only"

[[measure]]
name = "mining"
corpus = "bucc2018"
split = "test"
languages = ["qaa", "qab", "qad"]
"""


def measurements(runs):
    return each(run for run in runs if isinstance(run, Measure))


def test_an_encoder_and_each_model_s_are_measured_on_dev_and_test(plan):
    result = measurements(plan())
    assert [type(item.subjects[0]).__name__ for item in result] == ["Pretrained", "FineTune"]
    for first_item in result:
        read = [(split.language, split.split) for split in first_item.splits_read]
        assert read == [(pair, split) for split in ("dev", "test") for pair in ("qaa-qab", "qaa-qad")]
    single_measurement, _ = measurements(plan(RECIPE.replace('"test"', '"dev"')))
    assert [split.split for split in single_measurement.splits_read] == ["dev", "dev"]


def test_what_is_in_dev_is_part_of_a_measurement_on_test(plan, tmp_path):
    data = tmp_path / "data"
    shutil.copytree(Path(__file__).parents[1] / "data" / "fixtures" / "bucc2018", data / "bucc2018")
    place = data / "bucc2018" / "de-en"
    for file in list(place.iterdir()):
        shutil.copy(file, place / file.name.replace("sample", "training"))
    text = RECIPE.replace('["qaa", "qab", "qad"]', '["en", "de"]')

    def ids():
        return [identity(measurement) for measurement in measurements(plan(text, data=data))]

    ids_before = ids()
    (place / "de-en.sample.gold").write_text("de-000000001\ten-000000002\n")
    assert not set(ids_before) & set(ids())
    (place / "de-en.sample.gold").unlink()
    with pytest.raises(DataError, match=r"bucc2018/de-en/de-en.sample.gold"):
        ids()


@pytest.mark.parametrize(
    ("old_name", "new_name", "message"),
    [
        (
            'corpus = "bucc2018"\n',
            "",
            "measure.0.: .*mining",
        ),
        ('"bucc2018"', '"bitext"', "'bitext'.*bucc2018"),
        ('name = "mining"', 'name = "retrieval"', "'bucc2018'"),
        ('split = "test"', "examples = 9", "examples"),
    ],
)
def test_what_does_not_fit_is_said(plan, old_name, new_name, message):
    with pytest.raises(ConfigError, match=message):
        plan(RECIPE.replace(old_name, new_name))
