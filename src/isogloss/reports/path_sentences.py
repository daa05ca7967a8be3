"""Sentences whose predictions change along the paths that open a page."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice, zip_longest

import pandas as pd

from isogloss.core.languages import language_name
from isogloss.data.result_files import PathSentence, path_sentence
from isogloss.reports.landscapes import DIGITS
from isogloss.reports.measurements import Measurements

MOST_SENTENCES = 3
"""Maximum number of sentences on a page. The pairs of languages take turns."""


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """Neighbouring values of α at which the predictions for a sentence are the same."""

    first: float
    last: float
    predicted: Sequence[str]
    """Empty where the sentence was not measured."""

    @property
    def alphas(self) -> str:
        """The range of α in words."""
        return " to ".join(dict.fromkeys(f"{alpha:g}" for alpha in (self.first, self.last)))

    @property
    def between(self) -> bool:
        """Whether it has a point between the two models."""
        return self.first <= 1 and self.last >= 0


@dataclass(frozen=True, kw_only=True)
class ShownSentence:
    """A sentence as a table: units and gold labels, then a row for each stretch of the path."""

    title: str
    units: Sequence[str]
    gold: Sequence[str]
    stretches: Sequence[Stretch]


def shown_sentences(
    measurements: Measurements, pairs: Sequence[pd.DataFrame], alphas: Sequence[float]
) -> list[ShownSentence]:
    """Return sentences in the target language of each pair, as the models of its first seed predict them."""
    pair_sentences = [_of_pair(measurements, pair, alphas) for pair in pairs]
    turns = (sentence for turn in zip_longest(*pair_sentences) for sentence in turn if sentence)
    return list(islice(turns, MOST_SENTENCES))


def sentences_of_seeds(
    measurements: Measurements, pairs: Sequence[pd.DataFrame], alphas: Sequence[float]
) -> list[ShownSentence]:
    """Return the first sentence of each further seed in the target language of each pair."""
    sentences = []
    for pair in pairs:
        targets = pair[pair["role"] == "target"]
        for seed in targets["seed"].unique()[1:]:
            sentences += list(islice(_of_pair(measurements, targets[targets["seed"] == seed], alphas), 1))
    return sentences


def _of_pair(
    measurements: Measurements, pair: pd.DataFrame, alphas: Sequence[float]
) -> Iterator[ShownSentence]:
    for target_row in pair[pair["role"] == "target"].head(1).to_dict("records"):
        title = f"{language_name(target_row['language'])}, seed {target_row['seed']}"
        for answer in measurements.answers(target_row["run"]).get(target_row["language"], {}).values():
            if sentence := path_sentence(answer):
                yield ShownSentence(
                    title=title,
                    units=sentence.units,
                    gold=sentence.gold,
                    stretches=_stretches(sentence, alphas),
                )


def _stretches(sentence: PathSentence, alphas: Sequence[float]) -> list[Stretch]:
    """Divide an axis at the changes of predictions. Values of α that were not recorded have no stretch."""
    label_rows = {round(alpha, DIGITS): labels for alpha, labels in sentence.predicted}
    groups = [
        (labels, list(group))
        for labels, group in groupby(alphas, key=lambda alpha: label_rows.get(alpha, ()))
    ]
    return [Stretch(first=group[0], last=group[-1], predicted=labels) for labels, group in groups]
