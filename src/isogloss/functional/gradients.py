"""Languages in one model: do their gradients conflict?

"On Negative Interference in Multilingual Models", Section 3.1 and Fig. 1.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
from torch import Tensor

from isogloss.core.errors import ConfigError
from isogloss.core.progress import OnProgress, Progress
from isogloss.encoders.family import Model
from isogloss.functional.models import evaluating, require_encoder, showing_progress
from isogloss.training.gradient_conflict import conflict_rows, parts_of

MIN_BATCHES = 2
"""Batches of a language: its own two gradients are the control."""


def gradient_conflict(
    model: Model,
    batches: Mapping[str, Sequence[Any]],
    loss: Callable[[Any, Any], Tensor] | None = None,
    *,
    layers: bool = True,
    on_progress: OnProgress | None = None,
) -> pd.DataFrame:
    """Return the cosines of languages' gradients, by pair of languages and part of the model.

    ``batches`` are of each language, two or more: every other one makes one gradient, the rest its control;
    as many of each language as of the one with the fewest, so that noise is equal. They are mappings of
    tensors on the model's device, with labels, or whatever ``loss(model, batch)`` takes; a gradient is that
    of the mean of its batches' losses. Dropout is off, and the model is left without gradients.

    Columns: ``first``, ``second``; ``layer`` (from 1, 0 the embeddings, empty for all) and ``module``
    (attention, feed-forward, embeddings, head, other, or all); ``cosine``; ``within``, the geometric mean of
    the two languages' cosines with themselves, which is what noise alone would leave of 1; and
    ``norm_first``, ``norm_second``. Without ``layers``, single layers are left out. Negative cosines are
    conflict.

    ConfigError for a language with fewer than two batches.

    >>> isogloss.gradient_conflict(model, {"en": english, "sw": swahili})    # doctest: +SKIP
    """
    require_encoder(model, "gradient_conflict")
    for language, of_language in batches.items():
        if len(of_language) < MIN_BATCHES:
            raise ConfigError(
                f"gradient_conflict: {language} has {len(of_language)} batches; expected {MIN_BATCHES} or "
                f"more: one language's own gradients are the control."
            )
    compute, half_size = loss or _own_loss, min(map(len, batches.values())) // 2
    with evaluating(model), showing_progress(on_progress) as progress:

        def losses(language: str, half: int) -> Iterator[Tensor]:
            chosen = batches[language][half::2][:half_size]
            for number, batch in enumerate(chosen):
                progress(Progress("gradients", number, len(chosen), language))
                yield compute(model, batch) / len(chosen)

        rows = conflict_rows(model, list(batches), losses, parts_of(model), layers=layers)
    return pd.DataFrame(rows)


def _own_loss(model: Any, batch: Mapping[str, Any]) -> Tensor:
    """Return the loss that a Hugging Face model computes itself."""
    loss = getattr(model(**batch), "loss", None)
    if loss is None:
        raise ConfigError(
            f"{type(model).__name__} returns no loss for a batch of {', '.join(batch)}. Add labels to it, or "
            f"give loss=function(model, batch)."
        )
    value: Tensor = loss
    return value
