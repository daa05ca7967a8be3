"""Meta-learning: pretraining in which each language's own modules learn to make what is shared good for all.

"On Negative Interference in Multilingual Models", Section 4 and Algorithm 1, over masked language modelling:
``training/meta_learner`` is its step, ``training/hypergradient`` its Eqs. 3, 4 and 8.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from isogloss.core.errors import ConfigError
from isogloss.core.runs import Architecture, Modules
from isogloss.core.seeds import derive
from isogloss.encoders import set_dropout
from isogloss.encoders.language_modules import own_parameters
from isogloss.tasks.masked_lm import masked_lm_loss
from isogloss.training.checkpoints import Checkpoints
from isogloss.training.fit import Fitted, Observer, Watch, fit
from isogloss.training.meta_batches import MetaBatches
from isogloss.training.meta_learner import INNER_STEPS, PRODUCTS, Learning, MetaBatch, MetaLearner
from isogloss.training.optimizer import Schedule
from isogloss.training.pretraining import Start, TextReading, begin, check_fields, perplexity_observers
from isogloss.training.setting import TextSetting
from isogloss.training.text_batches import Drawing

LOOK_EVERY = 100
"""Steps between two rows on the hypergradient's terms."""


@dataclass(frozen=True, kw_only=True)
class MetaLearning:
    """Predict hidden subwords; each language's modules learn to leave what is shared good for all languages."""

    name: ClassVar[str] = "meta-learning"
    translation: ClassVar[float] = 0.0

    steps: int = 10000
    """Updates."""

    batch_subwords: int = 4096
    """Subwords of one update, padding included."""

    block: int = 128
    """Subwords of one row of text, special ones included."""

    masked: float = 0.15
    """Share of the subwords that are predicted."""

    temperature: float = 1.43
    """T in size^(1/T), with which languages are drawn; 1 keeps their proportions, large is even."""

    second_order: str = "finite-difference"
    """How the term that comes through the imagined step is computed: finite-difference (Eq. 8), exact (slower),
    or first-order, which leaves it out (the ablation)."""

    inner_step: str = "plain"
    """The step that is imagined: plain, gradient descent as in Algorithm 1, or preconditioned, as long as the
    optimiser's own."""

    own_learning_rate: float | None = None
    """Highest rate of the languages' own modules (alpha); learning_rate when left out, as in the paper."""

    inner_learning_rate: float | None = None
    """Highest rate of the step that is imagined (beta); learning_rate when left out, as in the paper."""

    validation: float = 0.05
    """Share of each language's training text that is set apart for the validation losses."""

    validation_subwords: int | None = None
    """Subwords of each language's validation batch, padding included; batch_subwords when left out."""

    vocabulary_lines: int = 200_000
    """Lines the vocabulary is trained on, the same number of each language."""

    learning_rate: float = 1e-3
    """Highest rate."""

    warmup: float = 0.1
    """Share of the steps with linear warm-up."""

    weight_decay: float = 0.01
    """AdamW's decay, on matrices only."""

    precision: str = "auto"
    """auto (measured once per machine), float32 or bfloat16; finite differences are float32 always."""

    checkpoint_every: int = 500
    """Steps between checkpoints; 0 for none."""

    evaluate_every: int | None = None
    """Steps of an epoch, after each of which the perplexity on held-out text is measured; when left out,
    nothing is held out."""
