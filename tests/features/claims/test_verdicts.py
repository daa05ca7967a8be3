"""Verdicts name their encoders and languages, are written to a file, and two files are compared."""

import json
import re
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev

import numpy as np
import pandas as pd
import pytest

from isogloss.core.errors import ConfigError
from isogloss.core.languages import all_language_facts
from isogloss.features.claims.checks import check_correlation
from isogloss.features.claims.four_papers import CLAIMS, PAPERS
from isogloss.metrics.estimates import crossed_estimate
from isogloss.metrics.significance import seeds_needed
from isogloss.reports.checks import Check, check_of
from isogloss.reports.measurements import read_measurements
from isogloss.reports.report import write_report
from isogloss.reports.verdicts import (
    CLAIMS_FILE,
    ClaimOutcome,
    changed_verdicts,
    judge_checks,
    scope_of,
)
from made_up_runs import measure, model, path, pretrain, scores, small_study, write, write_plan


def study(folder: Path, gain: float, seeds: int = 6) -> Path:
    """Write a study whose bilingual models gain so much in the target, and its report."""
    runs = []
    for seed in range(seeds):
        single_model = model(seed=seed)
        models = model("bilingual", target=["qad"], seed=seed)
        runs += [write(folder, item, [], title="fine-tuned") for item in (single_model, models)]
        points = {position: 0.6 + seed / 100 + gain * position for position in (0.0, 0.25, 0.5, 0.75, 1.0)}
        runs.append(
            write(
                folder, measure("interpolation", [single_model, models]), path(single_model, models, points)
            )
        )
    write_plan(folder, runs)
    write_report(folder)
    return folder


@pytest.mark.slow
def test_a_file_of_verdicts_says_what_is_published_and_what_was_found_here(tmp_path: Path) -> None:
    small_study(tmp_path)
    write_report(tmp_path)
    content = json.loads((tmp_path / CLAIMS_FILE).read_text(encoding="utf-8"))
    claims_by_id = {claim.id: claim for claim in CLAIMS}
    assert content["recipe"] == "title = 'A study'" and content["version"]
    assert re.fullmatch("([0-9a-f]{40}(-dirty)?)?", content["commit"])
    assert all(claim["code"] for claim in content["claims"])
    assert [claim["id"] for claim in content["claims"]] == ["1b", "1c", "1f", "1h"]
    first_claim = content["claims"][0]
    assert (first_claim["published"], first_claim["rule"]) == (
        claims_by_id["1b"].says,
        claims_by_id["1b"].rule,
    )
    assert first_claim["paper"] == PAPERS["1"][1] and first_claim["here"].startswith(
        "in shipped, on built-in languages"
    )
    assert {"about", "mean", "low", "high", "verdict", "judged", "printed"} <= set(first_claim["checks"][0])
    linear = next(claim for claim in content["claims"] if claim["id"] == "1f")
    assert linear["threshold"] == claims_by_id["1f"].threshold and len(linear["by_range"]) == len(
        claims_by_id["1f"].ranges
    )
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert claims_by_id["1f"].threshold in page and "Other ranges" in page


def outcome_of(*checks: Check, **facts: object) -> ClaimOutcome:
    """Judge a claim that consists of some checks."""
    return judge_checks(replace(CLAIMS[0], **facts), checks)


UNSURE = [0.012, -0.004, 0.01, 0.0, 0.006, -0.002]
"""Differences with six seeds: 0.4 points on average, with a standard deviation of 0.64."""


def test_the_verdict_changes_with_the_range_where_the_interval_does() -> None:
    angles = [66.0, 67.0, 68.0, 66.5, 67.5, 67.0]
    ranges = [{"above": 45.0, "below": end} for end in (60.0, 65.0, 67.0, 69.0)]
    check = check_of(angles, "angle", {"above": 45.0, "below": 65.0, "printed": "around 55°"})
    outcome = outcome_of(check, ranges=ranges)
    verdicts = [verdict for _, verdict in outcome.by_range]
    assert verdicts == ["differs from print", "differs from print", "undecided", "supported"]
    assert verdicts[1] == outcome.verdict


def test_the_units_that_would_decide_are_those_of_the_power_of_the_test() -> None:
    check = check_of(UNSURE, "gain", {"above": 0.0})
    ((units, deciding),) = outcome_of(check).to_decide
    needed_seeds = seeds_needed(mean(UNSURE), stdev(UNSURE))
    assert deciding == check and needed_seeds is not None
    assert abs(units - needed_seeds) <= 1
    samples = np.random.default_rng(0).normal(mean(UNSURE), stdev(UNSURE), (400, units))
    decided_verdicts = [
        judge_checks(CLAIMS[0], [replace(check, values=list(row))]).verdict for row in samples
    ]
    assert decided_verdicts.count("supported") / len(decided_verdicts) == pytest.approx(0.8, abs=0.06)
    assert f"{units} seeds would decide" in outcome_of(check).found


def test_one_contradiction_is_enough_and_support_needs_all_checks() -> None:
    sample, many, against = (
        check_of([scale * value for value in UNSURE], name, {"above": bound})
        for name, scale, bound in (("few", 1, 0.0), ("many", 1, 0.002), ("against", -1, 0.0))
    )
    assert [check for _, check in outcome_of(sample, many).to_decide] == [sample, many]
    assert [check for _, check in outcome_of(sample, many, against).to_decide] == [against]
    assert outcome_of(check_of([1.0, 1.1, 1.2], "gain", {"above": 0.0})).to_decide == []


def test_no_number_of_seeds_decides_a_number_on_its_bound_or_lost_in_examples() -> None:
    bound = check_of([0.01, -0.01, 0.01, -0.01], "gain", {"above": 0.0})
    few_examples = crossed_estimate(UNSURE, example_error=0.02, examples=50)
    lost_value = replace(check_of(UNSURE, "gain", {"above": 0.0}), statistic=few_examples)
    assert bound.units_to_decide() is None
    assert lost_value.units_to_decide() is None


def test_a_correlation_needs_more_languages_the_weaker_it_is() -> None:
    x = pd.Series(range(40), index=list(all_language_facts())[:40], dtype=float)
    noise = np.random.default_rng(1).permutation(40)
    needed_units = []
    for share in (0.3, 0.5, 0.7):
        (check,) = check_correlation("ρ", x, share * x + (1 - share) * noise, {"above": 0.0})
        needed_units.append(check.units_to_decide() or 0)
    assert needed_units == sorted(needed_units, reverse=True)
    assert needed_units[0] > needed_units[-1] > 2


def test_another_task_makes_the_mean_over_tasks_surer_and_support_harder() -> None:
    """With a task in which chance decides, the claim is undecided, and the mean over tasks still positive."""
    rng = np.random.default_rng(3)
    tasks = [
        check_of(rng.normal(0.02, 0.008, 6), f"task {index}", {"above": 0.0, "statement": "gain"})
        for index in range(5)
    ]
    tasks.append(check_of(UNSURE, "task 5", {"above": 0.0, "statement": "gain"}))
    outcome = outcome_of(*tasks)
    assert outcome.verdict == "undecided"
    ((statement, over_task, _),) = outcome.over_tasks
    assert (statement, over_task.studies) == ("gain", 6)
    assert over_task.low > 0
    assert f"mean over 6 comparisons {tasks[0].written(over_task.mean)}" in outcome.found


@pytest.mark.parametrize(("values", "p"), [([1.0] * 9, 2 / 2**9), ([1.0] * 8 + [-1.0], 20 / 2**9)])
def test_from_nine_seeds_on_a_median_also_needs_the_sign_test(values: list[float], p: float) -> None:
    numbers = [value + index / 1000 for index, value in enumerate(values)]
    check = check_of(numbers, "R²", {"above": 0.0, "of_median": True})
    assert check.p_value == pytest.approx(max(p, replace(check, of_median=False).p_value))
    fewer = check_of(numbers[:8], "R²", {"above": 0.0, "of_median": True})
    assert fewer.p_value == replace(fewer, of_median=False).p_value


def test_a_verdict_about_the_median_says_so() -> None:
    check = check_of([0.95, 0.96, 0.94, 0.95, 0.96, 0.95], "R²", {"above": 0.9, "of_median": True})
    assert outcome_of(check).condition.startswith("of the median seed, given no failure in 6 seeds")


def test_a_scope_is_of_the_encoders_and_languages_of_the_runs(tmp_path: Path) -> None:
    shape = {
        "family": "bert",
        "layers": 4,
        "dim": 128,
        "vocabulary": 2000,
        "positions": 128,
        "feed_forward": 512,
    }
    encoder = {**pretrain(), "architecture": {"kind": "Architecture", **shape}}
    tuned_model = model(encoder=encoder)
    write(tmp_path, tuned_model)
    write(tmp_path, measure("scores", [tuned_model]), scores(tuned_model, {"qaa": 0.9, "qad": 0.5}))
    own_text = "in encoders of 1.1 M parameters, on built-in languages, which share one world: "
    assert scope_of(read_measurements(tmp_path)) == own_text
    other_model = model(source=["en"])
    write(tmp_path, other_model)
    write(tmp_path, measure("scores", [other_model]), scores(other_model, {"en": 0.9, "sw": 0.5}))
    texts = "in shipped and encoders of 1.1 M parameters, on en, qaa, qad and sw: "
    assert scope_of(read_measurements(tmp_path)) == texts


@pytest.mark.nightly
@pytest.mark.slow
def test_two_reports_differ_in_verdicts_and_the_checks_behind_them(tmp_path: Path) -> None:
    rising = study(tmp_path / "rising", 0.2)
    falling = study(tmp_path / "falling", -0.2)
    changes = {row["claim"]: row for row in changed_verdicts(rising, falling / CLAIMS_FILE)}
    assert (changes["1b"]["before"], changes["1b"]["after"]) == ("supported", "contradicted")
    assert "gain: 20.00 [20.00, 20.00] supported → -20.00" in changes["1b"]["why"]
    assert "1f" not in changes
    assert changed_verdicts(rising, rising) == []


def test_checks_with_other_numbers_alone_are_counted(tmp_path: Path) -> None:
    def verdicts(name: str, mean: float, turned_text: str) -> Path:
        numbers = {"mean": mean, "low": mean, "high": mean}
        checks = [{"about": "gain", "verdict": turned_text, **numbers}]
        checks += [{"about": options, "verdict": "supported", **numbers} for options in ("ρ", "R²")]
        claim = {"id": "1b", "rule": "", "verdict": turned_text, "checks": checks}
        path = tmp_path / name
        path.write_text(json.dumps({"claims": [claim]}), encoding="utf-8")
        return path

    (change,) = changed_verdicts(verdicts("a", 1.0, "supported"), verdicts("b", 0.5, "undecided"))
    assert change["why"] == (
        "gain: 1.00 [1.00, 1.00] supported → 0.50 [0.50, 0.50] undecided; "
        "2 more with other numbers and the same verdict"
    )


def test_verdicts_that_are_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"claims.*isogloss report DIR"):
        changed_verdicts(tmp_path, tmp_path)
