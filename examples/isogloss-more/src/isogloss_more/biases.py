"""BitFit: only bias terms are trained.

Ben Zaken et al. (2022), "BitFit: Simple Parameter-efficient Fine-tuning for Transformer-based Masked
Language-models".
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from isogloss.plugins import (
    ConfigError,
    ExtraWriter,
    Peft,
    PeftSetting,
    Prepared,
    encoder_weights,
    freeze,
    thaw,
    unfrozen_parameters,
    write_sparse,
)


@dataclass(frozen=True, kw_only=True)
class BiasesOnly(Peft):
    """Train the bias terms of the encoder, and its head."""

    name: ClassVar[str] = "biases-only"

    def prepare(self, setting: PeftSetting) -> Prepared:
        """Freeze all weights of the encoder except bias terms."""
        weights = encoder_weights(setting.model)
        if not any(name.endswith(".bias") for name in weights):
            raise ConfigError(f"peft {self.name}: this encoder has no bias terms. Choose another peft.")
        freeze(weight for name, weight in weights.items() if not name.endswith(".bias"))
        return Prepared()

    def finish(self, model: Any, base: str) -> ExtraWriter:
        """Unfreeze the model and return the writer of the trained weights."""
        trained = {name: weight.detach().cpu().clone() for name, weight in unfrozen_parameters(model).items()}
        thaw(model)
        return partial(write_sparse, trained, base)
