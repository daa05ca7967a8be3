"""Every plug-in is in its table, under a name of the documented form, each field with its help text."""

import ast
import inspect
import re
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path

import pytest

import isogloss
from each import each
from isogloss.aligners import ALIGNERS
from isogloss.core.run_parts import Architecture, Optimization
from isogloss.data.corpora.catalogue import CORPORA
from isogloss.diagnostics import DIAGNOSTICS
from isogloss.encoders import FAMILIES
from isogloss.features.pretraining.run import Pretrain
from isogloss.features.translation.planning import TrainTable, TranslateTable
from isogloss.features.translation.run import TrainTranslator, Translate
from isogloss.methods import ADJUSTMENTS, AUXILIARY_LOSSES, METHODS, PRETRAINING, TRANSLATION_TRAINING
from isogloss.recipes.recipe import EncoderTable, GridTable, MeasureTable, MethodTable, PretrainTable, Recipe
from isogloss.recipes.recipe_text import PAPERS, packaged_recipes
from isogloss.runs.fine_tune import FineTune
from isogloss.runs.measure import Measure
from isogloss.runs.pretrained import Pretrained
from isogloss.tasks import ALL_TASKS
from isogloss.translators import TRANSLATORS

ROOT = Path(isogloss.__file__).parent
TABLES = {
    "data": (CORPORA, {"name", "tasks", "read"}),
    "encoders": (FAMILIES, {"sites", "embeddings"}),
    "tasks": (ALL_TASKS, {"encode", "decode", "score"}),
    "methods": ({**METHODS, **PRETRAINING, **ADJUSTMENTS, **TRANSLATION_TRAINING}, {"name", "train"}),
    "diagnostics": (DIAGNOSTICS, {"name", "subject", "measure"}),
    "aligners": (ALIGNERS, {"name", "needs_encoder", "align"}),
    "translators": (TRANSLATORS, {"name", "translate"}),
}
"""A package's table, and what only its plug-ins have."""

NOT_NAMED = {"Concatenated", "DescribedCorpus", "OwnCorpus", "TranslateTable", "Unlinked"}
"""Parts without a table entry: combined or described corpora, a recipe's table, an aligner of sentences."""

PLAIN = {"SourceOnly", "OracleStopping", "TargetOnly"}
"""Methods with the training of their base."""

KEBAB = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
SNAKE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


@pytest.mark.slow
@pytest.mark.parametrize("package", TABLES)
def test_every_plug_in_of_a_package_is_in_its_table(package: str) -> None:
    table, marks = TABLES[package]
    files = [file for folder in (package, "features") for file in (ROOT / folder).rglob("*.py")]
    difference = {name for file in files for name in plug_ins(file, marks)} - NOT_NAMED
    entries = set(kinds(table.values()))
    if package == "methods":
        difference |= PLAIN
    assert difference == {kind.__qualname__ for kind in entries if not entries & set(kind.__mro__[1:])}


def test_every_instance_of_a_task_is_in_the_table() -> None:
    modules = {type(task).__module__ for task in ALL_TASKS.values()}
    result = [
        value
        for module in modules
        for value in vars(import_module(module)).values()
        if type(value) in kinds(ALL_TASKS.values())
    ]
    assert sorted(task.name for task in result) == sorted(ALL_TASKS)


@pytest.mark.parametrize("package", TABLES)
def test_names_of_tables_are_kebab_case_and_their_own(package: str) -> None:
    table, _ = TABLES[package]
    for name, entry in each(table.items()):
        assert KEBAB.fullmatch(name.replace("_", "-") if table is FAMILIES else name), name
        assert entry.name == name


@pytest.mark.parametrize("package", TABLES)
def test_files_and_recipes_are_snake_case(package: str) -> None:
    recipes = [name for name in packaged_recipes() if not name.startswith(PAPERS)]
    for name in each([*recipes, *(file.stem.strip("_") for file in (ROOT / package).glob("*.py"))]):
        assert SNAKE.fullmatch(name), name


@pytest.mark.parametrize(
    "kind",
    [
        *METHODS.values(),
        *PRETRAINING.values(),
        *ADJUSTMENTS.values(),
        *AUXILIARY_LOSSES.values(),
        *TRANSLATION_TRAINING.values(),
        *TRANSLATORS.values(),
        *DIAGNOSTICS.values(),
        *ALIGNERS.values(),
        *(Optimization, Architecture, Pretrain, Pretrained, FineTune, Measure, TrainTranslator, Translate),
        *(
            Recipe,
            EncoderTable,
            PretrainTable,
            GridTable,
            MethodTable,
            MeasureTable,
            TranslateTable,
            TrainTable,
        ),
    ],
    ids=lambda kind: kind.__name__,
)
def test_every_field_has_a_help_text_under_it(kind: type) -> None:
    assert kind.__doc__
    assert not kind.__doc__.startswith(f"{kind.__name__}(")  # dataclass would write that one itself
    plain_difference = {field.name for field in fields(kind)} - set(documented_fields(kind))
    assert not plain_difference


def kinds(entries: Iterable[object]) -> set[type]:
    return {entry if isinstance(entry, type) else type(entry) for entry in entries}


def plug_ins(file: Path, marks: set[str]) -> Iterator[str]:
    """Name the classes of a file, Protocols aside, that have all the marks of a plug-in."""
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        is_protocol = isinstance(node, ast.ClassDef) and "Protocol" in (
            ast.unparse(basis) for basis in node.bases
        )
        if isinstance(node, ast.ClassDef) and not is_protocol and marks <= set(names_in(node)):
            yield node.name


def names_in(node: ast.ClassDef) -> Iterator[str]:
    for part in node.body:
        if isinstance(part, ast.FunctionDef):
            yield part.name
        elif isinstance(part, ast.AnnAssign):
            yield ast.unparse(part.target)
        elif isinstance(part, ast.Assign):
            yield from (ast.unparse(target) for target in part.targets)


def documented_fields(kind: type) -> Iterator[str]:
    """Name the fields with a text right below them, including inherited fields."""
    for own_part in (item for item in kind.__mro__[1:] if is_dataclass(item)):
        yield from documented_fields(own_part)
    (node,) = ast.parse(inspect.cleandoc("\n" + inspect.getsource(kind))).body
    assert isinstance(node, ast.ClassDef)
    for field, text in zip(node.body, node.body[1:], strict=False):
        is_text = isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
        if isinstance(field, ast.AnnAssign) and is_text and str(text.value.value).strip():
            yield ast.unparse(field.target)
