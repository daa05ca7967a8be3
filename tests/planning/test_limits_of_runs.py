"""Ids of runs with a limit are new if the limit draws from files, and unchanged otherwise."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from isogloss.core.errors import DataError
from isogloss.data.sources import Sources, combined_fingerprint
from isogloss.engine.engine import make_planned
from isogloss.engine.engines import Execution
from isogloss.features.alignment.run import Align
from isogloss.planning.plan import plan_recipe
from isogloss.runs.fine_tune import FineTune
from isogloss.runs.measure import Measure, read_bitext
from isogloss.runs.translate import TrainTranslator, Translate
from tiny import dotted_changes, select_kind, tiny

RECIPE = """
title = "Limits"
encoder = "shipped"

[grid]
corpus = "pawsx"
source = "en"
targets = ["de"]
seeds = [0, 1]
examples = 5
dev_examples = 6
optimization = { epochs = 1 }

[[grid.method]]
name = "source-only"

[[measure]]
name = "scores"
split = "dev"
examples = 7
"""

TRANSLATING = """
title = "Limits"
encoder = "shipped"

[grid]
corpus = "pawsx"
source = "en"
targets = ["de"]
seeds = [0]
examples = 5
optimization = { epochs = 1 }

[[grid.method]]
name = "translate-train"

[translate]
name = "seq2seq"
train = { bitext = "bitext:news", pairs = ["en-de"], dev = "bitext:news", examples = 3, dev_sentences = 2 }

[[adjust]]
name = "cross-lingual-adjustment"
bitext = "bitext:news"
pairs = ["en-de"]
examples = 4
"""


@pytest.fixture
def data(tmp_path) -> Path:
    """Pairs, and bitext, of English and German."""
    folder = tmp_path / "data"
    (folder / "pawsx").mkdir(parents=True)
    (folder / "news").mkdir()
    for split in ("train", "dev"):
        for language in ("en", "de"):
            lines = [f"one {n}\ttwo\t{n % 2}" for n in range(20)]
            (folder / f"pawsx/{split}-{language}.tsv").write_text("\n".join(lines) + "\n")
            (folder / f"news/{split}.en-de.{language}").write_text("".join(f"a {n}\n" for n in range(20)))
    return folder


def runs_of(tmp_path, data, text=RECIPE, **changes):
    plan = plan_recipe(
        str(tiny(tmp_path, text)), out=tmp_path / "runs", data=data, changes=dotted_changes(**changes)
    )
    return plan.runs


def whole(data, run) -> str:
    """Return the fingerprint of what a run reads as if it had no limit: what it was before limits drew."""
    sources = Sources(str(data))
    fingerprints = [sources.fingerprint(row.corpus, row.language, row.split) for row in run.splits_read]
    return fingerprints[0] if isinstance(run, Translate) else combined_fingerprint(fingerprints)


def test_runs_without_a_limit_keep_their_ids(tmp_path, data):
    runs = runs_of(tmp_path, data, grid__examples=0, grid__dev_examples=0, measure__0__examples=0)
    assert [run.data for run in runs if run.data] == [whole(data, run) for run in runs if run.data]
    assert select_kind(FineTune, runs) and select_kind(Measure, runs)


def test_runs_of_the_built_in_languages_keep_their_ids_under_a_limit(tmp_path, data):
    runs = runs_of(tmp_path, data, grid__source="qaa", grid__targets=["qab"])
    assert [run.data for run in runs if run.data] == [whole(data, run) for run in runs if run.data]
    assert select_kind(FineTune, runs) and select_kind(Measure, runs)


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        (FineTune, {"grid__dev_examples": 0}),
        (FineTune, {"grid__examples": 0}),
        (Measure, {}),
    ],
)
def test_a_limit_of_files_makes_another_run(tmp_path, data, kind, changes):
    runs = select_kind(kind, runs_of(tmp_path, data, **changes))
    assert runs and all(run.data != whole(data, run) for run in runs)


def test_a_measurement_without_a_limit_of_models_with_one_keeps_its_data(tmp_path, data):
    runs = select_kind(Measure, runs_of(tmp_path, data, measure__0__examples=0))
    assert [run.data for run in runs] == [whole(data, run) for run in runs]
    assert runs


def test_limited_translations_and_alignments_of_files_are_other_runs(tmp_path, data):
    runs = runs_of(tmp_path, data, TRANSLATING)
    for kind in (TrainTranslator, Translate, Align):
        result = select_kind(kind, runs)
        assert result and all(run.data != whole(data, run) for run in result), kind


def test_every_seed_reads_the_same_files_and_the_same_draw(tmp_path, data):
    first_run, second = select_kind(FineTune, runs_of(tmp_path, data))
    assert first_run.seed != second.seed and first_run.data == second.data


def test_a_limited_measurement_of_aligned_translations_reads_the_links_of_those_it_draws(tmp_path, data):
    sources = Sources(str(data))
    whole_split = sources.examples("bitext:news", "en-de", "train")
    linked_words = [replace(item, links=((0, 0),)) for item in whole_split]
    run = SimpleNamespace(
        corpus="bitext:news",
        split="train",
        examples=4,
        aligned=(SimpleNamespace(languages="en-de", read_links=lambda _: linked_words),),
    )
    bitext = read_bitext(SimpleNamespace(sources=sources), run, "en-de")
    assert [example.id for example in bitext] == [
        example.id for example in sources.examples("bitext:news", "en-de", "train", examples=4)
    ]
    assert len(bitext) == 4 and all(pair.links for pair in bitext)


def test_a_broken_row_beyond_the_limit_is_found_before_anything_is_made(tmp_path, data):
    with (data / "pawsx/dev-de.tsv").open("a") as file:
        file.write("no label\n")
    plan = plan_recipe(str(tiny(tmp_path, RECIPE)), out=tmp_path / "runs", data=data)
    with pytest.raises(DataError, match=r"dev-de\.tsv:21: "):
        make_planned(plan, Execution(jobs=1))
    assert not list((tmp_path / "runs").glob("*/record.json"))
