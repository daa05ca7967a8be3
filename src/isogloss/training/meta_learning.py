"""Meta-learned parameters of single languages: Algorithm 1 as a loss for ``fit``.

Wang, Lipton & Tsvetkov (2020), "On Negative Interference in Multilingual Models", Section 4 and Appendix B.
Shared parameters θ, parameters φ_i of each language:

    4  while not converged:
    5      sample a language i, a batch of it, and a validation batch of each language j
    6      φ_i ← update(φ_i, ∇_{φ_i} mean_j L_val^j(θ − u(∇_θ L_train^i(θ, φ_i)), φ_j))
    7      θ ← update(θ, ∇_θ L_train^i(θ, φ_i)), with the new φ_i
    8  end

``fit`` is the loop, ``MetaBatches`` samples (line 5), ``MetaLearningModel.forward`` moves φ_i along the
hypergradient (line 6) with a second optimiser and returns the loss by which ``fit`` moves θ (line 7).
φ asks ``fit`` for no gradient, so it is moved once, unless line 7 is to move φ_i with θ. All batches are
training text; those of validation are of a held-out part of it, if any is split off.
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
from isogloss.tasks.masked_lm import Masking, TextStream
from isogloss.training.batching import BatchSampling, Movable, TextBatches
from isogloss.training.hypergradient import (
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
"""Blocks of a held-out stretch: few enough that all parts of a text are sampled, many enough that little is
lost between stretches."""

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
    """Share of the highest rates at this step, the same for all rates."""
    is_whole: ClassVar[bool] = True
    """Processes share the validation losses, not the batch: φ moves by all of them, before θ does."""

    def to(self, device: torch.device) -> "MetaBatch":
        """Return the batch on a device."""
        validation = [batch.to(device) for batch in self.validation]
        return replace(self, train=self.train.to(device), validation=validation)


@dataclass(frozen=True, kw_only=True)
class Learning:
    """The hyper-parameters of meta-learning φ."""

    own_rate: float
    """The highest α."""
    inner_rate: float
    """The highest β of the imagined step."""
    inner_step: str = "plain"
    second_order: str = "finite-difference"
    moves_shared: bool = True
    """Whether θ takes more than imagined steps (line 7)."""
    own_on_train: bool = False
    """Whether line 7 moves φ_i, too."""


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

        Unless these learn from the training loss, too: then both optimizers move them.
        """
        super().__init__()
        self.model, self._loss = model, loss
        self._learning, self._adam = learning, updates
        self._by_language = {language: dict(parts) for language, parts in language_parameters.items()}
        single = {name: weight for parts in self._by_language.values() for name, weight in parts.items()}
        self._shared = {name: weight for name, weight in model.named_parameters() if name not in single}
        self._terms: dict[str, Tensor] = {}
        self._language = ""
        self.adamw = CheckpointedAdamW(single.values(), updates)
        if learning.own_on_train:
            self.adamw.restore_requires_grad()
        adapted = self._shared.values() if learning.inner_step == "preconditioned" else ()
        self.squares = checkpointed(map(torch.zeros_like, adapted))
        self.updates = checkpointed([torch.zeros(())])

    def forward(self, batch: MetaBatch, model: nn.Module | None = None) -> Tensor:
        """Move φ of the batch's language (line 6), then return the loss that θ moves by (line 7).

        ``model`` is a copy that shares the parameters of the model, and runs instead of it: while derivatives
        are computed, the parameters of what runs are others. Default: the model itself.
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
        """Return a row of the last step: its losses, and the norm of each term of the hypergradient."""
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
        self.model, self.loss = model, loss

    def forward(self, batch: object) -> Tensor:
        return self.loss(self.model, batch)


def functional_loss(model: nn.Module, loss: TextLoss, batch: object) -> Callable[..., Tensor]:
    """Return the loss as a function of parameters by name; all others are the model's.

    Several mappings may be passed; each name is in one of them. Tied parameters go by their first name.
    """
    objective = _Objective(model, loss)

    def evaluated(*parameters: Mapping[str, Tensor]) -> Tensor:
        replaced = {f"model.{name}": part for parts in parameters for name, part in parts.items()}
        value: Tensor = functional_call(objective, replaced, (batch,))
        return value

    return evaluated


def plain_step(rate: float) -> Step:
    """Return u of Algorithm 1, gradient descent: the rate times the gradient.

    Adam moves each number by about the rate, however small its gradient; so gradient descent at Adam's rate
    is far shorter than Adam's step, and the second-order term some hundredths of the other. The
    preconditioned step is as long as Adam's, and the term as large.
    """
    return lambda gradient: {name: rate * part for name, part in gradient.items()}


def preconditioned_step(
    rate: float, moments: Parameters, *, updates: int, beta2: float, epsilon: float
) -> Step:
    """Return Adam's step without momentum: φ no longer changes older gradients.

    ``moments`` are the running means of squared gradients after ``updates`` steps; the new gradient enters
    them first, as in Adam, so the derivative is that of the normalised step.
    """
    gathered = 1 - beta2 ** (updates + 1)

    def moved(name: str, part: Tensor) -> Tensor:
        square = (beta2 * moments[name] + (1 - beta2) * part.square()) / gathered
        step = rate * part / (square + epsilon**2).sqrt()
        return step.where(part != 0, 0.0)  # Numbers without a gradient do not depend on φ.

    return lambda gradient: {name: moved(name, part) for name, part in gradient.items()}


class CheckpointedAdamW(nn.Module):
    """AdamW over parameters that ``fit`` does not train, with moments in the checkpoints of ``fit``.

    A checkpoint holds a model's parameters; so the moments are untrained parameters. A parameter is updated,
    and its steps are counted, when it has a gradient.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], updates: Updates) -> None:
        """Exclude the parameters from all other optimizers: they no longer require gradients."""
        super().__init__()
        trained = list(parameters)
        self._clip = updates.clip
        self._optimizer = adamw(nn.ParameterList(trained), updates)
        self.updates = checkpointed(torch.zeros(()) for _ in trained)
        self.means = checkpointed(map(torch.zeros_like, trained))
        self.squares = checkpointed(map(torch.zeros_like, trained))
        for weight, step, mean, square in zip(trained, self.updates, self.means, self.squares, strict=True):
            self._optimizer.state[weight] = {"step": step, "exp_avg": mean, "exp_avg_sq": square}
            weight.requires_grad_(False)

    def update(self, gradients: Iterable[tuple[nn.Parameter, Tensor]], rate: float) -> None:
        """Update parameters by their gradients, clipped together; the gradients are cleared."""
        by_parameter = dict(gradients)
        for parameter, gradient in by_parameter.items():
            parameter.grad = gradient
        if self._clip:
            nn.utils.clip_grad_norm_(list(by_parameter), self._clip)
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)

    def restore_requires_grad(self) -> None:
        """Let the parameters require gradients again."""
        for group in self._optimizer.param_groups:
            for parameter in group["params"]:
                parameter.requires_grad_(True)


def checkpointed(values: Iterable[Tensor]) -> nn.ParameterList:
    """Return values as parameters that are saved in checkpoints and not trained."""
    return nn.ParameterList(nn.Parameter(value.detach(), requires_grad=False) for value in values)


@dataclass(frozen=True, kw_only=True)
class MetaBatches:
    """Batch i, drawn from (seed, i) alone (line 5)."""

    train: TextBatches
    validation: Mapping[str, TextBatches]
    """By language."""
    pace: Callable[[int], float]
    """From a step to the share of the highest rates."""

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
    """The split of training text that validation losses are computed on."""

    share: float
    """Of each language's training text; with 0 both parts are all of it."""
    batch_subwords: int
    text: Mapping[str, TextStream] | None = None
    """By language: text that is not trained on, in place of a share."""


def meta_batches(
    streams: Mapping[str, TextStream],
    sampling: BatchSampling,
    masking: Masking,
    *,
    validation: Validation,
    updates: Updates,
    seed: int,
) -> MetaBatches:
    """Split off validation text, and sample both parts; DataError for a language with too little text."""
    parts = {
        code: (stream, validation.text[code])
        if validation.text is not None
        else split_text(stream, share=validation.share, length=sampling.block - 2, language=code)
        if validation.share
        else (stream, stream)
        for code, stream in streams.items()
    }
    return MetaBatches(
        train=TextBatches(
            sampling=sampling,
            streams={code: train for code, (train, _) in parts.items()},
            masking=masking,
            seed=derive(seed, "text"),
        ),
        validation={
            code: TextBatches(
                sampling=replace(sampling, batch_subwords=validation.batch_subwords),
                streams={code: held_out},
                masking=masking,
                seed=derive(seed, "validation", code),
            )
            for code, (_, held_out) in parts.items()
        },
        pace=rate_schedule(replace(updates, learning_rate=1.0), sampling.steps),
    )


def split_text(
    stream: TextStream, *, share: float, length: int, language: str
) -> tuple[TextStream, TextStream]:
    """Return two views of a text: to train on, and a held-out share, in stretches spread over its length.

    Blocks of ``length`` subwords of one share no subword with blocks of the other. DataError when the text is
    too short.
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
            f"{language}: its text of {total} subwords is too short to set a share of {share:g} apart, in "
            f"rows of {length}. Add text, leave the language out, or lower block."
        )
    return (
        TextStream(stream.subwords, stream.starts[train]),
        TextStream(stream.subwords, stream.starts[held_out]),
    )
