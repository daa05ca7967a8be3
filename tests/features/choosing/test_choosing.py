"""Choosing without labels: signals by candidate and language, agreement by unit, choice and regret."""

import json
from dataclasses import asdict
from pathlib import Path
from statistics import fmean

import numpy as np
import pandas as pd
import pytest

from each import each
from isogloss.core.records import PREDICTIONS
from isogloss.data.result_files import Predictions, write_predictions
from isogloss.features.choosing.candidates import (
    KINDS,
    NO_ENSEMBLE,
    RANDOM,
    RULE,
    SOURCE,
    all_candidates,
    shared_answers,
)
from isogloss.features.choosing.choices import (
    DO_NOT_KNOW,
    choice_data,
    choice_tables,
    level_signals,
    list_candidates,
    regret_data,
    regret_tables,
)
from isogloss.features.choosing.expected_score import expected_score
from isogloss.features.choosing.model_choice import rule
from isogloss.metrics.labels import Tree
from isogloss.reports.measurements import Measurements, PlannedRun
from isogloss.tasks import ALL_TASKS
from isogloss.using.kinds import kind_of
from made_up_rows import facts, frame, model_of, shuffle_rows

LANGUAGES = ("qab", "qac", "qad", "qae", "qaf")
SEEDS = range(4)


def true_score(seed, language):
    return 0.5 + 0.08 * LANGUAGES.index(language) + 0.03 * seed


def model_row(seed, **fields):
    return {**facts({"seed": seed, **fields}), "model": model_of({**facts({"seed": seed, **fields})})}


def signal(seed, language, name, value, **fields):
    row = model_row(seed, **fields)
    signal_fields = {"language": language, "split": "dev", "signal": name, "value": value, "examples": 9}
    return {**row, "run": f"free {row['model']}", **signal_fields}


def rows(seeds=SEEDS, **fields):
    """Models whose confidence predicts their score, but whose source score does not."""
    signal_rows = []
    for seed in seeds:
        signal_rows.append(signal(seed, "qaa", "score", 0.9 - 0.01 * seed, **fields))
        signal_rows.append(signal(seed, "qaa", "confidence", 0.95, **fields))
        for language in LANGUAGES:
            signal_rows.append(
                signal(seed, language, "confidence", true_score(seed, language) + 0.1, **fields)
            )
            signal_rows.append(
                signal(seed, language, "entropy", 0.4 - true_score(seed, language) / 2, **fields)
            )
            signal_rows.append(signal(seed, language, "atc", true_score(seed, language) + 0.02, **fields))
    return signal_rows


def scores(seeds=SEEDS, languages=LANGUAGES, **fields):
    score_fields = {"split": "test", "metric": "accuracy", "main": True, "baseline": 0.1, "examples": 9}
    return [
        {
            **model_row(seed, **fields),
            "run": f"scores {seed}",
            **score_fields,
            "language": language,
            "score": true_score(seed, language) if language in LANGUAGES else NATURAL[language],
        }
        for seed in seeds
        for language in languages
    ]


def make_measurements(signal_rows, score_rows=(), runs=(), **frames):
    rows_by_frame = {"label-free": signal_rows, "scores": score_rows, **frames}
    return Measurements(
        runs=list(runs),
        _frames={name: frame(frame_rows) for name, frame_rows in rows_by_frame.items() if frame_rows},
    )


@pytest.mark.slow
def test_candidates_have_their_signals_by_language():
    (candidates,) = all_candidates(make_measurements(rows(), scores()))
    assert candidates.languages == LANGUAGES
    assert candidates.names == tuple(f"source-only, seed {seed}" for seed in SEEDS)
    assert set(candidates.signals) == {"confidence", "entropy", "atc", SOURCE}
    for place, seed in enumerate(SEEDS):
        for column, language in enumerate(LANGUAGES):
            assert candidates.signals["confidence"][place, column] == true_score(seed, language) + 0.1
            assert candidates.signals["entropy"][place, column] == -(0.4 - true_score(seed, language) / 2)
            assert candidates.signals[SOURCE][place, column] == 0.9 - 0.01 * seed
            assert candidates.scores[place, column] == true_score(seed, language)
    confidence_signals = [candidates.signals[name] for name in ("confidence", "entropy", "atc")]
    np.testing.assert_allclose(
        candidates.ranked, rule([confidence_signals, [candidates.signals[SOURCE]]]), atol=1e-8
    )
    assert {"cka", "retrieval", "word-distance"} <= set(KINDS)


def test_the_order_of_rows_changes_nothing():
    tables = [
        choice_data(all_candidates(make_measurements(signal_rows, score_rows))[0])
        for signal_rows, score_rows in ((rows(), scores()), (shuffle_rows(rows()), shuffle_rows(scores(), 1)))
    ]
    pd.testing.assert_frame_equal(*tables)


def test_similarity_of_states_counts_where_it_was_measured():
    cka_fields = {"layer": 4, "sentences": 9, "first": "qaa", "debiased": None}
    cka = [
        {**model_row(seed), "run": "c", "second": language, "cka": value, **cka_fields, "layer": layer}
        for seed in SEEDS
        for language in LANGUAGES
        for layer, value in ((1, seed / 10), (4, seed / 5))
    ]
    encoder = [{**cka[0], "model": "an encoder", "cka": 0.9}]
    (candidates,) = all_candidates(make_measurements(rows(), cka=cka + encoder))
    assert candidates.signals["cka"][:, 0] == pytest.approx([0.15 * seed for seed in SEEDS])


NATURAL = {"de": 0.8, "fi": 0.62, "tr": 0.57, "sw": 0.4, "ja": 0.47, "hu": 0.6}
"""True scores in languages of five families. Finnish and Hungarian share a family."""


def natural_study(seeds=(0, 1), examples=100, source_examples=400, labelled=NATURAL):
    """Return models with signals in natural languages, and scores in those with labels."""
    signal_rows, score_rows = [], []
    for seed in seeds:
        fields = {"source": "en", "target": ""}
        signal_rows.append({**signal(seed, "en", "score", 0.9, **fields), "examples": source_examples})
        for language, score in NATURAL.items():
            signal_rows += [
                signal(seed, language, name, score + 0.03 * seed, **fields) for name in ("atc", "doc")
            ]
        for row in scores([seed], labelled, **fields) if labelled else []:
            score_rows.append({**row, "examples": examples})
    (candidates,) = all_candidates(make_measurements(signal_rows, score_rows))
    return choice_data(candidates).set_index("language")


def test_languages_with_labels_say_which_score_to_expect():
    without_labels = {language: score for language, score in NATURAL.items() if language != "ja"}
    data = natural_study(labelled=without_labels)
    row = data.loc["ja"]
    assert row["doubts"] == "" and np.isnan(row["score"])
    assert row["expected_low"] < NATURAL["ja"] < row["expected_high"]
    assert row["expected"] == pytest.approx(NATURAL["ja"], abs=0.06)
    assert natural_study().loc["ja", "expected"] == row["expected"]  # Its own labels are not read.


def test_a_language_beyond_those_with_labels_has_no_expected_score():
    without_labels = {language: score for language, score in NATURAL.items() if language != "sw"}
    row = natural_study(labelled=without_labels).loc["sw"]
    assert np.isnan(row["expected"]) and "atc" in row["doubts"]


@pytest.mark.parametrize(
    ("changes", "doubt"),
    [
        ({"examples": 49}, "there are 0"),
        ({"source_examples": 100}, "over 100 examples"),
        ({"labelled": {"de": 0.8, "ja": 0.5, "tr": 0.5}}, "there are 3"),
        ({"labelled": {}}, "there are 0"),
    ],
)
def test_too_little_to_expect_a_score_is_stated(changes, doubt):
    row = natural_study(**changes).loc["sw"]
    assert np.isnan(row["expected"]) and doubt in row["doubts"]


def test_the_choice_is_held_against_the_truth():
    (candidates,) = all_candidates(make_measurements(rows(), scores()))
    data = choice_data(candidates).set_index("language")
    assert data["expected"].isna().all() and data["doubts"].str.contains("4 families").all()
    for language, row in data.iterrows():
        seed = candidates.models.index(row["model"])
        other_scores = [
            true_score(seed, other_language) for other_language in LANGUAGES if other_language != language
        ]
        assert row["others"] == pytest.approx(fmean(other_scores))
        assert row["other_languages"] == 4
    regrets = regret_data(candidates).set_index("by")
    assert list(regrets.index[:3]) == [RULE, SOURCE, RANDOM]
    assert regrets.loc["atc", ["regret", "best"]].tolist() == [0, 5]
    assert regrets.loc[SOURCE, "regret"] == pytest.approx(0.09)
    assert regrets.loc[RANDOM, "regret"] == pytest.approx(0.045)


def test_of_candidates_that_a_signal_does_not_tell_apart_the_mean_is_lost():
    """A choice of the first would depend on what candidates are called."""
    level = [row if row["signal"] != "score" else {**row, "value": 0.9} for row in rows()]
    (candidates,) = all_candidates(make_measurements(level, scores()))
    regrets = regret_data(candidates).set_index("by")
    assert (
        regrets.loc[SOURCE, "regret"] == pytest.approx(regrets.loc[RANDOM, "regret"]) == pytest.approx(0.045)
    )
    assert regrets.loc[SOURCE, "best"] == 0


def test_candidates_that_signals_rank_rightly_are_chosen_without_regret():
    signal_rows = [row for row in rows() if row["signal"] != "score"]
    data = choice_data(*all_candidates(make_measurements(signal_rows, scores()))).set_index("language")
    assert (data["choice"] == "source-only, seed 3").all()
    assert data["regret"].abs().max() == 0
    (regrets,) = regret_tables(make_measurements(signal_rows, scores()))
    assert [cell.text for cell in regrets.rows[0]][:1] == [RULE]


def test_without_labels_elsewhere_the_choice_has_no_score_at_all():
    m = make_measurements(rows(), scores(languages=("qab",)))
    data = choice_data(*all_candidates(m)).set_index("language")
    assert data["regret"].notna().to_dict() == {language: language == "qab" for language in LANGUAGES}
    assert data["other_languages"].to_dict() == {language: int(language != "qab") for language in LANGUAGES}
    (table,) = choice_tables(make_measurements(rows()))
    assert [cell.text for cell in table.rows[0]][3:] == [DO_NOT_KNOW, "–", "–", "–"]
    assert regret_tables(make_measurements(rows())) == []


def test_the_ensemble_has_all_models_that_read_their_inputs_as_they_are():
    translated_rows = [{**row, "inputs": "translated"} for row in rows(seeds=(0, 1))]
    (candidates,) = all_candidates(make_measurements([*rows(), *translated_rows]))
    plain_models = {model_row(seed)["model"] for seed in SEEDS}
    assert len(candidates.models) == 6
    data = choice_data(candidates)
    assert [set(models) for models in data["ensemble"]] == [plain_models] * len(LANGUAGES)
    trees = choice_data(*all_candidates(make_measurements(rows(task="parsing"))))
    assert set(trees["ensemble"]) == {()}


def test_tasks_without_an_ensemble_are_those_without_probabilities():
    assert {name for name, task in ALL_TASKS.items() if kind_of(task).probabilities is None} == set(
        NO_ENSEMBLE
    )


def test_models_made_for_a_language_are_candidates_there_alone():
    bilingual = [
        row for row in rows(seeds=(0, 1), method="bilingual", target="qab") if row["language"] in LANGUAGES
    ]
    (candidates,) = all_candidates(make_measurements([*rows(), *bilingual], scores()))
    assert len(candidates.names) == 6
    is_candidate = ~np.isnan(candidates.ranked)
    assert [len(candidates.ensemble(column)) for column in range(5)] == [6, 4, 4, 4, 4]
    assert is_candidate.sum(axis=0).tolist() == [6, 4, 4, 4, 4]
    data = choice_data(candidates).set_index("language")
    assert data["candidates"].tolist() == [6, 4, 4, 4, 4]
    assert len(list_candidates(candidates, "qac")) == 4
    # Without scores of all candidates a language has no truth.
    assert np.isnan(data.loc["qab", "regret"])


def test_one_model_of_a_language_is_nothing_to_choose_among():
    each_for_its_own = [
        row
        for seed, target in enumerate(("qab", "qac"))
        for row in rows(seeds=(seed,), method="bilingual", target=target)
    ]
    in_the_source = [row for row in rows() if row["language"] == "qaa"]
    for signal_rows in (rows(seeds=(0,)), each_for_its_own, in_the_source):
        assert choice_tables(make_measurements(signal_rows)) == []
    assert all_candidates(Measurements(runs=[])) == []


def keep(folder: Path, answers):
    folder.mkdir()
    predictions = [
        Predictions(
            language=language,
            ids=list(answers_by_id),
            predicted=list(map(json.dumps, answers_by_id.values())),
            contributions={},
        )
        for language, answers_by_id in answers.items()
    ]
    write_predictions(folder / PREDICTIONS, predictions)


def test_agreement_is_of_the_answers_that_were_kept(tmp_path):
    answers = {0: ["A", "B"], 1: ["A", "B"], 2: ["A", "A"], 3: ["B", "A"]}
    runs = []
    for seed in SEEDS:
        keep(tmp_path / str(seed), {language: {"1": answers[seed], "2": ["B"]} for language in LANGUAGES})
        name = f"free {model_row(seed)['model']}"
        runs.append(PlannedRun(id=name, state="finished", folder=tmp_path / str(seed)))
    (candidates,) = all_candidates(make_measurements(rows(), scores(), runs=runs))
    # Three words: 0 and 1 share 3, 0 and 2 share 2, 0 and 3 share 1, 2 and 3 share 2.
    expected = [(3 + 2 + 1) / 9, (3 + 2 + 1) / 9, (2 + 2 + 2) / 9, (1 + 1 + 2) / 9]
    for column in range(len(LANGUAGES)):
        assert candidates.signals["agreement"][:, column] == pytest.approx(expected)


PARALLEL = {"corpus": "sib200", "task": "text-classification", "source": "en", "target": ""}
TOPICS = ("travel", "health", "sports")


def parallel_study(folder, consistency, *, examples=120, **fields):
    """Return candidates of topics, whose answers equal those in English in a share of the ids."""
    fields = {**PARALLEL, **fields}
    signal_rows, score_rows, runs = [], [], []
    for seed in (0, 1):
        signal_rows.append({**signal(seed, "en", "score", 0.9, **fields), "examples": 400})
        signal_rows += [signal(seed, language, "atc", score, **fields) for language, score in NATURAL.items()]
        score_rows += [{**row, "examples": 100} for row in scores([seed], NATURAL, **fields)]
        source = {str(number): TOPICS[number % 3] for number in range(examples)}
        answers = {"en": source}
        for language, share in consistency.items():
            answers[language] = {
                key: topic if number < share * examples else TOPICS[number % 3 - 1]
                for number, (key, topic) in enumerate(source.items())
            }
        keep(folder / str(seed), answers)
        name = f"free {model_row(seed, **fields)['model']}"
        runs.append(PlannedRun(id=name, state="finished", folder=folder / str(seed)))
    (candidates,) = all_candidates(make_measurements(signal_rows, score_rows, runs=runs))
    return candidates


def test_consistency_of_a_parallel_split_is_the_share_of_ids_with_one_label(tmp_path):
    shares = {language: round(120 * score) / 120 for language, score in NATURAL.items()}
    candidates = parallel_study(tmp_path, shares)
    for column, language in each(enumerate(candidates.languages)):
        assert candidates.consistency[:, column] == pytest.approx(shares[language])
        assert (candidates.pairs[:, column] == 120).all()


def test_the_score_to_expect_follows_from_consistency_alone_where_translations_suffice(tmp_path):
    candidates = parallel_study(tmp_path, NATURAL)
    row = choice_data(candidates).set_index("language").loc["ja"]
    other_scores = {language: score for language, score in NATURAL.items() if language != "ja"}
    column = candidates.languages.index("ja")
    shares = dict(zip(candidates.languages, candidates.consistency[0], strict=True))
    expected = expected_score(
        "ja", "en", {"en": 0.9, **other_scores}, {"consistency": shares}, source_examples=400, pairs=120
    )
    assert [row["expected"], row["expected_low"]] == pytest.approx([expected.value, expected.low])
    assert candidates.pairs[0, column] == 120


@pytest.mark.parametrize(
    "change",
    [
        {"examples": 99},  # Too few pairs.
        {"corpus": "topics-of-mine"},  # Its ids may mean anything.
        {"corpus": "masakhaner", "task": "ner"},  # Labels of words.
    ],
)
def test_consistency_is_not_used_for_few_pairs_other_corpora_and_labels_of_words(tmp_path, change):
    candidates = parallel_study(tmp_path, NATURAL, **change)
    assert np.isnan(candidates.consistency).all() == ("corpus" in change)
    column = candidates.languages.index("ja")
    signals = level_signals(candidates, 0, [column])
    assert set(signals) == {"atc"}


def test_answers_in_a_language_that_is_not_measured_have_no_consistency(tmp_path):
    candidates = parallel_study(tmp_path, {language: 0.5 for language in NATURAL if language != "sw"})
    is_measured = ~np.isnan(candidates.consistency[0])
    assert dict(zip(candidates.languages, is_measured.tolist(), strict=True)) == {
        language: language != "sw" for language in sorted(NATURAL)
    }


def test_agreement_counts_words_heads_and_whole_answers():
    def shares(*answers):
        return shared_answers({n: {"x": json.dumps(answer)} for n, answer in enumerate(answers)})

    assert shares(["A", "B"], ["A", "C"]) == {0: 0.5, 1: 0.5}
    assert shares("A B", "A C") == {0: 0.0, 1: 0.0}
    trees = [asdict(Tree((0, 1), ("root", relation))) for relation in ("obj", "iobj")]
    assert shares(*trees) == {0: 0.5, 1: 0.5}
    assert shares(["A"]) == {}
    assert shared_answers({0: {"x": '"A"'}, 1: {"y": '"A"'}}) == {}


def test_a_set_of_labels_is_one_answer():
    def shares(*answers):
        return shared_answers(
            {n: dict(enumerate(map(json.dumps, answer))) for n, answer in enumerate(answers)}
        )

    assert shares([["A"], ["A", "B"]], [["A", "C"], ["B"]]) == {0: 0.0, 1: 0.0}
    assert shares([["A"], ["A", "B"], []], [["A"], ["B"], []]) == {0: 2 / 3, 1: 2 / 3}
    assert shares([[]], [[]]) == {0: 1.0, 1: 1.0}
