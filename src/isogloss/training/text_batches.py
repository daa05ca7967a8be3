"""Batches for masked language modelling: blocks of text, or texts beside their translations.

Languages are drawn in proportion to size^(1/T) (Devlin et al.'s multilingual sampling; paper 4, Section 3.2).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from isogloss.core.seeds import derive
from isogloss.tasks.masked_lm import MaskedBatch, Masking, Spoken
from isogloss.tasks.text_stream import TextStream

CANDIDATES = 8
"""Translations drawn for each one used: a slice of similar length among them wastes little padding."""

Parallel = dict[str, np.ndarray]
"""One text in several languages, as subwords."""

Rows = list[list[np.ndarray]]


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """How batches are drawn."""

    steps: int
    """Batches there are."""
    batch_subwords: int
    """Subwords of one batch, padding included."""
    block: int
    """Subwords of one row of text, special ones included."""
    temperature: float = 1.0
    """T in size^(1/T)."""
    mixed: bool = False
    """True: rows of one batch come from all languages; False: a batch holds one language."""
    translation: float = 0.0
    """Share of the batches that are translations."""

    @property
    def rows(self) -> int:
        """Rows of a batch of text."""
        return max(1, self.batch_subwords // self.block)


@dataclass(frozen=True, kw_only=True)
class TextBatches:
    """Batch i: translations or text, drawn from (seed, i) alone; each knows the language of its rows."""

    drawing: Drawing
    streams: Mapping[str, TextStream]
    """By language."""
    translations: Sequence[Parallel] = ()
    masking: Masking
    seed: int

    def __len__(self) -> int:
        return self.drawing.steps

    def __getitem__(self, step: int) -> MaskedBatch:
        seed = derive(self.seed, step)
        rng = np.random.Generator(np.random.PCG64(seed))
        parallel = bool(self.translations) and rng.random() < self.drawing.translation
        language, rows = self._pairs(rng) if parallel else self._blocks(rng)
        return self.masking.batch(rows, seed=seed, language=language)

    def _blocks(self, rng: np.random.Generator) -> tuple[Spoken, Rows]:
        how, codes = self.drawing, list(self.streams)
        sizes = np.array([len(stream) for stream in self.streams.values()], dtype=np.float64)
        weights = sizes ** (1 / how.temperature)
        drawn = rng.choice(len(codes), size=how.rows if how.mixed else 1, p=weights / weights.sum())
        languages = tuple(codes[number] for number in np.resize(drawn, how.rows))
        streams = [self.streams[code] for code in languages]
        places = [int(rng.integers(len(stream.starts))) for stream in streams]
        length = how.block - 2
        rows = [[stream.block(place, length)] for stream, place in zip(streams, places, strict=True)]
        return languages if how.mixed else languages[0], rows

    def _pairs(self, rng: np.random.Generator) -> tuple[Spoken, Rows]:
        wanted = max(2, self.drawing.batch_subwords // 32)
        drawn = [self._pair(rng) for _ in range(CANDIDATES * wanted // 2)]
        drawn.sort(key=lambda pair: sum(map(len, pair[1])))
        start = int(rng.integers(len(drawn)))
        languages: list[str] = []
        rows: Rows = []
        widest = 0
        for language, pair in chain(drawn[start:], reversed(drawn[:start])):
            widest = max(widest, sum(map(len, pair)) + 3)
            if rows and (len(rows) + 1) * widest > self.drawing.batch_subwords:
                break
            languages.append(language)
            rows.append(pair)
        return tuple(languages), rows

    def _pair(self, rng: np.random.Generator) -> tuple[str, list[np.ndarray]]:
        text = self.translations[int(rng.integers(len(self.translations)))]
        first, second = rng.choice(len(text), size=2, replace=False)
        codes, sides = list(text), list(text.values())
        return f"{codes[first]}+{codes[second]}", [sides[first], sides[second]]
