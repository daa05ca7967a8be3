"""A search is a row of plans: proposed alike every time, made once, chosen by the source's dev set."""

import re
from dataclasses import replace
from statistics import fmean

import pytest

import isogloss
from isogloss.core.errors import ConfigError
from isogloss.core.identity import identity
from isogloss.core.records import read_record
from isogloss.engine import engines
from isogloss.engine.work import Work
from isogloss.features.searching.search import SearchRequest, _plan, _proposals, search
from isogloss.features.searching.spaces import Choices, Range, parse_over, space_of
from isogloss.planning.plan import plan_recipe
from isogloss.recipes.recipe_text import recipe_text
from isogloss.runs.fine_tune import FineTune
from isogloss.runs.measure import Measure
from isogloss.store.store import Outcome
from tiny import TINY, tiny

RATE = {"optimization.learning_rate": "1e-5..1e-2:log"}


def search_request(folder, ranges=RATE, text=TINY, **more):
    return SearchRequest(recipe=tiny(folder, text), over=ranges, out=folder / "runs", **more)


def refusal(folder, **more):
    """Return the message of a search that makes nothing."""
    with pytest.raises(ConfigError) as error:
        search(search_request(folder, **more), lambda _: pytest.fail("something was made"))
    assert not (folder / "runs").exists()
    return str(error.value)


@pytest.mark.parametrize(
    ("message", "space"),
    [
        ("1e-5..1e-3:log", Range(1e-5, 1e-3, log=True)),
        ("2..8", Range(2, 8)),
        ("0..0.5", Range(0.0, 0.5)),
        ("-1..1", Range(-1, 1)),
        ("2,4,8", Choices((2, 4, 8))),
        ("true,false", Choices((True, False))),
        ("../one,../two", Choices(("../one", "../two"))),
        ([{"kind": "lora"}, {"kind": "none"}], Choices(({"kind": "lora"}, {"kind": "none"}))),
    ],
)
def test_values_are_ranges_or_lists(message, space):
    result = space_of("key", message)
    assert result == space
    assert [type(end) for end in result.ends] == [type(end) for end in space.ends]


@pytest.mark.parametrize("message", ["8..2", "2..2", "a..b", "1..2..3", "0..1:log", "2..", "true..false"])
def test_what_is_no_range_is_refused(message):
    with pytest.raises(ConfigError, match=r"--over k=.*learning_rate=1e-5"):
        space_of("k", message)


@pytest.mark.parametrize("message", ["2", "2,2", [], ["x"]])
def test_one_value_is_nothing_to_search(message):
    with pytest.raises(ConfigError, match="--set"):
        space_of("k", message)


def test_a_field_without_values_is_refused():
    assert parse_over(" a.b = 1..2 ") == ("a.b", "1..2")
    with pytest.raises(ConfigError, match=r"--over a\.b: .*key=values"):
        parse_over("a.b")


def proposed_settings(folder, score, **more):
    """List the settings proposed where these are the scores."""
    proposals = _proposals(search_request(folder, **more))
    result = [next(proposals)]
    while result[-1]:
        result.append(proposals.send(score(result[-1], len(result))))
    return result[:-1]


def test_proposals_follow_from_seed_and_scores_and_more_of_them_begin_alike(tmp_path):
    pytest.importorskip("optuna")

    def score(values, number):
        return None if number == 3 else -abs(values["grid.optimization.learning_rate"] - 1e-4)

    changes = {"optimization.epochs": "1..9", **RATE}
    first_proposed_settings, again, more = (
        proposed_settings(tmp_path, score, ranges=changes, trials=n) for n in (14, 14, 20)
    )
    assert first_proposed_settings == again == more[:14]
    assert first_proposed_settings == proposed_settings(
        tmp_path, score, ranges=dict(reversed(changes.items())), trials=14
    )
    assert first_proposed_settings != proposed_settings(tmp_path, score, ranges=changes, trials=14, seed=1)
    assert first_proposed_settings != proposed_settings(tmp_path, lambda *_: 0.0, ranges=changes, trials=14)
    assert first_proposed_settings[0].keys() == {
        "grid.optimization.epochs",
        "grid.optimization.learning_rate",
    }
    assert all(
        isinstance(first_proposed_setting["grid.optimization.epochs"], int)
        for first_proposed_setting in first_proposed_settings
    )
    rates = [
        first_proposed_setting["grid.optimization.learning_rate"]
        for first_proposed_setting in first_proposed_settings
    ]
    assert all(1e-5 <= rate <= 1e-2 and float(f"{rate:.4g}") == rate for rate in rates)


def test_few_values_are_all_tried_once(tmp_path):
    changes = {"optimization.epochs": "1,2", "peft": [{"kind": "none"}, {"kind": "layer-freezing"}]}
    result = proposed_settings(tmp_path, lambda *_: 0.0, ranges=changes, trials=4)
    assert len(result) == 4
    assert all(result.count(item) == 1 for item in result)


def test_a_trial_makes_what_is_chosen_by_and_nothing_else(tmp_path):
    values = {"grid.optimization.learning_rate": 1e-4}
    with_target_only = TINY + '[[grid.method]]\nname = "target-only"\n'
    for target_dev, languages in ((False, ("qaa",)), (True, ("qab", "qad"))):
        runs = _plan(search_request(tmp_path, text=with_target_only, target_dev=target_dev), values).runs
        measures = [run for run in runs if isinstance(run, Measure)]
        assert {(run.diagnostic.name, run.split, run.languages) for run in measures} == {
            ("scores", "dev", languages)
        }
        methods = {run.method.name for run in runs if isinstance(run, FineTune)}
        assert methods == {"source-only", "bilingual"} | ({"target-only"} if target_dev else set())
        assert all(
            run.optimization.updates.learning_rate == 1e-4 for run in runs if isinstance(run, FineTune)
        )


def test_mistakes_are_found_before_anything_is_made(tmp_path, monkeypatch):
    assert refusal(tmp_path, ranges={}).startswith("search:")
    assert "Did you mean 'learning_rate'" in refusal(tmp_path, ranges={"optimization.learning_rte": "1..2"})
    assert "limit: rows of 9999 subwords" in refusal(tmp_path, ranges={"optimization.limit": "128,9999"})
    for changes in ({"title": "a,b"}, {**RATE, "title": "a,b"}):
        assert "whatever" in refusal(tmp_path, ranges=changes)
    assert refusal(tmp_path, by="f1").startswith("--by: no measure 'f1'. Known: span_f1")
    no_grid = 'title = "t"\n[encoder.pretrain]\ntext = ["rawtext"]\nlanguages = ["qaa", "qab"]\n'
    assert refusal(tmp_path, text=no_grid).startswith("search:")
    single_part = TINY.replace('"source-only"', '"target-only"').partition('[[grid.method]]\nname = "bil')[0]
    message = refusal(tmp_path, text=single_part)
    assert message.startswith("search:")
    assert "--target-dev" in message
    (tmp_path / "tiny-best.toml").write_text('title = "mine"')
    assert "tiny-best.toml:" in refusal(tmp_path)
    (tmp_path / "tiny-best.toml").write_bytes(b"\xff\xfe")
    assert "search" in refusal(tmp_path)
    (tmp_path / "tiny-best.toml").unlink()
    (tmp_path / "tiny-best.toml").mkdir()
    assert "tiny-best.toml:" in refusal(tmp_path)
    monkeypatch.setattr("isogloss.features.searching.search.find_spec", lambda _: None)
    assert refusal(tmp_path).endswith('Install: pip install "isogloss[search]"')


def test_a_trial_that_fails_is_one_of_the_others(tmp_path):
    changes = {"optimization.limit": [128, 64], "optimization.overlap": [10, 100]}
    result = search(
        search_request(tmp_path, ranges=changes), lambda plan: Outcome(failed={"id": "it diverged"})
    )
    assert [trial.failed[0][:20] for trial in result.trials[:3]] == ["it diverged"] * 3
    assert re.search(r"overlap: .*\b64 .*\b100\b", result.trials[3].failed[0])
    assert (result.best, result.recipe) == (None, None)
    assert not (tmp_path / "tiny-best.toml").exists()


def test_the_best_recipe_makes_what_was_scored_also_at_the_scale_searched(tmp_path, monkeypatch):
    def score_trial(trial, request, plan, outcome):
        return replace(trial, score=float(trial.values["grid.optimization.epochs"]), seeds=1)

    monkeypatch.setattr("isogloss.features.searching.search._score_trial", score_trial)
    methods = '"grid.method" = [{ name = "source-only" }, { name = "bilingual" }]'
    text = (
        f'{TINY}{methods}\n"grid.optimization" = {{ epochs = 3 }}\n'  # The scale also has a searched field.
    )
    options = {"scale": "least", "changes": {"grid.dev_examples": 2, "grid.method.0.batch_size": 4}}
    request = search_request(tmp_path, ranges={"optimization.epochs": "1,2"}, text=text, **options)
    plans = []
    result = search(request, lambda plan: plans.append(plan) or Outcome())
    again = plan_recipe(result.recipe, out=tmp_path / "runs", scale="least")
    ids = {identity(run) for run in again.runs}
    assert {identity(run) for run in plans[1].runs if isinstance(run, FineTune)} <= ids
    assert "metric on source dev 2.0000 at --scale least, mean" in result.recipe.read_text()
    (epochs,) = {
        run.optimization.epochs for run in plan_recipe(result.recipe).runs if isinstance(run, FineTune)
    }
    assert epochs == 2


@pytest.mark.nightly
@pytest.mark.slow
def test_a_search_goes_on_where_it_was_and_writes_the_best_recipe(tmp_path):
    pytest.importorskip("optuna")
    recipe = tiny(tmp_path, TINY.partition('[[grid.method]]\nname = "bilingual"')[0])
    options = {"over": RATE, "out": tmp_path / "runs", "jobs": 1}
    first_match = isogloss.search(recipe, trials=2, **options)
    heard = []
    result = isogloss.search(recipe, trials=3, on_trial=heard.append, **options)
    assert [item.made for item in first_match.trials] == [4, 4]
    assert [item.made for item in result.trials] == [0, 0, 4]
    assert [row.score for row in result.trials[:2]] == [row.score for row in first_match.trials]
    assert heard == list(result.trials)
    records = [read_record(path.parent) for path in (tmp_path / "runs").glob("*/record.json")]
    for trial in result.trials:
        rate = trial.values["grid.optimization.learning_rate"]
        models = {r.id for r in records if r.run.get("optimization", {}).get("learning_rate") == rate}
        own_rows = [row for r in records for row in r.rows if row.get("model") in models and row["main"]]
        assert (len(models), len(own_rows), {row["language"] for row in own_rows}) == (2, 2, {"qaa"})
        assert (trial.score, trial.seeds) == (fmean(row["score"] for row in own_rows), 2)
    assert result.best.score == max(row.score for row in result.trials)
    assert result.recipe == tmp_path / "tiny-best.toml"
    assert result.recipe.read_text().startswith(
        f"# Found by isogloss search: trial {result.best.number} of 3, "
    )
    plan = plan_recipe(result.recipe, out=tmp_path / "runs")
    models = [run for run in plan.runs if isinstance(run, FineTune)]
    assert all(plan.store.is_finished(run) for run in models)
    text, _ = recipe_text(result.recipe)
    assert f"learning_rate = {result.best.values['grid.optimization.learning_rate']}" in text
    assert len(isogloss.read(tmp_path / "runs").runs) == 12  # The report is about all trials.
    assert list(result.frame().columns) == ["trial", *result.best.values, "score", "std", "failed"]


@pytest.mark.nightly
@pytest.mark.slow
def test_the_engine_that_is_asked_for_makes_the_trials(tmp_path, monkeypatch):
    result = []

    def start(execution, context, runs, report):
        assert execution.address == "auto"
        result.extend(run for run in runs if not context.store.is_finished(run))
        Work(context, runs, report).work()

    monkeypatch.setattr(engines, "RAY", replace(engines.RAY, package="json", start=start))
    request = {"engine": "ray", "address": "auto", "scale": "least"}
    epochs = {"optimization.epochs": [1, 2]}
    results = isogloss.search(tiny(tmp_path), over=epochs, out=tmp_path / "runs", **request)
    assert [trial.score is not None for trial in results.trials] == [True, True]
    assert len(result) == sum(trial.made for trial in results.trials) > 2
    with pytest.raises(ConfigError, match=r"--address.*--engine ray.*--engine serial"):
        isogloss.search(tiny(tmp_path), over=epochs, out=tmp_path / "runs", **{**request, "engine": "serial"})
