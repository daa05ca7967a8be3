"""Masked language modelling that hides more subwords than usual.

Wettig et al. (2023), "Should You Mask 15% in Masked Language Modeling?": large models learn more from 40 %.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from isogloss.plugins import (
    NESTED,
    Modules,
    Pretraining,
    TextSetting,
    TextTraining,
    Trained,
    Updates,
    begin_pretraining,
    nested_fields,
    train_on_text,
)


@dataclass(frozen=True, kw_only=True)
class MuchMasking(Pretraining):
    """Predict hidden subwords, two of five."""

    name: ClassVar[str] = "much-masking"

    training: TextTraining = field(default=TextTraining(masked=0.4), metadata=NESTED)
    """Length, batches of text, and evaluation of the training."""

    updates: Updates = field(default=Updates(learning_rate=1e-3), metadata=NESTED)
    """Optimization of the training."""

    _nested = nested_fields()

    def check(self, family: str, modules: Modules | None, languages: tuple[str, ...]) -> None:
        """Accept what every pretraining accepts."""

    def train(self, setting: TextSetting) -> Trained:
        """Train the encoder with its masked-LM head."""
        return train_on_text(begin_pretraining(setting, self), setting, self)
