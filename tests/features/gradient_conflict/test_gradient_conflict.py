"""Gradient conflict of finished models: batches apart, one language alike with itself, rows of every part."""

from collections import Counter
from dataclasses import replace
from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import isogloss
from each import each
from isogloss.core.errors import ConfigError, DataError
from isogloss.features.gradient_conflict.diagnostic import GradientConflict, TaskGradientConflict, overlap
from isogloss.tasks.batch import EncodedRow, group_by_example
from isogloss.training.gradient_conflict import sample_apart
from made_up import SPANS
from measuring import load, measure_setting, subject
from tiny import tiny

LINES = {"en": SPANS[:12], "de": [line[::-1] for line in SPANS[:12]], "fr": SPANS[6:18]}
MEASURE = GradientConflict(batch=4, draws=2, batch_subwords=64)


@pytest.fixture
def setting(bert_folder):
    """Return the setting of a tiny BERT on lines by language."""

    def make_setting(lines=LINES):
        loaded_data = load(bert_folder)
        return replace(
            measure_setting([None], languages=tuple(lines)),
            text=lambda language: iter(lines[language]),
            masked_lm=lambda _: loaded_data,
            precision="float32",
        )

    return make_setting


def test_a_length_without_room_for_text_is_refused():
    for limit in (1, 2):
        with pytest.raises(ConfigError, match=f"{limit}.*3"):
            GradientConflict(limit=limit)


@pytest.mark.slow
def test_there_is_a_row_for_each_draw_pair_and_part(setting):
    rows = MEASURE.measure(setting())
    pairs = set(combinations_with_replacement(LINES, 2))
    assert {(row.first, row.second) for row in rows} == pairs
    parts = {(row.layer, row.module) for row in rows}
    assert {(None, "all"), (None, "attention"), (1, "feed-forward"), (2, "all"), (None, "head")} <= parts
    assert len(rows) == 2 * len(pairs) * len(parts)
    assert {(row.model, row.batch) for row in rows} == {(subject("0").id, 4)}
    assert all(row.cosine is None or -1 <= row.cosine <= 1 for row in rows)
    assert all((row.within is None) or row.first != row.second for row in rows)


@pytest.mark.nightly
@pytest.mark.slow
def test_another_seed_gives_other_rows(setting):
    assert MEASURE.measure(setting()) != replace(MEASURE, seed=1).measure(setting())


@pytest.mark.nightly
@pytest.mark.slow
def test_batches_are_half_of_the_text_where_it_is_short(setting):
    lines = {"en": SPANS[:12], "de": SPANS[:5]}
    assert {row.batch for row in replace(MEASURE, batch=4096).measure(setting(lines))} == {2}


def test_a_language_with_one_sentence_is_refused(setting):
    with pytest.raises(DataError, match=r"gradient conflict: .*de.*1"):
        MEASURE.measure(setting({"en": SPANS[:12], "de": SPANS[:1]}))


def test_one_language_has_its_control(setting):
    assert {(row.first, row.second) for row in MEASURE.measure(setting({"en": SPANS[:12]}))} == {("en", "en")}


def test_no_more_text_is_read_than_batches_hold(setting):
    def endless(language):
        while True:
            row[language] += 1
            yield SPANS[row[language] % len(SPANS)]

    row = Counter()
    MEASURE.measure(replace(setting({"en": SPANS}), text=endless))
    assert row["en"] <= 2 * 4 * 2 + 1


@given(st.integers(2, 60), st.integers(1, 8), st.integers(1, 4), st.integers(0, 9))
def test_two_batches_of_a_draw_share_nothing(count, size, draws, seed):
    size = min(size, count // 2)
    samples = sample_apart(count, size, draws, seed=seed)
    assert len(samples) == draws
    for first_sample, second in samples:
        assert len({*first_sample, *second}) == 2 * size == len(first_sample) + len(second)
        assert 0 <= min(*first_sample, *second) <= max(*first_sample, *second) < count
    if 2 * size * draws <= count:
        assert len({n for both_samples in samples for part in both_samples for n in part}) == 2 * size * draws


def texts(min_size=1):
    return st.lists(st.lists(st.integers(0, 9), min_size=1).map(np.array), min_size=min_size)


@given(texts(), texts())
def test_overlap_is_a_share_that_is_1_for_equal_texts(left, right):
    assert overlap(left, left) == pytest.approx(1)
    assert overlap(left, right) == pytest.approx(overlap(right, left))
    assert 0 <= overlap(left, right) <= 1 + 1e-12
    assert overlap(left, [part + 10 for part in right]) == 0


RECIPE = """
title = "Conflict"

[grid]
corpus = "ud"
task = "upos"
source = "qaa"
targets = ["qab"]
seeds = [0]
examples = 16
dev_examples = 8
optimization = { epochs = 1, learning_rate = 5e-4, batch_size = 8 }

[[grid.method]]
name = "source-only"

[[measure]]
name = "task-gradient-conflict"
batch = 8
draws = 2
examples = 16

[[measure]]
name = "gradient-conflict"
corpus = "rawtext"
languages = ["qaa", "qab"]
examples = 16
batch = 8
draws = 1
"""


@pytest.fixture(scope="module")
def study_rows(tmp_path_factory):
    folder = tmp_path_factory.mktemp("conflict")
    result = isogloss.run(tiny(folder, RECIPE), out=folder / "runs", jobs=1, report=False)
    assert not result.outcome.failed
    kinds = {record.id: record.kind for record in result.records}
    rows = {
        record.run["diagnostic"]["kind"]: record.rows for record in result.records if record.kind == "measure"
    }
    assert {kinds.get(row["model"]) for row in rows[TaskGradientConflict.name]} == {"fine-tune"}
    return rows


@pytest.mark.nightly
@pytest.mark.slow
def test_a_recipe_measures_encoders_on_text_and_models_on_examples(study_rows):
    assert study_rows.keys() == {GradientConflict.name, TaskGradientConflict.name}
    for name, rows in study_rows.items():
        assert {(row["first"], row["second"]) for row in rows} == {
            ("qaa", "qaa"),
            ("qaa", "qab"),
            ("qab", "qab"),
        }
        assert {row["batch"] for row in rows} == {8}
        assert all(
            (row["overlap"] is None) == (name == TaskGradientConflict.name)
            for row in rows
            if row["first"] != row["second"]
        )


@pytest.mark.nightly
def test_the_loss_of_a_task_is_shared_more_within_a_language(study_rows):
    """After a few steps on 16 sentences the gradient is far from noise."""
    whole_rows = [
        row for row in study_rows[TaskGradientConflict.name] if (row["layer"], row["module"]) == (None, "all")
    ]
    inner_rows = [row for row in whole_rows if row["first"] == row["second"]]
    across_rows = [row for row in whole_rows if row["first"] != row["second"]]
    assert all(row["cosine"] > 0.3 for row in each(inner_rows))
    assert all(row["cosine"] < row["within"] for row in each(across_rows))


def test_windows_of_one_example_stay_together():
    rows = [EncodedRow(example=index, subwords=(0,)) for index in (0, 1, 1, 0, 2)]
    result = list(group_by_example(rows).values())
    assert [[row.example for row in own_part] for own_part in result] == [[0, 0], [1, 1], [2]]
