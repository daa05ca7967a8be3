"""Sentence retrieval: does a sentence's translation lie nearest to it?

Accuracy both ways among held-out translations, on mean-pooled states of one layer, centred for each
language so that a constant difference between languages does not count (Artetxe & Schwenk 2019 use the
same measure on Tatoeba).
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from isogloss.core.errors import DataError
from isogloss.core.records import Row
from isogloss.diagnostics.look import Look
from isogloss.training.evaluation import sentence_states


@dataclass(frozen=True)
class Retrieval:
    """Accuracy of finding translations with an encoder."""

    name: ClassVar[str] = "retrieval"
    over: ClassVar[str] = "encoder"

    layer: int = -1
    """Layer whose states are pooled; -1 is the last, 0 the embeddings."""

    limit: int = 128
    """Longest sentence in subwords; what is longer is cut."""

    def measure(self, look: Look) -> list[Row]:
        """Return a row for each pair of the first language with another."""
        loaded = look.encoder(look.subjects[0])
        rows: list[Row] = []
        first, *others = look.languages
        for other in others:
            pairs = [(one.first, one.second) for one in look.bitext(f"{first}-{other}")]
            if not pairs:
                raise DataError(
                    f"{self.name}: no translations {first}-{other} to look for. Choose another split."
                )
            forward, backward = self._accuracy(loaded, pairs, look.precision)
            where = {"encoder": look.columns["encoder"], "first": first, "second": other, "layer": self.layer}
            found = {"candidates": len(pairs), "accuracy_forward": forward, "accuracy_backward": backward}
            rows.append({**where, **found, "chance": 1 / len(pairs)})
        return rows

    def _accuracy(self, loaded: Any, pairs: list[tuple[str, str]], precision: str) -> tuple[float, float]:
        model, tokenizer = loaded
        sides = [
            sentence_states(
                model,
                tokenizer,
                [pair[side] for pair in pairs],
                layers=(self.layer,),
                limit=self.limit,
                precision=precision,
            )[0]
            for side in (0, 1)
        ]
        return nearest_is_translation(*sides), nearest_is_translation(*reversed(sides))


def nearest_is_translation(x: Float[Tensor, "item dim"], y: Float[Tensor, "item dim"]) -> float:
    """Return the share of rows of x whose nearest row of y (cosine, after centring) has the same number."""
    x, y = (torch.nn.functional.normalize(side - side.mean(dim=0), dim=1) for side in (x, y))
    nearest = (x @ y.T).argmax(dim=1)
    return float((nearest == torch.arange(len(x), device=x.device)).float().mean())
