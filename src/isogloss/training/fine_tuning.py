"""Fine-tuning: which examples are read, times which auxiliary loss is added to the task's.

All methods that train a model on labelled examples are this one training: ``prepare`` makes the batches and
the loss on them, ``auxiliary`` a further term with batches of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from isogloss.core.records import Value
from isogloss.core.runs import Optimization
from isogloss.core.seeds import derive
from isogloss.data.examples import Example, Per, shots
from isogloss.encoders import load_tokenizer
from isogloss.encoders.attention import fastest_attention
from isogloss.encoders.language_context import check_languages
from isogloss.tasks.batch import collate
from isogloss.training.batching import Batches, Bucketed, Epochs
from isogloss.training.checkpoints import Checkpoints
from isogloss.training.evaluation import Evaluation, evaluation
from isogloss.training.fit import Callback, Callbacks, Loss, Note, fit, precision_of
from isogloss.training.gradient_conflict import Conflict, conflict_callback, example_pool
from isogloss.training.optimizer import Schedule
from isogloss.training.pseudo_labels import encode_all
from isogloss.training.setting import Reads, Setting

ABOVE_CHANCE = 0.01
"""A model whose best dev score is not this much above the commonest label's has learned nothing."""

Examples = dict[str, list[Example]]
"""Training examples by language, or pair of languages."""

Extra = Callable[[Path], None]
"""Writes files of a method's own into a model's folder, beside an ordinary model."""


@dataclass(frozen=True)
class Trained:
    """A model, its tokenizer, the rows its training left, and what there is to warn of."""

    model: Any
    tokenizer: Any
    rows: list[dict[str, Value]]
    warnings: tuple[str, ...] = ()
    extras: tuple[Extra, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Training:
    """What is trained on, and how."""

    batches: Epochs[Any]
    loss: Loss
    """From what is trained and a batch to one number."""
    trained: nn.Module | None = None
    """What is trained where it is more than the model: a module that holds it."""
    faster: tuple[str, float] = ("", 1.0)
    """How the names of parameters begin that learn at so many times the rate, and how many; "" is none."""
    warnings: tuple[str, ...] = ()
    extras: tuple[Extra, ...] = ()


Prepare = Callable[[Setting, Any, Any, Examples], Training]
"""From the setting, the model before its first step, its tokenizer and the training examples."""


@dataclass(frozen=True, kw_only=True)
class AuxiliaryLoss:
    """A term added to the task's loss, with a batch of its own for each step."""

    batches: Batches[Any]
    loss: Callable[[Any], Tensor]
    """From a batch to one number."""
    rows: tuple[dict[str, Value], ...] = ()
    warnings: tuple[str, ...] = ()

    def added(self, batches: Batches[Any], loss: Loss) -> tuple[Batches[Any], Loss]:
        """Return a training's batches and loss with this term added.

        The training's own loss is computed first, so its dropout is the one it has without the term.
        """
        both = _SideBySide(batches, self.batches)
        return both, lambda model, two: loss(model, two.first) + self.loss(two.second)


MakeAuxiliaryLoss = Callable[[Setting, Any, Any, int], AuxiliaryLoss | None]
"""From the setting, the model before its first step, its tokenizer and the number of steps."""


@dataclass(frozen=True)
class _Two:
    """A batch of each."""

    first: Any
    second: Any

    def to(self, device: torch.device) -> "_Two":
        """Return both on a device."""
        return _Two(self.first.to(device), self.second.to(device))


@dataclass(frozen=True)
class _SideBySide:
    """Batches of both, as long as there are first ones."""

    first: Batches[Any]
    second: Batches[Any]

    def __len__(self) -> int:
        return len(self.first)

    def __getitem__(self, step: int) -> _Two:
        return _Two(self.first[step], self.second[step])


def examples_alone(
    setting: Setting, _model: Any, tokenizer: Any, train: Examples, *, pseudo: bool = False
) -> Training:
    """Train on the task's own loss, one language a batch; ``pseudo``: the teacher labels translations."""
    padding = tokenizer.pad_token_id
    batches = Bucketed(
        groups=encode_all(setting, tokenizer, train, pseudo=pseudo),
        length=lambda row: len(row.subwords),
        size=setting.optimization.batch_size,
        epochs=setting.optimization.epochs,
        seed=derive(setting.seed, "order"),
        make=lambda rows, language, _: collate(rows, padding=padding, languages=(language,)),
    )
    return Training(batches=batches, loss=setting.task.loss)


def few_examples(setting: Setting, count: int, *, draw: int, per: Per) -> Setting:
    """Return a setting in which each language has so many training examples, chosen by the seed ``draw``."""

    def chosen(language: str) -> list[Example]:
        examples = setting.train(language)
        taken = {one.id for one in shots(examples, count, seed=draw, per=per)}
        return [one for one in examples if one.id in taken]  # All of them, in order, is target-only.

    return replace(setting, train=chosen)


def fine_tune(
    setting: Setting,
    reads: Reads,
    *,
    prepare: Prepare = examples_alone,
    auxiliary: MakeAuxiliaryLoss | None = None,
    conflict: Conflict | None = None,
) -> Trained:
    """Train encoder and head on the train splits that are read; the dev splits choose the epoch.

    The head's initial weights depend on the seed alone, so methods with one seed start from one point; a
    model to go on from brings its own. ``conflict`` watches the languages' gradients.
    """
    checkpoints = Checkpoints(setting.folder, setting.optimization.checkpoint_every)
    setting = _with_resolved_precision(setting, checkpoints)
    tokenizer = load_tokenizer(setting.start)
    model = setting.task.head(setting.start, seed=derive(setting.seed, "head"), attention=fastest_attention())
    check_languages(model, (*reads.train, *reads.dev))
    train = {language: setting.train(language) for language in reads.train}
    training = prepare(setting, model, tokenizer, train)
    batches, loss, steps = training.batches, training.loss, training.batches.steps_per_epoch
    selection = Selection(setting, tokenizer, train, reads.dev, steps_per_epoch=steps)
    callbacks = Callbacks(
        evaluate=lambda done: selection.notes(model, done),
        evaluate_at=tuple(steps * epoch for epoch in range(1, setting.optimization.epochs + 1)),
        periodic=(_conflict_callback(conflict, setting, model, tokenizer, batches),) if conflict else (),
        checkpoints=checkpoints,
        on_progress=setting.on_progress,
        what=f"fine-tuning on {'+'.join(reads.train)}",
    )
    schedule = replace(schedule_of(setting.optimization), faster=training.faster)
    second = auxiliary(setting, model, tokenizer, len(batches)) if auxiliary else None
    every, whole = second.added(batches, loss) if second else (batches, loss)
    fitted = fit(
        training.trained or model, every, whole, schedule=schedule, seed=setting.seed, callbacks=callbacks
    )
    rows = [*mark_chosen(fitted.rows), *(second.rows if second else ())]
    warnings = (
        *training.warnings,
        *selection.warnings(rows),
        *(second.warnings if second else ()),
    )
    return Trained(model, tokenizer, rows, warnings, training.extras)


def _conflict_callback(
    conflict: Conflict, setting: Setting, model: Any, tokenizer: Any, batches: Epochs[Any]
) -> Callback:
    """Return what watches gradient conflict, on the examples that are trained on."""
    if not isinstance(batches, Bucketed):
        raise TypeError("gradient conflict is watched where each batch holds one language")
    padding, precision = tokenizer.pad_token_id, setting.optimization.precision
    pool = example_pool(model, batches.groups, setting.task, padding=padding, precision=precision)
    return conflict_callback(conflict, model, pool, seed=setting.seed)


def _with_resolved_precision(setting: Setting, checkpoints: Checkpoints) -> Setting:
    """Decide the precision once, so that the model is trained and selected in the same."""
    precision = precision_of(setting.optimization.precision, checkpoints)
    return replace(setting, optimization=replace(setting.optimization, precision=precision))


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
