"""A recipe is read whole and strictly: each mistake names file, field, what was found, what is allowed."""

import pytest

from isogloss.core.errors import ConfigError, add_location
from isogloss.core.run_parts import Architecture, Optimization
from isogloss.features.alignment.encoder_aligner import EncoderSimilarity
from isogloss.features.built_in_languages.translator import BuiltIn
from isogloss.features.meta_learning.method import MetaLearning
from isogloss.features.pretraining.methods import MaskedLanguageModelling
from isogloss.features.representations.retrieval import Retrieval
from isogloss.features.statistical_alignment.eflomal import Eflomal
from isogloss.features.statistical_alignment.fast_align import FastAlign
from isogloss.features.translation.modelling import TranslationModelling
from isogloss.features.translation.seq2seq import Seq2Seq
from isogloss.features.word_distance.diagnostic import WordDistance
from isogloss.recipes.checking import build_checked, read_recipe, refuse_empty_or_twice
from isogloss.recipes.recipe_text import from_toml, recipe_text, to_toml
from isogloss.recipes.request import parse_change
from says import check_wording, says
from tiny import TINY, body, lines


def read(text=TINY, **changes):
    with add_location("r.toml"):
        return read_recipe(text, changes={k.replace("__", "."): v for k, v in changes.items()})


def refusal(text=TINY, **changes):
    with pytest.raises(ConfigError) as error:
        read(text, **changes)
    message = str(error.value)
    assert "\n" not in message
    return message


def test_languages_are_read_as_bcp_47_writes_them():
    grid = read(grid__source="eng_Latn", grid__targets=["zh-Hant", "ar+sr-Latn"]).grid
    assert (grid.source, grid.targets) == ("en", ("zh_Hant", "ar+sr_Latn"))


def test_the_defaults_are_three_seeds_and_the_shipped_encoder():
    recipe = read(TINY.replace("seeds = [0, 1]\n", "").replace('encoder = "shipped"\n', ""))
    assert (recipe.grid.seeds, recipe.encoder) == ((0, 1, 2), "shipped")


MISTAKES = """
tilte = "x" -> r.toml: tilte: … 'title'
Title = "x" -> r.toml: Title: … 'title'
training = { epochs = 3 } -> r.toml: training: … 'pretrain'
seeds = [0] -> r.toml: seeds: … 'grid.seeds'
optimization = {} -> r.toml: optimization: … 'grid.optimization'
grid.Sorce = "x" -> r.toml: grid.Sorce:
grid.sorce = "x" -> r.toml: grid.sorce: … 'source'
grid = {} -> r.toml:
grid = 3 -> r.toml: grid: … 3
grid.seeds = 3 -> r.toml: grid.seeds: … 3
grid.seeds = ["0"] -> r.toml: grid.seeds[0]: … '0'
grid.seeds = [true] -> r.toml: grid.seeds[0]:
grid.targets = "qab" -> r.toml: grid.targets: … 'qab'
grid.examples = -1 -> r.toml: grid.examples: … -1 … 0
grid.dev_examples = 0.5 -> r.toml: grid.dev_examples: … 0.5
grid.treebanks = [] -> r.toml: grid.treebanks: … []
grid.method = "source-only" -> r.toml: grid.method: … 'source-only'
grid.method.0 = 1 -> r.toml: grid.method[0]: … 1
measure = 1 -> r.toml: measure: … 1
scale = [] -> r.toml: scale: … []
encoder = 3 -> r.toml: encoder: … 3
encoder = { pretraned = "x" } -> r.toml: encoder.pretraned:
encoder = { pretrain = { text = "x" } } -> r.toml:
encoder = { pretrain = { text = ["rawtext"], language = ["qaa"] } } -> r.toml: encoder.pretrain.language: …
    'languages'
encoder = { pretrain = { text = [], languages = [], architecture = { layer = 2 } } } -> r.toml:
    encoder.pretrain.architecture.layer: … 'layers'
encoder = { pretrain = { text = [], languages = [], architecture = { layers = 0 } } } -> r.toml:
    encoder.pretrain.architecture.layers: … 0 … 1
encoder = ["shipped", { pretrain = { text = [], languages = [], seed = "x" } }] -> r.toml:
    encoder[1].pretrain.seed: … 'x'
encoder = { pretrain = { text = [], languages = [], trained = "layer" } } -> r.toml: encoder.pretrain.trained:
    … 'layer' … 'modules' … 'layers'
encoder = { pretrain = { text = [], languages = [], modules = { kind = "adapter", invertible = "ja" } } } ->
    r.toml: encoder.pretrain.modules.invertible: … 'ja'
"""
"""Changes of the tiny recipe, with the place and the facts of their messages (separated by "…").

Indented lines continue the previous line.
"""


@pytest.mark.parametrize("line", lines(MISTAKES))
def test_a_wrong_field_type_or_range_is_refused_by_name(line):
    changes, part = line.split(" -> ")
    place, *facts = part.split(" … ")
    message = refusal(**dict([parse_change(changes)]))
    assert message.startswith(place)
    assert [fact for fact in facts if fact not in message] == []


def test_a_missing_field_is_named():
    check_wording(refusal(TINY.replace('title = "Tiny"', "")), "r.toml: title:")
    assert "grid.source:" in refusal(TINY.replace('source = "qaa"', ""))


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        (Optimization, {"epochs": 0}, "at least 1"),
        (Optimization, {"epochs": -1}, "at least 1"),
        (Optimization, {"epochs": 1.5}, "a whole number"),
        (Optimization, {"epochs": True}, "a whole number"),
        (Optimization, {"learning_rate": 0}, "more than 0"),
        (Optimization, {"learning_rate": float("inf")}, "a finite number"),
        (Optimization, {"learning_rate": "high"}, "a number"),
        (Optimization, {"batch_size": 0}, "at least 1"),
        (Optimization, {"warmup": 1.01}, "at most 1"),
        (Optimization, {"warmup": -0.1}, "at least 0"),
        (Optimization, {"weight_decay": -1}, "at least 0"),
        (Optimization, {"beta2": 1}, "less than 1"),
        (Optimization, {"clip": -1}, "at least 0"),
        (Optimization, {"limit": 0}, "at least 1"),
        (Optimization, {"overlap": -1}, "at least 0"),
        (Optimization, {"checkpoint_every": -1}, "at least 0"),
        (Optimization, {"precision": 16}, "'auto', 'float32', 'tf32' or 'bfloat16'"),
        *((Architecture, {name: 0}, "at least 1") for name in ("layers", "dim", "heads", "positions")),
        (Architecture, {"dropout": 2}, "at most 1"),
        (FastAlign, {"iterations": 0}, "at least 1"),
        (FastAlign, {"tension": -1.0}, "at least 0"),
        (FastAlign, {"none": 1.0}, "less than 1"),
        (Eflomal, {"samplers": True}, "a whole number"),
        (EncoderSimilarity, {"layer": "5"}, "a whole number"),
        (EncoderSimilarity, {"distortion": 1.5}, "at most 1"),
        (BuiltIn, {"seed": "5"}, "a whole number"),
        (Seq2Seq, {"beams": True}, "a whole number"),
        (TranslationModelling, {"layers": -1}, "at least 1"),
        (TranslationModelling, {"dropout": -0.5}, "at least 0"),
        (TranslationModelling, {"dev_sentences": 0}, "at least 1"),
        (MaskedLanguageModelling, {"steps": True}, "a whole number"),
        (MaskedLanguageModelling, {"temperature": 0}, "more than 0"),
        (MetaLearning, {"own_learning_rate": -1.0}, "at least 0"),
        (Retrieval, {"limit": -1}, "at least 1"),
        (WordDistance, {"bins": "60"}, "a whole number"),
    ],
)
def test_a_number_out_of_range_is_refused_with_what_is_allowed(kind, values, expected):
    with pytest.raises(ConfigError) as error:
        build_checked(kind, values)
    ((field, value),) = values.items()
    assert str(error.value) == f"{field}: found {value!r}; expected {expected}. Correct it."


def test_whole_numbers_do_for_rates():
    assert build_checked(Optimization, {"clip": 2}).updates.clip == 2.0


def test_a_scale_changes_what_it_names_and_nothing_else():
    small_recipe = read_recipe(TINY, scale="least")
    assert (small_recipe.grid.seeds, small_recipe.grid.examples) == ((0,), 4)
    assert (small_recipe.grid.dev_examples, small_recipe.grid.optimization) == (
        8,
        body()["grid"]["optimization"],
    )


def test_a_change_goes_over_a_scale():
    assert read_recipe(TINY, scale="least", changes={"grid.seeds": [7]}).grid.seeds == (7,)


@pytest.mark.parametrize("scales", [5, "small", []])
def test_scales_that_are_no_table_are_none(scales):
    with says(ConfigError, "'small'", "(this recipe has none)"):
        read_recipe(to_toml({**body(), "scale": scales}), scale="small")


def test_an_unknown_scale_names_the_known_ones():
    with says(ConfigError, "'last'", "Did you mean 'least'"):
        read_recipe(TINY, scale="last")


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("grid.seeds=[0, 1]", ("grid.seeds", [0, 1])),
        ("grid.optimization.learning_rate=1e-4", ("grid.optimization.learning_rate", 1e-4)),
        ("encoder=shipped", ("encoder", "shipped")),
        ("encoder=../models/my-bert", ("encoder", "../models/my-bert")),
        ('title="a = b"', ("title", "a = b")),
        ("title = Two words", ("title", "Two words")),
    ],
)
def test_set_reads_toml_and_plain_words(text, change):
    assert parse_change(text) == change


@pytest.mark.parametrize("text", ["grid.seeds", "=3", "a=[0,", "a=[b]", "a={b=c}", "a=", f"a={'9' * 5000}"])
def test_set_refuses_what_is_neither(text):
    with pytest.raises(ConfigError, match="--set"):
        parse_change(text)


def test_set_reaches_into_lists_by_number():
    assert read(measure__0__examples=3).measure[0]["examples"] == 3
    assert "grid.method" in refusal(grid__method__2__name="x")
    assert "table" in refusal(title__x=1)


def test_a_place_is_put_before_any_message():
    with pytest.raises(ConfigError, match=r"^there: here:"), add_location("there"), add_location("here"):
        build_checked(Optimization, {"epochs": 0})


def test_every_default_passes_its_own_checks():
    for kind in (Optimization, Architecture):
        assert build_checked(kind, {}) == kind()


SHARED = """
title = "Several encoders"

[pretrain]
text = ["rawtext"]
languages = ["qaa", "qad"]
architecture = { layers = 2, dim = 64 }
seed = [0, 1]

[pretrain.method]
steps = 7

[[encoder]]
label = "joint"
pretrain = {}

[[encoder]]
label = "mono"
pretrain = { languages = ["qaa"], architecture = { layers = 3 }, seed = 5 }

[[encoder]]
label = "meta"
pretrain = { method = { name = "meta-learning" } }
"""


def test_what_encoders_have_in_common_is_said_once_and_what_they_say_themselves_wins():
    joint, mono, meta = (entry.pretrain for entry in read(SHARED).encoder)
    assert (joint.languages, joint.seed, joint.architecture.layers) == (("qaa", "qad"), (0, 1), 2)
    assert (mono.languages, mono.seed) == (("qaa",), 5)
    assert mono.architecture == Architecture(layers=3, dim=64)
    assert (joint.method, meta.method) == ({"steps": 7}, {"steps": 7, "name": "meta-learning"})


def test_changes_reach_every_encoder_through_what_they_have_in_common():
    changed_examples = read(SHARED, pretrain__method__steps=2)
    assert [entry.pretrain.method["steps"] for entry in changed_examples.encoder] == [2, 2, 2]


def test_common_fields_work_for_one_encoder_and_leave_those_that_exist_alone():
    examples = read(SHARED.partition("[[encoder]]")[0] + "[encoder.pretrain]\nseed = 3")
    assert (examples.encoder.pretrain.seed, examples.encoder.pretrain.text) == (3, ("rawtext",))
    both_examples = read(SHARED + '\n[[encoder]]\nlabel = "there"\npretrained = "shipped"\n')
    assert both_examples.encoder[-1].pretrain is None


def test_common_fields_that_nobody_reads_are_refused():
    message = refusal(SHARED, pretrain__langauges=["qaa"])
    assert "r.toml: pretrain: langauges:" in message
    assert "'languages'" in message
    single_part = SHARED.partition("[[encoder]]")[0]
    assert "recipe" in refusal(single_part)
    assert "a table" in refusal(SHARED.partition("[pretrain]")[0] + "pretrain = 3")


class Counted(int):
    """A number that counts how often it is compared."""

    comparison_count = 0
    __hash__ = int.__hash__

    def __eq__(self, other):
        Counted.comparison_count += 1
        return int(self) == int(other)


def test_many_values_are_not_compared_each_with_each():
    refuse_empty_or_twice([Counted(index) for index in range(3000)], "seeds")
    assert Counted.comparison_count < 3000
    with pytest.raises(ConfigError, match=r"seeds: .*7"):
        refuse_empty_or_twice([Counted(7), Counted(8), Counted(7)], "seeds")
    with pytest.raises(ConfigError, match="twice"):
        refuse_empty_or_twice([{"name": "a"}, {"name": "a"}], "method")


@pytest.mark.parametrize("parts", [51, 20_000, 50_000])
@pytest.mark.parametrize(
    "form", ["{} = 1", "[{}]", "[[{}]]", "x = {{ {} = 1 }}", "x = [{{ y = 1, {} = 2 }}]", " {} = 1"]
)
@pytest.mark.parametrize("part", ["a", '"a b"', "'a'", "a "])
def test_a_key_of_very_many_parts_is_refused(form, part, parts):
    with pytest.raises(ConfigError, match=r"line 2: .*50"):
        from_toml("title = 1\n" + form.format(".".join([part] * parts)) + "\n")


def test_keys_and_lists_of_usual_size_are_read():
    text = ".".join("a" * 50) + " = 1\n"
    numbers = ", ".join(f"{index / 100:.2f}" for index in range(400))
    dotted_text = "... " * 200
    assert from_toml(f'{text}alphas = [{numbers}]\ntitle = "{dotted_text}"\n')["title"] == dotted_text


def test_a_recipe_of_any_size_is_refused(tmp_path):
    with (tmp_path / "r.toml").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ConfigError, match=r"r.toml:"):
        recipe_text(str(tmp_path / "r.toml"))
    with pytest.raises(ConfigError, match="characters"):
        from_toml("#" * (5 << 20))
