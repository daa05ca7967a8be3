"""Choosing without labels: signals by candidate and language, agreement by unit, choice and regret."""

import json
from dataclasses import asdict
from pathlib import Path
from statistics import fmean

import numpy as np
import pandas as pd
import pytest
from made_up_rows import facts, frame, model_of, shuffled

from isogloss.data.result_files import PREDICTIONS, Predictions, write_predictions
from isogloss.metrics.labels import Tree
from isogloss.metrics.model_choice import rule
from isogloss.reports.candidates import KINDS, RANDOM, RULE, SOURCE, all_candidates, shared_answers
from isogloss.reports.choosing import (
    DO_NOT_KNOW,
    candidate_data,
    choice_data,
    choice_tables,
    regret_data,
    regret_tables,
    reliability,
)
from isogloss.reports.measurements import Measurements, Run

LANGUAGES = ("qab", "qac", "qad", "qae", "qaf")
SEEDS = range(4)


def true_score(seed, language):
    return 0.5 + 0.08 * LANGUAGES.index(language) + 0.03 * seed


def model_row(seed, **about):
    return {**facts({"seed": seed, **about}), "model": model_of({**facts({"seed": seed, **about})})}


def signal(seed, language, name, value, **about):
    row = model_row(seed, **about)
    told = {"language": language, "split": "dev", "signal": name, "value": value, "examples": 9}
    return {**row, "run": f"free {row['model']}", **told}


def rows(seeds=SEEDS, **about):
    """Models whose confidence tells their score, and whose score in the source says nothing."""
    found = []
    for seed in seeds:
        found.append(signal(seed, "qaa", "score", 0.9 - 0.01 * seed, **about))
        found.append(signal(seed, "qaa", "confidence", 0.95, **about))
        for language in LANGUAGES:
            found.append(signal(seed, language, "confidence", true_score(seed, language) + 0.1, **about))
            found.append(signal(seed, language, "entropy", 0.4 - true_score(seed, language) / 2, **about))
            found.append(signal(seed, language, "atc", true_score(seed, language) + 0.02, **about))
    return found


def scores(seeds=SEEDS, languages=LANGUAGES, **about):
    told = {"split": "test", "metric": "accuracy", "main": True, "baseline": 0.1, "examples": 9}
    return [
        {
            **model_row(seed, **about),
            "run": f"scores {seed}",
            **told,
            "language": code,
            "score": true_score(seed, code),
        }
        for seed in seeds
        for code in languages
    ]


def measured(free, scored=(), runs=(), **frames):
    made = {"label-free": free, "scores": scored, **frames}
    return Measurements(runs=list(runs), _frames={name: frame(one) for name, one in made.items() if one})


@pytest.mark.slow
def test_candidates_have_their_signals_by_language():
    (one,) = all_candidates(measured(rows(), scores()))
    assert one.languages == LANGUAGES
    assert one.names == tuple(f"source-only, seed {seed}" for seed in SEEDS)
    assert {*one.signals} == {"confidence", "entropy", "atc", SOURCE}
    for place, seed in enumerate(SEEDS):
        for column, code in enumerate(LANGUAGES):
            assert one.signals["confidence"][place, column] == true_score(seed, code) + 0.1
            assert one.signals["entropy"][place, column] == -(0.4 - true_score(seed, code) / 2)
            assert one.signals[SOURCE][place, column] == 0.9 - 0.01 * seed
            assert one.scores[place, column] == true_score(seed, code)
    sure = [one.signals[name] for name in ("confidence", "entropy", "atc")]
    np.testing.assert_allclose(one.ranked, rule([sure, [one.signals[SOURCE]]]), atol=1e-8)
    assert one.estimated == pytest.approx(
        [fmean(true_score(seed, code) for seed in SEEDS) + 0.02 for code in LANGUAGES]
    )
    assert {"cka", "retrieval", "word-distance"} <= {*KINDS}


def test_the_order_of_rows_changes_nothing():
    tables = [
        choice_data(all_candidates(measured(free, scored))[0])
        for free, scored in ((rows(), scores()), (shuffled(rows()), shuffled(scores(), 1)))
    ]
    pd.testing.assert_frame_equal(*tables)


def test_similarity_of_states_counts_where_it_was_measured():
    about = {"layer": 4, "sentences": 9, "first": "qaa", "debiased": None}
    cka = [
        {**model_row(seed), "run": "c", "second": code, "cka": value, **about, "layer": layer}
        for seed in SEEDS
        for code in LANGUAGES
        for layer, value in ((1, seed / 10), (4, seed / 5))
    ]
    encoder = [{**cka[0], "model": "an encoder", "cka": 0.9}]
    (one,) = all_candidates(measured(rows(), cka=cka + encoder))
    assert one.signals["cka"][:, 0] == pytest.approx([0.15 * seed for seed in SEEDS])


def test_the_choice_is_held_against_the_truth():
    (one,) = all_candidates(measured(rows(), scores()))
    data = choice_data(one).set_index("language")
    # The signals of confidence rise by seed, the source score falls: together they say nothing.
    assert (data["verdict"] == DO_NOT_KNOW).all()
    found = regret_data(one).set_index("by")
    assert list(found.index[:3]) == [RULE, SOURCE, RANDOM]
    assert found.loc["atc", ["regret", "best"]].tolist() == [0, 5]
    assert found.loc[SOURCE, "regret"] == pytest.approx(0.09)
    assert found.loc[RANDOM, "regret"] == pytest.approx(0.045)


def test_of_candidates_that_a_signal_does_not_tell_apart_the_mean_is_lost():
    """A choice of the first would depend on what candidates are called."""
    level = [row if row["signal"] != "score" else {**row, "value": 0.9} for row in rows()]
    (one,) = all_candidates(measured(level, scores()))
    found = regret_data(one).set_index("by")
    assert found.loc[SOURCE, "regret"] == pytest.approx(found.loc[RANDOM, "regret"]) == pytest.approx(0.045)
    assert found.loc[SOURCE, "best"] == 0


def test_good_signals_are_known_to_be_good():
    told = [row for row in rows() if row["signal"] != "score"]
    (one,) = all_candidates(measured(told, scores()))
    data = choice_data(one).set_index("language")
    assert (data["choice"] == "source-only, seed 3").all()
    assert (data["verdict"] == "choose").all()
    assert data["regret"].abs().max() == 0
    assert ((data["predicted.low"] <= data["score"]) & (data["score"] <= data["predicted.high"])).all()
    own = reliability(one)
    assert (own.languages, own.chosen, own.right, own.predicted) == (5, 5, 5, 5)
    (table,) = choice_tables(measured(told, scores()))
    assert "it chose in 5, where 5 choices were better than one at random" in table.caption
    (regrets,) = regret_tables(measured(told, scores()))
    assert [cell.text for cell in regrets.rows[0]][:1] == [RULE]


def test_without_labels_there_is_a_choice_and_no_prediction():
    m = measured(rows(), scores(languages=("qab",)))
    (one,) = all_candidates(m)
    data = choice_data(one).set_index("language")
    assert data["predicted"].isna().all()
    assert (data["verdict"] == DO_NOT_KNOW).all()
    assert data["regret"].notna().to_dict() == {code: code == "qab" for code in LANGUAGES}
    (table,) = choice_tables(m)
    assert "Fewer than three other languages have labels, too few to predict scores." in table.caption
    (bare,) = choice_tables(measured(rows()))
    assert [cell.text for cell in bare.rows[0]][4:] == ["–", "–", DO_NOT_KNOW, "–", "–"]
    assert regret_tables(measured(rows())) == []


def test_without_labels_the_choice_has_an_estimate_of_its_own():
    (one,) = all_candidates(measured(rows()))
    data = choice_data(one).set_index("language")
    for code, row in data.iterrows():
        chosen = one.models.index(row["model"])
        values = [one.signals[name][chosen, one.languages.index(code)] for name in ("atc",)]
        assert (row["estimate.low"], row["estimate.high"]) == (min(values), max(values))
        assert row["estimate"] == pytest.approx(fmean(values))
    assert (data["reason"] == "fewer than 3 other languages have labels").all()


def test_a_choice_that_is_known_has_no_reason_for_doubt():
    told = [row for row in rows() if row["signal"] != "score"]
    assert (choice_data(*all_candidates(measured(told, scores())))["reason"] == "").all()
    doubted = choice_data(*all_candidates(measured(rows(), scores())))
    assert (doubted["reason"] == "the gain over one at random may be 0").all()


def test_by_three_languages_with_labels_the_others_are_predicted():
    m = measured(rows(), scores(languages=LANGUAGES[:3]))
    data = choice_data(*all_candidates(m)).set_index("language")
    assert data["predicted"].notna().to_dict() == {code: code in LANGUAGES[3:] for code in LANGUAGES}
    (table,) = choice_tables(m)
    assert "too few to predict scores" not in table.caption
    assert "predicted intervals" not in table.caption


def test_models_made_for_a_language_are_candidates_there_alone():
    bilingual = [
        row for row in rows(seeds=(0, 1), method="bilingual", target="qab") if row["language"] in LANGUAGES
    ]
    (one,) = all_candidates(measured([*rows(), *bilingual], scores()))
    assert len(one.names) == 6
    there = ~np.isnan(one.ranked)
    assert there.sum(axis=0).tolist() == [6, 4, 4, 4, 4]
    data = choice_data(one).set_index("language")
    assert data["candidates"].tolist() == [6, 4, 4, 4, 4]
    assert len(candidate_data(one, "qac")) == 4
    # Without scores of all candidates a language has no truth.
    assert np.isnan(data.loc["qab", "regret"])


def test_one_model_of_a_language_is_nothing_to_choose_among():
    each_for_its_own = [
        row
        for seed, target in enumerate(("qab", "qac"))
        for row in rows(seeds=(seed,), method="bilingual", target=target)
    ]
    in_the_source = [row for row in rows() if row["language"] == "qaa"]
    for own in (rows(seeds=(0,)), each_for_its_own, in_the_source):
        assert choice_tables(measured(own)) == []
    assert all_candidates(Measurements(runs=[])) == []


def keep(folder: Path, answers):
    folder.mkdir()
    told = [
        Predictions(language=code, ids=[*one], predicted=[*map(json.dumps, one.values())], contributions={})
        for code, one in answers.items()
    ]
    write_predictions(folder / PREDICTIONS, told)


def test_agreement_is_of_the_answers_that_were_kept(tmp_path):
    answers = {0: ["A", "B"], 1: ["A", "B"], 2: ["A", "A"], 3: ["B", "A"]}
    runs = []
    for seed in SEEDS:
        keep(tmp_path / str(seed), {code: {"1": answers[seed], "2": ["B"]} for code in LANGUAGES})
        name = f"free {model_row(seed)['model']}"
        runs.append(Run(id=name, state="finished", folder=tmp_path / str(seed)))
    (one,) = all_candidates(measured(rows(), scores(), runs=runs))
    # Of three words: 0 and 1 share 3, 0 and 2 share 2, 0 and 3 share 1, 2 and 3 share 2.
    expected = [(3 + 2 + 1) / 9, (3 + 2 + 1) / 9, (2 + 2 + 2) / 9, (1 + 1 + 2) / 9]
    for column in range(len(LANGUAGES)):
        assert one.signals["agreement"][:, column] == pytest.approx(expected)


def test_agreement_counts_words_heads_and_whole_answers():
    def shares(*answers):
        return shared_answers({n: {"x": json.dumps(one)} for n, one in enumerate(answers)})

    assert shares(["A", "B"], ["A", "C"]) == {0: 0.5, 1: 0.5}
    assert shares("A B", "A C") == {0: 0.0, 1: 0.0}
    trees = [asdict(Tree((0, 1), ("root", relation))) for relation in ("obj", "iobj")]
    assert shares(*trees) == {0: 0.5, 1: 0.5}
    assert shares(["A"]) == {}
    assert shared_answers({0: {"x": '"A"'}, 1: {"y": '"A"'}}) == {}


def test_a_set_of_labels_is_one_answer():
    def shares(*answers):
        return shared_answers({n: dict(enumerate(map(json.dumps, one))) for n, one in enumerate(answers)})

    assert shares([["A"], ["A", "B"]], [["A", "C"], ["B"]]) == {0: 0.0, 1: 0.0}
    assert shares([["A"], ["A", "B"], []], [["A"], ["B"], []]) == {0: 2 / 3, 1: 2 / 3}
    assert shares([[]], [[]]) == {0: 1.0, 1: 1.0}
