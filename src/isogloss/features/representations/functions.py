"""Measure how similar states of two languages or models are: CKA, retrieval, anisotropy, maps.

Each function takes states (``isogloss.states``, or arrays from anywhere), or a model with its tokenizer and
sentences, of which it makes them. ``first`` and ``second`` are sentences and their translations, in the same
order: texts, or lists of words. ``functional.states`` describes how a model is used.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, cast, overload

import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor

from isogloss.core.arguments import checks_arguments
from isogloss.core.errors import ConfigError, DataError, add_location
from isogloss.core.progress import OnProgress, Progress
from isogloss.core.run_parts import Count, Positive, Precision, Whole
from isogloss.encoders.family import Model, Tokenizer
from isogloss.features.representations.geometry import (
    language_variance_share,
    mean_cosine,
    principal_components,
    retrieval_accuracy,
)
from isogloss.features.representations.linear_cka import (
    MIN_UNBIASED_SENTENCES,
    StreamedCka,
    compute_linear_cka,
)
from isogloss.functional.beginning import showing_progress
from isogloss.functional.given_models import TextModel, TextTokenizer
from isogloss.functional.preparing import has_own_pooling, prepare
from isogloss.functional.states import (
    TEXTS_PER_BLOCK,
    Sentence,
    StatesLike,
    choose_layer,
    join_words,
    read_both,
    read_layers,
    read_states,
    refuse_settings,
    states,
)
from isogloss.similarity.nearest import directions
from isogloss.training.states import (
    OTHER_POOLING,
    Pooling,
    StateOptions,
    compute_language_states,
    layers_once,
)


@overload
def cka(
    model: StatesLike, tokenizer: StatesLike, /, *, debiased: bool = False, across: Literal[False] = False
) -> pd.Series: ...
@overload
def cka(
    model: StatesLike, tokenizer: StatesLike, /, *, debiased: bool = False, across: Literal[True]
) -> pd.DataFrame: ...
@overload
def cka(
    model: TextModel,
    tokenizer: TextTokenizer,
    first: Sequence[Sentence],
    second: Sequence[Sentence],
    *,
    languages: tuple[str, str] = ("first", "second"),
    layers: Sequence[Whole] = (),
    limit: Positive = 128,
    debiased: bool = False,
    precision: Precision = "float32",
    on_progress: OnProgress | None = None,
) -> pd.Series: ...
@checks_arguments
def cka(
    model: TextModel | StatesLike,
    tokenizer: TextTokenizer | StatesLike,
    first: Sequence[Sentence] | None = None,
    second: Sequence[Sentence] | None = None,
    *,
    languages: tuple[str, str] = ("first", "second"),
    layers: Sequence[Whole] = (),
    limit: Positive = 128,
    debiased: bool = False,
    across: bool = False,
    precision: Precision = "float32",
    on_progress: OnProgress | None = None,
) -> pd.Series | pd.DataFrame:
    """Return the linear CKA of sentences' states and their translations' states, by layer, from 0 to 1.

    Kornblith et al. (2019), Eq. 3, on the mean state of each sentence's subwords. Layer 0 is the embeddings;
    all ``layers`` if none are named. With fewer sentences than dimensions CKA is close to 1 whatever the
    states: ``debiased`` takes the unbiased estimators of Song et al. (2012), which expect 0 for unrelated
    states. ``limit`` is the maximum length of a sentence in subwords. ``languages`` are required by encoders
    with language modules; ``precision`` is float32, bfloat16, or auto (the faster one on this machine, as in
    runs), and ``attrs["precision"]`` of the result the one that was used.

    Instead of a model and a tokenizer, give states or arrays of the same items on two sides, from two models,
    or from one before and after training. Layers are then compared in order, or, with ``across``, each layer
    of the first with each of the second.

    DataError for fewer than four sentences, ConfigError for a layer that the encoder lacks.

    Device: as the model, and the CPU for states and arrays. Cost: one pass over both sides, 1,024
    texts at a time; memory does not grow with their number.

    >>> import isogloss
    >>> model, tokenizer = isogloss.load_encoder("shipped")
    >>> bitext = isogloss.load_corpus("bitext", "qaa-qab", "test", examples=100)
    >>> ansa, bora = [pair.first for pair in bitext], [pair.second for pair in bitext]
    >>> isogloss.cka(model, tokenizer, ansa, bora).index.tolist()
    [0, 1, 2, 3, 4]
    >>> before, after = isogloss.states(model, tokenizer, ansa), isogloss.states(model, tokenizer, ansa)
    >>> isogloss.cka(before, after).round(4).tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0]
    >>> isogloss.cka(before, after, across=True).shape
    (5, 5)
    """
    name = "debiased" if debiased else "cka"
    if first is None and second is None:
        refuse_settings("cka", languages=languages, layers=layers, limit=limit, precision=precision)
        return _compare_states(
            cast(StatesLike, model), cast(StatesLike, tokenizer), name, compares_all_layers=across
        )
    if first is None or second is None or across:
        raise ConfigError(
            "cka: a model comes with its tokenizer, sentences and their translations; across is of states. "
            "Give cka(model, tokenizer, first, second), or cka(states, states, across=True)."
        )
    _check_translations("cka", first, second)
    _check_enough(len(first))
    encoder = prepare(cast(TextModel, model), cast(TextTokenizer, tokenizer), "cka", precision)
    count = encoder.layers + 1
    with add_location("cka"):
        layer_indices = layers_once(encoder.encoder, tuple(layers) or range(count))
    options = StateOptions(layers=layer_indices, limit=limit, precision=encoder.precision)
    cka_sums = StreamedCka()
    with showing_progress(on_progress) as progress:
        for x, y in _compute_blocks(encoder.loaded, (first, second), languages, options, progress):
            cka_sums.add(x, y)
    values = cka_sums.compute_debiased() if debiased else cka_sums.compute()
    return _make_series(values, [layer % count for layer in layer_indices], name, encoder.precision)


def _compute_blocks(
    encoder: tuple[Model, Tokenizer],
    sentences: tuple[Sequence[Sentence], Sequence[Sentence]],
    languages: tuple[str, str],
    options: StateOptions,
    progress: OnProgress,
) -> Iterator[tuple[Float[Tensor, "layer item dim"], Float[Tensor, "layer item dim"]]]:
    """Yield states of both sides, so many texts at a time that memory does not grow with the text."""
    starts = range(0, len(sentences[0]), TEXTS_PER_BLOCK)
    for count, start in enumerate(starts, start=1):
        blocks = [
            [join_words(sentence) for sentence in side[start : start + TEXTS_PER_BLOCK]] for side in sentences
        ]
        yield (
            compute_language_states(encoder, blocks[0], languages[0], options),
            compute_language_states(encoder, blocks[1], languages[1], options),
        )
        progress(Progress("cka", count, len(starts), "-".join(languages)))


def _compare_states(
    first_states: StatesLike, second_states: StatesLike, name: str, *, compares_all_layers: bool
) -> pd.Series | pd.DataFrame:
    x, y = read_both(first_states, second_states, "cka")
    _check_enough(len(x))
    is_debiased = name == "debiased"
    if not compares_all_layers:
        layers = read_layers(x, y, "cka")
        return _make_series(
            compute_linear_cka(x.vectors, y.vectors, is_debiased=is_debiased), layers, name, x.precision
        )
    table = [
        [float(compute_linear_cka(row[None], column[None], is_debiased=is_debiased)) for column in y.vectors]
        for row in x.vectors
    ]
    frame = pd.DataFrame(
        table, index=pd.Index(x.layers, name="first"), columns=pd.Index(y.layers, name="second")
    )
    frame.attrs["precision"] = x.precision
    return frame


def _check_enough(items: int) -> None:
    if items < MIN_UNBIASED_SENTENCES:
        raise DataError(
            f"cka: {items} sentences; {MIN_UNBIASED_SENTENCES} or more are needed, and more than the states "
            f"have dimensions are better. Give more."
        )


def _make_series(values: Tensor, layers: Sequence[int], name: str, precision: str) -> pd.Series:
    series = pd.Series(values.tolist(), index=pd.Index(layers, name="layer"), name=name, dtype=float)
    series.attrs["precision"] = precision
    return series


@overload
def retrieval(
    model: StatesLike, tokenizer: StatesLike, /, *, centred: bool = False, csls: Count = 0
) -> pd.DataFrame: ...
@overload
def retrieval(
    model: TextModel,
    tokenizer: TextTokenizer,
    first: Sequence[Sentence],
    second: Sequence[Sentence],
    *,
    languages: tuple[str, str] = ("first", "second"),
    layers: Sequence[Whole] = (),
    limit: Positive = 128,
    centred: bool = False,
    csls: Count = 0,
    pooling: Pooling | None = None,
    precision: Precision = "float32",
    on_progress: OnProgress | None = None,
) -> pd.DataFrame: ...
@checks_arguments
def retrieval(
    model: TextModel | StatesLike,
    tokenizer: TextTokenizer | StatesLike,
    first: Sequence[Sentence] | None = None,
    second: Sequence[Sentence] | None = None,
    *,
    languages: tuple[str, str] = ("first", "second"),
    layers: Sequence[Whole] = (),
    limit: Positive = 128,
    centred: bool = False,
    csls: Count = 0,
    pooling: Pooling | None = None,
    precision: Precision = "float32",
    on_progress: OnProgress | None = None,
) -> pd.DataFrame:
    """Return the share of sentences whose nearest in the other language is the translation, by layer.

    Columns: ``forward`` (from the first language to the second), ``backward``, and ``chance``, from 0 to 1.
    Nearest by the cosine of mean subword states (Artetxe & Schwenk 2019), or with ``csls`` neighbours by CSLS
    (Conneau et al. 2018, Eq. 3); after subtracting each language's mean if ``centred``. All ``layers`` if
    none are named. The other arguments, and what can be given instead of a model, are as for ``cka``.

    An encoder of sentence-transformers has its own pooling, and perhaps layers after it: ``pooling``
    "model" measures the vectors that its folder makes, of the last layer, cut at the folder's length if
    that is less than ``limit``. Without it, they are means of states all the same, with a warning.

    ConfigError for a layer that the encoder lacks, DataError for sides of different lengths.

    Device: as the model, and the CPU for states and arrays. Cost: one pass over both sides, and the
    similarity of each sentence with each, by layer.

    >>> isogloss.retrieval(model, tokenizer, ansa, bora)                     # doctest: +SKIP
    """
    if first is None and second is None:
        refuse_settings(
            "retrieval", languages=languages, layers=layers, limit=limit, pooling=pooling, precision=precision
        )
        x, y = read_both(cast(StatesLike, model), cast(StatesLike, tokenizer), "retrieval")
    elif first is None or second is None:
        raise ConfigError("retrieval: give sentences and their translations, in the same order.")
    else:
        _check_translations("retrieval", first, second)
        encoder = cast(TextModel, model)
        if pooling is None and has_own_pooling(encoder, "retrieval"):
            warnings.warn(OTHER_POOLING.format(name="retrieval"), stacklevel=2)
        with showing_progress(on_progress) as progress:
            x, y = (
                states(
                    encoder,
                    cast(TextTokenizer, tokenizer),
                    side,
                    layers=layers,
                    language=language,
                    limit=limit,
                    pooling=pooling,
                    precision=precision,
                    on_progress=progress,
                )
                for side, language in zip((first, second), languages, strict=True)
            )
    rows = {}
    for layer, queries, keys in zip(read_layers(x, y, "retrieval"), x.vectors, y.vectors, strict=True):
        a = directions(queries, centred=centred)
        b = directions(keys, centred=centred)
        rows[layer] = {
            "forward": retrieval_accuracy(a, b, neighbours=csls),
            "backward": retrieval_accuracy(b, a, neighbours=csls),
            "chance": 1 / len(x),
        }
    frame = pd.DataFrame.from_dict(rows, orient="index").rename_axis("layer")
    frame.attrs["precision"] = x.precision
    return frame


@checks_arguments
def anisotropy(texts: StatesLike) -> pd.Series:
    """Return the mean cosine of different sentences of one language, by layer.

    Ethayarajh (2019), Section 3.3: near 1 all states point one way, and cosines between languages say little
    until each language's mean is subtracted. DataError for fewer than two sentences.

    Device: the CPU. Cost: one pass over the states.

    >>> import isogloss
    >>> model, tokenizer = isogloss.load_encoder("shipped")
    >>> texts = ["ka lomi", "sute ka", "lomi sute"]
    >>> isogloss.anisotropy(isogloss.states(model, tokenizer, texts)).index.tolist()
    [0, 1, 2, 3, 4]
    """
    text_states = read_states(texts, "anisotropy")
    if len(text_states) < 2:
        raise DataError(f"anisotropy: {len(text_states)} sentences; 2 or more are needed.")
    values = torch.tensor([mean_cosine(vectors) for vectors in text_states.vectors])
    return _make_series(values, text_states.layers, "anisotropy", text_states.precision)


@checks_arguments
def representation_map(sides: Mapping[str, StatesLike], *, layer: Whole = -1) -> pd.DataFrame:
    """Return the first two principal components of the same sentences in several languages.

    ``sides`` has the states of each language, of the same sentences in the same order. A row for each
    language and sentence, with ``x`` and ``y``; ``attrs`` has the share of the variance along each axis
    (``explained``) and the share that lies between the languages' means (``between``), over all dimensions.
    ``layer`` chooses among the layers of the states by position, the last by default.

    DataError for fewer than two languages, or different numbers of sentences.

    Device: the CPU. Cost: one decomposition of a matrix of width × width.

    >>> import isogloss
    >>> languages = {"sw": [[0.0, 1.0], [1.0, 1.0]], "fi": [[0.0, 0.0], [1.0, 0.0]]}
    >>> isogloss.representation_map(languages).attrs["between"]
    0.5
    """
    if len(sides) < 2:
        raise DataError(f"representation_map: {len(sides)} languages; 2 or more are needed.")
    vectors = [
        choose_layer(read_states(side, f"representation_map: {name}").vectors, layer, "representation_map")
        for name, side in sides.items()
    ]
    shapes = {tuple(side.shape) for side in vectors}
    if len(shapes) > 1:
        raise DataError(
            f"representation_map: states of shapes {', '.join(map(str, sorted(shapes)))}; expected the same "
            f"sentences in all languages, by one encoder."
        )
    stacked_vectors = torch.stack(vectors).double()
    flat = stacked_vectors.flatten(0, 1)
    axes, variance_shares = principal_components(flat, 2)
    projections = (flat - flat.mean(dim=0)) @ axes.T
    count = stacked_vectors.shape[1]
    frame = pd.DataFrame(
        {
            "language": [name for name in sides for _ in range(count)],
            "sentence": list(range(count)) * len(sides),
            "x": projections[:, 0],
            "y": projections[:, 1],
        }
    )
    frame.attrs |= {
        "explained": tuple(variance_shares.tolist()),
        "between": language_variance_share(stacked_vectors),
    }
    return frame


def _check_translations(
    function: str, sentences: Sequence[Sentence], sentence_translations: Sequence[Sentence]
) -> None:
    if len(sentences) != len(sentence_translations):
        raise DataError(
            f"{function}: {len(sentences)} sentences, {len(sentence_translations)} translations; expected "
            f"equal numbers."
        )
