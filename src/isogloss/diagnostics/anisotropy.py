"""Anisotropy: how similar are the states of any two sentences of one language?

The mean cosine of different sentences (Ethayarajh 2019, "How Contextual are Contextualized Word
Representations?", Section 3.3). Near 1 all states point one way, and a cosine between languages (retrieval,
alignment, distances) says little until each language's mean is taken off; decoders are often so.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from isogloss.core.errors import DataError, located
from isogloss.core.rows.encoders import Anisotropy as AnisotropyRow
from isogloss.core.run_parts import Positive, Whole
from isogloss.diagnostics.setting import Diagnostic, MeasureSetting
from isogloss.training.states import StateOptions, layers_once


@dataclass(frozen=True)
class Anisotropy(Diagnostic):
    """Mean cosine between different sentences of each language."""

    name: ClassVar[str] = "anisotropy"
    subject: ClassVar[str] = "states"
    version: ClassVar[int] = 1

    layers: tuple[Whole, ...] = (0, -1)
    """Layers whose states are averaged over a sentence; -1 is the last, 0 the embeddings."""

    limit: Positive = 128
    """Maximum sentence length in subwords; longer ones are truncated."""

    def measure(self, setting: MeasureSetting) -> list[AnisotropyRow]:
        """Return a row for each language and layer; sentences are those of the bitext with the first one."""
        loaded = setting.encoder(setting.subjects[0])
        with located(self.name):
            layers = layers_once(loaded[0], self.layers)
        request = StateOptions(layers=layers, limit=self.limit, precision=setting.precision)
        first, *others = setting.languages
        texts: dict[str, list[str]] = {}
        for other in others:
            pairs = list(setting.bitext(f"{first}-{other}"))
            texts.setdefault(first, [pair.first for pair in pairs])
            texts[other] = [pair.second for pair in pairs]
        rows: list[AnisotropyRow] = []
        for language, lines in texts.items():
            if len(lines) < 2:
                raise DataError(
                    f"{self.name}: {len(lines)} sentences of {language}; 2 or more are needed. "
                    f"Choose another split."
                )
            states = setting.parallel.states(loaded, lines, language, request)
            rows += [
                AnisotropyRow(
                    model=setting.subjects[0].id,
                    language=language,
                    layer=layer,
                    sentences=len(lines),
                    mean_cosine=mean_cosine(part),
                )
                for layer, part in zip(layers, states, strict=True)
            ]
        return rows


def mean_cosine(states: Float[Tensor, "item dim"]) -> float:
    """Return the mean cosine of all pairs of different rows, from -1 / (items - 1) to 1."""
    # The squared length of the sum of unit vectors is the sum of all their cosines, each with itself too.
    unit = torch.nn.functional.normalize(states.double(), dim=1)
    count = len(unit)
    return float((unit.sum(dim=0).square().sum() - unit.square().sum()) / (count * (count - 1)))
