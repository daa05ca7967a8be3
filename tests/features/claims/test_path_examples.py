"""Claims about paths carry the error of examples, where runs recorded what each adds to the scores."""

import numpy as np
import pandas as pd
import pytest
from court import ANSWERS, EXAMPLES, IDS, answers_of, paths

from isogloss.data.result_files import StoredPredictions, measure_at
from isogloss.features.claims.four_papers import CLAIMS
from isogloss.features.claims.path_examples import (
    ExampleTerms,
    PathExamples,
    error_over_examples,
    example_error,
)
from isogloss.features.claims.transfer_rows import path_rows
from isogloss.reports.verdicts import check_rows, judge
from made_up_rows import make_measurements, path

RNG = np.random.default_rng(0)


def ratio(parts):
    """Return an F1 of parts and wholes that vary over examples."""
    return parts, parts + RNG.integers(1, 5, len(parts)).astype(float)


@pytest.fixture
def recorded_points():
    """Two points of a path, measured by a ratio of sums over 60 examples."""
    points = {
        measure_at("span_f1", [alpha]): ratio(RNG.integers(0, 4, 60).astype(float)) for alpha in (0.0, 0.25)
    }
    predictions = StoredPredictions(ids=tuple(map(str, range(60))), measures=points)
    return PathExamples(make_measurements({"run": {"qad": predictions}}), "run", "qad", "span_f1"), points


def test_what_examples_add_to_a_slope_has_the_slope_as_its_mean(recorded_points):
    examples, points = recorded_points
    first_score, near_score = (part.sum() / total.sum() for part, total in points.values())
    slope = {(0.0,): -4.0, (0.25,): 4.0}
    terms = examples.list_terms({"slope": slope, "unrecorded": {(0.7,): 1.0}})
    assert terms["slope"].values.mean() == pytest.approx(4 * (near_score - first_score))
    assert "unrecorded" not in terms


def test_the_error_over_examples_is_that_of_drawing_them_anew(recorded_points):
    examples, points = recorded_points
    terms = examples.list_terms({"slope": {(0.0,): -4.0, (0.25,): 4.0}})["slope"]
    error, number = error_over_examples([(1.0, terms)])
    draws = RNG.integers(0, 60, (4000, 60))
    scores = [part[draws].sum(axis=1) / total[draws].sum(axis=1) for part, total in points.values()]
    assert number == 60
    assert error == pytest.approx(4 * (scores[1] - scores[0]).std(), rel=0.1)


def test_the_same_examples_in_every_seed_bring_no_less_error():
    terms = ExampleTerms(IDS, RNG.normal(size=EXAMPLES))
    once = error_over_examples([(1.0, terms)])
    assert error_over_examples([(0.25, terms)] * 4) == pytest.approx(once)
    other_terms = ExampleTerms(tuple(f"other {key}" for key in IDS), terms.values)
    error, number = error_over_examples([(0.5, terms), (0.5, other_terms)])
    assert (error, number) == (pytest.approx(once[0] / np.sqrt(2), rel=0.01), 2 * EXAMPLES)


def test_seeds_within_a_unit_are_averaged_and_a_missing_path_leaves_all_out():
    terms = ExampleTerms(IDS, RNG.normal(size=EXAMPLES))
    rows = pd.DataFrame({"unit": [0, 0, 1], "target": "qad", "added": [{"slope": terms}] * 3})
    means = pd.DataFrame({"qad": [0.1, 0.2]}, index=[0, 1])
    assert [weight for weight, _ in example_error(rows, "slope", means)] == [0.25, 0.25, 0.5]
    assert example_error(rows.assign(added=[rows["added"][0], {}, rows["added"][0]]), "slope", means) == []


def judge_claim(claim, rows, *, with_answers):
    frames = {"interpolation": rows}
    answers = answers_of(frames) if with_answers else {}
    (outcome,) = judge(
        [known_claim for known_claim in CLAIMS if known_claim.id == claim],
        make_measurements(answers, **frames),
    )
    return outcome


def test_a_barrier_that_a_few_examples_make_in_every_seed_is_none_of_others():
    """In each seed the same three of forty examples are wrong only in the middle."""
    rows = []
    for seed in range(8):
        right = {alpha: np.ones(40) for alpha in (0.0, 0.5, 1.0)}
        right[0.5][:2] = right[0.5][3 + seed] = 0.0
        points = path({alpha: answers.mean() for alpha, answers in right.items()}, role="source", seed=seed)
        rows += [{**row, "run": f"run {seed}", ANSWERS: right[row["alpha"]]} for row in points]
    bare_outcome, full_outcome = (judge_claim("1a", rows, with_answers=flag) for flag in (False, True))
    assert "over seeds, on these examples alone" in bare_outcome.found
    assert (bare_outcome.verdict, full_outcome.verdict) == ("differs from print", "undecided")
    assert "over seeds and 40 examples" in full_outcome.found


@pytest.mark.parametrize("claim", ["1a", "1b"])
def test_answers_leave_the_numbers_and_widen_the_intervals(claim):
    rows = paths(RNG, 4, lambda alpha: 0.5 + 0.3 * alpha, role="source" if claim == "1a" else "target")
    bare_rows, full_rows = (
        check_rows([judge_claim(claim, rows, with_answers=flag)]) for flag in (False, True)
    )
    pd.testing.assert_series_equal(bare_rows["mean"], full_rows["mean"])
    assert (full_rows["high"] - full_rows["low"] >= bare_rows["high"] - bare_rows["low"] - 1e-9).all()
    assert set(full_rows["examples"].dropna()) == {EXAMPLES}
    assert set(bare_rows["examples"].dropna()) == {0}
    terms = path_rows(make_measurements(answers_of({"interpolation": rows}), interpolation=rows))["added"]
    assert {name for of_row in terms for name in of_row} == {"gain", "slope", "drop"}
