"""Fine-tuning on labelled examples, with any auxiliary loss.

All methods that fine-tune a model share this training: ``prepare`` makes the batches and their loss,
``setting.auxiliary`` adds a term to the loss, with further batches.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from isogloss.core.identity import derive
from isogloss.core.records import Value
from isogloss.core.rows import as_row
from isogloss.core.rows.models import TrainedParametersRow
from isogloss.core.run_parts import Conflict, Optimization, with_fields
from isogloss.data.examples import Example, Per, shots
from isogloss.encoders.added.active_language import check_languages
from isogloss.encoders.computation import fastest_attention
from isogloss.encoders.family import Model, Tokenizer, head_parameters
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.tasks.batch import Batch, EncodedRow, collate
from isogloss.tasks.classification import UNLABELLED
from isogloss.tasks.task import Task
from isogloss.training.batching import Batches, BatchesByStep, Bucketed, Movable, parts_of
from isogloss.training.checkpoints import Checkpoints
from isogloss.training.evaluation import Evaluation, evaluation
from isogloss.training.fit import Callback, Callbacks, Loss, Note, fit, precision_of
from isogloss.training.gradient_conflict import conflict_callback, example_pool
from isogloss.training.optimizer import set_rate_multiple
from isogloss.training.pairs import encode
from isogloss.training.setting import (
    AuxiliaryTerm,
    ExtraWriter,
    Peft,
    PeftSetting,
    Prepared,
    Reads,
    Setting,
    TermResult,
    Trained,
)

ABOVE_CHANCE = 0.01
"""A model whose best dev score is less than this above the majority label's has learned nothing."""

Examples = dict[str, list[Example]]
"""Training examples by language, or pair of languages."""


@dataclass(frozen=True, kw_only=True)
class Training:
    """The batches and the loss of a training."""

    batches: Bucketed[Any, Movable]
    loss: Loss
    """From the trained module and a batch to one number."""
    trained: nn.Module | None = None
    """The trained module if it is not the model but contains it."""
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

    def summed(model: nn.Module, batch: _BatchPair) -> Tensor:
        if batch.main is None or batch.auxiliary is None:
            return loss(model, batch.main) if batch.auxiliary is None else term.loss(batch.auxiliary)
        return loss(model, batch.main) + term.loss(batch.auxiliary)

    def pair(step: int) -> _BatchPair:
        main = batches[step]
        return _BatchPair(main, main if term.batches is None else term.batches[step])

    return BatchesByStep(len(batches), pair), summed


@dataclass(frozen=True)
class _BatchPair:
    """A batch of the training and one of the auxiliary term; a part has one of them."""

    main: Movable | None
    auxiliary: Movable | None

    def to(self, device: torch.device) -> "_BatchPair":
        """Return both batches on a device."""
        main, auxiliary = (batch and batch.to(device) for batch in (self.main, self.auxiliary))
        return _BatchPair(main, auxiliary)

    def parts(self, count: int) -> "list[tuple[_BatchPair, float | None]]":
        """Split both, the main parts first: their dropout is the same as without the term."""
        main = parts_of(self.main, count, "fine-tuning")
        auxiliary = parts_of(self.auxiliary, count, "the auxiliary loss")
        return [
            *((_BatchPair(part, None), share) for part, share in main),
            *((_BatchPair(None, part), share) for part, share in auxiliary),
        ]


def plain_training(
    setting: Setting, _model: Model, tokenizer: Tokenizer, train: Examples, *, pseudo: bool = False
) -> Training:
    """Train on the task's loss, one language a batch; with ``pseudo`` the teacher labels translations."""
    padding, optimization = tokenizer.pad_token_id, setting.optimization
    words = setting.task.labels_are == "word"

    def batch(rows: list[EncodedRow], language: str, _: int) -> Batch:
        collated = collate(rows, padding=padding, languages=(language,))
        if not optimization.updates.capture:
            return collated
        return collated.rounded(padding=padding, longest=optimization.limit, words=words)

    batches = Bucketed(
        groups={
            code: encode(setting, tokenizer, examples, code, pseudo=pseudo)
            for code, examples in train.items()
        },
        length=lambda row: len(row.subwords),
        size=optimization.batch_size,
        epochs=optimization.epochs,
        seed=derive(setting.seed, "order"),
        make=batch,
    )
    return Training(batches=batches, loss=setting.task.loss)


def few_examples(setting: Setting, count: int, *, draw: int, per: Per, but: int = 0) -> Setting:
    """Return a setting with ``count`` training examples of each language, sampled by the seed ``draw``.

    The first ``but`` of the sample are left out.
    """

    def chosen(language: str) -> list[Example]:
        examples = setting.train(language)
        sampled, left_out = (
            {example.id for example in shots(examples, size, seed=draw, per=per)} for size in (count, but)
        )
        # In their order, so that a sample of all is target-only.
        return [example for example in examples if example.id in sampled - left_out]

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
    model to continue from has its own head. ``conflict`` measures the languages' gradients meanwhile.
    """
    reads = reads.chosen_by(setting.optimization.dev, setting.source, setting.target)
    start = prepare_model(setting, reads, prepare)
    training, model, setting = start.training, start.model, start.setting
    selection = Selection(
        setting, start.tokenizer, start.train, reads.dev, steps_per_epoch=training.batches.steps_per_epoch
    )
    callbacks = plan_callbacks(start, selection, conflict)
    counts, updates = start.parameter_counts(), setting.optimization.updates
    auxiliary = setting.auxiliary
    term = auxiliary.prepare(setting, model, start.tokenizer, len(training.batches)) if auxiliary else None
    batches, loss = with_auxiliary(training.batches, training.loss, term)
    notes = fit(start.trained, batches, loss, updates=updates, seed=setting.seed, callbacks=callbacks)
    added = term.finish() if term else TermResult()
    epochs = _epochs(notes, setting.optimization, planned=len(batches))
    rows = [counts, *epochs, *(term.rows if term else ()), *added.rows]
    warnings = (*start.warnings, *selection.warnings(rows), *(term.warnings if term else ()), *added.warnings)
    difference = setting.peft.finish(model, setting.start) if setting.peft else None
    writers = (*training.extra_writers, *added.extra_writers)
    return Trained(model, start.tokenizer, rows, warnings, writers, difference)


@dataclass(frozen=True, kw_only=True)
class FineTuningStart:
    """A model before its first step, and its training data."""

    setting: Setting
    """With its precision resolved."""
    checkpoints: Checkpoints
    model: Model
    tokenizer: Tokenizer
    train: Examples
    training: Training
    parameters: int
    """Numbers in the model without those that peft adds."""
    prepared: Prepared

    @property
    def trained(self) -> nn.Module:
        """The trained module: the model, or one that contains it."""
        return self.training.trained or self.model

    def parameter_counts(self) -> dict[str, Value]:
        """Return the row of how many numbers a training changes."""
        unfrozen = sum(weight.numel() for weight in self.trained.parameters() if weight.requires_grad)
        trained = unfrozen - self.prepared.fixed
        return dict(as_row(TrainedParametersRow(trained=trained, parameters=self.parameters)))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings of peft, and of the batches."""
        return (*self.prepared.warnings, *self.training.warnings)


def prepare_model(setting: Setting, reads: Reads, prepare: Prepare) -> FineTuningStart:
    """Load encoder and head, choose the weights that are trained, and prepare batches and loss."""
    checkpoints = Checkpoints(setting.folder, setting.optimization.updates.checkpoint_every)
    optimization, updates = setting.optimization, setting.optimization.updates
    # Resolved once, so that the model is trained and selected in the same precision.
    updates = with_fields(updates, precision=precision_of(updates.precision, checkpoints))
    setting = replace(setting, optimization=replace(optimization, updates=updates))
    tokenizer = load_tokenizer(setting.start)
    model = setting.task.head(setting.start, seed=derive(setting.seed, "head"), attention=fastest_attention())
    check_languages(model, (*reads.train, *reads.dev))
    train = {language: setting.train(language) for language in reads.train}
    parameters = sum(weight.numel() for weight in model.parameters())
    prepared = _apply_peft(setting, setting.peft, reads, prepare, model) if setting.peft else Prepared()
    if rate := optimization.head_learning_rate:
        set_rate_multiple(head_parameters(model).values(), rate / updates.learning_rate, decay=True)
    return FineTuningStart(
        setting=setting,
        checkpoints=checkpoints,
        model=model,
        tokenizer=tokenizer,
        train=train,
        training=prepare(setting, model, tokenizer, train),
        parameters=parameters,
        prepared=prepared,
    )


def _apply_peft(setting: Setting, peft: Peft, reads: Reads, prepare: Prepare, model: Model) -> Prepared:
    """Change the model in place so that only the weights that ``peft`` chooses are trained."""
    full = replace(setting, peft=None, folder=setting.folder / "whole")
    return peft.prepare(
        PeftSetting(
            model=model,
            train_all=lambda: fine_tune(full, reads, prepare=prepare).model,
            folder=setting.folder,
            seed=derive(setting.seed, "peft"),
        )
    )


def plan_callbacks(start: FineTuningStart, selection: "Selection", conflict: Conflict | None) -> Callbacks:
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


def _epochs(notes: list[Note], optimization: Optimization, *, planned: int) -> list[dict[str, Value]]:
    """Return the rows of a training, the chosen epoch marked; with patience, also the last epoch.

    Chosen is the first epoch with the highest mean dev score, or those whose weights are averaged.
    """
    scores: dict[int, list[float]] = {}
    for row in notes:
        if "epoch" in row:
            scores.setdefault(int(row["epoch"] or 0), []).append(float(row["score"] or 0.0))
    best = max(scores, key=lambda epoch: (sum(scores[epoch]) / len(scores[epoch]), -epoch), default=0)
    averaged = range(optimization.epochs - (optimization.averaged_epochs or 0) + 1, optimization.epochs + 1)
    chosen = averaged or (best,)
    rows = [{**row, "chosen": row["epoch"] in chosen} if "epoch" in row else row for row in notes]
    selected = [row["epoch"] for row in rows if row.get("chosen")]
    if not optimization.patience or not selected:
        return rows
    last = next(row for row in reversed(rows) if "epoch" in row)
    ended = {"updates": last["step"], "planned": planned, "last_epoch": last["epoch"]}
    return [*rows, {**ended, "chosen_epoch": selected[0]}]


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
        examples = [example for group in train.values() for example in group]
        what = f"training examples of {'+'.join(train)}"
        self.of_one_label = {"": of_one_label(setting.task, examples, what)}
        for language in languages:
            dev = setting.dev(language)
            labelled = train.get(language) or examples
            self.of_one_label[language] = of_one_label(setting.task, dev, f"dev examples of {language}")
            baseline = setting.task.majority(labelled, dev)
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
                "metric": dev.metric,
                "score": dev.score(model),
            }
            for language, dev in self.evaluations.items()
        ]

    def warnings(self, rows: list[dict[str, Value]]) -> tuple[str, ...]:
        """Warn of one label for all, else of languages on which nothing was learned (if any were scored)."""
        warnings = [*filter(None, self.of_one_label.values())]
        for language, dev in self.evaluations.items():
            if self.of_one_label[""] or self.of_one_label[language]:
                continue
            scores = [float(row["score"] or 0) for row in rows if row.get("language") == language]
            best = max(scores, default=math.inf)
            warnings += stuck_at_chance(f"{dev.metric} on {language} dev", best, dev.baseline or 0.0)
        return tuple(warnings)


def stuck_at_chance(measured: str, best: float, baseline: float) -> list[str]:
    """Return a warning where the best score is not above that of the commonest label; none otherwise."""
    warning = (
        f"stuck at chance: the best {measured} is {best:.3f}, and always saying the commonest label gives "
        f"{baseline:.3f}. Try a lower learning_rate or more epochs."
    )
    return [warning] if best <= baseline + ABOVE_CHANCE else []


def of_one_label(task: Task, examples: Sequence[Example], what: str) -> str:
    """Return a warning where two or more examples, or all of their words, have one label; empty otherwise."""
    gold = task.gold(examples) if task.labels_are in ("example", "word") else ()
    labels = {*(chain.from_iterable(gold) if task.labels_are == "word" else gold)}
    label = labels.pop() if len(labels) == 1 and len(examples) > 1 else UNLABELLED
    name = "+".join(label) or "none" if isinstance(label, tuple) else label
    why = "so they do not distinguish labels. Give examples of other labels too."
    return "" if label == UNLABELLED else f"all {len(examples):,} {what} have the label {name}, {why}"
