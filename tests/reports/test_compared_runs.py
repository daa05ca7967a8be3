"""compare: whom names mean, and what is refused."""

import pytest

import isogloss
from isogloss.core.errors import ConfigError
from isogloss.metrics.significance import holm


@pytest.fixture(scope="session")
def compare_study(study):
    """Compare the runs of a study, or those named, with a baseline."""

    def compare(name, against, *runs, **asked):
        folder = study(name).runs[0].folder.parent
        return isogloss.compare_runs(runs or folder, folder=folder, against=against, **asked).rows

    return compare


def pairs(rows):
    return {
        ((row["encoder"], row["method"]), (row["baseline_encoder"], row["baseline_method"])) for row in rows
    }


def test_a_method_is_each_encoders_own(compare_study):
    found = pairs(compare_study("interference", "source-only"))
    assert found == {
        ((one, "target-only"), (one, "source-only")) for one in ("joint", "ffn", "adapter", "meta-adapter")
    }


@pytest.mark.slow
def test_an_encoder_is_each_methods_own(compare_study):
    found = pairs(compare_study("interference", "joint"))
    assert {baseline for _, (baseline, _) in found} == {"joint"}
    assert all(ours[1] == theirs[1] for ours, theirs in found)
    assert len(found) == 7


@pytest.mark.slow
def test_encoder_and_method_are_one_system_for_all(compare_study):
    found = pairs(compare_study("interference", "joint / source-only"))
    assert {baseline for _, baseline in found} == {("joint", "source-only")}
    assert {system for system, _ in found} >= {("joint", "target-only"), ("mono-qaa", "source-only")}


@pytest.mark.slow
def test_a_run_and_a_model_stand_for_their_system(compare_study, study):
    scores = study("transfer").frame("scores").query("method == 'bilingual'")
    for name in (scores["run"].iloc[0], scores["model"].iloc[0]):
        assert pairs(compare_study("transfer", name)) == pairs(compare_study("transfer", "bilingual"))
        one = pairs(compare_study("transfer", "source-only", name))
        assert one == {(("shipped", "bilingual"), ("shipped", "source-only"))}


@pytest.mark.slow
def test_systems_are_equivalent_at_margins_beyond_their_interval(compare_study):
    facts = ("task", "encoder", "method", "source", "language")
    row = next(row for row in compare_study("transfer", "source-only") if row["low"] < row["high"])
    farther_end = max(-row["low"], row["high"])
    p_values = [
        other["p_equivalence"]
        for factor in (1.1, 1.0, 0.9)
        for other in compare_study("transfer", "source-only", margin=factor * farther_end)
        if all(other[name] == row[name] for name in facts)
    ]
    # The end of a 95 % interval has a one-sided p of 0.025.
    assert p_values[0] < p_values[1] < p_values[2]
    assert p_values[1] == pytest.approx(0.025)


@pytest.mark.slow
def test_holm_is_over_all_that_is_compared_on_a_test_set(compare_study):
    found = compare_study("transfer", "source-only")
    expected = holm([row["p_value"] for row in found])
    assert [row["p_holm"] for row in found] == pytest.approx(expected)
    assert len(found) == 7


@pytest.mark.slow
def test_a_measure_beside_the_tasks_own_is_compared_when_asked_for(compare_study):
    found = compare_study("transfer", "source-only", measure="seqeval_f1")
    assert {row["measure"] for row in found} == {"seqeval_f1"}
    assert {row["measure"] for row in compare_study("transfer", "source-only")} == {"accuracy"}


@pytest.mark.parametrize(
    ("asked", "message"),
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
def test_what_is_not_known_is_refused_with_the_nearest(compare_study, asked, message):
    runs = asked.pop("runs", ())
    with pytest.raises(ConfigError, match=message):
        compare_study("transfer", asked.pop("against"), *runs, **asked)


@pytest.mark.slow
def test_the_beginning_of_several_systems_runs_is_refused(compare_study, study):
    runs = study("mixup").frame("scores").drop_duplicates("way")["run"]
    first = runs.str[0].mode()[0]
    with pytest.raises(ConfigError, match="systems"):
        compare_study("mixup", first)
