"""Linear CKA of parallel text as a measurement. ``linear_cka`` computes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from isogloss.core.errors import DataError, add_location
from isogloss.core.progress import OnProgress, Progress, no_progress
from isogloss.core.run_parts import Positive, Whole
from isogloss.diagnostics.setting import Diagnostic, LoadedEncoder, MeasureSetting, layer_numbers
from isogloss.features.representations.rows import CkaRow

if TYPE_CHECKING:
    from isogloss.training.parallel_text import ParallelText


@dataclass(frozen=True, kw_only=True)
class Cka(Diagnostic):
    """CKA between the first language and each other on bitext or parallel test sets, in every layer."""

    name: ClassVar[str] = "cka"
    subject: ClassVar[str] = "parallel"
    version: ClassVar[int] = 2

    layers: tuple[Whole, ...] = ()
    """Compared layers: 0 is the embeddings, -1 the last. Default: all."""

    limit: Positive = 128
    """Maximum sentence length in subwords. Longer ones are truncated."""

    def measure(self, setting: MeasureSetting) -> list[CkaRow]:
        """Return a row for each layer and each pair of the first language with a further one."""
        from isogloss.features.representations.parallel_states import rows_of_pairs

        return rows_of_pairs(setting, partial(self.rows, on_progress=setting.on_progress))

    def rows(
        self,
        encoder: LoadedEncoder,
        text: ParallelText,
        languages: tuple[str, str],
        *,
        model: str = "",
        precision: str = "auto",
        on_progress: OnProgress = no_progress,
    ) -> Iterator[CkaRow]:
        """Yield a row for each layer of an encoder, about two languages of a parallel text.

        DataError for fewer than four sentences.
        """
        from isogloss.features.representations.linear_cka import MIN_UNBIASED_SENTENCES, StreamedCka
        from isogloss.features.representations.parallel_states import PAIRS_PER_BLOCK, parallel_states
        from isogloss.training.states import StateOptions

        name = "-".join(languages)
        with add_location(self.name):
            layers = layer_numbers(self.layers, encoder)
        pairs = text.pairs(*languages)
        if len(pairs) < MIN_UNBIASED_SENTENCES:
            raise DataError(
                f"{self.name}: {len(pairs)} translations {name}; {MIN_UNBIASED_SENTENCES} or more are "
                f"needed, and more than the states have dimensions are better. Choose another split."
            )
        cka_sums = StreamedCka()
        request = StateOptions(layers=tuple(layers), limit=self.limit, precision=precision)
        blocks = parallel_states(encoder, text, pairs, languages, request)
        for count, (x, y) in enumerate(blocks, start=1):
            cka_sums.add(x, y)
            on_progress(Progress(self.name, count, -(-len(pairs) // PAIRS_PER_BLOCK), name))
        for layer, cka, debiased_cka in zip(
            layers, cka_sums.compute(), cka_sums.compute_debiased(), strict=True
        ):
            yield CkaRow(
                model=model,
                first=languages[0],
                second=languages[1],
                layer=layer,
                sentences=len(pairs),
                cka=float(cka),
                debiased=float(debiased_cka),
            )
