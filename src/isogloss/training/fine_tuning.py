"""Fine-tuning on labelled examples, with any auxiliary loss.

All methods that fine-tune a model share this training: ``prepare`` creates the batches and their loss, and
``setting.auxiliary`` adds a term to the loss, with further batches.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from isogloss.core.identity import derive
from isogloss.core.processes import collector_paused
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
from isogloss.training.batching import Batches, BatchesByStep, Bucketed, Movable, is_whole, parts_of
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
"""A model whose best dev score exceeds the majority label's by at most this has learned nothing."""

Examples = dict[str, list[Example]]
"""Training examples by language, or language pair."""


@dataclass(frozen=True, kw_only=True)
class Training:
    """The batches and the loss of a training."""

    batches: Bucketed[Any, Movable]
    loss: Loss
    """From the trained module and a batch to one number."""
    trained: nn.Module | None = None
    """The trained module, if it is not the model itself but contains it."""
    warnings: tuple[str, ...] = ()
    extra_writers: tuple[ExtraWriter, ...] = ()


Prepare = Callable[[Setting, Model, Tokenizer, Examples], Training]
"""From the setting, the model before its first step, its tokenizer and the training examples to the
training."""


def with_auxiliary(
    batches: Batches[Movable], loss: Loss, term: AuxiliaryTerm | None
) -> tuple[Batches[Movable], Loss]:
    """Add an auxiliary term to a training's batches and loss.

    The training's own loss is computed first, so its dropout is the same as without the term.
    """
    if term is None:
        return batches, loss

    def sum_losses(model: nn.Module, batch: _BatchPair) -> Tensor:
        if batch.main is None or batch.auxiliary is None:
            return loss(model, batch.main) if batch.auxiliary is None else term.loss(batch.auxiliary)
        return loss(model, batch.main) + term.loss(batch.auxiliary)

    def pair(step: int) -> _BatchPair:
        main = batches[step]
        if (step + 1) % term.every:
            return _BatchPair(main, None)
        return _BatchPair(main, main if term.batches is None else term.batches[step])

    return BatchesByStep(len(batches), pair), sum_losses


@dataclass(frozen=True)
class _BatchPair:
    """A batch of the training and a batch of the auxiliary term. A part of it has only one of them.

    A step without the term has no auxiliary batch.
    """

    main: Movable | None
    auxiliary: Movable | None

    def to(self, device: torch.device) -> "_BatchPair":
        """Return both batches on a device."""
        main, auxiliary = (batch and batch.to(device) for batch in (self.main, self.auxiliary))
        return _BatchPair(main, auxiliary)

    def parts(self, count: int) -> "list[tuple[_BatchPair, float | None]]":
        """Split both batches, the main one first, so that its dropout is the same as without the term.

        An auxiliary batch whose parts would have a different loss is computed in full ``count`` times, since
        each process computes one of the parts.
        """
        main = parts_of(self.main, count, "fine-tuning")
        auxiliary: Sequence[tuple[Movable, float | None]] = []
        if self.auxiliary and is_whole(self.auxiliary):
            auxiliary = [(self.auxiliary, 1 / count)] * count
        elif self.auxiliary:
            auxiliary = parts_of(self.auxiliary, count, "the auxiliary loss")
        return [
            *((_BatchPair(part, None), share) for part, share in main),
            *((_BatchPair(None, part), share) for part, share in auxiliary),
        ]


def plain_training(
    setting: Setting, _model: Model, tokenizer: Tokenizer, train: Examples, *, pseudo: bool = False
) -> Training:
    """Train on the task's loss, with one language per batch.

    With ``pseudo``, the teacher labels translations.
    """
    rows = {
        language: encode(setting, tokenizer, examples, language, pseudo=pseudo)
        for language, examples in train.items()
    }
    return train_on_rows(setting, tokenizer, rows)


def train_on_rows(
    setting: Setting, tokenizer: Tokenizer, groups: Mapping[str, Sequence[EncodedRow]]
) -> Training:
    """Train on the task's loss on encoded rows by language, with one language per batch."""
    padding = tokenizer.pad_token_id
    optimization = setting.optimization
    words = setting.task.labels_are == "word"

    def batch(rows: list[EncodedRow], language: str, _: int) -> Batch:
        full_batch = collate(rows, padding=padding, languages=(language,))
        if not optimization.updates.capture:
            return full_batch
        return full_batch.rounded(padding=padding, longest=optimization.limit, words=words)

    batches = Bucketed(
        groups=groups,
        length=lambda row: len(row.subwords),
        size=optimization.batch_size,
        epochs=optimization.epochs,
        seed=derive(setting.seed, "order"),
        make=batch,
    )
    return Training(batches=batches, loss=setting.task.loss)


def few_examples(setting: Setting, count: int, *, draw: int, per: Per, but: int = 0) -> Setting:
    """Return a setting with ``count`` training examples of each language, sampled with the seed ``draw``.

    The first ``but`` examples of the sample are excluded.
    """

    def sample(language: str) -> list[Example]:
        examples = setting.train(language)
        sample_ids, excluded_ids = (
            {example.id for example in shots(examples, size, seed=draw, per=per)} for size in (count, but)
        )
        # In the original order, so that a sample of all examples equals target-only.
        return [example for example in examples if example.id in sample_ids - excluded_ids]

    return replace(setting, train=sample)


def fine_tune(
    setting: Setting,
    reads: Reads,
    *,
    prepare: Prepare = plain_training,
    conflict: Conflict | None = None,
) -> Trained:
    """Train encoder and head on the train splits of ``reads``, and select the epoch on its dev splits.

    The head's initial weights depend only on the seed, so methods with one seed start from the same point. A
    model to continue from has its own head. ``conflict`` measures the languages' gradients during training.
    """
    reads = reads.chosen_by(setting.optimization.dev, setting.source, setting.target)
    start = prepare_model(setting, reads, prepare)
    training = start.training
    model = start.model
    setting = start.setting
    selection = Selection(
        setting, start.tokenizer, start.train, reads.dev, steps_per_epoch=training.batches.steps_per_epoch
    )
    callbacks = plan_callbacks(start, selection, conflict)
    counts = start.parameter_counts()
    updates = setting.optimization.updates
    auxiliary = setting.auxiliary
    term = auxiliary.prepare(setting, model, start.tokenizer, len(training.batches)) if auxiliary else None
    batches, loss = with_auxiliary(training.batches, training.loss, term)
    notes = fit(start.trained, batches, loss, updates=updates, seed=setting.seed, callbacks=callbacks)
    result = term.finish() if term else TermResult()
    epochs = _epochs(notes, setting.optimization, planned_steps=len(batches))
    rows = [counts, *epochs, *(term.rows if term else ()), *result.rows]
    warnings = (
        *start.warnings,
        *selection.warnings(rows),
        *(term.warnings if term else ()),
        *result.warnings,
    )
    difference = setting.peft.finish(model, setting.start) if setting.peft else None
    writers = (*training.extra_writers, *result.extra_writers)
    return Trained(model, start.tokenizer, rows, warnings, writers, difference)


@dataclass(frozen=True, kw_only=True)
class FineTuningStart:
    """A model before its first step, and its training data."""

    setting: Setting
    """The setting with a concrete precision instead of "auto"."""
    checkpoints: Checkpoints
    model: Model
    tokenizer: Tokenizer
    train: Examples
    training: Training
    parameters: int
    """Number of parameters of the model, without those that peft adds."""
    prepared: Prepared

    @property
    def trained(self) -> nn.Module:
        """The trained module: the model, or a module that contains it."""
        return self.training.trained or self.model

    def parameter_counts(self) -> dict[str, Value]:
        """Return the row with the numbers of trained parameters and of all parameters."""
        count = sum(weight.numel() for weight in self.trained.parameters() if weight.requires_grad)
        row = TrainedParametersRow(trained=count - self.prepared.fixed, parameters=self.parameters)
        return dict(as_row(row))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings of peft and of the batches."""
        return (*self.prepared.warnings, *self.training.warnings)


@collector_paused()
def prepare_model(setting: Setting, data_read: Reads, prepare: Prepare) -> FineTuningStart:
    """Load encoder and head, choose the trained weights, and prepare batches and loss."""
    checkpoints = Checkpoints(setting.folder, setting.optimization.updates.checkpoint_every)
    optimization = setting.optimization
    updates = optimization.updates
    # Resolved once, so that the model is trained and selected in the same precision.
    updates = with_fields(updates, precision=precision_of(updates.precision, checkpoints))
    setting = replace(setting, optimization=replace(optimization, updates=updates))
    tokenizer = load_tokenizer(setting.start)
    head_seed = derive(setting.head_seed, "head")
    model = setting.task.head(setting.start, seed=head_seed, attention=fastest_attention())
    if optimization.head_weights == "zeros":
        begin_with_zeros(model, setting, setting.task)
    check_languages(model, (*data_read.train, *data_read.dev))
    train = {language: setting.train(language) for language in data_read.train}
    parameters = sum(weight.numel() for weight in model.parameters())
    preparation = (
        _apply_peft(setting, setting.peft, data_read, prepare, model) if setting.peft else Prepared()
    )
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
        prepared=preparation,
    )


def begin_with_zeros(model: Model, setting: Setting, task: Task) -> None:
    """Set the last layer of a new head to zeros. A head that was read, whatever the seed, stays."""
    other_seed = derive(setting.head_seed, "other head")
    other_weights = dict(task.head(setting.start, seed=other_seed).named_parameters())
    drawn = [
        weight
        for name, weight in head_parameters(model).items()
        if weight.ndim > 1 and not torch.equal(weight, other_weights[name])
    ]
    for weight in drawn[-1:]:
        weight.data.zero_()


def _apply_peft(
    setting: Setting, peft_method: Peft, data_read: Reads, prepare: Prepare, model: Model
) -> Prepared:
    """Change the model in place so that only the weights chosen by ``peft_method`` are trained."""
    full_setting = replace(setting, peft=None, folder=setting.folder / "whole")
    return peft_method.prepare(
        PeftSetting(
            model=model,
            train_all=lambda: fine_tune(full_setting, data_read, prepare=prepare).model,
            folder=setting.folder,
            seed=derive(setting.seed, "peft"),
        )
    )


def plan_callbacks(start: FineTuningStart, selection: "Selection", conflict: Conflict | None) -> Callbacks:
    """Plan epoch selection, checkpoints, progress and the measurement of gradients."""
    optimization = start.setting.optimization
    batches = start.training.batches
    model = start.model
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


def _epochs(notes: list[Note], optimization: Optimization, *, planned_steps: int) -> list[dict[str, Value]]:
    """Return the rows of a training with the chosen epochs marked, and with patience a row of its end.

    The first epoch with the highest mean dev score is chosen, or the epochs whose weights are averaged.
    """
    scores: dict[int, list[float]] = {}
    for row in notes:
        if "epoch" in row:
            scores.setdefault(int(row["epoch"] or 0), []).append(float(row["score"] or 0.0))
    best_epoch = max(scores, key=lambda epoch: (sum(scores[epoch]) / len(scores[epoch]), -epoch), default=0)
    averaged_count = optimization.averaged_epochs or 0
    averaged_epochs = range(optimization.epochs - averaged_count + 1, optimization.epochs + 1)
    chosen_epochs = averaged_epochs or (best_epoch,)
    rows = [{**row, "chosen": row["epoch"] in chosen_epochs} if "epoch" in row else row for row in notes]
    selection = [row["epoch"] for row in rows if row.get("chosen")]
    if not optimization.patience or not selection:
        return rows
    last_row = next(row for row in reversed(rows) if "epoch" in row)
    return [
        *rows,
        {
            "updates": last_row["step"],
            "planned": planned_steps,
            "last_epoch": last_row["epoch"],
            "chosen_epoch": selection[0],
        },
    ]


class Selection:
    """Selects the epoch on dev data. The score of the majority label is the baseline."""

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
        examples_name = f"training examples of {'+'.join(train)}"
        self.of_one_label = {"": of_one_label(setting.task, examples, examples_name)}
        for language in languages:
            dev = setting.dev(language)
            training_examples = train.get(language) or examples
            self.of_one_label[language] = of_one_label(setting.task, dev, f"dev examples of {language}")
            baseline = setting.task.majority(training_examples, dev)
            self.evaluations[language] = evaluation(
                setting.task, dev, tokenizer, setting.optimization, baseline=baseline, language=language
            )

    def notes(self, model: Model, step: int) -> list[Note]:
        """Score the model in every language."""
        epoch = step // self.steps_per_epoch
        return [
            {
                "epoch": epoch,
                "step": step,
                "language": language,
                "split": "dev",
                "metric": dev.metric,
                "score": dev.score(model),
            }
            for language, dev in self.evaluations.items()
        ]

    def warnings(self, rows: list[dict[str, Value]]) -> tuple[str, ...]:
        """Warn if all labels are the same, or about each scored language on which nothing was learned."""
        warnings = [warning for warning in self.of_one_label.values() if warning]
        for language, dev in self.evaluations.items():
            if self.of_one_label[""] or self.of_one_label[language]:
                continue
            scores = [float(row["score"] or 0) for row in rows if row.get("language") == language]
            best_score = max(scores, default=math.inf)
            warnings += stuck_at_chance(f"{dev.metric} on {language} dev", best_score, dev.baseline or 0.0)
        return tuple(warnings)


def stuck_at_chance(metric: str, best_score: float, baseline: float) -> list[str]:
    """Return a warning if the best score exceeds the most frequent label's by at most ``ABOVE_CHANCE``."""
    warning = (
        f"stuck at chance: the best {metric} is {best_score:.3f}, and always predicting the most frequent "
        f"label scores {baseline:.3f}. Try a lower learning_rate or more epochs."
    )
    return [warning] if best_score <= baseline + ABOVE_CHANCE else []


def of_one_label(task: Task, examples: Sequence[Example], name_of_examples: str) -> str:
    """Return a warning if two or more examples, or all of their words, have the same label, else ""."""
    gold = task.gold(examples) if task.labels_are in ("example", "word") else ()
    labels = {*(chain.from_iterable(gold) if task.labels_are == "word" else gold)}
    label = labels.pop() if len(labels) == 1 and len(examples) > 1 else UNLABELLED
    name = "+".join(label) or "none" if isinstance(label, tuple) else label
    why = "so they do not distinguish labels. Add examples with other labels."
    return (
        ""
        if label == UNLABELLED
        else f"all {len(examples):,} {name_of_examples} have the label {name}, {why}"
    )
