"""Bitext mining: which sentences of two comparable corpora translate each other, and how many are found?

Artetxe & Schwenk (2019), "Margin-based Parallel Corpus Mining with Multilingual Sentence Embeddings": a
pair's cosine is compared with the mean cosine of both sentences with their k nearest neighbours in the other
language (Eq. 2 and 3). Each sentence of either side proposes the best of its neighbours; the proposals are
taken from the best down, each sentence once ("max" of Section 3). What scores above a threshold is mined; the
threshold with the best F1 on dev is applied to test, as in XTREME (Hu et al. 2020). Repeated sentences count
once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from jaxtyping import Bool, Float

from isogloss.core.errors import DataError, check_named
from isogloss.core.progress import Progress
from isogloss.core.run_parts import Positive, Whole
from isogloss.data.corpus import Split
from isogloss.data.examples import ComparableText
from isogloss.diagnostics.setting import Diagnostic, LoadedEncoder, MeasureSetting
from isogloss.features.mining.rows import MiningRow

if TYPE_CHECKING:
    from torch import Tensor

SENTENCES_IN_MEMORY = 16_384
"""Sentences whose subwords are in memory together."""

TUNING_SPLIT: Split = "dev"
"""The split whose best threshold is applied to the others."""


@dataclass(frozen=True)
class Mining(Diagnostic):
    """F1 of mining translations from comparable text with an encoder, at dev's best threshold."""

    name: ClassVar[str] = "mining"
    subject: ClassVar[str] = "comparable"
    tuning_split: ClassVar[Split] = TUNING_SPLIT
    version: ClassVar[int] = 1

    layer: Whole = -1
    """Layer whose states are pooled. -1 is the last, 0 the embeddings."""

    layers: tuple[Whole, ...] = ()
    """Several layers, instead of ``layer``."""

    limit: Positive = 128
    """Maximum sentence length in subwords. Longer ones are truncated."""

    centred: bool = False
    """Whether the mean of each language's sentences is subtracted first."""

    margin: str = "ratio"
    """Comparison of a cosine with the mean of the neighbours' cosines: ratio, distance, or cosine (no
    comparison)."""

    neighbours: Positive = 4
    """Number of nearest sentences of the other language whose mean is used, and among which the best is
    chosen."""

    pooling: Literal["model"] | None = None
    """model: the vectors of the encoder's sentence-transformers folder. Default: the mean of a sentence's
    states without special subwords."""

    def __post_init__(self) -> None:
        """Refuse an unknown margin."""
        from isogloss.features.mining.vectors import MARGINS

        check_named(self.name, "margin", MARGINS, self.margin)

    def measure(self, setting: MeasureSetting) -> list[MiningRow]:
        """Return a row for each split and layer, for each pair of the first language with a further one."""
        from isogloss.training.states import pooling_warning

        encoder = setting.encoder(setting.subjects[0])
        if self.pooling is None and (warning := pooling_warning(encoder[0], self.name)):
            setting.warn(warning)
        pivot, *partners = setting.languages
        rows: list[MiningRow] = []
        for index, partner in enumerate(partners):
            setting.on_progress(Progress(self.name, index, len(partners), f"{pivot}-{partner}"))
            thresholds: dict[int, float] = {}
            for split in dict.fromkeys((TUNING_SPLIT, setting.split)):
                for layer, candidates in self._mine_candidates(setting, encoder, (pivot, partner), split):
                    if split == TUNING_SPLIT:
                        thresholds[layer] = best_threshold(candidates)
                    frame = (setting.subjects[0].id, pivot, partner, split)
                    rows.append(self._row(frame, layer, candidates, thresholds[layer]))
        return rows

    def _mine_candidates(
        self, setting: MeasureSetting, encoder: LoadedEncoder, languages: tuple[str, str], split: str
    ) -> Iterator[tuple[int, "Mined"]]:
        import torch

        from isogloss.features.mining.vectors import mine
        from isogloss.similarity.nearest import directions

        pair = "-".join(languages)
        sides = unique_sides(setting.comparable(pair, split))
        if not sides.gold:
            raise DataError(
                f"{self.name}: {pair} {split}: no sentence has a translation. Choose another pair."
            )
        states = [
            self._states(setting, encoder, language, texts)
            for language, texts in zip(languages, (sides.first, sides.second), strict=True)
        ]
        for index, layer in enumerate(self.layers or (self.layer,)):
            x, y = (directions(side[index], centred=self.centred).to(encoder[0].device) for side in states)
            pairs, scores = mine(x, y, neighbours=self.neighbours, margin=self.margin)
            correct = torch.tensor([(i, j) in sides.gold for i, j in pairs.tolist()])
            yield layer, Mined(scores, correct, sides)

    def _states(
        self, setting: MeasureSetting, encoder: LoadedEncoder, language: str, texts: Sequence[str]
    ) -> Float[Tensor, "layer sentence dim"]:
        import torch

        from isogloss.training.states import StateOptions

        request = StateOptions(
            layers=self.layers or (self.layer,),
            limit=self.limit,
            precision=setting.precision,
            pooling=self.pooling,
        )
        parts = (
            texts[start : start + SENTENCES_IN_MEMORY] for start in range(0, len(texts), SENTENCES_IN_MEMORY)
        )
        return torch.cat([setting.parallel.states(encoder, part, language, request) for part in parts], dim=1)

    def _row(
        self, frame: tuple[str, str, str, str], layer: int, candidates: "Mined", threshold: float
    ) -> MiningRow:
        model, first_language, second_language, split = frame
        count, precision, recall, f1 = scores_at(candidates, threshold)
        return MiningRow(
            model=model,
            first=first_language,
            second=second_language,
            split=split,
            layer=layer,
            centred=self.centred,
            margin=self.margin,
            neighbours=self.neighbours,
            sentences_first=len(candidates.sides.first),
            sentences_second=len(candidates.sides.second),
            gold=len(candidates.sides.gold),
            mined=count,
            threshold=threshold,
            precision=precision,
            recall=recall,
            f1=f1,
        )


@dataclass(frozen=True, slots=True)
class SentencePools:
    """The different sentences of two languages, and which translate each other, by number."""

    first: list[str]
    second: list[str]
    gold: set[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Mined:
    """Pairs that a threshold may let pass, from the highest score down."""

    scores: Float[Tensor, " pair"]
    correct: Bool[Tensor, " pair"]
    sides: SentencePools


def unique_sides(texts: Sequence[ComparableText]) -> SentencePools:
    """Return each sentence once, sorted, so that the order reveals no pairs."""
    first_texts, second_texts = (
        sorted({text for text in side if text})
        for side in ((pair.first for pair in texts), (pair.second for pair in texts))
    )
    first_indices, second_indices = (
        {text: index for index, text in enumerate(side)} for side in (first_texts, second_texts)
    )
    gold = {
        (first_indices[text.first], second_indices[text.second])
        for text in texts
        if text.first and text.second
    }
    return SentencePools(first_texts, second_texts, gold)


def best_threshold(candidates: Mined) -> float:
    """Return the threshold with the highest F1: half way between the last pair it lets pass and the next."""
    import torch

    scores = candidates.scores
    gold = len(candidates.sides.gold)
    f1 = 2 * candidates.correct.double().cumsum(0) / (torch.arange(1, len(scores) + 1) + gold)
    f1[:-1][scores[1:] == scores[:-1]] = -1  # Pairs of equal scores pass together.
    cutoff = int(f1.argmax())
    return float(scores[cutoff : cutoff + 2].mean())


def scores_at(candidates: Mined, threshold: float) -> tuple[int, float, float, float]:
    """Return the number of pairs above a threshold, and their precision (0 of none), recall and F1."""
    passing = candidates.scores >= threshold
    count, correct_count, gold = (
        int(passing.sum()),
        int(candidates.correct[passing].sum()),
        len(candidates.sides.gold),
    )
    return count, correct_count / max(count, 1), correct_count / gold, 2 * correct_count / (count + gold)
