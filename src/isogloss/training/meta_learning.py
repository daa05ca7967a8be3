"""Meta-learned parameters of single languages: Algorithm 1 as a loss for ``fit``.

Wang, Lipton & Tsvetkov (2020), "On Negative Interference in Multilingual Models", Section 4 and Appendix B.
Shared parameters θ, each language's own parameters φ_i:

    4  while not converged:
    5      sample a language i, a batch of it, and a validation batch of each language j
    6      φ_i ← update(φ_i, ∇_{φ_i} mean_j L_val^j(θ − u(∇_θ L_train^i(θ, φ_i)), φ_j))
    7      θ ← update(θ, ∇_θ L_train^i(θ, φ_i)), with the new φ_i
    8  end

``fit`` is the loop, ``MetaBatches`` samples (line 5), ``MetaLearner.forward`` moves φ_i along the
hypergradient (line 6) with an optimiser of its own and returns the loss that ``fit`` moves θ by (line 7).
φ asks ``fit`` for no gradient, so it is moved once, unless line 7 is to move φ_i with θ. All batches are
training text; those of validation are of a part of it that is split off, unless none is: text that decides
updates is not held out.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from isogloss.core.errors import DataError
from isogloss.core.records import Value
from isogloss.core.run_parts import Updates
from isogloss.core.seeds import derive
from isogloss.tasks.masked_lm import Masking
from isogloss.tasks.text_stream import TextStream
from isogloss.training.batching import Movable
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
from isogloss.training.text_batches import BatchSampling, TextBatches

SECOND_ORDER: dict[str, SecondOrder] = {
    "finite-difference": finite_difference,
    "exact": exact,
    "first-order": first_order,
}
INNER_STEPS = ("plain", "preconditioned")

BLOCKS = 20
"""Blocks of a stretch that is set apart: few enough that a text of many parts loses some of each, many enough
that little is lost between stretches."""

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
    """Share of the highest rates at this step: all of them rise and fall together."""
    is_whole: ClassVar[bool] = True
    """Several processes share the validation losses: φ moves by all of them, before θ does."""

    def to(self, device: torch.device) -> "MetaBatch":
        """Return it on a device."""
        return replace(
            self, train=self.train.to(device), validation=[one.to(device) for one in self.validation]
        )


@dataclass(frozen=True, kw_only=True)
class Learning:
    """The hyper-parameters of meta-learning φ."""

    own_rate: float
    """α, the highest."""
    inner_rate: float
    """β of the step that is imagined, the highest."""
    inner_step: str = "plain"
    second_order: str = "finite-difference"
    moves_shared: bool = True
    """False: θ takes no step but the imagined ones (line 7 is left out)."""
    own_on_train: bool = False
    """True: line 7 moves φ_i, too."""


class MetaLearner(nn.Module):
    """A model and the state of its meta-learning, as parameters, so that a checkpoint holds the whole."""

    def __init__(
        self,
        model: nn.Module,
        own: Mapping[str, Mapping[str, nn.Parameter]],
        loss: TextLoss,
        *,
        learning: Learning,
        updates: Updates,
    ) -> None:
        """Exclude the parameters ``own`` (by language and name) from every other optimizer.

        Unless these learn from the training loss, too: then both optimizers move them.
        """
        super().__init__()
        self.model, self._loss = model, loss
        self._learning, self._adam = learning, updates
        self._own = {language: dict(parts) for language, parts in own.items()}
        alone = {name for parts in own.values() for name in parts}
        self._shared = {name: one for name, one in model.named_parameters() if name not in alone}
        self._seen: dict[str, Tensor] = {}
        self._language = ""
        self.adamw = CheckpointedAdamW([one for parts in own.values() for one in parts.values()], updates)
        if learning.own_on_train:
            self.adamw.restore_requires_grad()
        adapted = self._shared.values() if learning.inner_step == "preconditioned" else ()
        self.squares = checkpointed(torch.zeros_like(one) for one in adapted)
        self.updates = checkpointed([torch.zeros(())])

    def forward(self, batch: MetaBatch) -> Tensor:
        """Move φ of the batch's language (line 6), then return the loss that θ moves by (line 7)."""
        own = self._own[batch.language]
        found = hypergradient(
            functional_loss(self.model, self._loss, batch.train),
            [functional_loss(self.model, self._loss, one) for one in batch.validation],
            self._shared,
            own,
            step=self._step(batch.pace * self._learning.inner_rate),
            second_order=SECOND_ORDER[self._learning.second_order],
        )
        whole = found.whole()
        self.adamw.update(
            [(one, whole[name]) for name, one in own.items()], batch.pace * self._learning.own_rate
        )
        self._remember(batch.language, found)
        if not (self._learning.moves_shared or self._learning.own_on_train):
            return (
                found.train.clone().requires_grad_()
            )  # A loss that nothing depends on: ``fit`` moves nothing.
        return self._loss(self.model, batch.train)

    def rows(self, done: int) -> list[dict[str, Value]]:
        """Return a row on the last step: its losses, and how much each term of the hypergradient weighs."""
        if not self._seen:
            return []
        numbers = {name: float(f"{float(value):.6g}") for name, value in self._seen.items()}
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

    def _remember(self, language: str, found: Hypergradient) -> None:
        self._language = language
        self._seen = {
            "train_loss": found.train,
            "validation_loss": found.validation,
            "first_term": norm(found.direct),
            "second_term": norm(found.second_order),
        }
        if len(self.squares):
            self.updates[0] += 1
            for square, gradient in zip(self.squares, found.gradient.values(), strict=True):
                square.lerp_(gradient.square(), 1 - self._adam.beta2)


class _Objective(nn.Module):
    """A loss as a module: what is put in its model's place stands there for the whole loss."""

    def __init__(self, model: nn.Module, loss: TextLoss) -> None:
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, batch: object) -> Tensor:
        return self.loss(self.model, batch)


def functional_loss(model: nn.Module, loss: TextLoss, batch: object) -> Callable[..., Tensor]:
    """Return the loss as a function of parameters by name; those not given are the model's own.

    Several mappings may be given; each name stands in one of them. Tied parameters go by their first name.
    """
    objective = _Objective(model, loss)

    def evaluated(*parameters: Mapping[str, Tensor]) -> Tensor:
        given = {f"model.{name}": part for parts in parameters for name, part in parts.items()}
        value: Tensor = functional_call(objective, given, (batch,))
        return value

    return evaluated


def plain_step(rate: float) -> Step:
    """Return u of Algorithm 1, gradient descent: the rate times the gradient.

    Adam moves each number by about the rate, however small its gradient, so what descent with Adam's rate
    imagines is far shorter than what Adam then does, and the term of the hypergradient that comes through it
    some hundredths of the other; the preconditioned step is as long, and the term as large.
    """
    return lambda gradient: {name: rate * part for name, part in gradient.items()}


def preconditioned_step(
    rate: float, moments: Parameters, *, updates: int, beta2: float, epsilon: float
) -> Step:
    """Return Adam's step without its memory of older gradients, which φ no longer changes.

    ``moments`` are the running means of squared gradients after ``updates`` steps; the new gradient enters
    them first, as in Adam, so the derivative is that of the normalised step.
    """
    gathered = 1 - beta2 ** (updates + 1)

    def moved(name: str, part: Tensor) -> Tensor:
        square = (beta2 * moments[name] + (1 - beta2) * part.square()) / gathered
        step = rate * part / (square + epsilon**2).sqrt()
        return step.where(part != 0, 0.0)  # What the batch does not touch, φ cannot move.

    return lambda gradient: {name: moved(name, part) for name, part in gradient.items()}


class CheckpointedAdamW(nn.Module):
    """AdamW as ``fit`` has it, over parameters that ``fit`` leaves alone, with moments its checkpoints hold.

    A checkpoint holds a model's parameters; so the moments are parameters here, which nothing trains. A
    parameter is updated, and counted, when it is given a gradient.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], updates: Updates) -> None:
        """Exclude the parameters from every other optimizer: they no longer require gradients."""
        super().__init__()
        trained = list(parameters)
        self._clip = updates.clip
        self._optimizer = adamw(nn.ParameterList(trained), updates)
        self.updates = checkpointed(torch.zeros(()) for _ in trained)
        self.means = checkpointed(torch.zeros_like(one) for one in trained)
        self.squares = checkpointed(torch.zeros_like(one) for one in trained)
        for one, step, mean, square in zip(trained, self.updates, self.means, self.squares, strict=True):
            self._optimizer.state[one] = {"step": step, "exp_avg": mean, "exp_avg_sq": square}
            one.requires_grad_(False)

    def update(self, gradients: Iterable[tuple[nn.Parameter, Tensor]], rate: float) -> None:
        """Move those parameters against their gradients, clipped together; the gradients are not kept."""
        given = list(gradients)
        for one, gradient in given:
            one.grad = gradient
        if self._clip:
            nn.utils.clip_grad_norm_([one for one, _ in given], self._clip)
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)

    def restore_requires_grad(self) -> None:
        """Let the parameters require gradients again."""
        for group in self._optimizer.param_groups:
            for one in group["params"]:
                one.requires_grad_(True)


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
    """Of each language's training text; with 0 nothing is split off, and both parts are all of it."""
    batch_subwords: int


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
        code: split_text(stream, share=validation.share, length=sampling.block - 2, language=code)
        if validation.share
        else (stream, stream)
        for code, stream in streams.items()
    }
    one = replace(sampling, batch_subwords=validation.batch_subwords)
    return MetaBatches(
        train=TextBatches(
            sampling=sampling,
            streams={code: train for code, (train, _) in parts.items()},
            masking=masking,
            seed=derive(seed, "text"),
        ),
        validation={
            code: TextBatches(
                sampling=one, streams={code: apart}, masking=masking, seed=derive(seed, "validation", code)
            )
            for code, (_, apart) in parts.items()
        },
        pace=rate_schedule(replace(updates, learning_rate=1.0), sampling.steps),
    )


def split_text(
    stream: TextStream, *, share: float, length: int, language: str
) -> tuple[TextStream, TextStream]:
    """Return two views of a text: to train on, and a share, set apart, in stretches from its whole length.

    No block of ``length`` subwords of one has a subword of the other. DataError when the text is too short.
    """
    total = len(stream)
    size = max(length, round(total * share))
    count = max(1, size // (BLOCKS * length))
    ends = np.arange(1, count + 1) * total // count
    firsts = np.minimum(stream.starts, max(0, total - length))  # Where a block that starts there is read.
    section = np.searchsorted(ends, firsts, side="right")
    begins = ends[section] - size // count
    kept, apart = firsts + length <= begins, (firsts >= begins) & (firsts + length <= ends[section])
    if not apart.any() or not kept.any():
        raise DataError(
            f"{language}: its text of {total} subwords is too short to set a share of {share:g} apart, in "
            f"rows of {length}. Add text, leave the language out, or lower block."
        )
    return (
        TextStream(stream.subwords, stream.starts[kept]),
        TextStream(stream.subwords, stream.starts[apart]),
    )
