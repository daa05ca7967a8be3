"""Rows longer than an encoder was pretrained on are warned of. Nothing else is."""

from dataclasses import replace
from pathlib import Path

import pytest

from isogloss.diagnostics.setting import Subject
from isogloss.features.gradient_conflict.diagnostic import GradientConflict
from made_up import TEXT
from measuring import load, measure_setting


def looking(trained_length):
    message = []
    subjects = (Subject(id="x", rows=(), folder=Path("x"), trained_length=trained_length),)
    return replace(measure_setting([], languages=("en",)), subjects=subjects, warn=message.append), message


@pytest.mark.parametrize(
    ("trained_model", "longest", "warned_value"),
    [
        (32, 33, True),
        (32, 32, False),
        (128, 33, False),
        (None, 500, False),
    ],
)
def test_only_rows_beyond_those_pretrained_on_are_warned_of(trained_model, longest, warned_value):
    setting, message = looking(trained_model)
    setting.warn_of_length("gates", "block", longest)
    assert [("rows of up to 33" in item, "Set block = 32" in item) for item in message] == [
        (True, True)
    ] * warned_value


@pytest.mark.parametrize(("limit", "warned_value"), [(None, True), (8, False)])
def test_gradient_conflict_warns_of_lines_it_does_not_cut(bert_folder, limit, warned_value):
    loaded_data = load(bert_folder)
    setting, message = looking(8)
    setting = replace(
        setting, text=lambda _: iter([TEXT] * 8), masked_lm=lambda _: loaded_data, precision="float32"
    )
    GradientConflict(batch=2, draws=1, **({"limit": limit} if limit else {})).measure(setting)
    assert len(message) == warned_value
