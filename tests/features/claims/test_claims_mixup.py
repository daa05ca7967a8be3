"""Each claim on X-Mixup follows its rule, whatever else the folder contains."""

from functools import cache

import pytest

from isogloss.features.claims.four_papers import CLAIMS as ALL
from isogloss.features.claims.mixup_comparisons import CLASSIFICATION
from isogloss.tasks import ALL_TASKS
from made_up_rows import (
    MIXES,
    TRANSLATES,
    centroid,
    cka,
    make_measurements,
    mixup_ratio,
    score,
    stored_predictions,
)
from made_up_studies import Judged

CLAIMS = [claim for claim in ALL if claim.id[0] == "2"]

SEEDS = range(5)

PLAIN = {"method": "source-only"}

LANGUAGES = [f"qa{letter}" for letter in "bcdefghijk"]

SIZE = 0.004

UNSURE = 0.002
"""An effect that seeds differing by SIZE do not tell from none."""


def outcomes(measurements):
    return Judged(CLAIMS, measurements)


def wobble(seed, size=SIZE):
    return size * (-1, 0.5, 1, -0.5, 0)[seed % 5]


def system(mixes, mean, *, inputs="paired", size=SIZE, language="qad", **more):
    """Scores of one system: one for each seed."""
    return [
        score(mean + wobble(seed, size), language=language, seed=seed, inputs=inputs, about={**mixes, **more})
        for seed in SEEDS
    ]


def bench(effect=0.1, **more):
    """The whole by this much above translate-train, which is 0.1 above source-only."""
    return [
        *system(MIXES, 0.7 + effect, **more),
        *system(TRANSLATES, 0.7, inputs="", size=0, **more),
        *system(PLAIN, 0.6, inputs="", size=SIZE / 8, **more),  # Five equal differences would decide nothing.
    ]


def unmixed_system(effect, language="qad"):
    return system(MIXES, 0.7 + effect, inputs="", language=language)


def no_mixup(mean, inputs=""):
    """X-Mixup without mixup: also at inference, as in Table 5, or read paired."""
    return system({**MIXES, "method.ratio": 0.0}, mean, inputs=inputs, size=0)


def source(effect):
    return unmixed_system(effect, "qaa") + system(TRANSLATES, 0.7, inputs="", size=SIZE / 8, language="qaa")


def classification_rows(effect):
    """Without MSE by this much above without KL."""
    task = {"task": "nli", "corpus": "xnli"}
    plain_fields = {"method.mse": 0.6 + effect, "method.kl": 0.6}
    return bench(0.1, **task) + [
        row
        for part, mean in plain_fields.items()
        for row in system({**MIXES, **task, part: 0.0}, mean, size=SIZE if part == "method.mse" else 0)
    ]


def layers(effect):
    mixes = [row for n in (1, 2) for row in system({**MIXES, "method.layer": n}, 0.7 + effect)]
    return mixes + bench()[5:]


def states(effect, state_before=0.1):
    """CKA: X-Mixup by this much above translate-train, which is that much above source-only."""
    return [
        item
        for seed in SEEDS
        for item in (
            cka(0.5 + effect + wobble(seed), seed=seed, about=MIXES),
            cka(0.5, seed=seed, about=TRANSLATES),
            cka(0.5 - state_before, seed=seed, about=PLAIN),
        )
    ]


def maps(effect):
    return [
        item
        for seed in SEEDS
        for item in (
            centroid(0.3 + effect + wobble(seed), seed=seed, **MIXES),
            centroid(0.3, seed=seed, **TRANSLATES),
        )
    ]


def ratios(share):
    return [mixup_ratio(0.25, 0.25 * (share + wobble(seed)), seed=seed) for seed in SEEDS]


def correlated_rows(order, languages=LANGUAGES):
    """CKA and scores of source-only, the languages' ranks by score in this order of their ranks by CKA."""
    similar_ckas = [
        cka(0.5 + 0.01 * n, language=language, about=PLAIN) for n, language in enumerate(languages)
    ]
    scores = [
        score(0.5 + 0.01 * rank, language=language) for language, rank in zip(languages, order, strict=True)
    ]
    return {"scores": scores, "cka": similar_ckas}


def gain_rows(order):
    """Gains in CKA by rank, and in score in this order of ranks, of one model of many targets."""
    codes = [f"x{n}" for n in range(len(order))]
    target = {"target": "+".join(codes)}
    scores = []
    similar_ckas = []
    for n, (language, rank) in enumerate(zip(codes, order, strict=True)):
        for mixes, inputs, name in ((MIXES, "paired", 1), (TRANSLATES, "", 0)):
            scores.append(
                score(0.5 + name * 0.001 * rank, language=language, inputs=inputs, about={**mixes, **target})
            )
            similar_ckas.append(cka(0.5 + name * 0.001 * n, language=language, about={**mixes, **target}))
    return {"scores": scores, "cka": similar_ckas}


def ablation_rows(effect):
    rows = [row for row in bench(0.1) if row["method"] != "x-mixup"] + system(MIXES, 0.8)
    return rows + system({**MIXES, "method.mse": 0.0}, 0.8 - effect, size=0)


def unseen_rows(effect):
    return bench() + bench(effect, language="qae")


MIXED_UP = [0, 7, 2, 9, 4, 1, 6, 3, 8, 5]

CASES = {
    ("2a", "supported"): {"scores": bench(0.1)},
    ("2a", "mixed"): {"scores": bench(-0.1)},
    ("2a", "undecided"): {"scores": bench(UNSURE)},
    ("2a", "not tested"): {"scores": system(MIXES, 0.7)},
    ("2b", "supported"): {"cka": states(0.1)},
    ("2b", "contradicted"): {"cka": states(-0.05)},
    ("2b", "undecided"): {"cka": states(UNSURE)},
    ("2c", "supported"): correlated_rows(range(10)),
    ("2c", "contradicted"): correlated_rows(range(9, -1, -1)),
    ("2c", "undecided"): correlated_rows(MIXED_UP),
    ("2c", "not tested"): correlated_rows([0, 1, 2, 4, 3], LANGUAGES[:5]),
    ("2d", "supported"): {"scores": ablation_rows(0.1)},
    ("2d", "contradicted"): {"scores": ablation_rows(-0.1)},
    ("2d", "undecided"): {"scores": ablation_rows(UNSURE)},
    ("2e", "supported"): {"scores": unseen_rows(0.1)},
    ("2e", "contradicted"): {"scores": unseen_rows(-0.1)},
    ("2e", "undecided"): {"scores": unseen_rows(UNSURE)},
    ("2f", "supported"): {"mixup_ratio": ratios(0.2)},
    ("2f", "differs from print"): {"mixup_ratio": ratios(0.01)},
    ("2f", "undecided"): {"mixup_ratio": ratios(0.1 + UNSURE)},
    ("2g", "supported"): {"scores": bench(0.1) + source(0.0)},
    ("2g", "contradicted"): {"scores": bench(0.0) + source(0.1)},
    ("2g", "undecided"): {"scores": bench(UNSURE) + [{**row, "score": 0.7} for row in source(0.0)]},
    ("2g", "not tested"): {"scores": bench(0.1)},
    ("2h", "supported"): {"scores": bench() + source(0.1)},
    ("2h", "contradicted"): {"scores": bench() + source(-0.1)},
    ("2h", "undecided"): {"scores": bench() + source(UNSURE)},
    ("2i", "supported"): {"scores": classification_rows(0.1)},
    ("2i", "contradicted"): {"scores": classification_rows(-0.1)},
    ("2i", "undecided"): {"scores": classification_rows(UNSURE)},
    ("2j", "supported"): {"scores": bench() + unmixed_system(0.1) + no_mixup(0.7)},
    ("2j", "contradicted"): {"scores": bench() + unmixed_system(-0.1) + no_mixup(0.7)},
    ("2j", "undecided"): {"scores": bench() + unmixed_system(UNSURE) + no_mixup(0.7)},
    ("2j", "not tested"): {"scores": bench() + unmixed_system(0.1)},
    ("2k", "supported"): {"scores": layers(0.1)},
    ("2k", "contradicted"): {"scores": layers(-0.1)},
    ("2k", "undecided"): {"scores": layers(UNSURE)},
    ("2l", "supported"): {"representation_map": maps(-0.1)},
    ("2l", "contradicted"): {"representation_map": maps(0.1)},
    ("2l", "undecided"): {"representation_map": maps(UNSURE)},
    ("2m", "supported"): gain_rows([(n * 37) % 101 for n in range(101)]),
    ("2m", "differs from print"): gain_rows(range(20)),
    ("2m", "undecided"): gain_rows(MIXED_UP),
}


def everything():
    return {
        "scores": classification_rows(0.1)
        + unseen_rows(0.1)
        + source(0.05)
        + unmixed_system(0.05)
        + layers(0.1)[:10],
        "cka": states(0.1),
        "mixup_ratio": ratios(0.2),
        "representation_map": maps(-0.1),
    }


def verdicts_by_claim(measurements):
    return {name: (outcome.verdict, outcome.found) for name, outcome in outcomes(measurements).items()}


def test_alike_states_are_those_of_translate_train_not_of_source_only():
    """Translations raise CKA even without mixup, so a rise by X-Mixup is not a finding then (Table 7)."""
    outcome = outcomes(make_measurements(cka=states(-0.05, state_before=0.2)))["2b"]
    assert outcome.verdict == "contradicted" and "− source-only 0.150" in outcome.found


def test_an_unseen_gain_says_what_inference_adds_and_what_translate_test_scores():
    rows = unseen_rows(0.1) + unmixed_system(0.01, "qae")
    rows += system(PLAIN, 0.85, inputs="translated", language="qae", size=0)
    outcome = outcomes(make_measurements(scores=rows))["2e"]
    assert outcome.verdict == "supported"
    assert "without translations at inference 1.0, x-mixup − translate-test −5.0" in outcome.found


def with_examples(differences, n=2000):
    """X-Mixup above translate-train by these on each seed, always right where that is: sure over examples."""
    rows = [
        score(base + own_gain, seed=seed, inputs=inputs, about=mixes)
        for seed, gain in enumerate(differences)
        for mixes, inputs, base, own_gain in (
            (MIXES, "paired", 0.6, gain),
            (TRANSLATES, "", 0.6, 0.0),
            (PLAIN, "", 0.4, 0.0),
        )
    ]
    return rows, stored_predictions(rows, lambda row: [float(index < row["score"] * n) for index in range(n)])


def test_examples_without_seeds_support_nothing():
    """p = .29 over five seeds, and as good as 0 over two thousand examples of these seeds."""
    rows, predictions = with_examples([0.099, 0.087, -0.003, -0.018, -0.009])
    outcome = outcomes(make_measurements(predictions, scores=rows))["2a"]
    first_check = outcome.checks[0]
    assert first_check.comparison.p_examples < 1e-4 < 0.25 < first_check.comparison.p_units
    assert outcome.verdict == "undecided"
    assert "over seeds" in outcome.found and "over examples" in outcome.found


@pytest.mark.slow
def test_without_mixup_is_read_without_translations_as_in_table_5():
    """The stricter system, read paired, changes the sign for topics (36.4, 39.4 paired, 34.6 unpaired)."""
    rows = [row for row in bench() if row["method"] != "x-mixup"] + system(MIXES, 0.364)
    outcome = outcomes(make_measurements(scores=rows + no_mixup(0.346) + no_mixup(0.394, "paired")))["2d"]
    judged_check, stricter = outcome.checks
    assert outcome.verdict == "supported" and judged_check.estimate.mean == pytest.approx(0.018)
    assert not stricter.judged and stricter.estimate.mean == pytest.approx(-0.03)
    assert "not judged: upos qaa: whole − without mixup, read paired −3.0" in outcome.found
    assert "tests" not in outcome.found
    paired_alone = outcomes(make_measurements(scores=rows + no_mixup(0.394, "paired")))["2d"]
    assert paired_alone.verdict == "not tested"


def test_mixing_in_training_is_compared_with_training_without_it():
    rows = bench() + unmixed_system(-0.1) + no_mixup(0.5)
    outcome = outcomes(make_measurements(scores=rows))["2j"]
    assert outcome.verdict == "supported" and [check.judged for check in outcome.checks] == [True, False]
    assert [round(check.estimate.mean, 2) for check in outcome.checks] == [0.1, -0.1]


@pytest.mark.slow
def test_an_ablation_needs_seeds_too_and_all_of_them_are_corrected_together():
    rows, predictions = with_examples([0.099, 0.087, -0.003, -0.018, -0.009])
    left = [{**row, **{"method.mse": 0.0}, "way": "without mse"} for row in rows if row["target"]]
    left = [row for row in left if row["method"] == "x-mixup"]
    level = [{**row, "score": 0.6, "run": f"{row['run']} less"} for row in left]
    predictions |= stored_predictions(level, lambda row: [float(index < 0.6 * 2000) for index in range(2000)])
    outcome = outcomes(make_measurements(predictions, scores=rows + level))["2d"]
    assert outcome.checks[0].comparison.p_examples < 1e-4
    assert outcome.verdict == "undecided"
    many = ablation_rows(0.1) + system({**MIXES, "method.schedule": False}, 0.7)
    assert "of 2 tests" in outcomes(make_measurements(scores=many))["2d"].found


def test_chance_is_undecided_and_says_what_would_have_been_seen():
    outcome = outcomes(make_measurements(scores=bench(-UNSURE)))["2a"]
    assert outcome.verdict == "undecided" and "on would have been seen" in outcome.found


def test_five_languages_test_no_correlation():
    outcome = outcomes(make_measurements(**CASES["2c", "not tested"]))["2c"]
    assert "5 languages" in outcome.found and outcome.verdict == "not tested"


def test_every_encoder_counts_whatever_its_depth():
    small_seeds = states(-0.05)
    deep = [
        {**row, "layer": 24, "cka": row["cka"] + (0.2 if row["method"] == "x-mixup" else 0)}
        for row in (
            {**small_seed, "encoder": "large", "encoder.run": "large", "encoder.name": "large"}
            for small_seed in small_seeds
        )
    ]
    lower = [{**row, "layer": 2, "cka": 0.9} for row in small_seeds]
    single_outcome, both_outcomes = (
        outcomes(make_measurements(cka=rows))["2b"] for rows in (small_seeds, small_seeds + deep + lower)
    )
    assert len(both_outcomes.checks) == 2 and both_outcomes.verdict == "mixed"
    assert sorted(round(check.estimate.mean, 3) for check in both_outcomes.checks) == [-0.05, 0.15]
    assert (
        single_outcome.checks[0].values
        == next(check for check in both_outcomes.checks if check.estimate.mean < 0).values
    )


@cache
def verdicts_without_strangers():
    return verdicts_by_claim(make_measurements(scores=unseen_rows(0.1)))


STRANGERS = {
    "an adjusted encoder": {"encoder": "adjusted", "encoder.adjusted": "procrustes"},
    "a start from another model": {"after.method": "source-only"},
    "a rate of its own for λ": {"method.ratio_rate": 50.0},
    "another residual": {"method.residual": "summed"},
    "attention by cosine": {"method.attends": "cosine"},
    "attention by word links": {"method.attends": "links"},
    "a draw for each example": {"method.sampling": "example"},
}


@pytest.mark.slow
@pytest.mark.parametrize("stranger", STRANGERS)
def test_what_the_paper_does_not_have_decides_none_of_its_claims(stranger):
    bad_scores = system({**MIXES, **STRANGERS[stranger]}, 0.1) + system(
        {**TRANSLATES, **STRANGERS[stranger]}, 0.2
    )
    assert (
        verdicts_by_claim(make_measurements(scores=unseen_rows(0.1) + bad_scores))
        == verdicts_without_strangers()
    )


@pytest.mark.slow
def test_the_baseline_is_by_the_same_translator():
    noisy = {"translator": "seq2seq", "translator.noise": 0.3}
    rows = (
        system({**MIXES, **noisy}, 0.5) + system(TRANSLATES, 0.7, inputs="") + system(PLAIN, 0.6, inputs="")
    )
    assert outcomes(make_measurements(scores=rows))["2a"].verdict == "not tested"
    rows += system({**TRANSLATES, **noisy}, 0.4, inputs="", size=0)
    first_check = outcomes(make_measurements(scores=rows))["2a"].checks[0]
    assert first_check.comparison.baseline_score == pytest.approx(0.4)


def test_the_baseline_of_several_is_the_one_trained_most_alike():
    faster = {"optimization.learning_rate": 1e-3}
    rows = bench(0.1) + system({**TRANSLATES, **faster}, 0.1, inputs="")
    assert outcomes(make_measurements(scores=rows))["2a"].checks[
        0
    ].comparison.baseline_score == pytest.approx(0.7)


@pytest.mark.slow
def test_an_ablation_differs_in_one_part_alone():
    rows = ablation_rows(0.1)
    two = system({**MIXES, "method.mse": 0.0, "method.schedule": False}, 0.9)
    other_scores = system({**MIXES, "method.mse": 0.0, "optimization.learning_rate": 1e-3}, 0.9)
    assert (
        verdicts_by_claim(make_measurements(scores=rows))["2d"]
        == verdicts_by_claim(make_measurements(scores=rows + two + other_scores))["2d"]
    )
    off_scores = system({**MIXES, "method.ratio": 0.0, "method.learned_ratio": False}, 0.6)
    assert "without mixup" in verdicts_by_claim(make_measurements(scores=rows + off_scores))["2d"][1]


def test_kl_is_no_part_where_an_input_has_many_answers():
    """A tagger without KL is the whole X-Mixup."""
    rows = [row for row in bench(0.1) if row["method"] != "x-mixup"]
    row = outcomes(make_measurements(scores=rows + system({**MIXES, "method.kl": 0.0}, 0.8)))
    assert row["2a"].verdict == "supported" and "2d" not in row


@pytest.mark.parametrize("task", CLASSIFICATION)
def test_kl_is_a_part_wherever_predictions_are_kept_consistent(task):
    rows = bench(0.1, task=task) + system({**MIXES, "task": task, "method.kl": 0.0}, 0.6)
    row = outcomes(make_measurements(scores=rows))
    assert len(row["2a"].checks) == 2 and "without KL" in row["2d"].checks[0].about


def test_predictions_are_kept_consistent_in_classification_alone():
    consistent = {
        name for name, task in ALL_TASKS.items() if (one_answer := task.one_answer) and one_answer.divergence
    }
    assert consistent == set(CLASSIFICATION)


def test_every_target_that_a_model_was_made_for_counts():
    """Two models of one target each are one system with two targets. Neither speaks of the other's."""
    other_item = {"target": "qab"}
    rows = bench(0.1) + system({**MIXES, **other_item}, 0.9, language="qab")
    rows += system({**TRANSLATES, **other_item}, 0.7, inputs="", size=0, language="qab")
    rows += system(PLAIN, 0.6, inputs="", size=0, language="qab")
    rows += system({**TRANSLATES, **other_item}, 0.1, inputs="", size=0)
    first_check = outcomes(make_measurements(scores=rows))["2a"].checks[0]
    assert first_check.comparison.languages == ("qab", "qad")
    assert first_check.estimate.mean == pytest.approx(0.15)


@pytest.mark.slow
def test_layers_of_classification_are_judged_as_the_paper_does():
    task = {"task": "nli", "corpus": "xnli"}
    rows = [row for row in bench(0.1, **task) if row["method"] != "x-mixup"]
    for layer, mean in ((1, 0.8), (2, 0.78), (3, 0.6), (4, 0.5)):
        rows += system({**MIXES, **task, "method.layer": layer}, mean, size=SIZE if layer < 4 else 0)
    outcome = outcomes(make_measurements(scores=rows))["2k"]
    assert outcome.verdict == "supported" and len(outcome.checks) == 3


@pytest.mark.nightly
@pytest.mark.slow
def test_numbers_are_those_of_the_reports_before(study):
    own_outcomes = outcomes(study("mixup"))
    means = {
        name: [check.estimate.mean for check in own_outcome.checks if check.values]
        for name, own_outcome in own_outcomes.items()
    }
    assert means["2a"] == pytest.approx([-0.195, 0.049, -0.033, 0.022], abs=5e-4)
    assert sorted(means["2b"]) == pytest.approx([-0.0264, -0.0162], abs=1e-3)
    assert sorted(means["2d"])[:3] == pytest.approx([-0.079, -0.029, -0.023], abs=5e-4)
    assert (
        "− source-only −0.027" in own_outcomes["2b"].found
        and "− source-only −0.034" in own_outcomes["2b"].found
    )
    assert own_outcomes["2f"].verdict == "differs from print" and "0.249" in own_outcomes["2f"].found
    assert len(own_outcomes) == 11


def test_a_paired_score_that_equals_a_plain_one_is_kept(study):
    rows = study("mixup").frame("scores")
    nli = rows[(rows["task"] == "nli") & (rows["method"] == "x-mixup") & (rows["inputs"] == "paired")]
    assert nli.groupby("way").size().tolist() == [12, 12, 12]


@pytest.mark.slow
def test_gains_in_cka_are_those_of_unmixed_states():
    """Mixed states include source states, so their CKA differs."""
    rows = gain_rows(MIXED_UP)
    mixed_result = [
        {**row, "inputs": "paired", "cka": 1 - row["cka"], "run": f"{row['run']} paired"}
        for row in rows["cka"]
        if row["method"] == "x-mixup"
    ]
    pair = {**rows, "cka": rows["cka"] + mixed_result}
    assert (
        verdicts_by_claim(make_measurements(**pair))["2m"]
        == verdicts_by_claim(make_measurements(**rows))["2m"]
    )


@pytest.mark.slow
def test_gains_of_two_targets_take_nothing_from_those_of_many():
    many = gain_rows(MIXED_UP)
    two = {"corpus": "masakhapos", "task": "upos", "model.corpus": "masakhapos"}
    rows = {
        name: rows
        + [{**row, **two, **{key: f"{row[key]} of two" for key in ("run", "model")}} for row in few_gain_rows]
        for (name, rows), few_gain_rows in zip(many.items(), gain_rows([0, 1]).values(), strict=True)
    }
    (check,) = outcomes(make_measurements(**rows))["2m"].checks
    assert len(check.values) == len(MIXED_UP)


def map_rows(distance, *languages, **options):
    """A map of these languages for each seed."""
    return [
        {
            **centroid(distance + wobble(seed), seed=seed, language=language, **options),
            "run": f"{languages} {options} {seed}",
        }
        for seed in SEEDS
        for language in languages
    ]


def test_maps_of_models_of_two_sources_are_compared():
    rows = map_rows(0.3, "qaa", "qad", source="qaa+qab", **TRANSLATES)
    rows += map_rows(0.2, "qaa", "qad", source="qaa+qab", **MIXES)
    assert outcomes(make_measurements(representation_map=rows))["2l"].checks[
        0
    ].estimate.mean == pytest.approx(-0.1)


def test_maps_of_other_languages_are_not_compared():
    """The more languages, the larger the share of variance between them."""
    three = ("qaa", "qab", "qad")
    two = ("qaa", "qad")
    rows = map_rows(0.3, *three, **TRANSLATES) + map_rows(0.4, *three, **MIXES)
    paired_rows = map_rows(0.2, *two, **MIXES, inputs="paired")
    outcome = outcomes(make_measurements(representation_map=rows + paired_rows))["2l"]
    assert [round(check.estimate.mean, 3) for check in outcome.checks] == [0.1]
    single_rows = map_rows(0.3, *three, **TRANSLATES) + paired_rows
    assert outcomes(make_measurements(representation_map=single_rows))["2l"].verdict == "not tested"
    both_outcomes = outcomes(
        make_measurements(representation_map=rows + paired_rows + map_rows(0.1, *two, **TRANSLATES))
    )["2l"]
    assert [round(check.estimate.mean, 3) for check in both_outcomes.checks] == [0.1, 0.1]


@pytest.mark.slow
def test_without_translate_train_there_are_no_gains_to_compare():
    own_outcomes = outcomes(make_measurements(scores=system(MIXES, 0.7), cka=[cka(0.5, about=MIXES)]))
    assert own_outcomes["2a"].verdict == "not tested" and "2m" not in own_outcomes
