"""Sentence retrieval: how often is a sentence's translation its nearest neighbour?

Accuracy in both directions among held-out translations, on mean-pooled states (Artetxe & Schwenk 2019 use the
same measure on Tatoeba). By cosine, and by CSLS (Conneau et al. 2018, "Word Translation Without Parallel
Data", Eq. 3), which corrects for hubs: sentences that are near to all others. Centring each language removes
a constant difference between languages.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from isogloss.core.errors import ConfigError, DataError
from isogloss.core.progress import OnProgress, Progress, no_progress
from isogloss.core.rows.encoders import Retrieval as RetrievalRow
from isogloss.core.run_parts import Count, Positive, Whole
from isogloss.diagnostics.setting import Diagnostic, LoadedEncoder, MeasureSetting, directions, rows_of_pairs
from isogloss.training.states import ParallelText, StateOptions, pooling_warning

QUERIES_PER_BLOCK = 1024
"""Sentences compared with all candidates at a time, which bounds memory."""

SIMILARITY_TOLERANCE = 1e-6
"""Similarities closer than this are equal, so that rounding does not choose between two copies."""


@dataclass(frozen=True)
class Retrieval(Diagnostic):
    """Accuracy of finding translations with an encoder."""

    name: ClassVar[str] = "retrieval"
    subject: ClassVar[str] = "states"
    version: ClassVar[int] = 3

    layer: Whole = -1
    """Layer whose states are pooled; -1 is the last, 0 the embeddings."""

    layers: tuple[Whole, ...] = ()
    """Several layers, instead of ``layer``."""

    limit: Positive = 128
    """Maximum sentence length in subwords; longer ones are truncated."""

    centred: bool | None = None
    """Whether each language's mean is subtracted first; both ways if not given."""

    csls: Count = 10
    """Neighbours of CSLS, in addition to cosine; 0 for cosine alone."""

    pooling: Literal["model"] | None = None
    """model: the vectors that the encoder's folder of sentence-transformers makes; otherwise the mean of a
    sentence's states, special subwords left out."""

    def __post_init__(self) -> None:
        """Refuse a number of neighbours below 0."""
        if self.csls < 0:
            raise ConfigError(f"{self.name}: csls is {self.csls}, but 0 or more neighbours are needed.")

    def measure(self, setting: MeasureSetting) -> list[RetrievalRow]:
        """Return, for each pair of the first language with another, a row for each layer and similarity."""

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


def retrieval_accuracy(
    x: Float[Tensor, "item dim"], y: Float[Tensor, "item dim"], *, neighbours: int = 0
) -> float:
    """Return the share of rows of x whose nearest row of y has the same index.

    Rows have length 1. Nearest by cosine, or by CSLS with ``neighbours`` > 0. Where k rows of y tie with
    the right one, it counts 1/k.
    """
    # CSLS is 2 cos(x, y) - r(x) - r(y); r(x) is the same for all candidates, so their order needs only r(y).
    offset = mean_nearest(y, x, neighbours) / 2 if neighbours else torch.zeros(len(y), device=y.device)
    own_similarity = (x * y).sum(dim=1) - offset
    correct = 0.0
    for start in range(0, len(x), QUERIES_PER_BLOCK):
        rows = slice(start, start + QUERIES_PER_BLOCK)
        ahead = x[rows] @ y.T - offset - own_similarity[rows].unsqueeze(1)
        numbers = torch.arange(len(ahead), device=x.device)
        ahead[numbers, numbers + start] = 0  # The right one ties with itself, whatever the rounding.
        best = ~(ahead > SIMILARITY_TOLERANCE).any(dim=1)
        ties = (ahead >= -SIMILARITY_TOLERANCE).sum(dim=1)
        correct += float((best / ties).sum(dtype=torch.float64))
    return correct / len(x)


def mean_nearest(
    x: Float[Tensor, "item dim"], y: Float[Tensor, "other dim"], neighbours: int
) -> Float[Tensor, " item"]:
    """Return the mean cosine of each row of x with its nearest rows of y, or with all of few (r of CSLS)."""
    k = min(neighbours, len(y))
    blocks = (x[start : start + QUERIES_PER_BLOCK] @ y.T for start in range(0, len(x), QUERIES_PER_BLOCK))
    return torch.cat([block.topk(k, dim=1).values.mean(dim=1) for block in blocks])
