"""Batches of languages that a caller has, and the loss of a model for them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from isogloss.core.errors import ConfigError


def list_batches(batches: Mapping[str, Iterable[Any]]) -> dict[str, Sequence[Any]]:
    """Return the batches of each language as a list: a DataLoader has them one after the other."""
    return {
        language: language_batches if isinstance(language_batches, Sequence) else list(language_batches)
        for language, language_batches in batches.items()
    }


@dataclass(frozen=True)
class GivenBatch:
    """A caller's batch, which is on the model's device already."""

    inputs: Any
    language: str = ""

    def to(self, device: torch.device) -> "GivenBatch":  # noqa: ARG002
        """Return the batch as it is."""
        return self


def model_loss(model: Any, batch: Mapping[str, Any]) -> Tensor:
    """Return the loss that a model returns for a batch with labels."""
    loss = getattr(model(**batch), "loss", None)
    if loss is None:
        raise ConfigError(
            f"{type(model).__name__} returns no loss for a batch of {', '.join(batch)}. Add labels to it, or "
            f"give loss=function(model, batch)."
        )
    value: Tensor = loss
    return value
