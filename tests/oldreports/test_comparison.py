"""Comparisons of systems: the right pairs, the right tests, and every reason why there is none."""

import numpy as np
import pytest
import scipy.stats
from kept_runs import answers, build_kept, predictions, write_scores
from synthetic_runs import World, build_small, write_plan

from isogloss.core.contributions import Contributions
from isogloss.core.errors import ConfigError
from isogloss.data.prediction_table import PREDICTIONS, read_predictions
from isogloss.metrics.significance import holm
from isogloss.oldreports.compared_runs import Request, compare_runs
from isogloss.oldreports.comparison import Baseline, compare
from isogloss.oldreports.gather import gather
from isogloss.oldreports.kept_scores import Label, kept_scores

TWO = {("mini", "source-only"): 0.0, ("mini", "x-mixup"): 0.15}
FOUR = {(encoder, method): gain for encoder, more in (("mini", 0), ("adjusted", 0.1))
        for method, gain in (("source-only", more), ("x-mixup", more + 0.1))}  # fmt: skip


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    out = tmp_path_factory.mktemp("two")
    build_kept(out, TWO)
    return out


@pytest.fixture(scope="module")
def four(tmp_path_factory):
    out = tmp_path_factory.mktemp("four")
    build_kept(out, FOUR)
    return out


def asked(out, against, **more):
    return compare_runs(Request(runs=[str(out)], folder=out, against=against, **more))


def refused(out, against, **more):
    with pytest.raises(ConfigError) as error:
        asked(out, against, **more)
    return str(error.value)


def values(out, method, language):
    """Right and wrong answers [seed example], as they lie on the disk."""
    folders = sorted(out.glob(f"mini-{method}-*"))
    return np.stack(
        [read_predictions(one / PREDICTIONS)[language].measures["accuracy"][0] for one in folders]
    )


def test_each_language_has_scipys_t_test_on_values_averaged_over_seeds(two):
    found, notes = asked(two, "source-only")
    assert notes == []
    assert [one.place.language for one in found] == ["en", "de", "fr"]
    for one in found:
        x, y = (values(two, method, one.place.language) for method in ("x-mixup", "source-only"))
        assert (one.test, one.seeds, one.examples) == ("paired t", 3, 400)
        assert one.p_value == pytest.approx(scipy.stats.ttest_rel(x.mean(axis=0), y.mean(axis=0)).pvalue)
        assert one.difference == pytest.approx(x.mean() - y.mean())
        assert one.low < one.difference < one.high
        assert one.std == pytest.approx((x.mean(axis=1) - y.mean(axis=1)).std(ddof=1))


def test_p_values_are_corrected_over_the_languages_of_one_comparison(four):
    found, _ = asked(four, "mini / source-only")
    assert len(found) == 3 * 3
    for system in {one.system for one in found}:
        group = [one for one in found if one.system == system]
        assert [one.p_holm for one in group] == holm([one.p_value for one in group])
        assert all(one.is_significant == (one.p_holm < 0.05) for one in group)


def test_each_task_is_compared_on_its_test_split_or_where_it_has_none_on_dev(tmp_path):
    names = []
    for method, gain in (("source-only", 0.0), ("x-mixup", 0.1)):
        for task, split in (("upos", "test"), ("upos", "dev"), ("ner", "dev")):
            named = {"method": method, "corpus": task, "task": task, "split": split}
            kept = list(answers(0, gain, ("de",)))
            names.append(write_scores(tmp_path, f"{method}-{task}-{split}", kept, **named))
    write_plan(tmp_path, names)
    found, _ = asked(tmp_path, "source-only")
    assert {(one.place.task, one.place.split) for one in found} == {("upos", "test"), ("ner", "dev")}
    found, _ = asked(tmp_path, "source-only", split="dev")
    assert {(one.place.task, one.place.split) for one in found} == {("upos", "dev"), ("ner", "dev")}


def pairs(found):
    return {(str(one.system), str(one.baseline)) for one in found}


def test_against_a_method_each_encoder_is_held_against_its_own(four):
    assert pairs(asked(four, "source-only")[0]) == {
        ("mini / x-mixup", "mini / source-only"),
        ("adjusted / x-mixup", "adjusted / source-only"),
    }


def test_against_an_encoder_each_method_is_held_against_its_own(four):
    assert pairs(asked(four, "mini")[0]) == {
        ("adjusted / source-only", "mini / source-only"),
        ("adjusted / x-mixup", "mini / x-mixup"),
    }


def test_against_a_system_everything_is_held_against_that_one(four):
    assert pairs(asked(four, "mini / x-mixup")[0]) == {
        (system, "mini / x-mixup")
        for system in ("mini / source-only", "adjusted / source-only", "adjusted / x-mixup")
    }


def test_a_run_stands_for_its_system_with_all_its_seeds(four):
    by_name, _ = asked(four, "mini / x-mixup")
    for against in ("mini-x-mixup-1", "model-mini-x-mixup-2"):
        assert asked(four, against)[0] == by_name
    request = Request(runs=["adjusted-x-mixup-0"], folder=four, against="mini")
    found, _ = compare_runs(request)
    assert pairs(found) == {("adjusted / x-mixup", "mini / x-mixup")}
    assert {one.seeds for one in found} == {3}
    place = Request(runs=[str(four / "adjusted-x-mixup-0")], folder=two, against="mini")
    assert compare_runs(place)[0] == found


def test_systems_of_several_folders_are_compared(two, tmp_path):
    build_kept(tmp_path, {("adjusted", "source-only"): 0.2})
    request = Request(runs=[str(two), str(tmp_path)], folder=two, against="mini / source-only")
    assert pairs(compare_runs(request)[0]) == {
        ("mini / x-mixup", "mini / source-only"),
        ("adjusted / source-only", "mini / source-only"),
    }


def test_what_is_turned_round_is_the_same_difference_the_other_way(two):
    ours, theirs = asked(two, "source-only")[0], asked(two, "x-mixup")[0]
    for one, other in zip(ours, theirs, strict=True):
        assert one.difference == pytest.approx(-other.difference)
        assert one.p_holm == pytest.approx(other.p_holm)
        assert (one.low, one.high) == pytest.approx((-other.high, -other.low))


def test_unknown_names_are_refused_with_the_nearest(two):
    assert (
        "--against: no method, encoder, system or run 'source-onl'. Did you mean 'source-only'?"
        in refused(two, "source-onl")
    )
    assert "Did you mean 'accuracy'?" in refused(two, "source-only", measure="acuracy")
    assert "no split 'dev'" in refused(two, "source-only", split="dev")
    with pytest.raises(ConfigError, match="no folder or scored run 'mini-source-onli-0'"):
        compare_runs(Request(runs=["mini-source-onli-0"], folder=two, against="mini"))


def test_the_beginning_of_several_ids_is_refused(two):
    said = refused(two, "mini-")
    assert "runs of 2 systems begin with 'mini-': mini / source-only, mini / x-mixup. Write more" in said


def test_nothing_else_to_compare_is_said(two):
    assert "nothing to hold against mini. No other was scored on the same" in refused(two, "mini")


def test_scores_without_predictions_are_named_with_what_to_do(tmp_path):
    names = build_kept(tmp_path, TWO, seeds=(0,), keep=False)
    said = refused(tmp_path, "source-only")
    assert "2 score runs without predictions" in said
    assert all(name in said for name in names)
    assert "Delete record.json in these folders and run the recipe again" in said


def test_some_scores_without_predictions_are_a_note(tmp_path):
    names = build_kept(tmp_path, TWO, seeds=(0, 1, 2))
    (tmp_path / names[0] / PREDICTIONS).unlink()
    found, notes = asked(tmp_path, "source-only")
    assert {one.seeds for one in found} == {2}
    assert "seeds 0 left out, which one of the two lacks" in notes[0]
    assert (
        f"1 score run without predictions, made by an earlier version or unfinished: {names[0]}" in notes[-1]
    )


def test_a_damaged_file_is_a_note(tmp_path):
    names = build_kept(tmp_path, TWO, seeds=(0, 1))
    (tmp_path / names[0] / PREDICTIONS).write_bytes(b"PAR1")
    found, notes = asked(tmp_path, "source-only")
    assert {one.seeds for one in found} == {1}
    assert f"Run {names[0]}: " in notes[0]
    assert str(tmp_path) not in " ".join(notes)


def test_no_scores_are_refused(tmp_path):
    (tmp_path / "x").mkdir()
    write_plan(tmp_path, ["x"])
    assert "no scores among these runs. Add [[measure]]" in refused(tmp_path, "source-only")


def test_systems_without_a_common_seed_are_not_compared(tmp_path):
    one = build_kept(tmp_path, {("mini", "source-only"): 0.0}, seeds=(0,))
    write_plan(tmp_path, one + build_kept(tmp_path, {("mini", "x-mixup"): 0.1}, seeds=(1, 2)))
    said = refused(tmp_path, "source-only")
    assert "they share no seed (2 seeds 1 and 2; 1 seed 0)" in said


def test_systems_scored_on_other_examples_are_not_compared(tmp_path):
    names = build_kept(tmp_path, {("mini", "source-only"): 0.0}, seeds=(0,))
    names.append(write_scores(tmp_path, "less", list(answers(0, 0.1, ("en",), size=40)), method="x-mixup"))
    write_plan(tmp_path, names)
    assert "xnli nli en, mini / x-mixup against mini / source-only: not compared" in refused(
        tmp_path, "source-only"
    )


def counts(rng, share, size=80):
    whole = rng.integers(1, 6, size)
    part = 2.0 * rng.binomial(whole, share)
    return Contributions(part.tolist(), (2.0 * whole).tolist())


def test_f1_gets_a_permutation_test_and_any_measure_can_be_asked_for(tmp_path):
    rng, names = np.random.default_rng(0), []
    for method, share in (("source-only", 0.5), ("x-mixup", 0.8)):
        for seed in (0, 1):
            kept = [predictions("de", {"span_f1": counts(rng, share), "word_f1": counts(rng, share)})]
            names.append(write_scores(tmp_path, f"{method}-{seed}", kept, method=method, seed=seed))
    write_plan(tmp_path, names)
    (own,), _ = asked(tmp_path, "source-only")
    assert (own.place.measure, own.test, own.is_significant) == ("span_f1", "permutation", True)
    (other,), _ = asked(tmp_path, "source-only", measure="word_f1")
    assert other.place.measure == "word_f1"


def test_models_for_several_targets_are_averaged_on_the_source(tmp_path):
    names = []
    for seed in (0, 1):
        plain = list(answers(seed, 0.0, ("en", "de")))
        names.append(write_scores(tmp_path, f"plain-{seed}", plain, seed=seed))
        for target, gain in (("de", 0.1), ("fr", 0.2)):
            both = list(answers(seed, gain, ("en", target)))
            named = {"method": "bilingual", "target": target, "seed": seed}
            names.append(write_scores(tmp_path, f"{target}-{seed}", both, **named))
    write_plan(tmp_path, names)
    found = {one.place.language: one for one in asked(tmp_path, "source-only")[0]}
    assert found.keys() == {"en", "de"}
    kept = [read_predictions(tmp_path / f"{t}-{s}" / PREDICTIONS)["en"] for t in ("de", "fr") for s in (0, 1)]
    assert found["en"].score == pytest.approx(np.mean([one.measures["accuracy"][0] for one in kept]))
    assert found["en"].seeds == 2


def test_a_method_without_a_source_stands_beside_every_source(tmp_path):
    names = [
        write_scores(tmp_path, "plain", list(answers(0, 0.0, ("de",)))),
        write_scores(tmp_path, "alone", list(answers(0, 0.1, ("de",))),
                     method="target-only", source="", target="de"),
    ]  # fmt: skip
    write_plan(tmp_path, names)
    kept = kept_scores(gather(tmp_path).runs)
    (place,) = kept.models
    assert place.source == "en"
    assert kept.labels() == [Label("mini", "source-only"), Label("mini", "target-only")]
    (found,), _ = compare(kept, Baseline(method="source-only"))
    assert found.test == "McNemar"


def test_one_seed_has_no_power_to_speak_of(tmp_path):
    build_kept(tmp_path, TWO, seeds=(0,))
    found, _ = asked(tmp_path, "source-only")
    assert {one.seeds_to_see(0.01) for one in found} == {None}
    assert {one.smallest_seen for one in found} == {float("inf")}


def test_reports_of_runs_that_kept_nothing_are_written_all_the_same(tmp_path):
    from isogloss.oldreports import write_report

    build_small(tmp_path, World(targets=("de",)))
    report = write_report(tmp_path)
    assert "No marks: these scores were recorded without predictions" in report.html.read_text()
    assert not (tmp_path / "tables/significance.csv").exists()
