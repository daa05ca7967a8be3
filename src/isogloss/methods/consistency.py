"""Consistency: predictions on an example and on its translation should agree.

Zheng et al. (2021), "Consistency Regularization for Cross-Lingual Fine-Tuning" (xTune), Section 3.1: example
consistency R1 with machine translation as the augmentation. X-Mixup's strongest peer that has nothing but
translations.

R1 = KL(stop(P)‖Q) + KL(stop(Q)‖P), P and Q the predictions on an example and on its translation; ``stop``
lets no gradient through. xTune's first stage takes the task loss on the source alone, its second on the
translations too, and is consistent with the first one's model: the auxiliary loss ``model-consistency``. The
released code divides R1 by the number of labels as well, so its weight of 5 is 5/3 for NLI.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Literal, cast

import torch
from jaxtyping import Float
from torch import Tensor

from isogloss.core.errors import ConfigError
from isogloss.core.run_parts import Weight
from isogloss.encoders.family import Config, Model, Tokenizer
from isogloss.tasks import Task
from isogloss.tasks.batch import Batch
from isogloss.tasks.one_answer import Compare, divergence_of_classes, one_answer
from isogloss.tasks.task import ScoredTask
from isogloss.training.fine_tuning import Examples, Training, fine_tune
from isogloss.training.pairs import paired_batches
from isogloss.training.setting import Method, Reads, Setting, Trained, language_pairs
from isogloss.training.sides import Sides


@dataclass(frozen=True, kw_only=True)
class Consistency(Method):
    """Train on examples and their translations together, with equal predictions on both."""

    name: ClassVar[str] = "consistency"
    uses: ClassVar[tuple[str, ...]] = ("source", "target")

    weight: Weight = 5.0
    """Weight of the consistency loss (xTune's λ₁); 0 is plain training on the pairs."""

    task_loss: Literal["both", "source"] = "both"
    """Whose labels are learned: those of examples and translations alike, or the source's alone, as in
    xTune's first stage."""

    def reads(self, source: tuple[str, ...], target: tuple[str, ...]) -> Reads:
        """Read the source and its translations; target labels choose nothing: they are thought unknown."""
        return Reads(train=(*source, *language_pairs(source, target)), dev=source, sides=2 if target else 1)

    def train(self, setting: Setting) -> Trained:
        """Fine-tune on pairs; a batch holds ``batch_size`` of them, of one pair of languages."""
        self.check(setting.task, None)
        if not setting.source or not setting.target:
            raise ConfigError(
                f"{self.name}: source {list(setting.source)} and target {list(setting.target)}: one of "
                f"each is needed, so that there are translations. Without a target take source-only."
            )
        return fine_tune(setting, self.reads(setting.source, setting.target), prepare=self._prepare)

    def _prepare(self, setting: Setting, _model: Model, tokenizer: Tokenizer, train: Examples) -> Training:
        batches, warnings = paired_batches(setting, tokenizer, train)
        return Training(batches=batches, loss=partial(self.loss, setting.task), warnings=warnings)

    def loss(self, task: Task, model: Model, batch: Sides) -> Tensor:
        """Return the task's loss and R1 on pairs that run through the model in one pass."""
        scores = task.scores(model, batch.joined).float()
        learned = batch.source if self.task_loss == "source" else _labels_of_both(batch)
        loss = cast("ScoredTask", task).loss_of(scores[: learned.scored], learned)
        if self.weight:
            loss = loss + self.weight * inconsistency(*batch.split(scores), self._divergence(task))
        return loss if batch.shares.pairs == 1 else loss * batch.shares.pairs

    def check(self, task: Task, encoder: Config | None) -> None:  # noqa: ARG002
        """Raise ConfigError for a task whose predictions have no divergence from a translation's."""
        self._divergence(task)

    def _divergence(self, task: Task) -> Compare:
        both = one_answer(task)
        if both is None:
            raise ConfigError(
                f"{self.name}: task {task.name!r} predicts places in a text, and those of a translation do "
                f"not line up with them (xTune takes subword sampling for tagging and code-switching for "
                f"questions instead). Take translate-train or x-mixup, or a task with a label for each text "
                f"or choice."
            )
        if both.divergence is None:
            raise ConfigError(
                f"{self.name}: task {task.name!r} predicts a number, and KL divergence is one of "
                f"probabilities. Take translate-train or x-mixup."
            )
        return both.divergence


def _labels_of_both(batch: Sides) -> Batch:
    """Return the places of both sides with the labels of both."""
    soft = [side.soft for side in (batch.source, batch.target) if side.soft is not None]
    gold = torch.cat((batch.source.gold, batch.target.gold))
    return replace(batch.joined, gold=gold, soft=torch.cat(soft) if soft else None)


def inconsistency(
    x: Float[Tensor, "pair label"],
    y: Float[Tensor, "pair label"],
    divergence: Compare = divergence_of_classes,
) -> Float[Tensor, ""]:
    """Return the mean over pairs of KL(stop(P)‖Q) + KL(stop(Q)‖P), from raw scores; 0 where they agree."""
    return divergence(x.detach(), y) + divergence(y.detach(), x)
