"""Choose a source language by the nearest states of an encoder (NN-Rank, Ebrahimi et al., EMNLP 2025).

The states of unlabelled text of the target are compared with labelled text of all candidates:

    share(c) = 1/|T| Σ_{t in T} |{x in N_k(t) : x is of candidate c}| / k

N_k(t) are the k items with the highest cosine to t, among the items of all candidates. Items are words, each
represented by its first subword, in tasks with labels of words, and texts in other tasks. In the paper the
states are of the last layer, and k is 5.

Every candidate contributes as many items as the smallest has, because a candidate with more items would have
more neighbours by chance. Items that are equally near share the places for which they tie.
"""

from collections.abc import Mapping, Sequence
from math import isnan, nan
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from isogloss.core.arguments import checks_arguments
from isogloss.core.errors import ConfigError, DataError
from isogloss.core.progress import OnProgress
from isogloss.core.run_parts import Positive, Precision, Whole
from isogloss.data.examples import Example, ParsedSentence, TaggedSentence
from isogloss.data.projection.example_texts import texts_of
from isogloss.functional.given_models import TextModel, TextTokenizer
from isogloss.functional.states import States, StatesLike, choose_layer, read_states, states
from isogloss.similarity.nearest import SIMILARITY_TOLERANCE, directions

NEIGHBOURS = 5
"""Neighbours of an item in the paper."""

ITEMS_PER_BLOCK = 1024
"""Items of the target that are compared together."""

STANDARD_ERRORS = 1.96
"""Half of a 95 % interval, in standard errors."""


WITH_WORDS = (TaggedSentence, ParsedSentence)
"""Examples with labels of words."""


class NearestSource(NamedTuple):
    """A candidate for the source of a target, with its share of the target's nearest neighbours."""

    language: str
    share: float
    """Share of the neighbours, 0 to 1. The shares of all candidates sum to 1."""
    behind: float
    """Share of the first candidate less this one. 0 for the first."""
    error: float
    """Standard error of ``behind`` over the target's sentences. nan for the first, and for one sentence."""


@checks_arguments
def rank_sources_by_states(
    target: StatesLike,
    candidates: Mapping[str, StatesLike],
    *,
    neighbours: Positive = NEIGHBOURS,
    layer: Whole = -1,
    centred: bool = False,
) -> list[NearestSource]:
    """Rank candidates for the source language of a target by their states, best first.

    NN-Rank (Ebrahimi et al. 2025): the share of each candidate among the nearest ``neighbours`` of the
    target's words or texts, by cosine. ``target`` are states of unlabelled text, ``candidates`` states of
    labelled text by language, all of one encoder. For tasks with labels of words, these are
    ``states(model, tokenizer, sentences, words="first")``. ``layer`` chooses among the layers of the states
    by position. ``centred`` subtracts each language's mean. Candidates with equal shares keep their order.
    ``explain_doubt`` returns why the first is no choice. Use ``rank_sources`` without an encoder.

    DataError for arrays of a different shape or without items, ConfigError without candidates or for a layer
    that the states lack.

    Device: the CPU. Cost: the similarity of each item of the target with each item of the candidates.

    >>> import numpy as np
    >>> import isogloss
    >>> near, far = np.eye(4)[[0, 1]], np.eye(4)[[2, 3]]
    >>> ranking = isogloss.rank_sources_by_states(near, {"fr": far, "es": near}, neighbours=1)
    >>> [(candidate.language, candidate.share) for candidate in ranking]
    [('es', 1.0), ('fr', 0.0)]
    """
    if not candidates:
        raise ConfigError("rank_sources_by_states: no candidates. Give states by language, as in {'en': x}.")
    target_states = read_states(target, "rank_sources_by_states: target")
    queries = _read_vectors(target_states, "target", layer, centred=centred)
    vectors = {
        language: _read_vectors(
            read_states(states, f"rank_sources_by_states: {language}"), language, layer, centred=centred
        )
        for language, states in candidates.items()
    }
    for language, rows in vectors.items():
        if rows.shape[1] != queries.shape[1]:
            raise DataError(
                f"rank_sources_by_states: {language} has states of {rows.shape[1]} dimensions, and target of "
                f"{queries.shape[1]}. Compute all with one encoder."
            )
    size = min(len(rows) for rows in vectors.values())
    if size * len(vectors) < neighbours:
        raise DataError(
            f"rank_sources_by_states: {len(vectors)} candidates with {size} items each, and {neighbours} "
            f"neighbours. Give more items, or lower neighbours."
        )
    pool = torch.stack([rows[:size] for rows in vectors.values()])
    shares = torch.cat(
        [share_neighbours(block, pool, neighbours) for block in torch.split(queries, ITEMS_PER_BLOCK)]
    )
    return _rank_candidates(list(vectors), shares, target_states.sentences)


def states_of_examples(
    model: TextModel,
    tokenizer: TextTokenizer,
    examples: Sequence[Example],
    language: str,
    *,
    layers: Sequence[int] = (-1,),
    limit: int = 128,
    precision: Precision = "float32",
    on_progress: OnProgress | None = None,
) -> States:
    """Return the states that NN-Rank compares: of the words of examples, or of whole texts.

    A word is represented by its first subword. Other examples are represented by the mean of their subwords,
    with all texts of an example joined.
    """
    sentences = [example.words for example in examples if isinstance(example, WITH_WORDS)]
    has_words = len(sentences) == len(examples)
    return states(
        model,
        tokenizer,
        sentences if has_words else [" ".join(texts_of(example)) for example in examples],
        layers=layers,
        words="first" if has_words else None,
        language=language,
        limit=limit,
        precision=precision,
        on_progress=on_progress,
    )


def _read_vectors(states: States, name: str, layer: int, *, centred: bool) -> Float[Tensor, "item dim"]:
    vectors = choose_layer(states.vectors, layer, f"rank_sources_by_states: {name}")
    if not len(vectors):
        raise DataError(f"rank_sources_by_states: {name} has no items. Give states of one item or more.")
    return directions(vectors, centred=centred)


def share_neighbours(
    queries: Float[Tensor, "item dim"], pool: Float[Tensor, "candidate row dim"], neighbours: int
) -> Float[Tensor, "item candidate"]:
    """Return the share of each candidate among the nearest neighbours of each item.

    Rows have length 1. Rows that tie for the last places share these places.
    """
    cosines = queries.double() @ pool.flatten(0, 1).double().T
    smallest = cosines.topk(neighbours, dim=1).values[:, -1:]
    is_nearer = cosines > smallest + SIMILARITY_TOLERANCE
    is_tied = (cosines - smallest).abs() <= SIMILARITY_TOLERANCE
    places = neighbours - is_nearer.sum(dim=1, keepdim=True)
    votes = is_nearer.double() + is_tied * (places / is_tied.sum(dim=1, keepdim=True).double())
    return votes.reshape(len(queries), *pool.shape[:2]).sum(dim=2) / neighbours


def _rank_candidates(
    languages: Sequence[str], shares: Float[Tensor, "item candidate"], sentences: Sequence[int] | None
) -> list[NearestSource]:
    means = shares.mean(dim=0)
    order = sorted(range(len(languages)), key=lambda index: -round(float(means[index]), 9))
    first = order[0]
    items = torch.arange(len(shares)) if sentences is None else torch.tensor(sentences)
    return [
        NearestSource(
            languages[index],
            float(means[index]),
            float(means[first] - means[index]),
            nan if index == first else _standard_error(shares[:, first] - shares[:, index], items),
        )
        for index in order
    ]


def _standard_error(values: Float[Tensor, " item"], sentences: Int[Tensor, " item"]) -> float:
    """Return the standard error of a mean whose items are drawn by sentences. nan for one sentence."""
    numbers, sentence_of = torch.unique(sentences, return_inverse=True)
    count = len(numbers)
    if count < 2:
        return nan
    sums = values.new_zeros(count).index_add(0, sentence_of, values - values.mean())
    return float((sums.square().sum() * count / (count - 1)).sqrt() / len(values))


def explain_doubt(ranking: Sequence[NearestSource]) -> str:
    """Return why the first of ranked candidates cannot be chosen. Empty if it can.

    The first candidate must have more neighbours than each other one beyond the 95 % interval over the
    target's sentences.

    >>> explain_doubt([NearestSource("es", 0.4, 0.0, nan), NearestSource("fr", 0.38, 0.02, 0.03)])
    'es and fr have equally many neighbours within 6 points'
    """
    first, *others = ranking
    if not others:
        return "only one candidate is given"
    if isnan(others[0].error):
        return "one sentence of the target does not show a spread"
    equal = [other for other in others if other.behind <= STANDARD_ERRORS * other.error]
    if not equal:
        return ""
    languages = " and ".join([first.language, *(other.language for other in equal)])
    points = 100 * STANDARD_ERRORS * max(other.error for other in equal)
    return f"{languages} have equally many neighbours within {points:.0f} points"
