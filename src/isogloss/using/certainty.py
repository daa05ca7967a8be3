"""How sure a model is: the softmax of its raw outputs, for each word's label or for each label of a pair."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from isogloss.core.errors import ConfigError
from isogloss.tasks import Task
from isogloss.tasks.batch import EncodedRow
from isogloss.tasks.labels import numbering
from isogloss.tasks.sentences import merge

Certainty = Callable[[Task, Sequence[Any], Sequence[EncodedRow], Sequence[Tensor], Sequence[Any]], list[Any]]
"""From a task, examples, their rows, the raw scores of each row, and the answers."""


def certainty_of(task: str) -> Certainty:
    """Return the function that tells how sure a task's model is; ConfigError where there is none."""
    if task not in CERTAINTIES:
        raise ConfigError(
            f"--scores: task {task} has no probability for each answer; these have: "
            f"{', '.join(sorted(CERTAINTIES))}. Leave --scores away."
        )
    return CERTAINTIES[task]


def of_words(
    task: Task,
    examples: Sequence[Any],
    rows: Sequence[EncodedRow],
    scores: Sequence[Tensor],
    answers: Sequence[Sequence[str]],
) -> list[list[float]]:
    """Return the probability of each word's label (of the repaired one, where a tag was repaired)."""
    if not scores:
        return [[] for _ in answers]
    probabilities = torch.cat(list(scores)).softmax(dim=-1)
    places = merge([len(example.words) for example in examples], rows, range(len(probabilities)))
    numbers = numbering(task.labels)
    return [
        [float(probabilities[place, numbers[label]]) for place, label in zip(of, labels, strict=True)]
        for of, labels in zip(places, answers, strict=True)
    ]


def of_pairs(
    task: Task,
    examples: Sequence[Any],  # noqa: ARG001
    rows: Sequence[EncodedRow],
    scores: Sequence[Tensor],
    answers: Sequence[str],
) -> list[Mapping[str, float]]:
    """Return the probability of each label of the inventory, in its order."""
    found: list[Mapping[str, float]] = [{} for _ in answers]
    for row, of_row in zip(rows, scores, strict=True):
        probabilities = of_row.flatten().softmax(dim=-1).tolist()
        found[row.example] = dict(zip(task.labels, probabilities, strict=True))
    return found


CERTAINTIES: dict[str, Certainty] = {
    "upos": of_words,
    "ner": of_words,
    "nli": of_pairs,
    "paraphrase": of_pairs,
}
"""By the task's name."""
