"""Sentence retrieval: does a sentence's translation lie nearest to it?

Accuracy both ways among held-out translations, on mean-pooled states (Artetxe & Schwenk 2019 use the same
measure on Tatoeba). By cosine, and by CSLS (Conneau et al. 2018, "Word Translation Without Parallel Data",
Eq. 3), which takes off how near a sentence is to its neighbours in general: some are near to all. Centred
for each language, a constant difference between languages does not count.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from isogloss.core.errors import ConfigError, DataError
from isogloss.core.rows import Retrieval as RetrievalRow
from isogloss.diagnostics.setting import MeasureSetting
from isogloss.encoders.language_context import active_language
from isogloss.training.states import sentence_states

BLOCK = 1024
"""Sentences compared with all candidates at once: what is in memory is so many times the candidates."""

TIE = 1e-6
"""Similarities nearer than this are equal: rounding does not choose between two copies of a sentence."""


@dataclass(frozen=True)
class Retrieval:
    """Accuracy of finding translations with an encoder."""

    name: ClassVar[str] = "retrieval"
    subject: ClassVar[str] = "states"
    version: ClassVar[int] = 3

    layer: int = -1
    """Layer whose states are pooled; -1 is the last, 0 the embeddings."""

    layers: tuple[int, ...] = ()
    """Several layers, in place of the one."""

    limit: int = 128
    """Longest sentence in subwords; what is longer is cut."""

    centred: bool | None = None
    """Whether the mean of each language is taken off first; where it is not said, both."""

    csls: int = 10
    """Neighbours of CSLS, beside cosine; 0 for cosine alone."""

    def __post_init__(self) -> None:
        """Refuse a number of neighbours below 0."""
        if self.csls < 0:
            raise ConfigError(f"{self.name}: csls is {self.csls}, but 0 or more neighbours are needed.")

    def measure(self, setting: MeasureSetting) -> list[RetrievalRow]:
        """Return, for each pair of the first language with another, a row for each layer and similarity."""
        loaded = setting.encoder(setting.subjects[0])
        rows: list[RetrievalRow] = []
        first, *others = setting.languages
        for other in others:
            pairs = [(one.first, one.second) for one in setting.bitext(f"{first}-{other}")]
            if not pairs:
                raise DataError(
                    f"{self.name}: no translations {first}-{other} to look for. Choose another split."
                )
            sides = [
                self._states(loaded, language, list(texts), setting.precision)
                for language, texts in zip((first, other), zip(*pairs, strict=True), strict=True)
            ]
            rows += [
                RetrievalRow(model=setting.subjects[0].id, first=first, second=other, **numbers)
                for numbers in self._numbers(*sides)
            ]
        return rows

    def _numbers(self, first: Tensor, second: Tensor) -> Iterator[dict[str, Any]]:
        for place, layer in enumerate(self._layers()):
            for centred in (True, False) if self.centred is None else (self.centred,):
                x, y = (directions(side[place], centred=centred) for side in (first, second))
                for neighbours in dict.fromkeys((0, self.csls)):
                    yield {
                        "layer": layer,
                        "centred": centred,
                        "similarity": f"CSLS {neighbours}" if neighbours else "cosine",
                        "candidates": len(x),
                        "accuracy_forward": found_share(x, y, neighbours=neighbours),
                        "accuracy_backward": found_share(y, x, neighbours=neighbours),
                        "chance": 1 / len(x),
                    }

    def _layers(self) -> tuple[int, ...]:
        return self.layers or (self.layer,)

    def _states(self, loaded: Any, language: str, texts: list[str], precision: str) -> Tensor:
        (model, tokenizer), layers = loaded, self._layers()
        with active_language(model, language):
            return sentence_states(
                model, tokenizer, texts, layers=layers, limit=self.limit, precision=precision
            )


def directions(states: Float[Tensor, "item dim"], *, centred: bool) -> Float[Tensor, "item dim"]:
    """Return states at length 1, their mean taken off before if ``centred``."""
    return torch.nn.functional.normalize(states - states.mean(dim=0) if centred else states, dim=1)


def found_share(x: Float[Tensor, "item dim"], y: Float[Tensor, "item dim"], *, neighbours: int = 0) -> float:
    """Return the share of rows of x whose most similar row of y has the same number.

    Rows have length 1. Similar by cosine; by CSLS where ``neighbours`` are given. Where several rows of y
    are as similar as the right one, which one is found is left to chance: it counts one part in so many.
    """
    # CSLS is 2 cos(x, y) - r(x) - r(y); r(x) is the same for all candidates, so their order needs only r(y).
    offset = mean_nearest(y, x, neighbours) / 2 if neighbours else torch.zeros(len(y), device=y.device)
    own = (x * y).sum(dim=1) - offset
    found = 0.0
    for start in range(0, len(x), BLOCK):
        rows = slice(start, start + BLOCK)
        ahead = x[rows] @ y.T - offset - own[rows].unsqueeze(1)
        numbers = torch.arange(len(ahead), device=x.device)
        ahead[numbers, numbers + start] = 0  # The right one is as similar as itself, whatever the rounding.
        best = ~(ahead > TIE).any(dim=1)
        ties = (ahead >= -TIE).sum(dim=1)
        found += float((best / ties).sum(dtype=torch.float64))
    return found / len(x)


def mean_nearest(
    x: Float[Tensor, "item dim"], y: Float[Tensor, "other dim"], neighbours: int
) -> Float[Tensor, " item"]:
    """Return for each row of x its mean cosine with its nearest rows of y (r of CSLS); of all where few."""
    k = min(neighbours, len(y))
    blocks = (x[start : start + BLOCK] @ y.T for start in range(0, len(x), BLOCK))
    return torch.cat([block.topk(k, dim=1).values.mean(dim=1) for block in blocks])
