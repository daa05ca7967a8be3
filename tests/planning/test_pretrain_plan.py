"""Recipes with encoders of several languages, of one, and with little text, and their held-out text."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from isogloss.core.errors import ConfigError
from isogloss.core.identity import identity
from isogloss.data.sources import Sources
from isogloss.features.adjustment.run import Adjust
from isogloss.features.pretraining.run import HELD_OUT_INTERVAL, Pretrain, PretrainingText
from isogloss.planning.plan import plan_recipe
from isogloss.runs.fine_tune import FineTune
from isogloss.runs.measure import Measure
from says import says
from tiny import select_kind

PAPER = Path(__file__).parents[2] / "examples" / "pretrain_paper.toml"

RECIPE = """
title = "Mono or joint?"

[[encoder]]
label = "joint"
pretrain = { text = ["rawtext"], languages = ["qaa", "qab"] }

[[encoder]]
label = "mono-qaa"
pretrain = { text = ["rawtext"], languages = ["qaa"] }

[[encoder]]
label = "mono-qab"
pretrain = { text = ["rawtext"], languages = ["qab"] }

[grid]
corpus = "ud"
task = "upos"
source = "qaa"
targets = ["qab", "qac"]
seeds = [0]

[[grid.method]]
name = "source-only"
encoders = ["joint", "mono-qaa"]
targets = ["qab"]

[[grid.method]]
name = "target-only"
encoders = ["mono-qab"]
targets = ["qab"]

[[measure]]
name = "scores"
methods = ["source-only"]
encoders = ["joint"]

[[measure]]
name = "scores"
methods = ["source-only"]
encoders = ["mono-qaa"]
languages = ["qaa"]

[[measure]]
name = "scores"
methods = ["target-only"]
languages = ["qab"]

[[measure]]
name = "retrieval"
corpus = "bitext"
encoders = ["joint"]
"""


LINES = [f"mstari wa {index}" for index in range(250)]


@pytest.fixture
def swahili(tmp_path):
    """A folder with 250 lines of Swahili and nothing held out."""
    (tmp_path / "rawtext" / "sw").mkdir(parents=True)
    (tmp_path / "rawtext" / "sw" / "a.txt").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return Sources(str(tmp_path))


# Labels


def test_methods_and_measurements_choose_encoders_by_label(plan_changed):
    plan = plan_changed()
    labels = plan.encoders
    assert sorted(labels.values()) == ["joint", "mono-qaa", "mono-qab"]
    trained_labels = {
        (labels[run.encoder], run.method.name, run.source, run.target)
        for run in select_kind(FineTune, plan.runs)
    }
    assert trained_labels == {
        ("joint", "source-only", ("qaa",), ()),
        ("mono-qaa", "source-only", ("qaa",), ()),
        ("mono-qab", "target-only", (), ("qab",)),
    }
    looked_at = [
        (
            run.diagnostic.name,
            *(labels[getattr(part, "encoder", part)] for part in run.subjects),
            run.languages,
        )
        for run in select_kind(Measure, plan.runs)
    ]
    assert looked_at == [
        ("scores", "joint", ("qaa", "qab")),
        ("scores", "mono-qaa", ("qaa",)),
        ("scores", "mono-qab", ("qab",)),
        ("retrieval", "joint", ("qaa", "qab")),  # the encoder
        ("retrieval", "joint", ("qaa", "qab")),  # the encoder within its model
    ]


def test_titles_of_a_plan_say_which_encoder_where_there_are_several(plan_changed):
    plan = plan_changed()
    titles = list(plan.titles.values())
    assert "target-only: ud upos qab, seed 0 (mono-qab)" in titles
    assert len(set(titles)) == len(titles)
    single_result = plan_changed(RECIPE.partition('[[encoder]]\nlabel = "mono-qaa"')[0])
    assert not any("(joint)" in title for title in single_result.titles.values())


def test_a_label_is_no_part_of_an_encoders_id(plan_changed):
    ids = {identity(run) for run in select_kind(Pretrain, plan_changed().runs)}
    assert {
        identity(run) for run in select_kind(Pretrain, plan_changed(RECIPE.replace("joint", "both")).runs)
    } == ids


def test_the_plan_notes_what_tables_are_to_call_encoders(plan_changed):
    plan = plan_changed()
    plan.write("isogloss run study.toml")
    noted_labels = json.loads((plan.store.root / "plan.json").read_text(encoding="utf-8"))["labels"]
    assert noted_labels == {identity(encoder): label for encoder, label in plan.encoders.items()}
    assert sorted(noted_labels.values()) == ["joint", "mono-qaa", "mono-qab"]


@pytest.mark.parametrize(
    ("wrong", "right", "message"),
    [
        ('"mono-qab"\npretrain', '"joint"\npretrain', "encoder[0]:"),
        ('encoders = ["mono-qab"]', 'encoders = ["mono-qac"]', "recipe 'mono-qac'"),
        ('encoders = ["joint"]\n\n', 'encoders = ["jiont"]\n\n', "recipe 'jiont'"),
    ],
)
def test_labels_that_are_there_twice_or_not_at_all_are_refused(plan_changed, wrong, right, message):
    assert wrong in RECIPE
    with pytest.raises(ConfigError) as error:
        plan_changed(RECIPE.replace(wrong, right))
    assert message in str(error.value).replace("unknown", "no")


def test_a_method_is_trained_from_its_own_sources(plan_changed):
    method = {"name": "source-only", "sources": ["qab"]}
    plan = plan_changed(grid__source=["qaa", "qab"], grid__method=[method], measure=[])
    assert {run.source for run in select_kind(FineTune, plan.runs)} == {("qab",)}
    with pytest.raises(ConfigError, match=r"sources: .*'qad'"):
        plan_changed(grid__method=[{"name": "source-only", "sources": ["qad"]}], measure=[])


# Little text


def test_lines_are_part_of_an_encoder_and_none_are_not(plan_changed):
    def ids(lines):
        return [
            identity(run)
            for run in select_kind(Pretrain, plan_changed(encoder__0__pretrain__lines=lines).runs)
        ]

    assert ids({}) == [identity(run) for run in select_kind(Pretrain, plan_changed().runs)]
    assert ids({"qaa": 100, "qab": 50}) == ids({"qab": 50, "qaa": 100})
    assert len({*ids({}), *ids({"qaa": 100}), *ids({"qaa": 101})}) == 2 + 3


def test_lines_are_of_languages_however_these_are_written(plan_changed):
    fields = {"encoder__0__pretrain__languages": ["qaa", "eng_Latn"], "encoder__0__pretrain__text": ["mine"]}
    with pytest.raises(ConfigError) as error:
        plan_changed(**fields, encoder__0__pretrain__lines={"eng_Latn": 5})
    assert "pretrain.lines" not in str(error.value)  # It is the corpus that is not known.


def test_translation_modelling_needs_a_second_language(plan_changed):
    table = {"text": ["rawtext"], "languages": ["qaa"], "bitext": "bitext", "method": {"translation": 0.5}}
    with pytest.raises(ConfigError, match="qaa"):
        plan_changed(encoder__0__pretrain=table)


@pytest.mark.parametrize(
    ("lines", "message"), [({"qac": 10}, "'qac'"), ({"qaa": 0}, "at least 1"), ({"qaa": "many"}, "whole")]
)
def test_lines_that_cannot_be_are_refused(plan_changed, lines, message):
    with pytest.raises(ConfigError, match=message):
        plan_changed(encoder__0__pretrain__lines=lines)


@pytest.mark.slow
def test_low_resource_text_is_part_of_the_text_and_the_held_out_text_stays(plan_changed, swahili):
    (full_runs, *_), (little, *_) = (
        select_kind(Pretrain, plan_changed(encoder__0__pretrain__lines=lines).runs)
        for lines in ({}, {"qaa": 40})
    )
    assert little.lines == (("qaa", 40),)
    texts = [
        PretrainingText(replace(run, lines=lines), swahili, holds_out=True)
        for run, lines in ((full_runs, None), (little, (("sw", 40),)))
    ]
    all_lines, trainings = (list(text.train("sw")) for text in texts)
    places = [all_lines.index(line) for line in trainings]
    assert len(trainings) == 40
    assert places == sorted(places)
    assert max(places) > len(all_lines) // 2  # Not the first lines: drawn from all.
    assert list(texts[0].held_out("sw")) == list(texts[1].held_out("sw"))
    another = PretrainingText(replace(little, lines=(("sw", 40),), seed=1), swahili, holds_out=True)
    assert list(another.train("sw")) != trainings


# Held-out text


def test_a_corpus_with_a_development_split_holds_that_out(plan_changed, swahili, tmp_path):
    (tmp_path / "rawtext" / "sw" / "dev").mkdir()
    (tmp_path / "rawtext" / "sw" / "dev" / "b.txt").write_text("mwingine\n", encoding="utf-8")
    (run, *_) = select_kind(Pretrain, plan_changed().runs)
    text = PretrainingText(run, swahili, holds_out=True)
    assert list(text.held_out("sw")) == ["mwingine"]
    assert list(text.train("sw")) == LINES


def test_a_corpus_without_one_holds_out_one_line_in_a_hundred(plan_changed, swahili):
    (run, *_) = select_kind(Pretrain, plan_changed().runs)
    text = PretrainingText(run, swahili, holds_out=True)
    held_out = list(text.held_out("sw"))
    train = list(text.train("sw"))
    assert held_out == LINES[::HELD_OUT_INTERVAL]
    assert sorted([*held_out, *train]) == sorted(LINES)
    assert list(PretrainingText(run, swahili, holds_out=False).train("sw")) == LINES


def test_the_held_out_files_are_part_of_an_evaluated_encoder_alone(plan_changed, tmp_path):
    folder = tmp_path / "rawtext" / "sw"
    (folder / "dev").mkdir(parents=True)
    (folder / "a.txt").write_text("mstari\n", encoding="utf-8")

    def runs(interval):
        text = RECIPE.partition("[grid]")[0].replace('"qaa", "qab"', '"sw"')
        text = text.partition('[[encoder]]\nlabel = "mono-qaa"')[0]
        method = {"name": "masked-language-modelling"}
        if interval:
            method["evaluate_every"] = interval
        path = tmp_path / "sw.toml"
        path.write_text(text, encoding="utf-8")
        changes = {"encoder.0.pretrain.method": method}
        plan = plan_recipe(str(path), out=tmp_path / "runs", data=tmp_path, changes=changes)
        return select_kind(Pretrain, plan.runs)

    runs_before = [runs(0)[0].data, runs(10)[0].data]
    (folder / "dev" / "b.txt").write_text("mwingine\n", encoding="utf-8")
    runs_after = [runs(0)[0].data, runs(10)[0].data]
    assert runs_before[0] == runs_before[1] == runs_after[0] != runs_after[1]


# The paper's architecture


@pytest.mark.slow
@pytest.mark.data
def test_the_papers_encoders_can_be_planned(real_data):
    plan = plan_recipe(str(PAPER), data=real_data.path)
    encoders = select_kind(Pretrain, plan.runs)
    assert len(encoders) == 4
    for run in encoders:
        shape = run.architecture
        assert (shape.layers, shape.dim, shape.heads) == (8, 512, 8)
        assert (shape.feed_forward, shape.vocabulary) == (2048, 32000)
        assert run.method.training.evaluate_every == 10000
    trained_encoders = {(plan.encoders[run.encoder], run.source) for run in select_kind(FineTune, plan.runs)}
    assert trained_encoders == {
        *((label, (language,)) for label in ("joint", "joint, little French") for language in ("en", "fr")),
        ("mono-en", ("en",)),
        ("mono-fr", ("fr",)),
    }


SEEDS = RECIPE.replace(
    'label = "joint"\npretrain = { text = ["rawtext"], languages = ["qaa", "qab"] }',
    'label = "joint"\npretrain = { text = ["rawtext"], languages = ["qaa", "qab"], seed = [0, 1, 2] }',
)


def test_a_model_starts_from_the_encoder_of_its_own_seed(plan_changed):
    runs = plan_changed(SEEDS, grid__seeds=[0, 2]).runs
    joint = [run for run in runs if isinstance(run, Pretrain) and len(run.languages) == 2]
    assert sorted(run.seed for run in joint) == [0, 1, 2]
    assert len({identity(replace(run, seed=0)) for run in joint}) == 1
    models = [run for run in runs if isinstance(run, FineTune)]
    joint_runs = [run for run in models if run.encoder in joint]
    assert sorted((run.encoder.seed, run.seed) for run in joint_runs) == [(0, 0), (2, 2)]
    other_runs = [run for run in models if run.encoder not in joint]
    assert {(run.encoder.seed, run.seed) for run in other_runs} == {(0, 0), (0, 2)}


def test_an_encoder_of_each_seed_is_adjusted_with_its_own_or_all_with_one(plan_changed):
    table = {"name": "procrustes", "bitext": "bitext", "pairs": ["qaa-qab"], "start": "joint"}
    method = {"name": "source-only", "encoders": ["procrustes"], "targets": ["qab"]}
    for seed, result in (([0, 2], [(0, 0), (2, 2)]), (5, [(5, 0), (5, 1), (5, 2)])):
        grid = {"grid__method": [method], "grid__seeds": [0, 2]}
        runs = plan_changed(SEEDS, adjust=[{**table, "seed": seed}], measure=[], **grid).runs
        assert [(run.seed, run.encoder.seed) for run in select_kind(Adjust, runs)] == result
        models = select_kind(FineTune, runs)
        assert [run.seed for run in models] == [run.encoder.original.seed for run in models] == [0, 2]


def test_a_seed_without_an_encoder_of_its_own_is_refused(plan_changed):
    with says(ConfigError, "grid.seeds:"):
        plan_changed(SEEDS, grid__seeds=[0, 3])


def test_one_seed_as_a_list_is_that_seed(plan_changed):
    text = SEEDS.replace("seed = [0, 1, 2]", "seed = [0]")
    assert [identity(run) for run in plan_changed(text).runs] == [
        identity(run) for run in plan_changed().runs
    ]
