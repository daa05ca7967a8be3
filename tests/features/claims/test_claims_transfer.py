"""Each claim of the first paper follows its rule, whatever else the folder contains."""

from functools import cache

import pytest

from isogloss.features.claims.four_papers import CLAIMS as ALL
from made_up_rows import delta, make_measurements, path, plane, score
from made_up_studies import Judged

CLAIMS = [claim for claim in ALL if claim.id[0] == "1"]

SEEDS = range(6)

ALPHAS = (0.0, 0.25, 0.5, 0.75, 1.0)


def outcomes(measurements):
    return Judged(CLAIMS, measurements)


def wobble(seed, size=0.004):
    return size * (-1) ** seed * (1 + seed % 3)


def straight(low, high, size=0.004, **more):
    """One path for each seed, from low to high."""
    return [
        point
        for seed in SEEDS
        for point in path({a: low + a * (high + wobble(seed, size) - low) for a in ALPHAS}, seed=seed, **more)
    ]


def bent(height, **more):
    """Paths that rise by 0.2 and bulge in the middle."""
    return [
        point
        for seed in SEEDS
        for point in path(
            {a: 0.5 + 0.2 * a + (height + wobble(seed)) * a * (1 - a) for a in ALPHAS}, seed=seed, **more
        )
    ]


def sagging(depth, low, high):
    """Paths of the source that sag in the middle."""
    return [
        point
        for seed in SEEDS
        for point in path(
            {a: low + a * (high - low) - (depth + wobble(seed)) * 4 * a * (1 - a) for a in ALPHAS},
            role="source",
            seed=seed,
        )
    ]


def spread_scores(source, target, seeds=SEEDS):
    """Scores of source-only models whose stds over seeds are like source and target."""
    scores = []
    for seed in seeds:
        scores.append(score(0.9 + source * (-1) ** seed, language="qaa", seed=seed))
        scores.append(score(0.6 + target * (seed - 2.5) / 2, language="qad", seed=seed))
    return scores


def spread_paths(start, end, seeds=SEEDS):
    result = []
    for seed in seeds:
        first_item = 0.5 + start * (-1) ** seed
        last_value = 0.8 + end * (seed - 2.5) / 2
        result += path({a: first_item + a * (last_value - first_item) for a in ALPHAS}, seed=seed)
    return result


def parts(encoder, head, size=0.004):
    gains = {"all": (0.2, 0.004), "encoder": (encoder, size), "head": (head, 0.004)}
    return [
        point
        for part, (gain, own_gain) in gains.items()
        for point in straight(0.5, 0.5 + gain, own_gain, part=part)
    ]


def encoders(better_climb, size=0.004):
    climbs = {"better": (0.7, better_climb), "worse": (0.5, 0.2)}
    options = {"source": "qaa"}
    return [
        point
        for name, (low, climb) in climbs.items()
        for point in straight(
            low, low + climb, size if name == "better" else 0.0, about={**options, "encoder": name}
        )
    ]


def surfaces(target, source, size=0.004, zero=0.5, **more):
    return [
        point
        for role, slope in (("target", target), ("source", source))
        for seed in SEEDS
        for point in plane(
            grid=(0.0, 0.5, 0.75, 1.0),
            score_at=lambda a, b, slope=slope, seed=seed: zero + (slope + wobble(seed, size)) * (1 - a),
            role=role,
            seed=seed,
            **more,
        )
    ]


def planes_of_encoders(better, size=0.004):
    rows = [
        *surfaces(better, 0.0, size, 0.6, encoder="better"),
        *surfaces(0.3, 0.0, 0.0, 0.5, encoder="worse"),
    ]
    return [row for row in rows if row["role"] == "target"]


def deltas(ratio, angle=55.0, size=0.01):
    return [delta(ratio + wobble(seed, size), angle + 100 * wobble(seed, size), seed=seed) for seed in SEEDS]


CASES = {
    ("1a", "supported"): {"interpolation": straight(0.9, 0.91, role="source")},
    ("1a", "differs from print"): {"interpolation": sagging(0.2, 0.9, 0.8)},
    ("1a", "undecided"): {"interpolation": straight(0.9, 0.874, 0.01, role="source")},
    ("1a", "not tested"): {"interpolation": straight(0.0, 0.0, 0.0, role="source")},
    ("1b", "supported"): {"interpolation": straight(0.5, 0.8)},
    ("1b", "contradicted"): {"interpolation": straight(0.8, 0.5)},
    ("1b", "undecided"): {"interpolation": straight(0.5, 0.502)},
    ("1b", "not tested"): {"interpolation": path({0.0: 0.5, 1.0: 0.6})},
    ("1c", "supported"): {"scores": spread_scores(0.002, 0.1)},
    ("1c", "contradicted"): {"scores": spread_scores(0.05, 0.005, range(8))},
    ("1c", "undecided"): {"scores": spread_scores(0.01, 0.04)},
    ("1c", "not tested"): {"scores": spread_scores(0.0, 0.04)},
    ("1d", "supported"): {"deltas": deltas(1.0)},
    ("1d", "differs from print"): {"deltas": deltas(2.0)},
    ("1d", "undecided"): {"deltas": deltas(1.24)},
    ("1e", "supported"): {"interpolation": encoders(0.1)},
    ("1e", "contradicted"): {"interpolation": encoders(0.3)},
    ("1e", "undecided"): {"interpolation": encoders(0.2)},
    ("1f", "supported"): {"interpolation": bent(0.0)},
    ("1f", "differs from print"): {"interpolation": bent(1.0)},
    ("1f", "undecided"): {"interpolation": bent(0.235)},
    ("1g", "supported"): {"deltas": deltas(1.0, 56)},
    ("1g", "differs from print"): {"deltas": deltas(1.0, 72)},
    ("1g", "undecided"): {"deltas": deltas(1.0, 64.5)},
    ("1h", "supported"): {"interpolation": spread_paths(0.1, 0.005)},
    ("1h", "contradicted"): {"interpolation": spread_paths(0.005, 0.1, range(8))},
    ("1h", "undecided"): {"interpolation": spread_paths(0.02, 0.03)},
    ("1i", "supported"): {"interpolation": parts(0.2, 0.0)},
    ("1i", "differs from print"): {"interpolation": parts(0.1, 0.0)},
    ("1i", "undecided"): {"interpolation": parts(0.172, 0.0, 0.02)},
    ("1i", "not tested"): {"interpolation": [gain for gain in parts(0.2, 0.0) if gain["part"] != "head"]},
    ("1j", "supported"): {
        "interpolation": straight(0.5, 0.8, role="source", start="target-only")
        + straight(0.8, 0.81, start="target-only")
    },
    ("1j", "contradicted"): {"interpolation": straight(0.8, 0.5, role="source", start="target-only")},
    ("1j", "undecided"): {"interpolation": straight(0.5, 0.502, role="source", start="target-only")},
    ("1k", "supported"): {"plane": surfaces(0.3, 0.05)},
    ("1k", "contradicted"): {"plane": surfaces(0.05, 0.3)},
    ("1k", "undecided"): {"plane": [point for point in surfaces(0.3, 0.05) if point["seed"] == 0]},
    ("1l", "supported"): {"plane": planes_of_encoders(0.1)},
    ("1l", "contradicted"): {"plane": planes_of_encoders(0.5)},
    ("1l", "undecided"): {"plane": planes_of_encoders(0.29, 0.02)},
}


def everything():
    return {
        "interpolation": straight(0.5, 0.8)
        + straight(0.9, 0.91, role="source")
        + straight(0.8, 0.81, start="target-only")
        + straight(0.5, 0.8, role="source", start="target-only")
        + [gain for gain in parts(0.2, 0.0) if gain["part"] != "all"],
        "scores": spread_scores(0.002, 0.1),
        "deltas": deltas(1.0, 56),
        "plane": surfaces(0.3, 0.05),
    }


@cache
def verdicts_without_strangers():
    own_outcomes = outcomes(make_measurements(interpolation=everything()["interpolation"]))
    assert len(own_outcomes) == 7
    return {name: own_outcome.found for name, own_outcome in own_outcomes.items()}


STRANGERS = {
    "another end": {"about": {"method": "few-shot", "target": "qad"}},
    "an adjusted encoder": {"about": {"encoder": "adjusted", "encoder.adjusted": "procrustes"}},
    "modules of another paper": {"about": {"encoder": "adapters", "encoder.modules": "adapter"}},
    "mixed inputs": {"inputs": "mixed"},
}


@pytest.mark.slow
@pytest.mark.parametrize("stranger", STRANGERS)
def test_a_path_that_is_not_the_papers_changes_no_verdict(stranger):
    rows = {"interpolation": everything()["interpolation"]}
    lower_texts = [
        point
        for role in ("source", "target")
        for point in straight(0.9, 0.2, role=role, **STRANGERS[stranger])
    ]
    outcomes_after = outcomes(make_measurements(interpolation=rows["interpolation"] + lower_texts))
    assert {name: outcome.found for name, outcome in outcomes_after.items()} == verdicts_without_strangers()


def test_a_path_of_another_training_has_a_check_of_its_own():
    slow = straight(0.9, 0.5, role="source", about={"optimization.learning_rate": 1e-3})
    outcome = outcomes(make_measurements(interpolation=straight(0.9, 0.91, role="source") + slow))["1a"]
    drops = [check.estimate.mean for check in outcome.checks if "drop" in check.about]
    assert [round(drop, 2) for drop in drops] == [0.8, -0.01]
    assert "learning_rate=0.001" in outcome.found


def test_deltas_of_another_triple_change_no_verdict():
    other_deltas = [delta(9.0, 10, seed=seed, **{"second.method": "few-shot"}) for seed in SEEDS]
    other_deltas += [delta(9.0, 10, seed=seed, about={"method": "x-mixup"}) for seed in SEEDS]
    outcomes_before, outcomes_after = (
        outcomes(make_measurements(deltas=deltas(1.0, 56) + more)) for more in ([], other_deltas)
    )
    assert [outcome.found for outcome in outcomes_after.values()] == [
        outcome.found for outcome in outcomes_before.values()
    ]
    assert {outcome.verdict for outcome in outcomes_after.values()} == {"supported"} and len(
        outcomes_after
    ) == 2


def test_three_seeds_cannot_tell_a_ratio_of_three_from_chance():
    outcome = outcomes(make_measurements(scores=spread_scores(0.01, 0.08, range(3))))["1c"]
    assert outcome.verdict == "undecided" and outcome.checks[0].estimate.mean > 3
    assert [check.statement for check in outcome.checks] == ["points", "logits"]
    assert "3 seeds are too few" in outcome.found


def test_many_targets_bring_no_more_freedom_than_their_seeds():
    rows = spread_scores(0.01, 0.05, range(3))
    more = [{**row, "language": f"qa{n}"} for row in rows if row["language"] == "qad" for n in range(6)]
    outcome, many = (outcomes(make_measurements(scores=own_rows))["1c"] for own_rows in (rows, rows + more))
    assert outcome.checks[0].estimate.low == pytest.approx(many.checks[0].estimate.low)


def test_pretraining_seeds_are_not_mixed_with_seeds_of_fine_tuning():
    rows = spread_scores(0.002, 0.1)
    runs = [
        {**row, "encoder.seed": seed, "encoder.run": f"small-{seed}", "score": row["score"] - 0.3 * seed}
        for seed in (0, 1)
        for row in rows
    ]
    single_outcome, both_outcomes = (
        outcomes(make_measurements(scores=items))["1c"] for items in (rows, runs)
    )
    points = [check for check in both_outcomes.checks if check.statement == "points"]
    assert [point.estimate.mean for point in points] == pytest.approx(
        [single_outcome.checks[0].estimate.mean] * 2
    )
    assert ["pretraining seed 1" in point.about for point in points] == [False, True]


@pytest.mark.slow
def test_one_seed_says_nothing_of_the_spread_over_seeds():
    rows = spread_scores(0.002, 0.1)
    single_result = [{**row, "encoder": "other", "encoder.run": "other"} for row in rows if row["seed"] == 0]
    for_each = [{**row, "encoder.seed": row["seed"], "encoder.run": f"small-{row['seed']}"} for row in rows]
    outcome_before, outcome_after = (
        outcomes(make_measurements(scores=items))["1c"] for items in (rows, rows + single_result)
    )
    assert [check.estimate.mean for check in outcome_after.checks] == [
        check.estimate.mean for check in outcome_before.checks
    ]
    assert "1c" not in outcomes(make_measurements(scores=single_result)) and "1c" not in outcomes(
        make_measurements(scores=for_each)
    )


def test_a_fall_beyond_the_two_models_does_not_count():
    beyond_points = [
        point for seed in SEEDS for point in path({-0.5: 0.0, 1.5: 0.0}, role="source", seed=seed)
    ]
    rows = straight(0.9, 0.91, role="source")
    assert outcomes(make_measurements(interpolation=rows + beyond_points))["1a"].verdict == "supported"


@pytest.mark.slow
def test_encoders_are_compared_on_paths_that_both_know():
    single_points = straight(0.1, 0.9, about={"encoder": "worse", "target": "qab"})
    outcome_before, outcome_after = (
        outcomes(make_measurements(interpolation=encoders(0.1) + more))["1e"] for more in ([], single_points)
    )
    assert outcome_before.found == outcome_after.found
    assert [check.judged for check in outcome_before.checks] == [
        True,
        False,
    ]  # The slope; its share of the gap.


@pytest.mark.slow
def test_numbers_of_a_study_that_was_run(study):
    judged_outcomes = outcomes(study("transfer"))
    means = {
        name: [check.estimate.mean for check in judged_outcome.checks if check.values]
        for name, judged_outcome in judged_outcomes.items()
    }
    expected = {
        "1a": [-0.012, -0.085],
        "1b": [0.97, 0.131],
        "1c": [0.717, 0.664],  # Mean distances from the median, in points and on the logit scale.
        "1d": [1.02],
        "1f": [0.82],
        "1h": [2.526, 2.032],
        "1j": [-0.028, -0.088, 1.0, 0.126],
        "1k": [0.167, 0.115],  # The plane has no point within 0.25.
    }
    assert {name: means[name] for name in expected} == {
        name: pytest.approx(values, abs=6e-3) for name, values in expected.items()
    }
    assert means["1g"] == pytest.approx([54], abs=0.5)
    assert "1e" not in judged_outcomes and len(judged_outcomes) == 9


def test_pretraining_seeds_are_the_units_of_an_encoder_that_has_several():
    """Four fine-tuning seeds of three encoders are three units, with one unit far from the others."""
    rows = [
        point
        for encoder_seed, rise in enumerate((0.02, 0.4, 0.03))
        for seed in range(4)
        for point in path(
            {a: 0.5 + a * (rise + wobble(seed, 0.001)) for a in ALPHAS},
            seed=seed,
            about={"encoder": "small", "encoder.seed": encoder_seed, "encoder.kind": "pretrain"},
        )
    ]
    check = outcomes(make_measurements(interpolation=rows))["1b"].checks[1]
    assert (check.unit, len(check.values)) == ("pretraining seed", 3)
    assert check.p_value > 0.2


def test_encoders_made_here_are_compared_by_their_pretraining_seeds_unpaired():
    def points_of(name, slopes):
        return [
            point
            for encoder_seed, slope in enumerate(slopes)
            for seed in range(4)
            for point in path(
                {a: (0.7 if name == "better" else 0.5) + slope * a + wobble(seed, 0.001) for a in ALPHAS},
                seed=seed,
                about={"encoder": name, "encoder.seed": encoder_seed, "encoder.kind": "pretrain"},
            )
        ]

    rows = points_of("worse", (0.26, 0.28, 0.27)) + points_of("better", (0.10, 0.50, 0.12))
    check, share = outcomes(make_measurements(interpolation=rows))["1e"].checks
    assert check.judged and not share.judged and "share of the gap" in share.about
    assert (check.unit, len(check.values)) == ("pretraining seed", 3)
    assert check.p_value > 0.5


def test_a_lowrank_model_is_none_of_the_papers():
    rows = straight(0.9, 0.91, role="source")
    other_item = [{**row, "peft": "lora"} for row in straight(0.9, 0.5, role="source")]
    outcome_before, outcome_after = (
        outcomes(make_measurements(interpolation=own_rows))["1a"] for own_rows in (rows, rows + other_item)
    )
    assert outcome_before.found == outcome_after.found
