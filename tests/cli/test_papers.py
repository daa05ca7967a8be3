"""Recipes of the papers' tables are packaged recipes whose names say paper and item."""

import re
import tomllib
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

from isogloss.core.errors import ConfigError, DataError, InputError
from isogloss.core.identity import identity
from isogloss.engine.engine import make_planned
from isogloss.engine.engines import Execution
from isogloss.planning.plan import plan_recipe
from isogloss.recipes.recipe_text import packaged_recipes, published_file, recipe_text
from made_up_papers import NUMBERS, ONE, made_up_papers
from tiny import RUNS, TINY


@pytest.fixture
def papers(tmp_path, monkeypatch):
    return made_up_papers(tmp_path / "package", monkeypatch)


def test_a_recipe_of_a_paper_is_found_by_paper_and_item(papers):
    assert list(packaged_recipes()) == ["papers/made-up/table-1", "papers/made-up/table-2", "quickstart"]
    plan = plan_recipe("papers/made-up/table-1")
    assert len(plan.runs) == RUNS
    assert plan.store.root == Path("runs/papers/made-up-table-1")
    assert plan.recipe.title == "Table 1"


def test_names_of_recipes_of_papers_have_their_nearest_match(papers):
    with pytest.raises(ConfigError, match="'papers/made-up/table-1'"):
        recipe_text("papers/made-up/tabel-1")


def test_what_extends_a_recipe_of_a_paper_has_its_published_numbers(papers, tmp_path):
    own_path = tmp_path / "deep" / "own.toml"
    own_path.parent.mkdir()
    own_path.write_text('extends = "papers/made-up/table-1"\n', encoding="utf-8")
    for recipe in ("papers/made-up/table-1", "papers/made-up/table-2", str(own_path)):
        name = tomllib.loads(recipe_text(recipe)[0])["published"]
        assert published_file(recipe, name).read_text(encoding="utf-8") == NUMBERS, recipe
    beside = tmp_path / "base.toml"
    beside.write_text(f'published = "own.csv"\n{TINY}', encoding="utf-8")
    own_path.write_text('extends = "../base.toml"\n', encoding="utf-8")
    name = tomllib.loads(recipe_text(str(own_path))[0])["published"]
    assert published_file(own_path, name).resolve() == tmp_path / "own.csv"


def test_published_numbers_beside_a_recipe_go_before_those_of_the_package(tmp_path):
    mine_path = tmp_path / "papers" / "mine.csv"
    mine_path.parent.mkdir()
    mine_path.write_text(NUMBERS, encoding="utf-8")
    base = tmp_path / "base.toml"
    own_path = tmp_path / "deep" / "own.toml"
    base.write_text(f'published = "papers/mine.csv"\n{TINY}', encoding="utf-8")
    own_path.parent.mkdir()
    own_path.write_text('extends = "../base.toml"\n', encoding="utf-8")
    for recipe in (base, own_path):
        name = tomllib.loads(recipe_text(str(recipe))[0])["published"]
        assert published_file(recipe, name).resolve() == mine_path


def test_an_empty_table_of_a_scale_empties_that_of_the_recipe(papers, tmp_path):
    name = "papers/made-up/table-1"
    assert len(plan_recipe(name, scale="built-in").runs) == RUNS
    own_path = tmp_path / "own.toml"
    own_path.write_text(f'{TINY}\n[scale.plain]\n"grid.optimization" = {{}}\n', encoding="utf-8")
    assert plan_recipe(own_path).recipe.grid.optimization
    assert plan_recipe(own_path, scale="plain").recipe.grid.optimization == {}


def test_a_copy_of_a_recipe_of_a_paper_has_its_numbers_beside_it(papers, tmp_path, command):
    result = command("recipes", "copy", "papers/made-up/table-1", "--to", tmp_path / "mine.toml")
    assert result.out.splitlines() == [str(tmp_path / "table-1.csv"), str(tmp_path / "mine.toml")]
    assert (tmp_path / "mine.toml").read_text(encoding="utf-8") == ONE
    assert (tmp_path / "table-1.csv").read_text(encoding="utf-8") == NUMBERS


def test_a_plan_can_be_looked_at_without_the_data(papers, command, tmp_path):
    arguments = ("run", "papers/made-up/table-1", "--scale", "published")
    result = command(*arguments, "--dry-run", "--json")
    assert result.status == 0
    counts = {"runs": 4, "done": 0, "to make": 4, "operations": 0, "unknown": 2}
    counts |= {"models": 2, "model bytes": None}
    assert result.lines[-1] == {**counts, "hours left": 0, "unlike": 4}
    assert "machine: xnli" in result.err
    assert "owner/encoder: " in result.err
    assert "Give --data DIR" in command(*arguments).message
    (tmp_path / "empty").mkdir()
    absent = command(*arguments, "--dry-run", "--data", tmp_path / "empty").message
    assert "xnli" in absent


def test_a_plan_without_the_data_is_neither_written_nor_run(papers, tmp_path):
    plan = plan_recipe("papers/made-up/table-1", scale="published", out=tmp_path / "out", assume=True)
    with pytest.raises(ConfigError, match="Plan"):
        plan.write("a command")
    with pytest.raises(ConfigError, match="Plan"):
        make_planned(plan, Execution(jobs=1))
    assert not (tmp_path / "out").exists()


def plan_of_described(corpus, source, target):
    fields = {"corpus": corpus, "source": source, "targets": [target], "method": [{"name": "source-only"}]}
    changes = {"measure": [], **{f"grid.{key}": value for key, value in fields.items()}}
    return partial(plan_recipe, "papers/made-up/table-1", scale="published", changes=changes)


@pytest.mark.parametrize(
    ("corpus", "task"), [("masakhaner", "span-tagging"), ("afrisenti", "text-classification")]
)
def test_a_described_corpus_is_assumed_with_what_its_description_tells(papers, corpus, task):
    plan = plan_of_described(corpus, "en", "ha")
    (model,) = plan(assume=True).runs
    assert model.task == task
    with pytest.raises(InputError):
        plan()


def test_what_a_description_does_not_have_is_not_assumed(papers):
    with pytest.raises(DataError, match="'de'"):
        plan_of_described("xnli-eu", "de", "eu")(assume=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "system,value\n",
            "table-1.csv:1: found the columns system,value; expected scale,system,inputs,encoder",
        ),
        (f"{NUMBERS}published,bilingual\n", "table-1.csv:5: found 2 cells; expected 8"),
        (f"{NUMBERS}published,,,,de,f1,0.5,3\n", "table-1.csv:5: system:"),
        (f"{NUMBERS}published,a,,,de,f1,81 %,3\n", "table-1.csv:5: value: found '81 %'; expected a number"),
        (f"{NUMBERS}published,source-only,,,qab,span_f1,0.6,3\n", "source-only, , , qab, span_f1"),
    ],
)
def test_published_numbers_that_do_not_fit_are_refused(papers, text, message):
    (papers / "table-1.csv").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=re.escape(message)) as error:
        plan_recipe("papers/made-up/table-1")
    assert str(error.value).startswith("papers/made-up/table-1: ")


def test_published_numbers_that_are_not_there_are_refused(papers):
    (papers / "table-1.csv").unlink()
    with pytest.raises(ConfigError, match=r"published: table-1.csv:"):
        plan_recipe("papers/made-up/table-1")


@pytest.mark.nightly
@pytest.mark.slow
def test_what_was_published_stands_beside_ours(papers, command, tmp_path):
    folder = tmp_path / "out"
    options = ("--scale", "built-in", "--jobs", 1, "-q", "--set", 'measure=[{name="scores", examples=8}]')
    result = command("run", "papers/made-up/table-1", "--out", folder, *options)
    assert result.status == 0, result.err
    table = pd.read_csv(folder / "tables" / "published.csv").set_index(["system", "language"])
    (scores,) = (pd.read_csv(path) for path in (folder / "tables").glob("scores-*-span-f1.csv"))
    own_mean = scores.set_index(["system", "column"])["mean"]
    assert table.loc[("source-only", "qab"), "mean"] == pytest.approx(own_mean["source-only", "qab"])
    assert table.loc[("bilingual", "qab"), "mean"] == pytest.approx(own_mean["bilingual", "qab"])
    assert (table["difference"].dropna() == table["mean"] - table["value"]).all()
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "Published next to ours" in page
    assert "only the order of systems and the sign of differences can be compared" in page
    (row,) = pd.read_csv(folder / "tables" / "published-differences.csv").to_dict("records")
    assert row["published"] == pytest.approx(0.612 - 0.501)
    assert row["ours"] == pytest.approx(own_mean["bilingual", "qab"] - own_mean["source-only", "qab"])


def test_a_plan_says_how_many_operations_and_hours_its_trainings_take(papers, command, tmp_path):
    far_texts = ("--set", "encoder=FacebookAI/xlm-roberta-base", "--speed", 10)
    result = command(
        "run", "papers/made-up/table-1", "--scale", "published", "--dry-run", "--json", *far_texts
    )
    *runs, total = result.lines
    counts = [float(run["operations"]) for run in runs if run["operations"]]
    assert len(counts) == 2
    assert total["operations"] == pytest.approx(sum(counts), rel=0.05)
    assert total["hours"] == pytest.approx(total["operations"] / 10e12 / 3600)
    assert total["unknown"] == 0
    assert "FacebookAI/xlm-roberta-base: " in result.err
    assert "Its published size is assumed." in result.err
    assert "training examples" in result.err
    unknown_result = command("run", "papers/made-up/table-1", "--scale", "published", "--dry-run")
    assert "unknown" in unknown_result.out


def test_papers_are_listed_with_their_scales_numbers_and_runs(papers, command, tmp_path):
    text = 'title = "Made up"\nauthors = "Nobody"\nwithout-recipe = { figure-1 = "It shows no result." }\n'
    (papers.parent / "papers.toml").write_text(f"[made-up]\n{text}", encoding="utf-8")
    plan = plan_recipe("papers/made-up/table-1", scale="built-in", out=tmp_path / "made-up-table-1")
    plan.write("a command")
    (tmp_path / "made-up-table-1" / identity(plan.runs[0])).mkdir()
    (tmp_path / "made-up-table-1" / identity(plan.runs[0]) / "record.json").touch()
    paper, none, line, two = command("list", "papers", "--in", tmp_path, "--json").lines
    assert paper["title"] == "Made up (Nobody)"
    assert none["title"] == "(no recipe) It shows no result."
    assert {**line, "title": ""} == {
        "paper": "made-up",
        "item": "table-1",
        "title": "",
        "scales": "least built-in published",
        "published": "3",
        "run here at": "built-in",
        "finished": f"1 of {RUNS}",
        "claims": "",
    }
    assert (two["item"], two["run here at"]) == ("table-2", "")
    output = command("list", "papers", "--in", tmp_path).out
    assert f"1 of {RUNS}" in output
    assert "claims" not in output  # No row has one.
