"""Recipes: as tables and values of Python, extended, copied, described for editors, and begun."""

import json
import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import isogloss
from each import each
from isogloss.cli.recipe_verbs import schema_of
from isogloss.core.errors import ConfigError
from isogloss.core.identity import identity
from isogloss.core.run_parts import Conflict
from isogloss.diagnostics.scores import Scores
from isogloss.methods.plain import Bilingual, SourceOnly
from isogloss.planning.plan import plan_recipe
from isogloss.recipes.recipe import EncoderTable, GridTable
from isogloss.recipes.recipe_text import as_table, merge_tables, packaged_recipes, recipe_text, to_toml
from tiny import TINY, body, tiny

ROOT = Path(__file__).parents[2]
RECIPES = sorted((ROOT / "examples").glob("*.toml"))
SHORT = TINY.partition('[[measure]]\nname = "transfer-gap"')[0]


def planned_ids(recipe, folder):
    return [identity(run) for run in plan_recipe(recipe, out=folder / "runs").runs]


KEYS = st.text(max_size=5).filter(lambda key: key.isprintable())
VALUES = st.recursive(
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
)


@pytest.mark.slow
@given(st.dictionaries(KEYS, VALUES, max_size=4))
def test_what_is_written_as_toml_reads_back_the_same(table):
    assert tomllib.loads(to_toml(table)) == table


def test_tables_and_values_of_python_plan_as_the_file_does(tmp_path):
    expected = planned_ids(str(tiny(tmp_path, SHORT)), tmp_path)
    tables = tomllib.loads(SHORT)
    grid = {**tables["grid"], "method": (SourceOnly(), {"name": "bilingual", "targets": ["qab"]})}
    typed_recipe = isogloss.Recipe(
        title="Tiny", grid=GridTable(**grid), measure=({**as_table(Scores()), "examples": 8},)
    )
    assert planned_ids(tables, tmp_path) == planned_ids(typed_recipe, tmp_path) == expected


def test_values_become_tables_of_what_they_say(tmp_path):
    assert as_table(SourceOnly()) == {"name": "source-only"}
    watching = Bilingual(conflict=Conflict(every=5, batch=8))
    assert as_table(watching) == {"name": "bilingual", "conflict": {"every": 5, "batch": 8}}
    assert as_table(EncoderTable(pretrained="shipped", label="x")) == {"pretrained": "shipped", "label": "x"}
    with pytest.raises(ConfigError, match=r"recipe: grid.seeds: .*\{0\}"):
        recipe_text({"title": "x", "grid": {"seeds": {0}}})
    with pytest.raises(ConfigError, match=r"recipe.*out="):
        isogloss.run(body())
    with pytest.raises(ConfigError, match=r"recipe: grid.sorce: .*'source'\?"):
        isogloss.run(body() | {"grid": body()["grid"] | {"sorce": "qaa"}}, out=tmp_path)


def recipe_file(folder, text, name="own.toml"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_recipe_that_extends_another_is_the_two_merged(tmp_path):
    tiny(tmp_path, SHORT)
    own_file = recipe_file(
        tmp_path, 'extends = "tiny.toml"\ntitle = "Own"\n[grid]\nseeds = [7]\noptimization = { epochs = 2 }\n'
    )
    whole_text = SHORT.replace('"Tiny"', '"Own"').replace("[0, 1]", "[7]").replace("epochs = 1", "epochs = 2")
    assert planned_ids(str(own_file), tmp_path) == planned_ids(
        str(recipe_file(tmp_path, whole_text, "whole.toml")), tmp_path
    )
    assert planned_ids({"extends": str(own_file)}, tmp_path) == planned_ids(str(own_file), tmp_path)
    text, where = recipe_text(str(own_file))
    assert (tomllib.loads(text), where) == (tomllib.loads(whole_text), "own.toml")


def test_tables_are_merged_field_by_field_and_lists_replaced():
    base = {"a": 1, "t": {"x": [1, 2], "y": {"z": 1, "w": 2}}, "m": [{"name": "one"}, {"name": "two"}]}
    changes = {"t": {"x": [3], "y": {"z": 5}}, "m": [{"name": "three"}], "b": 2}
    assert merge_tables(base, changes) == {
        **{"a": 1, "b": 2, "m": [{"name": "three"}]},
        "t": {"x": [3], "y": {"z": 5, "w": 2}},
    }


def test_a_packaged_recipe_is_extended_by_its_name(tmp_path):
    own_file = recipe_file(tmp_path, 'extends = "quickstart"\n[grid]\nseeds = [5]\n')
    expected = tomllib.loads(packaged_recipes()["quickstart"].read_text(encoding="utf-8"))
    expected["grid"]["seeds"] = [5]
    assert tomllib.loads(recipe_text(str(own_file))[0]) == expected


@pytest.mark.parametrize(
    ("text", "excerpt"),
    [
        ('extends = "own.toml"', "own.toml: extends:"),
        ('extends = "other.toml"', "extends:"),
        (
            'extends = "quikstart"',
            "own.toml: extends: run: no recipe 'quikstart'. Did you mean 'quickstart'?",
        ),
        ('extends = "ohter.toml"', "ohter.toml:"),
        ('extends = ["quickstart"]', "own.toml: extends:"),
        ('extends = "broken.toml"', "broken.toml: invalid TOML"),
        ('extends = "deep.toml"', "deep.toml:"),
    ],
)
def test_what_cannot_be_extended_is_refused(tmp_path, text, excerpt):
    recipe_file(tmp_path, 'extends = "own.toml"', "other.toml")
    recipe_file(tmp_path, "title = ", "broken.toml")
    recipe_file(tmp_path, f"title = {'[' * 5000}", "deep.toml")
    with pytest.raises(ConfigError) as error:
        recipe_text(str(recipe_file(tmp_path, text)))
    assert excerpt in str(error.value)


@pytest.mark.slow
def test_packaged_recipes_are_listed_and_copied_whole(command, tmp_path):
    assert {line["recipe"] for line in command("recipes", "--json").lines} == set(packaged_recipes())
    output = command("recipes", "copy", "quickstart", "--to", tmp_path / "mine.toml")
    assert output.out == f"{tmp_path / 'mine.toml'}\n"
    assert (tmp_path / "mine.toml").read_text(encoding="utf-8") == packaged_recipes()["quickstart"].read_text(
        encoding="utf-8"
    )
    again = command("recipes", "copy", "quickstart", "--to", tmp_path / "mine.toml").message
    assert "--force" in again
    assert "Did you mean 'quickstart'?" in command("recipes", "copy", "quickstrt").message


SIZES = {
    "minimum": lambda value, bound: value >= bound,
    "exclusiveMinimum": lambda value, bound: value > bound,
    "maximum": lambda value, bound: value <= bound,
    "exclusiveMaximum": lambda value, bound: value < bound,
}
TYPES = {
    "object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float),
    "null": type(None),
}  # fmt: skip


def is_valid(value, rule, root):
    """Check a value by a JSON schema: each keyword as the standard says, a KeyError for any other."""
    checks = {
        "$ref": lambda ref: is_valid(value, root["$defs"][ref.rpartition("/")[2]], root),
        "anyOf": lambda rules: any(is_valid(value, schema, root) for schema in rules),
        "type": lambda kind: (
            isinstance(value, TYPES[kind]) and (kind == "boolean") == isinstance(value, bool)
        ),
        "enum": lambda options: value in options,
        "const": lambda constant: value == constant,
        "items": lambda schema: (
            not isinstance(value, list) or all(is_valid(part, schema, root) for part in value)
        ),
        "required": lambda names: not isinstance(value, dict) or set(names) <= set(value),
        "properties": lambda properties: all(
            is_valid(value[key], properties[key], root) for key in set(properties) & set(value)
        ),
        "additionalProperties": lambda schema: all(
            is_valid(part, schema, root) if isinstance(schema, dict) else schema
            for key, part in value.items()
            if key not in rule.get("properties", {})
        ),
        **{name: lambda bound, holds=holds: holds(value, bound) for name, holds in SIZES.items()},
        **dict.fromkeys(("title", "description", "default", "$defs", "$schema"), lambda _: True),
    }
    order = sorted(rule, key=lambda name: name != "type")  # Later ones presume it.
    return all(checks[name](rule[name]) for name in order)


@pytest.mark.parametrize(
    "path", [*RECIPES, *sorted((ROOT / "src/isogloss/recipes/packaged").glob("*.toml"))], ids=lambda p: p.stem
)
def test_every_recipe_fits_the_schema(path):
    rules = schema_of("recipe")
    assert is_valid(tomllib.loads(path.read_text(encoding="utf-8")), rules, rules)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('title = "Tiny"', 'tilte = "Tiny"'),
        ('title = "Tiny"', ""),
        ("[0, 1]", '["0"]'),
        ("[0, 1]", "[true]"),
        ("examples = 16", "examples = -1"),
        ('source = "qaa"', 'sorce = "qaa"'),
        ('encoder = "shipped"', "encoder = 3"),
        ('encoder = "shipped"', 'encoder = { pretraned = "x" }'),
        ('encoder = "shipped"', "encoder = { pretrain = { architecture = { layers = 0 } } }"),
    ],
)
def test_what_a_plan_refuses_the_schema_refuses(old, new):
    rules = schema_of("recipe")
    assert is_valid(tomllib.loads(TINY), rules, rules)
    assert not is_valid(tomllib.loads(TINY.replace(old, new, 1)), rules, rules)


def test_descriptions_of_corpora_fit_their_schema_and_its_fields_are_explained(command):
    rules = json.loads(command("schema", "corpus").out)
    description_files = sorted((ROOT / "src/isogloss/features/described_corpora/shipped").glob("*.toml"))
    for path in each(description_files):
        description = tomllib.loads(path.read_text(encoding="utf-8"))
        assert is_valid(description, rules, rules)
        assert not is_valid({**description, "file": "x"}, rules, rules)
    assert rules["properties"]["labels"]["description"].startswith("The inventory, or each spelling")
    assert json.loads(command("schema").out) == schema_of("recipe")
    grid = schema_of("recipe")["$defs"]["GridTable"]["properties"]
    assert grid["seeds"]["description"] == "Seeds of head, order and dropout."
    assert "no schema 'recipes'. Did you mean 'recipe'?" in command("schema", "recipes").message


def test_a_first_recipe_plans_without_a_change(command, tmp_path):
    output = command("init", tmp_path / "new" / "first.toml")
    assert (output.status, output.out) == (0, f"{tmp_path / 'new' / 'first.toml'}\n")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["first.toml"]
    runs = plan_recipe(str(tmp_path / "new" / "first.toml"), out=tmp_path / "runs").runs
    # Three seeds of one model, the scores and the gap of each.
    assert [run.name for run in runs].count("fine-tune") == 3 and len(runs) == 9
    options = (
        "--corpus ud --task upos --source qab --target qaa,qad --target qag --method source-only,bilingual"
    )
    command("init", tmp_path / "own.toml", *options.split(), "--seeds", 1)
    own_recipe = tomllib.loads((tmp_path / "own.toml").read_text(encoding="utf-8"))
    assert own_recipe["grid"]["targets"] == ["qaa", "qad", "qag"] and own_recipe["grid"]["seeds"] == [0]
    assert len(planned_ids(str(tmp_path / "own.toml"), tmp_path)) == 4 + 4 + 1
    assert "--force" in command("init", tmp_path / "own.toml").message
    assert re.search("comments|#", (tmp_path / "own.toml").read_text())


def test_a_first_recipe_of_a_task_is_about_a_built_in_corpus_with_its_labels(command, tmp_path):
    assert command("init", tmp_path / "own.toml", "--task", "parsing").status == 0
    grid = tomllib.loads((tmp_path / "own.toml").read_text(encoding="utf-8"))["grid"]
    assert (grid["corpus"], grid["task"], grid["source"]) == ("ud", "parsing", "qaa")


def test_a_first_recipe_that_could_not_be_planned_is_not_written(command, tmp_path):
    message = command("init", tmp_path / "new" / "own.toml", "--corpus", "wikian").message
    assert message.startswith("init: ")
    assert "own.toml: grid.corpus: " in message and "'wikian'" in message
    assert not list(tmp_path.iterdir())


def test_a_terminal_is_asked_for_what_is_not_given(command, tmp_path, monkeypatch):
    questions = []

    def prompt(question, default, err):
        questions.append((question, default))
        return "pawsx" if "Corpus" in question else default

    monkeypatch.setattr("isogloss.cli.recipe_verbs.typer.prompt", prompt)
    monkeypatch.setattr("isogloss.features.described_corpora.commands._is_terminal", lambda: True)
    command("init", tmp_path / "own.toml", "--source", "qab", "--target", "qad")
    assert questions == [("Corpus with labels", "wikiann"), ("Encoder", "shipped")]
    assert tomllib.loads((tmp_path / "own.toml").read_text(encoding="utf-8"))["grid"]["corpus"] == "pawsx"


def test_notebooks_show_what_a_folder_of_runs_holds(study_folder):
    html = isogloss.read(study_folder("transfer"))._repr_html_()
    assert html.count("<svg") == 1
    assert "<th>runs</th>" in html and "finished" in html
    assert "interpolation" in html and "cka" not in html


@pytest.mark.nightly
@pytest.mark.slow
def test_a_search_shows_its_trials_and_says_loudly_what_is_no_zero_shot_transfer(command, tmp_path):
    search_words = ("search", tiny(tmp_path), "--over", "optimization.epochs=1,2", "--scale", "least")
    only = ("--set", 'grid.method=[{name="source-only"}]', "--out", tmp_path / "runs", "--jobs", 1)
    output = command(*search_words, *only, "--target-dev", "--quiet")
    assert output.status == 0
    assert output.err.startswith(
        "isogloss: the targets' dev sets choose, which takes labels in the target lan"
    )
    best_recipe = tmp_path / "tiny-best.toml"
    assert output.out.splitlines()[-1] == f"Recipe: {best_recipe}"
    assert "optimization.epochs" in output.out and "metric on target dev, percent" in output.out
    assert "# the targets' dev sets choose" in best_recipe.read_text()
    again = command(*search_words, *only, "--target-dev", "--json")
    assert [line["made"] for line in again.lines if line["event"] == "trial"] == [0, 0]
    assert [line["recipe"] for line in again.lines if line["event"] == "search"] == [str(best_recipe)]
    assert command("search", tmp_path / "tiny.toml", "--over", "optimization.epochs").message.startswith(
        "--over optimization.epochs: expected key=values, as in optimization.learning_rate=1e-5..1e-3:log"
    )


def test_a_first_recipe_scores_on_dev_where_no_test_set_has_labels(command, tmp_path):
    for name in ("train-sw", "dev-sw", "dev-rw"):
        (tmp_path / f"{name}.tsv").write_text("text\tlabel\nJua\tanga\nNyota\tanga\n", encoding="utf-8")
    description = 'kind = "text"\nfiles = "{split}-{language}.tsv"\n'
    (tmp_path / "own.toml").write_text(f'{description}languages = ["sw", "rw"]\n', encoding="utf-8")
    options = ("--corpus", tmp_path / "own.toml", "--source", "sw", "--target", "rw", "--data", tmp_path)
    assert command("init", tmp_path / "first.toml", *options).status == 0
    measure_tables = tomllib.loads((tmp_path / "first.toml").read_text(encoding="utf-8"))["measure"]
    assert {table["split"] for table in measure_tables} == {"dev"}
