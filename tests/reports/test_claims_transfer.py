"""Each claim of the first paper follows its rule, whatever else the folder contains."""

from functools import cache

import pytest
from made_up_rows import delta, make_measurements, path, plane, score

from isogloss.reports.report import CLAIMS as ALL
from isogloss.reports.verdicts import judge

CLAIMS = [one for one in ALL if one.paper == 1]

SEEDS = range(6)

ALPHAS = (0.0, 0.25, 0.5, 0.75, 1.0)


def outcomes(m):
    return {one.claim.id: one for one in judge(CLAIMS, m)}


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
    found = []
    for seed in seeds:
        found.append(score(0.9 + source * (-1) ** seed, language="qaa", seed=seed))
        found.append(score(0.6 + target * (seed - 2.5) / 2, language="qad", seed=seed))
    return found


def spread_paths(start, end, seeds=SEEDS):
    found = []
    for seed in seeds:
        first = 0.5 + start * (-1) ** seed
        last = 0.8 + end * (seed - 2.5) / 2
        found += path({a: first + a * (last - first) for a in ALPHAS}, seed=seed)
    return found


def parts(encoder, head, size=0.004):
    gains = {"all": (0.2, 0.004), "encoder": (encoder, size), "head": (head, 0.004)}
    return [one for part, (gain, own) in gains.items() for one in straight(0.5, 0.5 + gain, own, part=part)]


def encoders(better_climb, size=0.004):
    climbs = {"better": (0.7, better_climb), "worse": (0.5, 0.2)}
    about = {"source": "qaa"}
    return [
        one
        for name, (low, climb) in climbs.items()
        for one in straight(
            low, low + climb, size if name == "better" else 0.0, about={**about, "encoder": name}
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
    return [one for one in rows if one["role"] == "target"]


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
    ("1i", "not tested"): {"interpolation": [one for one in parts(0.2, 0.0) if one["part"] != "head"]},
    ("1j", "supported"): {
        "interpolation": straight(0.5, 0.8, role="source", start="target-only")
        + straight(0.8, 0.81, start="target-only")
    },
    ("1j", "contradicted"): {"interpolation": straight(0.8, 0.5, role="source", start="target-only")},
    ("1j", "undecided"): {"interpolation": straight(0.5, 0.502, role="source", start="target-only")},
    ("1k", "supported"): {"plane": surfaces(0.3, 0.05)},
    ("1k", "contradicted"): {"plane": surfaces(0.05, 0.3)},
    ("1k", "undecided"): {"plane": [one for one in surfaces(0.3, 0.05) if one["seed"] == 0]},
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
        + [one for one in parts(0.2, 0.0) if one["part"] != "all"],
        "scores": spread_scores(0.002, 0.1),
        "deltas": deltas(1.0, 56),
        "plane": surfaces(0.3, 0.05),
    }


@cache
def verdicts_without_strangers():
    own = outcomes(make_measurements(interpolation=everything()["interpolation"]))
    assert len(own) == 7
    return {name: one.found for name, one in own.items()}


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
    down = [
        one for role in ("source", "target") for one in straight(0.9, 0.2, role=role, **STRANGERS[stranger])
    ]
    after = outcomes(make_measurements(interpolation=rows["interpolation"] + down))
    assert {name: one.found for name, one in after.items()} == verdicts_without_strangers()


def test_a_path_of_another_training_has_a_check_of_its_own():
    slow = straight(0.9, 0.5, role="source", about={"optimization.learning_rate": 1e-3})
    one = outcomes(make_measurements(interpolation=straight(0.9, 0.91, role="source") + slow))["1a"]
    drops = [check.estimate.mean for check in one.checks if "drop" in check.about]
    assert [round(drop, 2) for drop in drops] == [0.8, -0.01]
    assert "learning_rate=0.001" in one.found


def test_deltas_of_another_triple_change_no_verdict():
    others = [delta(9.0, 10, seed=seed, **{"second.method": "few-shot"}) for seed in SEEDS]
    others += [delta(9.0, 10, seed=seed, about={"method": "x-mixup"}) for seed in SEEDS]
    before, after = (outcomes(make_measurements(deltas=deltas(1.0, 56) + more)) for more in ([], others))
    assert [one.found for one in after.values()] == [one.found for one in before.values()]
    assert {one.verdict for one in after.values()} == {"supported"} and len(after) == 2


def test_three_seeds_cannot_tell_a_ratio_of_three_from_chance():
    one = outcomes(make_measurements(scores=spread_scores(0.01, 0.08, range(3))))["1c"]
    assert one.verdict == "undecided" and one.checks[0].estimate.mean > 3
    assert [check.statement for check in one.checks] == ["points", "logits"]
    assert "3 seeds are too few" in one.found


def test_many_targets_bring_no_more_freedom_than_their_seeds():
    rows = spread_scores(0.01, 0.05, range(3))
    more = [{**row, "language": f"qa{n}"} for row in rows if row["language"] == "qad" for n in range(6)]
    one, many = (outcomes(make_measurements(scores=own))["1c"] for own in (rows, rows + more))
    assert one.checks[0].estimate.low == pytest.approx(many.checks[0].estimate.low)


def test_pretraining_seeds_are_not_mixed_with_seeds_of_fine_tuning():
    rows = spread_scores(0.002, 0.1)
    runs = [
        {**row, "encoder.seed": seed, "encoder.run": f"small-{seed}", "score": row["score"] - 0.3 * seed}
        for seed in (0, 1)
        for row in rows
    ]
    alone, both = (outcomes(make_measurements(scores=some))["1c"] for some in (rows, runs))
    points = [one for one in both.checks if one.statement == "points"]
    assert [one.estimate.mean for one in points] == pytest.approx([alone.checks[0].estimate.mean] * 2)
    assert ["pretraining seed 1" in one.about for one in points] == [False, True]


@pytest.mark.slow
def test_one_seed_says_nothing_of_the_spread_over_seeds():
    rows = spread_scores(0.002, 0.1)
    alone = [{**row, "encoder": "other", "encoder.run": "other"} for row in rows if row["seed"] == 0]
    for_each = [{**row, "encoder.seed": row["seed"], "encoder.run": f"small-{row['seed']}"} for row in rows]
    before, after = (outcomes(make_measurements(scores=some))["1c"] for some in (rows, rows + alone))
    assert [one.estimate.mean for one in after.checks] == [one.estimate.mean for one in before.checks]
    assert "1c" not in outcomes(make_measurements(scores=alone)) and "1c" not in outcomes(
        make_measurements(scores=for_each)
    )


def test_a_fall_beyond_the_two_models_does_not_count():
    beyond = [point for seed in SEEDS for point in path({-0.5: 0.0, 1.5: 0.0}, role="source", seed=seed)]
    rows = straight(0.9, 0.91, role="source")
    assert outcomes(make_measurements(interpolation=rows + beyond))["1a"].verdict == "supported"


@pytest.mark.slow
def test_encoders_are_compared_on_paths_that_both_know():
    alone = straight(0.1, 0.9, about={"encoder": "worse", "target": "qab"})
    before, after = (
        outcomes(make_measurements(interpolation=encoders(0.1) + more))["1e"] for more in ([], alone)
    )
    assert before.found == after.found
    assert [check.judged for check in before.checks] == [True, False]  # The slope; its share of the gap.


@pytest.mark.slow
def test_numbers_of_a_study_that_was_run(study):
    judged = outcomes(study("transfer"))
    means = {
        name: [check.estimate.mean for check in one.checks if check.values] for name, one in judged.items()
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
    assert "1e" not in judged and len(judged) == 9


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
    one = outcomes(make_measurements(interpolation=rows))["1b"].checks[1]
    assert (one.unit, len(one.values)) == ("pretraining seed", 3)
    assert one.p_value > 0.2


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
    other = [{**row, "peft": "lora"} for row in straight(0.9, 0.5, role="source")]
    before, after = (outcomes(make_measurements(interpolation=own))["1a"] for own in (rows, rows + other))
    assert before.found == after.found
