"""An encoder on your own sentences: CKA, retrieval, distances between words, word alignment.

``first`` and ``second`` are sentences and their translations, in the same order: texts, which are split into
words as everywhere in isogloss, or lists of words. The model is a Hugging Face model of a family that
``isogloss list encoders`` names, with or without a head. It runs on the device where it is, as a copy
in evaluation mode that shares its weights: the model stays as it is, and other threads may use it. In
bfloat16 the copy has its matrices in bfloat16 as well, half of their memory. Give a thread of yours that
calls the tokenizer at the same time a copy of it: a tokenizer keeps the padding and truncation of a call.
"""

import warnings
from collections.abc import Iterable, Sequence

import pandas as pd

from isogloss.aligners.encoder_similarity import EncoderSimilarity, Matching
from isogloss.aligners.fast_align import FastAlign
from isogloss.aligners.setting import AlignSetting
from isogloss.core.errors import ConfigError, DataError
from isogloss.core.progress import OnProgress
from isogloss.core.tag_schemes import are_bio
from isogloss.data.examples import Translation
from isogloss.data.formats.word_links import Symmetrization, pair_words
from isogloss.data.projection.words import projected_tags, tokenize
from isogloss.diagnostics.cka import Cka
from isogloss.diagnostics.retrieval import Retrieval
from isogloss.diagnostics.word_distance import WordDistance
from isogloss.encoders.family import Model, Tokenizer
from isogloss.encoders.shared_weights import evaluation_copy
from isogloss.functional.beginning import require_encoder, showing_progress
from isogloss.metrics.ranks import separation
from isogloss.training.precision import resolved_precision
from isogloss.training.states import BitextSentences, Pooling, pooling_warning

Sentence = str | Sequence[str]
"""A text, or its words."""

Links = Sequence[tuple[int, int]]
"""0-based pairs of a word of a sentence and a word of its translation."""


def cka(
    model: Model,
    tokenizer: Tokenizer,
    first: Sequence[Sentence],
    second: Sequence[Sentence],
    *,
    languages: tuple[str, str] = ("first", "second"),
    layers: Sequence[int] = (),
    limit: int = 128,
    debiased: bool = False,
    precision: str = "float32",
    on_progress: OnProgress | None = None,
) -> pd.Series:
    """Return the linear CKA of sentences' states and their translations' states, by layer, from 0 to 1.

    Kornblith et al. (2019), Eq. 3, on the mean state of each sentence's subwords. Layer 0 is the embeddings;
    all ``layers`` if none are named. With fewer sentences than dimensions CKA is close to 1 whatever the
    states: ``debiased`` takes the unbiased estimators of Song et al. (2012), which expect 0 for unrelated
    states. ``limit`` is the maximum length of a sentence in subwords. ``languages`` are required by encoders
    with language modules; ``precision`` is float32, bfloat16, or auto (the faster one on this machine, as in
    runs), and ``attrs["precision"]`` of the result the one that was used.

    DataError for fewer than four sentences, ConfigError for a layer that the encoder lacks.

    >>> import isogloss
    >>> model, tokenizer = isogloss.load_encoder("shipped")
    >>> bitext = isogloss.load_corpus("bitext", "qaa-qab", "test", examples=100)
    >>> ansa, bora = [pair.first for pair in bitext], [pair.second for pair in bitext]
    >>> isogloss.cka(model, tokenizer, ansa, bora).index.tolist()
    [0, 1, 2, 3, 4]
    """
    require_encoder(model, "cka")
    bitext = translations(first, second)
    with showing_progress(on_progress) as progress:
        rows = [
            *Cka(layers=tuple(layers), limit=limit).rows(
                (evaluation_copy(model), tokenizer),
                BitextSentences(lambda _: bitext),
                languages,
                precision=precision,
                on_progress=progress,
            )
        ]
    name = "debiased" if debiased else "cka"
    values = {row.layer: getattr(row, name) for row in rows}
    series = pd.Series(values, name=name, dtype=float).rename_axis("layer")
    series.attrs["precision"] = resolved_precision(precision, next(model.parameters()).device)
    return series


def retrieval(
    model: Model,
    tokenizer: Tokenizer,
    first: Sequence[Sentence],
    second: Sequence[Sentence],
    *,
    languages: tuple[str, str] = ("first", "second"),
    layers: Sequence[int] = (),
    limit: int = 128,
    centred: bool = False,
    csls: int = 0,
    pooling: Pooling | None = None,
    precision: str = "float32",
    on_progress: OnProgress | None = None,
) -> pd.DataFrame:
    """Return how often the nearest sentence of the other language is the translation, by layer.

    Columns: ``forward`` (from the first language to the second), ``backward``, and ``chance``, from 0 to 1.
    Nearest by the cosine of mean subword states (Artetxe & Schwenk 2019), or with ``csls`` neighbours by CSLS
    (Conneau et al. 2018, Eq. 3); after subtracting each language's mean if ``centred``. All ``layers`` if
    none are named. The other arguments are those of ``cka``.

    An encoder of sentence-transformers has a pooling of its own, and perhaps layers after it: ``pooling``
    "model" measures the vectors that its folder makes, of the last layer, cut at the folder's length if
    that is less than ``limit``. Without it, they are means of states all the same, with a warning.

    >>> isogloss.retrieval(model, tokenizer, ansa, bora)                     # doctest: +SKIP
    """
    require_encoder(model, "retrieval")
    bitext = translations(first, second)
    last = model.config.num_hidden_layers
    named = tuple(layers) or ((last,) if pooling else tuple(range(last + 1)))
    if pooling is None and (warning := pooling_warning(model, "retrieval")):
        warnings.warn(warning, stacklevel=2)
    measure = Retrieval(layers=named, limit=limit, centred=centred, csls=csls, pooling=pooling)
    with showing_progress(on_progress) as progress:
        rows = [
            *measure.rows(
                (evaluation_copy(model), tokenizer),
                BitextSentences(lambda _: bitext),
                languages,
                precision=precision,
                on_progress=progress,
            )
        ]
    frame = pd.DataFrame(
        {
            "forward": {row.layer: row.accuracy_forward for row in rows},  # CSLS, where asked for, is last.
            "backward": {row.layer: row.accuracy_backward for row in rows},
            "chance": {row.layer: row.chance for row in rows},
        }
    ).rename_axis("layer")
    frame.attrs["precision"] = resolved_precision(precision, next(model.parameters()).device)
    return frame


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
    named = tuple(layers) or tuple(range(model.config.num_hidden_layers + 1))
    measure = WordDistance(layers=named, distances=(distance,), words=words, seed=seed)
    with showing_progress(on_progress) as progress:
        linked = align(first, second, on_progress=progress) if links is None else links
        counts = measure.counts(
            (evaluation_copy(model), tokenizer),
            translations(first, second, linked),
            "-".join(languages),
            precision=precision,
            on_progress=progress,
        )
    rows = {
        layer: {
            "related": related.mean,
            "unrelated": unrelated.mean,
            "auc": separation(related, unrelated).auc,
            "related_pairs": related.number,
            "unrelated_pairs": unrelated.number,
        }
        for (layer, _), (related, unrelated) in counts.items()
    }
    frame = pd.DataFrame.from_dict(rows, orient="index").rename_axis("layer")
    frame.attrs["precision"] = resolved_precision(precision, next(model.parameters()).device)
    return frame


def align(
    first: Sequence[Sentence],
    second: Sequence[Sentence],
    model: Model | None = None,
    tokenizer: Tokenizer | None = None,
    *,
    languages: tuple[str, str] = ("", ""),
    layer: int | None = None,
    matching: Matching = "argmax",
    symmetrization: Symmetrization = "intersection",
    precision: str = "float32",
    on_progress: OnProgress | None = None,
) -> list[list[tuple[int, int]]]:
    """Return the links between the words of sentences and of their translations: 0-based pairs, sorted.

    With a model, by the similarity of its states (SimAlign, Jalili Sabet et al. 2020): ``matching`` is
    argmax, itermax or match, in a ``layer`` (two thirds of the depth if left out). Without one, by fast_align
    (Dyer et al. 2013), which learns from these sentences alone: a few thousand are better;
    ``symmetrization`` joins its two directions.

    >>> import isogloss
    >>> isogloss.align(["das haus", "das buch", "ein buch"], ["the house", "the book", "a book"])
    [[(0, 0), (1, 1)], [(0, 0), (1, 1)], [(0, 0), (1, 1)]]
    """
    if (model is None) != (tokenizer is None):
        raise ConfigError("align: a model comes with its tokenizer. Give both, or neither for fast_align.")
    with showing_progress(on_progress) as progress:
        setting = AlignSetting(
            pairs=translations(first, second), languages=languages, precision=precision, on_progress=progress
        )
        if model is None or tokenizer is None:
            aligned = FastAlign(symmetrization=symmetrization).align(setting)
        else:
            require_encoder(model, "align")
            by_states = EncoderSimilarity(matching=matching, layer=layer)
            aligned = by_states.align_with(evaluation_copy(model), tokenizer, setting)
    return [sorted(pair.links) for pair in aligned]


def project_labels(
    examples: Iterable[tuple[Sequence[str], Sequence[str]]],
    translated: Sequence[Sentence],
    links: Iterable[Links] | None = None,
) -> list[tuple[tuple[str, ...], tuple[str, ...]] | None]:
    """Return the translations' words with the tags of the words that they translate (annotation projection).

    Yarowsky et al. (2001). ``examples`` are pairs of words and their tags; ``links`` are found by ``align``
    if left out. BIO tags mark entities, each from its first to its last linked word; a sentence of which an
    entity is not located is None. Of other tags a word has the one on which all words linked to it agree,
    and else none ("").

    >>> import isogloss
    >>> tagged = [(["Anna", "sleeps"], ["B-PER", "O"])]
    >>> isogloss.project_labels(tagged, ["dort Anna"], [[(0, 1), (1, 0)]])
    [(('dort', 'Anna'), ('O', 'B-PER'))]
    """
    sentences = [(tuple(words), tuple(tags)) for words, tags in examples]
    originals = [words for words, _ in sentences]
    linked = align(originals, translated) if links is None else links
    bio = are_bio(tag for _, tags in sentences for tag in tags)
    projected = []
    for pair, (_, tags) in zip(translations(originals, translated, linked), sentences, strict=True):
        words = pair_words(pair)[1]
        of_words = projected_tags(tags, len(words), pair.links or (), bio=bio)
        projected.append(None if of_words is None else (words, of_words))
    return projected


def translations(
    first: Sequence[Sentence], second: Sequence[Sentence], links: Iterable[Links] | None = None
) -> list[Translation]:
    """Return sentences and their translations as bitext.

    DataError where their numbers differ, or links are beyond the words.
    """
    of_pairs = None if links is None else [tuple(sorted(map(tuple, of_pair))) for of_pair in links]
    counts = [len(first), len(second), *([] if of_pairs is None else [len(of_pairs)])]
    if len(set(counts)) > 1:
        raise DataError(
            f"{counts[0]} sentences, {counts[1]} translations"
            f"{'' if of_pairs is None else f', links of {counts[2]}'}; expected equal numbers."
        )
    bitext = [
        Translation(
            id=str(number),
            first=_text(sentence),
            second=_text(translation),
            links=None if of_pairs is None else of_pairs[number],  # type: ignore[arg-type]
            words=_words(sentence, translation),
        )
        for number, (sentence, translation) in enumerate(zip(first, second, strict=True))
    ]
    for pair in bitext:
        sizes = [len(words) for words in pair_words(pair)] if pair.links else [0, 0]
        for link in pair.links or ():
            if not all(0 <= word < size for word, size in zip(link, sizes, strict=True)):
                raise DataError(
                    f"pair {pair.id}: a link {link}; expected words 0 to {sizes[0] - 1} and 0 to "
                    f"{sizes[1] - 1}. Count words from 0, as align does."
                )
    return bitext


def _text(sentence: Sentence) -> str:
    return sentence if isinstance(sentence, str) else " ".join(sentence)


def _words(*sentences: Sentence) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return the words of both sides where either has them; else they are split when they are needed."""
    if all(isinstance(sentence, str) for sentence in sentences):
        return None
    sides = [tokenize(side) if isinstance(side, str) else tuple(side) for side in sentences]
    return sides[0], sides[1]
