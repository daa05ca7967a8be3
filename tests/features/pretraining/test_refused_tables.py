"""Tables of pretraining that cannot work are refused before anything runs, with field and value."""

import pytest

from isogloss.core.errors import InputError
from isogloss.planning.plan import plan_recipe

NEW = """
title = "A new encoder"

[[encoder]]
label = "new"
[encoder.pretrain]
text = ["rawtext"]
languages = ["qaa", "qad"]
architecture = { layers = 2, dim = 32, heads = 2, feed_forward = 64, vocabulary = 500, positions = 128 }
method = { steps = 12, batch_subwords = 512, block = 32, vocabulary_lines = 400 }
"""
CONTINUED = """
title = "A continued encoder"

[[encoder]]
label = "shipped"
pretrained = "shipped"

[[encoder]]
label = "new"
[encoder.pretrain]
start = "shipped"
text = ["rawtext"]
languages = ["qad"]
method = { steps = 12, batch_subwords = 8192, block = 32 }
"""
REFUSED = {
    "heads that do not divide the dimension": (
        NEW.replace("heads = 2", "heads = 3"),
        ["architecture", "3 heads", "dim 32"],
    ),
    "rows that are longer than the positions": (
        NEW.replace("block = 32", "block = 256"),
        ["method.block", "256", "128"],
    ),
    "rows that are longer than the positions of the start": (
        CONTINUED.replace("block = 32", "block = 4096"),
        ["method.block", "4096", "shipped"],
    ),
    "an architecture next to a start": (
        CONTINUED + "architecture = { layers = 2, dim = 32, heads = 2 }\n",
        ["architecture", "'shipped'"],
    ),
    "trained modules without a start": (NEW + 'trained = "modules"\n', ["trained", "start"]),
    "trained modules where there are none": (
        CONTINUED + 'trained = "modules"\n',
        ["trained", "'shipped'", "modules"],
    ),
    "trained layers in a method that trains none": (
        CONTINUED.replace("method = {", 'method = { name = "meta-learning",') + 'trained = "layers"\n',
        ["trained", "meta-learning"],
    ),
    "new subwords without a start": (NEW + "vocabulary = { size = 100 }\n", ["vocabulary", "start"]),
    "new subwords from translations without pairs": (
        CONTINUED + 'vocabulary = { size = 100, embeddings = "translations" }\n',
        ["vocabulary", "translations", "pairs"],
    ),
    "pairs without embeddings from translations": (
        CONTINUED + 'vocabulary = { size = 100, bitext = "bitext", pairs = ["qaa-qad"] }\n',
        ["vocabulary", "bitext", "qaa-qad"],
    ),
    "pairs that end in a different language": (
        CONTINUED
        + 'vocabulary = { size = 9, embeddings = "translations", bitext = "bitext", pairs = ["qaa-qab"] }\n',
        ["pairs", "qaa-qab", "qad"],
    ),
    "replay without a start": (
        NEW + 'replay = { languages = ["qab"], share = 0.5 }\n',
        ["replay", "start", "qab"],
    ),
    "replay of a language that is trained": (
        CONTINUED + 'replay = { languages = ["qad"], share = 0.5 }\n',
        ["replay", "qad"],
    ),
    "replay of a language without modules": (
        CONTINUED + 'replay = { languages = ["qaa"], share = 0.5 }\nmodules = { kind = "adapter" }\n',
        ["replay", "qaa", "modules"],
    ),
    "replay where only modules are trained": (
        CONTINUED
        + 'replay = { languages = ["qaa"], share = 0.5 }\ntrained = "modules"\n'
        + 'modules = { kind = "adapter", fallback = "qad" }\n',
        ["replay", "trained"],
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_table_that_cannot_work_is_refused(name, tmp_path):
    text, facts = REFUSED[name]
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as error:
        plan_recipe(str(recipe), out=tmp_path / "runs")
    message = str(error.value)
    assert (
        "encoder[1].pretrain" in message if text.count("[[encoder]]") > 1 else "encoder.pretrain" in message
    )
    for fact in facts:
        assert fact in message, message


def test_both_tables_work_without_the_change(tmp_path):
    recipe = tmp_path / "recipe.toml"
    planned_runs = []
    for text in (NEW, CONTINUED):
        recipe.write_text(text, encoding="utf-8")
        planned_runs.append(len(plan_recipe(str(recipe), out=tmp_path / "runs").runs))
    assert planned_runs == [1, 1]
