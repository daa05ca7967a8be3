"""Adjustments, alignments, tasks and teachers become runs that others need. Mistakes are found first."""

from collections import Counter
from pathlib import Path

import pytest

from isogloss.core.errors import ConfigError
from isogloss.core.identity import content, identity
from isogloss.features.adjustment.run import Adjust
from isogloss.features.alignment.run import Align
from isogloss.planning.plan import plan_recipe
from isogloss.runs.fine_tune import FineTune
from isogloss.runs.measure import Measure
from isogloss.runs.run import needs, parts_of
from says import says
from tiny import select_kind

RECIPE = """
title = "Adjust"
encoder = "shipped"

[[adjust]]
name = "cross-lingual-adjustment"
bitext = "bitext"
pairs = ["qaa-qad", "qaa-qab"]
examples = [20, 40]

[grid]
corpus = "ud"
task = "upos"
source = "qaa"
targets = ["qad"]
seeds = [0]

[[grid.method]]
name = "source-only"

[[grid.method]]
name = "source-only"
auxiliary = { name = "alignment-loss", bitext = "bitext" }
encoders = ["original"]

[[measure]]
name = "scores"

[[measure]]
name = "word-distance"
corpus = "bitext"
split = "test"
languages = ["qaa", "qad"]
"""


def test_each_size_makes_an_encoder_and_aligns_each_pair_once(plan):
    runs = plan()
    adjusted_runs = select_kind(Adjust, runs)
    assert [[item.examples for item in run.aligned] for run in adjusted_runs] == [[20, 20], [40, 40]]
    assert [item.languages for item in adjusted_runs[0].aligned] == ["qaa-qad", "qaa-qab"]
    assert len({adjusted_run.label for adjusted_run in adjusted_runs}) == 2
    assert "on 20 qaa-qad+qaa-qab" in adjusted_runs[0].label
    # Two sizes of two pairs, all of one pair for continual learning, and a test set for the distances.
    assert Counter((run.split, run.examples) for run in select_kind(Align, runs)) == {
        ("train", 20): 2,
        ("train", 40): 2,
        ("train", 0): 1,
        ("test", 0): 1,
    }


@pytest.mark.parametrize(
    "method",
    [
        {"name": "contrastive-alignment", "level": "sentence"},
        {"name": "procrustes", "level": "sentence"},
        {"name": "cross-lingual-adjustment", "pulled": "opening"},
    ],
)
def test_a_method_that_reads_whole_sentences_aligns_no_words(plan, method):
    adjust = [{**method, "bitext": "bitext", "pairs": ["qaa-qad"]}]
    (runs,), (other_runs,) = (
        select_kind(Adjust, plan(adjust=adjust, align={"name": name})) for name in ("fast-align", "encoder")
    )
    assert (
        runs == other_runs and runs.aligned[0].aligner.name == "unlinked" and runs.aligned[0].encoder is None
    )


def test_a_word_may_be_left_for_subwords_that_are_linked_in_its_place(plan, get_refusal):
    tables = {"adjust__0__word": "aligned-subwords", "adjust__0__examples": 20}
    loss = {"name": "alignment-loss", "bitext": "bitext", "word": "aligned-subwords"}
    runs = plan(**tables, grid__method__1__auxiliary=loss)
    (adjusted_run,) = select_kind(Adjust, runs)
    (continual,) = (run for run in select_kind(FineTune, runs) if run.auxiliary)
    for run in (*adjusted_run.aligned, *continual.aligned):
        assert run.tokenizer == adjusted_run.original and run.title.endswith(", subwords")
    (words,) = (text for text in select_kind(Align, runs) if text.split == "test")
    assert words.tokenizer is None and "tokenizer" not in content(words)
    whole_plan = plan(**tables, adjust__0__pulled="special")
    assert all(item.tokenizer is None for item in select_kind(Adjust, whole_plan)[0].aligned)
    for aligner in ("encoder", "given"):
        refusal = get_refusal(**tables, align={"name": aligner})
        assert f"aligner '{aligner}' links" in refusal


def test_methods_keep_to_the_encoders_they_name(plan):
    result = Counter(run.auxiliary is None for run in select_kind(FineTune, plan()))
    assert result == {True: 3, False: 1}
    (continual,) = (run for run in select_kind(FineTune, plan()) if run.auxiliary)
    assert [item.languages for item in continual.aligned] == ["qaa-qad"]


def test_states_are_looked_at_in_every_encoder_and_model(plan):
    looked_at = [run for run in select_kind(Measure, plan()) if run.diagnostic.name == "word-distance"]
    assert Counter(run.subjects[0].name for run in looked_at) == {
        "pretrained": 1,
        "adjust": 2,
        "fine-tune": 4,
    }
    assert all([item.languages for item in run.aligned] == ["qaa-qad"] for run in looked_at)


def test_an_adjustment_may_start_where_another_ended(plan):
    first_item = {"name": "contrastive-alignment", "bitext": "bitext", "pairs": ["qaa-qad"], "examples": 9}
    second = {**first_item, "name": "procrustes", "start": "pulled", "label": "both"}
    run, two = select_kind(Adjust, plan(adjust=[{**first_item, "label": "pulled"}, second]))
    assert two.encoder == run


def test_a_list_of_seeds_makes_an_encoder_for_each_and_a_model_starts_from_that_of_its_own(plan):
    sampled_value = {"adjust__0__sample": "random", "adjust__0__seed": [0, 1], "grid__seeds": [1, 0]}
    runs = plan(**sampled_value)
    adjusted_runs = select_kind(Adjust, runs)
    assert [(run.sampled, run.seed) for run in adjusted_runs] == [(20, 0), (20, 1), (40, 0), (40, 1)]
    # The words of the whole bitext are aligned once, for all samples and for continual learning.
    assert Counter((run.split, run.examples) for run in select_kind(Align, runs)) == {
        ("train", 0): 2,
        ("test", 0): 1,
    }
    assert all(adjusted_runs[0].aligned == adjusted_run.aligned for adjusted_run in adjusted_runs)
    models = [run for run in select_kind(FineTune, runs) if isinstance(run.encoder, Adjust)]
    assert len(models) == 4 and all(run.seed == run.encoder.seed for run in models)
    assert [{split.examples for split in run.splits_read} for run in adjusted_runs] == [
        {20},
        {20},
        {40},
        {40},
    ]


def test_samples_start_from_the_encoder_of_their_own_seed_where_each_has_one(plan):
    table = {"name": "cross-lingual-adjustment", "bitext": "bitext", "pairs": ["qaa-qad"], "seed": [0, 1]}
    again = {**table, "label": "again", "start": "cross-lingual-adjustment"}
    further = {**table, "label": "one seed", "start": "again", "seed": 5}
    runs = plan(adjust=[table, again, further], grid__seeds=[0, 1], measure=[])
    result = [run for run in select_kind(Adjust, runs) if isinstance(run.encoder, Adjust)]
    assert [run.seed for run in result] == [run.encoder.seed for run in result if run.seed != 5] + [5, 5]
    last_runs = [
        run for run in select_kind(FineTune, runs) if run.encoder.name == "adjust" and run.encoder.seed == 5
    ]
    assert [run.seed for run in last_runs] == [run.encoder.encoder.seed for run in last_runs] == [0, 1]


def test_one_seed_is_what_it_was(plan):
    changes = {"grid__seeds": [3, 4]}
    once, listed_plan = (plan(**changes, adjust__0__seed=seed) for seed in (0, [0]))
    assert [identity(run) for run in once] == [identity(run) for run in listed_plan] != []
    assert Counter(run.seed for run in select_kind(FineTune, once)) == {3: 4, 4: 4}
    (run, _) = select_kind(Adjust, once)
    assert "sampled" not in content(run) and not run.splits_read


def test_a_small_split_is_aligned_with_the_statistics_of_the_training_split(plan):
    (test,) = (run for run in select_kind(Align, plan()) if run.split == "test")
    assert [text.split for text in test.splits_read] == ["train", "test"]
    plan_by_states = plan(align={"name": "encoder"})
    (test,) = (run for run in select_kind(Align, plan_by_states) if run.split == "test")
    assert [text.split for text in test.splits_read] == ["test"]
    assert test.encoder is not None


def test_a_grid_of_tasks_takes_each_on_the_corpora_that_have_it(plan):
    changes = {"grid__corpus": ["ud", "wikiann", "xnli"], "grid__task": ["upos", "ner", "nli"], "adjust": []}
    assert {run.task for run in select_kind(FineTune, plan(**changes))} == {"upos", "ner", "nli"}
    items = [{"name": "scores", "tasks": ["nli"], "inputs": "mixed"}]
    looked_at = select_kind(Measure, plan(**changes, measure=items))
    assert {run.subjects[0].task for run in looked_at} == {"nli"}


def test_translations_are_labelled_by_the_source_only_model_of_the_grid(plan):
    methods = [{"name": "source-only"}, {"name": "x-mixup", "batch_size": 8}]
    measurement = [{"name": "scores", "inputs": "paired"}]
    runs = select_kind(FineTune, plan(adjust=[], grid__method=methods, measure=measurement))
    plain_run, mixed_run = sorted(runs, key=lambda run: run.method.name)
    assert mixed_run.teacher == plain_run
    assert needs(mixed_run) == (plain_run,)
    only = select_kind(FineTune, plan(adjust=[], grid__method=methods[1:], measure=measurement))
    assert {identity(run) for run in only} == {identity(run) for run in runs}
    nli = plan(adjust=[], grid__corpus="xnli", grid__task="nli", grid__method=methods, measure=measurement)
    assert all(run.teacher is None for run in select_kind(FineTune, nli))
    # Only models that mix are looked at with their inputs in pairs.
    assert [run.subjects[0].method.name for run in select_kind(Measure, nli)] == ["x-mixup"]


XTUNE = [
    {
        "name": "source-only",
        "auxiliary": {"name": "model-consistency"},
        "teacher": "first",
        "label": "second",
    },
    {"name": "source-only", "label": "first", "epochs": 1},
]


def test_a_second_stage_is_kept_near_the_model_it_names(plan, get_refusal):
    options = {"adjust": [], "measure": [{"name": "scores"}], "translate": {"name": "built-in"}}
    second, first_run = select_kind(FineTune, plan(grid__method=XTUNE, **options))[::-1]
    assert (second.teacher, second.target, first_run.teacher) == (first_run, ("qad",), None)
    assert [(run.languages, run.split, run.tags) for run in second.translated] == [("qaa-qad", "train", None)]
    assert first_run in needs(second) and [split.split for split in second.splits_read] == ["train", "dev"]
    (unnamed_run,) = (
        run
        for run in select_kind(FineTune, plan(grid__method=[{**XTUNE[0], "teacher": ""}], **options))
        if run.auxiliary
    )
    assert unnamed_run.teacher.method.name == "source-only" and unnamed_run.teacher.optimization.epochs == 5
    for methods, message in (
        ([XTUNE[0]], "teacher:"),
        ([{**XTUNE[0], "auxiliary": {}}, XTUNE[1]], "model's predictions"),
        ([XTUNE[0], {**XTUNE[1], "teacher": "second"}], "teacher:"),
        ([XTUNE[0], {**XTUNE[1], "encoders": ["other"]}], "recipe 'other'"),
    ):
        assert message in get_refusal(grid__method=methods, **options)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"adjust__0__name": "cross-lingual-adjustmint"}, "Did you mean 'cross-lingual-adjustment'?"),
        ({"adjust__0__alhpa": 1}, "cross-lingual-adjustment"),
        ({"adjust__0__start": "orginal"}, "recipe 'orginal'"),
        ({"adjust__0__pairs": ["qaa"]}, "pair"),
        ({"adjust__0__pairs": []}, "pairs:"),
        ({"adjust__0__examples": [5, 5]}, "examples:"),
        ({"adjust__0__bitext": "ud"}, "bitext: corpus 'ud' holds"),
        ({"adjust__0__label": "original", "adjust__0__examples": 5}, "'original'"),
        ({"adjust__0__precision": "float8"}, "adjust[0]: precision"),
        ({"adjust__0__sample": "first"}, "sample: found 'first'; expected"),
        ({"adjust__0__sample": "random", "adjust__0__examples": 0}, "examples"),
        ({"adjust__0__seed": [0, 0]}, "seed:"),
        ({"adjust__0__seed": [1, 2]}, "grid.seeds: 0:"),
        ({"align": {"name": "fats-align"}}, "Did you mean 'fast-align'?"),
        ({"align": {"symetrization": "union"}}, "Did you mean 'symmetrization'?"),
        ({"grid__method__1__encoders": ["adjusted"]}, "encoders:"),
        ({"grid__task": ["upos", "nli"]}, "corpus"),
        ({"grid__task": "nli"}, "'nli'"),
        ({"measure__0__tasks": ["ner"]}, "grid 'ner'"),
        ({"measure__1__corpus": ""}, "word-distance needs bitext"),
    ],
)
def test_mistakes_are_found_before_anything_is_made(get_refusal, changes, message):
    assert message in get_refusal(**changes)


@pytest.mark.slow
def test_the_example_for_the_built_in_languages_is_what_it_says():
    path = Path(__file__).parents[2] / "examples/adjust.toml"
    runs = plan_recipe(str(path)).runs
    sizes = [run.aligned[0].examples for run in select_kind(Adjust, runs)]
    assert sizes == [1000, 5000, 10000, 30000, 100000, 10000]
    assert {run.seed for run in select_kind(FineTune, runs)} == {0, 1, 2, 3, 4}


def test_any_method_carries_an_auxiliary_loss_beside_itself_without_it(plan):
    text = RECIPE.replace('encoders = ["original"]\n', "")
    carrying = text.replace(
        '[[grid.method]]\nname = "source-only"\nauxiliary',
        '[[grid.method]]\nname = "bilingual"\n\n[[grid.method]]\nname = "bilingual"\nauxiliary',
    )
    assert carrying != text
    runs = [run for run in select_kind(FineTune, plan(carrying)) if run.method.name == "bilingual"]
    assert sum(run.auxiliary is not None for run in runs) * 2 == len(runs) > 0
    assert all((run.aligned is None) == (run.auxiliary is None) for run in runs)


def test_a_loss_that_reads_the_original_encoder_needs_it_also_on_an_adjusted_one(plan):
    identities_before = {identity(run) for run in select_kind(FineTune, plan())}
    text = RECIPE.replace('bitext = "bitext" }\nencoders', 'bitext = "bitext", reference = "original" }\n#')
    runs = [run for run in select_kind(FineTune, plan(text)) if run.auxiliary]
    assert len(runs) == 3
    assert {run.original for run in runs} == {run.encoder.original for run in runs}
    assert all(run.original in parts_of(run) for run in runs)
    assert {
        identity(run) for run in select_kind(FineTune, plan(text)) if not run.auxiliary
    } < identities_before


@pytest.mark.parametrize("name", ["continual", "continual-few-shot"])
def test_continual_learning_as_a_method_is_refused_and_says_what_to_write(plan, name):
    text = RECIPE.replace('name = "source-only"\nauxiliary', f'name = "{name}"\nauxiliary')
    with says(ConfigError, "auxiliary = {", 'name = "alignment-loss",', 'bitext = "…"'):
        plan(text)


def test_further_tasks_are_read_in_the_source_language_with_the_lengths_of_their_own(plan, get_refusal):
    def methods(*tasks, **fields):
        return [{"name": "source-only", "auxiliary": {"name": "multi-task", "tasks": list(tasks), **fields}}]

    options = {"adjust": [], "measure": [{"name": "scores"}]}
    (run,) = select_kind(FineTune, plan(grid__method=methods("parsing", "qa:squad"), **options))
    parsing, answers = run.further
    assert (parsing.task, parsing.corpus, answers.corpus) == ("parsing", "ud", "squad")
    assert parsing.limit < answers.limit and run.target == ()
    read = {(part.corpus, part.language, part.split) for part in run.splits_read}
    assert read == {(corpus, "qaa", split) for corpus in ("ud", "squad") for split in ("train", "dev")}
    (other_run,) = select_kind(FineTune, plan(grid__method=methods("parsing"), **options))
    assert identity(other_run) != identity(run) and other_run.data != run.data
    (plain_run,) = select_kind(FineTune, plan(grid__method=methods("parsing", weight=0.0), **options))
    assert plain_run.further is None
    for tasks, message in (
        (["ner"], "auxiliary.tasks: corpus 'ud' holds"),
        (["nre:wikiann"], "no task 'nre'. Did you mean 'ner'?"),
        (["ner:wikian"], "no corpus 'wikian'. Did you mean 'wikiann'?"),
        (["upos"], "tasks"),
    ):
        assert message in get_refusal(grid__method=methods(*tasks), **options)
