"""Model consistency: predictions stay near those of a first model, on examples and on their translations.

Zheng et al. (2021), "Consistency Regularization for Cross-Lingual Fine-Tuning" (xTune), Section 3.2, with
machine translation as the augmentation: R2 = Σ_x KL(f(x; θ*) ‖ f(x; θ)) over the examples x of the source and
their translations, θ* the model of the first stage, which stays as it is. No label is read, so that it takes
translations in tagging, too, whose words have none. It is an auxiliary loss that any fine-tuning method can
carry: xTune's second stage is ``consistency`` (R1) with it.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, get_args

import torch
from jaxtyping import Float
from torch import Tensor

from isogloss.core.errors import ConfigError
from isogloss.core.run_parts import Weight
from isogloss.core.seeds import derive
from isogloss.encoders.added.active_language import check_languages
from isogloss.encoders.family import Config, Model, Tokenizer
from isogloss.tasks import Task
from isogloss.tasks.batch import Batch, collate
from isogloss.tasks.one_answer import CLASSES, one_answer
from isogloss.tasks.task import LabelsAre
from isogloss.training.batching import Bucketed
from isogloss.training.memory import AddedCost, Load
from isogloss.training.pairs import encode, load_teacher, uses_teacher, without_translated_tags
from isogloss.training.setting import AuxiliaryLoss, AuxiliaryTerm, Reads, Setting, language_pairs

NOWHERE = -1e4
"""Score of a place that no answer can start or end at: its probability is 0, and its logarithm finite."""


@dataclass(frozen=True, kw_only=True)
class ModelConsistency(AuxiliaryLoss):
    """Keep predictions near those of a first model (the teacher), in the source and on its translations."""

    name: ClassVar[str] = "model-consistency"
    uses: ClassVar[tuple[str, ...]] = ("source", "target")

    weight: Weight = 1.0
    """Weight of the loss (xTune's λ₂), a mean over examples, or words; 0 is the method without it."""

    def reads(self, source: tuple[str, ...], target: tuple[str, ...]) -> Reads:
        """Read the source and its translations."""
        teacher: tuple[LabelsAre, ...] = get_args(LabelsAre) if self.weight else ()
        return Reads(train=(*source, *language_pairs(source, target)), teacher=teacher)

    def cost(self, batch: Load) -> AddedCost:
        """Return the cost of a batch of its own examples, and of the teacher."""
        return AddedCost(rows=batch.rows, copies=1.0)

    def check(self, task: Task, encoder: Config | None) -> None:  # noqa: ARG002
        """Raise ConfigError for a task whose answers have no probabilities that can be compared."""
        both = one_answer(task)
        if self.weight and (task.labels_are == "tree" or (both is not None and both.divergence is None)):
            what = "trees" if task.labels_are == "tree" else "a number"
            raise ConfigError(
                f"{self.name}: task {task.name!r} predicts {what}, and compared are probabilities of labels. "
                f"Leave it out, or take a task that labels examples, words or spans."
            )

    def prepare(
        self, setting: Setting, model: Model, tokenizer: Tokenizer, steps: int
    ) -> AuxiliaryTerm | None:
        """Encode examples and translations, each once in as many steps as batches hold them all."""
        if not self.weight:
            return None
        self.check(setting.task, None)
        languages = self.reads(setting.source, setting.target).train
        check_languages(model, languages)
        read = without_translated_tags(setting).train if uses_teacher(setting.task) else setting.train
        groups = {code: encode(setting, tokenizer, read(code), code) for code in languages}
        padding = tokenizer.pad_token_id
        batches = Bucketed(
            groups={code: [replace(row, gold=()) for row in rows] for code, rows in groups.items()},
            length=lambda row: len(row.subwords),
            size=setting.optimization.batch_size,
            epochs=1,
            seed=derive(setting.seed, "order"),
            make=lambda rows, language, _: collate(rows, padding=padding, languages=(language,)),
        )
        epochs = -(-steps // max(1, batches.steps_per_epoch))
        teacher = load_teacher(setting.task, setting.teacher)
        return AuxiliaryTerm(
            batches=replace(batches, epochs=epochs), loss=partial(self._loss, setting.task, model, teacher)
        )

    def _loss(self, task: Task, model: Model, teacher: Model, batch: Batch) -> Tensor:
        """Return λ₂ KL(f(x; θ*) ‖ f(x; θ)), the mean over what is labelled; no gradient reaches θ*."""
        with torch.no_grad():
            theirs = in_classes(task, task.scores(teacher, batch), batch)
        both = one_answer(task) or CLASSES
        if both.divergence is None:
            raise TypeError(f"{task.name} has no divergence")  # check refuses it.
        return self.weight * both.divergence(theirs, in_classes(task, task.scores(model, batch), batch))


def in_classes(task: Task, scores: Tensor, batch: Batch) -> Float[Tensor, "label class"]:
    """Return raw scores of the classes of what is labelled; of a span, of the places of both ends."""
    scores = scores.float()
    if task.labels_are != "span":
        return scores
    among = scores.new_full((*batch.subwords.shape, 2), NOWHERE)
    return among.index_put((batch.rows, batch.columns), scores).transpose(1, 2).flatten(0, 1)
