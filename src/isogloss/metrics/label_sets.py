"""Scores of texts with any number of labels: micro F1, macro F1, exact match."""

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt

from isogloss.core.contributions import ByMeasure, Contributions

LabelSets = Sequence[Collection[str]]
"""The labels of each text."""


def label_set_contributions(gold: LabelSets, predicted: LabelSets, labels: Sequence[str]) -> ByMeasure:
    """Return what each text adds to micro F1, to macro F1 over ``labels``, and to exact match.

    Macro F1 is a mean of ratios, which no sum over texts is: a text adds its influence (Efron & Tibshirani
    1993, Chapter 21), so that the mean over texts is the score. A label that is neither gold nor predicted
    has F1 0.
    """
    gold_marks, predicted_marks = (_indicators(side, labels) for side in (gold, predicted))
    matches, totals = 2 * gold_marks * predicted_marks, gold_marks + predicted_marks
    scores, spread = (
        np.divide(over, under, out=np.zeros_like(over), where=under > 0)
        for over, under in (
            (matches.sum(axis=0), totals.sum(axis=0)),
            (np.ones(len(labels)), totals.mean(axis=0) if len(totals) else np.zeros(len(labels))),
        )
    )
    influence = ((matches - scores * totals) * spread + scores).mean(axis=1)
    ones = [1.0] * len(gold)
    same = [
        float(set(gold_labels) == set(guesses)) for gold_labels, guesses in zip(gold, predicted, strict=True)
    ]
    return {
        "micro_f1": Contributions(matches.sum(axis=1).tolist(), totals.sum(axis=1).tolist()),
        "macro_f1": Contributions(influence.tolist(), ones),
        "exact_match": Contributions(same, ones),
    }


def _indicators(side: LabelSets, labels: Sequence[str]) -> npt.NDArray[np.float64]:
    """Return [text label]: 1 for each label that a text has."""
    rows = [[label in present for label in labels] for present in side]
    return np.array(rows, dtype=np.float64).reshape(-1, len(labels))
