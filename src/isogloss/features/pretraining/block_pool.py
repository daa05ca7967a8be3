"""Masked blocks of text whose gradients are compared between languages during a pretraining."""

from collections.abc import Iterable, Mapping, Sequence

from torch import Tensor

from isogloss.encoders.family import Model
from isogloss.tasks.masked_lm import Masking, TextStream
from isogloss.training.gradient_conflict import Pool, masked_parts, text_losses


def block_pool(
    model: Model,
    streams: Mapping[str, TextStream],
    masking: Masking,
    *,
    block: int,
    budget: int,
    precision: str,
) -> Pool:
    """Return a pool of masked blocks of each language's text.

    Blocks begin at different lines, so blocks of short lines may overlap.
    """

    def losses(language: str, numbers: Sequence[int], seed: int) -> Iterable[Tensor]:
        rows = [streams[language].block(index, block - 2) for index in numbers]
        parts = masked_parts(rows, masking, seed=seed, budget=budget, language=language)
        return text_losses(model, parts, precision=precision)

    return Pool({language: len(stream.starts) for language, stream in streams.items()}, losses)
