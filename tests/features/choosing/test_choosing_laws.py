"""Laws of choosing without labels, on generated studies.

Signals without labels rank models and give no score: numbers of a choice must not depend on their level.
Intervals must not rest on a few languages. Labels of a language must not decide the choice there.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd
import pytest

from each import each
from isogloss.features.choosing.candidates import all_candidates
from isogloss.features.choosing.choices import (
    MIN_LANGUAGES,
    choice_data,
    choice_tables,
    explain_missing_choice,
    list_candidates,
    regret_data,
    regret_tables,
)
from isogloss.reports.measurements import Measurements
from made_up_rows import facts, frame, model_of

TASKS = {
    "upos": "accuracy",
    "ner": "span_f1",
    "text-classification": "accuracy",
    "multi-label-classification": "micro_f1",
    "multiple-choice": "accuracy",
    "qa": "f1",
    "parsing": "las",
}
"""Tasks with signals, and the metric of each."""

FAMILIES = ("qab", "qac", "qad", "de", "nl", "fr", "es", "sw", "zu", "fi")
"""Target languages: one family, related languages, and unrelated ones."""

SIGNALS = ("confidence", "entropy", "atc", "doc", "steadiness")


@dataclass(frozen=True)
class Study:
    """Sizes and gaps of a generated study."""

    task: str
    languages: int
    labelled: int
    candidates: int
    missing: str
    ties: bool

    @property
    def codes(self):
        """The target languages."""
        return FAMILIES[: self.languages]

    def measurements(self, *, change=lambda _name, value: value, labels_of="", labels=0.0):
        """Return the rows of a study with changed signals, and the labels of one language."""
        draw = np.random.default_rng(7)
        signal_rows = []
        score_rows = []
        for seed in range(self.candidates):
            model_facts = facts({"seed": seed, "task": self.task})
            row = {**model_facts, "model": model_of(model_facts)}
            signal_fields = {**row, "run": f"free {row['model']}", "split": "dev", "examples": 9}
            if self.missing != "source":
                source_score = 0.9 if self.ties else 0.9 - 0.01 * seed
                signal_rows.append(
                    {**signal_fields, "language": "qaa", "signal": "score", "value": source_score}
                )
            for number, language in enumerate(self.codes):
                for name in SIGNALS:
                    value = 0.5 if self.ties else float(draw.uniform(0.3, 0.7))
                    absent = name == self.missing or (
                        self.missing == "one of one" and seed == 0 and name == "atc"
                    )
                    if not absent:
                        signal_rows.append(
                            {
                                **signal_fields,
                                "language": language,
                                "signal": name,
                                "value": change(name, value),
                            }
                        )
                score = 0.5 if self.ties else float(draw.uniform(0.2, 0.9))
                if number < self.labelled:
                    changed_score = labels * (seed + 1) if language == labels_of else score
                    score_rows.append(
                        {
                            **{**row, "run": f"scores {seed}", "split": "test", "language": language},
                            **{"metric": TASKS[self.task], "main": True, "baseline": 0.1, "examples": 9},
                            "score": changed_score,
                        }
                    )
        frames = {
            name: frame(rows) for name, rows in (("label-free", signal_rows), ("scores", score_rows)) if rows
        }
        return Measurements(runs=[], _frames=frames)


def studies(task):
    """Yield studies of all numbers of languages and candidates, signals missing, with ties in every other."""
    shapes = [
        (count, labelled_count) for count in (1, 2, 6, 8) for labelled_count in sorted({0, count - 1, count})
    ]
    missing = ("", "confidence", "atc", "source", "one of one")
    combinations = product(shapes, (1, 2, 3), missing)
    for number, ((count, labelled_count), several, lacking) in enumerate(combinations):
        yield Study(task, count, labelled_count, several, lacking, ties=number % 2 == 1)


def show_choices(m):
    """Return all that is printed: texts of both tables, their rows, and the ranking in each language."""
    texts = [
        (table.title, table.caption, *(cell.text for row in (table.header, *table.rows) for cell in row))
        for table in (*choice_tables(m), *regret_tables(m))
    ]
    rankings = [
        list_candidates(candidates, language)
        for candidates in all_candidates(m)
        for language in candidates.languages
    ]
    return texts, [choice_data(candidates) for candidates in all_candidates(m)], rankings


def check_no_level(study):
    """Signals moved and scaled together rank alike, so nothing that is shown may change."""
    old_output = show_choices(study.measurements())
    new_output = show_choices(study.measurements(change=lambda _, value: 0.25 + value / 2))
    assert old_output[0] == new_output[0]
    for tables in zip(old_output[1] + old_output[2], new_output[1] + new_output[2], strict=True):
        pd.testing.assert_frame_equal(*tables, check_exact=True)
    for data in old_output[1]:
        assert data["expected"].isna().all() and data["doubts"].all()


def check_no_interval_of_few_languages(study):
    m = study.measurements()
    for candidates in all_candidates(m):
        data = regret_data(candidates)
        if len(data):
            assert data["low"].notna().tolist() == (data["languages"] >= MIN_LANGUAGES).tolist()
        choices = choice_data(candidates)
        assert not [name for name in choices if name.endswith((".low", ".high"))]
    has_few_languages = study.labelled < MIN_LANGUAGES
    cells = [cell.text for table in regret_tables(m) for row in table.rows for cell in row]
    assert not (has_few_languages and any("[" in text for text in cells))
    assert not any("[" in cell.text for table in choice_tables(m) for row in table.rows for cell in row)


def check_no_leak(study):
    """Check that labels of a language change only its score and regret, and the mean for the others."""
    own_columns = ["score", "regret"]
    old_output = show_choices(study.measurements())
    for language in {*study.codes[: study.labelled][:1], *study.codes[: study.labelled][-1:]}:
        new_output = show_choices(study.measurements(labels_of=language, labels=0.125))
        for old_data, new_data in zip(old_output[1], new_output[1], strict=True):
            old_rows, new_rows = (
                data[data["language"] == language].drop(columns=own_columns) for data in (old_data, new_data)
            )
            pd.testing.assert_frame_equal(old_rows, new_rows, check_exact=True)
            elsewhere = ["others", *own_columns]
            pd.testing.assert_frame_equal(
                old_data.drop(columns=elsewhere), new_data.drop(columns=elsewhere), check_exact=True
            )
        for old_data, new_data in zip(old_output[2], new_output[2], strict=True):
            pd.testing.assert_frame_equal(
                old_data.drop(columns="score"), new_data.drop(columns="score"), check_exact=True
            )


def check_every_study_ranks_or_says_why(study):
    m = study.measurements()
    tables = choice_tables(m)
    if study.candidates < 2:
        assert tables == []
        assert f"No ranking: {study.candidates} model measured by label-free" in explain_missing_choice(m)
        return
    (table,) = tables
    assert len(table.rows) == study.languages
    (data,) = [choice_data(candidates) for candidates in all_candidates(m)]
    offers = study.task not in ("qa", "parsing")
    assert [len(models) for models in data["ensemble"]] == [study.candidates * offers] * study.languages
    counts_by_language = dict(zip(data["language"], data["other_languages"], strict=True))
    assert counts_by_language == {
        language: study.labelled - (number < study.labelled) for number, language in enumerate(study.codes)
    }


CHECKS = (
    check_no_level,
    check_no_interval_of_few_languages,
    check_no_leak,
    check_every_study_ranks_or_says_why,
)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS)
def test_choices_show_no_level_no_narrow_interval_and_no_leak(check):
    chosen_studies = (
        Study("upos", 3, 2, 3, "", ties=False),
        Study("ner", 7, 6, 2, "confidence", ties=False),
        Study("qa", 1, 0, 2, "source", ties=True),
        Study("text-classification", 2, 2, 1, "one of one", ties=False),
    )
    for study in each(chosen_studies):
        assert check(study) is None


@pytest.mark.nightly
@pytest.mark.parametrize("check", CHECKS)
def test_choices_of_every_generated_study_keep_the_laws(check):
    for study in each(studies("upos")):
        assert check(study) is None


@pytest.mark.nightly
@pytest.mark.parametrize("task", TASKS)
def test_every_task_is_ranked_or_says_why(task):
    for study in each(studies(task)):
        assert check_every_study_ranks_or_says_why(study) is None
