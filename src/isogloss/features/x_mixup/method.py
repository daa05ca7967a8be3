"""X-Mixup: the states of an example and of its translation are mixed in one layer.

Yang et al. (2022), "Enhancing Cross-lingual Transfer by Manifold Mixup", Section 4. Eqs 6-8 are here; the
mixing itself (Eqs 2-5) is in ``encoders/mixup.py``.

With ``ratio`` 0, without schedule, MSE and KL, it is translate-train on batches that hold an example and its
translation, weighted by alpha. Without a target it is source-only, to the bit.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal, cast

import numpy as np
from jaxtyping import Float

from isogloss.core.errors import ConfigError
from isogloss.core.identity import derive
from isogloss.core.run_parts import Attends, Count, Mixed, Rate, Residual, Share, Weight
from isogloss.data.corpus import is_translation
from isogloss.encoders.family import Config, Model, Tokenizer
from isogloss.tasks import TASKS
from isogloss.tasks.batch import Batch
from isogloss.tasks.task import LabelsAre, ScoredTask, Task
from isogloss.training.setting import Method, Reads, Setting, Trained, language_pairs

if TYPE_CHECKING:
    from torch import Tensor

    from isogloss.features.x_mixup.mixed_model import MixedModel
    from isogloss.training.fine_tuning import Examples, Training
    from isogloss.training.sides import Sides

MIN_BACK_TRANSLATED = 0.01
"""Share of back-translated batches below which a schedule is warned of."""

Sampling = Literal["batch", "example"]


@dataclass(frozen=True, kw_only=True)
class XMixup(Method):
    """Train on source examples and their translations, whose states mix with the source's in one layer."""

    name: ClassVar[str] = "x-mixup"
    uses: ClassVar[tuple[str, ...]] = ("source", "target")

    layer: Count = 0
    """Mixup layer, counted from 1. 0 selects the paper's: 1 for classification, 4 for tagging, 8 of 12 (16 of
    24) for QA. In shallower encoders it is the layer at the same relative depth (at least 1)."""

    ratio: Share = 0.5
    """Largest mixup ratio, lambda 0. 0 is without mixup (an ablation of Table 5)."""

    learned_ratio: bool = True
    """Whether each pair has its own ratio, by the entropy of attention. If not, all have the largest."""

    ratio_rate: Rate | None = None
    """Learning-rate multiplier for W and b of the ratio (Eq. 5), which barely leave 0 in short trainings.
    Default: 1."""

    residual: Residual = "normed"
    """Target states in Eq. 4. normed: after the layer norm, as in the paper. summed: before the norm that Eq.
    4 applies, so a small ratio changes little."""

    attends: Attends | None = None
    """Attention of Eq. 3 to the source. cosine: by the similarity of the states, which finds translated words
    where attention does not. links (tagging only): uniformly over the words linked by the translator or by
    [align]; subwords without a link are not mixed. Default: by the layer's queries and keys, as in the
    paper."""

    mixed: Mixed | None = None
    """Mixed states. states: the output of the layer, (1-λ)h_T + λ·A·h_S, which also works in pre-norm
    encoders and decoders; A is cosine attention, or links. Default: the output of self-attention, as in the
    paper, which needs a post-norm encoder."""

    alpha: Share | None = None
    """Weight of the source loss; the target loss gets the rest. Default: the paper's 0.4 for classification,
    0.8 for tagging, 0.2 for QA."""

    mse: Weight = 1.0
    """Weight of the consistency loss on representations. 0 disables it."""

    kl: Weight = 1.0
    """Weight of the consistency loss on predictions, which applies only to classification. 0 disables it."""

    schedule: bool = True
    """Whether back-translations replace more and more of the source side."""

    decay: Count = 0
    """k of scheduled sampling, in mini-batches. 0 selects the paper's: 1000, or 2000 for QA."""

    sampling: Sampling = "batch"
    """Whether a batch or each example draws its source: batch or example."""

    back_loss: Literal["target"] | None = None
    """target: in tagging and QA, batches of back-translations train only on the target loss, with weight 1,
    as in the released code. Needs sampling by batch. Default: both losses, weighted by alpha. Classification
    always uses both, because back-translation preserves its labels."""

    source_as_target: bool | None = None
    """Whether each source language is also a target, its examples paired with themselves in training and in
    paired evaluation, like English in the paper. Default: false."""

    labels: Literal["projected"] | None = None
    """Labels of translated words in tagging. projected: the tags of the words they are linked to. Default:
    the predictions of a source-only model, as in the paper."""

    def __post_init__(self) -> None:
        """Refuse fields that exclude each other."""
        if self.back_loss and self.sampling == "example":
            raise ConfigError(
                f'{self.name}: back_loss = "{self.back_loss}" is of batches, and sampling = "example" has '
                f"batches with real sources and back-translations. Leave one of the two out."
            )
        if self.source_as_target and self.attends == "links":
            raise ConfigError(
                f"{self.name}: source_as_target pairs a sentence with itself, which has no word links, and "
                f'attends = "links" mixes along them. Leave one of the two out.'
            )
        if self.mixed and self.residual != "normed":
            raise ConfigError(
                f'{self.name}: residual = "{self.residual}" applies only to mixed attention, and mixed = '
                f'"{self.mixed}" has no norm. Remove one of them.'
            )

    def reads(self, source: tuple[str, ...], target: tuple[str, ...]) -> Reads:
        """Read source examples, their translations and back-translations, but no target labels."""
        pairs = language_pairs(source, target)
        back = [f"{pair}-{pair.partition('-')[0]}" for pair in pairs] if self.schedule else []
        return Reads(
            train=(*source, *pairs, *back),
            dev=source,
            teacher=() if self.labels else ("word",),
            links=self.attends == "links",
            sides=2 if target else 1,
            mixes=True,
            itself=bool(self.source_as_target),
        )

    def mixing(self, task: Task, layers: int) -> Hashable:
        """Return the layer and kinds of mixing, which models of a path share.

        Ratio and weights may differ.
        """
        layer = self.layer or mixup_task(task).layer_of(layers)
        return layer, self.learned_ratio, self.residual, self.attends, self.mixed

    def check(self, task: Task, encoder: Config | None) -> None:
        """Raise ConfigError or ModelError for an unsupported task, encoder or layer, or links of no words."""
        from isogloss.encoders.mixup import LINKS_NEEDED

        kind = mixup_task(task)
        if encoder:
            self._layer(kind, encoder)
        if self.attends == "links" and task.labels_are != "word":
            task_names = ", ".join(
                sorted(name for name, tagging_task in TASKS.items() if tagging_task.labels_are == "word")
            )
            raise ConfigError(
                f"{self.name}: {LINKS_NEEDED}, and examples of {task.name} are texts whose words are not "
                f'given. It is for tagging ({task_names}). Set attends = "cosine", or remove it.'
            )

    def train(self, setting: Setting) -> Trained:
        """Train on pairs. The source's dev set, which is never mixed, chooses the epoch."""
        from isogloss.training.fine_tuning import fine_tune
        from isogloss.training.pairs import with_labels

        splits = self.reads(setting.source, setting.target)
        if not setting.target:
            return fine_tune(setting, splits)
        self.check(setting.task, None)
        return fine_tune(with_labels(setting, splits), splits, prepare=self._prepare)

    def _prepare(self, setting: Setting, network: Model, tokenizer: Tokenizer, train: Examples) -> Training:
        from isogloss.encoders.mixup import save_mixup
        from isogloss.training.fine_tuning import Training
        from isogloss.training.optimizer import set_rate_multiple
        from isogloss.training.pairs import paired_batches
        from isogloss.training.sides import check_linked

        kind = mixup_task(setting.task)
        if self.attends == "links":
            for language in filter(is_translation, train):
                check_linked(train[language], language)
        schedule = SourceSchedule(
            k=self.decay or kind.decay, seed=derive(setting.seed, "schedule"), sampling=self.sampling
        )
        batches, warnings = paired_batches(
            setting,
            tokenizer,
            train,
            takes_real=schedule.takes_real if self.schedule else None,
            pseudo_labels=self.reads((), ()).needs_teacher(setting.task),
            itself=bool(self.source_as_target),
        )
        model = self.mixed_model(setting.task, network)
        if model.ratio is not None:
            set_rate_multiple(model.ratio.parameters(), self.ratio_rate or 1.0, decay=False)
        return Training(
            batches=batches,
            loss=partial(self.loss, cast("ScoredTask", setting.task)),
            trained=model,
            warnings=(*warnings, *(schedule.warnings(len(batches)) if self.schedule else ())),
            extra_writers=(partial(save_mixup, model.mixup),),
        )

    def loss(self, task: ScoredTask, model: "MixedModel", batch: Sides) -> Tensor:
        """Return the loss of Eq. 7 of pairs that run through the model in one pass."""
        from torch.nn.functional import mse_loss

        from isogloss.features.x_mixup.mixed_model import last_states

        kind = mixup_task(task)
        alpha = kind.alpha if self.alpha is None else self.alpha
        if self.back_loss and batch.back and kind is not CLASSIFICATION:
            alpha = 0.0
        with batch.mixing(model.network, model.mixup), last_states(model.network) as states:
            source, target = batch.split(task.scores(model.network, batch.joined))
        share = batch.shares
        loss = alpha * share.source * task.loss_of(source, batch.source)  # Eq. 8
        loss = loss + (1 - alpha) * share.target * task.loss_of(target, batch.target)
        if self.mse:
            r_source, r_target = mean_states(states[-1], batch.joined).chunk(2)
            loss = loss + self.mse * share.rows * mse_loss(r_source, r_target)
        answer = task.one_answer
        if self.kl and answer and answer.divergence:
            loss = loss + self.kl * share.pairs * answer.divergence(source.float(), target.float())
        return loss

    def mixed_model(self, task: Task, network: Model) -> "MixedModel":
        """Return a model with the mixup of its mixup layer. Raises ConfigError or ModelError as ``check``."""
        from isogloss.encoders.mixup import Mixup
        from isogloss.features.x_mixup.mixed_model import MixedModel

        mixup = Mixup(
            layer=self._layer(mixup_task(task), network.config),
            ratio=self.ratio,
            learned=self.learned_ratio,
            residual=self.residual,
            attends=self.attends,
            mixed=self.mixed,
        )
        return MixedModel(network, mixup)

    def _layer(self, kind: "MixupTask", config: Config) -> int:
        """Return the mixup layer. Raises ConfigError or ModelError if the encoder cannot mix in it."""
        from isogloss.encoders.mixup import check_mixup

        layer = self.layer or kind.layer_of(config.num_hidden_layers)
        check_mixup(config, layer, self.mixed)
        return layer


@dataclass(frozen=True, kw_only=True)
class SourceSchedule:
    """Scheduled sampling of the source: the real one at first, its back-translation more and more (Eq. 6).

    At inference the source side is a translation, so training must include some. The draws of a step depend
    on (seed, step) alone.
    """

    k: int
    seed: int
    sampling: Sampling

    def takes_real(self, step: int, count: int) -> list[bool]:
        """Return for each pair of a batch whether the real source is read: p ≤ p*.

        One p for the whole batch, as in the paper, or one for each example.
        """
        rng = np.random.Generator(np.random.PCG64(derive(self.seed, "source", step)))
        draws = rng.random(1).repeat(count) if self.sampling == "batch" else rng.random(count)
        return [bool(is_real) for is_real in draws <= share_of_real(step, self.k)]

    def warnings(self, steps: int) -> tuple[str, ...]:
        """Warn of a training that is too short for the schedule."""
        count = sum(not all(self.takes_real(step, 1)) for step in range(steps))
        if count >= MIN_BACK_TRANSLATED * steps:
            return ()
        return (
            f"scheduled sampling took back-translations in {count} of {steps} batches: the training is "
            f"too short for its decay k. Lower decay (from batch k·ln k on half are taken), or set "
            f"schedule = false.",
        )


def share_of_real(step: int, k: int) -> float:
    """Return p* = k/(k+exp(i/k)), the probability of the real source in mini-batch i, counted from 0.

    The inverse sigmoid decay of Bengio et al. (2015).
    """
    x = math.log(k) - step / k  # k/(k+exp(i/k)) = σ(ln k - i/k), which no i makes overflow
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def mean_states(states: Float[Tensor, "row subword dim"], batch: Batch) -> Float[Tensor, "row dim"]:
    """Return r: the mean of the last layer's states over real subwords."""
    states = states.float()
    if batch.mask is None:
        return states.mean(dim=1)
    mask = batch.mask.unsqueeze(2)
    return (states * mask).sum(dim=1) / mask.sum(dim=1)


BASE_LAYERS = 12
"""Layers of the encoders that the paper chose its layers for."""


@dataclass(frozen=True, kw_only=True)
class MixupTask:
    """The paper's choices for one kind of task (Table 10 and Sections 4.2, 4.3 and 5.1)."""

    alpha: Share
    """Weight of the source side's loss (Eq. 8, Table 10)."""

    decay: int
    """k of scheduled sampling (Table 10)."""

    layer: int
    """The layer that mixes in an encoder of 12 layers."""

    grows: bool = False
    """Whether that layer is proportional in larger encoders, as in the paper for QA: 8 of 12, 16 of 24."""

    def layer_of(self, layers: int) -> int:
        """Return the mixup layer of an encoder with ``layers`` layers.

        A smaller encoder keeps the proportion.
        """
        scaled_layer = max(1, round(self.layer * layers / BASE_LAYERS))
        return scaled_layer if self.grows else min(self.layer, scaled_layer)


CLASSIFICATION = MixupTask(alpha=0.4, decay=1000, layer=1)
STRUCTURED = MixupTask(alpha=0.8, decay=1000, layer=4)
QUESTIONS = MixupTask(alpha=0.2, decay=2000, layer=8, grows=True)

KINDS: Mapping[LabelsAre, MixupTask] = {
    "example": CLASSIFICATION,
    "option": CLASSIFICATION,
    "word": STRUCTURED,
    "span": QUESTIONS,
}
"""By the unit that a task labels."""


def mixup_task(task: Task) -> MixupTask:
    """Return the paper's choices for a task. Raises ConfigError for a task without any."""
    kind = KINDS.get(task.labels_are) if isinstance(task, ScoredTask) else None
    if kind is None:
        task_names = sorted(name for name, known_task in TASKS.items() if known_task.labels_are in KINDS)
        raise ConfigError(
            f"x-mixup: found task {task.name!r}; it is defined for {', '.join(task_names)}. "
            f"Choose one of these, or translate-train."
        )
    return kind
