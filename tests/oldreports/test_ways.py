"""Ways to use translations in a report: one table with how inputs came, tests on the mean, the claims."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
from kept_runs import predictions, write_scores
from scipy.stats import ttest_1samp
from synthetic_runs import measure, write_plan, write_run

import isogloss
from isogloss.core.contributions import Contributions
from isogloss.metrics.over_languages import verdict_over_languages
from isogloss.oldreports import write_report
from isogloss.oldreports.findings import findings
from isogloss.oldreports.gather import gather
from isogloss.oldreports.kept_scores import Label
from isogloss.oldreports.ways import inputs_of, place_of, plain_reference
from tiny import tiny

TARGETS = ("de", "fr")
GAINS = {
    ("source-only", ""): 0.0,
    ("source-only", "translated"): 0.1,
    ("translate-train", ""): 0.12,
    ("x-mixup", ""): 0.2,
    ("x-mixup", "paired"): 0.26,
    ("x-mixup (mse=0.0)", "paired"): 0.14,
}
RECIPE = """
title = "Ways"
encoder = "shipped"

[grid]
corpus = "xnli"
task = "nli"
source = "qaa"
targets = ["qab", "qad"]
seeds = [0, 1]
examples = 16
dev_examples = 4
optimization = { epochs = 1, learning_rate = 3e-3, batch_size = 8 }

[[grid.method]]
name = "source-only"

[[grid.method]]
name = "translate-train"

[[grid.method]]
name = "x-mixup"

[[measure]]
name = "scores"
examples = 12

[[measure]]
name = "scores"
inputs = "paired"
examples = 12

[[measure]]
name = "scores"
inputs = "translated"
methods = ["source-only"]
examples = 12
"""
MARKED = "ways-xnli-nli-mini-en-test-accuracy"


def score(out, name, method, inputs, gain, target, seed, languages, size=400):
    kept = []
    for code in languages:
        drawn = np.random.default_rng((seed, ord(code[0]))).random(size) < 0.5 + gain
        kept.append(
            predictions(code, {"accuracy": Contributions(drawn.astype(float).tolist(), [1.0] * size)})
        )
    corpus = f"xnli {inputs}".strip()
    write_scores(out, name, kept, method=method, target=target, seed=seed, corpus=corpus)
    record = json.loads((out / name / "record.json").read_text(encoding="utf-8"))
    record["run"]["inputs"] = inputs
    (out / name / "record.json").write_text(json.dumps(record), encoding="utf-8")
    return name


def build(out, gains=GAINS, seeds=(0, 1, 2), std=0.05, after=0.9, targets=TARGETS):
    names = []
    for (method, inputs), gain in gains.items():
        for seed in seeds:
            for target in targets if method != "source-only" else ("",):
                languages = ("en", target, "sw") if target else ("en", *targets, "sw")
                name = f"{len(names):03d}"
                names.append(score(out, name, method, inputs, gain, target, seed, languages))
    names.append(write_run(out, "cka", measure("cka", list(likeness(seeds, after)))))
    names.append(write_run(out, "ratio", measure("mixup-ratio", list(ratios(seeds, std)))))
    write_plan(out, names, title="Ways")
    return out


def likeness(seeds, after):
    about = {"encoder": "mini", "first": "en", "layer": 4, "sentences": 9, "debiased": 0.1}
    for code, cka in zip(("de", "fr", "sw"), (0.5, 0.4, 0.3), strict=True):
        yield {**about, "second": code, "cka": cka}
        for seed in seeds:
            model = {"corpus": "xnli", "task": "nli", "source": "en", "seed": seed, "second": code}
            yield {**about, **model, "method": "source-only", "cka": cka + 0.1 + seed / 1000}
            if code in TARGETS:
                yield {**about, **model, "method": "x-mixup", "target": code, "cka": after + seed / 500}


def ratios(seeds, std):
    for seed in seeds:
        yield {
            **{
                "corpus": "xnli paired",
                "task": "nli",
                "encoder": "mini",
                "method": "x-mixup",
                "source": "en",
            },
            **{"target": "de", "seed": seed, "language": "de", "split": "test", "examples": 9},
            **{"mean": 0.3, "std": std, "q05": 0.1, "median": 0.3, "q95": 0.4},
        }


def verdicts(out):
    return {claim.letter: claim for claim in findings(gather(out))[0].mixup_claims()}


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = build(tmp_path_factory.mktemp("ways"))
    write_report(folder)
    return folder


def rows(out):
    with (out / "tables" / f"{MARKED}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_how_inputs_came_is_part_of_a_system_in_one_table(out):
    assert inputs_of(gather(out)) == {
        "xnli translated": ("xnli", "translated"),
        "xnli paired": ("xnli", "paired"),
    }
    assert list(dict.fromkeys(row["method"] for row in rows(out))) == [
        "source-only",
        "source-only · translated",
        "translate-train",
        "x-mixup",
        "x-mixup · paired",
        "x-mixup (mse=0.0) · paired",
    ]
    own = [row["language"] for row in rows(out) if row["method"] == "x-mixup · paired"]
    assert own == ["en", "de", "fr", "mean of targets", "gap", "unseen"]


def test_marks_are_against_translate_train_and_the_mean_is_tested_too(out):
    means = {row["method"]: row for row in rows(out) if row["language"] == "mean of targets"}
    whole = means["x-mixup · paired"]
    assert whole["against"] == "translate-train" and float(whole["p_value"]) < 0.001
    by_language = [
        float(row["difference"])
        for row in rows(out)
        if row["method"] == "x-mixup · paired" and row["language"] in TARGETS
    ]
    assert float(whole["difference"]) == pytest.approx(np.mean(by_language))
    assert 0 <= float(whole["p_seeds"]) < 0.05
    assert not means["translate-train"]["p_value"]
    assert "p < 0.05 against translate-train" in (out / "report.html").read_text(encoding="utf-8").replace(
        "&lt;", "<"
    )


def test_an_only_target_is_tested_over_seeds_too(tmp_path):
    write_report(build(tmp_path, targets=("de",)))
    own = {row["language"]: row for row in rows(tmp_path) if row["method"] == "x-mixup · paired"}
    assert list(own) == ["en", "de", "gap", "unseen"]
    assert 0 <= float(own["de"]["p_seeds"]) < 0.05
    assert not own["en"]["p_seeds"]


def test_all_claims_are_supported_where_everything_gains(out):
    found = verdicts(out)
    letters = ["q", "r", "s", "t", "u", "v"]
    assert list(found) == letters
    del found["s"]  # three languages are too few for a p below 0.05
    assert {claim.verdict for claim in found.values()} == {"supported"}, found
    assert "unmixed at inference −" in found["t"].number and "mse=0.0 −" in found["t"].number


def test_claims_are_refuted_where_nothing_gains(tmp_path):
    flat = dict.fromkeys(GAINS, 0.1)
    found = verdicts(build(tmp_path, flat, std=0.0, after=0.2))
    assert {found[letter].verdict for letter in ("q", "r", "t", "u", "v")} == {"refuted"}


def test_a_weight_that_was_chosen_is_a_whole_of_its_own_with_its_own_ablations(tmp_path):
    chosen = {
        ("x-mixup (mse=0.1)", "paired"): 0.3,
        ("x-mixup (mse=0.1, kl=0.0)", "paired"): 0.2,
    }
    claim = verdicts(build(tmp_path, GAINS | chosen))["t"]
    paper, own = claim.number.split("; ")
    assert paper.startswith("nli: ") and "mse=0.0" in paper and "kl=0.0" not in paper
    assert own.startswith("nli (mse=0.1): ") and "kl=0.0 −" in own and "mse=0.0 −" in own


def test_a_model_without_a_schedule_ablates_one_whose_schedule_is_as_long_as_its_training(tmp_path):
    chosen = {
        ("x-mixup (decay=25)", "paired"): 0.3,
        ("x-mixup (schedule=False)", "paired"): 0.2,
        ("x-mixup (decay=25, mse=0.0)", "paired"): 0.2,
    }
    number = verdicts(build(tmp_path, GAINS | chosen))["t"].number.split("; ")[-1]
    assert number.startswith("nli (decay=25): ")
    assert "schedule=False −" in number and "mse=0.0 −" in number


def test_one_seed_or_no_baseline_leaves_claims_open(tmp_path):
    without = {key: gain for key, gain in GAINS.items() if key[0] != "translate-train"}
    found = verdicts(build(tmp_path, without, seeds=(0,)))
    assert found["q"].verdict == found["u"].verdict == found["r"].verdict == "not tested"


def test_where_no_input_came_in_translation_nothing_comes_up(tmp_path):
    report = write_report(build(tmp_path, {("source-only", ""): 0.0, ("x-mixup", ""): 0.1}))
    assert [claim.letter for claim in report.claims] == list("abcde")
    assert not [path for path in report.tables if path.name.startswith("ways")]


def test_the_first_papers_claims_leave_translated_inputs_out(out):
    assert {row.corpus for row in findings(gather(out))[0].originals().scores} == {"xnli"}


def test_a_system_is_held_against_translate_train_by_its_own_translator():
    methods = ["source-only", *(f"translate-train by built-in (noise={n})" for n in (0.1, 0.3))]
    assert plain_reference("x-mixup by built-in (noise=0.3) · paired", methods) == methods[2]
    assert plain_reference("source-only", methods) == ""
    assert plain_reference("x-mixup · paired", ["source-only", "x-mixup"]) == "source-only"


def test_a_system_is_held_against_translate_train_of_its_own_learning_rate():
    methods = ["source-only", *(f"translate-train (learning_rate={rate})" for rate in (0.1, 0.2))]
    assert plain_reference("x-mixup (mse=0.1, learning_rate=0.2) · paired", methods) == methods[2]
    assert plain_reference(methods[2], methods) == methods[2]
    assert plain_reference("x-mixup (mse=0.1)", methods) == methods[1]


@pytest.mark.slow
def test_real_runs_are_held_against_each_other_however_their_inputs_came(tmp_path):
    result = isogloss.run(tiny(tmp_path, RECIPE), out=tmp_path / "runs", jobs=1)
    assert not result.outcome.failed
    found, notes = findings(gather(result.out))
    assert notes == []
    place = place_of(found.ways.scores[0])
    methods = ["source-only", "source-only · translated", "x-mixup", "x-mixup · paired"]
    systems = [Label(found.ways.scores[0].encoder, method) for method in methods]
    baseline = replace(systems[0], method="translate-train")
    tested = found.ways.means(place, baseline, systems)
    assert [one.system.method for one in tested] == methods
    assert {(one.languages, one.seeds) for one in tested} == {(("qab", "qad"), 2)}
    assert [claim.letter for claim in found.mixup_claims()] == ["q", "r", "s", "t", "u", "v"]


def test_parallel_examples_are_one_unit_and_one_language_is_the_t_test():
    rng = np.random.default_rng(0)
    ids, x, y = [str(n) for n in range(50)], rng.normal(0.2, 1, 50), rng.normal(0.1, 1, 50)
    one = verdict_over_languages({"de": (ids, x)})
    assert one.p_value == pytest.approx(ttest_1samp(x, 0).pvalue)
    both = verdict_over_languages({"de": (ids, x), "fr": (ids, y)})
    assert both.p_value == pytest.approx(ttest_1samp((x + y) / 2, 0).pvalue)
    apart = verdict_over_languages({"de": (ids, x), "fr": ([f"f{n}" for n in ids], y)})
    error = np.sqrt(x.var(ddof=1) / 50 + y.var(ddof=1) / 50) / 2
    assert apart.statistic == pytest.approx((x.mean() + y.mean()) / 2 / error, rel=0.02)
    assert verdict_over_languages({"de": (["a"], np.array([1.0]))}).p_value == 1


def test_equal_values_in_all_examples_are_no_chance():
    ids = ["a", "b", "c"]
    assert verdict_over_languages({"de": (ids, np.ones(3))}).p_value == 0
    assert verdict_over_languages({"de": (ids, np.zeros(3))}).p_value == 1
