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


@dataclass(frozen=True, kw_only=True)
class ComparedStretch:
    """Neighbouring values of α at which no seed's predictions for a sentence change."""

    first: float
    last: float
    by_seed: Sequence[Sequence[str]]
    """The predictions of each seed. Empty where the sentence was not measured."""

    @property
    def alphas(self) -> str:
        """The range of α in words."""
        return " to ".join(dict.fromkeys(f"{alpha:g}" for alpha in (self.first, self.last)))

    @property
    def between(self) -> bool:
        """Whether it has a point between the two models."""
        return self.first <= 1 and self.last >= 0

    def differs(self, unit: int) -> bool:
        """Return whether seeds predict different labels for a unit."""
        return len({labels[unit] for labels in self.by_seed if labels}) > 1


@dataclass(frozen=True, kw_only=True)
class ComparedSentence:
    """A sentence as all seeds that stored it predict it: a table for each stretch of the path."""

    title: str
    seeds: Sequence[str]
    units: Sequence[str]
    gold: Sequence[str]
    stretches: Sequence[ComparedStretch]


def shown_sentences(
    measurements: Measurements, pairs: Sequence[pd.DataFrame], alphas: Sequence[float]
) -> list[ShownSentence]:
    """Return sentences in the target language of each pair, as the models of its first seed predict them."""
    pair_sentences = [_show_pair(measurements, pair, alphas) for pair in pairs]
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
            sentences += list(islice(_show_pair(measurements, targets[targets["seed"] == seed], alphas), 1))
    return sentences


def compare_seeds(
    measurements: Measurements, pairs: Sequence[pd.DataFrame], alphas: Sequence[float]
) -> list[ComparedSentence]:
    """Return for each pair the sentence that most seeds stored, in its target language.

    Among several, the sentence on whose units seeds differ most. None for a pair whose seeds share no
    sentence.
    """
    sentences = (_compare_pair(measurements, pair[pair["role"] == "target"], alphas) for pair in pairs)
    return [sentence for sentence in sentences if sentence][:MOST_SENTENCES]


def _compare_pair(
    measurements: Measurements, targets: pd.DataFrame, alphas: Sequence[float]
) -> ComparedSentence | None:
    sentences_by_text: dict[tuple[Sequence[str], Sequence[str]], dict[str, PathSentence]] = {}
    for row in targets.drop_duplicates("seed").to_dict("records"):
        for answer in measurements.answers(row["run"]).get(row["language"], {}).values():
            if sentence := path_sentence(answer):
                sentences_by_text.setdefault((sentence.units, sentence.gold), {})[f"{row['seed']}"] = sentence
    comparisons = [
        ComparedSentence(
            title=language_name(targets["language"].iloc[0]),
            seeds=list(seed_sentences),
            units=units,
            gold=gold,
            stretches=_compared_stretches(list(seed_sentences.values()), alphas),
        )
        for (units, gold), seed_sentences in sentences_by_text.items()
        if len(seed_sentences) > 1
    ]
    return max(comparisons, key=_interest, default=None)


def _interest(sentence: ComparedSentence) -> tuple[int, int]:
    """Return the number of seeds, and of differences between them on the whole path."""
    units = range(len(sentence.units))
    return len(sentence.seeds), sum(part.differs(unit) for part in sentence.stretches for unit in units)


def _compared_stretches(sentences: Sequence[PathSentence], alphas: Sequence[float]) -> list[ComparedStretch]:
    tables = [
        {round(alpha, DIGITS): labels for alpha, labels in sentence.predicted} for sentence in sentences
    ]
    groups = [
        (labels, list(group))
        for labels, group in groupby(alphas, key=lambda alpha: [table.get(alpha, ()) for table in tables])
    ]
    return [ComparedStretch(first=group[0], last=group[-1], by_seed=labels) for labels, group in groups]


def _show_pair(
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
