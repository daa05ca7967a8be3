"""Perplexity of masked language modelling on held-out text, by language: the same masks whenever it is asked.

It is e to the mean cross entropy per hidden subword, so only models with one vocabulary can be compared.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from isogloss.core.records import Value
from isogloss.core.seeds import derive
from isogloss.tasks.masked_lm import MaskedBatch, Masking, masked_lm_loss
from isogloss.tasks.text_stream import TextStream
from isogloss.training.precision import scoring
from isogloss.training.text_batches import Drawing

MOST_SUBWORDS = 65536
"""Held-out subwords of a language that are read: some 10,000 predictions, a standard error of 0.03 nats."""


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """Held-out text of several languages, its masks drawn once."""

    batches: Mapping[str, Sequence[MaskedBatch]]
    """By language."""
    every: int
    """Steps of an epoch."""
    precision: str = "auto"

    def notes(self, model: Any, done: int) -> list[dict[str, Value]]:
        """Return a row for each language."""
        return [
            {
                "step": done,
                "epoch": -(-done // self.every),
                "language": language,
                "split": "dev",
                "metric": "perplexity",
                "score": round(perplexity(model, batches, precision=self.precision), 6),
            }
            for language, batches in self.batches.items()
        ]


def perplexity(model: Any, batches: Sequence[MaskedBatch], *, precision: str = "auto") -> float:
    """Return the perplexity of the hidden subwords of all batches, infinite where it is too large to say."""
    total = hidden = 0.0
    with scoring(model, precision):
        for batch in batches:
            total += float(masked_lm_loss(model, batch)) * len(batch.gold)
            hidden += len(batch.gold)
    mean = total / hidden
    return math.exp(mean) if mean < math.log(np.finfo(np.float64).max) else math.inf


def held_out_batches(
    stream: TextStream, drawing: Drawing, masking: Masking, *, seed: int, language: str
) -> list[MaskedBatch]:
    """Cut a text into blocks that begin as those of training do, none over another, and mask them.

    Of a long text, evenly spread blocks of ``MOST_SUBWORDS`` in all.
    """
    length = drawing.block - 2
    places = _apart(stream, length)
    most = max(1, MOST_SUBWORDS // length)
    if len(places) > most:
        places = [places[int(number)] for number in np.linspace(0, len(places) - 1, most)]
    rows = [[stream.block(place, length)] for place in places]
    groups = [rows[first : first + drawing.rows] for first in range(0, len(rows), drawing.rows)]
    return [
        masking.batch(group, seed=derive(seed, language, number), language=language)
        for number, group in enumerate(groups)
    ]


def _apart(stream: TextStream, length: int) -> list[int]:
    """Return starts that are at least a block apart, by their number; the first one in any text."""
    last = max(0, len(stream) - length)
    places, at = [0], length
    while at <= last:
        place = int(np.searchsorted(stream.starts, at))
        if place == len(stream.starts) or stream.starts[place] > last:
            break
        places.append(place)
        at = int(stream.starts[place]) + length
    return places
