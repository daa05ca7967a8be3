from typing import Any

import numpy as np
import pytest

from each import each
from hand_made import golden
from isogloss.features.claims.four_papers import CLAIMS as ALL
from isogloss.features.claims.interference import compare_modules
from isogloss.reports.measurements import Measurements
from isogloss.reports.similarity import noise_corrected
from made_up_rows import make_measurements
from made_up_studies import (
    DOWN,
    ENCODER,
    FLAT,
    MODEL,
    NOISY,
    UP,
    WITHIN,
    Judged,
    Rows,
    halves,
    kind_cosines,
    layer_cosines,
    meta,
    old_claim,
    pretrained_facts,
    right_or_wrong,
    seeds,
    similar,
)

CLAIMS = [claim for claim in ALL if claim.id[0] == "4"]

JOINT = pretrained_facts()
ALONE = pretrained_facts(languages="qaa")
FFN, ATTENTION, ADAPTER, SHARED = (
    pretrained_facts(element) for element in ("feed-forward", "attention", "adapter", "shared-adapter")
)
START = halves(JOINT, [0.0] * 5, [0.0] * 5)
LITTLE = {"lines": '[["qad", 100]]'}


def mono(gain: tuple[float, ...]) -> Rows:
    return [*START, *seeds(ALONE, gain, **WITHIN)]


def adapter_rows(inner_value: tuple[float, ...], zero_shot: tuple[float, ...]) -> Rows:
    return [
        *START,
        *(row for kind in (FFN, ATTENTION, ADAPTER) for row in halves(kind, inner_value, zero_shot)),
    ]


def meta_rows(inner_value: tuple[float, ...], zero_shot: tuple[float, ...]) -> Rows:
    other_rows = [row for adapter in (ADAPTER, SHARED) for row in halves(adapter, [0.0] * 5, [0.0] * 5)]
    return [*START, *other_rows, *halves(meta(), inner_value, zero_shot)]


def perplexities(adapter: tuple[float, ...], learned_value: tuple[float, ...]) -> Rows:
    values = {"": (JOINT, [0.0] * 5), "a": (ADAPTER, adapter), "m": (meta(), learned_value)}
    return [
        {**MODEL, **ENCODER, **encoder, "encoder.seed": seed, "language": language, "split": "dev",
         "step": step, "score": 50 * np.exp(-step / 100 + gain)}
        for encoder, gains in values.values()
        for seed, gain in enumerate(gains)
        for language in ("qaa", "qad")
        for step in (10, 20)
    ]  # fmt: skip


def curves(*encoders: dict[str, Any], ends: tuple[float, float, float] = (50.0, 40.0, 39.8)) -> Rows:
    """Give held-out perplexity at a tenth, nine tenths and the end of 100 steps."""
    return [
        {**MODEL, **ENCODER, **encoder, "encoder.seed": seed, "encoder.run": f"{encoder['encoder']}-{seed}",
         **WITHIN, "split": "dev", "step": step, "score": score}
        for encoder in encoders
        for seed in range(2)
        for step, score in zip((10, 90, 100), ends, strict=True)
    ]  # fmt: skip


SETTLED = curves(JOINT, FFN, ATTENTION, ADAPTER)
OVERFITTED = curves(pretrained_facts(languages="qad", **LITTLE), ends=(50.0, 55.0, 60.0))


def conflicts(cosines: tuple[float, ...], encoder: dict[str, Any] = JOINT, **facts: Any) -> Rows:
    whole_result = [{(np.nan, "all"): cosine} for cosine in cosines]
    return [row for seed, part in enumerate(whole_result) for row in similar(encoder, seed, part, **facts)]


def two_pairs(close: float, distant: float) -> dict[str, Rows]:
    other_pretrained_facts = pretrained_facts(languages="qaa+qab")
    training = [
        *conflicts((close,) * 3),
        *conflicts((distant, distant + 0.02, distant - 0.02), other_pretrained_facts),
    ]
    finished_rows = [*conflicts((0.5,) * 3), *conflicts((0.5,) * 3, other_pretrained_facts, overlap=0.1)]
    return {"training_conflict": training, "gradient_conflict": finished_rows}


def parts(slopes: tuple[float, ...], attention: tuple[float, ...]) -> Rows:
    pair = enumerate(zip(slopes, attention, strict=True))
    return [row for seed, item in pair for row in similar(JOINT, seed, layer_cosines(*item))]


def masks(slopes: tuple[float, ...], attention: tuple[float, ...]) -> Rows:
    pair = enumerate(zip(slopes, attention, strict=True))
    return [row for seed, item in pair for row in similar(JOINT, seed, kind_cosines(*item))]


def little(cut: tuple[float, ...], other_flat: tuple[float, ...]) -> Rows:
    joint = pretrained_facts(**LITTLE)
    single_pretrained_facts = pretrained_facts(languages="qad", **LITTLE)
    target = {"language": "qad", "method": "target-only", "source": "", "target": "qad"}
    rows = [*START, *seeds(joint, other_flat, **WITHIN), *seeds(joint, cut, **target)]
    return [*rows, *seeds(single_pretrained_facts, [0.0] * 5, **target)]


def close_pair(gain: tuple[float, ...]) -> dict[str, Rows]:
    near_pretrained_facts = pretrained_facts(languages="qaa+qab")
    far_pretrained_facts = pretrained_facts(languages="qaa+qad")
    overlaps = [
        *conflicts((0.5,), near_pretrained_facts, overlap=0.9),
        *conflicts((0.5,), far_pretrained_facts, overlap=0.1),
    ]
    rows = [*seeds(near_pretrained_facts, gain, **WITHIN), *seeds(far_pretrained_facts, [0.0] * 5, **WITHIN)]
    return {"scores": rows, "gradient_conflict": overlaps}


def with_third_language(inner_flat: tuple[float, ...], zero_shot: tuple[float, ...]) -> Rows:
    return [*START, *halves(pretrained_facts(languages="qaa+qad+qab"), inner_flat, zero_shot)]


FALLS = (-0.05, -0.04, -0.06) * 2
RISES = (0.05, 0.04, 0.06) * 2
EITHER = (-0.05, 0.04, -0.06) * 2
MORE = (0.1, 0.11, 0.09) * 2
LESS = (-0.1, -0.11, -0.09) * 2
"""With six seeds, fewer that agree could do so by chance."""

CASES = [
    ("4a", {"scores": mono(UP)}, "supported"),
    ("4a", {"scores": mono(DOWN)}, "contradicted"),
    ("4a", {"scores": mono(NOISY)}, "undecided"),
    ("4b", two_pairs(0.5, 0.1), "supported"),
    ("4b", two_pairs(0.1, 0.5), "mixed"),
    ("4b", {"training_conflict": conflicts((0.1, 0.12, 0.08))}, "not tested"),
    ("4c", {"gradient_conflict": parts(FALLS, MORE)}, "supported"),
    ("4c", {"gradient_conflict": parts(RISES, MORE)}, "mixed"),
    ("4c", {"gradient_conflict": parts(EITHER, MORE)}, "undecided"),
    ("4d", {"scores": adapter_rows(UP, DOWN), "perplexity": SETTLED}, "supported"),
    ("4d", {"scores": adapter_rows(DOWN, DOWN), "perplexity": SETTLED}, "mixed"),
    ("4d", {"scores": adapter_rows(UP, NOISY), "perplexity": SETTLED}, "undecided"),
    (
        "4d",
        {"scores": adapter_rows(UP, DOWN), "perplexity": curves(JOINT, FFN, ends=(50, 40, 30))},
        "not tested",
    ),
    ("4e", {"scores": meta_rows(UP, UP)}, "supported"),
    ("4e", {"scores": meta_rows(UP, DOWN)}, "mixed"),
    ("4e", {"scores": meta_rows(UP, NOISY)}, "undecided"),
    ("4f", {"language_gates": masks(FALLS, MORE)}, "supported"),
    ("4f", {"language_gates": masks(FALLS, LESS)}, "mixed"),
    ("4f", {"language_gates": masks(EITHER, MORE)}, "undecided"),
    ("4g", {"scores": meta_rows(UP, UP)}, "supported"),
    ("4g", {"scores": meta_rows(DOWN, UP)}, "mixed"),
    ("4g", {"scores": [*START, *halves(ADAPTER, FLAT, FLAT), *halves(meta(), UP, UP)]}, "not tested"),
    ("4h", {"scores": [*halves(FFN, UP, UP), *halves(ATTENTION, [0.0] * 5, UP)]}, "supported"),
    ("4h", {"scores": [*halves(FFN, DOWN, UP), *halves(ATTENTION, [0.0] * 5, UP)]}, "contradicted"),
    ("4h", {"scores": [*halves(FFN, NOISY, UP), *halves(ATTENTION, [0.0] * 5, UP)]}, "undecided"),
    ("4i", {"perplexity": perplexities(UP, DOWN)}, "supported"),
    ("4i", {"perplexity": perplexities(DOWN, DOWN)}, "contradicted"),
    ("4i", {"perplexity": perplexities(NOISY, DOWN)}, "undecided"),
    ("4j", {"scores": [*START, *halves(SHARED, UP, UP)]}, "supported"),
    ("4j", {"scores": [*START, *halves(SHARED, UP, DOWN)]}, "mixed"),
    ("4j", {"scores": [*START, *seeds(SHARED, UP, **WITHIN)]}, "not tested"),
    ("4k", {"scores": little(UP, FLAT), "perplexity": OVERFITTED}, "supported"),
    ("4k", {"scores": little(DOWN, FLAT), "perplexity": OVERFITTED}, "mixed"),
    ("4k", {"scores": little(UP, NOISY), "perplexity": OVERFITTED}, "undecided"),
    ("4k", {"scores": little(UP, FLAT)}, "not tested"),
    ("4l", close_pair(UP), "supported"),
    ("4l", close_pair(DOWN), "contradicted"),
    ("4l", close_pair(NOISY), "undecided"),
    ("4m", {"scores": with_third_language(FLAT, UP)}, "supported"),
    ("4m", {"scores": with_third_language(UP, UP)}, "differs from print"),
    ("4m", {"scores": with_third_language(NOISY, UP)}, "undecided"),
]


@pytest.mark.slow
def test_every_pretraining_seed_counts_once_however_many_draws_it_has() -> None:
    row = Judged(
        CLAIMS, make_measurements(language_gates=masks(EITHER, MORE), gradient_conflict=parts(EITHER, MORE))
    )
    assert [[len(check.values) for check in row[name].checks] for name in ("4c", "4f")] == [[6, 6], [6, 6]]
    assert row["4f"].checks[0].estimate.mean == pytest.approx(-1 / 3)


def everything() -> dict[str, Rows]:
    return {
        "scores": [*adapter_rows(UP, NOISY), *halves(meta(), UP, DOWN), *seeds(ALONE, NOISY, **WITHIN)],
        "language_gates": masks(EITHER, MORE),
        "gradient_conflict": parts(EITHER, LESS),
        "perplexity": SETTLED,
    }


def test_seeds_that_disagree_decide_nothing_though_every_sentence_test_is_sure() -> None:
    rows = [*halves(JOINT, [0.0] * 3, [0.0] * 3), *halves(meta(), UP[:3], (0.025, 0.41, 0.138))]
    kept_values = {row["run"]: right_or_wrong(row["score"]) for row in rows}
    frames = make_measurements(scores=rows)._frames
    outcome = Judged(CLAIMS, Measurements(runs=[], _frames=frames, _predictions=kept_values))["4e"]
    zero_shot = outcome.checks[1].comparison
    assert zero_shot is not None
    assert zero_shot.examples == 400
    assert zero_shot.p_examples < 0.001
    assert outcome.verdict == "undecided"


def test_one_pretraining_seed_supports_nothing_however_many_fine_tunings() -> None:
    rows = [row for row in mono(UP) if row["encoder.seed"] == 0]
    tuned_value = [
        {**row, "seed": seed, "score": row["score"] + seed / 1000} for row in rows for seed in range(9)
    ]
    outcome = Judged(CLAIMS, make_measurements(scores=tuned_value))["4a"]
    assert (outcome.verdict, "one pretraining seed" in outcome.found) == ("undecided", True)


def test_steps_and_little_text_of_an_encoder_alone_are_said() -> None:
    shorter = pretrained_facts(languages="qaa", method__steps=50)
    message = [
        Judged(CLAIMS, make_measurements(scores=rows))["4a"].found
        for rows in (mono(UP), [*START, *seeds(shorter, UP, **WITHIN)])
    ]
    assert ["(100 steps alone, 100 joint in qaa+qad)" in item for item in message] == [True, False]
    assert "(50 steps alone, 100 joint in qaa+qad)" in message[1]


@pytest.mark.parametrize(
    "stranger",
    [
        seeds(pretrained_facts(languages="qaa", method__steps=10), DOWN, **WITHIN),
        seeds(pretrained_facts(languages="qaa+qad+qab"), UP, **WITHIN),
        halves(pretrained_facts("embedding"), UP, UP),
    ],
    ids=["a tenth of the steps", "a third language", "language embeddings"],
)
def test_an_encoder_of_another_budget_changes_nothing_within_a_language(stranger: Rows) -> None:
    outcome_before, outcome_after = (
        Judged(CLAIMS, make_measurements(scores=mono(UP) + more))["4a"] for more in ([], stranger)
    )
    assert outcome_after.verdict == outcome_before.verdict == "supported"
    assert [check.about for check in outcome_after.checks] == [check.about for check in outcome_before.checks]


def test_modules_are_compared_with_encoders_that_know_the_language_as_they_do() -> None:
    """Modules with language embeddings are compared only with joint encoders that also have them."""
    modules = halves(pretrained_facts("adapter", modules__embedding=True), MORE, MORE)
    for start, comparison in ((pretrained_facts(), False), (pretrained_facts("embedding"), True)):
        rows = make_measurements(scores=[*halves(start, UP, UP), *modules])
        checks = compare_modules(rows, ["adapter"], ["joint"])
        assert [bool(check.values) for check in checks] == [comparison, comparison]


def test_perplexities_are_compared_at_steps_that_both_encoders_have() -> None:
    rows = perplexities(UP, DOWN)
    longer = [{**row, "step": 30, "score": 1.0} for row in rows if not row["encoder.modules"]]
    outcome_before, outcome_after = (
        Judged(CLAIMS, make_measurements(perplexity=curves))["4i"] for curves in (rows, rows + longer)
    )
    assert outcome_after.found == outcome_before.found


def test_half_the_steps_alone_stand_beside() -> None:
    half_pretrained_facts = pretrained_facts(languages="qaa", method__steps=50)
    outcome = Judged(
        CLAIMS, make_measurements(scores=[*mono(UP), *seeds(half_pretrained_facts, DOWN, **WITHIN)])
    )["4a"]
    assert (outcome.verdict, len(outcome.checks)) == ("supported", 1)
    assert "at equal exposure, alone − joint" in outcome.checks[0].note


def test_encoders_of_equal_seeds_are_not_paired() -> None:
    """A number shared by both encoders of a seed does not reduce the error of the two means."""
    noise = np.array([0.2, -0.1, 0.0, 0.1, -0.2])
    rows = [*seeds(JOINT, list(noise), **WITHIN), *seeds(ALONE, list(noise + 0.05), **WITHIN)]
    (check,) = Judged(CLAIMS, make_measurements(scores=rows))["4a"].checks
    assert check.estimate.mean == pytest.approx(0.05)
    assert check.p_value > 0.5


@pytest.mark.slow
def test_several_encoders_of_one_seed_are_one_unit() -> None:
    other_pretrained_facts = pretrained_facts(languages="qaa+qab")
    rows = [
        *parts(FALLS, MORE),
        *(
            row
            for seed in range(3)
            for row in similar(other_pretrained_facts, seed, layer_cosines(-0.05, 0.1))
        ),
    ]
    checks = Judged(CLAIMS, make_measurements(gradient_conflict=rows))["4c"].checks
    assert [len(check.values) for check in checks] == [6, 6]


def test_a_pair_that_shares_no_test_set_hides_no_other() -> None:
    elsewhere = seeds(pretrained_facts(languages="qaa+qab"), UP, **{**WITHIN, "task": "ner"})
    outcome_before, outcome_after = (
        Judged(CLAIMS, make_measurements(scores=with_third_language(FLAT, UP) + more))["4m"]
        for more in ([], elsewhere)
    )
    assert (outcome_after.verdict, outcome_after.found) == (outcome_before.verdict, outcome_before.found)


def test_nearly_sure_with_three_seeds_is_undecided_not_contradicted() -> None:
    rows = two_pairs(0.5, 0.1)
    sides = (0.8 - 0.62, 0.8 - 0.30, 0.8 - 0.18)  # All below what one language has with itself.
    rows["training_conflict"] = conflicts(sides)
    outcome = Judged(CLAIMS, make_measurements(**rows))["4b"]
    assert 0.05 < outcome.checks[0].p_value < 0.12
    assert outcome.verdict != "contradicted"


def test_an_unmeasured_half_is_no_support() -> None:
    rows = [*START, *seeds(meta(), UP, **WITHIN)]
    outcome = Judged(CLAIMS, make_measurements(scores=rows))["4e"]
    assert (outcome.verdict, "zero-shot: not measured" in outcome.found) == ("not tested", True)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize(
    "other_item",
    [
        {"method__inner_step": "preconditioned"},
        {"method__second_order": "first-order"},
        {"method__own_on_train": True},
        {"method__validation": 0},
        {"method__own_learning_rate": 1e-4},
        {"method__inner_learning_rate": 1e-3},
    ],
)
def test_meta_learning_of_the_toolkits_own_changes_no_verdict(other_item: dict[str, str]) -> None:
    rows = [*meta_rows(UP, UP), *halves(meta(**other_item), DOWN, DOWN)]
    result = Judged(CLAIMS, make_measurements(scores=rows))
    assert {name: result[name].verdict for name in ("4e", "4g")} == {"4e": "supported", "4g": "supported"}
    single_result = Judged(
        CLAIMS, make_measurements(scores=[*START, *halves(meta(**other_item), DOWN, DOWN)])
    )
    assert "4e" not in single_result


def test_kinds_of_modules_are_judged_one_by_one() -> None:
    rows = [*START, *halves(FFN, UP, DOWN), *halves(ATTENTION, DOWN, DOWN), *halves(ADAPTER, UP, DOWN)]
    outcome = Judged(CLAIMS, make_measurements(scores=rows, perplexity=SETTLED))["4d"]
    signs = [check.estimate.mean > 0 for check in outcome.checks]
    assert (outcome.verdict, signs) == ("mixed", [True, False, False, False, True, False])


def test_gradients_in_training_decide_and_those_of_the_finished_encoder_stand_beside() -> None:
    training = conflicts((0.1, 0.12, 0.08))
    finished_rows = conflicts((0.9, 0.92, 0.88))
    first_outcome = Judged(
        CLAIMS, make_measurements(training_conflict=training, gradient_conflict=finished_rows)
    )["4b"]
    assert first_outcome.checks[0].estimate.high < 0
    assert first_outcome.checks[-1].note == "finished encoder: 0.90 between, 0.80 within"
    only = Judged(CLAIMS, make_measurements(gradient_conflict=finished_rows))["4b"]
    assert (only.verdict, only.checks[0].values) == ("not tested", ())


def test_a_control_that_is_noise_is_no_zero() -> None:
    rows = [
        {**row, "cosine": -0.01 if row["first"] == row["second"] else -0.5}
        for row in conflicts((0.1, 0.2, 0.3))
    ]
    assert Judged(CLAIMS, make_measurements(training_conflict=rows))["4b"].checks[0].values == ()


def test_gates_are_judged_by_cosine_and_told_by_correlation() -> None:
    rows = [{**row, "correlation": -row["cosine"] if row["first"] != row["second"] else 0.8}
            for row in masks(FALLS, MORE)]  # fmt: skip
    outcome = Judged(CLAIMS, make_measurements(language_gates=rows))["4f"]
    assert outcome.verdict == "supported"
    assert "by correlation, ρ of layer and similarity 1.00" in outcome.checks[-1].note


@pytest.mark.slow
def test_text_learned_by_heart_is_left_out_and_said() -> None:
    low = {"lines": '[["qaa", 100]]'}
    joint = pretrained_facts(**low)
    single_pretrained_facts = pretrained_facts(languages="qaa", **low)
    rows = [*mono(UP), *seeds(joint, [0.0] * 5, **WITHIN), *seeds(single_pretrained_facts, DOWN, **WITHIN)]
    ends = {
        name: [
            {**MODEL, **ENCODER, **single_pretrained_facts, "encoder.seed": seed,
             "encoder.run": f"low-{seed}", **WITHIN, "split": "dev", "step": step, "score": score}
            for seed in range(5)
            for step, score in ((10, 50.0), (20, last_value))
        ]
        for name, last_value in (("rises", 60.0), ("falls", 40.0))
    }  # fmt: skip
    fields = {
        name: Judged(CLAIMS, make_measurements(scores=rows, perplexity=own_end))["4a"]
        for name, own_end in ends.items()
    }
    assert {name: field.verdict for name, field in fields.items()} == {
        "rises": "supported",
        "falls": "mixed",
    }
    assert "left out, learned by heart" in fields["rises"].checks[-1].note


@pytest.mark.parametrize(
    "other_fields", [{"layers": 8}, {"text": "other"}, {"method__steps": 50}, {"languages": "qaa+qab"}]
)
def test_encoders_that_differ_in_more_than_modules_are_not_compared(other_fields: dict[str, Any]) -> None:
    languages = other_fields.get("languages", "qaa+qad")
    facts = {key: value for key, value in other_fields.items() if key != "languages"}
    rows = [*START, *halves(pretrained_facts("shared-adapter", languages, **facts), UP, UP)]
    assert not any(
        check.values for check in each(Judged(CLAIMS, make_measurements(scores=rows))["4j"].checks)
    )


def test_a_language_trained_and_tested_alone_is_within_whatever_the_method() -> None:
    target = {"language": "qad", "method": "target-only", "source": "", "target": "qad", "way": "target-only"}
    rows = [
        *START,
        *seeds(JOINT, [0.0] * 5, **target),
        *halves(SHARED, UP, DOWN),
        *seeds(SHARED, UP, **target),
    ]
    checks = Judged(CLAIMS, make_measurements(scores=rows))["4j"].checks
    assert [check.comparison.languages for check in checks if check.comparison] == [("qaa", "qad"), ("qad",)]


def test_correction_divides_by_the_geometric_mean_and_leaves_noise_out() -> None:
    rows = make_measurements(gradient_conflict=conflicts((0.4, 0.2))).frame("gradient-conflict")
    rows = rows.assign(cosine=rows["cosine"].where(rows["second"] != "qaa", 0.2))
    row = noise_corrected(rows, "cosine").query("first != second")
    assert list(row["within"]) == pytest.approx([0.4, 0.4])
    assert list(row["corrected"]) == pytest.approx([1.0, 0.5])
    noise = rows.assign(cosine=rows["cosine"].where(rows["first"] != rows["second"], 0.04))
    assert noise_corrected(noise, "cosine")["corrected"].isna().all()


@pytest.mark.nightly
@pytest.mark.slow
def test_folders_about_something_else_are_not_asked() -> None:
    plain_result = [{**row, "encoder.kind": "pretrained"} for row in adapter_rows(UP, DOWN)]
    assert Judged(CLAIMS, make_measurements(scores=plain_result)) == {}
    assert Judged(CLAIMS, make_measurements(scores=START)) == {}


@pytest.mark.slow
def test_a_tiny_study_has_the_numbers_it_had(study) -> None:
    row = Judged(CLAIMS, study("interference"))
    assert "mono-qaa upos qaa +0.2" in old_claim("interference", "k")
    assert row["4a"].checks[0].written(row["4a"].checks[0].estimate.mean) == "0.2"
    assert "cosine 0.20 between, 0.58 within" in old_claim("interference", "l")
    assert row["4b"].checks[-1].note == "finished encoder: 0.20 between, 0.58 within"
    assert "corrected 0.25 in attention, 0.23 in feed-forward" in old_claim("interference", "m")
    assert row["4c"].checks[1].about == "attention 0.25, feed-forward 0.23, difference"
    assert "zero-shot: ffn upos qad +0.4; adapter upos qad +0.1" in old_claim("interference", "o")
    assert "stopped learning" in row["4d"].found
    assert "zero-shot: meta-adapter upos qad +1.4" in old_claim("interference", "p")
    assert row["4e"].checks[1].written(row["4e"].checks[1].estimate.mean) == "1.4"


def test_corrected_cosines_of_a_tiny_study_are_those_it_had(study) -> None:
    frame = study("interference").frame("gradient-conflict")
    rows = noise_corrected(frame[frame["kind"] == "encoder"], "cosine").query("first != second")
    whole_table = rows[rows["layer"].isna() & (rows["module"] == "all")].sort_values("encoder.seed")
    tables = golden("interference")["tables"]
    old_value = [
        row["corrected"]
        for name, table in tables.items()
        if name.startswith("gradients-joint-seed")
        for row in table["data"]
        if (row["layer"], row["module"], row["first"], row["second"]) == (None, "all", "qaa", "qad")
    ]
    assert list(whole_table["corrected"]) == pytest.approx(old_value)
    assert len(old_value) == 3
