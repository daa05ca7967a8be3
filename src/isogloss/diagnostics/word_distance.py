"""Word distance: are words that translate each other closer together than words that do not?

Paper: "… Cross-Lingual Adjustment …", Section 5.4, Figs 1 and 2: histograms of L2 distances between the
states of related (aligned) and of unrelated words of two languages, before and after adjustment and
fine-tuning. In addition, one number for the separation: AUC = P(related < unrelated). Section 5.4 also
reports the share of the distance in the 10 and 100 most influential dimensions ("about 5% and 25%"), because
few dimensions dominate cosines (Timkey and van Schijndel 2021).

As in the paper, unrelated words come from sentences that are not translations of each other. Both words come
from related pairs: the two groups have the same words and differ only in their pairing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from torch import Tensor

from isogloss.core.errors import ConfigError, DataError, ModelError, check_named, located
from isogloss.core.identity import derive
from isogloss.core.progress import OnProgress, Progress, no_progress
from isogloss.core.rows.encoders import DimensionShare, DistanceBin
from isogloss.core.rows.encoders import WordDistance as WordDistanceRow
from isogloss.core.run_parts import Positive, Whole
from isogloss.data.examples import Translation
from isogloss.data.formats.word_links import pair_words
from isogloss.diagnostics.setting import Diagnostic, LoadedEncoder, MeasureSetting
from isogloss.encoders.added.active_language import active_language
from isogloss.metrics.ranks import FineCounts, histogram, separation
from isogloss.training.states import WORDS, layers_once, word_states

TRANSLATIONS_PER_BLOCK = 256
"""Translations whose words are in memory together; unrelated words are drawn from the same block."""

Places = npt.NDArray[np.int64]
Row = WordDistanceRow | DistanceBin | DimensionShare
Counts = Mapping[tuple[int, str], tuple[FineCounts, FineCounts]]
"""Distances of related and unrelated words, by layer and kind of distance."""


def l2(x: Float[Tensor, "*pair dim"], y: Float[Tensor, "*pair dim"]) -> Float[Tensor, "*pair"]:
    """Return ‖x - y‖."""
    return (x - y).square().sum(dim=-1).sqrt()


def cosine(x: Float[Tensor, "*pair dim"], y: Float[Tensor, "*pair dim"]) -> Float[Tensor, "*pair"]:
    """Return 1 - cos(x, y), from 0 to 2; exactly 0 for equal vectors."""
    x, y = (torch.nn.functional.normalize(side, dim=-1) for side in (x, y))
    return (x - y).square().sum(dim=-1) / 2


DISTANCES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"l2": l2, "cosine": cosine}


@dataclass(frozen=True, kw_only=True)
class WordDistance(Diagnostic):
    """Distances between related and unrelated words: histograms, means, and AUC of the separation."""

    name: ClassVar[str] = "word-distance"
    subject: ClassVar[str] = "words"
    version: ClassVar[int] = 2

    layers: tuple[Whole, ...] = (-1,)
    """Layers whose states are compared; -1 is the last, 0 the embeddings."""

    distances: tuple[str, ...] = ("l2", "cosine")
    """Kinds of distance: l2, cosine."""

    words: str = "average"
    """State of a word: the average of its subwords, or the first or last one."""

    unrelated: Positive = 1
    """Unrelated pairs for each related one."""

    bins: Positive = 60
    """Bins of the histograms."""

    longest: Positive = 64
    """Maximum sentence length in words, as in the released code; longer translations are skipped."""

    seed: Whole = 0
    """Seed of the draw of unrelated pairs."""

    dimensions: tuple[Positive, ...] | None = None
    """Numbers of dimensions of which the share in the squared L2 distances is reported: those where they are
    largest (10 and 100 in the paper). Default: none."""

    def __post_init__(self) -> None:
        """Refuse unknown names and numbers below 1."""
        check_named(f"{self.name}: words", "way to make a word of its subwords", WORDS, self.words)
        check_named(f"{self.name}: distances", "distance", DISTANCES, *self.distances)
        for name in ("unrelated", "bins", "longest"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{self.name}: {name} is {getattr(self, name)}, but 1 or more is needed.")

    def measure(self, setting: MeasureSetting) -> list[Row]:
        """Return, for each pair of the first language with another, means and AUC, bins, then shares."""
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
                rows += squares.rows((subject.id, first, other), self.dimensions or ())
        return rows

    def counts(
        self,
        loaded: LoadedEncoder,
        bitext: Iterable[Translation],
        pair: str,
        *,
        precision: str = "auto",
        on_progress: OnProgress = no_progress,
        squares: "SquaredDifferences | None" = None,
    ) -> Counts:
        """Return the distances of related and of unrelated words of linked bitext.

        ``pair`` names the two languages (en-fr); ``squares`` collects the differences by dimension. DataError
        where fewer than two translations have links.
        """
        with located(self.name):
            layers = layers_once(loaded[0], self.layers)
        counts = {(layer, kind): (FineCounts(), FineCounts()) for layer in layers for kind in self.distances}
        random = np.random.Generator(np.random.PCG64(derive(self.seed, self.name, pair)))
        translations = [item for item in bitext if item.links and self._fits(item)]
        blocks = drawn_blocks(len(translations), random)
        for number, block in enumerate(blocks, start=1):
            chosen = [translations[index] for index in block]
            x, y, sentence = self._linked(loaded, pair, chosen, layers, precision)
            related, others = drawn_unrelated(sentence, self.unrelated, random)
            for index, layer in enumerate(layers):
                if squares:
                    squares.add(layer, x[index] - y[index], x[index, related] - y[index, others])
                for kind in self.distances:
                    near, far = counts[layer, kind]
                    count(near, DISTANCES[kind](x[index], y[index]), pair)
                    count(far, DISTANCES[kind](x[index, related], y[index, others]), pair)
            on_progress(Progress("distances", number, len(blocks), pair))
        if any(not group.number for groups in counts.values() for group in groups):
            raise DataError(
                f"{self.name}: {len(translations)} translations {pair} of at most {self.longest} words have "
                f"links; expected two or more. Align more of them, or let longest be larger."
            )
        return counts

    def _linked(
        self,
        loaded: LoadedEncoder,
        pair: str,
        block: list[Translation],
        layers: tuple[int, ...],
        precision: str,
    ) -> tuple[Float[Tensor, "layer link dim"], Float[Tensor, "layer link dim"], Places]:
        """Return the states of all linked words of a block, and each link's sentence."""
        states = partial(word_states, *loaded, layers=layers, words=self.words, precision=precision)
        languages = pair.split("-")
        with active_language(loaded[0], languages[0]):
            first = states([pair_words(translation)[0] for translation in block])
        with active_language(loaded[0], languages[1]):
            second = states([pair_words(translation)[1] for translation in block])
        links_of = [
            [(i, j) for i, j in translation.links or () if i < x.shape[1] and j < y.shape[1]]
            for translation, x, y in zip(block, first, second, strict=True)
        ]
        x = torch.cat([x[:, [i for i, _ in links]] for x, links in zip(first, links_of, strict=True)], dim=1)
        y = torch.cat([y[:, [j for _, j in links]] for y, links in zip(second, links_of, strict=True)], dim=1)
        return x, y, np.repeat(np.arange(len(block)), [len(links) for links in links_of])

    def _fits(self, pair: Translation) -> bool:
        return max(map(len, pair_words(pair))) <= self.longest


class SquaredDifferences:
    """Squared differences of states by dimension, summed over pairs of related and of unrelated words."""

    def __init__(self) -> None:
        self._sums: dict[int, tuple[Tensor, Tensor]] = {}

    def add(
        self, layer: int, related: Float[Tensor, "pair dim"], unrelated: Float[Tensor, "pair dim"]
    ) -> None:
        """Add the differences of pairs in a layer."""
        near, far = (side.double().square().sum(dim=0).cpu() for side in (related, unrelated))
        before_near, before_far = self._sums.get(layer, (0, 0))
        self._sums[layer] = (before_near + near, before_far + far)

    def rows(self, ids: tuple[str, str, str], dimensions: Iterable[int]) -> Iterator[DimensionShare]:
        """Yield a row for each layer and number of dimensions."""
        columns = dict(zip(("model", "first", "second"), ids, strict=True))
        for layer, (near, far) in self._sums.items():
            for number in dimensions:
                yield DimensionShare(
                    **columns,
                    layer=layer,
                    dimensions=number,
                    width=len(near),
                    related_share=share_of_largest(near, number),
                    unrelated_share=share_of_largest(far, number),
                )


def share_of_largest(squares: Float[Tensor, " dim"], number: int) -> float:
    """Return the share of the largest numbers in the sum of all; their even share if all are 0."""
    total = float(squares.sum())
    return float(squares.topk(number).values.sum()) / total if total else number / len(squares)


def drawn_blocks(count: int, random: np.random.Generator) -> list[Places]:
    """Split the numbers below ``count`` into random blocks of nearly equal size."""
    order = random.permutation(count)
    return [
        block for block in np.array_split(order, max(1, -(-count // TRANSLATIONS_PER_BLOCK))) if len(block)
    ]


def drawn_unrelated(sentence: Places, times: int, random: np.random.Generator) -> tuple[Places, Places]:
    """Draw for each link ``times`` links of other sentences; return both sides.

    ``sentence`` is the number of each link's sentence, in rising order. Nothing is drawn within one sentence.
    """
    links = np.tile(np.arange(len(sentence)), times)
    begin, end = (np.searchsorted(sentence, sentence[links], side=side) for side in ("left", "right"))
    others = len(sentence) - (end - begin)
    links, begin, end, others = (part[others > 0] for part in (links, begin, end, others))
    drawn = random.integers(0, others)
    return links, np.where(drawn < begin, drawn, drawn + end - begin)


def count(group: FineCounts, distances: Float[Tensor, " pair"], pair: str) -> None:
    """Count distances; ModelError where the encoder's states are not finite."""
    if not bool(distances.isfinite().all()):
        raise ModelError(
            f"word-distance: states of {pair} are not finite. Check that the encoder was trained to an end, "
            f"or measure it in float32."
        )
    group.add(distances.cpu().numpy())


def distance_rows(
    ids: tuple[str, str, str], counts: Counts, bins: int
) -> Iterator[WordDistanceRow | DistanceBin]:
    """Yield for each layer and distance a row of means, AUC and numbers of pairs, then a row for each bin.

    ``ids`` are those of the subject, the first language and the second.
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
            yield DistanceBin(
                **columns,
                layer=layer,
                distance=kind,
                low=low,
                high=high,
                related=related,
                unrelated=unrelated,
            )
