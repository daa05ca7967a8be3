"""Regularized fine-tuning: the trained model stays near its start, or is smooth around each input.

R3F: Aghajanyan et al. (2021), "Better Fine-Tuning by Reducing Representational Collapse", Section 2:
predictions on an input must agree with predictions on the same input with noise in its word embeddings.
L2-SP: Li et al. (2018), "Explicit Inductive Bias for Transfer Learning with Convolutional Networks", Section
3.1: the loss includes the squared distance from the pretrained weights. "Zero-shot Cross-lingual Transfer is
Under-specified Optimization" names regularized fine-tuning in Section 6 as a way to a better solution.
Sharpness-aware minimization changes the update and not the loss, so it is a field of the optimization:
``sam_radius``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal

from jaxtyping import Float

from isogloss.core.errors import ConfigError, ModelError
from isogloss.core.run_parts import Weight
from isogloss.encoders.family import Config, Model, Tokenizer, head_parameters
from isogloss.tasks.batch import IGNORED, Batch
from isogloss.tasks.class_scores import in_classes
from isogloss.tasks.task import CLASSES, Compare, Task
from isogloss.training.memory import AddedCost, Load
from isogloss.training.setting import AuxiliaryLoss, AuxiliaryTerm, Reads, Setting

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from isogloss.training.sides import Sides

Noise = Literal["uniform", "normal"]
"""Uniform between -σ and σ, or normal with the standard deviation σ."""


@dataclass(frozen=True, kw_only=True)
class R3F(AuxiliaryLoss):
    """Add λ times the symmetric divergence of predictions with and without noise in the word embeddings."""

    name: ClassVar[str] = "r3f"
    uses: ClassVar[tuple[str, ...]] = ()

    weight: Weight = 1.0
    """λ, the weight of the divergence. Default: 1, as in the released code. 0 is the method without it."""

    sigma: Weight = 1e-5
    """Standard deviation σ of the noise. 0 disables it."""

    noise: Noise = "uniform"
    """uniform: between -sigma and sigma. normal: with the standard deviation sigma."""

    dropout: Literal["separate"] | None = None
    """Dropout of both passes. separate: each pass draws its dropout, as in the released code, so the term
    also penalises differences due to dropout. With sigma = 0 this is R-Drop (Liang et al. 2021). Default:
    both passes have the same dropout, and the term measures only the noise."""

    @property
    def is_neutral(self) -> bool:
        """Whether the term is 0 for every model."""
        return not self.weight or (not self.sigma and self.dropout is None)

    def reads(self, source: tuple[str, ...], target: tuple[str, ...]) -> Reads:  # noqa: ARG002
        """Read nothing: it uses the batches of the method."""
        return Reads()

    def cost(self, batch: Load) -> AddedCost:
        """Return the cost of two further passes over a batch."""
        return AddedCost() if self.is_neutral else AddedCost(rows=2 * batch.rows)

    def check(self, task: Task, encoder: Config | None) -> None:  # noqa: ARG002
        """Raise ConfigError for a task whose answers have no comparable probabilities."""
        answer = task.one_answer
        if not self.is_neutral and (task.labels_are == "tree" or (answer and answer.divergence is None)):
            answers = "trees, which are scored as a whole" if task.labels_are == "tree" else "a number"
            raise ConfigError(
                f"{self.name}: task {task.name!r} predicts {answers}, and R3F compares probabilities of "
                f"labels. Use l2-sp or sam_radius, or a task that labels examples, words or spans."
            )

    def prepare(
        self,
        setting: Setting,
        model: Model,
        tokenizer: Tokenizer,  # noqa: ARG002
        steps: int,  # noqa: ARG002
    ) -> AuxiliaryTerm | None:
        """Return the term on the method's batches. None if it is 0."""
        if self.is_neutral:
            return None
        self.check(setting.task, None)
        return AuxiliaryTerm(batches=None, loss=partial(self.loss, setting.task, model))

    def loss(self, task: Task, model: Model, batch: Batch | Sides) -> Tensor:
        """Return λ KL_S(f(x) ‖ f(x + z)), the mean over labelled units, in float32.

        Noise of the usual size is lost where states are rounded to bfloat16.
        """
        import torch

        rows, share = _find_rows_and_share(batch)
        device = rows.subwords.device
        seed = int(torch.randint(1 << 62, ()))  # Of the generator that draws dropout, which a step seeds.
        with torch.autocast(device.type, enabled=False):
            with nullcontext() if self.dropout else _restore_generator(device):
                clean = _scores(task, model, rows)
            with add_noise_to_embeddings(model, sigma=self.sigma, noise=self.noise, seed=seed):
                noisy = _scores(task, model, rows)
            divergence = compute_symmetric_divergence(clean, noisy, (task.one_answer or CLASSES).divergence)
        return self.weight * share * divergence


def compute_symmetric_divergence(
    first: Float[Tensor, "item class"],
    second: Float[Tensor, "item class"],
    divergence: "Compare | None" = None,
) -> Float[Tensor, ""]:
    """Return the mean over items of KL_S(p, q) = KL(p ‖ q) + KL(q ‖ p), from raw scores.

    Gradients reach both sides. ``divergence`` computes the mean of KL(p ‖ q) for the task's kind of answer.
    Default: one of several classes.
    """
    divergence = divergence or CLASSES.divergence
    if divergence is None:
        raise TypeError("these answers have no divergence")  # Classes have one.
    return divergence(first, second) + divergence(second, first)


@contextmanager
def add_noise_to_embeddings(model: Model, *, sigma: float, noise: Noise, seed: int) -> Iterator[None]:
    """Add noise to the word embeddings of every pass of a model in this context.

    The noise is drawn from ``seed`` and the shape, and differs between passes. The model must not be shared
    with other callers.
    """
    import torch
    from torch import nn

    encoder = model.base_model
    table = encoder.get_input_embeddings().weight
    # Encoders of mT5 read the table in a separate module.
    modules = [part for part in encoder.modules() if isinstance(part, nn.Embedding) and part.weight is table]
    generator = torch.Generator(table.device).manual_seed(seed)

    def add(_: nn.Module, __: object, states: Tensor) -> Tensor:
        noise_values = torch.empty(states.shape, device=states.device)
        if noise == "uniform":
            noise_values.uniform_(-sigma, sigma, generator=generator)
        else:
            noise_values.normal_(0.0, sigma, generator=generator)
        return states + noise_values.to(states.dtype)

    with ExitStack() as hooks:
        for module in modules or [encoder.get_input_embeddings()]:
            hooks.enter_context(module.register_forward_hook(add))
        yield


def _scores(task: Task, model: Model, batch: Batch) -> Float[Tensor, "item class"]:
    """Return raw scores of the classes of labelled units, without those that fill up a rounded batch."""
    scores = in_classes(task, task.scores(model, batch), batch)
    return scores[batch.gold != IGNORED] if batch.is_rounded and len(batch.gold) else scores


def _find_rows_and_share(batch: Batch | Sides) -> tuple[Batch, float]:
    """Return the rows of a batch, and the share of a part of a batch of pairs in the mean over all units."""
    from isogloss.training.sides import Sides

    if isinstance(batch, Batch):
        return batch, 1.0
    if not isinstance(batch, Sides):
        raise ConfigError(
            f"r3f: the method's batches are {type(batch).__name__}; expected rows, or rows with their "
            f"translations. Remove auxiliary, or choose another method."
        )
    units = batch.source.terms / batch.shares.source + batch.target.terms / batch.shares.target
    return batch.joined, (batch.source.terms + batch.target.terms) / units


@contextmanager
def _restore_generator(device: torch.device) -> Iterator[None]:
    """Restore torch's generators of the CPU and of a device at the end."""
    import torch

    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        yield


@dataclass(frozen=True, kw_only=True)
class L2SP(AuxiliaryLoss):
    """Add half of λ times the squared distance of the weights from their values before the first step."""

    name: ClassVar[str] = "l2-sp"
    uses: ClassVar[tuple[str, ...]] = ()

    weight: Weight = 0.1
    """Weight λ (α in Li et al.) of the squared distance from the start. 0 disables it. Default: 0.1, as in
    the released script, which also uses 0.01 for new weights."""

    new_weight: Weight = 0.01
    """β, the weight of the squared size of new weights: the head's and a pooler's, unless training continues
    from a model that has a head. 0 adds none."""

    def reads(self, source: tuple[str, ...], target: tuple[str, ...]) -> Reads:  # noqa: ARG002
        """Read nothing: the term depends on the weights only."""
        return Reads()

    def cost(self, batch: Load) -> AddedCost:  # noqa: ARG002
        """Return the cost of a copy of the weights."""
        return AddedCost(copies=1.0 if self.weight else 0.0)

    def prepare(
        self,
        setting: Setting,
        model: Model,
        tokenizer: Tokenizer,  # noqa: ARG002
        steps: int,
    ) -> AuxiliaryTerm | None:
        """Copy the trained weights. Returns None if both weights of the term are 0."""
        from isogloss.training.batching import BatchesByStep
        from isogloss.training.distributed import refuse_sharding

        if not self.weight and not self.new_weight:
            return None
        refuse_sharding(self.name, "train it in processes that each hold the whole model")
        new_names = set() if _has_trained_head(setting) else {*head_parameters(model)}
        trained_weights = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
        pulled_weights = {
            name: weight for name, weight in trained_weights.items() if name not in new_names and self.weight
        }
        start = StartPenalty(pulled_weights, masks=_find_masks(model, pulled_weights))
        new_weights = [weight for name, weight in trained_weights.items() if name in new_names]

        def penalty(_: object) -> Tensor:
            distance = self.weight * start.squared_distance()
            size = self.new_weight * sum_squares(new_weights) if self.new_weight and new_weights else 0.0
            return (distance + size) / 2

        return AuxiliaryTerm(batches=BatchesByStep(steps, lambda _: _NoData()), loss=penalty)


class StartPenalty:
    """The squared distance of weights from their values now."""

    def __init__(
        self, weights: Mapping[str, nn.Parameter], masks: Mapping[str, Tensor] | None = None
    ) -> None:
        """Copy the weights. With ``masks``, a weight counts only if its mask is true."""
        self._weights = dict(weights)
        self._find_masks = dict(masks or {})
        self._start = {name: weight.detach().clone() for name, weight in weights.items()}
        self._moved: set[str] = set()

    def squared_distance(self) -> Float[Tensor, ""]:
        """Return Σ(θ - θ₀)² on the current device of the weights.

        A weight that has not moved gets no gradient, not even 0. With a gradient, weight decay would move
        weights that no batch uses, such as modules of other languages.
        """
        import torch

        unmoved_names = [name for name in self._weights if name not in self._moved]
        with torch.no_grad():
            squares = [self._compute_square(name) for name in unmoved_names]
        distances = torch.stack(squares).tolist() if squares else []
        self._moved |= {name for name, distance in zip(unmoved_names, distances, strict=True) if distance}
        moved_squares = [self._compute_square(name) for name in self._weights if name in self._moved]
        return torch.stack(moved_squares).sum() if moved_squares else torch.zeros((), requires_grad=True)

    def _compute_square(self, name: str) -> Float[Tensor, ""]:
        weight = self._weights[name]
        if self._start[name].device != weight.device:
            self._start[name] = self._start[name].to(weight.device)
        difference = weight - self._start[name]
        if name in self._find_masks:
            difference = difference * self._find_masks[name].to(weight.device)
        return difference.square().sum()


def sum_squares(weights: list[nn.Parameter]) -> Float[Tensor, ""]:
    """Return Σθ²."""
    import torch

    return torch.stack([weight.square().sum() for weight in weights]).sum()


def _has_trained_head(setting: Setting) -> bool:
    """Return whether a training continues from a model with a head of its task."""
    try:
        setting.task.head(setting.start, seed=None)
    except ModelError:
        return False
    return True


def _find_masks(model: nn.Module, weights: Mapping[str, nn.Parameter]) -> dict[str, Tensor]:
    """Return the masks of the weights that are trained only in part."""
    from isogloss.encoders.added.sparse_deltas import Masked

    masks: dict[str, Tensor] = {}
    for path, module in model.named_modules():
        name = f"{path.rpartition('.')[0]}.original"
        if isinstance(module, Masked) and name in weights:
            masks[name] = module.mask
    return masks


@dataclass(frozen=True)
class _NoData:
    """The batch of a term that depends on no data: it has one part."""

    def to(self, device: torch.device) -> "_NoData":  # noqa: ARG002
        """Return the batch."""
        return self

    def parts(self, count: int) -> "list[tuple[_NoData, float]]":  # noqa: ARG002
        """Return the batch with its full share."""
        return [(self, 1.0)]
