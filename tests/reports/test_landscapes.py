"""Laws and golden numbers of paths, planes and deltas."""

from collections.abc import Callable

import numpy as np
import pytest
from hand_made import MODEL, golden, plain, the_same
from made_up_rows import make_measurements

from isogloss.reports.drawing import PAGE
from isogloss.reports.landscapes import (
    curves,
    delta_figures,
    path_figures,
    plane_figures,
    plane_levels,
)
from isogloss.reports.measurements import Measurements
from isogloss.reports.summaries import SUMMARIES

Study = Callable[[str], Measurements]

AGGREGATED = {**plain("source", "role", "alpha"), "start.name": "start"}
ALONG = {
    **plain("source", "target", "part", "language", "role", "alpha"),
    "start.name": "start",
    "end.name": "end",
}


def figure(figures: list, name: str):
    (found,) = [one for one in figures if one.name.startswith(name)]
    return found


TARGET = {
    **MODEL,
    "target": "bb",
    "language": "bb",
    "role": "target",
    "split": "dev",
    "part": "all",
    "seed": 0,
}


def path(start="source-only", end="bilingual", *, scores=(0.5, 1.0), **facts) -> list[dict]:
    about = {**TARGET, "method": end, "way": end, "start.method": start, "start.way": start}
    about |= {"start": f"{start} 0", "end": f"{end} 0", "seed": 0, **facts}
    return [{**about, "alpha": float(alpha), "score": score} for alpha, score in enumerate(scores)]


def plane(first="source-only", second="target-only", *, score=0.5, **facts) -> list[dict]:
    about = {**TARGET, "origin": "o", "method": "bilingual", "way": "b", "first": first, "second": second}
    about |= {
        "first.way": first,
        "second.way": second,
        "first.method": first,
        "second.method": second,
        **facts,
    }
    grid = [(x, y) for x in (0.0, 1.0) for y in (0.0, 1.0)]
    return [{**about, "alpha_first": x, "alpha_second": y, "score": score + x / 10 + y / 20} for x, y in grid]


@pytest.mark.parametrize("name", ["path-aggregate", "path-variance"])
def test_aggregates_are_as_they_were(study: Study, name: str) -> None:
    drawn, before = figure(path_figures(study("transfer")), name), golden("transfer")["figures"][name]["data"]
    assert the_same(drawn.data, before, AGGREGATED, plain("curves", "mean", "low", "high")) == 16


def test_paths_of_pairs_are_as_they_were(study: Study) -> None:
    before = golden("transfer")["figures"]["path-raw-ud-upos-shipped-all-dev-accuracy-1"]["data"]
    drawn = figure(path_figures(study("transfer")), "path-raw")
    numbers = plain("seeds", "mean", "std", "normalised_mean", "normalised_variance")
    assert the_same(drawn.data, before, ALONG, numbers) == 32


def test_planes_are_as_they_were(study: Study) -> None:
    (drawn,) = plane_figures(study("transfer"))
    before = golden("transfer")["figures"]["plane-ud-upos-shipped-all-dev-accuracy-1"]["data"]
    keys = {"role": "role", "alpha_first": "alpha_source", "alpha_second": "alpha_target"}
    assert the_same(drawn.data, before, keys, plain("seeds", "mean", "normalised_mean")) == 32


def test_deltas_are_as_they_were(study: Study) -> None:
    (drawn,), (table,) = delta_figures(study("transfer")), SUMMARIES["deltas-by-pair"].show(study("transfer"))
    before = golden("transfer")["figures"]["deltas"]["data"]
    numbers = {"norm_first": "norm_source", "norm_second": "norm_target", **plain("ratio", "angle")}
    for data in (drawn.data, table.data):
        assert the_same(data, before, plain("source", "target", "seed", "part"), numbers) == 18


@pytest.mark.parametrize(
    "other",
    [
        {"end": "target-only"},
        {"start": "target-only"},
        {"encoder": "another", "encoder.run": "another", "encoder.name": "maxi"},
        {"split": "test"},
        {"part": "head"},
        {"way": "bilingual with other fields"},
    ],
)
def test_an_aggregate_never_mixes_paths_of_other_models_or_splits(other: dict) -> None:
    two = [*path(), *path(target="cc", language="cc")]
    alone, beside = (
        path_figures(make_measurements(interpolation=rows))
        for rows in (two, [*two, *path(scores=(0.9, 0.3), **other)])
    )
    old, new = (figure(one, "path-aggregate").data for one in (alone, beside))
    names = [name for name in old if name not in ("inputs", "panel", "path")]
    assert old[names].merge(new[names], how="left", indicator=True)["_merge"].eq("both").all()


def test_an_aggregate_of_tasks_takes_one_test_set_of_each_and_never_mixes_two_of_one_task() -> None:
    tasks = [*path(), *path(task="ner", corpus="wikiann", metric="span_f1")]
    (both,) = [
        one for one in path_figures(make_measurements(interpolation=tasks)) if one.name == "path-aggregate"
    ]
    corpora = [*tasks, *path(corpus="pud", target="cc"), *path(corpus="pud")]
    apart = figure(path_figures(make_measurements(interpolation=corpora)), "path-aggregate")
    assert set(both.data["curves"]) == {2}
    assert apart.data.groupby(["corpus", "task", "metric"])["curves"].max().to_dict() == {
        ("ud", "upos", "accuracy"): 1,
        ("wikiann", "ner", "span_f1"): 1,
        ("pud", "upos", "accuracy"): 2,
    }


@pytest.mark.slow
def test_every_path_of_another_end_has_its_own_panel() -> None:
    drawn = figure(
        path_figures(make_measurements(interpolation=[*path(), *path(end="target-only")])), "path-raw"
    )
    assert len(drawn.data) == 4
    assert "from source-only to bilingual" in drawn.svg
    assert "from source-only to target-only" in drawn.svg


def test_a_curve_is_divided_by_its_own_end_and_spread_over_its_seeds() -> None:
    rows = [*path(), *path(seed=1, scores=(0.7, 0.6)), *path(language="aa", role="source", scores=(0.3, 0.2))]
    found = curves(make_measurements(interpolation=rows)).set_index(["role", "alpha"])
    assert found.loc[("target", 0.0), "normalised_mean"] == pytest.approx(0.6 / 0.8)
    assert found.loc[("target", 0.0), "normalised_variance"] == pytest.approx(0.02 / 0.8)
    assert found.loc[("source", 0.0), "normalised_mean"] == pytest.approx(1.5)


@pytest.mark.slow
def test_planes_through_other_models_are_figures_of_their_own_that_name_their_corners() -> None:
    rows = [*plane(), *plane("few-shot", "translate-train", score=0.1)]
    first, second = plane_figures(make_measurements(plane=rows))
    assert [len(one.data) for one in (first, second)] == [4, 4]
    assert first.data["mean"].min() == 0.5
    for name in ("bilingual", "few-shot", "translate-train"):
        assert f"{name} model" in second.svg
    assert "source-only" not in second.svg + second.caption + second.alt


def test_deltas_of_other_models_are_figures_and_lines_of_their_own() -> None:
    norms = {"norm_first": 1.0, "norm_second": 2.0, "ratio": 0.5, "angle": 50.0}
    rows = [{**plane(first)[0], **norms} for first in ("source-only", "few-shot")]
    m = make_measurements(deltas=rows)
    assert [len(drawn.data) for drawn in delta_figures(m)] == [1, 1]
    assert [line[-1].text for line in SUMMARIES["deltas-by-pair"].show(m)[0].rows] == ["1", "1"]


@pytest.mark.slow
def test_a_figure_draws_no_more_than_it_says() -> None:
    many = [row for target in range(30) for row in path(target=f"t{target:02}", language=f"t{target:02}")]
    drawn = figure(path_figures(make_measurements(interpolation=many)), "path-raw")
    assert sum(axis.get_visible() for axis in drawn.paint(PAGE).axes) == 24
    assert "the first 24 of 30 panels" in drawn.caption
    assert len(drawn.data) == 60


def test_levels_of_a_plane_part_its_points_evenly_where_most_lie_close_together() -> None:
    near, far = np.linspace(0.9, 1.0, 900), np.linspace(0.3, 0.9, 100)
    levels = plane_levels(np.concatenate([near, far]))
    assert (levels[0], levels[-1]) == (0.3, 1.0)
    assert (levels > 0.895).sum() > (levels < 0.895).sum()
    assert (np.diff(levels) > 0).all()
    assert plane_levels(np.full(9, 0.5)).tolist() == [0.5, 0.51]
