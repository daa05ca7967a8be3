"""Meta-learned parameters of single languages: Algorithm 1 as a loss for ``fit``.

Wang, Lipton & Tsvetkov (2020), "On Negative Interference in Multilingual Models", Section 4 and Appendix B.
Shared parameters θ, parameters φ_i of each language:

    4  while not converged:
    5      sample a language i, a batch of it, and a validation batch of each language j
    6      φ_i ← update(φ_i, ∇_{φ_i} mean_j L_val^j(θ − u(∇_θ L_train^i(θ, φ_i)), φ_j))
    7      θ ← update(θ, ∇_θ L_train^i(θ, φ_i)), with the new φ_i
    8  end

``fit`` is the loop, ``MetaBatches`` samples (line 5), and ``MetaLearningModel.forward`` updates φ_i along the
hypergradient (line 6) with a second optimiser and returns the loss from which ``fit`` updates θ (line 7). φ
does not require gradients in ``fit``, so it is updated once, unless line 7 also updates φ_i. All batches are
training text. Validation batches come from a held-out part of it, if one is split off.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from isogloss.core.errors import DataError
from isogloss.core.identity import derive
from isogloss.core.records import Value
from isogloss.core.run_parts import Updates
from isogloss.features.meta_learning.hypergradient import (
    Hypergradient,
    Parameters,
    SecondOrder,
    Step,
    exact,
    finite_difference,
    first_order,
    hypergradient,
    norm,
)
from isogloss.tasks.masked_lm import Masking, TextStream
from isogloss.training.batching import BatchSampling, Movable, TextBatches
from isogloss.training.optimizer import EPSILON, adamw, rate_schedule

Order = Literal["finite-difference", "exact", "first-order"]
SECOND_ORDER: dict[str, SecondOrder] = {
    "finite-difference": finite_difference,
    "exact": exact,
    "first-order": first_order,
}
InnerStep = Literal["plain", "preconditioned"]
INNER_STEPS: tuple[str, ...] = get_args(InnerStep)

BLOCKS = 20
"""Blocks of a held-out stretch: few enough that all parts of a text are sampled, many enough that little text
is lost between stretches."""

TextLoss = Callable[[nn.Module, Any], Tensor]
"""From a model and a batch of one language to one number."""


@dataclass(frozen=True, kw_only=True)
class MetaBatch:
    """The batches of one step of Algorithm 1."""

    language: str
    train: Movable
    validation: Sequence[Movable]
    """A batch of each language."""
    pace: float
    """Share of the maximum rates at this step, the same for all rates."""
    is_whole: ClassVar[bool] = True
    """Processes share the validation losses, not the batch. All of them update φ before θ is updated."""

    def to(self, device: torch.device) -> "MetaBatch":
        """Return the batch on a device."""
        validation = [batch.to(device) for batch in self.validation]
        return replace(self, train=self.train.to(device), validation=validation)


@dataclass(frozen=True, kw_only=True)
class Learning:
    """The hyper-parameters of meta-learning φ."""

    own_rate: float
    """Maximum α."""
    inner_rate: float
    """Maximum β of the lookahead step."""
    inner_step: str = "plain"
    second_order: str = "finite-difference"
    moves_shared: bool = True
    """Whether θ is also updated (line 7), not only in the lookahead step."""
    own_on_train: bool = False
    """Whether line 7 also updates φ_i."""


class MetaLearningModel(nn.Module):
    """A model and the state of its meta-learning, as parameters, so that checkpoints contain it."""

    def __init__(
        self,
        model: nn.Module,
        language_parameters: Mapping[str, Mapping[str, nn.Parameter]],
        loss: TextLoss,
        *,
        learning: Learning,
        updates: Updates,
    ) -> None:
        """Exclude ``language_parameters``, by language and name, from all other optimizers.

        With ``learning.own_on_train`` they also learn from the training loss, so both optimizers update them.
        """
        super().__init__()
        self.model = model
        self._loss = loss
        self._learning = learning
        self._adam = updates
        self._by_language = {language: dict(parts) for language, parts in language_parameters.items()}
        single = {name: weight for parts in self._by_language.values() for name, weight in parts.items()}
        self._shared = {name: weight for name, weight in model.named_parameters() if name not in single}
        self._terms: dict[str, Tensor] = {}
        self._language = ""
        self.adamw = CheckpointedAdamW(single.values(), updates)
        if learning.own_on_train:
            self.adamw.restore_requires_grad()
        has_squares = learning.inner_step == "preconditioned"
        weights = self._shared.values() if has_squares else ()
        self.squares = as_checkpointed(torch.zeros_like(weight) for weight in weights)
        self.updates = as_checkpointed([torch.zeros(())])

    def forward(self, batch: MetaBatch, model: nn.Module | None = None) -> Tensor:
        """Update φ of the batch's language (line 6), then return the loss for updating θ (line 7).

        ``model`` is a copy that shares the model's parameters and computes the returned loss. Default: the
        model itself.
        """
        model = self.model if model is None else model
        parameters = self._by_language[batch.language]
        terms = hypergradient(
            functional_loss(model, self._loss, batch.train),
            [functional_loss(model, self._loss, validation) for validation in batch.validation],
            self._shared,
            parameters,
            step=self._step(batch.pace * self._learning.inner_rate),
            second_order=SECOND_ORDER[self._learning.second_order],
        )
        gradient = terms.total()
        self.adamw.update(
            [(weight, gradient[name]) for name, weight in parameters.items()],
            batch.pace * self._learning.own_rate,
        )
        self._record(batch.language, terms)
        if not (self._learning.moves_shared or self._learning.own_on_train):
            # A loss that depends on no parameter: ``fit`` moves none.
            return terms.train.clone().requires_grad_()
        return self._loss(model, batch.train)

    def rows(self, done: int) -> list[dict[str, Value]]:
        """Return a row of the last step with its losses and the norm of each term of the hypergradient."""
        if not self._terms:
            return []
        numbers = {name: float(f"{float(value):.6g}") for name, value in self._terms.items()}
        return [{"step": done, "language": self._language, **numbers}]

    def restore_requires_grad(self) -> None:
        """Let all parameters require gradients again."""
        self.adamw.restore_requires_grad()

    def _step(self, rate: float) -> Step:
        if not len(self.squares):
            return plain_step(rate)
        return preconditioned_step(
            rate,
            dict(zip(self._shared, self.squares, strict=True)),
            updates=int(self.updates[0]),
            beta2=self._adam.beta2,
            epsilon=self._adam.epsilon or EPSILON,
        )

    def _record(self, language: str, terms: Hypergradient) -> None:
        self._language = language
        self._terms = {
            "train_loss": terms.train,
            "validation_loss": terms.validation,
            "first_term": norm(terms.direct),
            "second_term": norm(terms.second_order),
        }
        if len(self.squares):
            self.updates[0] += 1
            for square, gradient in zip(self.squares, terms.gradient.values(), strict=True):
                square.lerp_(gradient.square(), 1 - self._adam.beta2)


class _Objective(nn.Module):
    """A loss as a module, so that its model's parameters can be replaced."""

    def __init__(self, model: nn.Module, loss: TextLoss) -> None:
        super().__init__()
        self.model = model
        self.loss = loss

    def forward(self, batch: object) -> Tensor:
        return self.loss(self.model, batch)


def functional_loss(model: nn.Module, loss: TextLoss, batch: object) -> Callable[..., Tensor]:
    """Return the loss as a function of parameters by name. All other parameters are the model's.

    Several mappings may be passed if no name is in two of them. Tied parameters use their first name.
    """
    objective = _Objective(model, loss)

    def evaluate(*parameters: Mapping[str, Tensor]) -> Tensor:
        values = {f"model.{name}": part for parts in parameters for name, part in parts.items()}
        value: Tensor = functional_call(objective, values, (batch,))
        return value

    return evaluate


def plain_step(rate: float) -> Step:
    """Return u of Algorithm 1, gradient descent: the rate times the gradient.

    Adam moves each number by about the rate, however small its gradient. Gradient descent at Adam's rate is
    therefore much shorter than Adam's step, and the second-order term is only a few hundredths of the direct
    one. The preconditioned step is as long as Adam's, and the two terms have similar sizes.
    """
    return lambda gradient: {name: rate * part for name, part in gradient.items()}


def preconditioned_step(
    rate: float, moments: Parameters, *, updates: int, beta2: float, epsilon: float
) -> Step:
    """Return Adam's step without momentum, because φ does not change older gradients.

    ``moments`` are the running means of squared gradients after ``updates`` steps. The new gradient enters
    them first, as in Adam, so the normalised step is differentiated.
    """
    weight = 1 - beta2 ** (updates + 1)

    def change(name: str, part: Tensor) -> Tensor:
        square = (beta2 * moments[name] + (1 - beta2) * part.square()) / weight
        step = rate * part / (square + epsilon**2).sqrt()
        return step.where(part != 0, 0.0)  # Numbers without a gradient do not depend on φ.

    return lambda gradient: {name: change(name, part) for name, part in gradient.items()}


class CheckpointedAdamW(nn.Module):
    """AdamW over parameters that ``fit`` does not train, with moments in the checkpoints of ``fit``.

    A checkpoint contains a model's parameters, so the moments are parameters that are not trained. A
    parameter is updated, and its steps are counted, only if it has a gradient.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], updates: Updates) -> None:
        """Exclude the parameters from all other optimizers, since they no longer require gradients."""
        super().__init__()
        weights = list(parameters)
        self._clip = updates.clip
        self._optimizer = adamw(nn.ParameterList(weights), updates)
        self.updates = as_checkpointed(torch.zeros(()) for _ in weights)
        self.means = as_checkpointed(torch.zeros_like(weight) for weight in weights)
        self.squares = as_checkpointed(torch.zeros_like(weight) for weight in weights)
        for weight, step, mean, square in zip(weights, self.updates, self.means, self.squares, strict=True):
            self._optimizer.state[weight] = {"step": step, "exp_avg": mean, "exp_avg_sq": square}
            weight.requires_grad_(False)

    def update(self, gradients: Iterable[tuple[nn.Parameter, Tensor]], rate: float) -> None:
        """Update parameters by their gradients, clipped together, and clear the gradients."""
        parameter_gradients = dict(gradients)
        for parameter, gradient in parameter_gradients.items():
            parameter.grad = gradient
        if self._clip:
            nn.utils.clip_grad_norm_(list(parameter_gradients), self._clip)
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)

    def restore_requires_grad(self) -> None:
        """Let the parameters require gradients again."""
        for group in self._optimizer.param_groups:
            for parameter in group["params"]:
                parameter.requires_grad_(True)


def as_checkpointed(values: Iterable[Tensor]) -> nn.ParameterList:
    """Return values as parameters that are saved in checkpoints and not trained."""
    return nn.ParameterList(nn.Parameter(value.detach(), requires_grad=False) for value in values)


@dataclass(frozen=True, kw_only=True)
class MetaBatches:
    """Training and validation batches of each step (line 5), drawn only from the seed and the step."""

    train: TextBatches
    validation: Mapping[str, TextBatches]
    """Validation batches by language."""
    pace: Callable[[int], float]
    """From a step to the share of the maximum rates."""

    def __len__(self) -> int:
        return len(self.train)

    def __getitem__(self, step: int) -> MetaBatch:
        train = self.train[step]
        return MetaBatch(
            language=train.languages[0],
            train=train,
            validation=[batches[step] for batches in self.validation.values()],
            pace=self.pace(step),
        )


@dataclass(frozen=True, kw_only=True)
class Validation:
    """The split of training text on which validation losses are computed."""

    share: float
    """Share of each language's training text that is split off. With 0, both parts are the whole text."""
    batch_subwords: int
    text: Mapping[str, TextStream] | None = None
    """Validation text by language that is not trained on, instead of a share."""


def meta_batches(
    streams: Mapping[str, TextStream],
    sampling: BatchSampling,
    masking: Masking,
    *,
    validation: Validation,
    updates: Updates,
    seed: int,
) -> MetaBatches:
    """Split off validation text, and sample both parts.

    Raises DataError for a language with too little text.
    """

    def split(language: str, stream: TextStream) -> tuple[TextStream, TextStream]:
        if validation.text is not None:
            return stream, validation.text[language]
        if not validation.share:
            return stream, stream
        return split_text(stream, share=validation.share, length=sampling.block - 2, language=language)

    parts = {language: split(language, stream) for language, stream in streams.items()}
    return MetaBatches(
        train=TextBatches(
            sampling=sampling,
            streams={language: train for language, (train, _) in parts.items()},
            masking=masking,
            seed=derive(seed, "text"),
        ),
        validation={
            language: TextBatches(
                sampling=replace(sampling, batch_subwords=validation.batch_subwords),
                streams={language: held_out},
                masking=masking,
                seed=derive(seed, "validation", language),
            )
            for language, (_, held_out) in parts.items()
        },
        pace=rate_schedule(replace(updates, learning_rate=1.0), sampling.steps),
    )


def split_text(
    stream: TextStream, *, share: float, length: int, language: str
) -> tuple[TextStream, TextStream]:
    """Return two views of a text: training text, and a held-out share in stretches spread over its length.

    Blocks of ``length`` subwords of one view share no subword with blocks of the other. Raises DataError if
    the text is too short.
    """
    total = len(stream)
    size = max(length, round(total * share))
    count = max(1, size // (BLOCKS * length))
    ends = np.arange(1, count + 1) * total // count
    firsts = np.minimum(stream.starts, max(0, total - length))  # First subword of the block at each start.
    section = np.searchsorted(ends, firsts, side="right")
    begins = ends[section] - size // count
    train = firsts + length <= begins
    held_out = (firsts >= begins) & (firsts + length <= ends[section])
    if not held_out.any() or not train.any():
        raise DataError(
            f"{language}: the text of {total} subwords is too short to hold out a share of {share:g} in rows "
            f"of {length}. Add text, remove the language, or lower block."
        )
    return (
        TextStream(stream.subwords, stream.starts[train]),
        TextStream(stream.subwords, stream.starts[held_out]),
    )
