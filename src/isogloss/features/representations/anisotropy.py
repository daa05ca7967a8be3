"""Anisotropy of each language as a measurement. ``geometry`` computes it."""

from dataclasses import dataclass
from typing import ClassVar

from isogloss.core.errors import DataError, add_location
from isogloss.core.run_parts import Positive, Whole
from isogloss.diagnostics.setting import Diagnostic, MeasureSetting
from isogloss.features.representations.rows import AnisotropyRow


@dataclass(frozen=True)
class Anisotropy(Diagnostic):
    """Mean cosine between different sentences of each language."""

    name: ClassVar[str] = "anisotropy"
    subject: ClassVar[str] = "states"
    version: ClassVar[int] = 1

    layers: tuple[Whole, ...] = (0, -1)
    """Layers whose states are averaged over a sentence. -1 is the last, 0 the embeddings."""

    limit: Positive = 128
    """Maximum sentence length in subwords. Longer ones are truncated."""

    def measure(self, setting: MeasureSetting) -> list[AnisotropyRow]:
        """Return a row for each language and layer, on sentences of its bitext with the first one."""
        from isogloss.features.representations.geometry import mean_cosine
        from isogloss.training.states import StateOptions, layers_once

        encoder = setting.encoder(setting.subjects[0])
        with add_location(self.name):
            layers = layers_once(encoder[0], self.layers)
        request = StateOptions(layers=layers, limit=self.limit, precision=setting.precision)
        pivot, *partners = setting.languages
        texts: dict[str, list[str]] = {}
        for partner in partners:
            pairs = list(setting.bitext(f"{pivot}-{partner}"))
            texts.setdefault(pivot, [pair.first for pair in pairs])
            texts[partner] = [pair.second for pair in pairs]
        rows: list[AnisotropyRow] = []
        for language, lines in texts.items():
            if len(lines) < 2:
                raise DataError(
                    f"{self.name}: {len(lines)} sentences of {language}; 2 or more are needed. "
                    f"Choose another split."
                )
            states = setting.parallel.states(encoder, lines, language, request)
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
