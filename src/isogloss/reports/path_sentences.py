"""Sentences whose predictions change along the paths that open a page."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice, zip_longest

import pandas as pd

from isogloss.core.languages import language_name
from isogloss.data.result_files import PathSentence, path_sentence
from isogloss.reports.measurements import Measurements

MOST_SENTENCES = 3
"""Sentences on a page; the pairs of languages take turns."""


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """Neighbouring values of α at which the predictions for a sentence are the same."""

    first: int
    """The index of its first α on the axis of the figure."""
    last: int
    alphas: str
    """Its range of α in words."""
    between: bool
    """Whether it has a point between the two models."""
    predicted: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class ShownSentence:
    """A sentence as a table: units and gold labels, then a row for each stretch of the path."""

    title: str
    units: Sequence[str]
    gold: Sequence[str]
    stretches: Sequence[Stretch]


def shown_sentences(
    m: Measurements, pairs: Sequence[pd.DataFrame], alphas: Sequence[float]
) -> list[ShownSentence]:
    """Return sentences in the target language of each pair, as the models of its first seed predict them."""
    of_pairs = [_of_pair(m, pair, alphas) for pair in pairs]
    turns = (sentence for turn in zip_longest(*of_pairs) for sentence in turn if sentence)
    return list(islice(turns, MOST_SENTENCES))


def _of_pair(m: Measurements, pair: pd.DataFrame, alphas: Sequence[float]) -> Iterator[ShownSentence]:
    for first in pair[pair["role"] == "target"].head(1).to_dict("records"):
        title = f"{language_name(first['language'])}, seed {first['seed']}"
        for answer in m.answers(first["run"]).get(first["language"], {}).values():
            if sentence := path_sentence(answer):
                yield ShownSentence(
                    title=title,
                    units=sentence.units,
                    gold=sentence.gold,
                    stretches=_stretches(sentence, alphas),
                )


def _stretches(sentence: PathSentence, alphas: Sequence[float]) -> list[Stretch]:
    """Part an axis where the predictions change; an α that was not recorded has those of the nearest."""
    at = {
        index: min(sentence.predicted, key=lambda point: abs(point[0] - alpha))[1]
        for index, alpha in enumerate(alphas)
    }
    groups = [(labels, [*group]) for labels, group in groupby(at, key=at.__getitem__)]
    return [
        Stretch(
            first=indices[0],
            last=indices[-1],
            alphas=" to ".join(dict.fromkeys(f"{alphas[index]:g}" for index in (indices[0], indices[-1]))),
            between=alphas[indices[0]] <= 1 and alphas[indices[-1]] >= 0,
            predicted=labels,
        )
        for labels, indices in groups
    ]
