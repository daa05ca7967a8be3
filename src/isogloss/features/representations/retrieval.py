"""Sentence retrieval as a measurement. ``similarity.nearest`` computes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from isogloss.core.errors import ConfigError, DataError
from isogloss.core.progress import OnProgress, Progress, no_progress
from isogloss.core.run_parts import Count, Positive, Whole
from isogloss.diagnostics.setting import Diagnostic, LoadedEncoder, MeasureSetting
from isogloss.features.representations.rows import RetrievalRow

if TYPE_CHECKING:
    from isogloss.training.parallel_text import ParallelText


@dataclass(frozen=True)
class Retrieval(Diagnostic):
    """Accuracy of finding translations with an encoder."""

    name: ClassVar[str] = "retrieval"
    subject: ClassVar[str] = "states"
    version: ClassVar[int] = 3

    layer: Whole = -1
    """Layer whose states are pooled. -1 is the last, 0 the embeddings."""

    layers: tuple[Whole, ...] = ()
    """Several layers, instead of ``layer``."""

    limit: Positive = 128
    """Maximum sentence length in subwords. Longer ones are truncated."""

    centred: bool | None = None
    """Whether each language's mean is subtracted first. Default: both ways."""

    csls: Count = 10
    """Neighbours of CSLS, in addition to cosine. 0: only cosine."""

    pooling: Literal["model"] | None = None
    """model: the vectors of the encoder's sentence-transformers folder. Default: the mean of a sentence's
    states without special subwords."""

    def __post_init__(self) -> None:
        """Refuse a number of neighbours below 0."""
        if self.csls < 0:
            raise ConfigError(f"{self.name}: csls is {self.csls}, but 0 or more neighbours are needed.")

    def measure(self, setting: MeasureSetting) -> list[RetrievalRow]:
        """Return a row for each layer, similarity and language other than the first."""
        from isogloss.features.representations.parallel_states import rows_of_pairs
        from isogloss.training.states import pooling_warning

        def rows(encoder: LoadedEncoder, *arguments: Any, **options: Any) -> Iterator[RetrievalRow]:
            if self.pooling is None and (warning := pooling_warning(encoder[0], self.name)):
                setting.warn(warning)
            return self.rows(encoder, *arguments, **options)

        return rows_of_pairs(setting, rows)

    def rows(
        self,
        encoder: LoadedEncoder,
        text: ParallelText,
        languages: tuple[str, str],
        *,
        model: str = "",
        precision: str = "auto",
        on_progress: OnProgress = no_progress,
    ) -> Iterator[RetrievalRow]:
        """Yield a row for each layer of an encoder and similarity, about two languages of a parallel text."""
        from isogloss.features.representations.geometry import retrieval_accuracy
        from isogloss.similarity.nearest import directions
        from isogloss.training.states import StateOptions

        first_language, second_language = languages
        request = StateOptions(
            layers=self.layers or (self.layer,), limit=self.limit, precision=precision, pooling=self.pooling
        )
        pairs = text.pairs(first_language, second_language)
        if not pairs:
            raise DataError(
                f"{self.name}: no translations {first_language}-{second_language} to look for. Choose "
                f"another split."
            )
        first_states = text.states(encoder, [pair.first for pair in pairs], first_language, request)
        on_progress(Progress(self.name, 1, 2, first_language))
        second_states = text.states(encoder, [pair.second for pair in pairs], second_language, request)
        on_progress(Progress(self.name, 2, 2, second_language))
        for index, layer in enumerate(self.layers or (self.layer,)):
            for is_centred in (True, False) if self.centred is None else (self.centred,):
                x, y = (directions(side[index], centred=is_centred) for side in (first_states, second_states))
                for neighbours in dict.fromkeys((0, self.csls)):
                    yield RetrievalRow(
                        model=model,
                        first=first_language,
                        second=second_language,
                        layer=layer,
                        centred=is_centred,
                        similarity=f"CSLS {neighbours}" if neighbours else "cosine",
                        candidates=len(x),
                        accuracy_forward=retrieval_accuracy(x, y, neighbours=neighbours),
                        accuracy_backward=retrieval_accuracy(y, x, neighbours=neighbours),
                        chance=1 / len(x),
                    )
