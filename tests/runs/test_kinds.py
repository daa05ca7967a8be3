"""Kinds of runs are self-contained: few places check the kind of a run, and bases hide none of its fields."""

import ast
from dataclasses import fields
from pathlib import Path

import pytest

import isogloss
from isogloss.features.adjustment.run import Adjust
from isogloss.features.alignment.run import Align
from isogloss.features.pretraining.run import Pretrain
from isogloss.features.translation.run import TrainTranslator, Translate
from isogloss.runs.fine_tune import FineTune
from isogloss.runs.measure import Measure
from isogloss.runs.pretrained import Pretrained
from isogloss.runs.run import Encoder, LinkedBitext, Run, TranslatedSplit

KINDS = (Adjust, Align, FineTune, Measure, Pretrain, Pretrained, TrainTranslator, Translate)
MAX_CHECKS = 6
"""Calls of ``isinstance`` with a kind of run in all of the package."""

READS_RUNS = "stored_plans.py"
"""Reads runs from a file of others, so it checks what they are."""


def kind_checks(source: str) -> int:
    names = {kind.__name__ for kind in (*KINDS, Encoder, Run)} | {"TranslationModel"}
    return sum(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "isinstance"
        and bool({name.id for name in ast.walk(node.args[1]) if isinstance(name, ast.Name)} & names)
        for node in ast.walk(ast.parse(source))
    )


def test_few_places_ask_a_run_which_kind_it_is():
    files = Path(isogloss.__file__).parent.rglob("*.py")
    checks = {file.name: kind_checks(file.read_text(encoding="utf-8")) for file in files}
    assert checks.pop(READS_RUNS)
    assert sum(checks.values()) <= MAX_CHECKS, {name: count for name, count in checks.items() if count}


def test_the_count_sees_every_form_of_check():
    assert kind_checks("isinstance(run, FineTune)") == kind_checks("isinstance(run, Adjust | Align)") == 1
    assert kind_checks("isinstance(run, str)") == 0


def test_all_kinds_are_here():
    bases = (Run, Encoder, LinkedBitext, TranslatedSplit)
    inheriting = {kind for base in bases for kind in base.__subclasses__()} - set(bases)
    assert {kind for kind in inheriting if kind.__module__.startswith("isogloss.")} == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_no_base_has_an_attribute_named_as_a_field(kind):
    """A dataclass takes an inherited attribute for the default of its field."""
    inherited_names = {name for base in kind.__mro__[1:] for name in vars(base)}
    assert not {field.name for field in fields(kind)} & inherited_names


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_but_one_that_exists_is_made_by_itself(kind):
    assert ("make" in vars(kind)) != kind.exists
