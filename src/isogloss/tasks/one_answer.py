"""Two predictions of one answer, on an example and on its translation: their mean, and their difference."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import kl_div, log_softmax, logsigmoid

from isogloss.tasks.task import Task

Compare = Callable[[Tensor, Tensor], Tensor]
"""From the raw outputs [pair class] of both sides."""


class OneAnswer(NamedTuple):
    """How raw outputs for one answer are averaged, read and compared."""

    mean: Compare
    """The raw output of the mean of both."""
    probabilities: Callable[[Tensor], Tensor] | None = None
    """Probabilities of raw outputs; None where an answer has none."""
    divergence: Compare | None = None
    """The mean of KL(p‖q) over pairs."""


def one_answer(task: Task) -> OneAnswer | None:
    """Return how predictions on both sides are compared; None where each side has its own places."""
    return getattr(task, "one_answer", None)


def _mean_of_classes(
    first: Float[Tensor, "pair class"], second: Float[Tensor, "pair class"]
) -> Float[Tensor, "pair class"]:
    """Return logarithms of the mean probabilities."""
    return ((first.softmax(dim=-1) + second.softmax(dim=-1)) / 2).log()


def divergence_of_classes(
    first: Float[Tensor, "pair class"], second: Float[Tensor, "pair class"]
) -> Float[Tensor, ""]:
    """Return the mean of KL(p‖q) over pairs."""
    p, q = (log_softmax(scores, dim=-1) for scores in (first, second))
    return kl_div(q, p, reduction="batchmean", log_target=True)


def _mean_of_labels(
    first: Float[Tensor, "pair label"], second: Float[Tensor, "pair label"]
) -> Float[Tensor, "pair label"]:
    """Return the logits of the mean probabilities, finite where a probability rounds to 1."""
    yes, no = (torch.logaddexp(logsigmoid(sign * first), logsigmoid(sign * second)) for sign in (1, -1))
    return yes - no


def _divergence_of_labels(
    first: Float[Tensor, "pair label"], second: Float[Tensor, "pair label"]
) -> Float[Tensor, ""]:
    """Return the divergence of independent labels: the sum of theirs."""
    sides = ((scores, -scores) for scores in (first, second))
    (yes, no), (other_yes, other_no) = ([logsigmoid(side) for side in signs] for signs in sides)
    return (
        (
            kl_div(other_yes, yes, reduction="none", log_target=True)
            + kl_div(other_no, no, reduction="none", log_target=True)
        )
        .sum(dim=-1)
        .mean()
    )


CLASSES = OneAnswer(_mean_of_classes, lambda scores: scores.softmax(dim=-1), divergence_of_classes)
"""One of several classes."""

LABELS = OneAnswer(_mean_of_labels, lambda scores: scores.sigmoid(), _divergence_of_labels)
"""Any number of labels."""

NUMBER = OneAnswer(lambda one, other: (one + other) / 2)
"""A number."""
