"""The operations of a training follow from its shape, its rows and its steps, or are reported as unknown."""

from dataclasses import replace

import pytest
from test_memory_estimates import TEXT, TRANSLATOR, TUNED
from transformers import BertConfig, XLMRobertaConfig

from isogloss.core.run_parts import with_fields
from isogloss.features.consistency.method import Consistency
from isogloss.features.meta_learning.method import MetaLearning
from isogloss.features.x_mixup.method import XMixup
from isogloss.methods.plain import Bilingual, FewShot, TargetOnly, TranslateTrain
from isogloss.runs.estimates import ASSUMED_SHAPES
from isogloss.runs.fine_tune import TRAIN_SIZES, assumed_sizes
from isogloss.runs.pretrained import Pretrained
from isogloss.training.memory import shape_of

MBERT = Pretrained(source="google-bert/bert-base-multilingual-cased")


def operations(run):
    return run.operations({})


def test_fine_tuning_takes_six_operations_a_weight_and_those_of_attention():
    run = replace(TUNED, encoder=MBERT, corpus="xnli", task="nli", source=("en",), examples=1000)
    inside = ASSUMED_SHAPES[MBERT.source].parameters - 119_547 * 768
    rows = 1000 * run.optimization.epochs * run.optimization.limit
    assert operations(run) == pytest.approx(rows * (6 * inside + 12 * 12 * 768 * run.optimization.limit))
    whole_run = replace(run, examples=0)
    assert operations(whole_run) == pytest.approx(operations(run) * TRAIN_SIZES["xnli"] / 1000)
    assert assumed_sizes([whole_run]) == [
        "operations: training examples of each language are taken to be xnli 392,702."
    ]


def test_fine_tuning_on_more_languages_takes_more():
    for method in (Bilingual(), XMixup()):
        two = replace(TUNED, method=method, target=("qab",))
        assert operations(two) == pytest.approx(2 * operations(TUNED)), method
    longer = replace(TUNED, optimization=with_fields(TUNED.optimization, epochs=10))
    assert operations(longer) == pytest.approx(2 * operations(TUNED))
    ours = replace(TUNED, corpus="xnli", task="nli")
    assert assumed_sizes([ours, replace(ours, source=(), target=("qab",))]) == []


def test_few_shots_take_as_many_examples_as_there_are_shots():
    run = replace(TUNED, encoder=MBERT, corpus="xnli", task="nli", target=("en",), source=(), examples=1000)
    whole = operations(replace(run, method=TargetOnly()))
    for shots, share in ((0, 0), (20, 0.02), (1000, 1), (5000, 1)):
        few = replace(run, method=FewShot(shots=shots), start=TUNED)
        assert operations(few) == pytest.approx(share * whole), shots
    by_label = replace(run, method=FewShot(shots=20, per="label"), start=TUNED)
    assert operations(by_label) == pytest.approx(whole)  # At most, as the number of labels is not known.


def test_methods_that_read_pairs_run_both_sides_of_each():
    fourteen_texts = tuple(f"{letter}x" for letter in "abcdefghijklmn")
    run = replace(TUNED, encoder=MBERT, corpus="xnli", task="nli", source=("en",), examples=1000)
    for method, rows in (
        (TranslateTrain(), 15),
        (XMixup(), 28),
        (XMixup(schedule=False), 28),
        (Consistency(), 28),
    ):
        paired_run = replace(run, method=method, target=fourteen_texts)
        assert operations(paired_run) == pytest.approx(rows * operations(run)), method


def test_pretraining_takes_its_steps():
    longer = replace(TEXT, method=with_fields(TEXT.method, steps=20_000))
    assert operations(longer) == pytest.approx(2 * operations(TEXT))
    assert operations(TRANSLATOR) > 0


def test_what_is_not_known_is_none_and_what_trains_nothing_is_0():
    far_points = Pretrained(source="somebody/small-bert")
    assert operations(replace(TUNED, encoder=far_points)) is None
    assert operations(replace(TUNED, corpus="other", source=("en",))) is None
    assert operations(replace(TEXT, method=MetaLearning())) is None
    assert operations(MBERT) == 0


def test_the_shapes_that_are_assumed_are_those_of_the_encoders():
    bert = BertConfig(vocab_size=119_547)
    roberta = {"vocab_size": 250_002, "max_position_embeddings": 514, "type_vocab_size": 1}
    large_value = {
        "hidden_size": 1024,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "intermediate_size": 4096,
    }
    configs = (bert, XLMRobertaConfig(**roberta), XLMRobertaConfig(**roberta, **large_value))
    assert list(ASSUMED_SHAPES.values()) == [shape_of(config) for config in configs]
    assert MBERT.shape({}) == ASSUMED_SHAPES[MBERT.source]
