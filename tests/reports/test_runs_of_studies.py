"""Runs of a study state method, languages and seed, and print in a line."""

import json

import pytest

import isogloss
from each import each

STUDIES = ("transfer", "mixup", "adjustment", "interference")


def contents_of(run):
    """Yield the content of a run, or of the runs that a measurement is of."""
    for subject in run.get("subjects", ()):
        yield from contents_of(subject)
    if "subjects" not in run:
        yield run


def method_of(training):
    parts = [training[name]["kind"] for name in ("method", "auxiliary") if training.get(name)]
    return " + ".join(parts)


@pytest.fixture(params=STUDIES)
def runs(request, study_folder):
    return isogloss.read(study_folder(request.param)).runs


def test_each_run_has_the_method_seed_and_languages_of_its_record(runs):
    for run in each(runs):
        trainings = list(contents_of(run.record.run))
        for name, value, nothing in (
            ("method", [method_of(training) for training in trainings], ""),
            ("seed", [training.get("seed") for training in trainings], None),
            ("source", [tuple(training.get("source", ())) for training in trainings], ()),
            ("target", [tuple(training.get("target", ())) for training in trainings], ()),
        ):
            assert getattr(run, name) == (value[0] if len(set(value)) == 1 else nothing)


def test_models_of_a_study_are_found_by_these_facts(runs):
    tuned_runs = [run for run in runs if run.kind == "fine-tune"]
    methods = {(run.method, run.seed, run.source, run.target) for run in tuned_runs}
    stated_methods = {
        (facts["method"], facts["seed"], facts["source"], facts["target"])
        for run in tuned_runs
        for facts in [run.models[run.id]]
    }
    assert {
        (method, seed, "+".join(source), "+".join(target)) for method, seed, source, target in methods
    } == stated_methods
    assert all(run.method and run.seed is not None for run in tuned_runs)


def test_runs_records_and_measurements_print_in_a_line(runs, study_folder):
    for run in each(runs):
        for text in (repr(run), repr(run.record)):
            assert "\n" not in text and run.id in text and len(text) < 300
            assert len(json.dumps(text)) < 400
