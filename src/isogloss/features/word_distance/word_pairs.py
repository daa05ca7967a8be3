"""Word distance: are words that translate each other closer together than words that do not?

Paper: "… Cross-Lingual Adjustment …", Section 5.4, Figs 1 and 2: L2 distances between the states of related
(aligned) and of unrelated words of two languages. As in the paper, unrelated words come from sentences that
are not translations of each other. Both words come from related pairs: the two groups have the same words and
differ only in their pairing.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from torch import Tensor

from isogloss.core.errors import ModelError
from isogloss.core.progress import OnProgress, Progress, no_progress
from isogloss.encoders.added.active_language import active_language
from isogloss.encoders.family import Model, Tokenizer
from isogloss.features.word_distance.separation import FineCounts
from isogloss.training.states import word_states

TRANSLATIONS_PER_BLOCK = 256
"""Translations whose words are in memory together. Unrelated words are drawn from the same block."""

Places = npt.NDArray[np.int64]
Counts = Mapping[tuple[int, str], tuple[FineCounts, FineCounts]]
"""Distances of related and unrelated words, by layer and kind of distance."""


LinkedStates = tuple[Float[Tensor, "layer link dim"], Float[Tensor, "layer link dim"], Places]
"""States of linked words on two sides, and the number of each link's sentence."""


class LinkedSentence(NamedTuple):
    """The words of a sentence and of its translation, and which of them are linked."""

    first: Sequence[str]
    second: Sequence[str]
    links: Sequence[tuple[int, int]]


class WordPairs(NamedTuple):
    """Comparison of words of linked sentences."""

    layers: tuple[int, ...]
    distances: tuple[str, ...]
    words: str
    """The state of a word: average, first or last of its subwords."""
    unrelated: int
    """Unrelated pairs for each related one."""
    precision: str
    random: np.random.Generator
    """Draws the unrelated pairs."""


def l2(x: Float[Tensor, "*pair dim"], y: Float[Tensor, "*pair dim"]) -> Float[Tensor, "*pair"]:
    """Return ‖x - y‖."""
    return (x - y).square().sum(dim=-1).sqrt()


def cosine(x: Float[Tensor, "*pair dim"], y: Float[Tensor, "*pair dim"]) -> Float[Tensor, "*pair"]:
    """Return 1 - cos(x, y), from 0 to 2. It is exactly 0 for equal vectors."""
    x, y = (torch.nn.functional.normalize(side, dim=-1) for side in (x, y))
    return (x - y).square().sum(dim=-1) / 2


Distance = Literal["l2", "cosine"]
DISTANCES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"l2": l2, "cosine": cosine}


class SquaredDifferences:
    """Squared differences of states by dimension, summed over pairs of related and of unrelated words."""

    def __init__(self) -> None:
        self.sums: dict[int, tuple[Tensor, Tensor]] = {}
        """The sums for related and for unrelated words, by layer."""

    def add(
        self, layer: int, related: Float[Tensor, "pair dim"], unrelated: Float[Tensor, "pair dim"]
    ) -> None:
        """Add the differences of pairs in a layer."""
        related_sum = related.double().square().sum(dim=0).cpu()
        unrelated_sum = unrelated.double().square().sum(dim=0).cpu()
        previous_related, previous_unrelated = self.sums.get(layer, (0, 0))
        self.sums[layer] = (previous_related + related_sum, previous_unrelated + unrelated_sum)


def compute_share_of_largest(squares: Float[Tensor, " dim"], count: int) -> float:
    """Return the share of the largest numbers in the sum of all, or their even share if all are 0."""
    total = float(squares.sum())
    return float(squares.topk(count).values.sum()) / total if total else count / len(squares)


def count_word_distances(
    encoder: tuple[Model, Tokenizer],
    sentences: Sequence[LinkedSentence],
    languages: tuple[str, str],
    options: WordPairs,
    *,
    squares: SquaredDifferences | None = None,
    on_progress: OnProgress = no_progress,
) -> Counts:
    """Count the distances of related and of unrelated words. ``squares`` sums differences by dimension.

    Nothing is counted where fewer than two sentences have links. ModelError where states are not finite.
    """

    def compute(block: Places) -> LinkedStates:
        return _compute_linked_states(encoder, languages, [sentences[index] for index in block], options)

    pair = "-".join(languages)
    return count_linked(compute, len(sentences), pair, options, squares=squares, on_progress=on_progress)


def count_linked(
    compute: Callable[[Places], LinkedStates],
    number_of_sentences: int,
    pair: str,
    options: WordPairs,
    *,
    squares: SquaredDifferences | None = None,
    on_progress: OnProgress = no_progress,
) -> Counts:
    """Count distances of words whose states ``compute`` returns for a block of sentences, by number."""
    counts = {
        (layer, kind): (FineCounts(), FineCounts()) for layer in options.layers for kind in options.distances
    }
    blocks = drawn_blocks(number_of_sentences, options.random)
    for block_count, block in enumerate(blocks, start=1):
        x, y, sentence = compute(block)
        links, unrelated = drawn_unrelated(sentence, options.unrelated, options.random)
        for index, layer in enumerate(options.layers):
            if squares:
                squares.add(layer, x[index] - y[index], x[index, links] - y[index, unrelated])
            for kind in options.distances:
                related_counts, unrelated_counts = counts[layer, kind]
                count(related_counts, DISTANCES[kind](x[index], y[index]), pair)
                count(unrelated_counts, DISTANCES[kind](x[index, links], y[index, unrelated]), pair)
        on_progress(Progress("distances", block_count, len(blocks), pair))
    return counts


def _compute_linked_states(
    encoder: tuple[Model, Tokenizer],
    languages: tuple[str, str],
    block: Sequence[LinkedSentence],
    options: WordPairs,
) -> LinkedStates:
    """Return the states of all linked words of a block, and each link's sentence."""
    states = partial(
        word_states, *encoder, layers=options.layers, words=options.words, precision=options.precision
    )
    with active_language(encoder[0], languages[0]):
        first_states = states([sentence.first for sentence in block])
    with active_language(encoder[0], languages[1]):
        second_states = states([sentence.second for sentence in block])
    return choose_linked(first_states, second_states, [sentence.links for sentence in block])


def choose_linked(
    first_states: Sequence[Float[Tensor, "layer _ dim"]],
    second_states: Sequence[Float[Tensor, "layer _ dim"]],
    links: Sequence[Sequence[tuple[int, int]]],
) -> LinkedStates:
    """Return the states of linked words, from the states of all words that are not cut off."""
    links_of = [
        [(i, j) for i, j in sentence_links if i < x.shape[1] and j < y.shape[1]]
        for sentence_links, x, y in zip(links, first_states, second_states, strict=True)
    ]
    x = torch.cat(
        [x[:, [i for i, _ in pairs]] for x, pairs in zip(first_states, links_of, strict=True)], dim=1
    )
    y = torch.cat(
        [y[:, [j for _, j in pairs]] for y, pairs in zip(second_states, links_of, strict=True)], dim=1
    )
    return x, y, np.repeat(np.arange(len(links_of)), [len(pairs) for pairs in links_of])


def drawn_blocks(count: int, random: np.random.Generator) -> list[Places]:
    """Split the numbers below ``count`` into random blocks of nearly equal size."""
    order = random.permutation(count)
    return [
        block for block in np.array_split(order, max(1, -(-count // TRANSLATIONS_PER_BLOCK))) if len(block)
    ]


def drawn_unrelated(sentence: Places, times: int, random: np.random.Generator) -> tuple[Places, Places]:
    """Draw for each link ``times`` links of other sentences, and return both sides.

    ``sentence`` is the number of each link's sentence, in rising order. Nothing is drawn within one sentence.
    """
    links = np.tile(np.arange(len(sentence)), times)
    begin, end = (np.searchsorted(sentence, sentence[links], side=side) for side in ("left", "right"))
    other_count = len(sentence) - (end - begin)
    links, begin, end, other_count = (part[other_count > 0] for part in (links, begin, end, other_count))
    draws = random.integers(0, other_count)
    return links, np.where(draws < begin, draws, draws + end - begin)


def count(group: FineCounts, distances: Float[Tensor, " pair"], pair: str) -> None:
    """Count distances. Raises ModelError if the encoder's states are not finite."""
    if not bool(distances.isfinite().all()):
        raise ModelError(
            f"word-distance: states of {pair} are not finite. Check that the encoder was trained to an end, "
            f"or measure it in float32."
        )
    group.add(distances.cpu().numpy())
