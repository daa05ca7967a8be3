"""Languages in one model: do their gradients conflict?

"On Negative Interference in Multilingual Models", Sections 3.1 and 3.4, Fig. 1.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pandas as pd
from torch import Tensor

from isogloss.core.arguments import checks_arguments
from isogloss.core.errors import ConfigError
from isogloss.core.progress import OnProgress, Progress
from isogloss.encoders.parameter_groups import parts_of
from isogloss.encoders.shared_weights import differentiable_copy
from isogloss.functional.batches import list_batches, model_loss
from isogloss.functional.beginning import showing_progress
from isogloss.functional.given_models import TextModel
from isogloss.functional.preparing import unwrap
from isogloss.training.gradient_conflict import conflict_rows

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
    batches = list_batches(batches)
    if not batches:
        raise ConfigError("gradient_conflict: no batches. Give those of one language or more, by its code.")
    for language, language_batches in batches.items():
        if len(language_batches) < MIN_BATCHES:
            raise ConfigError(
                f"gradient_conflict: {language} has {len(language_batches)} batches; expected {MIN_BATCHES} "
                f"or more: one language's own gradients are the control."
            )
    compute, half_size = loss or model_loss, min(len(group) for group in batches.values()) // 2
    network_copy = differentiable_copy(network)
    with showing_progress(on_progress) as progress:

        def losses(language: str, offset: int) -> Iterator[Tensor]:
            half_batches = batches[language][offset::2][:half_size]
            for index, batch in enumerate(half_batches):
                progress(Progress("gradients", index, len(half_batches), language))
                yield compute(network_copy, batch) / len(half_batches)

        rows = conflict_rows(network_copy, list(batches), losses, parts_of(network_copy), layers=layers)
    return pd.DataFrame(rows)
