"""Self-training: its labels by hand, both neutral settings to the bit, and a target without labels."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import isogloss
from each import each
from in_translation import READ, setting
from isogloss.core.errors import ConfigError, DataError
from isogloss.core.run_parts import with_fields
from isogloss.encoders.saving import save_model
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.self_training.method import SelfTraining, label_row, predict_labels
from isogloss.methods.plain import Bilingual, SourceOnly
from isogloss.runs.fine_tune import FineTune
from isogloss.tasks import TASKS
from isogloss.tasks.batch import IGNORED, EncodedRow
from isogloss.training.evaluation import evaluation
from says import says
from trained import equal

RECIPE = """
title = "Self-training"

[grid]
corpus = "wikiann"
source = "qaa"
targets = ["qab"]
seeds = [0]

[[grid.method]]
name = "source-only"

[[grid.method]]
name = "self-training"

[[grid.method]]
name = "self-training"
label = "second round"
teacher = "self-training"
threshold = 0.8

[[measure]]
name = "scores"
"""

HELPFUL = """
seeds = [0, 1]
examples = 600
dev_examples = 100
optimization = { epochs = 3, learning_rate = 5e-4 }
"""
"""A grid in which the teacher is hardly ever sure, so that all of its labels are learned."""


@given(
    st.lists(st.lists(st.integers(1, 9), min_size=3, max_size=3), min_size=1, max_size=5),
    st.sampled_from([0.0, 0.3, 0.5, 0.9, 1.0]),
)
def test_a_label_is_the_most_probable_class_where_its_probability_exceeds_the_threshold(counts, threshold):
    rows = [[count / sum(row) for count in row] for row in counts]
    expected = [row.index(max(row)) if max(row) > threshold else IGNORED for row in rows]
    for probabilities in (np.array(rows), torch.tensor(rows, dtype=torch.float64)):
        assert isogloss.silver_labels(probabilities, threshold=threshold).tolist() == expected


WRONG = {
    "logits": (np.array([[2.0, -1.0]]), 0.9, DataError, ("softmax",)),
    "one text": (np.array([0.5, 0.5]), 0.9, DataError, ("[2]", "[item, class]")),
    "a threshold in percent": (np.array([[0.5, 0.5]]), 90, ConfigError, ("threshold", "90")),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_has_no_silver_labels_is_refused(case):
    probabilities, threshold, error, facts = WRONG[case]
    with says(error, "silver_labels", *facts):
        isogloss.silver_labels(probabilities, threshold=threshold)


def test_a_row_is_scored_only_at_labelled_words():
    row = EncodedRow(example=0, subwords=[2, 5, 6, 7, 8, 3], positions=range(1, 4), words=range(3))
    labels = np.array([1, IGNORED, 0])
    labelled = label_row(row, labels)
    assert (tuple(labelled.positions), tuple(labelled.words), tuple(labelled.gold)) == (
        (1, 3),
        (0, 2),
        (1, 0),
    )
    assert not label_row(row, np.full(3, IGNORED)).gold
    text = EncodedRow(example=0, subwords=[2, 5, 3])
    assert label_row(text, np.array([2])).gold == (2,)
    assert label_row(text, np.array([IGNORED])).gold == ()


def save_teacher(task, encoder, folder):
    """Train a source-only model, and save it."""
    training = SourceOnly().train(setting(task, encoder, folder / "teacher work", target=(), epochs=2))
    save_model(training.model, training.tokenizer, folder / "teacher")
    return folder / "teacher"


@pytest.fixture(params=["upos", "nli"])
def own_setting(request, bert_folder, tmp_path):
    teacher = save_teacher(request.param, bert_folder, tmp_path)
    return setting(request.param, bert_folder, tmp_path / "work", teacher=teacher, batch_size=8)


def test_without_labels_it_is_source_only_to_the_bit(own_setting):
    silver = SelfTraining(threshold=1.0).train(own_setting)
    plain = SourceOnly().train(replace(own_setting, target=(), folder=own_setting.folder / "plain"))
    assert equal(silver, plain)
    assert silver.rows == plain.rows


def label_as(task, examples, predictions):
    """Return examples with predictions as their gold labels."""
    pairs = list(zip(examples, predictions, strict=True))
    if task == "upos":
        return [replace(example, tags=tuple(tags)) for example, tags in pairs]
    return [replace(example, label=label) for example, label in pairs]


def test_with_all_labels_it_is_training_on_what_the_teacher_predicts(own_setting):
    """Bilingual training on predictions as gold labels, where the source's dev set chooses the epoch."""
    task = own_setting.task
    teacher = task.head(own_setting.teacher, seed=None).eval()
    examples = READ[task.name]("de")
    data = evaluation(task, examples, load_tokenizer(own_setting.teacher), own_setting.optimization)
    predicted = label_as(task.name, examples, data.predict(teacher))
    assert predicted != examples
    expected = Bilingual().train(
        replace(
            own_setting,
            train=lambda language: predicted if language == "de" else READ[task.name](language),
            optimization=with_fields(own_setting.optimization, dev="source"),
            folder=own_setting.folder / "bilingual",
        )
    )
    silver = SelfTraining(threshold=0.0).train(own_setting)
    assert equal(silver, expected)
    counts = [row for row in silver.rows if "kept" in row]
    assert [(row["language"], row["items"] == row["kept"] > 0) for row in counts] == [("de", True)]


def test_labels_of_the_target_change_nothing(own_setting):
    def read_relabelled(language):
        examples = READ[own_setting.task.name](language)
        name = {"upos": "tags", "nli": "label"}[own_setting.task.name]
        if language != "de":
            return examples
        if name == "tags":
            return [replace(example, tags=("NOUN",) * len(example.tags)) for example in examples]
        return [replace(example, label="neutral") for example in examples]

    first = SelfTraining(threshold=0.3).train(own_setting)
    second = SelfTraining(threshold=0.3).train(
        replace(own_setting, train=read_relabelled, folder=own_setting.folder / "again")
    )
    assert equal(first, second) and first.rows == second.rows


def test_only_confident_items_have_a_label(own_setting):
    examples = READ[own_setting.task.name]("de")
    labels = {
        threshold: np.concatenate(predict_labels(own_setting, examples, "de", threshold=threshold))
        for threshold in (0.0, 0.5, 0.999)
    }
    counts = [int((values != IGNORED).sum()) for values in labels.values()]
    assert counts == sorted(counts, reverse=True) and counts[0] == len(labels[0.0]) > counts[2]
    confident = labels[0.5] != IGNORED
    assert (labels[0.0][confident] == labels[0.5][confident]).all()
    training = SelfTraining(threshold=0.999).train(own_setting)
    assert bool(training.warnings) == (counts[2] == 0) or "0.999" not in str(training.warnings)


def test_tasks_without_one_class_an_item_are_refused():
    with says(ConfigError, "self-training", "'qa'"):
        SelfTraining().check(TASKS["qa"], None)
    with says(ConfigError, "self-training", "'parsing'"):
        SelfTraining().check(TASKS["parsing"], None)


def test_a_plan_reads_the_target_without_labels(plan, get_refusal):
    models = [run for run in plan(RECIPE) if isinstance(run, FineTune)]
    first, second = sorted(
        (run for run in models if run.method.name == "self-training"), key=lambda run: run.method.threshold
    )[::-1]
    assert first.teacher in models and first.teacher.method.name == "source-only"
    assert second.teacher == first
    for run in each((first, second)):
        read = run.data_read
        assert (read.labels, read.dev, read.unlabelled) == (("qaa",), ("qaa",), ("qab",))
        assert not read.translations and not read.plain
        splits = [(split.language, split.split) for split in run.splits_read]
        assert splits == [("qaa", "train"), ("qab", "train"), ("qaa", "dev")]
    assert "threshold" in get_refusal(RECIPE.replace("0.8", "1.8"))


@pytest.mark.slow
def test_a_target_file_needs_no_labels(tmp_path):
    for split in ("train", "dev"):
        rows = "".join(f"text {index}\t{'ab'[index % 2]}\n" for index in range(8))
        (tmp_path / f"en.{split}.tsv").write_text(f"text\tlabel\n{rows}", encoding="utf-8")
    (tmp_path / "sw.dev.tsv").write_text("text\nhabari\nasubuhi\njioni\n", encoding="utf-8")
    description = 'name = "mine"\nkind = "text"\nfiles = "{language}.{split}.tsv"\nlabels = ["a", "b"]\n'
    (tmp_path / "mine.toml").write_text(description, encoding="utf-8")
    recipe = RECIPE.replace('"wikiann"', '"mine.toml"').replace('"qaa"', '"en"').replace('"qab"', '"sw"')
    recipe = recipe.replace('name = "self-training"', 'name = "self-training"\ntext = "dev"')
    recipe = recipe.replace("[[measure]]", '[[measure]]\nlanguages = ["en"]')
    optimization = "seeds = [0]\noptimization = { epochs = 1, batch_size = 4 }"
    (tmp_path / "own.toml").write_text(recipe.replace("seeds = [0]", optimization), encoding="utf-8")
    result = isogloss.run(tmp_path / "own.toml", out=tmp_path / "runs", jobs=1, report=False)
    assert not result.outcome.failed
    counts = [row for record in result.records for row in record.rows if "kept" in row]
    assert [(row["language"], row["items"]) for row in counts] == [("sw", 3)] * 2
    bad = recipe.replace('text = "dev"', 'text = "train"')
    (tmp_path / "bad.toml").write_text(bad, encoding="utf-8")
    with pytest.raises(DataError, match="sw"):
        isogloss.run(tmp_path / "bad.toml", out=tmp_path / "bad", jobs=1, report=False)


@pytest.mark.nightly
@pytest.mark.slow
def test_it_helps_on_the_built_in_languages(tmp_path):
    recipe = RECIPE.replace('"wikiann"', '"ud"\ntask = "upos"').replace(
        'targets = ["qab"]', 'targets = ["qae"]'
    )
    recipe = recipe.replace("seeds = [0]", HELPFUL).replace("threshold = 0.8", "threshold = 0.0")
    recipe = recipe.replace('teacher = "self-training"\n', "")
    (tmp_path / "own.toml").write_text(recipe, encoding="utf-8")
    result = isogloss.run(tmp_path / "own.toml", out=tmp_path / "runs", jobs=1, report=False)
    scores = result.frame("scores")
    means = scores[scores["language"] == "qae"].groupby("method")["score"].mean()
    assert means["self-training"] > means["source-only"]
