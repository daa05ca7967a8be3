"""Each claim is right on cases built to support it, to refute it, and to leave it untested."""

from dataclasses import replace

import pytest
from synthetic_runs import World, delta_rows, path_rows, score_rows, settings

from isogloss.oldreports.claims import (
    better_is_flatter,
    norms_equal,
    source_stays,
    target_rises,
    target_varies_more,
)
from isogloss.oldreports.rows import Delta, PathPoint, Score, SeedSpread
from isogloss.oldreports.typed_rows import typed


def points(world):
    return [typed(PathPoint, row) for setting in settings(world) for row in path_rows(world, setting)]


def scores(world):
    return [
        typed(Score, row)
        for seed in world.seeds
        for task in world.tasks
        for encoder in world.encoders
        for row in score_rows(world, task, encoder, seed)
    ]


def deltas(world):
    return [typed(Delta, row) for setting in settings(world) for row in delta_rows(world, setting)]


def test_a_source_that_learned_nothing_tests_no_claim():
    nothing = [replace(point, score=0.0) for point in points(World())]
    claim = source_stays(nothing)
    assert claim.verdict == "not tested" and "nothing was learned" in claim.number


@pytest.mark.parametrize(("dip", "verdict"), [(0.0, "supported"), (0.03, "supported"), (0.031, "refuted")])
def test_the_source_may_fall_by_three_points(dip, verdict):
    claim = source_stays(points(World(dip=dip)))
    assert (claim.letter, claim.verdict) == ("a", verdict)
    assert f"largest fall {100 * dip:.1f} points" in claim.number
    assert "6 paths" in claim.number


def test_a_fall_outside_the_two_models_does_not_count():
    beyond = [
        point
        if 0 <= point.alpha <= 1
        else typed(PathPoint, {**{n: getattr(point, n) for n in PathPoint.__slots__}, "score": 0.0})
        for point in points(World())
    ]
    assert "largest fall 1.0 points" in source_stays(beyond).number


def test_paths_of_a_part_or_of_the_other_start_do_not_count():
    others = [p for p in points(World()) if p.start == "target-only"]
    assert source_stays(others).verdict == target_rises(others).verdict == "not tested"


def test_a_straight_rise_supports_a_smooth_one():
    claim = target_rises(points(World(low=0.6, high=0.85)))
    assert claim.verdict == "supported"
    assert "ρ 1.00 on average (lowest 1.00), gain +25.0 points, R² 1.00, 6 paths" in claim.number


def test_a_target_that_falls_or_stays_refutes_the_rise():
    falling = target_rises(points(World(low=0.8, high=0.6)))
    level = target_rises(points(World(low=0.7, high=0.7, shift=0.0)))
    assert (falling.verdict, level.verdict) == ("refuted", "refuted")
    assert "ρ -1.00" in falling.number
    assert "ρ 0.00" in level.number


def test_a_rise_that_goes_up_and_down_is_not_smooth():
    zigzag = [
        typed(
            PathPoint,
            {
                **{n: getattr(p, n) for n in PathPoint.__slots__},
                "score": 0.5 + 0.1 * p.alpha + (0.1 if round(10 * p.alpha) % 2 else 0.0),
            },
        )
        for p in points(World())
    ]
    assert target_rises(zigzag).verdict == "refuted"


def test_ten_times_the_spread_supports_the_variance_claim():
    claim = target_varies_more(scores(World()), [])
    assert claim.verdict == "supported"
    assert "ratio 10.0 (std 2.0 points target, 0.2 points source, n = 3 seeds, test)" in claim.number


def test_measured_spreads_are_preferred_and_an_even_spread_refutes():
    def measured(language, role, std):
        about = {"corpus": "ud", "task": "upos", "encoder": "mini", "method": "source-only", "source": "en"}
        rest = {"split": "dev", "metric": "accuracy", "seeds": 5, "mean": 0.5, "std": std}
        return typed(SeedSpread, {**about, "language": language, "role": role, **rest})

    claim = target_varies_more(
        scores(World()), [measured("en", "source", 0.01), measured("de", "target", 0.02)]
    )
    assert claim.verdict == "refuted"
    assert "ratio 2.0" in claim.number
    assert "n = 5 seeds, dev" in claim.number


def test_one_seed_tests_no_variance():
    assert target_varies_more(scores(World(seeds=(0,))), []).verdict == "not tested"


def test_a_source_that_never_varies_gives_no_ratio():
    still = [
        typed(Score, {**{n: getattr(s, n) for n in Score.__slots__}, "score": 1.0})
        if s.language == "en"
        else s
        for s in scores(World())
    ]
    claim = target_varies_more(still, [])
    assert claim.verdict == "not tested"
    assert "no ratio" in claim.number
    assert "std 2.0 points target, 0.0 points source" in claim.number


@pytest.mark.parametrize(
    ("ratio", "verdict"), [(0.79, "refuted"), (0.8, "supported"), (1.25, "supported"), (1.3, "refuted")]
)
def test_norms_are_about_equal_between_four_fifths_and_five_quarters(ratio, verdict):
    claim = norms_equal(deltas(World(ratio=ratio, angle=57.0)))
    assert claim.verdict == verdict
    assert f"mean ratio {ratio:.2f}" in claim.number
    assert "mean angle 57° (paper: about 55°), n = 6" in claim.number


def test_no_deltas_test_nothing():
    assert norms_equal([]).verdict == "not tested"


def test_one_encoder_cannot_be_compared():
    claim = better_is_flatter(points(World()))
    assert (claim.verdict, claim.number) == ("not tested", "1 encoder, needs two")


@pytest.mark.parametrize(("high", "verdict", "slope"), [(0.9, "supported", 0.2), (1.1, "refuted", 0.4)])
def test_the_better_encoder_is_compared_by_slope(high, verdict, slope):
    worse = points(World(encoders=("mini",), low=0.6, high=0.9))
    better = points(World(encoders=("maxi",), low=0.7, high=high))
    claim = better_is_flatter([*worse, *better])
    assert claim.verdict == verdict
    assert claim.number == (
        f"mini: zero-shot 60.0, slope 0.300 ± 0.018; maxi: zero-shot 70.0, slope {slope:.3f} ± 0.018"
    )


def test_encoders_are_compared_on_what_they_share():
    here = points(World(encoders=("mini",), targets=("de",)))
    there = points(World(encoders=("maxi",), targets=("fr",)))
    assert better_is_flatter([*here, *there]).number == "the encoders share no pair and task"
