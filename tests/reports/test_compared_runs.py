"""compare: whom names mean, and what is refused."""

import pytest

import isogloss
from isogloss.core.errors import ConfigError
from isogloss.metrics.significance import holm


@pytest.fixture(scope="session")
def compare_study(study):
    """Compare the runs of a study, or those named, with a baseline."""

    def compare(name, against, *runs, **arguments):
        folder = study(name).runs[0].folder.parent
        return isogloss.compare_runs(runs or folder, folder=folder, against=against, **arguments).rows

    return compare


def pairs(rows):
    return {
        ((row["encoder"], row["method"]), (row["baseline_encoder"], row["baseline_method"])) for row in rows
    }


def test_a_method_is_each_encoders_own(compare_study):
    encoders = pairs(compare_study("interference", "source-only"))
    assert encoders == {
        ((name, "target-only"), (name, "source-only")) for name in ("joint", "ffn", "adapter", "meta-adapter")
    }


@pytest.mark.slow
def test_an_encoder_is_each_methods_own(compare_study):
    encoders = pairs(compare_study("interference", "joint"))
    assert {baseline for _, (baseline, _) in encoders} == {"joint"}
    assert all(ours[1] == theirs[1] for ours, theirs in encoders)
    assert len(encoders) == 7


@pytest.mark.slow
def test_encoder_and_method_are_one_system_for_all(compare_study):
    encoders = pairs(compare_study("interference", "joint / source-only"))
    assert {baseline for _, baseline in encoders} == {("joint", "source-only")}
    assert {system for system, _ in encoders} >= {("joint", "target-only"), ("mono-qaa", "source-only")}


@pytest.mark.slow
def test_a_run_and_a_model_stand_for_their_system(compare_study, study):
    scores = study("transfer").frame("scores").query("method == 'bilingual'")
    for name in (scores["run"].iloc[0], scores["model"].iloc[0]):
        assert pairs(compare_study("transfer", name)) == pairs(compare_study("transfer", "bilingual"))
        encoders = pairs(compare_study("transfer", "source-only", name))
        assert encoders == {(("shipped", "bilingual"), ("shipped", "source-only"))}


@pytest.mark.slow
def test_systems_are_equivalent_at_margins_beyond_their_interval(compare_study):
    facts = ("task", "encoder", "method", "source", "language")
    row = next(row for row in compare_study("transfer", "source-only") if row["low"] < row["high"])
    farther_end = max(-row["low"], row["high"])
    p_values = [
        other_row["p_equivalence"]
        for factor in (1.1, 1.0, 0.9)
        for other_row in compare_study("transfer", "source-only", margin=factor * farther_end)
        if all(other_row[name] == row[name] for name in facts)
    ]
    # The end of a 95 % interval has a one-sided p of 0.025.
    assert p_values[0] < p_values[1] < p_values[2]
    assert p_values[1] == pytest.approx(0.025)


@pytest.mark.slow
def test_holm_is_over_all_that_is_compared_on_a_test_set(compare_study):
    rows = compare_study("transfer", "source-only")
    expected = holm([row["p_value"] for row in rows])
    assert [row["p_holm"] for row in rows] == pytest.approx(expected)
    assert len(rows) == 7


@pytest.mark.slow
def test_a_measure_beside_the_tasks_own_is_compared_when_asked_for(compare_study):
    rows = compare_study("transfer", "source-only", measure="seqeval_f1")
    assert {row["measure"] for row in rows} == {"seqeval_f1"}
    assert {row["measure"] for row in compare_study("transfer", "source-only")} == {"accuracy"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"against": "bilinguall"},
            "encoder,.*'bilinguall'.*'bilingual'",
        ),
        ({"against": "bilingual", "measure": "accurracy"}, "'accuracy'"),
        ({"against": "bilingual", "split": "tset"}, "'test'"),
        ({"against": "bilingual", "runs": ("nothing",)}, "'nothing'"),
        ({"against": ""}, "encoder,.*''"),
    ],
)
def test_what_is_not_known_is_refused_with_the_nearest(compare_study, arguments, message):
    runs = arguments.pop("runs", ())
    with pytest.raises(ConfigError, match=message):
        compare_study("transfer", arguments.pop("against"), *runs, **arguments)


@pytest.mark.slow
def test_the_beginning_of_several_systems_runs_is_refused(compare_study, study):
    runs = study("mixup").frame("scores").drop_duplicates("way")["run"]
    first_mode = runs.str[0].mode()[0]
    with pytest.raises(ConfigError, match="systems"):
        compare_study("mixup", first_mode)
