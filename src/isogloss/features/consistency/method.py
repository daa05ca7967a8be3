"""Consistency of predictions on an example and its translation, and with an earlier model.

Zheng et al. (2021), "Consistency Regularization for Cross-Lingual Fine-Tuning" (xTune), with machine
translation as the augmentation. It is the strongest peer of X-Mixup that needs only translations.

Section 3.1: R1 = KL(stop(P)‖Q) + KL(stop(Q)‖P), P and Q the predictions on an example and on its translation;
``stop`` stops gradients. xTune's first stage computes the task loss on the source only; its second also on
the translations. The released code also divides R1 by the number of labels, so its weight of 5 is 5/3 for
NLI. In tagging, where both sides have different words, P and Q are the predictions on words linked by the
translator or by an aligner.

Section 3.2: R2 = Σ_x KL(f(x; θ*) ‖ f(x; θ)) over the examples x of the source and their translations, θ* the
frozen model of the first stage. It reads no labels, so it also applies to translations in tagging, whose
words have none. It is an auxiliary loss for any fine-tuning method: xTune's second stage is ``consistency``
(R1) with it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal, cast, get_args

from jaxtyping import Float

from isogloss.core.errors import ConfigError
from isogloss.core.identity import derive
from isogloss.core.run_parts import Weight
from isogloss.data.corpus import is_translation
from isogloss.encoders.family import Config, Model, Tokenizer
from isogloss.tasks.batch import Batch, collate
from isogloss.tasks.class_scores import in_classes
from isogloss.tasks.task import CLASSES, Compare, LabelsAre, ScoredTask, Task, divergence_of_classes
from isogloss.training.memory import AddedCost, Load
from isogloss.training.setting import (
    AuxiliaryLoss,
    AuxiliaryTerm,
    Method,
    Reads,
    Setting,
    Trained,
    language_pairs,
)

if TYPE_CHECKING:
    from torch import Tensor

    from isogloss.training.fine_tuning import Examples, Training
    from isogloss.training.sides import Sides

LINKS_NEEDED = "consistency compares, in tagging, words that are linked"


@dataclass(frozen=True, kw_only=True)
class Consistency(Method):
    """Train on examples and their translations together, with equal predictions on both."""

    name: ClassVar[str] = "consistency"
    uses: ClassVar[tuple[str, ...]] = ("source", "target")

    weight: Weight = 5.0
    """Weight of the consistency loss (xTune's λ₁). 0 is plain training on the pairs."""

    task_loss: Literal["both", "source"] = "both"
    """Labels that are learned: the labels of examples and translations, or only of the source, as in the
    first stage of xTune."""

    labels: Literal["projected"] | None = None
    """projected: in tagging, words of translations get the tags of the words they are linked to. Default: the
    predictions of a source-only model."""

    def reads(self, source: tuple[str, ...], target: tuple[str, ...]) -> Reads:
        """Read the source and its translations. No target labels are read, not even to choose the epoch."""
        return Reads(
            train=(*source, *language_pairs(source, target)),
            dev=source,
            teacher=() if self.labels else ("word",),
            links=bool(self.weight),
            sides=2 if target else 1,
        )

    def train(self, setting: Setting) -> Trained:
        """Fine-tune on pairs. A batch has ``batch_size`` pairs of one pair of languages."""
        from isogloss.training.fine_tuning import fine_tune
        from isogloss.training.pairs import with_labels

        self.check(setting.task, None)
        if not setting.source or not setting.target:
            raise ConfigError(
                f"{self.name}: source {list(setting.source)} and target {list(setting.target)}: one of "
                f"each is needed, so that there are translations. Without a target take source-only."
            )
        splits = self.reads(setting.source, setting.target)
        return fine_tune(with_labels(setting, splits), splits, prepare=self._prepare)

    def _prepare(self, setting: Setting, _model: Model, tokenizer: Tokenizer, train: Examples) -> Training:
        from isogloss.training.fine_tuning import Training
        from isogloss.training.pairs import paired_batches
        from isogloss.training.sides import check_linked

        splits = self.reads((), ())
        for language in filter(is_translation, train if splits.needs_links(setting.task) else ()):
            check_linked(train[language], language, needed=LINKS_NEEDED)
        batches, warnings = paired_batches(
            setting, tokenizer, train, pseudo_labels=splits.needs_teacher(setting.task)
        )
        return Training(batches=batches, loss=partial(self.loss, setting.task), warnings=warnings)

    def loss(self, task: Task, model: Model, batch: Sides) -> Tensor:
        """Return the task's loss and R1 on pairs that run through the model in one pass."""
        import torch

        scores = task.scores(model, batch.joined).float()
        if task.labels_are == "word":
            return self._loss_of_words(cast("ScoredTask", task), scores, batch)
        labelled = batch.source
        if self.task_loss == "both":
            soft = [side.soft for side in (batch.source, batch.target) if side.soft is not None]
            gold = torch.cat((batch.source.gold, batch.target.gold))
            labelled = replace(batch.joined, gold=gold, soft=torch.cat(soft) if soft else None)
        loss = cast("ScoredTask", task).loss_of(scores[: labelled.scored], labelled)
        if self.weight:
            loss = loss + self.weight * inconsistency(*batch.split(scores), self._divergence(task))
        return loss if batch.shares.pairs == 1 else loss * batch.shares.pairs

    def _loss_of_words(self, task: ScoredTask, scores: Tensor, batch: Sides) -> Tensor:
        """Return the loss of the source's words, or the mean of both sides', and R1 of linked words."""
        source, target = batch.split(scores)
        loss = batch.shares.source * task.loss_of(source, batch.source)
        if self.task_loss == "both":
            loss = (loss + batch.shares.target * task.loss_of(target, batch.target)) / 2
        if self.weight:
            loss = loss + self.weight * batch.shares.pairs * inconsistency_of_words(source, target, batch)
        return loss

    def check(self, task: Task, encoder: Config | None) -> None:  # noqa: ARG002
        """Raise ConfigError for a task whose predictions have no divergence from a translation's."""
        if task.labels_are != "word":
            self._divergence(task)

    def _divergence(self, task: Task) -> Compare:
        answer = task.one_answer
        if answer is None:
            raise ConfigError(
                f"{self.name}: task {task.name!r} predicts places in a text, and those of a translation do "
                f"not line up with them (xTune takes code-switching for questions instead). Take "
                f"translate-train or x-mixup, or a task with a label for each text, choice or word."
            )
        if answer.divergence is None:
            raise ConfigError(
                f"{self.name}: task {task.name!r} predicts a number, and KL divergence is one of "
                f"probabilities. Take translate-train or x-mixup."
            )
        return answer.divergence


def inconsistency(
    x: Float[Tensor, "pair label"],
    y: Float[Tensor, "pair label"],
    divergence: Compare = divergence_of_classes,
) -> Float[Tensor, ""]:
    """Return the mean over pairs of KL(stop(P)‖Q) + KL(stop(Q)‖P), from raw scores. 0 if they agree."""
    return divergence(x.detach(), y) + divergence(y.detach(), x)


def inconsistency_of_words(
    x: Float[Tensor, "label class"], y: Float[Tensor, "label class"], batch: Sides
) -> Float[Tensor, ""]:
    """Return R1 of scored words that are linked: the mean over pairs of the mean over a pair's links.

    0 for a pair without links.
    """
    from torch.nn.functional import kl_div

    pair, first, second = linked_labels(batch)
    p, q = x[first].log_softmax(dim=-1), y[second].log_softmax(dim=-1)
    to_second = kl_div(q, p.detach(), reduction="none", log_target=True)
    to_first = kl_div(p, q.detach(), reduction="none", log_target=True)
    divergence = (to_second + to_first).sum(dim=-1)
    return (divergence / pair.bincount()[pair]).sum() / batch.source.items


def linked_labels(batch: Sides) -> tuple[Tensor, Tensor, Tensor]:
    """Return for each two scored words that are linked their pair, and their numbers among each side's."""
    import torch

    if batch.links is None:
        raise ValueError("pairs without links have no words in common")
    side_indices = []
    for side in (batch.source, batch.target):
        indices = side.rows.new_full((side.items, batch.links.size(1)), -1)
        indices[side.rows, side.columns] = torch.arange(len(side.rows), device=side.rows.device)
        side_indices.append(indices)
    pair, target, source = batch.links.nonzero(as_tuple=True)
    source_indices, target_indices = side_indices[0][pair, source], side_indices[1][pair, target]
    is_scored = (source_indices >= 0) & (target_indices >= 0)
    return pair[is_scored], source_indices[is_scored], target_indices[is_scored]


@dataclass(frozen=True, kw_only=True)
class ModelConsistency(AuxiliaryLoss):
    """Keep predictions near an earlier model's (the teacher), on the source and on its translations."""

    name: ClassVar[str] = "model-consistency"
    uses: ClassVar[tuple[str, ...]] = ("source", "target")

    weight: Weight = 1.0
    """Weight of the loss (xTune's λ₂), a mean over examples or words. 0 is the method without it."""

    def reads(self, source: tuple[str, ...], target: tuple[str, ...]) -> Reads:
        """Read the source and its translations."""
        teacher: tuple[LabelsAre, ...] = get_args(LabelsAre) if self.weight else ()
        return Reads(train=(*source, *language_pairs(source, target)), teacher=teacher)

    def cost(self, batch: Load) -> AddedCost:
        """Return the cost of a further batch of examples, and of the teacher."""
        return AddedCost(rows=batch.rows, copies=1.0)

    def check(self, task: Task, encoder: Config | None) -> None:  # noqa: ARG002
        """Raise ConfigError for a task whose answers have no comparable probabilities."""
        answer = task.one_answer
        if self.weight and (task.labels_are == "tree" or (answer is not None and answer.divergence is None)):
            answers = "trees" if task.labels_are == "tree" else "a number"
            raise ConfigError(
                f"{self.name}: task {task.name!r} predicts {answers}, and compared are probabilities of "
                f"labels. Remove it, or take a task that labels examples, words or spans."
            )

    def prepare(
        self, setting: Setting, model: Model, tokenizer: Tokenizer, steps: int
    ) -> AuxiliaryTerm | None:
        """Encode examples and translations. Each epoch of their batches has all of them once."""
        from isogloss.encoders.added.active_language import check_languages
        from isogloss.training.batching import Bucketed
        from isogloss.training.pairs import encode, load_teacher, without_translated_tags

        if not self.weight:
            return None
        self.check(setting.task, None)
        languages = self.reads(setting.source, setting.target).train
        check_languages(model, languages)
        read = without_translated_tags(setting).train if setting.task.labels_are == "word" else setting.train
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
        """Return λ₂ KL(f(x; θ*) ‖ f(x; θ)), the mean over labelled units. No gradient reaches θ*."""
        import torch

        with torch.no_grad():
            reference = in_classes(task, task.scores(teacher, batch), batch)
        divergence = (task.one_answer or CLASSES).divergence
        if divergence is None:
            raise TypeError(f"{task.name} has no divergence")  # check refuses it.
        return self.weight * divergence(reference, in_classes(task, task.scores(model, batch), batch))
