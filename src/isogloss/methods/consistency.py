"""Consistency: predictions on an example and on its translation should agree.

Zheng et al. (2021), "Consistency Regularization for Cross-Lingual Fine-Tuning" (xTune), Section 3.1: example
consistency R1 with machine translation as the augmentation. X-Mixup's strongest peer that has nothing but
translations.

R1 = KL(stop(P)‖Q) + KL(stop(Q)‖P), P and Q the predictions on an example and on its translation; ``stop``
lets no gradient through. xTune's first stage takes the task loss on the source alone, its second on the
translations too, and is consistent with the first one's model: the auxiliary loss ``model-consistency``. The
released code divides R1 by the number of labels as well, so its weight of 5 is 5/3 for NLI.
"""

from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import cross_entropy, kl_div, log_softmax

from isogloss.core.errors import ConfigError
from isogloss.core.run_parts import Weight
from isogloss.encoders.annotations import Tokenizer
from isogloss.tasks import Task
from isogloss.tasks.classification import TextClassification
from isogloss.tasks.multiple_choice import MultipleChoice
from isogloss.tasks.task import Model
from isogloss.training.fine_tuning import Examples, Trained, Training, fine_tune
from isogloss.training.pairs import PairedBatch, paired_batches
from isogloss.training.setting import Reads, Setting


@dataclass(frozen=True, kw_only=True)
class Consistency:
    """Train on examples and their translations together, with equal predictions on both."""

    name: ClassVar[str] = "consistency"
    uses: ClassVar[tuple[str, ...]] = ("source", "target")
    needs_start: ClassVar[bool] = False

    weight: Weight = 5.0
    """Weight of the consistency loss (xTune's λ₁); 0 is plain training on the pairs."""

    task_loss: Literal["both", "source"] = "both"
    """Whose labels are learned: those of examples and translations alike, or the source's alone, as in
    xTune's first stage."""

    def reads(self, source: tuple[str, ...], target: tuple[str, ...]) -> Reads:
        """Read the source and its translations; target labels choose nothing: they are thought unknown."""
        translated = tuple(f"{one}-{other}" for one, other in product(source, target))
        return Reads(train=(*source, *translated), dev=source)

    def train(self, setting: Setting) -> Trained:
        """Fine-tune on pairs; a batch holds ``batch_size`` of them, of one pair of languages."""
        check_task(setting.task)
        if not setting.source or not setting.target:
            raise ConfigError(
                f"{self.name}: source {list(setting.source)} and target {list(setting.target)}: one of "
                f"each is needed, so that there are translations. Without a target take source-only."
            )
        return fine_tune(setting, self.reads(setting.source, setting.target), prepare=self._prepare)

    def _prepare(self, setting: Setting, _model: Model, tokenizer: Tokenizer, train: Examples) -> Training:
        batches, warnings = paired_batches(setting, tokenizer, train)
        return Training(batches=batches, loss=partial(self.loss, setting.task), warnings=warnings)

    def loss(self, task: Task, model: Model, batch: PairedBatch) -> Tensor:
        """Return the task's loss and R1 on pairs that run through the model in one pass."""
        scores = task.scores(model, batch.both).float()
        gold = torch.cat((batch.source.gold, batch.target.gold))
        learned = len(batch.source.gold) if self.task_loss == "source" else len(gold)
        loss = cross_entropy(scores[:learned], gold[:learned])
        if self.weight:
            loss = loss + self.weight * inconsistency(*batch.split(scores))
        return loss if batch.shares.pairs == 1 else loss * batch.shares.pairs


def inconsistency(x: Float[Tensor, "pair label"], y: Float[Tensor, "pair label"]) -> Float[Tensor, ""]:
    """Return the mean over pairs of KL(stop(P)‖Q) + KL(stop(Q)‖P), from raw scores; 0 where they agree."""
    p, q = log_softmax(x, dim=-1), log_softmax(y, dim=-1)
    forward = kl_div(q, p.detach(), reduction="batchmean", log_target=True)
    backward = kl_div(p, q.detach(), reduction="batchmean", log_target=True)
    return forward + backward


def check_task(task: Task) -> None:
    """Raise ConfigError for a task whose predictions a translation does not line up with."""
    if not isinstance(task, TextClassification | MultipleChoice):
        raise ConfigError(
            f"consistency: task {task.name!r} predicts places in a text, and those of a translation do not "
            f"line up with them (xTune takes subword sampling for tagging and code-switching for questions "
            f"instead). Take translate-train or x-mixup, or a task with a label for each text or choice."
        )
