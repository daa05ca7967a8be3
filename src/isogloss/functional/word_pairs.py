"""Distances between words and their translations in an encoder, on your own sentences.

``first`` and ``second`` are sentences and their translations, in the same order: texts, which are split into
words as everywhere in isogloss, or lists of words.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from isogloss.core.errors import DataError, check_named, located
from isogloss.core.identity import derive
from isogloss.core.progress import OnProgress
from isogloss.data.formats.word_links import pair_words
from isogloss.encoders.family import Model, Tokenizer
from isogloss.encoders.shared_weights import evaluation_copy
from isogloss.functional.alignment import Links, align, translations
from isogloss.functional.beginning import check_precision, require_encoder, showing_progress
from isogloss.functional.states import Sentence
from isogloss.metrics.ranks import separation
from isogloss.similarity.word_pairs import DISTANCES, LinkedSentence, WordPairs, count_word_distances
from isogloss.training.states import WORDS, layers_once

LONGEST = 64
"""Words of the longest sentences that are measured, as in the released code."""


def word_distances(
    model: Model,
    tokenizer: Tokenizer,
    first: Sequence[Sentence],
    second: Sequence[Sentence],
    links: Iterable[Links] | None = None,
    *,
    languages: tuple[str, str] = ("first", "second"),
    layers: Sequence[int] = (),
    distance: str = "l2",
    words: str = "average",
    precision: str = "float32",
    seed: int = 0,
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
    require_encoder(model, "word_distances")
    check_named("word_distances: words", "way to make a word of its subwords", WORDS, words)
    check_named("word_distances: distance", "distance", DISTANCES, distance)
    with located("word_distances"):
        chosen = layers_once(model, tuple(layers) or range(model.config.num_hidden_layers + 1))
    pair = "-".join(languages)
    made = check_precision("word_distances", model, precision)
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
        loaded = evaluation_copy(model), tokenizer
        counts = count_word_distances(loaded, short, languages, options, on_progress=progress)
    if any(not group.number for groups in counts.values() for group in groups):
        raise DataError(
            f"word_distances: {len(short)} sentences of at most {LONGEST} words have links; expected two or "
            f"more. Give more links, or more sentences."
        )
    count = model.config.num_hidden_layers + 1
    rows = {
        layer % count: {
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
