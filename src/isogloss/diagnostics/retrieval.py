"""Sentence retrieval as a measurement. ``similarity.nearest`` computes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from isogloss.core.errors import ConfigError, DataError
from isogloss.core.progress import OnProgress, Progress, no_progress
from isogloss.core.rows.encoders import RetrievalRow
from isogloss.core.run_parts import Count, Positive, Whole
from isogloss.diagnostics.setting import Diagnostic, LoadedEncoder, MeasureSetting

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
        from isogloss.diagnostics.parallel_states import rows_of_pairs
        from isogloss.training.states import pooling_warning

        def rows(loaded: LoadedEncoder, *arguments: Any, **options: Any) -> Iterator[RetrievalRow]:
            if self.pooling is None and (warning := pooling_warning(loaded[0], self.name)):
                setting.warn(warning)
            return self.rows(loaded, *arguments, **options)

        return rows_of_pairs(setting, rows)

    def rows(
        self,
        loaded: LoadedEncoder,
        text: ParallelText,
        languages: tuple[str, str],
        *,
        model: str = "",
        precision: str = "auto",
        on_progress: OnProgress = no_progress,
    ) -> Iterator[RetrievalRow]:
        """Yield a row for each layer of an encoder and similarity, about two languages of a parallel text."""
        from isogloss.similarity.nearest import directions, retrieval_accuracy
        from isogloss.training.states import StateOptions

        first, second = languages
        request = StateOptions(
            layers=self.layers or (self.layer,), limit=self.limit, precision=precision, pooling=self.pooling
        )
        pairs = text.pairs(first, second)
        if not pairs:
            raise DataError(
                f"{self.name}: no translations {first}-{second} to look for. Choose another split."
            )
        first_states = text.states(loaded, [pair.first for pair in pairs], first, request)
        on_progress(Progress(self.name, 1, 2, first))
        second_states = text.states(loaded, [pair.second for pair in pairs], second, request)
        on_progress(Progress(self.name, 2, 2, second))
        for index, layer in enumerate(self.layers or (self.layer,)):
            for centred in (True, False) if self.centred is None else (self.centred,):
                x, y = (directions(side[index], centred=centred) for side in (first_states, second_states))
                for neighbours in dict.fromkeys((0, self.csls)):
                    yield RetrievalRow(
                        model=model,
                        first=first,
                        second=second,
                        layer=layer,
                        centred=centred,
                        similarity=f"CSLS {neighbours}" if neighbours else "cosine",
                        candidates=len(x),
                        accuracy_forward=retrieval_accuracy(x, y, neighbours=neighbours),
                        accuracy_backward=retrieval_accuracy(y, x, neighbours=neighbours),
                        chance=1 / len(x),
                    )
