"""A recipe's [translate] turns what is read in translation into runs. Mistakes are found beforehand."""

from collections import Counter
from pathlib import Path

import pytest

from isogloss.core.errors import ConfigError, InputError
from isogloss.core.identity import content, identity
from isogloss.features.translation.run import TrainTranslator, Translate
from isogloss.planning.plan import plan_recipe
from isogloss.runs.fine_tune import FineTune
from isogloss.runs.measure import Measure
from isogloss.runs.pretrained import Pretrained
from isogloss.runs.run import needs
from says import says
from tiny import select_kind

RECIPE = """
title = "Translated"
encoder = "shipped"

[grid]
corpus = "xnli"
source = "qaa"
targets = ["qab", "qad"]
seeds = [0, 1]
examples = 16
dev_examples = 8

[[grid.method]]
name = "source-only"

[[grid.method]]
name = "translate-train"

[[grid.method]]
name = "x-mixup"

[[measure]]
name = "scores"
inputs = "translated"
methods = ["source-only"]
"""
BUILT_IN = {"name": "built-in"}
TRAIN = {"bitext": "bitext", "pairs": ["qaa-qab", "qaa-qad"]}
EXAMPLES = Path(__file__).parents[3] / "examples"


def test_without_the_table_translations_are_read_from_files_and_ids_say_nothing_of_them(plan):
    runs = plan()
    assert not select_kind(Translate, runs)
    assert all(run.translated is None for run in select_kind(FineTune, runs) + select_kind(Measure, runs))
    (trained_run, *_) = (run for run in select_kind(FineTune, runs) if run.method.name == "translate-train")
    assert "translated" not in content(trained_run)
    assert content(trained_run.method) == {"kind": "translate-train", "with_source": True}


def test_each_direction_is_translated_once_for_all_methods_and_seeds(plan):
    runs = select_kind(Translate, plan(translate=BUILT_IN))
    assert Counter((run.languages, run.split, run.examples) for run in runs) == {
        ("qaa-qab", "train", 16): 1,
        ("qaa-qad", "train", 16): 1,
        ("qaa-qab-qaa", "train", 0): 1,
        ("qaa-qad-qaa", "train", 0): 1,
        ("qab-qaa", "dev", 0): 1,
        ("qad-qaa", "dev", 0): 1,
    }


@pytest.mark.parametrize(
    ("method", "tags"),
    [
        ({"name": "translate-train"}, "links"),
        ({"name": "translate-train", "labels": "teacher"}, None),
        ({"name": "x-mixup"}, None),
        ({"name": "x-mixup", "labels": "projected"}, "links"),
        ({"name": "consistency", "labels": "projected"}, "links"),
        ({"name": "consistency"}, None),
    ],
)
def test_tags_are_projected_for_a_method_that_trains_on_them(plan, method, tags):
    request = {"grid__corpus": "wikiann", "grid__method": [method], "measure": [{"name": "scores"}]}
    runs = select_kind(Translate, plan(translate=BUILT_IN, **request))
    assert {(run.tags, run.aligner) for run in runs} == {(tags, None)}


LINKED = {"name": "x-mixup", "label": "by links", "attends": "links"}
TAGGING = {
    "grid__corpus": "ud",
    "grid__task": "upos",
    "grid__seeds": [0],
    "grid__targets": ["qad"],
    "measure": [{"name": "scores"}, {"name": "scores", "inputs": "paired"}],
}


def test_consistency_reads_links_in_tagging_alone(plan):
    method = {"grid__method": [{"name": "consistency"}], "measure": [{"name": "scores"}]}
    tagging_runs = select_kind(Translate, plan(translate=BUILT_IN, **{**TAGGING, **method}))
    assert {(run.links, run.tags) for run in tagging_runs} == {("links", None)}
    assert {(run.links, run.tags) for run in select_kind(Translate, plan(translate=BUILT_IN, **method))} == {
        (None, None)
    }


def test_links_are_kept_for_a_method_that_reads_them_and_nothing_else_changes(plan):
    methods = [{"name": "x-mixup"}, {"name": "translate-train", "labels": "teacher"}]
    plan_before = plan(translate=BUILT_IN, **TAGGING, grid__method=methods)
    runs = plan(translate=BUILT_IN, **TAGGING, grid__method=[*methods, LINKED])
    assert {identity(value) for value in plan_before} < {identity(value) for value in runs}
    assert all("links" not in content(run) for run in select_kind(Translate, plan_before))
    added_runs = [run for run in runs if identity(run) not in {identity(value) for value in plan_before}]
    row = {run.languages: run for run in select_kind(Translate, added_runs)}
    assert row.keys() == {"qaa-qad", "qaa-qad-qaa", "qad-qaa"}
    assert {(run.links, run.tags, run.aligner) for run in row.values()} == {("links", None, None)}
    assert row["qaa-qad-qaa"].start == row["qaa-qad"]
    (model,) = select_kind(FineTune, added_runs)
    assert model.translated == (row["qaa-qad"], row["qaa-qad-qaa"])
    assert {run.translated for run in select_kind(Measure, added_runs)} == {None, (row["qad-qaa"],)}


def test_a_translator_that_knows_no_links_has_them_from_the_recipes_aligner(plan):
    seq2seq = {"name": "seq2seq", "train": {**TRAIN, "pairs": ["qaa-qad"]}}
    runs = plan(translate=seq2seq, align={"name": "eflomal"}, **TAGGING, grid__method=[LINKED])
    result = select_kind(Translate, runs)
    assert {(run.links, run.tags, run.aligner.name) for run in result} == {("alignment", None, "eflomal")}
    assert {run.languages for run in result} == {"qaa-qad", "qaa-qad-qaa", "qad-qaa"}


def test_what_is_translated_back_was_translated_there(plan):
    runs = {run.languages: run for run in select_kind(Translate, plan(translate=BUILT_IN))}
    assert runs["qaa-qab-qaa"].start == runs["qaa-qab"]
    assert needs(runs["qaa-qab-qaa"]) == (runs["qaa-qab"],)
    assert runs["qaa-qab-qaa"].translator == runs["qaa-qab"].translator


def test_models_need_the_translations_they_read_and_no_files_of_them(plan):
    runs = plan(translate=BUILT_IN)
    (mixed_run,) = (
        run
        for run in select_kind(FineTune, runs)
        if run.method.name == "x-mixup" and run.target == ("qab",) and not run.seed
    )
    assert [item.languages for item in mixed_run.translated] == ["qaa-qab", "qaa-qab-qaa"]
    assert set(mixed_run.translated) <= set(needs(mixed_run))
    assert {(row.language, row.split) for row in mixed_run.splits_read} == {("qaa", "train"), ("qaa", "dev")}
    (folder, _) = mixed_run.translated
    assert [(row.language, row.split, row.examples) for row in folder.splits_read] == [("qaa", "train", 16)]
    identities = set()
    for run in runs:
        assert all(identity(part) in identities for part in needs(run))
        identities.add(identity(run))


def test_each_value_of_a_list_is_a_translator_and_models_are_measured_with_their_own(plan):
    noises = (0.0, 0.2)
    measurement = [
        {"name": "scores"},
        {"name": "scores", "inputs": "paired"},
        {"name": "scores", "inputs": "translated"},
    ]
    runs = plan(
        translate={**BUILT_IN, "noise": list(noises)},
        measure=measurement,
        grid__seeds=[0],
        grid__targets=["qad"],
    )
    assert Counter(run.method.name for run in select_kind(FineTune, runs)) == {
        "source-only": 1,
        "translate-train": 2,
        "x-mixup": 2,
    }
    looked_at = select_kind(Measure, runs)
    assert len({run.title for run in looked_at}) == len(looked_at) == 5 + 2 + (2 + 2 + 2)
    for run in looked_at:
        own_translators = {item.translator for item in run.subjects[0].translated or ()}
        inputs = {item.translator for item in run.translated or ()}
        assert not own_translators or not inputs or own_translators == inputs
    plan_by_label = plan(
        translate={**BUILT_IN, "noise": list(noises)},
        measure=[{"name": "scores", "methods": ["translate-train (noise=0.2)"]}],
    )
    assert {
        item.translator.noise
        for run in select_kind(Measure, plan_by_label)
        for item in run.subjects[0].translated
    } == {0.2}


def test_answers_are_looked_for_in_training_and_leave_no_trace_where_models_are_tested(plan):
    measurement = [{"name": "scores", "inputs": inputs} for inputs in ("paired", "translated")]
    changes = {
        "grid__corpus": "squad",
        "grid__targets": ["qad"],
        "grid__seeds": [0],
        "translate__train": TRAIN,
    }
    runs = plan(**changes, translate__name="seq2seq", measure=measurement)
    ways = {(run.languages, run.split, run.answers) for run in select_kind(Translate, runs)}
    assert ways == {
        ("qaa-qad", "train", ("marks", "alone")),
        ("qaa-qad-qaa", "train", ("marks", "alone")),
        ("qad-qaa", "dev", ()),
        ("qad-qaa", "dev", ("alone",)),
    }
    (paired_run,) = (run for run in select_kind(Measure, runs) if run.inputs == "paired")
    assert [item.answers for item in paired_run.translated] == [()]
    links = select_kind(Translate, plan(**{**changes, "translate__train": {}}, translate__name="built-in"))
    assert {run.answers for run in links if run.split == "train"} == {("links", "alone")}


def test_answers_found_by_alignment_take_the_recipes_aligner_and_its_encoder(plan):
    request = {**BUILT_IN, "answers": ["alignment"]}
    changes = {"grid__corpus": "squad", "align": {"name": "encoder"}, "translate": request, "measure": []}
    (run, *_) = select_kind(Translate, plan(**changes))
    assert run.aligner.name == "encoder"
    assert isinstance(run.encoder, Pretrained)
    nli = select_kind(Translate, plan(**{**changes, "grid__corpus": "xnli"}))
    assert all((run.aligner, run.encoder, run.answers) == (None, None, None) for run in nli)


def test_a_translator_that_is_trained_serves_every_direction(plan):
    runs = plan(translate={"name": "seq2seq", "train": {**TRAIN, "steps": 7}, "scored": ["bitext"]})
    (trained_run,) = select_kind(TrainTranslator, runs)
    assert trained_run.method.steps == 7
    assert {run.model for run in select_kind(Translate, runs)} == {trained_run}
    scored_languages = {run.languages for run in select_kind(Translate, runs) if run.corpus == "bitext"}
    assert scored_languages == {"qaa-qab", "qab-qaa", "qaa-qad", "qad-qaa"}
    assert [(row.language, row.split) for row in trained_run.splits_read] == [
        ("qaa-qab", "train"),
        ("qaa-qad", "train"),
    ]


def test_tags_come_from_a_teacher_where_translations_are_made(plan):
    taught_value = [{"name": "source-only"}, {"name": "translate-train", "labels": "teacher"}]
    changes = {
        "grid__corpus": "ud",
        "grid__task": "upos",
        "measure": [],
        "grid__seeds": [0],
        "grid__targets": ["qad"],
    }
    plain_run, trained_run = select_kind(
        FineTune, plan(**changes, translate=BUILT_IN, grid__method=taught_value)
    )
    assert trained_run.teacher == plain_run
    (trained_run,) = (
        run for run in select_kind(FineTune, plan(**changes, grid__method=taught_value)) if run.teacher
    )
    assert trained_run.translated is None
    nli = select_kind(FineTune, plan(translate=BUILT_IN, grid__method=taught_value, measure=[]))
    assert all(run.teacher is None for run in nli)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"translate": {"name": "bulit-in"}},
            "translate: no translator 'bulit-in'. Did you mean 'built-in'?",
        ),
        ({"translate": {"noise": 0.1}}, "translate: name:"),
        (
            {"translate": {**BUILT_IN, "nois": 0.1}},
            "nois:",
        ),
        ({"translate": {**BUILT_IN, "noise": 2.0}}, "noise:"),
        ({"translate": {**BUILT_IN, "noise": [0.1, 0.1]}}, "translate.noise:"),
        ({"translate": {**BUILT_IN, "model": "x"}}, "translator built-in"),
        (
            {"translate": {**BUILT_IN, "answers": ["mark"]}},
            "translate.answers: no way to find them again 'mark'. Did",
        ),
        ({"translate": {"name": "seq2seq"}}, "seq2seq"),
        ({"translate": {"name": "seq2seq", "model": "./x"}}, "translate.model: x:"),
        (
            {"translate": {"name": "seq2seq", "answers": ["links"]}},
            "seq2seq",
        ),
        (
            {"translate": {"name": "seq2seq", "train": {**TRAIN, "pairs": ["qaa-qab"]}}},
            "translate qaa-qad",
        ),
        (
            {"translate": {"name": "seq2seq", "train": {**TRAIN, "bitext": "ud"}}},
            "translate.train.bitext: corpus 'ud'",
        ),
        (
            {"translate": {"name": "seq2seq", "train": {**TRAIN, "stesp": 3}}},
            "stesp: training translation-modelling has",
        ),
        (
            {"translate": {"name": "seq2seq", "train": {**TRAIN, "pairs": ["qaa"]}}},
            "pair",
        ),
        (
            {"translate": {"name": "seq2seq", "train": {**TRAIN, "steps": 0}}},
            "steps:",
        ),
        (
            {"translate": {"name": "seq2seq", "train": TRAIN, "model": "x"}},
            "exists",
        ),
        (
            {"translate": {**BUILT_IN, "scored": ["bitext"]}},
            "translate.scored:",
        ),
        (
            {"translate": {**BUILT_IN, "scored": ["ud"], "pairs": ["qaa-qab"]}},
            "translate.scored: corpus 'ud' holds",
        ),
        (
            {"translate": BUILT_IN, "grid__method": [LINKED], "measure": []},
            "tagging (ner, upos",
        ),
        (
            {**TAGGING, "grid__method": [LINKED]},
            "translations",
        ),
        (
            {"translate": BUILT_IN, "grid__corpus": "ud", "grid__task": "parsing"},
            "translate-train",
        ),
        (
            {
                "translate": BUILT_IN,
                "grid__corpus": "wikiann",
                "grid__method": [{"name": "source-only"}],
            },
            "translation",
        ),
    ],
)
def test_mistakes_are_found_before_anything_is_made(plan, changes, message):
    with pytest.raises(InputError) as error:
        plan(**changes)
    assert message in str(error.value)
    assert "tiny.toml" in str(error.value)


def test_languages_a_translator_does_not_know_are_refused_at_once(plan, tmp_path):
    with says(ConfigError, "'sw'"):
        plan(translate=BUILT_IN, grid__targets=["sw"])


@pytest.mark.parametrize("name", ["translate", "translation_noise"])
def test_the_examples_for_the_built_in_languages_are_what_they_say(name):
    runs = plan_recipe(str(EXAMPLES / f"{name}.toml")).runs
    assert select_kind(Translate, runs)
    assert {type(run).__name__ for run in runs} >= {"FineTune", "Measure", "Translate"}
