"""Curves over seeds and their aggregates, against the numbers they were made from."""

import math

import numpy as np
import pytest
from scipy import stats
from synthetic_runs import World, path_rows, settings

from isogloss.oldreports.paths import aggregate, lines
from isogloss.oldreports.rows import PathPoint
from isogloss.oldreports.typed_rows import typed


def all_lines(world):
    return lines(typed(PathPoint, row) for setting in settings(world) for row in path_rows(world, setting))


def target_line(world):
    return next(
        line for line in all_lines(world) if (line.curve.role, line.curve.start) == ("target", "source-only")
    )


def test_a_line_has_one_point_per_alpha_in_rising_order():
    line = target_line(World())
    assert list(line.alphas) == sorted(set(line.alphas))
    assert len(line.alphas) == 21
    assert line.seeds == 3


def test_mean_and_variance_are_over_seeds_and_divided_by_the_bilingual_score():
    world = World()
    line = target_line(world)
    for row in line.data():
        scores = [world.target(row["alpha"], seed) for seed in world.seeds]
        by = np.mean([world.target(1, seed) for seed in world.seeds])
        assert row["mean"] == pytest.approx(np.mean(scores), abs=1e-5)
        assert row["normalised_mean"] == pytest.approx(np.mean(scores) / by, abs=1e-5)
        assert row["normalised_variance"] == pytest.approx(np.var(scores, ddof=1) / by, abs=1e-5)


def test_normalised_paths_meet_at_one():
    for line in all_lines(World()):
        assert next(row["normalised_mean"] for row in line.data() if row["alpha"] == 1) == pytest.approx(1)


def test_without_the_bilingual_point_nothing_is_normalised():
    world = World()
    rows = [row for setting in settings(world) for row in path_rows(world, setting) if row["alpha"] != 1]
    found = lines(typed(PathPoint, row) for row in rows)
    assert all(line.bilingual is None for line in found)
    assert aggregate(found, "normalised_mean", by_task=False) == []


def test_the_aggregate_is_the_mean_over_pairs_with_a_t_interval():
    steep, even = World(targets=("de",), high=0.9), World(targets=("fr",), high=0.8)
    pairs = [target_line(steep), target_line(even)]
    (found,) = aggregate(pairs, "normalised_mean", by_task=False)
    at_zero = found.spreads[found.alphas.index(0)]
    single = [0.6 / 0.9, 0.6 / 0.8]
    low, high = stats.t.interval(0.95, 1, np.mean(single), stats.sem(single))
    assert found.curves == 2
    assert (at_zero.mean, at_zero.low, at_zero.high) == pytest.approx((np.mean(single), low, high), abs=1e-4)


def test_by_task_keeps_tasks_apart():
    found = aggregate(all_lines(World(tasks=("upos", "ner"))), "normalised_mean", by_task=True)
    assert {curve.task for curve in found} == {"upos", "ner"}
    assert all(curve.curves == 2 for curve in found)


def test_one_seed_has_no_variance():
    (row, *_) = target_line(World(seeds=(0,))).data()
    assert math.isnan(row["normalised_variance"])
    assert aggregate([target_line(World(seeds=(0,)))], "normalised_variance", by_task=False) == []
