"""The overlap of two predictions of one answer equals torch's distributions."""

import pytest
import torch
from torch.distributions import Bernoulli, Categorical, Independent, kl_divergence

from isogloss.tasks.task import CLASSES, LABELS, NUMBER
from task_examples import SMALL_TASKS

ONE, OTHER = (torch.randn(5, 3, generator=torch.Generator().manual_seed(n)) for n in (0, 1))
DISTRIBUTIONS = {
    "classes": (CLASSES, lambda scores: Categorical(logits=scores)),
    "labels": (LABELS, lambda scores: Independent(Bernoulli(logits=scores), 1)),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_the_divergence_is_that_of_the_distributions(name):
    distribution, make = DISTRIBUTIONS[name]
    expected = kl_divergence(make(ONE), make(OTHER)).mean()
    torch.testing.assert_close(distribution.divergence(ONE, OTHER), expected)
    assert float(distribution.divergence(ONE, ONE)) == pytest.approx(0, abs=1e-7)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_the_mean_has_the_mean_of_the_probabilities(name):
    distribution, _ = DISTRIBUTIONS[name]
    ratios = (distribution.probabilities(ONE) + distribution.probabilities(OTHER)) / 2
    torch.testing.assert_close(distribution.probabilities(distribution.mean(ONE, OTHER)), ratios)


def test_numbers_have_a_mean_and_no_probabilities():
    torch.testing.assert_close(NUMBER.mean(ONE, OTHER), (ONE + OTHER) / 2)
    assert (NUMBER.probabilities, NUMBER.divergence) == (None, None)


def test_tasks_whose_labels_have_places_have_no_one_answer():
    places = {name for name, task in SMALL_TASKS.items() if task.one_answer is None}
    assert places == {"upos", "ner", "parsing", "qa", "word-tagging", "span-tagging", "lemmas"}


def test_labels_that_both_sides_are_sure_of_have_finite_means():
    """A logit of 17 is a probability of 1 in float32, whose own logit is infinite."""
    sure_tensor = torch.tensor([[18.0, -3.0, -200.0]])
    torch.testing.assert_close(LABELS.mean(sure_tensor, sure_tensor), sure_tensor)
