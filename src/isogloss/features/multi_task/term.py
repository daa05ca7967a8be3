"""Several tasks in one model: further tasks are learned along with a method's own, on one encoder.

Caruana (1997), "Multitask Learning"; for taggers and parsers of many languages van der Goot et al. (2021),
"Massive Choice, Ample Tasks (MaChAmp)". Each step adds a batch of one further task, drawn in proportion to
size^(1/T) as languages of raw text are (Devlin et al.'s multilingual sampling). The head of each is saved
within the folder of the model, as the difference from it; loaded, it is an ordinary model of that task.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from isogloss.core.errors import ConfigError, check_named
from isogloss.core.identity import derive
from isogloss.core.rows import as_row
from isogloss.core.rows.models import FurtherTaskScoreRow
from isogloss.core.run_parts import Rate, Weight
from isogloss.encoders.family import Config, Model, Tokenizer, head_parameters
from isogloss.encoders.folders import FURTHER
from isogloss.tasks import task_names
from isogloss.tasks.batch import Batch, EncodedRow, collate
from isogloss.tasks.task import Example, FurtherTask, Task
from isogloss.training.memory import AddedCost, Load
from isogloss.training.setting import (
    AuxiliaryLoss,
    AuxiliaryTerm,
    Reads,
    Setting,
    TermResult,
)

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from isogloss.training.batching import BatchesByStep, Bucketed

HEADS = "further_heads"
"""Module of a model in training that contains the heads of the further tasks."""

POOLER = "pooler"
"""The part of an encoder that belongs to a head."""


@dataclass(frozen=True, kw_only=True)
class MultiTask(AuxiliaryLoss):
    """Learn further tasks on the source languages, each with a separate head on the shared encoder."""

    name: ClassVar[str] = "multi-task"
    uses: ClassVar[tuple[str, ...]] = ("source",)

    tasks: tuple[str, ...] = ()
    """The further tasks, each with its corpus after a colon: "ner:wikiann". Default corpus: the grid's."""

    weight: Weight = 1.0
    """Weight of their loss. 0 is the method without them."""

    temperature: Rate = 1.0
    """T of size^(1/T), by which the task of each step is drawn: 1 is proportional, large is uniform."""

    def reads(self, source: tuple[str, ...], target: tuple[str, ...]) -> Reads:  # noqa: ARG002
        """Read the further tasks in the source languages."""
        return Reads(tasks=self.tasks if self.weight else ())

    def cost(self, batch: Load) -> AddedCost:
        """Return the cost of a further batch of rows."""
        return AddedCost(rows=batch.rows)

    def check(self, task: Task, encoder: Config | None) -> None:  # noqa: ARG002
        """Raise ConfigError without tasks, and for unknown, repeated and the method's own tasks."""
        names = [name.partition(":")[0] for name in self.tasks]
        check_named("tasks", "task", task_names(), *names)
        if not names or len({*names, task.name}) <= len(names):
            raise ConfigError(
                f"{self.name}: tasks = {list(self.tasks)} with a model of {task.name}. Name one or "
                f"more other tasks, each once, as in tasks = ['parsing:ud']."
            )

    def prepare(
        self, setting: Setting, model: Model, tokenizer: Tokenizer, steps: int
    ) -> AuxiliaryTerm | None:
        """Put the further heads on the model, and draw the task of each step."""
        from torch import nn

        from isogloss.training.distributed import refuse_sharding
        from isogloss.training.optimizer import set_rate_multiple

        if not self.weight:
            return None
        self.check(setting.task, None)
        refuse_sharding(self.name, "train it in processes that each hold the whole model")
        models = [_with_shared_encoder(setting, further.task, model) for further in setting.further]
        heads = nn.ModuleDict(
            {
                part.task.name: _head(further_model)
                for part, further_model in zip(setting.further, models, strict=True)
            }
        )
        updates = setting.optimization.updates
        if rate := setting.optimization.head_learning_rate:
            set_rate_multiple(heads.parameters(), rate / updates.learning_rate, decay=True)
        model.add_module(HEADS, heads)
        batches = [_batches(setting, further, tokenizer, steps) for further in setting.further]
        seed = derive(setting.seed, "tasks")
        return AuxiliaryTerm(
            batches=drawn_batches(batches, steps, temperature=self.temperature, seed=seed),
            loss=partial(self._loss, setting.further, models, heads),
            finish=partial(_finish, setting, model, models, tokenizer),
        )

    def _loss(
        self,
        tasks: Sequence[FurtherTask],
        models: Sequence[Model],
        heads: nn.ModuleDict,
        batch: "TaskBatch",
    ) -> Tensor:
        """Return the loss of the batch's task, a mean over its labels, by the weight."""
        model = models[batch.task]
        # Their modules are those of the model in training; they themselves are not.
        model.training = model.base_model.training = heads.training
        return self.weight * tasks[batch.task].task.loss(model, batch.batch)


@dataclass(frozen=True)
class TaskBatch:
    """A batch of one of the further tasks."""

    task: int
    batch: Batch

    def to(self, device: torch.device) -> "TaskBatch":
        """Return the batch on a device."""
        return replace(self, batch=self.batch.to(device))

    def parts(self, count: int) -> "list[tuple[TaskBatch, float | None]]":
        """Split into at most ``count`` batches, each with its share of the loss."""
        return [(replace(self, batch=part), share) for part, share in self.batch.parts(count)]


def drawn_batches(
    batches: Sequence[Bucketed[EncodedRow, Batch]], steps: int, *, temperature: float, seed: int
) -> BatchesByStep[TaskBatch]:
    """Return for each step the next batch of the task that is drawn for it."""
    from isogloss.training.batching import BatchesByStep

    sizes = [sum(len(group) for group in task_batches.groups.values()) for task_batches in batches]
    tasks = task_of_steps(sizes, steps, temperature=temperature, seed=seed)
    earlier = [np.cumsum(tasks == index) - 1 for index in range(len(batches))]

    def batch(step: int) -> TaskBatch:
        index = int(tasks[step])
        return TaskBatch(index, batches[index][int(earlier[index][step])])

    return BatchesByStep(steps, batch)


def task_of_steps(sizes: Sequence[int], steps: int, *, temperature: float, seed: int) -> np.ndarray:
    """Draw the number of the task of each step, in proportion to size^(1/T)."""
    weights = np.array(sizes, dtype=np.float64) ** (1 / temperature)
    return np.random.Generator(np.random.PCG64(seed)).choice(
        len(sizes), size=steps, p=weights / weights.sum()
    )


def _with_shared_encoder(setting: Setting, task: Task, model: Model) -> Model:
    """Return a model of a further task that shares the encoder of ``model``, except the pooler."""
    from isogloss.encoders.computation import fastest_attention
    from isogloss.training.fine_tuning import begin_with_zeros

    seed = derive(setting.head_seed, "head", task.name)
    further_model = task.head(setting.start, seed=seed, attention=fastest_attention())
    if setting.optimization.head_weights == "zeros":
        begin_with_zeros(further_model, setting, task)
    encoder = copy(model.base_model)
    encoder._modules = {**encoder._modules}
    encoder.pooler = getattr(further_model.base_model, POOLER, None)
    setattr(further_model, further_model.base_model_prefix, encoder)
    return further_model


def _head(model: Model) -> nn.ModuleDict:
    """Return the modules of a model that are not its encoder's, and the pooler."""
    from torch import nn

    parts = {name: part for name, part in model.named_children() if name != model.base_model_prefix}
    pooler = model.base_model.pooler
    return nn.ModuleDict(parts if pooler is None else {**parts, POOLER: pooler})


def _batches(
    setting: Setting, further: FurtherTask, tokenizer: Tokenizer, steps: int
) -> Bucketed[EncodedRow, Batch]:
    """Encode the examples of a task and repeat its batches for all steps of the training."""
    from isogloss.training.batching import Bucketed

    padding, lengths = tokenizer.pad_token_id, {"limit": further.limit, "overlap": further.overlap}
    groups = {
        language: further.task.encode(further.train(language), tokenizer, **lengths)
        for language in setting.source
    }
    batches = Bucketed(
        groups=groups,
        length=lambda row: len(row.subwords),
        size=setting.optimization.batch_size,
        epochs=1,
        seed=derive(setting.seed, "order", further.task.name),
        make=lambda rows, language, _: collate(rows, padding=padding, languages=(language,)),
    )
    return replace(batches, epochs=-(-steps // max(1, batches.steps_per_epoch)))


def _finish(setting: Setting, model: Model, models: Sequence[Model], tokenizer: Tokenizer) -> TermResult:
    """Take the heads off the model, score each, and return writers of their differences from the model."""
    from isogloss.training.evaluation import evaluation

    del model._modules[HEADS]
    rows, writers, warnings = [], [], list[str]()
    for further, further_model in zip(setting.further, models, strict=True):
        lengths = replace(setting.optimization, limit=further.limit, overlap=further.overlap)
        for language in setting.source:
            train, dev = further.train(language), further.dev(language)
            dev_evaluation = evaluation(further.task, dev, tokenizer, lengths, language=language)
            score = FurtherTaskScoreRow(
                further_task=further.task.name,
                further_corpus=further.corpus,
                language=language,
                split="dev",
                metric=further.task.metric,
                score=dev_evaluation.score(further_model),
                baseline=further.task.majority(train, dev),
                examples=len(dev),
            )
            rows.append(dict(as_row(score)))
            warnings += _warnings(further.task, score, dev)
        writers.append(partial(_write, further_model, tokenizer, further.task.name))
    return TermResult(rows=tuple(rows), extra_writers=tuple(writers), warnings=tuple(warnings))


def _warnings(task: Task, score: FurtherTaskScoreRow, dev: Sequence[Example]) -> list[str]:
    """Return the warning that a task learned nothing, or that its dev examples could not show it."""
    from isogloss.training.fine_tuning import of_one_label, stuck_at_chance

    examples = f"dev examples of {score.language} for {task.name}"
    measure = f"{score.metric} of the further task {task.name} on {score.language} dev"
    one_label = of_one_label(task, dev, examples)
    return [one_label] if one_label else stuck_at_chance(measure, score.score, score.baseline)


def _write(model: Model, tokenizer: Tokenizer, name: str, folder: Path) -> None:
    """Write the head of a task into its subfolder of the model folder."""
    from isogloss.encoders.added.sparse_deltas import write_sparse
    from isogloss.encoders.saving import save_model

    head = {key: weight.detach().cpu().clone() for key, weight in head_parameters(model).items()}
    (folder / FURTHER).mkdir(exist_ok=True)
    save_model(model, tokenizer, folder / FURTHER / name, difference=partial(write_sparse, head, str(folder)))
