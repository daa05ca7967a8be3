"""Rows longer than an encoder was pretrained on are warned of; nothing else is."""

from dataclasses import replace
from pathlib import Path

import pytest
from measuring import load, measure_setting

from isogloss.core.runs import Pretrain, Pretrained
from isogloss.diagnostics.gradient_conflict import GradientConflict
from isogloss.diagnostics.setting import Subject
from isogloss.diagnostics.trained_length import warn_of_length
from isogloss.methods.masked_language_modelling import MaskedLanguageModelling
from made_up import TEXT


def pretrained_on(block):
    return Pretrain(text=("x",), languages=("en",), method=MaskedLanguageModelling(block=block))


def looking(run):
    said = []
    subjects = (Subject(run=run, rows=(), folder=Path("x")),)
    return replace(measure_setting([], languages=("en",)), subjects=subjects, warn=said.append), said


@pytest.mark.parametrize(
    ("run", "longest", "warned"),
    [
        (pretrained_on(32), 33, True),
        (pretrained_on(32), 32, False),
        (pretrained_on(128), 33, False),
        (Pretrained(source="shipped"), 500, False),
    ],
)
def test_only_rows_beyond_those_pretrained_on_are_warned_of(run, longest, warned):
    setting, said = looking(run)
    warn_of_length(setting, "gates", "block", longest)
    assert [("rows of up to 33" in one, "Set block = 32" in one) for one in said] == [(True, True)] * warned


@pytest.mark.parametrize(("limit", "warned"), [(None, True), (8, False)])
def test_gradient_conflict_warns_of_lines_it_does_not_cut(bert_folder, limit, warned):
    loaded = load(bert_folder)
    setting, said = looking(pretrained_on(8))
    setting = replace(
        setting, text=lambda _: iter([TEXT] * 8), masked_lm=lambda _: loaded, precision="float32"
    )
    GradientConflict(batch=2, draws=1, **({"limit": limit} if limit else {})).measure(setting)
    assert len(said) == warned
