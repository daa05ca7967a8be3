"""Pseudo-labels: a model's probabilities for the words of sentences that have no labels of their own.

Tags belong to words, and a translation has others. A model that was trained on the source alone labels the
translations (X-Mixup, Section 4.2); its probabilities are learned by cross entropy beside the source's gold
tags. Whatever tags translations bring along are not looked at.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from isogloss.core.errors import ConfigError, ModelError
from isogloss.core.languages import language_of_text
from isogloss.core.runs import Optimization
from isogloss.data.corpora import is_translation
from isogloss.data.examples import Example
from isogloss.encoders import load_encoder_config, load_tokenizer
from isogloss.tasks import Task
from isogloss.tasks.batch import EncodedRow
from isogloss.tasks.tagging import Tagging
from isogloss.training.evaluation import evaluation
from isogloss.training.precision import device
from isogloss.training.setting import Setting


def uses_teacher(task: object) -> bool:
    """Return whether a teacher can label a task's translations: one label a word."""
    return isinstance(task, Tagging)


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


def encode(setting: Setting, tokenizer: Any, examples: Sequence[Example]) -> list[EncodedRow]:
    """Encode examples with the labels they have."""
    how = setting.optimization
    return setting.task.encode(examples, tokenizer, limit=how.limit, overlap=how.overlap)


def encode_pseudo_labelled(
    setting: Setting, tokenizer: Any, examples: Sequence[Example], language: str
) -> list[EncodedRow]:
    """Encode translations (``language`` is as en-sw) with the labels the setting's teacher gives them."""
    if not setting.teacher:
        raise ConfigError(
            f"pseudo-labels: {setting.task.name} needs a model trained on the source alone, which labels the "
            f"translations; found none. Make a source-only run and name its folder (Setting.teacher)."
        )
    if not examples:
        return []
    text = language_of_text(language)  # A teacher with modules reads by those of the text's language.
    soft = pseudo_labels(setting.task, setting.teacher, examples, setting.optimization, language=text)
    rows = encode(setting, tokenizer, examples)
    return [replace(row, soft=soft[row.example][list(row.words)]) for row in rows]


def encode_all(
    setting: Setting, tokenizer: Any, train: Mapping[str, Sequence[Example]], *, pseudo: bool
) -> dict[str, list[EncodedRow]]:
    """Encode the examples of each language; with ``pseudo`` the teacher labels the translations."""
    return {
        language: encode_pseudo_labelled(setting, tokenizer, examples, language)
        if pseudo and is_translation(language)
        else encode(setting, tokenizer, examples)
        for language, examples in train.items()
    }


def untagged(setting: Setting) -> Setting:
    """Return a setting whose translations come without tags."""
    return replace(setting, train=partial(_untagged, setting))


def _untagged(setting: Setting, language: str) -> list[Example]:
    found: list[Any] = setting.train(language)
    return [replace(one, tags=()) for one in found] if is_translation(language) else found
