"""Laws and golden numbers of paths, planes and deltas."""

from collections.abc import Callable

import numpy as np
import pytest

from hand_made import MODEL, golden, plain, the_same
from isogloss.features.landscapes.report import (
    curves,
    delta_figures,
    path_figures,
    plane_figures,
    plane_levels,
)
from isogloss.reports.drawing import PAGE
from isogloss.reports.measurements import Measurements
from made_up_rows import make_measurements
from report_entries import find_entry

Study = Callable[[str], Measurements]

AGGREGATED = {**plain("source", "role", "alpha"), "start.name": "start"}
ALONG = {
    **plain("source", "target", "part", "language", "role", "alpha"),
    "start.name": "start",
    "end.name": "end",
}


def figure(figures: list, name: str):
    (result,) = [field for field in figures if field.name.startswith(name)]
    return result


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
    options = {**TARGET, "method": end, "way": end, "start.method": start, "start.way": start}
    options |= {"start": f"{start} 0", "end": f"{end} 0", "seed": 0, **facts}
    return [{**options, "alpha": float(alpha), "score": score} for alpha, score in enumerate(scores)]


def plane(first_text="source-only", second="target-only", *, score=0.5, **facts) -> list[dict]:
    options = {
        **TARGET,
        "origin": "o",
        "method": "bilingual",
        "way": "b",
        "first": first_text,
        "second": second,
    }
    options |= {
        "first.way": first_text,
        "second.way": second,
        "first.method": first_text,
        "second.method": second,
        **facts,
    }
    grid = [(x, y) for x in (0.0, 1.0) for y in (0.0, 1.0)]
    return [
        {**options, "alpha_first": x, "alpha_second": y, "score": score + x / 10 + y / 20} for x, y in grid
    ]


@pytest.mark.parametrize("name", ["path-aggregate", "path-variance"])
def test_aggregates_are_as_they_were(study: Study, name: str) -> None:
    drawn_figure = figure(path_figures(study("transfer")), name)
    data_before = golden("transfer")["figures"][name]["data"]
    assert the_same(drawn_figure.data, data_before, AGGREGATED, plain("curves", "mean", "low", "high")) == 16


def test_paths_of_pairs_are_as_they_were(study: Study) -> None:
    data_before = golden("transfer")["figures"]["path-raw-ud-upos-shipped-all-dev-accuracy-1"]["data"]
    drawn_figure = figure(path_figures(study("transfer")), "path-raw")
    numbers = plain("seeds", "mean", "std", "normalised_mean", "normalised_variance")
    assert the_same(drawn_figure.data, data_before, ALONG, numbers) == 32


def test_planes_are_as_they_were(study: Study) -> None:
    (drawn_plane_figure,) = plane_figures(study("transfer"))
    data_before = golden("transfer")["figures"]["plane-ud-upos-shipped-all-dev-accuracy-1"]["data"]
    keys = {"role": "role", "alpha_first": "alpha_source", "alpha_second": "alpha_target"}
    assert (
        the_same(drawn_plane_figure.data, data_before, keys, plain("seeds", "mean", "normalised_mean")) == 32
    )


def test_deltas_are_as_they_were(study: Study) -> None:
    (drawn_delta_figure,) = delta_figures(study("transfer"))
    (table,) = find_entry("deltas-by-pair").show(study("transfer"))
    data_before = golden("transfer")["figures"]["deltas"]["data"]
    numbers = {"norm_first": "norm_source", "norm_second": "norm_target", **plain("ratio", "angle")}
    for data in (drawn_delta_figure.data, table.data):
        assert the_same(data, data_before, plain("source", "target", "seed", "part"), numbers) == 18


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "other_item",
    [
        {"end": "target-only"},
        {"start": "target-only"},
        {"encoder": "another", "encoder.run": "another", "encoder.name": "maxi"},
        {"split": "test"},
        {"part": "head"},
        {"way": "bilingual with other fields"},
    ],
)
def test_an_aggregate_never_mixes_paths_of_other_models_or_splits(other_item: dict) -> None:
    two = [*path(), *path(target="cc", language="cc")]
    single_path_figures, beside = (
        path_figures(make_measurements(interpolation=rows))
        for rows in (two, [*two, *path(scores=(0.9, 0.3), **other_item)])
    )
    old_figure, new_figure = (figure(item, "path-aggregate").data for item in (single_path_figures, beside))
    names = [name for name in old_figure if name not in ("inputs", "panel", "path")]
    assert old_figure[names].merge(new_figure[names], how="left", indicator=True)["_merge"].eq("both").all()


def test_an_aggregate_of_tasks_takes_one_test_set_of_each_and_never_mixes_two_of_one_task() -> None:
    tasks = [*path(), *path(task="ner", corpus="wikiann", metric="span_f1")]
    (pair,) = [
        path_figure
        for path_figure in path_figures(make_measurements(interpolation=tasks))
        if path_figure.name == "path-aggregate"
    ]
    corpora = [*tasks, *path(corpus="pud", target="cc"), *path(corpus="pud")]
    distance = figure(path_figures(make_measurements(interpolation=corpora)), "path-aggregate")
    assert set(pair.data["curves"]) == {2}
    assert distance.data.groupby(["corpus", "task", "metric"])["curves"].max().to_dict() == {
        ("ud", "upos", "accuracy"): 1,
        ("wikiann", "ner", "span_f1"): 1,
        ("pud", "upos", "accuracy"): 2,
    }


@pytest.mark.draws
@pytest.mark.slow
def test_every_path_of_another_end_has_its_own_panel() -> None:
    drawn_figure = figure(
        path_figures(make_measurements(interpolation=[*path(), *path(end="target-only")])), "path-raw"
    )
    assert len(drawn_figure.data) == 4
    assert "from source-only to bilingual" in drawn_figure.svg
    assert "from source-only to target-only" in drawn_figure.svg


def test_a_curve_is_divided_by_its_own_end_and_spread_over_its_seeds() -> None:
    rows = [*path(), *path(seed=1, scores=(0.7, 0.6)), *path(language="aa", role="source", scores=(0.3, 0.2))]
    table = curves(make_measurements(interpolation=rows)).set_index(["role", "alpha"])
    assert table.loc[("target", 0.0), "normalised_mean"] == pytest.approx(0.6 / 0.8)
    assert table.loc[("target", 0.0), "normalised_variance"] == pytest.approx(0.02 / 0.8)
    assert table.loc[("source", 0.0), "normalised_mean"] == pytest.approx(1.5)


@pytest.mark.draws
@pytest.mark.slow
def test_planes_through_other_models_are_figures_of_their_own_that_name_their_corners() -> None:
    rows = [*plane(), *plane("few-shot", "translate-train", score=0.1)]
    first_plane_figure, second = plane_figures(make_measurements(plane=rows))
    assert [len(item.data) for item in (first_plane_figure, second)] == [4, 4]
    assert first_plane_figure.data["mean"].min() == 0.5
    for name in ("bilingual", "few-shot", "translate-train"):
        assert f"{name} model" in second.svg
    assert "source-only" not in second.svg + second.caption + second.alt


def test_deltas_of_other_models_are_figures_and_lines_of_their_own() -> None:
    norms = {"norm_first": 1.0, "norm_second": 2.0, "ratio": 0.5, "angle": 50.0}
    rows = [{**plane(first_name)[0], **norms} for first_name in ("source-only", "few-shot")]
    measurements = make_measurements(deltas=rows)
    assert [len(drawn_delta_figure.data) for drawn_delta_figure in delta_figures(measurements)] == [1, 1]
    assert [line[-1].text for line in find_entry("deltas-by-pair").show(measurements)[0].rows] == ["1", "1"]


@pytest.mark.slow
def test_a_figure_draws_no_more_than_it_says() -> None:
    many = [row for target in range(30) for row in path(target=f"t{target:02}", language=f"t{target:02}")]
    drawn_figure = figure(path_figures(make_measurements(interpolation=many)), "path-raw")
    assert sum(axis.get_visible() for axis in drawn_figure.paint(PAGE).axes) == 24
    assert "the first 24 of 30 panels" in drawn_figure.caption
    assert len(drawn_figure.data) == 60


def test_levels_of_a_plane_part_its_points_evenly_where_most_lie_close_together() -> None:
    neighbours = np.linspace(0.9, 1.0, 900)
    far_points = np.linspace(0.3, 0.9, 100)
    levels = plane_levels(np.concatenate([neighbours, far_points]))
    assert (levels[0], levels[-1]) == (0.3, 1.0)
    assert (levels > 0.895).sum() > (levels < 0.895).sum()
    assert (np.diff(levels) > 0).all()
    assert plane_levels(np.full(9, 0.5)).tolist() == [0.5, 0.51]
