"""Fine-tuning on translations that a teacher labels: where labels do not outlive translation.

Tags belong to words, and a translation has others. A model that was trained on the source alone gives its
probabilities for them, which are learned by cross entropy beside the source's gold tags, as X-Mixup does it
(Section 4.2). Whatever tags translations bring along are not looked at.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

from torch import Tensor
from torch.nn.functional import cross_entropy

from isogloss.core.errors import ConfigError
from isogloss.core.languages import language_of_text
from isogloss.core.seeds import derive
from isogloss.data.examples import Example
from isogloss.data.layouts import is_translation
from isogloss.encoders.speaking import of_language
from isogloss.tasks.tagging import Tagging
from isogloss.tasks.task import ScoredTask
from isogloss.training.batching import Bucketed
from isogloss.training.fit import Loss
from isogloss.training.paired_rows import Labelled, Side, collate_side
from isogloss.training.pseudo_labels import pseudo_labels
from isogloss.training.setting import Reads, Setting
from isogloss.training.supervised import Spoken, Trained, fine_tune


def fine_tune_taught(setting: Setting, reads: Reads, where: str) -> Trained:
    """Fine-tune on source examples and on translations, which the teacher tags; a language a batch."""
    if not any(map(is_translation, reads.train)):
        return fine_tune(setting, reads)
    if not setting.teacher:
        raise ConfigError(
            f"{where}: {setting.task.name} needs a model trained on the source alone, which labels the "
            f"translations; found none. Make a source-only run and name its folder (Setting.teacher)."
        )
    untagged = replace(setting, train=partial(_untagged, setting))
    return fine_tune(untagged, reads, prepare=_prepare)


def _untagged(setting: Setting, language: str) -> list[Example]:
    found: list[Any] = setting.train(language)
    return [replace(one, tags=()) for one in found] if is_translation(language) else found


def _prepare(setting: Setting, tokenizer: Any, train: Mapping[str, Sequence[Example]]) -> tuple[Spoken, Loss]:
    how = setting.optimization
    rows = Bucketed(
        groups=[_rows(setting, tokenizer, language, train[language]) for language in train],
        length=lambda one: len(one.row.subwords),
        size=how.batch_size,
        epochs=how.epochs,
        seed=derive(setting.seed, "order"),
        make=partial(collate_side, padding=tokenizer.pad_token_id, labels=len(setting.task.labels)),
    )
    return Spoken(rows, tuple(train)), partial(_loss, cast(ScoredTask, setting.task))


def _rows(setting: Setting, tokenizer: Any, language: str, examples: Sequence[Example]) -> list[Labelled]:
    how = setting.optimization
    rows = setting.task.encode(examples, tokenizer, limit=how.limit, overlap=how.overlap)
    if not is_translation(language):
        return [Labelled(row) for row in rows]
    text = language_of_text(language)  # A teacher with modules reads by those of the text's language.
    soft = pseudo_labels(setting.task, setting.teacher, examples, how, language=text)
    return [Labelled(row, soft[row.example][list(row.words)]) for row in rows]


def _loss(task: ScoredTask, model: Any, spoken: tuple[str, Side]) -> Tensor:
    language, side = spoken
    side = side.to(next(model.parameters()).device)
    with of_language(model, language):
        scores = task.scores(model, side.batch)
        return (
            task.loss_of(scores, side.batch)
            if side.soft is None
            else cross_entropy(scores.float(), side.soft)
        )


def is_tagging(task: object) -> bool:
    """Tell whether a teacher can label a task's translations: one label a word."""
    return isinstance(task, Tagging)
