"""Splits by seed: every example in one, equal texts together, shares kept label by label."""

import random
from collections import Counter

import pytest

from isogloss.data.examples import LabelledText, TaggedSentence
from isogloss.features.described_corpora.starting import split_examples


def texts(count, labels=("neg", "neg", "pos")):
    return [
        LabelledText(id=str(index), text=f"text {index}", label=labels[index % len(labels)])
        for index in range(count)
    ]


def test_every_example_is_in_one_split_in_its_order():
    examples = texts(97)
    splits = split_examples(examples, (80, 10, 10), seed=0)
    assert (
        sorted((item for split in splits for item in split), key=lambda example: int(example.id)) == examples
    )
    assert [[int(example.id) for example in split] for split in splits] == [
        sorted(int(example.id) for example in split) for split in splits
    ]


def test_each_label_has_its_share_in_each_split():
    splits = split_examples(texts(300), (80, 10, 10), seed=3)
    assert [len(split) for split in splits] == [240, 30, 30]
    counts = [Counter(example.label for example in split) for split in splits]
    assert [count["neg"] for count in counts] == pytest.approx([160, 20, 20], abs=1)


def test_equal_texts_are_in_one_split():
    examples = [
        LabelledText(id=str(index), text=f"text {index % 30}", label="neg" if index < 60 else "pos")
        for index in range(120)
    ]
    splits = split_examples(examples, (1, 1, 1), seed=0)
    result = [{item.text for item in split} for split in splits]
    assert sum(len(value) for value in result) == len(set.union(*result)) == 30
    assert sum(len(value) for value in splits) == 120


def test_the_seed_decides_and_not_the_order_of_the_file():
    examples = texts(60)
    shuffled_samples = random.Random(1).sample(examples, len(examples))
    splits = [
        [{example.id for example in split} for split in split_examples(item, (4, 1), seed=0)]
        for item in (examples, shuffled_samples)
    ]
    assert splits[0] == splits[1]
    assert splits[0] != [
        {example.id for example in split} for split in split_examples(examples, (4, 1), seed=1)
    ]


def test_a_label_that_is_there_once_is_trained_on():
    examples = [*texts(50), LabelledText(id="50", text="rare", label="rare")]
    for seed in range(5):
        train, *_ = split_examples(examples, (8, 1, 1), seed=seed)
        assert examples[-1] in train


def test_sentences_without_a_single_label_are_split_by_their_words():
    examples = [
        TaggedSentence(id=str(index), words=(f"w{index}", "x"), tags=("O", "O")) for index in range(20)
    ]
    assert [len(split) for split in split_examples(examples, (8, 1, 1), seed=0)] == [16, 2, 2]
