"""Lemmas as tags: what is encoded, decoded, and counted as right."""

import pytest
import torch

from isogloss.core.errors import DataError
from isogloss.tasks import find_task
from isogloss.tasks.tagging import UNTAGGED
from isogloss.tasks.task import all_measures
from task_examples import make_tagged, perfect

RULES = ("?", "lower |", "lower | -1", "title |", "is go", "lower | -4")
LEMMAS = find_task("lemmas", RULES)


def scores_of(*ranked_value):
    """Give each word's scores: the rules by number, the best first."""
    scores = torch.full((len(ranked_value), len(RULES)), -9.0)
    for word, numbers in enumerate(ranked_value):
        for rank, index in enumerate(numbers):
            scores[word, index] = -float(rank)
    return [scores]


def test_rules_of_the_inventory_are_classes_and_all_others_one_class(either_tokenizer):
    words = ("Dogs", "went", "Anna", "geese", "xyz", "the")
    (row,) = LEMMAS.encode([make_tagged(words, ("dog", "go", "Anna", "goose", "_", "the"))], either_tokenizer)
    assert [RULES[index] for index in row.gold] == ["lower | -1", "is go", "title |", "?", "?", "lower |"]
    assert LEMMAS.label_numbers([make_tagged(("a", "b"), ("a", ""))]) == [(1, UNTAGGED)]
    assert LEMMAS.label_numbers([make_tagged(("a", "b"))]) == [()]


def test_the_best_rule_that_fits_makes_the_lemma_and_else_the_word_stands(either_tokenizer):
    examples = [make_tagged(("Dogs", "cats", "Ann", "a"))]
    rows = LEMMAS.encode(examples, either_tokenizer)
    scores = scores_of((2,), (0, 5, 3), (5, 0, 2), (4,))
    assert LEMMAS.decode(examples, rows, scores) == [("dog", "Cats", "an", "go")]
    assert LEMMAS.apply_rules(examples, rows, scores) == [[(2, "dog"), (3, "Cats"), (2, "an"), (4, "go")]]
    short_task = find_task("lemmas", ("?", "lower | -4"))
    assert short_task.decode(examples, rows, [torch.zeros(4, 2)]) == [("Dogs", "cats", "Ann", "a")]


def test_lemmas_are_counted_as_the_shared_task_counts_them():
    gold = [("dog", "_", "Go"), ("be",)]
    predicted_texts = [("dog", "xyz", "go"), ("be",)]
    assert all_measures(LEMMAS, gold, predicted_texts) == {"accuracy": 3 / 4}
    assert LEMMAS.score(gold, predicted_texts) == 3 / 4
    assert LEMMAS.contributions(gold, predicted_texts)["accuracy"].part == [2.0, 1.0]


def test_the_baseline_is_the_most_frequent_rule_where_it_fits():
    train = [make_tagged(("dogs", "cats", "the", "xyz"), ("dog", "cat", "the", "_"))]
    test = [make_tagged(("birds", "s", "The"), ("bird", "s", "the"))]
    assert LEMMAS.majority(train, test) == 2 / 3


def test_perfect_scores_of_unlisted_rules_are_not_right(either_tokenizer):
    examples = [make_tagged(("geese", "cats"), ("goose", "cat"))]
    rows = LEMMAS.encode(examples, either_tokenizer)
    assert LEMMAS.decode(examples, rows, perfect(LEMMAS, rows, examples)) == [("geese", "cat")]


def test_a_sentence_with_some_lemmas_alone_is_trained_on_and_not_scored(either_tokenizer):
    examples = [make_tagged(("cats", "dogs"), ("cat", ""))]
    rows = LEMMAS.encode(examples, either_tokenizer)
    assert [row.words for row in rows] == [(0,)]
    with pytest.raises(DataError, match=r"2.*2.*tag"):
        LEMMAS.decode(examples, rows, scores_of((2,)))
