"""Choosing a model for a language without labels: the choice, its predictions and its regret.

The rule and its predictions are those of ``metrics.model_choice``. Here they are held against the truth: each
language with labels is left out in turn, and what the choice loses against the best candidate stands next to
what is lost by the best source score, by a candidate drawn at random, and by each signal alone.
"""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from isogloss.metrics.estimates import mean_std
from isogloss.metrics.model_choice import (
    MIN_LABELLED_LANGUAGES,
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
    chosen: int
    """Of these, in how many it did not say "don't know" …"""
    right: int
    """… and in how many of those the choice was better than a candidate drawn at random."""
    predicted: int
    """Of all, how many had a predicted score …"""
    covered: int
    """… and in how many of those the 95 % interval held the score."""


def reliability(candidates: Candidates) -> Reliability:
    """Compare every decision about a language with the labels of that language."""
    decisions = leave_one_out(candidates.ranked, candidates.estimated, candidates.scores)
    means = {column: float(np.nanmean(candidates.scores[:, column])) for column in decisions}
    scores = {
        column: float(candidates.scores[decision.choice, column]) for column, decision in decisions.items()
    }
    decided = [column for column, decision in decisions.items() if decision.known]
    predicted = {
        column: decision.score for column, decision in decisions.items() if not math.isnan(decision.score.low)
    }
    return Reliability(
        languages=len(decisions),
        chosen=len(decided),
        right=sum(scores[column] > means[column] for column in decided),
        predicted=len(predicted),
        covered=sum(
            interval.low <= scores[column] <= interval.high for column, interval in predicted.items()
        ),
    )


def choice_data(candidates: Candidates) -> pd.DataFrame:
    """Return a row for each language: the choice, its predicted score and gain, and the truth where known."""
    ranked, labelled = candidates.ranked, labelled_languages(candidates.ranked, candidates.scores)
    rows = []
    for column, code in enumerate(candidates.languages):
        measured = ~np.isnan(ranked[:, column])
        if measured.sum() < 2:
            continue
        decision = candidates.decision(column)
        score = float(candidates.scores[decision.choice, column])
        lost = (
            regret(candidates.scores, column, decision.choice, measured) if column in labelled else math.nan
        )
        rows.append(
            {
                **candidates.about,
                **{
                    "language": code,
                    "choice": candidates.names[decision.choice],
                    "model": candidates.models[decision.choice],
                },
                **{"candidates": int(measured.sum()), "verdict": "choose" if decision.known else DO_NOT_KNOW},
                "reason": _reason(decision),
                **_numbers("estimate", _estimate(candidates, decision.choice, column)),
                **_numbers("predicted", decision.score),
                **_numbers("gain", decision.gain),
                **{"score": score, "regret": lost},
            }
        )
    return pd.DataFrame(rows)


def _reason(decision: Decision) -> str:
    if math.isnan(decision.gain.low):
        return f"fewer than {MIN_LABELLED_LANGUAGES} other languages have labels"
    return "" if decision.known else "the gain over one at random may be 0"


def _estimate(candidates: Candidates, choice: int, column: int) -> Prediction:
    """Return a candidate's estimate by the signals on the scale of scores: mean, least and most."""
    values = [
        float(candidates.signals[name][choice, column]) for name in ESTIMATES if name in candidates.signals
    ]
    numbers = [value for value in values if not math.isnan(value)]
    return Prediction(sum(numbers) / len(numbers), min(numbers), max(numbers)) if numbers else Prediction()


def candidate_data(candidates: Candidates, code: str) -> pd.DataFrame:
    """Return the candidates for a language, the rule's first: its value, every signal, the score if known."""
    column, ranked = candidates.languages.index(code), candidates.ranked
    rows = pd.DataFrame(
        {
            "candidate": candidates.names,
            "model": candidates.models,
            RULE: ranked[:, column],
            **{
                name: values[:, column] * (-1 if name in FALLING else 1)
                for name, values in candidates.signals.items()
            },
            "score": candidates.scores[:, column],
        }
    )
    return rows[rows[RULE].notna()].sort_values(RULE, ascending=False, kind="stable", ignore_index=True)


def _numbers(name: str, prediction: Prediction) -> dict[str, float]:
    return {name: prediction.value, f"{name}.low": prediction.low, f"{name}.high": prediction.high}


def regret_data(candidates: Candidates) -> pd.DataFrame:
    """Return a row for each way to choose: its regret, a mean over languages with an interval."""
    rows = []
    for by, values in candidates.regrets().items():
        over = mean_std(values)
        numbers = {"regret": over.mean, "low": over.low, "high": over.high, "worst": max(values)}
        best = sum(value == 0 for value in values)
        rows.append({**candidates.about, "by": by, "languages": over.n, "best": best, **numbers})
    first = [RULE, SOURCE, RANDOM]
    rows.sort(key=lambda row: (first.index(row["by"]) if row["by"] in first else len(first), row["by"]))
    return pd.DataFrame(rows)


def choice_tables(m: Measurements) -> list[Table]:
    """Return, for each test set, the table of choices."""
    tables = []
    for candidates in all_candidates(m):
        data = choice_data(candidates)
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
        tables.append(
            text_table(
                _words(candidates, "choice", "the choice without labels", _choice_caption(candidates, data)),
                3,
                texts,
                data,
            )
        )
    return tables


def regret_tables(m: Measurements) -> list[Table]:
    """Return, for each test set with labels in some languages, the regret of every way to choose."""
    tables = []
    for candidates in all_candidates(m):
        data = regret_data(candidates)
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
            tables.append(text_table(_words(candidates, "choice-regret", "regret", REGRET), 1, texts, data))
    return tables


REGRET = (
    "Points of the score that are lost against the best candidate of each language, mean over languages with "
    "labels [95 % interval over languages]. The best is found by the test labels themselves, so some regret "
    "is chance. Single signals follow for comparison (where candidates are equal by one, their mean is "
    "lost); the rule is the mean of signals, fixed beforehand."
)


def _words(candidates: Candidates, kind: str, what: str, caption: str) -> dict[str, str]:
    return {
        "name": slug(kind, *candidates.about.values()),
        "title": f"{test_set_name(candidates.about)}, source {candidates.about['source']}: {what}",
        "caption": caption,
    }


def _choice_caption(candidates: Candidates, data: pd.DataFrame) -> str:
    reliable = reliability(candidates)
    signals = ", ".join(candidates.signals)
    parts = [
        f"Percent. The rule: the highest mean of standardised signals ({signals}).",
        "Each language is decided without its labels; scores and gains are predicted from the languages that "
        "have some [95 % interval over languages].",
    ]
    parts.append(
        f"The estimate is the choice's own: the mean of {', '.join(ESTIMATES)} [least and most]; without "
        f"labels in other languages its error is unknown."
    )
    if reliable.languages:
        parts.append(
            f"Of {reliable.languages} languages with labels it chose in {reliable.chosen}, where "
            f"{reliable.right} choices were better than one at random."
        )
    if reliable.predicted:
        parts.append(f"{reliable.covered} of {reliable.predicted} predicted intervals contained the score.")
    if data["predicted"].isna().all():
        parts.append("Fewer than three other languages have labels, too few to predict scores.")
    return " ".join(parts)


def _percents(data: pd.DataFrame, *columns: str) -> list[str]:
    return [percent(*numbers) for numbers in data[[*columns]].itertuples(index=False)]
