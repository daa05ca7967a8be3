"""Distances between words and their translations in an encoder, on your own sentences.

``first`` and ``second`` are sentences and their translations, in the same order: texts, which are split into
words as everywhere in isogloss, or lists of words.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from isogloss.core.arguments import checks_arguments
from isogloss.core.errors import DataError, located
from isogloss.core.identity import derive
from isogloss.core.progress import OnProgress
from isogloss.core.run_parts import Whole
from isogloss.data.formats.word_links import pair_words
from isogloss.encoders.family import Model, Tokenizer
from isogloss.functional.alignment import Links, align, translations
from isogloss.functional.beginning import showing_progress
from isogloss.functional.preparing import prepare
from isogloss.functional.states import Sentence
from isogloss.metrics.ranks import separation
from isogloss.similarity.word_pairs import Distance, LinkedSentence, WordPairs, count_word_distances
from isogloss.training.precision import Precision
from isogloss.training.states import Words, layers_once

LONGEST = 64
"""Words of the longest sentences that are measured, as in the released code."""


@checks_arguments
def word_distances(
    model: Model,
    tokenizer: Tokenizer,
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
) -> pd.DataFrame:
    """Return how far apart words and their translations are, and other words, by layer.

    "The Impact of Cross-Lingual Adjustment …", Section 5.4. Columns: ``related`` and ``unrelated``, the mean
    distances of linked words and of words of different sentences; ``auc`` = P(related < unrelated); and the
    numbers of pairs. ``links`` are found by ``align`` if left out. ``distance`` is l2 or cosine; ``words`` is
    the state of a word: the average of its subwords, or the first or last. ``seed`` draws the unrelated
    words. The other arguments are those of ``cka``.

    >>> isogloss.word_distances(model, tokenizer, ansa, bora)                # doctest: +SKIP
    """
    prepared = prepare(model, tokenizer, "word_distances", precision, words=True)
    made = prepared.precision
    layer_count = prepared.layers + 1
    with located("word_distances"):
        chosen = layers_once(prepared.encoder, tuple(layers) or range(layer_count))
    pair = "-".join(languages)
    options = WordPairs(
        layers=chosen,
        distances=(distance,),
        words=words,
        unrelated=1,
        precision=made,
        random=np.random.Generator(np.random.PCG64(derive(seed, "word-distance", pair))),
    )
    with showing_progress(on_progress) as progress:
        linked = align(first, second, on_progress=progress) if links is None else links
        bitext = translations(first, second, linked)
        sentences = [LinkedSentence(*pair_words(item), item.links) for item in bitext if item.links]
        short = [item for item in sentences if max(len(item.first), len(item.second)) <= LONGEST]
        counts = count_word_distances(prepared.loaded, short, languages, options, on_progress=progress)
    if any(not group.number for groups in counts.values() for group in groups):
        raise DataError(
            f"word_distances: {len(short)} sentences of at most {LONGEST} words have links; expected two or "
            f"more. Give more links, or more sentences."
        )
    rows = {
        layer % layer_count: {
            "related": related.mean,
            "unrelated": unrelated.mean,
            "auc": separation(related, unrelated).auc,
            "related_pairs": related.number,
            "unrelated_pairs": unrelated.number,
        }
        for (layer, _), (related, unrelated) in counts.items()
    }
    frame = pd.DataFrame.from_dict(rows, orient="index").rename_axis("layer")
    frame.attrs["precision"] = made
    return frame
