"""Fine-tuning on labelled examples of some languages: what plain methods share."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor

from isogloss.core.records import Value
from isogloss.core.runs import Optimization
from isogloss.core.seeds import derive
from isogloss.data.examples import Example
from isogloss.encoders import load_tokenizer
from isogloss.encoders.attention import fastest_attention
from isogloss.encoders.speaking import check_languages, of_language
from isogloss.tasks import Task
from isogloss.tasks.batch import Batch, EncodedRow, collate
from isogloss.training.batching import Bucketed, Epochs
from isogloss.training.beside import Beside, MakeBeside
from isogloss.training.checkpoints import Checkpoints
from isogloss.training.drawn_conflict import Conflict, example_pool, observer
from isogloss.training.evaluation import Evaluation, evaluation
from isogloss.training.fit import Loss, Note, Observer, Watch, fit, precision_of
from isogloss.training.optimizer import Schedule
from isogloss.training.setting import Reads, Setting

ABOVE_CHANCE = 0.01
"""A model whose best dev score is not this much above the commonest label's has learned nothing."""


@dataclass(frozen=True)
class Trained:
    """A model, its tokenizer, the rows its training left, and what there is to warn of."""

    model: Any
    tokenizer: Any
    rows: list[dict[str, Value]]
    warnings: tuple[str, ...] = ()
    extras: tuple[Callable[[Path], None], ...] = ()
    """What writes files of the method's own into the model's folder, beside an ordinary model."""


Prepare = Callable[[Setting, Any, dict[str, list[Example]]], tuple[Epochs[Any], Loss]]
"""From a setting, the tokenizer and the training examples by what is read: the batches, and their loss."""


def one_by_one(setting: Setting, tokenizer: Any, train: dict[str, list[Example]]) -> tuple[Epochs[Any], Loss]:
    """Give the task's own loss on examples, one language a batch."""
    batches = _batches(setting, tokenizer, list(train.values()))
    return Spoken(batches, tuple(train)), partial(_loss, setting.task)


@dataclass(frozen=True)
class Spoken:
    """Batches of one group each, with the group's language (or pair)."""

    batches: Bucketed[Any, Any]
    languages: tuple[str, ...]

    @property
    def steps_per_epoch(self) -> int:
        """Number of batches in one pass."""
        return self.batches.steps_per_epoch

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, step: int) -> tuple[str, Any]:
        return self.languages[self.batches.group_of(step)], self.batches[step]


def fine_tune(
    setting: Setting,
    reads: Reads,
    *,
    prepare: Prepare = one_by_one,
    beside: MakeBeside | None = None,
    conflict: Conflict | None = None,
) -> Trained:
    """Train encoder and head on the train splits that are read; the dev splits choose the epoch.

    The head's initial weights depend on the seed alone, so methods with one seed start from one point; a
    model to go on from brings its own. ``prepare`` says what a batch holds and what its loss is; ``beside``
    makes a term that is added to that loss; ``conflict`` watches the languages' gradients.
    """
    checkpoints = Checkpoints(setting.folder, setting.optimization.checkpoint_every)
    setting = settled(setting, checkpoints)
    tokenizer = load_tokenizer(setting.start)
    model = setting.task.head(setting.start, seed=derive(setting.seed, "head"), attention=fastest_attention())
    check_languages(model, (*reads.train, *reads.dev))
    train = {language: setting.train(language) for language in reads.train}
    batches, task_loss = prepare(setting, tokenizer, train)
    selection = Selection(setting, tokenizer, train, reads.dev, steps_per_epoch=batches.steps_per_epoch)
    epochs = range(1, setting.optimization.epochs + 1)
    watch = Watch(
        evaluate=lambda done: selection.notes(model, done),
        evaluate_at=tuple(batches.steps_per_epoch * epoch for epoch in epochs),
        observers=(_observer(conflict, setting, model, tokenizer, batches),) if conflict else (),
        checkpoints=checkpoints,
        tell=setting.tell,
        what=f"fine-tuning on {'+'.join(reads.train)}",
    )
    schedule = schedule_of(setting.optimization)
    second = beside(setting, model, tokenizer, len(batches)) if beside else Beside()
    every, loss = second.added(batches, task_loss)
    fitted = fit(model, every, loss, schedule=schedule, seed=setting.seed, watch=watch)
    rows = [*mark_chosen(fitted.rows), *second.rows]
    return Trained(model, tokenizer, rows, (*selection.warnings(rows), *second.warnings))


def _observer(
    conflict: Conflict, setting: Setting, model: Any, tokenizer: Any, batches: Epochs[Any]
) -> Observer:
    """Return what watches gradient conflict, on the examples that are trained on."""
    if not isinstance(batches, Spoken):
        raise TypeError("gradient conflict is watched where each batch holds one language")
    rows = dict(zip(batches.languages, batches.batches.groups, strict=True))
    padding, precision = tokenizer.pad_token_id, setting.optimization.precision
    pool = example_pool(model, rows, setting.task, padding=padding, precision=precision)
    return observer(conflict, model, pool, seed=setting.seed)


def settled(setting: Setting, checkpoints: Checkpoints) -> Setting:
    """Decide the precision once, so that the model is trained and selected in the same."""
    precision = precision_of(setting.optimization.precision, checkpoints)
    return replace(setting, optimization=replace(setting.optimization, precision=precision))


def _batches(setting: Setting, tokenizer: Any, groups: list[list[Example]]) -> Bucketed[EncodedRow, Batch]:
    how = setting.optimization
    return Bucketed(
        groups=[
            setting.task.encode(group, tokenizer, limit=how.limit, overlap=how.overlap) for group in groups
        ],
        length=lambda row: len(row.subwords),
        size=how.batch_size,
        epochs=how.epochs,
        seed=derive(setting.seed, "order"),
        make=lambda rows: collate(rows, padding=tokenizer.pad_token_id),
    )


def schedule_of(optimization: Optimization) -> Schedule:
    """Say how weights are updated, from a run's fields."""
    return Schedule(
        learning_rate=optimization.learning_rate,
        warmup=optimization.warmup,
        weight_decay=optimization.weight_decay,
        beta2=optimization.beta2,
        clip=optimization.clip,
        precision=optimization.precision,
    )


def _loss(task: Task, model: Any, spoken: tuple[str, Batch]) -> Tensor:
    language, batch = spoken
    with of_language(model, language):
        return task.loss(model, batch.to(next(model.parameters()).device))


class Selection:
    """Dev data, scored after each epoch beside what always saying the commonest label would score."""

    def __init__(
        self,
        setting: Setting,
        tokenizer: Any,
        train: dict[str, list[Example]],
        languages: tuple[str, ...],
        *,
        steps_per_epoch: int,
    ) -> None:
        self.steps_per_epoch = steps_per_epoch
        self.evaluations: dict[str, Evaluation] = {}
        for language in languages:
            dev = setting.dev(language)
            seen = train.get(language) or [example for group in train.values() for example in group]
            baseline = setting.task.majority(seen, dev)
            self.evaluations[language] = evaluation(
                setting.task, dev, tokenizer, setting.optimization, baseline=baseline, language=language
            )

    def notes(self, model: Any, done: int) -> list[Note]:
        """Score the model in every language."""
        epoch = done // self.steps_per_epoch
        return [
            {
                "epoch": epoch,
                "step": done,
                "language": language,
                "split": "dev",
                "metric": one.metric,
                "score": one.score(model),
            }
            for language, one in self.evaluations.items()
        ]

    def warnings(self, rows: list[dict[str, Value]]) -> tuple[str, ...]:
        """Say in which training languages nothing was learned."""
        found = []
        for language, one in self.evaluations.items():
            best = max(
                (float(row["score"] or 0) for row in rows if row.get("language") == language), default=0.0
            )
            if best <= (one.baseline or 0.0) + ABOVE_CHANCE:
                found.append(
                    f"stuck at chance: the best {one.metric} on {language} dev is {best:.3f}, and always "
                    f"saying the commonest label gives {one.baseline:.3f}. "
                    f"Try a lower learning_rate or more epochs."
                )
        return tuple(found)


def mark_chosen(rows: list[Note]) -> list[dict[str, Value]]:
    """Mark the rows of the epoch whose mean dev score was the first to be the highest."""
    epochs: dict[int, list[float]] = {}
    for row in rows:
        if "epoch" in row:
            epochs.setdefault(int(row["epoch"] or 0), []).append(float(row["score"] or 0.0))
    best = max(epochs, key=lambda epoch: (sum(epochs[epoch]) / len(epochs[epoch]), -epoch), default=0)
    return [{**row, "chosen": row["epoch"] == best} if "epoch" in row else dict(row) for row in rows]
