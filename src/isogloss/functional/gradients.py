"""Languages in one model: do their gradients conflict, what does each need, and can each help all?

"On Negative Interference in Multilingual Models", Sections 3.1, 3.2, 3.4 and 4, Figs 1 and 4, Algorithm 1.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import RLock
from typing import Annotated, Any, cast

import pandas as pd
import torch
from annotated_types import Gt, Lt
from torch import Tensor, nn

from isogloss.core.arguments import checks_arguments
from isogloss.core.errors import ConfigError, check_named
from isogloss.core.identity import derive
from isogloss.core.progress import OnProgress, Progress
from isogloss.core.run_parts import Modules, Positive, Rate, Weight, Whole, with_fields
from isogloss.diagnostics.language_gates import similarity_rows
from isogloss.encoders.added.active_language import active_language
from isogloss.encoders.added.added_weights import language_parameters
from isogloss.encoders.added.language_modules import ensure_modules, modules_of
from isogloss.encoders.family import Tokenizer
from isogloss.encoders.gates import GateKinds, Mask, OfAttention, OfFeedForward, gate_groups
from isogloss.encoders.parameter_groups import parts_of
from isogloss.encoders.saving import save_model
from isogloss.encoders.shared_weights import copy_sharing_weights, differentiable_copy, keep_activations
from isogloss.functional.beginning import showing_progress
from isogloss.functional.given_models import TextModel, TextTokenizer
from isogloss.functional.preparing import refuse_parallel, require_layers, unwrap, unwrap_torch
from isogloss.methods.meta_learning import MetaLearning
from isogloss.training import meta_learning
from isogloss.training.fit import Callbacks
from isogloss.training.gate_training import GATE_UPDATES, Drawn, GateTraining, learn_gates_on
from isogloss.training.gradient_conflict import conflict_rows
from isogloss.training.meta_learning import InnerStep, Learning, MetaBatch, Order

META, ADAPTERS = MetaLearning(), Modules(kind="adapter")

MIN_LANGUAGES = 2
"""Languages that are compared."""

MIN_BATCHES = 2
"""Batches of a language: its own two gradients are the control."""


@checks_arguments
def gradient_conflict(
    model: TextModel,
    batches: Mapping[str, Iterable[Any]],
    loss: Callable[[Any, Any], Tensor] | None = None,
    *,
    layers: bool = True,
    on_progress: OnProgress | None = None,
) -> pd.DataFrame:
    """Return the cosines of languages' gradients, by pair of languages and part of the model.

    ``batches`` has two or more batches of each language. Every other batch makes one gradient, the rest its
    control; each language uses as many as the language with the fewest, so that noise is equal. Batches are
    mappings of tensors on the model's device, with labels, or whatever ``loss(model, batch)`` takes. A
    gradient is the gradient of the mean of its batches' losses, without dropout. It is computed in
    a copy of the model, which takes the memory of the weights a second time: the model and its own gradients
    do not change.

    Columns: ``first``, ``second``; ``layer`` (from 1, empty for all layers) and ``module`` (attention,
    feed-forward, embeddings, head, other, or all; layers of families that ``isogloss list encoders`` does not
    name are not divided); ``cosine``; ``within``, the geometric mean of the two languages' cosines with
    themselves, which is what remains of 1 with noise only; and ``norm_first``, ``norm_second``. Without
    ``layers``, single layers are omitted. Negative cosines are conflict.

    ConfigError for a language with fewer than two batches.

    Device: as the model, where batches must be. Cost: a pass forward and backward for each batch,
    and the memory of one more model and of two gradients of each language.

    >>> isogloss.gradient_conflict(model, {"en": english, "sw": swahili})    # doctest: +SKIP
    """
    network = unwrap(model, "gradient_conflict")
    batches = _list_batches(batches)
    if not batches:
        raise ConfigError("gradient_conflict: no batches. Give those of one language or more, by its code.")
    for language, language_batches in batches.items():
        if len(language_batches) < MIN_BATCHES:
            raise ConfigError(
                f"gradient_conflict: {language} has {len(language_batches)} batches; expected {MIN_BATCHES} "
                f"or more: one language's own gradients are the control."
            )
    compute, half_size = loss or _own_loss, min(len(group) for group in batches.values()) // 2
    network_copy = differentiable_copy(network)
    with showing_progress(on_progress) as progress:

        def losses(language: str, offset: int) -> Iterator[Tensor]:
            half_batches = batches[language][offset::2][:half_size]
            for index, batch in enumerate(half_batches):
                progress(Progress("gradients", index, len(half_batches), language))
                yield compute(network_copy, batch) / len(half_batches)

        rows = conflict_rows(network_copy, list(batches), losses, parts_of(network_copy), layers=layers)
    return pd.DataFrame(rows)


@checks_arguments
def language_gates(
    model: TextModel,
    batches: Mapping[str, Iterable[Any]],
    loss: Callable[[Any, Any], Tensor] | None = None,
    *,
    sparsity: Annotated[float, Gt(0), Lt(1)] = 0.5,
    attention: OfAttention = "row",
    feed_forward: OfFeedForward = "row",
    steps: Positive = 300,
    learning_rate: Rate = 0.1,
    draws: Positive = 2,
    seed: Whole = 0,
    on_progress: OnProgress | None = None,
) -> pd.DataFrame:
    """Return the overlap of the parameters that languages need, by pair of languages and part.

    For each language hard-concrete gates over the parameters of the frozen model are learned, so that the
    model keeps all but a share ``sparsity`` of them (Eq. 1), ``draws`` times: a language's pairs with itself
    are the control. A gate controls a weight, a row of a matrix, or a head (in ``attention``) or neuron (in
    ``feed_forward``), or "none". ``batches`` are taken in turn for ``steps`` updates; they and ``loss`` are
    as for ``gradient_conflict``. Gates are drawn by ``seed``.

    Columns: ``first``, ``first_draw``, ``second``, ``second_draw``, ``layer`` (from 1, empty for all),
    ``module``, ``gates`` (their number), ``cosine`` and ``correlation`` of the gates' log α, the cosine of
    their probabilities of being open (``open_cosine``), the Jaccard index of those kept (``overlap``), and
    how many only one keeps.

    ConfigError for fewer than two languages, ModelError for a family without known layers.

    Device: as the model, where batches must be. Cost: ``steps`` passes forward and backward for each
    language and draw, and the memory of one more model.

    >>> isogloss.language_gates(model, {"en": english, "sw": swahili})       # doctest: +SKIP
    """
    network = require_layers(model, "language_gates")
    batches = _list_batches(batches)
    missing = [language for language, language_batches in batches.items() if not len(language_batches)]
    if missing or len(batches) < MIN_LANGUAGES:
        raise ConfigError(
            f"language_gates: found {len(batches)} languages, without batches: "
            f"{', '.join(missing) or 'none'}. Give batches of two languages or more."
        )
    kinds = GateKinds(attention=attention, feed_forward=feed_forward)
    training = GateTraining(
        steps=steps,
        rows=0,
        sparsity=sparsity,
        updates=with_fields(GATE_UPDATES, learning_rate=learning_rate, precision="float32"),
    )
    compute = loss or _own_loss
    network_copy = differentiable_copy(network)

    def learn_mask(language: str, draw: int) -> Mask:
        seed_of_draw = derive(seed, language, draw)
        gates = learn_gates_on(
            (network_copy, gate_groups(network_copy, kinds, language=language)),
            lambda step: Drawn(
                _Batch(batches[language][step % len(batches[language])]),
                derive(seed_of_draw, step),
                step / steps,
            ),
            lambda trained_model, batch: compute(trained_model, batch.inputs),
            training,
            seed=seed_of_draw,
            callbacks=Callbacks(on_progress=progress, what=f"gates of {language}"),
        )
        return Mask(
            language=language, draw=draw, kinds=kinds, log_alpha=gates.log_alpha, above=gates.threshold
        )

    with showing_progress(on_progress) as progress:
        masks = [learn_mask(language, draw) for language in batches for draw in range(draws)]
    rows = similarity_rows("", masks, gate_groups(network, kinds, language=next(iter(batches))))
    return pd.DataFrame(list(rows)).drop(columns="model")


class MetaLearner(nn.Module):
    """Parameters of single languages that learn to help all languages (Algorithm 1), in your own loop.

    Each call is a step, ``meta(language, batch, validation)``: it moves φ, the language's own parameters, by
    the mean loss on ``validation``, a batch of each language by its code, after an imagined step of θ, all
    other parameters, on ``batch``; and returns the loss on ``batch``, by which your optimizer then moves θ.

    ``languages`` are codes: each gets its own adapters (``reduction``), unless the model has some; or a
    mapping from codes to the names of parameters, such as the parameters of peft. Batches are as for
    ``gradient_conflict``. ``own_rate`` is α, by which AdamW moves φ, ``inner_rate`` β of the imagined step;
    ``inner_step`` and ``second_order`` are as in the method ``meta-learning``. The returned loss has no
    gradient for φ, unless ``own_on_train`` moves φ by the training loss as well, as the released code does.
    The model has no other change than adapters and what they learn.

    ConfigError for a language or a name that the model lacks.

    Device: as the model, where batches must be. Cost: a step has a pass forward and backward for the
    batch and for each language, three for the second order by finite differences.

    >>> meta = isogloss.MetaLearner(model, ["en", "sw"])                     # doctest: +SKIP
    >>> meta("sw", batch, {"en": english, "sw": swahili}).backward()         # doctest: +SKIP
    >>> with meta.language("sw"): states = model(**batch)                    # doctest: +SKIP
    >>> meta.save("meta-learned", tokenizer)                                 # doctest: +SKIP
    """

    @checks_arguments
    def __init__(
        self,
        model: nn.Module,
        languages: Sequence[str] | Mapping[str, Sequence[str]],
        loss: Callable[[Any, Any], Tensor] | None = None,
        *,
        own_rate: Weight = META.updates.learning_rate,
        inner_rate: Weight = META.updates.learning_rate,
        inner_step: InnerStep = "plain",
        second_order: Order = "finite-difference",
        own_on_train: bool = False,
        reduction: Positive = ADAPTERS.reduction,
        clip: Weight = META.updates.clip,
        weight_decay: Weight = META.updates.weight_decay,
        seed: Whole = 0,
    ) -> None:
        super().__init__()
        refuse_parallel(model, "MetaLearner")
        if isinstance(languages, Mapping):
            parameters = dict(model.named_parameters())
            for language, names in languages.items():
                check_named(f"MetaLearner: {language}", "parameter", parameters, *names)
            model = unwrap_torch(model)
            names_within = {weight: name for name, weight in model.named_parameters()}
            phi = {
                language: {names_within[parameters[name]]: parameters[name] for name in names}
                for language, names in languages.items()
            }
        else:
            model = require_layers(model, "MetaLearner")
            ensure_modules(model, with_fields(ADAPTERS, reduction=reduction), languages, seed=seed)
            phi = {language: language_parameters(model, language) for language in languages}
        # The learner's own parameters share the numbers of φ: the model's parameters keep gradients and
        # state.
        self._own = {
            weight: nn.Parameter(weight.detach())
            for language_weights in phi.values()
            for weight in language_weights.values()
        }
        phi = {
            language: {name: self._own[weight] for name, weight in language_weights.items()}
            for language, language_weights in phi.items()
        }
        compute = loss or _own_loss

        def loss_of(trained_model: Any, batch: _Batch) -> Tensor:
            with _reading(trained_model, batch.language):
                return compute(trained_model, batch.inputs)

        learning = Learning(
            own_rate=own_rate,
            inner_rate=inner_rate,
            inner_step=inner_step,
            second_order=second_order,
            own_on_train=own_on_train,
        )
        updates = with_fields(META.updates, clip=clip, weight_decay=weight_decay)
        if own_on_train:
            for weight, parameter in self._own.items():
                parameter.register_post_accumulate_grad_hook(  # type: ignore[no-untyped-call]
                    partial(_pass_gradient, weight)
                )
        self._one_language = RLock()
        # In a list: the model's parameters are not the learner's.
        self._learner = [
            meta_learning.MetaLearningModel(model, phi, loss_of, learning=learning, updates=updates)
        ]

    @checks_arguments
    def forward(
        self, language: str, batch: Any, validation: Mapping[str, Any], *, pace: Weight = 1.0
    ) -> Tensor:
        """Move φ of a language, and return the loss by which θ moves. ``pace`` is the share of both rates."""
        [learner] = self._learner
        model_copy = copy_sharing_weights(learner.model, lambda weight: self._own.get(weight, weight))
        keep_activations(model_copy)  # Recomputed layers would have the parameters of a later step.
        loss: Tensor = learner(
            MetaBatch(
                language=language,
                train=_Batch(batch, language),
                validation=[_Batch(validation_batch, name) for name, validation_batch in validation.items()],
                pace=pace,
            ),
            model_copy,
        )
        return loss

    @contextmanager
    def language(self, language: str) -> Iterator[None]:
        """Let the model read a language, through the adapters of that language.

        Meanwhile it reads this language in all threads; another thread that enters this context waits.
        """
        with self._one_language, _reading(self._learner[0].model, language):
            yield

    def save(self, folder: str | Path, tokenizer: TextTokenizer) -> Path:
        """Write the model with its languages' adapters and return the folder.

        transformers loads the shared weights from it, without the adapters; ``isogloss.load_encoder`` and
        ``load_model`` load both, and read the language that they are asked for. (``save_pretrained`` of the
        model writes the adapters among its weights, where nothing finds them.)

        ConfigError where ``languages`` are names of parameters: these are the model's own, which its
        ``save_pretrained`` writes.
        """
        [learner] = self._learner
        model: Any = learner.model
        if modules_of(model) is None:
            raise ConfigError(
                f"MetaLearner.save: the languages have parameters of {type(model).__name__} itself, and no "
                f"adapters. Save the model by its save_pretrained."
            )
        path = Path(folder)
        save_model(model, cast(Tokenizer, tokenizer), path)
        return path


def _pass_gradient(weight: nn.Parameter, parameter: Tensor) -> None:
    """Add the gradient of a learner's parameter to the gradient of the parameter that an optimizer moves."""
    gradient = parameter.grad
    parameter.grad = None
    if gradient is not None:
        weight.grad = gradient if weight.grad is None else weight.grad + gradient


def _list_batches(batches: Mapping[str, Iterable[Any]]) -> dict[str, Sequence[Any]]:
    """Return the batches of each language as a list: a DataLoader has them one after the other."""
    return {
        language: language_batches if isinstance(language_batches, Sequence) else list(language_batches)
        for language, language_batches in batches.items()
    }


def _reading(model: Any, language: str) -> AbstractContextManager[None]:
    return nullcontext() if modules_of(model) is None else active_language(model, language)


@dataclass(frozen=True)
class _Batch:
    """A batch that is on the model's device already."""

    inputs: Any
    language: str = ""

    def to(self, device: torch.device) -> "_Batch":  # noqa: ARG002
        """Return the batch as it is."""
        return self


def _own_loss(model: Any, batch: Mapping[str, Any]) -> Tensor:
    loss = getattr(model(**batch), "loss", None)
    if loss is None:
        raise ConfigError(
            f"{type(model).__name__} returns no loss for a batch of {', '.join(batch)}. Add labels to it, or "
            f"give loss=function(model, batch)."
        )
    value: Tensor = loss
    return value
