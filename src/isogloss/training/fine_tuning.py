"""Fine-tuning: which examples are read, times which auxiliary loss is added to the task's.

All methods that train a model on labelled examples are this one training: ``prepare`` makes the batches and
the loss on them, ``setting.auxiliary`` adds a further term with batches of its own.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from isogloss.core.records import Value
from isogloss.core.rows import as_row
from isogloss.core.rows.training import TrainedParameters
from isogloss.core.run_parts import Optimization, with_fields
from isogloss.core.seeds import derive
from isogloss.data.examples import Example, Per, shots
from isogloss.encoders import fastest_attention, load_tokenizer
from isogloss.encoders.added.active_language import check_languages
from isogloss.encoders.family import Model, Tokenizer, head_parameters
from isogloss.tasks.batch import collate
from isogloss.tasks.classification import UNLABELLED
from isogloss.tasks.task import Task
from isogloss.training.batching import Batches, Bucketed, Movable, parts_of
from isogloss.training.checkpoints import Checkpoints
from isogloss.training.evaluation import Evaluation, evaluation
from isogloss.training.fit import Callback, Callbacks, Loss, Note, fit, precision_of
from isogloss.training.gradient_conflict import Conflict, conflict_callback, example_pool
from isogloss.training.optimizer import set_rate_multiple
from isogloss.training.pairs import encode
from isogloss.training.setting import (
    AuxiliaryTerm,
    ExtraWriter,
    PeftSetting,
    Prepared,
    Reads,
    Setting,
    Trained,
)

ABOVE_CHANCE = 0.01
"""A model whose best dev score is not this much above the commonest label's has learned nothing."""

Examples = dict[str, list[Example]]
"""Training examples by language, or pair of languages."""


@dataclass(frozen=True, kw_only=True)
class Training:
    """The batches and the loss of a training."""

    batches: Bucketed[Any, Movable]
    loss: Loss
    """From the trained module and a batch to one number."""
    trained: nn.Module | None = None
    """The trained module where it is more than the model: one that contains it."""
    warnings: tuple[str, ...] = ()
    extra_writers: tuple[ExtraWriter, ...] = ()


Prepare = Callable[[Setting, Model, Tokenizer, Examples], Training]
"""From the setting, the model before its first step, its tokenizer and the training examples."""


def with_auxiliary(
    batches: Batches[Movable], loss: Loss, term: AuxiliaryTerm | None
) -> tuple[Batches[Movable], Loss]:
    """Return a training's batches and loss with an auxiliary term added.

    The training's own loss is computed first, so its dropout is the one it has without the term.
    """
    if term is None:
        return batches, loss

    def summed(model: nn.Module, two: "_Two") -> Tensor:
        if two.first is None or two.second is None:
            return loss(model, two.first) if two.second is None else term.loss(two.second)
        return loss(model, two.first) + term.loss(two.second)

    return _SideBySide(batches, term.batches), summed


@dataclass(frozen=True)
class _Two:
    """A batch of each; a part has one of them."""

    first: Movable | None
    second: Movable | None

    def to(self, device: torch.device) -> "_Two":
        """Return both on a device."""
        first, second = (one and one.to(device) for one in (self.first, self.second))
        return _Two(first, second)

    def parts(self, count: int) -> "list[tuple[_Two, float | None]]":
        """Split each; the training's own parts come first, so their dropout is as without the term."""
        first = parts_of(self.first, count, "fine-tuning")
        second = parts_of(self.second, count, "the auxiliary loss")
        return [
            *((_Two(one, None), share) for one, share in first),
            *((_Two(None, one), share) for one, share in second),
        ]


@dataclass(frozen=True)
class _SideBySide:
    """Batches of both, as many as of the first."""

    first: Batches[Movable]
    second: Batches[Movable]

    def __len__(self) -> int:
        return len(self.first)

    def __getitem__(self, step: int) -> _Two:
        return _Two(self.first[step], self.second[step])


def plain_training(
    setting: Setting, _model: Model, tokenizer: Tokenizer, train: Examples, *, pseudo: bool = False
) -> Training:
    """Train on the task's loss, one language a batch; with ``pseudo`` the teacher labels translations."""
    padding = tokenizer.pad_token_id
    batches = Bucketed(
        groups={code: encode(setting, tokenizer, own, code, pseudo=pseudo) for code, own in train.items()},
        length=lambda row: len(row.subwords),
        size=setting.optimization.batch_size,
        epochs=setting.optimization.epochs,
        seed=derive(setting.seed, "order"),
        make=lambda rows, language, _: collate(rows, padding=padding, languages=(language,)),
    )
    return Training(batches=batches, loss=setting.task.loss)


def few_examples(setting: Setting, count: int, *, draw: int, per: Per, but: int = 0) -> Setting:
    """Return a setting with ``count`` training examples of each language, sampled by the seed ``draw``.

    The first ``but`` of the sample are left out.
    """

    def chosen(language: str) -> list[Example]:
        examples = setting.train(language)
        taken, others = (
            {one.id for one in shots(examples, some, seed=draw, per=per)} for some in (count, but)
        )
        return [one for one in examples if one.id in taken - others]  # All, in order, is target-only.

    return replace(setting, train=chosen)


def fine_tune(
    setting: Setting,
    reads: Reads,
    *,
    prepare: Prepare = plain_training,
    conflict: Conflict | None = None,
) -> Trained:
    """Train encoder and head on the train splits that are read; the dev splits choose the epoch.

    The head's initial weights depend on the seed alone, so methods with one seed start from one point; a
    model to continue from has its own head. ``conflict`` measures the languages' gradients on the way.
    """
    start = prepare_model(setting, reads, prepare)
    training, model, setting = start.training, start.model, start.setting
    selection = Selection(
        setting, start.tokenizer, start.train, reads.dev, steps_per_epoch=training.batches.steps_per_epoch
    )
    callbacks = plan_callbacks(start, selection, conflict)
    auxiliary = setting.auxiliary
    term = auxiliary.prepare(setting, model, start.tokenizer, len(training.batches)) if auxiliary else None
    batches, loss = with_auxiliary(training.batches, training.loss, term)
    counts, updates = _counts(start), setting.optimization.updates
    notes = fit(start.trained, batches, loss, updates=updates, seed=setting.seed, callbacks=callbacks)
    rows = [counts, *_epochs(notes, setting.optimization, planned=len(batches)), *(term.rows if term else ())]
    warnings = (*start.warnings, *selection.warnings(rows), *(term.warnings if term else ()))
    difference = setting.peft.finish(model, setting.start) if setting.peft else None
    return Trained(model, start.tokenizer, rows, warnings, training.extra_writers, difference)


@dataclass(frozen=True, kw_only=True)
class Start:
    """A model before its first step, and what it is trained on."""

    setting: Setting
    """With its precision resolved."""
    checkpoints: Checkpoints
    model: Model
    tokenizer: Tokenizer
    train: Examples
    training: Training
    parameters: int
    """Numbers in the model before its weights are chosen."""
    prepared: Prepared

    @property
    def trained(self) -> nn.Module:
        """The trained module: the model, or one that contains it."""
        return self.training.trained or self.model

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings of the choice of weights, and of the batches."""
        return (*self.prepared.warnings, *self.training.warnings)


def prepare_model(setting: Setting, reads: Reads, prepare: Prepare) -> Start:
    """Load encoder and head, choose the weights that are trained, and prepare batches and loss."""
    checkpoints = Checkpoints(setting.folder, setting.optimization.updates.checkpoint_every)
    # Resolved once, so that the model is trained and selected in the same.
    precision = precision_of(setting.optimization.updates.precision, checkpoints)
    setting = replace(setting, optimization=with_fields(setting.optimization, precision=precision))
    tokenizer = load_tokenizer(setting.start)
    model = setting.task.head(setting.start, seed=derive(setting.seed, "head"), attention=fastest_attention())
    check_languages(model, (*reads.train, *reads.dev))
    train = {language: setting.train(language) for language in reads.train}
    parameters = sum(weight.numel() for weight in model.parameters())
    prepared = _choose_weights(setting, reads, prepare, model)
    if rate := setting.optimization.head_learning_rate:
        multiple = rate / setting.optimization.updates.learning_rate
        set_rate_multiple(head_parameters(model).values(), multiple, decay=True)
    return Start(
        setting=setting,
        checkpoints=checkpoints,
        model=model,
        tokenizer=tokenizer,
        train=train,
        training=prepare(setting, model, tokenizer, train),
        parameters=parameters,
        prepared=prepared,
    )


def _choose_weights(setting: Setting, reads: Reads, prepare: Prepare, model: Model) -> Prepared:
    """Change the model in place so that the weights that ``setting.peft`` chooses are trained alone."""
    if setting.peft is None:
        return Prepared()
    full = replace(setting, peft=None, folder=setting.folder / "whole")
    return setting.peft.prepare(
        PeftSetting(
            model=model,
            whole=lambda: fine_tune(full, reads, prepare=prepare).model,
            folder=setting.folder,
            seed=derive(setting.seed, "peft"),
        )
    )


def plan_callbacks(start: Start, selection: "Selection", conflict: Conflict | None) -> Callbacks:
    """Plan the selection of the epoch, checkpoints, progress and the measurement of gradients."""
    optimization, batches, model = start.setting.optimization, start.training.batches, start.model
    periodic: tuple[Callback, ...] = ()
    if conflict:
        pool = example_pool(
            model,
            batches.groups,
            start.setting.task,
            padding=start.tokenizer.pad_token_id,
            precision=optimization.updates.precision,
        )
        periodic = (conflict_callback(conflict, model, pool, seed=start.setting.seed),)
    epochs = range(1, optimization.epochs + 1)
    return Callbacks(
        evaluate=(lambda step: selection.notes(model, step)) if selection.evaluations else None,
        evaluate_at=tuple(batches.steps_per_epoch * epoch for epoch in epochs),
        averaged=optimization.averaged_epochs or 0,
        patience=optimization.patience or 0,
        periodic=periodic,
        checkpoints=start.checkpoints,
        on_progress=start.setting.on_progress,
        what=f"fine-tuning on {'+'.join(start.train)}",
    )


def _counts(start: Start) -> dict[str, Value]:
    """Return the row of how many numbers a training changes."""
    unfrozen = sum(weight.numel() for weight in start.trained.parameters() if weight.requires_grad)
    return dict(
        as_row(TrainedParameters(trained=unfrozen - start.prepared.fixed, parameters=start.parameters))
    )


def _epochs(notes: list[Note], optimization: Optimization, *, planned: int) -> list[dict[str, Value]]:
    """Return the rows of a training, the chosen epoch marked; with patience, also where it ended."""
    rows = mark_chosen(notes, optimization)
    epochs = [row for row in rows if "epoch" in row]
    chosen = [row["epoch"] for row in epochs if row["chosen"]]
    if not optimization.patience or not chosen:
        return rows
    last = {"updates": epochs[-1]["step"], "planned": planned, "last_epoch": epochs[-1]["epoch"]}
    return [*rows, {**last, "chosen_epoch": chosen[0]}]


class Selection:
    """Selection of the epoch on dev data, with the score of the majority label as baseline."""

    def __init__(
        self,
        setting: Setting,
        tokenizer: Tokenizer,
        train: dict[str, list[Example]],
        languages: tuple[str, ...],
        *,
        steps_per_epoch: int,
    ) -> None:
        self.steps_per_epoch = steps_per_epoch
        self.evaluations: dict[str, Evaluation] = {}
        every = [example for group in train.values() for example in group]
        what = f"training examples of {'+'.join(train)}"
        self.of_one_label = {"": _of_one_label(setting.task, every, what)}
        for language in languages:
            dev = setting.dev(language)
            seen = train.get(language) or every
            self.of_one_label[language] = _of_one_label(setting.task, dev, f"dev examples of {language}")
            baseline = setting.task.majority(seen, dev)
            self.evaluations[language] = evaluation(
                setting.task, dev, tokenizer, setting.optimization, baseline=baseline, language=language
            )

    def notes(self, model: Model, done: int) -> list[Note]:
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
        """Warn of one label for all, else of languages on which nothing was learned (if any were scored)."""
        found = [*filter(None, self.of_one_label.values())]
        for language, one in self.evaluations.items():
            if self.of_one_label[""] or self.of_one_label[language]:
                continue
            scores = [float(row["score"] or 0) for row in rows if row.get("language") == language]
            best = max(scores, default=math.inf)
            if best <= (one.baseline or 0.0) + ABOVE_CHANCE:
                found.append(
                    f"stuck at chance: the best {one.metric} on {language} dev is {best:.3f}, and always "
                    f"saying the commonest label gives {one.baseline:.3f}. "
                    f"Try a lower learning_rate or more epochs."
                )
        return tuple(found)


def _of_one_label(task: Task, examples: list[Example], what: str) -> str:
    """Return a warning where two or more examples, or all of their words, have one label; empty otherwise."""
    gold = task.gold(examples) if task.labels_are in ("example", "word") else ()
    labels = {*(chain.from_iterable(gold) if task.labels_are == "word" else gold)}
    label = labels.pop() if len(labels) == 1 and len(examples) > 1 else UNLABELLED
    name = "+".join(label) or "none" if isinstance(label, tuple) else label
    why = "so they tell no label from another. Give examples of other labels too."
    return "" if label == UNLABELLED else f"all {len(examples):,} {what} have the label {name}, {why}"


def mark_chosen(rows: list[Note], how: Optimization) -> list[dict[str, Value]]:
    """Mark the rows of the epoch whose mean dev score was the first to be the highest, or those averaged."""
    epochs: dict[int, list[float]] = {}
    for row in rows:
        if "epoch" in row:
            epochs.setdefault(int(row["epoch"] or 0), []).append(float(row["score"] or 0.0))
    best = max(epochs, key=lambda epoch: (sum(epochs[epoch]) / len(epochs[epoch]), -epoch), default=0)
    last = {*range(how.epochs - how.averaged_epochs + 1, how.epochs + 1)} if how.averaged_epochs else {best}
    return [{**row, "chosen": row["epoch"] in last} if "epoch" in row else dict(row) for row in rows]
