"""Sentences whose predictions change along the paths that open a page."""

from collections.abc import Iterator, Sequence
from itertools import groupby, islice, zip_longest

import pandas as pd

from isogloss.core.languages import language_name
from isogloss.features.landscapes.point_records import PathSentence, path_sentence
from isogloss.features.landscapes.report import DIGITS
from isogloss.reports.measurements import Measurements
from isogloss.reports.opening_figure import ComparedSentence, ComparedStretch, ShownSentence, Stretch

MOST_SENTENCES = 3
"""Maximum number of sentences on a page. The pairs of languages take turns."""


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
