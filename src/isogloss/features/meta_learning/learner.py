"""Parameters of single languages that learn to help all languages, in a training loop of your own.

"On Negative Interference in Multilingual Models", Section 4 and Algorithm 1.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from threading import RLock
from typing import Any, cast

from torch import Tensor, nn

from isogloss.core.arguments import checks_arguments
from isogloss.core.errors import ConfigError, check_named
from isogloss.core.run_parts import Modules, Positive, Weight, Whole, with_fields
from isogloss.encoders.added.active_language import active_language
from isogloss.encoders.added.added_weights import language_parameters
from isogloss.encoders.added.language_modules import ensure_modules, modules_of
from isogloss.encoders.family import Tokenizer
from isogloss.encoders.saving import save_model
from isogloss.encoders.shared_weights import copy_sharing_weights, keep_activations
from isogloss.features.meta_learning import algorithm as meta_learning
from isogloss.features.meta_learning.algorithm import InnerStep, Learning, MetaBatch, Order
from isogloss.features.meta_learning.method import MetaLearning
from isogloss.functional.batches import GivenBatch, model_loss
from isogloss.functional.given_models import TextTokenizer
from isogloss.functional.preparing import refuse_parallel, require_layers, unwrap_torch

META = MetaLearning()
ADAPTERS = Modules(kind="adapter")


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
        compute = loss or model_loss

        def loss_of(trained_model: Any, batch: GivenBatch) -> Tensor:
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
                train=GivenBatch(batch, language),
                validation=[
                    GivenBatch(validation_batch, name) for name, validation_batch in validation.items()
                ],
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


def _reading(model: Any, language: str) -> AbstractContextManager[None]:
    return nullcontext() if modules_of(model) is None else active_language(model, language)
