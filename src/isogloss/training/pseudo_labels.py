"""Pseudo-labels: a model's probabilities for the words of sentences that have no labels of their own.

Words do not stay where they were in translation, so X-Mixup lets a model that was trained on the source
label the translations (Section 4.2).
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from isogloss.core.errors import ModelError
from isogloss.core.runs import Optimization
from isogloss.encoders import load_encoder_config, load_tokenizer
from isogloss.tasks import Task
from isogloss.training.evaluation import evaluation
from isogloss.training.precision import device


def pseudo_labels(
    task: Task, teacher: str, examples: Sequence[Any], optimization: Optimization, *, language: str = ""
) -> list[Tensor]:
    """Return [word class] probabilities for each example, in float16; ``teacher`` is a model's folder.

    ``language`` is the examples', which a teacher with language modules or maps must know. ModelError where
    the model there has other labels than the task.
    """
    known = tuple(load_encoder_config(teacher).id2label.values())
    if known != task.labels:
        raise ModelError(
            f"{teacher}: no model of {task.name}: found the labels {', '.join(known[:4])} …; expected "
            f"{', '.join(task.labels[:4])} …. Give the model of a source-only run on the same task."
        )
    model = task.head(teacher, seed=0).to(device()).eval()
    prepared = evaluation(task, examples, load_tokenizer(teacher), optimization, language=language)
    found = [torch.zeros(len(example.words), len(task.labels), dtype=torch.float16) for example in examples]
    for row, scores in zip(prepared.rows, prepared.scores(model), strict=True):
        found[row.example][list(row.words)] = scores.softmax(dim=-1).half()
    return found
