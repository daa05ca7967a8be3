"""Distances between words and their translations in an encoder, on your own sentences.

``first`` and ``second`` are sentences and their translations, in the same order: texts, which are split into
words as everywhere in isogloss, or lists of words.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import cast, overload

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor

from isogloss.core.arguments import checks_arguments
from isogloss.core.errors import ConfigError, DataError, add_location
from isogloss.core.identity import derive
from isogloss.core.progress import OnProgress
from isogloss.core.run_parts import Precision, Whole
from isogloss.data.formats.word_links import pair_words
from isogloss.features.word_distance.separation import separation
from isogloss.features.word_distance.word_pairs import (
    Counts,
    Distance,
    LinkedSentence,
    LinkedStates,
    WordPairs,
    choose_linked,
    count_linked,
    count_word_distances,
)
from isogloss.functional.beginning import showing_progress
from isogloss.functional.bitext import Links, link_words, translations
from isogloss.functional.given_models import TextModel, TextTokenizer
from isogloss.functional.preparing import prepare
from isogloss.functional.states import Sentence, States, read_layers, refuse_settings
from isogloss.training.states import Words, layers_once

LONGEST = 64
"""Words of the longest sentences that are measured, as in the released code."""


@overload
def word_distances(
    model: States,
    tokenizer: States,
    /,
    *,
    links: Iterable[Links],
    distance: Distance = "l2",
    seed: Whole = 0,
    on_progress: OnProgress | None = None,
) -> pd.DataFrame: ...
@overload
def word_distances(
    model: TextModel,
    tokenizer: TextTokenizer,
    first: Sequence[Sentence],
    second: Sequence[Sentence],
    links: Iterable[Links] | None = None,
    *,
    languages: tuple[str, str] = ("first", "second"),
    layers: Sequence[Whole] = (),
    distance: Distance = "l2",
    words: Words = "average",
    precision: Precision = "float32",
    seed: Whole = 0,
    on_progress: OnProgress | None = None,
) -> pd.DataFrame: ...
@checks_arguments
def word_distances(
    model: TextModel | States,
    tokenizer: TextTokenizer | States,
    first: Sequence[Sentence] | None = None,
    second: Sequence[Sentence] | None = None,
    links: Iterable[Links] | None = None,
    *,
    languages: tuple[str, str] = ("first", "second"),
    layers: Sequence[Whole] = (),
    distance: Distance = "l2",
    words: Words = "average",
    precision: Precision = "float32",
    seed: Whole = 0,
    on_progress: OnProgress | None = None,
) -> pd.DataFrame:
    """Return the distances of words from their translations and from unrelated words, by layer.

    "The Impact of Cross-Lingual Adjustment …", Section 5.4. Columns: ``related`` and ``unrelated``, the mean
    distances of linked words and of words of different sentences; ``auc`` = P(related < unrelated); and the
    numbers of pairs. ``links`` are found by ``align`` by default. ``distance`` is l2 or cosine; ``words`` is
    the state of a word: the average of its subwords, or the first or last. ``seed`` draws the unrelated
    words. Sentences of more than 64 words are skipped. The other arguments are as for ``cka``.

    Instead of a model and a tokenizer, give states of words on two sides, with their ``links``, as
    ``isogloss.states(…, words="average")`` returns them.

    DataError for fewer than two sentences with links, ConfigError for a layer that the encoder lacks.

    Device: as the model, and the CPU for states. Cost: one pass over both sides, and as many
    unrelated pairs of words as linked ones; memory does not grow with the text.

    >>> isogloss.word_distances(model, tokenizer, ansa, bora)                # doctest: +SKIP
    >>> isogloss.word_distances(ansa_states, bora_states, links=links)       # doctest: +SKIP
    """
    pair = "-".join(languages)
    options = WordPairs(
        layers=(),
        distances=(distance,),
        words=words,
        unrelated=1,
        precision=precision,
        random=np.random.Generator(np.random.PCG64(derive(seed, "word-distance", pair))),
    )
    if first is None and second is None:
        refuse_settings(
            "word_distances", languages=languages, layers=layers, words=words, precision=precision
        )
        return _compare_states(model, tokenizer, links, options, on_progress)
    if first is None or second is None:
        raise ConfigError("word_distances: give sentences and their translations, in the same order.")
    encoder = prepare(
        cast(TextModel, model), cast(TextTokenizer, tokenizer), "word_distances", precision, words=True
    )
    layer_count = encoder.layers + 1
    with add_location("word_distances"):
        layer_indices = layers_once(encoder.encoder, tuple(layers) or range(layer_count))
    options = options._replace(layers=layer_indices, precision=encoder.precision)
    with showing_progress(on_progress) as progress:
        word_links = link_words(first, second, on_progress=progress) if links is None else links
        bitext = translations(first, second, word_links)
        sentences = [LinkedSentence(*pair_words(item), item.links) for item in bitext if item.links]
        short_sentences = [item for item in sentences if max(len(item.first), len(item.second)) <= LONGEST]
        counts = count_word_distances(
            encoder.loaded, short_sentences, languages, options, on_progress=progress
        )
    numbers = {layer: layer % layer_count for layer in layer_indices}
    return _make_frame(
        counts, numbers, encoder.precision, f"{len(short_sentences)} sentences of up to {LONGEST} words"
    )


def _compare_states(
    first_side: object,
    second_side: object,
    links: Iterable[Links] | None,
    options: WordPairs,
    on_progress: OnProgress | None,
) -> pd.DataFrame:
    sides = [_split_by_sentence(first_side, "first"), _split_by_sentence(second_side, "second")]
    if links is None:
        raise ConfigError("word_distances: states of words, and no links between them. Give links.")
    pair_links = [[tuple(link) for link in sentence_links] for sentence_links in links]
    sizes = [len(sides[0][1]), len(sides[1][1]), len(pair_links)]
    if len(set(sizes)) > 1:
        raise DataError(
            f"word_distances: states of {sizes[0]} and {sizes[1]} sentences, links of {sizes[2]}; expected "
            f"equal numbers."
        )
    (x, first_states), (y, second_states) = sides
    layers = read_layers(x, y, "word_distances")
    having = [sentence_index for sentence_index, sentence_links in enumerate(pair_links) if sentence_links]

    def compute(block: npt.NDArray[np.int64]) -> LinkedStates:
        indices = [having[index] for index in block]
        return choose_linked(
            [first_states[sentence_index] for sentence_index in indices],
            [second_states[sentence_index] for sentence_index in indices],
            [pair_links[sentence_index] for sentence_index in indices],
        )

    options = options._replace(layers=layers)
    with showing_progress(on_progress) as progress:
        counts = count_linked(compute, len(having), "first-second", options, on_progress=progress)
    return _make_frame(counts, {layer: layer for layer in layers}, x.precision, f"{len(having)} sentences")


def _split_by_sentence(side: object, name: str) -> tuple[States, tuple[Float[Tensor, "layer _ dim"], ...]]:
    """Return states of words, grouped by sentence. Raises DataError for other values."""
    if not isinstance(side, States) or side.sentences is None:
        shown_side = f"{side!r:.60}" if isinstance(side, States) else f"a {type(side).__name__}"
        raise DataError(
            f"word_distances: {name}: found {shown_side}; expected states of words. Give what "
            f'isogloss.states(…, words="average") returns, or a model, its tokenizer and sentences.'
        )
    counts = [0] * (max(side.sentences, default=-1) + 1)
    for index in side.sentences:
        counts[index] += 1
    return side, torch.split(side.vectors, counts, dim=1)


def _make_frame(counts: Counts, numbers: Mapping[int, int], precision: str, sentences: str) -> pd.DataFrame:
    """Return distances by layer. Raises DataError if nothing was measured."""
    if any(not group.number for groups in counts.values() for group in groups):
        raise DataError(
            f"word_distances: {sentences} have links; expected two or more. Give more "
            f"links, or more sentences."
        )
    rows = {
        numbers[layer]: {
            "related": related_distances.mean,
            "unrelated": unrelated_distances.mean,
            "auc": separation(related_distances, unrelated_distances).auc,
            "related_pairs": related_distances.number,
            "unrelated_pairs": unrelated_distances.number,
        }
        for (layer, _), (related_distances, unrelated_distances) in counts.items()
    }
    frame = pd.DataFrame.from_dict(rows, orient="index").rename_axis("layer")
    frame.attrs["precision"] = precision
    return frame
