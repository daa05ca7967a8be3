"""Choosing a model for a language without labels: the choice, what is predicted of it, and its regret.

The rule and its predictions are those of ``metrics.model_choice``. Here they are held against the truth: each
language with labels is left out in turn, and what the choice loses against the best candidate stands beside
what is lost by the best source score, by a candidate drawn at random, and by each signal alone.
"""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from isogloss.metrics.estimates import mean_std
from isogloss.metrics.model_choice import (
    LEAST,
    Decision,
    Prediction,
    labelled_languages,
    leave_one_out,
    regret,
)
from isogloss.reports.candidates import ESTIMATES, FALLING, RANDOM, RULE, SOURCE, Candidates, all_candidates
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import language, percent, slug, test_set_name
from isogloss.reports.tables import Table, text_table

DO_NOT_KNOW = "don't know"


@dataclass(frozen=True, kw_only=True)
class Reliability:
    """How the rule did in the languages with labels, each left out in turn."""

    languages: int
    known: int
    """Of these, in how many it did not say "don't know" …"""
    right: int
    """… and in how many of those the choice was better than a candidate drawn at random."""
    predicted: int
    """Of all, how many had a predicted score …"""
    covered: int
    """… and in how many of those the 95 % interval held the score."""


def reliability(one: Candidates) -> Reliability:
    """Hold every decision about a language with labels against them."""
    found = leave_one_out(one.ranked, one.estimated, one.scores)
    means = {column: float(np.nanmean(one.scores[:, column])) for column in found}
    scores = {column: float(one.scores[own.choice, column]) for column, own in found.items()}
    known = [column for column, own in found.items() if own.known]
    predicted = {column: own.score for column, own in found.items() if not math.isnan(own.score.low)}
    return Reliability(
        languages=len(found),
        known=len(known),
        right=sum(scores[column] > means[column] for column in known),
        predicted=len(predicted),
        covered=sum(own.low <= scores[column] <= own.high for column, own in predicted.items()),
    )


def choice_data(one: Candidates) -> pd.DataFrame:
    """Return a row for each language: the choice, its predicted score and gain, and the truth where known."""
    ranked, labelled = one.ranked, labelled_languages(one.ranked, one.scores)
    found = []
    for column, code in enumerate(one.languages):
        there = ~np.isnan(ranked[:, column])
        if there.sum() < 2:
            continue
        own = one.decision(column)
        score = float(one.scores[own.choice, column])
        lost = regret(one.scores, column, own.choice, there) if column in labelled else math.nan
        found.append(
            {
                **one.about,
                **{"language": code, "choice": one.names[own.choice], "model": one.models[own.choice]},
                **{"candidates": int(there.sum()), "verdict": "choose" if own.known else DO_NOT_KNOW},
                "reason": _reason(own),
                **_numbers("estimate", _estimate(one, own.choice, column)),
                **_numbers("predicted", own.score),
                **_numbers("gain", own.gain),
                **{"score": score, "regret": lost},
            }
        )
    return pd.DataFrame(found)


def _reason(own: Decision) -> str:
    """Return why the answer is "don't know"; empty for a choice."""
    if math.isnan(own.gain.low):
        return f"fewer than {LEAST} other languages have labels"
    return "" if own.known else "the gain over one at random may be 0"


def _estimate(one: Candidates, choice: int, column: int) -> Prediction:
    """Return what signals on the scale of scores say of a candidate: their mean, the least and the most."""
    values = [float(one.signals[name][choice, column]) for name in ESTIMATES if name in one.signals]
    there = [value for value in values if not math.isnan(value)]
    return Prediction(sum(there) / len(there), min(there), max(there)) if there else Prediction()


def candidate_data(one: Candidates, code: str) -> pd.DataFrame:
    """Return the candidates for a language, the rule's first: its value, every signal, the score if known."""
    column, ranked = one.languages.index(code), one.ranked
    rows = pd.DataFrame(
        {
            "candidate": one.names,
            "model": one.models,
            RULE: ranked[:, column],
            **{
                name: values[:, column] * (-1 if name in FALLING else 1)
                for name, values in one.signals.items()
            },
            "score": one.scores[:, column],
        }
    )
    return rows[rows[RULE].notna()].sort_values(RULE, ascending=False, kind="stable", ignore_index=True)


def _numbers(name: str, one: Prediction) -> dict[str, float]:
    return {name: one.value, f"{name}.low": one.low, f"{name}.high": one.high}


def regret_data(one: Candidates) -> pd.DataFrame:
    """Return a row for each way to choose: its regret, a mean over languages with an interval."""
    found = []
    for by, values in one.regrets().items():
        over = mean_std(values)
        numbers = {"regret": over.mean, "low": over.low, "high": over.high, "worst": max(values)}
        best = sum(value == 0 for value in values)
        found.append({**one.about, "by": by, "languages": over.n, "best": best, **numbers})
    first = [RULE, SOURCE, RANDOM]
    found.sort(key=lambda row: (first.index(row["by"]) if row["by"] in first else len(first), row["by"]))
    return pd.DataFrame(found)


def choice_tables(m: Measurements) -> list[Table]:
    """Return, for each test set, the table of choices."""
    found = []
    for one in all_candidates(m):
        data = choice_data(one)
        texts = pd.DataFrame(
            {
                "language": data["language"].map(language),
                "choice": data["choice"],
                "run": data["model"],
                "estimate without labels": _percents(data, "estimate", "estimate.low", "estimate.high"),
                "predicted score": _percents(data, "predicted", "predicted.low", "predicted.high"),
                "gain over one at random": _percents(data, "gain", "gain.low", "gain.high"),
                "verdict": data["verdict"],
                "score": data["score"].map(percent),
                "regret": data["regret"].map(percent),
            }
        )
        found.append(
            text_table(_words(one, "choice", "the choice without labels", _told(one, data)), 3, texts, data)
        )
    return found


def regret_tables(m: Measurements) -> list[Table]:
    """Return, for each test set with labels in some languages, the regret of every way to choose."""
    found = []
    for one in all_candidates(m):
        data = regret_data(one)
        if len(data):
            texts = pd.DataFrame(
                {
                    "chosen by": data["by"],
                    "mean regret": _percents(data, "regret", "low", "high"),
                    "worst": data["worst"].map(percent),
                    "best chosen": [
                        f"{a} of {b}" for a, b in zip(data["best"], data["languages"], strict=True)
                    ],
                }
            )
            found.append(text_table(_words(one, "choice-regret", "regret", REGRET), 1, texts, data))
    return found


REGRET = (
    "Points of the score that are lost against the best candidate of each language, mean over languages with "
    "labels [95 % interval over languages]. The best is found by the test labels themselves, so some regret "
    "is chance. Single signals stand below for comparison (where candidates are equal by one, their mean is "
    "lost); the rule is the mean of signals, fixed beforehand."
)


def _words(one: Candidates, kind: str, what: str, caption: str) -> dict[str, str]:
    return {
        "name": slug(kind, *one.about.values()),
        "title": f"{test_set_name(one.about)}, source {one.about['source']}: {what}",
        "caption": caption,
    }


def _told(one: Candidates, data: pd.DataFrame) -> str:
    own = reliability(one)
    signals = ", ".join(one.signals)
    parts = [
        f"Percent. The rule: the highest mean of standardised signals ({signals}).",
        "Each language is decided without its labels; scores and gains are predicted from the languages that "
        "have some [95 % interval over languages].",
    ]
    parts.append(
        f"The estimate is the choice's own: the mean of {', '.join(ESTIMATES)} [least and most]; without "
        f"labels elsewhere nothing says how far it is off."
    )
    if own.languages:
        parts.append(
            f"Of {own.languages} languages with labels it chose in {own.known}, where {own.right} choices "
            f"were better than one at random."
        )
    if own.predicted:
        parts.append(f"{own.covered} of {own.predicted} predicted intervals held the score.")
    if data["predicted"].isna().all():
        parts.append("Fewer than three other languages have labels: nothing is predicted.")
    return " ".join(parts)


def _percents(data: pd.DataFrame, *columns: str) -> list[str]:
    return [percent(*own) for own in data[[*columns]].itertuples(index=False)]
