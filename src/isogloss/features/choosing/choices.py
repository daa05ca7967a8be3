"""Choose a model for a language without labels by a rule, and report the regret of the rule.

``model_choice`` defines the rule. It ranks models but does not predict their scores. The score to
expect of the choice follows from its scores in other languages with labels (``expected_score``): by
its consistency on translations where the split is parallel, else by ATC and DoC. It is "don't know" where
these languages are too few or unlike. For a language with labels, the report compares the regret of the
choice with the regret of the best source score, of a random candidate, and of each single signal.
"""

import math
from collections.abc import Sequence
from statistics import fmean

import numpy as np
import pandas as pd

from isogloss.core.languages import UNKNOWN, language_facts
from isogloss.features.choosing.candidates import RANDOM, RULE, SOURCE, Candidates, all_candidates
from isogloss.features.choosing.expected_score import CONSISTENCY, LEVEL, expected_score
from isogloss.features.choosing.model_choice import best, labelled_languages, regret, standardise_signal
from isogloss.metrics.estimates import mean_std
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import count, language, percent, slug, test_set_name
from isogloss.reports.tables import Table, text_table

DO_NOT_KNOW = "don't know"

MIN_EXAMPLES = 50
"""Examples from which a language with labels counts for the expected score."""

LEVEL_SIGNALS = ("atc", "doc")
"""Signals for the expected score."""

MIN_PAIRS = 100
"""Translations from which the consistency is used instead of ATC and DoC."""

NO_SHARES = ("parsing", "regression", "pair-regression")
"""Tasks without an expected score: its signals are shares of answers with probabilities."""

NAN = math.nan

UNKNOWN_SCORE = (NAN, NAN, NAN)
"""Value and interval where the expected score is not known."""

MIN_LANGUAGES = 6
"""Smallest number of languages for an interval of a regret. With fewer, even the sign test cannot reach 5 %.

The interval assumes that languages are independent and normally distributed."""


def choice_data(candidates: Candidates) -> pd.DataFrame:
    """Return a row for each language: the choice, the ensemble, and scores if the language has labels."""
    ranking = candidates.ranked
    labelled_columns = labelled_languages(candidates.ranked, candidates.scores)
    rows = []
    for column, language_code in enumerate(candidates.languages):
        is_measured = ~np.isnan(ranking[:, column])
        if is_measured.sum() < 2:
            continue
        choice = best(ranking, column)
        other_scores = _scores_elsewhere(candidates, choice, column)
        expected, doubts = _expect_score(candidates, choice, column)
        choice_regret = (
            regret(candidates.scores, column, choice, is_measured) if column in labelled_columns else math.nan
        )
        rows.append(
            {
                **candidates.about,
                "language": language_code,
                "choice": candidates.names[choice],
                "model": candidates.models[choice],
                "candidates": int(is_measured.sum()),
                **dict(zip(("expected", "expected_low", "expected_high"), expected, strict=True)),
                "doubts": "; ".join(doubts),
                "others": fmean(other_scores) if other_scores else math.nan,
                "other_languages": len(other_scores),
                "ensemble": candidates.ensemble(column),
                "score": float(candidates.scores[choice, column]),
                "regret": choice_regret,
            }
        )
    return pd.DataFrame(rows)


def _expect_score(
    candidates: Candidates, choice: int, column: int
) -> tuple[tuple[float, float, float], Sequence[str]]:
    """Return the score to expect of a candidate with its interval, and the doubts that make both nan.

    It follows from the candidate's scores in the other languages with labels.
    """
    source, language_code = candidates.about["source"], candidates.languages[column]
    source_score = float(candidates.signals[SOURCE][choice, column]) if SOURCE in candidates.signals else NAN
    if candidates.about["task"] in NO_SHARES or math.isnan(source_score):
        return UNKNOWN_SCORE, ["the task has no shares of right answers, or the source no score"]
    known_columns = [
        index
        for index, name_of_language in enumerate(candidates.languages)
        if index != column
        and candidates.examples[choice, index] >= MIN_EXAMPLES
        and language_facts(name_of_language).family != UNKNOWN
    ]
    signals = level_signals(candidates, choice, [column, *known_columns])
    scores = {candidates.languages[index]: float(candidates.scores[choice, index]) for index in known_columns}
    expected = expected_score(
        language_code,
        source,
        {source: source_score, **scores},
        dict(sorted(signals.items())),
        source_examples=candidates.source_examples[choice],
        pairs=int(candidates.pairs[choice, column]) if CONSISTENCY in signals else 0,
    )
    doubts = list(expected.doubts)
    if not signals:
        doubts.append("neither consistency nor ATC nor DoC is measured")
    return UNKNOWN_SCORE if doubts else (expected.value, expected.low, expected.high), doubts


def level_signals(candidates: Candidates, choice: int, columns: Sequence[int]) -> dict[str, dict[str, float]]:
    """Return the signals that a score is expected by, those that all of these languages have.

    Consistency is used alone where all have enough pairs, else ATC and DoC.
    """
    measured = {name: candidates.signals[name] for name in LEVEL_SIGNALS if name in candidates.signals}
    if (candidates.pairs[choice, columns] >= MIN_PAIRS).all():
        measured = {CONSISTENCY: candidates.consistency}
    return {
        name: {candidates.languages[column]: float(values[choice, column].clip(0, 1)) for column in columns}
        for name, values in measured.items()
        if not np.isnan(values[choice, columns]).any()
    }


def _scores_elsewhere(candidates: Candidates, choice: int, column: int) -> list[float]:
    """Return the scores of a candidate in the other languages with labels."""
    scores = (float(score) for score in np.delete(candidates.scores[choice], column))
    return [score for score in scores if not math.isnan(score)]


def list_candidates(candidates: Candidates, language_code: str) -> pd.DataFrame:
    """Return the candidates for a language, the rule's first: its value, every signal, the score if known.

    Signals are standardised over the candidates, as in the rule. Their level does not estimate the score.
    """
    column = candidates.languages.index(language_code)
    ranking = candidates.ranked
    rows = pd.DataFrame(
        {
            "candidate": candidates.names,
            "model": candidates.models,
            RULE: ranking[:, column],
            **{
                name: standardise_signal(values)[:, column].round(9)
                for name, values in candidates.signals.items()
            },
            "score": candidates.scores[:, column],
        }
    )
    return rows[rows[RULE].notna()].sort_values(RULE, ascending=False, kind="stable", ignore_index=True)


def regret_data(candidates: Candidates) -> pd.DataFrame:
    """Return a row for each way to choose: its regret, a mean over languages.

    It has an interval from ``MIN_LANGUAGES`` languages on.
    """
    rows = []
    for criterion, values in candidates.regrets().items():
        statistics = mean_std(values)
        low, high = (
            (statistics.low, statistics.high) if statistics.n >= MIN_LANGUAGES else (math.nan, math.nan)
        )
        numbers = {"regret": statistics.mean, "low": low, "high": high, "worst": max(values)}
        best_chosen = sum(value == 0 for value in values)
        rows.append(
            {**candidates.about, "by": criterion, "languages": statistics.n, "best": best_chosen, **numbers}
        )
    leading_names = [RULE, SOURCE, RANDOM]
    rows.sort(
        key=lambda row: (
            leading_names.index(row["by"]) if row["by"] in leading_names else len(leading_names),
            row["by"],
        )
    )
    return pd.DataFrame(rows)


def choice_tables(measurements: Measurements) -> list[Table]:
    """Return, for each test set, the table of choices."""
    tables = []
    for candidates in all_candidates(measurements):
        data = choice_data(candidates)
        texts = pd.DataFrame(
            {
                "language": data["language"].map(language),
                "choice": data["choice"],
                "run": data["model"],
                "expected score": [
                    DO_NOT_KNOW if math.isnan(row[0]) else percent(*row)
                    for row in data[["expected", "expected_low", "expected_high"]].itertuples(index=False)
                ],
                "its mean elsewhere": _percents(data, "others"),
                "score": data["score"].map(percent),
                "regret": data["regret"].map(percent),
            }
        )
        tables.append(
            text_table(
                _words(candidates, "choice", "the choice without labels", _choice_caption(candidates, data)),
                3,
                texts,
                data.assign(ensemble=data["ensemble"].map(" ".join)),
            )
        )
    return tables


def regret_tables(measurements: Measurements) -> list[Table]:
    """Return, for each test set with labels in some languages, the regret of every way to choose."""
    tables = []
    for candidates in all_candidates(measurements):
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
    f"labels [95 % interval over languages, from {MIN_LANGUAGES} on, as if they were independent]. The best "
    "is found by the test labels themselves, so some regret is chance. Single signals follow for comparison "
    "(where candidates are equal by one, their mean is lost); the rule is the mean of signals, fixed "
    "beforehand."
)


def _words(candidates: Candidates, kind: str, subject: str, caption: str) -> dict[str, str]:
    return {
        "name": slug(kind, *candidates.about.values()),
        "title": f"{test_set_name(candidates.about)}, source {candidates.about['source']}: {subject}",
        "caption": caption,
    }


def _choice_caption(candidates: Candidates, data: pd.DataFrame) -> str:
    parts = [
        f"Percent. The rule: the highest mean of standardised signals ({', '.join(candidates.signals)}).",
        "It ranks the candidates of a language without its labels.",
        f"Expected [{LEVEL:.0%} interval]: from the choice's scores in other languages, by ATC and DoC "
        "there; it holds over languages drawn like the families with labels, not for each single language.",
    ]
    if doubts := list(dict.fromkeys(doubt for doubt in data["doubts"] if doubt)):
        parts.append(f"Don't know: {doubts[0]}{' (further reasons in the CSV)' if len(doubts) > 1 else ''}.")
    if language_count := int(data["other_languages"].max()):
        parts.append(
            f"Elsewhere: the choice in the other target languages with labels ({language_count} or fewer)."
        )
    if any(data["ensemble"]):
        parts.append(
            "Without a choice: the mean of all their probabilities, isogloss predict RUN RUN … FILE (the "
            "runs are in the column ensemble of the CSV)."
        )
    return " ".join(parts)


def _percents(data: pd.DataFrame, *columns: str) -> list[str]:
    return [percent(*numbers) for numbers in data[list(columns)].itertuples(index=False)]


def explain_missing_choice(measurements: Measurements) -> str:
    """Return why nothing is ranked, and what to do."""
    rows = measurements.frame("label-free")
    if rows.empty:
        return (
            "No ranking: no model was measured by label-free, so nothing is known of these models without "
            'labels. Add [[measure]] name = "label-free" (split = "dev") to the recipe, which measures every '
            "model in every target language, and run it again. No choice is needed for the mean of their "
            "probabilities: isogloss predict RUN RUN … FILE."
        )
    return (
        f"No ranking: {count(rows['model'].nunique(), 'model')} measured by label-free, and no two of them "
        "in one target language of one test set, so nothing can be chosen. Train more seeds or "
        "methods and run the recipe again."
    )
