"""A head that begins with zeros is suggested where seeds agree in the source and differ in the targets."""

import numpy as np
import pytest

from isogloss.features.comparing.next_steps import LEAST_RATIO, LEAST_SPREAD, suggest_head_of_zeros
from isogloss.reports.measurements import Measurements
from made_up_rows import make_measurements, score


def rows_of(source: float, targets: float, *, seeds: int = 4, method: str = "source-only", **about):
    """Return scores whose standard deviations over seeds are given, in the source and two targets."""
    places = np.arange(seeds) - (seeds - 1) / 2
    places = places / places.std(ddof=1) if seeds > 1 else places
    return [
        score(0.7 + spread * float(place), language=language, method=method, seed=seed, **about)
        for seed, place in enumerate(places)
        for language, spread in (("qaa", source), ("qad", targets), ("qae", targets))
    ]


@pytest.mark.parametrize("source", [0.0, 0.002, 0.01, 0.03])
@pytest.mark.parametrize("targets", [0.0, 0.004, 0.019, 0.021, 0.04, 0.08])
@pytest.mark.parametrize("seeds", [1, 2, 3, 8])
def test_a_lottery_is_one_of_the_targets_alone(source, targets, seeds):
    steps = suggest_head_of_zeros(make_measurements(scores=rows_of(source, targets, seeds=seeds)), "runs")
    is_lottery = seeds >= 3 and targets >= LEAST_SPREAD and targets >= LEAST_RATIO * source
    assert len(steps) == is_lottery
    for step in steps:
        assert f"{100 * targets:.1f} points" in step.text and f"{seeds} seeds" in step.text
        assert f"{100 * source:.1f} in the source" in step.text and 'head_weights = "zeros"' in step.text


@pytest.mark.parametrize(
    "rows",
    [
        rows_of(0.0, 0.05, task="parsing"),
        rows_of(0.0, 0.05, task="<script>not here</script>"),
        rows_of(0.0, 0.05, method="few-shot", target="qad"),
        rows_of(0.0, 0.05) + rows_of(0.0, 0.01, about={"optimization.head_weights": "zeros"}),
    ],
    ids=["trees refuse it", "task of another package", "labels of a target", "measured"],
)
def test_it_is_not_suggested_where_it_says_nothing(rows):
    assert suggest_head_of_zeros(make_measurements(scores=rows), "runs") == []


def test_it_is_not_suggested_without_scores():
    assert suggest_head_of_zeros(Measurements(runs=[]), "runs") == []


def test_of_several_systems_the_widest_is_named():
    rows = rows_of(0.0, 0.03) + rows_of(0.0, 0.06, encoder="wide")
    [step] = suggest_head_of_zeros(make_measurements(scores=rows), "runs")
    assert "wide" in step.text and "6.0 points" in step.text
