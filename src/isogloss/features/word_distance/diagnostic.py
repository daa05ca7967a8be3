"""Word distance as a measurement: histograms of distances, means, and the AUC of their separation.

``word_pairs`` counts the distances. AUC = P(related < unrelated). Section 5.4 of the third paper
also reports the share of the distance in the 10 and 100 most influential dimensions ("about 5% and 25%"),
because few dimensions dominate cosines (Timkey and van Schijndel 2021).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from isogloss.core.errors import ConfigError, DataError, add_location, check_named
from isogloss.core.identity import derive
from isogloss.core.progress import OnProgress, no_progress
from isogloss.core.run_parts import Positive, Whole
from isogloss.data.examples import Translation
from isogloss.data.formats.word_links import pair_words
from isogloss.diagnostics.setting import Diagnostic, LoadedEncoder, MeasureSetting
from isogloss.features.word_distance.rows import DimensionShareRow, DistanceBinRow, WordDistanceRow
from isogloss.features.word_distance.separation import histogram, separation

if TYPE_CHECKING:
    from isogloss.features.word_distance.word_pairs import Counts, SquaredDifferences

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
        from isogloss.features.word_distance.word_pairs import DISTANCES
        from isogloss.training.states import WORDS

        check_named(f"{self.name}: words", "way to make a word of its subwords", WORDS, self.words)
        check_named(f"{self.name}: distances", "distance", DISTANCES, *self.distances)
        for name in ("unrelated", "bins", "longest"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{self.name}: {name} is {getattr(self, name)}, but 1 or more is needed.")

    def measure(self, setting: MeasureSetting) -> list[Row]:
        """Return means, AUC, bins and shares for each pair of the first language with a further one."""
        from isogloss.features.word_distance.word_pairs import SquaredDifferences

        subject = setting.subjects[0]
        encoder = setting.encoder(subject)
        width = encoder[0].config.hidden_size
        if max(self.dimensions or (0,)) > width:
            raise ConfigError(
                f"{self.name}: dimensions: found {max(self.dimensions or ())}; states of this encoder have "
                f"{width}. Use numbers up to {width}."
            )
        pivot, *partners = setting.languages
        rows: list[Row] = []
        for partner in partners:
            squares = SquaredDifferences() if self.dimensions else None
            counts = self.counts(
                encoder,
                setting.bitext(f"{pivot}-{partner}"),
                f"{pivot}-{partner}",
                precision=setting.precision,
                on_progress=setting.on_progress,
                squares=squares,
            )
            rows += distance_rows((subject.id, pivot, partner), counts, self.bins)
            if squares:
                rows += make_share_rows((subject.id, pivot, partner), squares, self.dimensions or ())
        return rows

    def counts(
        self,
        encoder: LoadedEncoder,
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
        from isogloss.features.word_distance.word_pairs import LinkedSentence, WordPairs, count_word_distances
        from isogloss.training.states import layers_once

        with add_location(self.name):
            layers = layers_once(encoder[0], self.layers)
        first_language, _, second_language = pair.partition("-")
        linked_sentences = [LinkedSentence(*pair_words(item), item.links) for item in bitext if item.links]
        sentences = [
            item for item in linked_sentences if max(len(item.first), len(item.second)) <= self.longest
        ]
        options = WordPairs(
            layers=layers,
            distances=self.distances,
            words=self.words,
            unrelated=self.unrelated,
            precision=precision,
            random=np.random.Generator(np.random.PCG64(derive(self.seed, self.name, pair))),
        )
        counts = count_word_distances(
            encoder,
            sentences,
            (first_language, second_language),
            options,
            squares=squares,
            on_progress=on_progress,
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
    from isogloss.features.word_distance.word_pairs import compute_share_of_largest

    columns = dict(zip(("model", "first", "second"), ids, strict=True))
    for layer, (related_squares, unrelated_squares) in squares.sums.items():
        for dimension_count in dimensions:
            yield DimensionShareRow(
                **columns,
                layer=layer,
                dimensions=dimension_count,
                width=len(related_squares),
                related_share=compute_share_of_largest(related_squares, dimension_count),
                unrelated_share=compute_share_of_largest(unrelated_squares, dimension_count),
            )


def distance_rows(
    ids: tuple[str, str, str], counts: Counts, bins: int
) -> Iterator[WordDistanceRow | DistanceBinRow]:
    """Yield for each layer and distance a row of means, AUC and numbers of pairs, then a row for each bin.

    ``ids`` are the subject, the first language and the second.
    """
    columns = dict(zip(("model", "first", "second"), ids, strict=True))
    for (layer, kind), (related_distances, unrelated_distances) in counts.items():
        auc = separation(related_distances, unrelated_distances)
        yield WordDistanceRow(
            **columns,
            layer=layer,
            distance=kind,
            related_mean=related_distances.mean,
            unrelated_mean=unrelated_distances.mean,
            auc=auc.auc,
            auc_within=auc.within,
            related_pairs=related_distances.number,
            unrelated_pairs=unrelated_distances.number,
        )
        for low, high, (related_count, unrelated_count) in histogram(
            (related_distances, unrelated_distances), bins
        ):
            yield DistanceBinRow(
                **columns,
                layer=layer,
                distance=kind,
                low=low,
                high=high,
                related=related_count,
                unrelated=unrelated_count,
            )
