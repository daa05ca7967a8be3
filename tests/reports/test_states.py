"""Laws and golden numbers of word distances and maps of sentences."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from hand_made import golden, plain, same_rows, the_same
from isogloss.features.representations.report import map_figures
from isogloss.features.word_distance.report import distance_figures, pool_shares, with_stages
from isogloss.reports.drawing import PAGE
from isogloss.reports.measurements import Measurements
from made_up_rows import make_measurements
from report_entries import find_entry

Study = Callable[[str], Measurements]

OLD = {"l2": "word-distance-auc-shipped-1-l2-e52309", "cosine": "word-distance-auc-shipped-1-cosine-5df097"}
BINS = {"l2": "word-distance-shipped-1-l2-1-44a9c1", "cosine": "word-distance-shipped-1-cosine-1-0429a1"}


def distance(**facts) -> dict:
    options = {"model": "m", "first": "aa", "second": "bb", "layer": -1, "distance": "l2", "auc": 0.8}
    return {**options, "related_mean": 1.0, "unrelated_mean": 2.0, "encoder.depth": 1, **facts}


def adjusted_facts(pairs: str, size: int | None = None, encoder: str = "adjusted") -> dict:
    options = {"encoder": encoder, "encoder.run": encoder, "encoder.original": "enc", "encoder.pairs": pairs}
    return {**options, "encoder.adjusted": "cross-lingual-adjustment", "encoder.size": size}


@pytest.mark.parametrize("kind", ["l2", "cosine"])
def test_aucs_are_as_they_were_stage_by_stage(study: Study, kind: str) -> None:
    (table,) = find_entry("word-distance-auc").show(study("adjustment"))
    rows = table.data[table.data["distance"] == kind].groupby(["stage", "pair"])
    rows = rows.agg(auc=("auc", "mean"), change=("change", "mean"), models=("auc", "count")).reset_index()
    state_before = [
        {**row, "stage": row["stage"].replace("continual (bitext=bitext)", "source-only + alignment-loss")}
        for row in golden("adjustment")["tables"][OLD[kind]]["data"]
    ]
    assert the_same(rows, state_before, plain("stage", "pair"), plain("auc", "change", "models")) == 17


@pytest.mark.parametrize("kind", ["l2", "cosine"])
def test_histograms_are_as_they_were(study: Study, kind: str) -> None:
    (samples,) = [
        distance_figure
        for distance_figure in distance_figures(study("adjustment"))
        if distance_figure.data["distance"].iloc[0] == kind
    ]
    names = ["second", "low", "high", "related", "unrelated"]
    table_before = pd.DataFrame(golden("adjustment")["figures"][BINS[kind]]["data"])
    own_part = (table_before["encoder"] == "shipped") | (table_before["second"] == "qad")
    assert same_rows(samples.data, table_before[own_part], names) == 1740


@pytest.mark.parametrize("task", ["upos", "nli"])
def test_maps_are_as_they_were(study: Study, task: str) -> None:
    (samples,) = [figure for figure in map_figures(study("mixup")) if task in figure.name]
    rows_before = [dict(row) for row in golden("mixup")["figures"][f"map-bitext-{task}-shipped"]["data"]]
    for index, row in enumerate(rows_before):
        row |= {"method": row["method"].split(" ")[0], "at": index}
    data = samples.data.assign(at=range(99))
    assert (
        the_same(
            data, rows_before, plain("at", "method", "what", "language"), plain("x", "y", "between", "layer")
        )
        == 99
    )
    (table,) = find_entry("representation-map").show(study("mixup"))
    assert len(table.rows) == 5


def test_an_adjusted_encoder_counts_for_its_own_pairs_only() -> None:
    rows = [
        distance(),
        distance(second="cc"),
        distance(**adjusted_facts("aa-bb")),
        distance(second="cc", **adjusted_facts("aa-bb")),
    ]
    tuned_value = {"task": "nli", "method": "source-only", "way": "w", "source": "aa"}
    rows += [distance(**tuned_value, **adjusted_facts("bb-aa", encoder="turned"))]
    measurements = make_measurements(word_distance=rows)
    row = with_stages(measurements, measurements.frame("word-distance"))
    assert list(zip(row["stage"], row["pair"], strict=True)) == [
        ("original", "aa–bb"),
        ("original", "aa–cc"),
        ("adjusted", "aa–bb"),
        ("nli: adjusted + fine-tuned", "aa–bb"),
    ]
    assert set(row["base"]) == {"mini"}


def test_adjustments_that_differ_in_size_or_otherwise_are_stages_of_their_own() -> None:
    rows = [distance(**adjusted_facts("aa-bb", size, f"e{size}")) for size in (100, 3000)]
    rows += [distance(**adjusted_facts("aa-bb", 3000, "another"))]
    measurements = make_measurements(word_distance=rows)
    stages = list(with_stages(measurements, measurements.frame("word-distance"))["stage"])
    assert stages == ["adjusted (100)", "adjusted (3,000)", "adjusted (3,000, 2)"]


def test_models_are_pooled_with_equal_weight_whatever_their_bins() -> None:
    rows = pd.DataFrame(
        [("a", 0.0, 2.0, 1.0), ("b", 0.0, 1.0, 0.0), ("b", 1.0, 2.0, 1.0)],
        columns=["model", "low", "high", "related"],
    ).assign(run="r")
    assert list(pool_shares(rows, "related", np.array([0.0, 1.0, 2.0]))) == pytest.approx([0.25, 0.75])


def test_all_maps_of_a_task_have_the_same_scale() -> None:
    options = {"task": "upos", "layer": 4, "sentences": 2, "what": "centroid"}
    options |= {"explained_x": 0.5, "explained_y": 0.2, "between": 0.3}
    points = [
        {
            **options,
            **dict.fromkeys(("model", "way", "method"), way),
            "language": language,
            "x": far_points,
            "y": -far_points,
        }
        for way, far_points in (("source-only", 10.0), ("x-mixup", 1.0))
        for language in ("aa", "bb")
    ]
    (drawn_figure,) = map_figures(make_measurements(representation_map=points))
    assert "source-only 30.0 and x-mixup 30.0" in drawn_figure.alt
    axes = drawn_figure.paint(PAGE).axes
    assert [max(abs(marks.get_offsets()).max() for marks in axis.collections) for axis in axes] == [10.0, 1.0]
    assert len({axis.get_xlim() for axis in axes}) == 1


def test_maps_of_other_languages_are_no_seeds_of_one() -> None:
    options = {"task": "upos", "layer": 4, "sentences": 2, "what": "centroid", "x": 0.0, "y": 0.0}
    options |= {"explained_x": 0.5, "explained_y": 0.2, "method": "x-mixup", "way": "x-mixup", "model": "m"}
    points = [
        {**options, "run": codes, "language": language, "between": between_value}
        for codes, between_value in (("aa bb", 0.1), ("aa bb cc", 0.3))
        for language in codes.split()
    ]
    measurements = make_measurements(representation_map=points)
    (table,) = find_entry("representation-map").show(measurements)
    assert [[cell.text for cell in row][1:4] for row in table.rows] == [
        ["aa bb", "4", "10.0"],
        ["aa bb cc", "4", "30.0"],
    ]
    (drawn_figure,) = map_figures(measurements)
    assert "aa bb 10.0 and aa bb cc 30.0" in drawn_figure.alt
