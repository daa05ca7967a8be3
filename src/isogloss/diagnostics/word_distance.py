"""Word distance as a measurement: histograms of distances, means, and the AUC of their separation.

``similarity.word_pairs`` counts the distances. AUC = P(related < unrelated). Section 5.4 of the third paper
also reports the share of the distance in the 10 and 100 most influential dimensions ("about 5% and 25%"),
because few dimensions dominate cosines (Timkey and van Schijndel 2021).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from isogloss.core.errors import ConfigError, DataError, check_named, located
from isogloss.core.identity import derive
from isogloss.core.progress import OnProgress, no_progress
from isogloss.core.rows.encoders import DimensionShareRow, DistanceBinRow, WordDistanceRow
from isogloss.core.run_parts import Positive, Whole
from isogloss.data.examples import Translation
from isogloss.data.formats.word_links import pair_words
from isogloss.diagnostics.setting import Diagnostic, LoadedEncoder, MeasureSetting
from isogloss.metrics.ranks import histogram, separation

if TYPE_CHECKING:
    from isogloss.similarity.word_pairs import Counts, SquaredDifferences

Row = WordDistanceRow | DistanceBinRow | DimensionShareRow


@dataclass(frozen=True, kw_only=True)
class WordDistance(Diagnostic):
    """Distances between related and unrelated words: histograms, means, and AUC of the separation."""

    name: ClassVar[str] = "word-distance"
    subject: ClassVar[str] = "words"
    version: ClassVar[int] = 2

    layers: tuple[Whole, ...] = (-1,)
    """Layers whose states are compared. -1 is the last, 0 the embeddings."""

    distances: tuple[str, ...] = ("l2", "cosine")
    """Kinds of distance: l2, cosine."""

    words: str = "average"
    """State of a word: the average of its subwords, or the first or last one."""

    unrelated: Positive = 1
    """Unrelated pairs for each related one."""

    bins: Positive = 60
    """Bins of the histograms."""

    longest: Positive = 64
    """Maximum sentence length in words, as in the released code. Longer translations are skipped."""

    seed: Whole = 0
    """Seed of the draw of unrelated pairs."""

    dimensions: tuple[Positive, ...] | None = None
    """Numbers of dimensions whose share in the squared L2 distances is reported, largest dimensions first (10
    and 100 in the paper). Default: none."""

    def __post_init__(self) -> None:
        """Refuse unknown names and numbers below 1."""
        from isogloss.similarity.word_pairs import DISTANCES
        from isogloss.training.states import WORDS

        check_named(f"{self.name}: words", "way to make a word of its subwords", WORDS, self.words)
        check_named(f"{self.name}: distances", "distance", DISTANCES, *self.distances)
        for name in ("unrelated", "bins", "longest"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{self.name}: {name} is {getattr(self, name)}, but 1 or more is needed.")

    def measure(self, setting: MeasureSetting) -> list[Row]:
        """Return means, AUC, bins and shares for each pair of the first language with a further one."""
        from isogloss.similarity.word_pairs import SquaredDifferences

        subject = setting.subjects[0]
        loaded = setting.encoder(subject)
        width = loaded[0].config.hidden_size
        if max(self.dimensions or (0,)) > width:
            raise ConfigError(
                f"{self.name}: dimensions: found {max(self.dimensions or ())}; states of this encoder have "
                f"{width}. Use numbers up to {width}."
            )
        first, *others = setting.languages
        rows: list[Row] = []
        for other in others:
            squares = SquaredDifferences() if self.dimensions else None
            counts = self.counts(
                loaded,
                setting.bitext(f"{first}-{other}"),
                f"{first}-{other}",
                precision=setting.precision,
                on_progress=setting.on_progress,
                squares=squares,
            )
            rows += distance_rows((subject.id, first, other), counts, self.bins)
            if squares:
                rows += make_share_rows((subject.id, first, other), squares, self.dimensions or ())
        return rows

    def counts(
        self,
        loaded: LoadedEncoder,
        bitext: Iterable[Translation],
        pair: str,
        *,
        precision: str = "auto",
        on_progress: OnProgress = no_progress,
        squares: SquaredDifferences | None = None,
    ) -> Counts:
        """Return the distances of related and of unrelated words of linked bitext.

        ``pair`` names the two languages (en-fr); ``squares`` collects the differences by dimension. DataError
        where fewer than two translations have links.
        """
        from isogloss.similarity.word_pairs import LinkedSentence, WordPairs, count_word_distances
        from isogloss.training.states import layers_once

        with located(self.name):
            layers = layers_once(loaded[0], self.layers)
        first, _, second = pair.partition("-")
        linked = [LinkedSentence(*pair_words(item), item.links) for item in bitext if item.links]
        sentences = [item for item in linked if max(len(item.first), len(item.second)) <= self.longest]
        options = WordPairs(
            layers=layers,
            distances=self.distances,
            words=self.words,
            unrelated=self.unrelated,
            precision=precision,
            random=np.random.Generator(np.random.PCG64(derive(self.seed, self.name, pair))),
        )
        counts = count_word_distances(
            loaded, sentences, (first, second), options, squares=squares, on_progress=on_progress
        )
        if any(not group.number for groups in counts.values() for group in groups):
            raise DataError(
                f"{self.name}: {len(sentences)} translations {pair} of at most {self.longest} words have "
                f"links; expected two or more. Align more of them, or let longest be larger."
            )
        return counts


def make_share_rows(
    ids: tuple[str, str, str], squares: SquaredDifferences, dimensions: Iterable[int]
) -> Iterator[DimensionShareRow]:
    """Yield a row for each layer and number of dimensions."""
    from isogloss.similarity.word_pairs import compute_share_of_largest

    columns = dict(zip(("model", "first", "second"), ids, strict=True))
    for layer, (related, unrelated) in squares.sums.items():
        for number in dimensions:
            yield DimensionShareRow(
                **columns,
                layer=layer,
                dimensions=number,
                width=len(related),
                related_share=compute_share_of_largest(related, number),
                unrelated_share=compute_share_of_largest(unrelated, number),
            )


def distance_rows(
    ids: tuple[str, str, str], counts: Counts, bins: int
) -> Iterator[WordDistanceRow | DistanceBinRow]:
    """Yield for each layer and distance a row of means, AUC and numbers of pairs, then a row for each bin.

    ``ids`` are the subject, the first language and the second.
    """
    columns = dict(zip(("model", "first", "second"), ids, strict=True))
    for (layer, kind), (near, far) in counts.items():
        separated = separation(near, far)
        yield WordDistanceRow(
            **columns,
            layer=layer,
            distance=kind,
            related_mean=near.mean,
            unrelated_mean=far.mean,
            auc=separated.auc,
            auc_within=separated.within,
            related_pairs=near.number,
            unrelated_pairs=far.number,
        )
        for low, high, (related, unrelated) in histogram((near, far), bins):
            yield DistanceBinRow(
                **columns,
                layer=layer,
                distance=kind,
                low=low,
                high=high,
                related=related,
                unrelated=unrelated,
            )
