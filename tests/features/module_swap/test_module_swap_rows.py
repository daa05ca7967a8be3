"""Rows of module swaps equal the function; recipes name parts that exist; reports show tables and maps."""

import pytest

import isogloss
from each import each
from in_translation import sentences
from isogloss.core.errors import ConfigError
from isogloss.core.run_parts import Optimization, Updates
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.module_swap.diagnostic import ModuleSwap
from isogloss.features.module_swap.report import PARTS, changes_by_part
from isogloss.tasks import TASKS
from isogloss.training.evaluation import evaluation
from measuring import measure_setting
from says import says

RECIPE = """
title = "Which part?"
encoder = "shipped"

[grid]
corpus = "ud"
task = "upos"
source = "qaa"
targets = ["qab"]
seeds = [0, 1]
examples = 40
dev_examples = 8
optimization = { epochs = 2, learning_rate = 1e-3, checkpoint_every = 0 }

[[grid.method]]
name = "source-only"

[[grid.method]]
name = "bilingual"

[[measure]]
name = "module-swap"
examples = 12
parts = ["embeddings", "layer 1 attention", "layer 1", "head", "all"]
changes = ["swap", "random"]
"""


@pytest.fixture(scope="module")
def models(bert_folder):
    return [TASKS["upos"].head(bert_folder, seed=seed).eval() for seed in (0, 1)]


@pytest.fixture(scope="module")
def evaluations(bert_folder):
    tokenizer = load_tokenizer(bert_folder)
    optimization = Optimization(limit=32, overlap=8, updates=Updates(precision="float32"))
    return {
        language: evaluation(
            TASKS["upos"], sentences(language, 12), tokenizer, optimization, language=language
        )
        for language in ("en", "de")
    }


def test_rows_are_what_the_function_returns(models, evaluations):
    diagnostic = ModuleSwap(changes=("swap", "strip", "random"), draws=2, seed=5)
    rows = diagnostic.measure(measure_setting(models, evaluations.__getitem__))
    table = isogloss.score_parts(
        *models,
        lambda model: {language: data.score(model) for language, data in evaluations.items()},
        changes=("swap", "strip", "random"),
        draws=2,
        seed=5,
    )
    plain = table[table["part"] == "none"].set_index("model")
    expected = [
        (
            row["model"],
            row["part"],
            row["change"],
            row["draw"],
            language,
            plain.loc[row["model"], language],
            row[language],
        )
        for row in table[table["part"] != "none"].to_dict("records")
        for language in evaluations
    ]
    found = [
        (row.changed, row.part, row.change, row.draw, row.language, row.before, row.score)
        for row in each(rows)
    ]
    assert found == expected
    assert {(row.language, row.role) for row in rows} == {("en", "source"), ("de", "target")}


def test_a_row_has_the_layer_and_kind_of_its_part(models, evaluations):
    parts = ("layer 2 feed-forward", "layer 1", "norms", "head")
    rows = ModuleSwap(parts=parts).measure(measure_setting(models, evaluations.__getitem__))
    found = {(row.part, row.layer, row.module) for row in rows}
    assert found == {
        ("layer 2 feed-forward", 2, "feed-forward"),
        ("layer 1", 1, "all"),
        ("norms", None, "norms"),
        ("head", None, "head"),
    }


WRONG = {
    "a typing mistake": ({"parts": ("layer 1 atention",)}, ("'layer 1 atention'", "layer 1 attention")),
    "no parts": ({"parts": ()}, ("parts", "empty")),
    "no changes": ({"changes": ()}, ("changes", "empty")),
    "three methods": ({"between": ("a", "b", "c")}, ("between", "3", "two")),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_fields_are_refused_before_anything_trains(case):
    fields, facts = WRONG[case]
    with says(ConfigError, "module-swap", *facts):
        ModuleSwap(**fields)


@pytest.mark.parametrize(
    "part", ["layer 3", "layers 1-2", "modules of sw", "layer 2 modules of sw", "bert.pooler"]
)
def test_names_of_parts_and_modules_are_accepted(part):
    assert ModuleSwap(parts=(part,)).parts == (part,)


@pytest.mark.draws
@pytest.mark.slow
def test_a_recipe_swaps_parts_and_its_report_shows_them(tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE, encoding="utf-8")
    result = isogloss.run(path, out=tmp_path / "runs", jobs=1, report=False)
    assert not result.outcome.failed
    measurements = isogloss.read(tmp_path / "runs").measurements
    rows = measurements.frame("module-swap")
    assert set(rows["source"]) == {"qaa"} and set(rows["target"]) == {"qab"}
    swaps = rows[rows["change"] == "swap"].set_index(["end", "changed", "part", "language"])
    for (end, changed, part, language), row in each(swaps.iterrows()):
        if part == "all":
            other = "end" if changed == "start" else "start"
            assert row["score"] == swaps.loc[(end, other, part, language), "before"]

    changes = changes_by_part(measurements).set_index(["seed", "part"])
    for seed in (0, 1):
        by_hand = rows[(rows["seed"] == seed) & (rows["part"] == "layer 1") & (rows["role"] == "target")]
        by_hand = by_hand.set_index(["changed", "change"])
        points = by_hand["score"] - by_hand["before"]
        found = changes.loc[(seed, "layer 1"), ["target_gain", "target_loss", "random_gain", "random_loss"]]
        keys = [("start", "swap"), ("end", "swap"), ("start", "random"), ("end", "random")]
        assert found.tolist() == pytest.approx(points[keys].tolist())
    shown = [entry for _, show in PARTS for entry in show(measurements)]
    *figures, table = each(shown)
    assert ["bilingual in source-only" in figure.title for figure in figures] == [True, False]
    gains = figures[0].data.set_index(["panel", "row", "column"])["mean"]
    expected = changes.xs("embeddings", level="part")["target_gain"].mean()
    assert gains["target language", "0", "all"] == pytest.approx(expected)
    assert {row[1].text for row in table.rows} == set(rows["part"])
    assert all(figure.svg for figure in figures)
