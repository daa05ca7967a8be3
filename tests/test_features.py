"""Features add entries to tables. No other module names a feature, and each can be removed."""

import ast
import os
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from importlib import import_module
from itertools import product
from pathlib import Path

import pytest

import isogloss
from each import each
from isogloss.aligners import ALIGNERS
from isogloss.cli.app import VERBS
from isogloss.core.registry import DECLARATION, FEATURES, Registry, feature_entries
from isogloss.core.rows import ROWS
from isogloss.data.corpora.catalogue import CORPORA
from isogloss.data.corpora.labelled import CORPUS_FILES
from isogloss.data.corpora.own import DESCRIBERS
from isogloss.data.corpus import Split
from isogloss.data.data_sources import CORPUS_PROVIDERS, DATA_SOURCES
from isogloss.data.examples import SentencePair
from isogloss.data.formats.corpus_kinds import KINDS
from isogloss.data.formats.formats import FORMATS, MARKS
from isogloss.data.generated import GENERATED
from isogloss.diagnostics import DIAGNOSTICS
from isogloss.encoders.added.differences import DIFFERENCE_FORMATS
from isogloss.engine.engines import ENGINES
from isogloss.methods import ADJUSTMENTS, AUXILIARY_LOSSES, METHODS, PEFT, PRETRAINING, TRANSLATION_TRAINING
from isogloss.planning.recipe_tables import RECIPE_TABLES
from isogloss.reports.next_steps import NEXT_STEPS
from isogloss.reports.opening_figure import OPENING_PATHS
from isogloss.reports.report import CLAIMS
from isogloss.reports.sections import PARTS
from isogloss.runs.trackers import TRACKERS
from isogloss.store import STORES
from isogloss.tasks import TASKS
from isogloss.training.text_training import TEXT_TRAINING
from isogloss.translators import TRANSLATORS
from isogloss.using.extensions import ACTIONS, PREDICTORS
from isogloss.using.formats import INPUT_FORMATS
from isogloss.using.kinds import FORMS

ROOT = Path(isogloss.__file__).parent
TABLES = {
    "adjustments": ADJUSTMENTS,
    "aligners": ALIGNERS,
    "auxiliary-losses": AUXILIARY_LOSSES,
    "claims": CLAIMS,
    "corpora": CORPORA,
    "corpus-kinds": KINDS,
    "corpus-descriptions": DESCRIBERS,
    "corpus-providers": CORPUS_PROVIDERS,
    "data-sources": DATA_SOURCES,
    "diagnostics": DIAGNOSTICS,
    "engines": ENGINES,
    "formats": FORMATS,
    "functions": isogloss.__all__,
    "generated-languages": GENERATED,
    "input-formats": INPUT_FORMATS,
    "input-forms": FORMS,
    "methods": METHODS,
    "model-actions": ACTIONS,
    "next-steps": NEXT_STEPS,
    "corpus-files": CORPUS_FILES,
    "opening-figures": OPENING_PATHS,
    "peft": PEFT,
    "predictors": PREDICTORS,
    "pretraining": PRETRAINING,
    "recipe-tables": RECIPE_TABLES,
    "report-parts": PARTS,
    "rows": ROWS,
    "span-marks": MARKS,
    "stores": STORES,
    "tasks": TASKS,
    "text-training": TEXT_TRAINING,
    "trackers": TRACKERS,
    "translation-training": TRANSLATION_TRAINING,
    "translators": TRANSLATORS,
    "verbs": VERBS,
    "weight-differences": DIFFERENCE_FORMATS,
}
FOLDERS = sorted(path.parent for path in FEATURES.glob(f"*/{DECLARATION}"))


def test_every_folder_has_a_declaration_and_a_page_of_its_purpose() -> None:
    folders = [path for path in FEATURES.iterdir() if path.is_dir() and path.name != "__pycache__"]
    assert sorted(folders) == FOLDERS
    for folder in each(FOLDERS):
        assert ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8")))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_entries_are_of_known_groups_and_inside_their_folder(folder: Path) -> None:
    entries = tomllib.loads((folder / DECLARATION).read_text(encoding="utf-8"))
    assert entries and set(entries) <= set(TABLES)
    for place in each(place for group in entries.values() for place in group.values()):
        module, _, attribute = place.partition(":")
        assert module.startswith(f"isogloss.features.{folder.name}.")
        assert hasattr(import_module(module), attribute)


def test_each_table_has_the_entries_of_features() -> None:
    for name, table in each(TABLES.items()):
        entries = feature_entries(name)
        assert entries and set(entries) <= set(table)


def test_two_features_do_not_add_the_same_name() -> None:
    names = Counter(
        (group, name)
        for folder in FOLDERS
        for group, entries in tomllib.loads((folder / DECLARATION).read_text(encoding="utf-8")).items()
        for name in entries
    )
    assert names and max(names.values()) == 1


def test_a_table_lists_entries_of_features_and_refuses_none_of_its_own() -> None:
    table: Registry[object] = Registry({"own": "isogloss.core:VERSION"}, "claims")
    assert list(table)[: 1 + len(feature_entries("claims"))] == ["own", *feature_entries("claims")]
    assert table["own"] == isogloss.__version__


def test_no_module_outside_names_a_feature() -> None:
    """The package itself imports public functions for type checkers."""
    found_names = {
        (path.relative_to(ROOT).as_posix(), name)
        for path in ROOT.rglob("*.py")
        if FEATURES not in path.parents and path != ROOT / "__init__.py"
        for name in list_names(path)
        if name.startswith("isogloss.features")
    }
    assert not found_names


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_feature_names_no_other(folder: Path) -> None:
    other_folders = [other_folder for other_folder in FOLDERS if other_folder != folder]
    prefixes = tuple(f"isogloss.features.{other_folder.name}." for other_folder in other_folders)
    names = [name for path in folder.rglob("*.py") for name in list_names(path)]
    assert names
    assert not [name for name in names if name.startswith(prefixes)]


def list_names(path: Path) -> list[str]:
    """List the modules that a file imports and its texts, which may name a module."""
    names = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.append(node.value)
    return names


MISSING = (
    *("mining", "cka", "interpolation", "mine", "path", "average", "align", "isogloss.align"),
    *("hub", "descriptions", "export", "--track", "translate", "pretrain", "adjust"),
)
"""Names of diagnostics, functions, tables of a recipe, sources, actions and options that features add."""

RECIPE = """
title = "Inference"
encoder = "shipped"

[grid]
corpus = "xnli"
source = "en"
targets = ["sw"]
method = [{ name = "source-only" }, { name = "bilingual" }]

[[measure]]
name = "scores"
"""

WITHOUT_FEATURES = """
import sys
from pathlib import Path
import isogloss
from isogloss.core.errors import ConfigError
from isogloss.data.corpora.own import register_corpus
from isogloss.data.data_sources import data_source
from isogloss.functional.bitext import link_words
from isogloss.methods import AUXILIARY_LOSSES, PRETRAINING
from isogloss.planning.plan import plan_recipe
from isogloss.planning.recipe_tables import find_planner
from isogloss.reports.report import all_claims
from isogloss.runs.trackers import check_trackers
from isogloss.using.extensions import find_action

ADJUST = {"name": "centring", "bitext": "bible", "pairs": ["en-sw"]}
recipe = sys.argv[1]
data = f"{Path(recipe).parent}/data"
plan = plan_recipe(recipe, out=f"{recipe}-runs", data=data)
assert "Measure" in {type(run).__name__ for run in plan.runs}
assert not {"multi-task", "r3f"} & set(AUXILIARY_LOSSES) and "meta-learning" not in PRETRAINING
assert all_claims() == ([], [])
for name in ("mining", "cka", "interpolation"):
    try:
        plan_recipe(recipe, data=data, changes={"measure": [{"name": name}]})
    except ConfigError as error:
        print(error)
for name in ("mine", "path", "average"):
    try:
        getattr(isogloss, name)
    except AttributeError as error:
        print(error)
for find in (
    lambda: find_planner("align"),
    lambda: link_words(["a b"], ["c d"]),
    lambda: data_source("hub"),
    lambda: register_corpus("own.toml"),
    lambda: find_action("export"),
    lambda: check_trackers(["mlflow"]),
    lambda: plan_recipe(recipe, changes={"translate": {"name": "seq2seq"}}),
    lambda: plan_recipe(recipe, changes={"encoder": {"pretrain": {"text": ["wiki"], "languages": ["en"]}}}),
    lambda: plan_recipe(recipe, changes={"adjust": [ADJUST]}),
):
    try:
        find()
    except ConfigError as error:
        print(error)
"""


def write_study(folder: Path) -> None:
    """Write a corpus of English and Swahili pairs below ``data``, and a recipe that reads it."""
    corpus = CORPORA["xnli"]
    splits: tuple[Split, ...] = ("train", "dev", "test")
    for language, split in product(("en", "sw"), splits):
        examples = [
            SentencePair(id=str(number), first=f"text {number}", second="a text", label=label)
            for number, label in enumerate(["entailment", "neutral", "contradiction"] * 6)
        ]
        path = folder / "data" / corpus.path(language, split)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in corpus.write(examples, language)), encoding="utf-8")
    (folder / "recipe.toml").write_text(RECIPE, encoding="utf-8")


@pytest.mark.slow
def test_without_any_feature_the_rest_works_and_errors_name_what_is_missing(tmp_path) -> None:
    source = tmp_path / "src" / "isogloss"
    shutil.copytree(ROOT, source)
    for folder in (source / "features").glob("*/"):
        shutil.rmtree(folder)
    write_study(tmp_path)
    process = subprocess.run(
        [sys.executable, "-c", WITHOUT_FEATURES, str(tmp_path / "recipe.toml")],
        env=os.environ | {"PYTHONPATH": str(source.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    lines = process.stdout.splitlines()
    for name, line in zip(MISSING, lines, strict=True):
        assert name in line


@pytest.mark.slow
def test_a_report_without_the_claims_lacks_only_them(study_folder, tmp_path) -> None:
    without_claims = tmp_path / "src" / "isogloss"
    shutil.copytree(ROOT, without_claims)
    shutil.rmtree(without_claims / "features" / "claims")
    tables = {}
    for name, source in (("with", ROOT.parent), ("without", without_claims.parent)):
        runs = shutil.copytree(study_folder("transfer"), tmp_path / name)
        subprocess.run(
            [sys.executable, "-m", "isogloss", "report", str(runs)],
            env=os.environ | {"PYTHONPATH": str(source)},
            check=True,
            capture_output=True,
        )
        tables[name] = {
            path.name: path.read_bytes() for path in (runs / "tables").iterdir() if path.name[0] != "."
        }
    lost_tables = set(tables["with"]) - set(tables["without"])
    assert lost_tables and all(name.startswith(("claim", "checks")) for name in lost_tables)
    assert all(tables["with"][name] == content for name, content in tables["without"].items())


WITHOUT_ONE = """
import sys
import isogloss
from isogloss.cli.app import app
from isogloss.cli.lists import LISTS
from isogloss.core.registry import feature_entries
from isogloss.planning.plan import plan_recipe
from isogloss.reports.sections import SECTIONS
from isogloss.reports.next_steps import NEXT_STEPS
from pathlib import Path

data = f"{Path(sys.argv[1]).parent}/data"
plan = plan_recipe(sys.argv[1], out=f"{sys.argv[1]}-runs", data=data)
assert {type(run).__name__ for run in plan.runs} == {"FineTune", "Measure"}
for name, make in LISTS.items():
    if name not in sys.argv[2:]:
        assert make(Path(sys.argv[1]).parent)
assert all(section.id for section in SECTIONS)
for name in feature_entries("functions"):
    getattr(isogloss, name)
"""

EMPTY_LISTS = {"built_in_languages": ["languages"]}
"""Lists that have entries of one feature only."""


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_without_one_feature_all_others_work(folder: Path, tmp_path) -> None:
    """Lists, commands, sections, functions and plans exist, and load what the other features declare."""
    source = tmp_path / "src" / "isogloss"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.rmtree(source / "features" / folder.name)
    write_study(tmp_path)
    process = subprocess.run(
        [sys.executable, "-c", WITHOUT_ONE, str(tmp_path / "recipe.toml"), *EMPTY_LISTS.get(folder.name, ())],
        env=os.environ | {"PYTHONPATH": str(source.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr


MOST_OF_CORE = 0.5
"""Largest share of all statements outside the features (decision 73)."""


def test_the_core_is_a_bounded_share_of_all_statements() -> None:
    counts = Counter(FEATURES in path.parents for path in ROOT.rglob("*.py") for _ in list_statements(path))
    assert counts[True] > 10_000
    assert counts[False] / counts.total() <= MOST_OF_CORE


def list_statements(path: Path) -> list[ast.stmt]:
    """List the statements of a file without its docstrings."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return [node for node in nodes if isinstance(node, ast.stmt) and not is_docstring(node)]


def is_docstring(node: ast.stmt) -> bool:
    """Return whether a statement is a text."""
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)
