"""Ids of runs with a limit are new if the limit draws from files, and unchanged otherwise."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from isogloss.core.errors import DataError
from isogloss.data.sources import Sources, combined_fingerprint
from isogloss.engine.engine import make_planned
from isogloss.engine.engines import Execution
from isogloss.planning.plan import plan_recipe
from isogloss.runs.align import Align
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
    each = [sources.fingerprint(one.corpus, one.language, one.split) for one in run.splits_read]
    return each[0] if isinstance(run, Translate) else combined_fingerprint(each)


def test_runs_without_a_limit_keep_their_ids(tmp_path, data):
    found = runs_of(tmp_path, data, grid__examples=0, grid__dev_examples=0, measure__0__examples=0)
    assert [run.data for run in found if run.data] == [whole(data, run) for run in found if run.data]
    assert select_kind(FineTune, found) and select_kind(Measure, found)


def test_runs_of_the_built_in_languages_keep_their_ids_under_a_limit(tmp_path, data):
    found = runs_of(tmp_path, data, grid__source="qaa", grid__targets=["qab"])
    assert [run.data for run in found if run.data] == [whole(data, run) for run in found if run.data]
    assert select_kind(FineTune, found) and select_kind(Measure, found)


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        (FineTune, {"grid__dev_examples": 0}),
        (FineTune, {"grid__examples": 0}),
        (Measure, {}),
    ],
)
def test_a_limit_of_files_makes_another_run(tmp_path, data, kind, changes):
    found = select_kind(kind, runs_of(tmp_path, data, **changes))
    assert found and all(run.data != whole(data, run) for run in found)


def test_a_measurement_without_a_limit_of_models_with_one_keeps_its_data(tmp_path, data):
    found = select_kind(Measure, runs_of(tmp_path, data, measure__0__examples=0))
    assert [run.data for run in found] == [whole(data, run) for run in found]
    assert found


def test_limited_translations_and_alignments_of_files_are_other_runs(tmp_path, data):
    found = runs_of(tmp_path, data, TRANSLATING)
    for kind in (TrainTranslator, Translate, Align):
        made = select_kind(kind, found)
        assert made and all(run.data != whole(data, run) for run in made), kind


def test_every_seed_reads_the_same_files_and_the_same_draw(tmp_path, data):
    first, second = select_kind(FineTune, runs_of(tmp_path, data))
    assert first.seed != second.seed and first.data == second.data


def test_a_limited_measurement_of_aligned_translations_reads_the_links_of_those_it_draws(tmp_path, data):
    sources = Sources(str(data))
    whole_split = sources.examples("bitext:news", "en-de", "train")
    linked = [replace(one, links=((0, 0),)) for one in whole_split]
    run = SimpleNamespace(
        corpus="bitext:news",
        split="train",
        examples=4,
        aligned=(SimpleNamespace(languages="en-de", read_links=lambda _: linked),),
    )
    found = read_bitext(SimpleNamespace(sources=sources), run, "en-de")
    assert [one.id for one in found] == [
        one.id for one in sources.examples("bitext:news", "en-de", "train", examples=4)
    ]
    assert len(found) == 4 and all(one.links for one in found)


def test_a_broken_row_beyond_the_limit_is_found_before_anything_is_made(tmp_path, data):
    with (data / "pawsx/dev-de.tsv").open("a") as file:
        file.write("no label\n")
    planned = plan_recipe(str(tiny(tmp_path, RECIPE)), out=tmp_path / "runs", data=data)
    with pytest.raises(DataError, match=r"dev-de\.tsv:21: "):
        make_planned(planned, Execution(jobs=1))
    assert not list((tmp_path / "runs").glob("*/record.json"))
