"""Plan and record warn if more examples are requested than exist, but not if all are requested."""

import pytest

from isogloss.features.built_in_languages import built_in_size
from isogloss.planning.plan import plan_recipe
from isogloss.runs.execute import size_warnings
from isogloss.runs.fine_tune import FineTune
from tiny import dotted_changes, select_kind, tiny

RECIPE = """
title = "More than there are"

[grid]
corpus = "ud"
task = "upos"
source = "qaa"
targets = ["qab"]
seeds = [0]
examples = 8
dev_examples = 500
optimization = { epochs = 1, learning_rate = 5e-4, batch_size = 8 }

[[grid.method]]
name = "source-only"

[[measure]]
name = "scores"
examples = 401

[[measure]]
name = "cka"
corpus = "bitext"
examples = 600
"""
DEV = "asked for 500 development examples of qaa in ud: there are 400; all were read."
SCORED = [
    f"asked for 401 development examples of {language} in ud: there are 400; all were read."
    for language in ("qaa", "qab")
]
BITEXT = "asked for 600 development examples of qaa-qab in bitext: there are 500; all were read."


def test_a_plan_says_each_once(plan):
    assert sorted(size_warnings(plan())) == sorted([DEV, *SCORED, BITEXT])


def test_all_and_as_many_as_there_are_is_not_more(plan):
    fields = {"grid__examples": built_in_size("ud", "qaa", "train"), "grid__dev_examples": 0}
    runs = select_kind(FineTune, plan(**fields))
    assert size_warnings(runs) == []
    more = plan(grid__examples=fields["grid__examples"] + 1, grid__dev_examples=400)
    (size_warning,) = size_warnings(select_kind(FineTune, more))
    assert size_warning == "asked for 3,001 training examples of qaa in ud: there are 3,000; all were read."


@pytest.mark.nightly
@pytest.mark.slow
def test_records_say_what_was_not_there(finished_study):
    warnings = {
        record.kind + record.title.partition(":")[0]: record.warnings for record in finished_study.records
    }
    assert DEV in warnings["fine-tunesource-only"]
    assert warnings["measurescores"] == tuple(SCORED)
    assert warnings["measurecka"] == (BITEXT,)


def test_files_are_counted_as_far_as_they_are_asked_for(tmp_path):
    from isogloss.data.sources import Sources
    from isogloss.runs.execute import data_warnings

    (tmp_path / "data/pawsx").mkdir(parents=True)
    for language in ("en", "de"):
        lines = [f"one {index}\ttwo\t1" for index in range(3)]
        for split in ("train", "dev"):
            (tmp_path / f"data/pawsx/{split}-{language}.tsv").write_text("\n".join(lines) + "\n")
    changes = dotted_changes(
        grid__corpus="pawsx", grid__task="paraphrase", grid__source="en", grid__targets=["de"],
        grid__examples=3, grid__dev_examples=4, measure=[],
    )  # fmt: skip
    data = tmp_path / "data"
    plan = plan_recipe(str(tiny(tmp_path, RECIPE)), out=tmp_path / "runs", data=data, changes=changes)
    assert size_warnings(plan.runs) == []
    texts = [text for run in plan.runs for text in data_warnings(run, Sources(str(data)))]
    assert texts == ["asked for 4 development examples of en in pawsx: there are 3; all were read."]
