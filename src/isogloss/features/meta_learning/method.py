"""Meta-learning: pretraining in which the modules of languages improve the shared parameters for all.

"On Negative Interference in Multilingual Models", Section 4 and Algorithm 1, applied to masked language
modelling. ``algorithm`` computes a step, ``hypergradient`` Eqs. 3, 4 and 8.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

from isogloss.core.errors import ConfigError, check_named
from isogloss.core.run_parts import (
    NESTED,
    Modules,
    Positive,
    Share,
    TextTraining,
    Updates,
    Weight,
    nested_fields,
)
from isogloss.encoders.added.module_settings import SHARED_ADAPTER
from isogloss.training.setting import PRETRAINING_UPDATES, Pretraining, TextSetting, Trained

if TYPE_CHECKING:
    from isogloss.features.meta_learning.algorithm import MetaLearningModel
    from isogloss.training.text_training import PretrainingStart

LOG_TERMS_EVERY = 100
"""Steps between two rows on the hypergradient's terms."""


@dataclass(frozen=True, kw_only=True)
class MetaLearning(Pretraining):
    """Predict hidden subwords, and train each language's modules to improve the shared parameters for all.

    In one process and without accumulation: φ moves before θ, by the gradient of the full batch.
    """

    name: ClassVar[str] = "meta-learning"
    trains_layers: ClassVar[bool] = False

    training: TextTraining = field(default=TextTraining(), metadata=NESTED)
    """Length, batches of text, and evaluation of the training."""

    second_order: str = "finite-difference"
    """Computation of the second-order term: finite-difference (Eq. 8), exact, or first-order, which drops the
    term (the ablation)."""

    inner_step: str = "plain"
    """The step that is imagined: plain, gradient descent as in Algorithm 1 (so short at Adam's rate that the
    term hardly counts: see second_term in the record), or preconditioned, as long as the optimiser's own."""

    own_learning_rate: Weight | None = None
    """Peak learning rate of the language modules (alpha). Default: learning_rate, as in the paper."""

    inner_learning_rate: Weight | None = None
    """Peak learning rate of the imagined step (beta). Default: learning_rate, as in the paper."""

    validation: Share = 0.05
    """Share of each language's training text that is reserved for the validation losses. With 0, their
    batches come from the training text, as the released code can do."""

    validation_text: Literal["held-out"] | None = None
    """Text of the validation batches. held-out: the text of the perplexity, as in the released code. Then
    ``validation`` has no effect, and perplexity is measured on text that training has used. Default: training
    text."""

    validation_subwords: Positive | None = None
    """Subwords of each language's validation batch, padding included. Default: batch_subwords."""

    own_on_train: bool | None = None
    """Whether the training loss also updates the language modules, as in the released code. Default: only the
    validation losses update them, as in Algorithm 1."""

    updates: Updates = field(default=PRETRAINING_UPDATES, metadata=NESTED)
    """Optimization of the training."""

    _nested = nested_fields()

    @property
    def holds_out(self) -> bool:  # noqa: D102
        return super().holds_out or self.validation_text is not None

    def __post_init__(self) -> None:
        """Raise ConfigError for invalid fields."""
        from isogloss.features.meta_learning.algorithm import INNER_STEPS, SECOND_ORDER
        from isogloss.training.text_training import check_fields

        rates = {name: getattr(self, name) for name in ("own_learning_rate", "inner_learning_rate")}
        check_fields(
            self,
            {
                "accumulation": self.updates.accumulation in (None, 1),
                "gradient_checkpointing": not self.updates.gradient_checkpointing,
                "optimizer_states": self.updates.optimizer_states is None,
                "capture": not self.updates.capture,
                "sam_radius": self.updates.sam_radius is None,
                "validation": 0 <= self.validation < 1,
                "validation_subwords": (self.validation_subwords or self.training.block)
                >= self.training.block,
                **{name: rate is None or rate >= 0 for name, rate in rates.items()},
            },
        )
        check_named(f"{self.name}: second_order", "form", SECOND_ORDER, self.second_order)
        check_named(f"{self.name}: inner_step", "step", INNER_STEPS, self.inner_step)

    def check(self, family: str, modules: Modules | None, languages: tuple[str, ...]) -> None:
        """Raise ConfigError for an encoder without modules of single languages, or with one language."""
        from isogloss.training.distributed import refuse_sharding
        from isogloss.training.text_training import check_objective

        check_objective(self.name, family, next_token=False)
        refuse_sharding(f"{self.name}: its inner steps are not made", "choose masked-language-modelling")
        learns = f"{self.name}: it trains modules of single languages"
        if modules is None:
            raise ConfigError(
                f'{learns}, and this encoder has none. Give modules: modules = {{kind = "adapter"}}.'
            )
        if modules.kind == SHARED_ADAPTER:
            raise ConfigError(
                f"{learns}, and a shared-adapter is of all languages. Choose the kind adapter, "
                f"feed-forward or attention, or train the shared-adapter by masked-language-modelling."
            )
        if len(languages) < 2:
            raise ConfigError(
                f"{learns} for the benefit of others; found one language "
                f"({', '.join(languages)}). Name two or more, or choose masked-language-modelling."
            )

    def train(self, setting: TextSetting) -> Trained:
        """Train the encoder with its masked-LM head, and the modules of its languages."""
        from isogloss.features.meta_learning.algorithm import Validation, meta_batches
        from isogloss.training.checkpoints import Checkpoints
        from isogloss.training.fit import Callback, Callbacks, fit, training_only
        from isogloss.training.text_training import begin_pretraining

        self.check(setting.family, setting.modules_trained, setting.languages)
        if setting.replay is not None:
            raise ConfigError(
                f"{self.name}: replayed languages have no validation text. Remove replay, or "
                f"choose masked-language-modelling."
            )
        start = begin_pretraining(setting, self)
        validation = Validation(
            share=self.validation,
            batch_subwords=self.validation_subwords or self.training.batch_subwords,
            text=start.held_out if self.validation_text else None,
        )
        batches = meta_batches(
            start.streams,
            start.sampling,
            start.masking,
            validation=validation,
            updates=self.updates,
            seed=setting.seed,
        )
        learner = self._learner(start, setting.languages)
        callbacks = Callbacks(
            periodic=(*start.periodic, Callback(rows=learner.rows, every=LOG_TERMS_EVERY)),
            checkpoints=Checkpoints(setting.folder, self.updates.checkpoint_every),
            on_progress=setting.on_progress,
            what="meta-learning",
        )
        with training_only(start.model, start.trained):
            rows = fit(
                learner,
                batches,
                lambda module, batch: module(batch),
                updates=self.updates,
                seed=setting.seed,
                callbacks=callbacks,
            )
        learner.restore_requires_grad()
        start.model.config.update(start.dropout)
        warnings = start.plateau_warnings(rows)
        return Trained(start.model, start.tokenizer, [*start.rows, *rows], warnings)

    def _learner(self, start: PretrainingStart, languages: tuple[str, ...]) -> MetaLearningModel:
        from isogloss.encoders.added.added_weights import language_parameters
        from isogloss.features.meta_learning.algorithm import Learning, MetaLearningModel
        from isogloss.tasks.masked_lm import masked_lm_loss

        def rate(field: float | None) -> float:
            return self.updates.learning_rate if field is None else field

        learning = Learning(
            own_rate=rate(self.own_learning_rate),
            inner_rate=rate(self.inner_learning_rate),
            inner_step=self.inner_step,
            second_order=self.second_order,
            moves_shared=start.trained is None,
            own_on_train=bool(self.own_on_train),
        )
        parameters = {
            language: language_parameters(start.model, language, embedding=False) for language in languages
        }
        return MetaLearningModel(
            start.model, parameters, masked_lm_loss, learning=learning, updates=self.updates
        )
