"""Pairs are an example and its own translation, in every batch, once an epoch."""

from collections import Counter
from dataclasses import replace

import pytest

from isogloss.core.errors import DataError
from isogloss.data.examples import SentencePair
from isogloss.encoders import load_tokenizer
from isogloss.tasks import TASKS
from isogloss.training.example_pairs import paired_batches, row_pairs

LABELS = TASKS["nli"].labels
WORDS = ("cat", "mat", "dog", "hills", "Rome", "things")


def examples(count, mark=""):
    return [
        SentencePair(
            id=f"p{n}",
            first=" ".join([WORDS[n % 6]] * (1 + n % 4)),
            second=mark or "the",
            label=LABELS[n % 3],
        )
        for n in range(count)
    ]


@pytest.fixture
def setting(make_setting):
    return replace(make_setting(("en",), ("de",), batch_size=4), task=TASKS["nli"])


@pytest.fixture
def tokenizer(bert_folder):
    return load_tokenizer(bert_folder)


def test_rows_are_matched_by_id_and_encoded_alone(setting, tokenizer):
    first, second = examples(9), examples(9, "on")
    pairs = row_pairs(setting, tokenizer, first, second[::-1], "en-de")
    sides = [setting.task.encode(side, tokenizer, limit=48) for side in (first, second)]
    assert [(one.source.subwords, one.translated.subwords) for one in pairs] == [
        (one.subwords, other.subwords) for one, other in zip(*sides, strict=True)
    ]


def test_an_example_without_translation_is_left_out(setting, tokenizer):
    assert len(row_pairs(setting, tokenizer, examples(9), examples(7), "en-de")) == 7


def test_translations_of_other_examples_are_an_error(setting, tokenizer):
    turned = [replace(one, label=LABELS[(n + 1) % 3]) for n, one in enumerate(examples(9))]
    with pytest.raises(DataError, match="en and en-de: 9 of 9 examples have another label"):
        row_pairs(setting, tokenizer, examples(9), turned, "en-de")


def test_a_batch_holds_examples_and_then_their_translations(setting, tokenizer):
    pairs = row_pairs(setting, tokenizer, examples(10), examples(10, "on"), "en-de")
    batches = paired_batches(setting, tokenizer, [pairs])
    assert batches.steps_per_epoch == 3
    of = {tuple(one.source.subwords): tuple(one.translated.subwords) for one in pairs}
    seen = Counter()
    for step in range(3):
        batch = batches[step]
        rows = [tuple(row[row != tokenizer.pad_token_id].tolist()) for row in batch.subwords]
        half = len(rows) // 2
        assert [of[row] for row in rows[:half]] == rows[half:]
        assert batch.gold[:half].tolist() == batch.gold[half:].tolist()
        seen.update(rows[:half])
    assert seen == Counter(tuple(one.source.subwords) for one in pairs)
