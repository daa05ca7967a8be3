"""Scores in exchange formats: valid, complete, and never a real dataset's for an artificial language."""

import json
from pathlib import Path

import pytest

from isogloss.core.errors import ConfigError
from isogloss.features.result_formats.exchange import write_results
from made_up_rows import make_measurements, score

SCHEMA = Path(__file__).parents[4] / "shared" / "data" / "schemas" / "every_eval_ever-0.3.0.json"

BUILT_IN = [score(0.75, language="qad", corpus="xnli", task="nli", seed=seed) for seed in (0, 1)]
REAL = [
    score(0.5, language=language, corpus="xnli", task="nli", split=split, source="en", target="")
    for language, split in (("en", "test"), ("de", "test"), ("de", "dev"))
]


def write_form(rows, form, folder, **options):
    files = write_results(make_measurements(scores=rows), form, folder, **options)
    assert files and all(file.is_file() for file in files)
    return [file.read_text(encoding="utf-8") for file in files]


def test_every_model_is_an_evaluation_with_each_of_its_scores(tmp_path):
    records = [
        json.loads(text) for text in write_form([*BUILT_IN, *REAL], "every-eval-ever", tmp_path / "out")
    ]
    results = [result for record in records for result in record["evaluation_results"]]
    assert len(records) == 3 and len(results) == 5
    results_by_source = {result["source_data"]["source_type"]: result for result in results}
    assert set(results_by_source) == {"other", "hf_dataset"}
    assert results_by_source["other"]["source_data"]["dataset_name"] == "isogloss built-in languages: xnli"
    assert results_by_source["hf_dataset"]["source_data"]["hf_repo"] == "facebook/xnli"
    splits = {result["score_details"]["details"]["split"] for result in results}
    assert splits == {"test", "validation"}
    assert {result["score_details"]["score"] for result in results} == {0.5, 0.75}


@pytest.mark.data
@pytest.mark.skipif(not SCHEMA.exists(), reason="the published schema is not here")
def test_records_are_valid_against_the_published_schema(tmp_path):
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    texts = write_form([*BUILT_IN, *REAL], "every-eval-ever", tmp_path / "out", organization="Us")
    assert [error.message for text in texts for error in validator.iter_errors(json.loads(text))] == []


def test_the_hub_gets_scores_on_its_own_datasets_alone(tmp_path):
    yaml = pytest.importorskip("yaml")
    from huggingface_hub import parse_eval_result_entries

    files = write_results(make_measurements(scores=[*BUILT_IN, *REAL]), "hub", tmp_path / "out")
    assert [file.relative_to(tmp_path / "out").parts[1:] for file in files] == [
        (".eval_results", "xnli.yaml")
    ]
    entries = parse_eval_result_entries(yaml.safe_load(files[0].read_text(encoding="utf-8")))
    assert [(entry.dataset_id, entry.task_id, entry.value) for entry in entries] == [
        ("facebook/xnli", "en", 50.0),
        ("facebook/xnli", "de", 50.0),
        ("facebook/xnli", "de", 50.0),
    ]
    assert "validation" in entries[2].notes
    with pytest.raises(ConfigError, match="hub"):
        write_results(make_measurements(scores=BUILT_IN), "hub", tmp_path / "none")
    assert not (tmp_path / "none").exists()


NAMES = [
    score(value, language=language, corpus="wikiann", task="ner", metric=metric, split=split, seed=seed)
    | {"source": "en", "target": ""}
    for language in ("lv", "qad", "de")
    for split in ("test", "dev")
    for seed, value in ((0, 0.5), (1, 0.6))
    for metric in ("span_f1", "word_f1")
]


def test_euroeval_gets_a_line_for_each_of_its_datasets_with_all_seeds(tmp_path):
    (text,) = write_form([*NAMES, *BUILT_IN, *REAL], "euroeval", tmp_path / "out", organization="our-lab")
    test, validation = [json.loads(line) for line in text.splitlines()]
    assert test["dataset"] == validation["dataset"] == "wikiann-lv"
    assert (test["task"], test["languages"]) == ("named-entity-recognition", ["lv"])
    assert (test["validation_split"], validation["validation_split"]) == (False, True)
    assert test["model"] == "our-lab/source-only-en"
    assert test["results"]["raw"] == [{"micro_f1_no_misc": value, "micro_f1": value} for value in (0.5, 0.6)]
    error = 1.96 * 100 * 0.05  # The standard error of 0.5 and 0.6 is 0.05.
    assert test["results"]["total"] == pytest.approx(
        {
            "test_micro_f1_no_misc": 55,
            "test_micro_f1": 55,
            "test_micro_f1_no_misc_se": error,
            "test_micro_f1_se": error,
        }
    )


def test_a_record_of_euroeval_has_all_fields_that_it_requires_and_is_not_its_own(tmp_path):
    (text,) = write_form(NAMES[:1], "euroeval", tmp_path / "out")
    record = json.loads(text)
    required_texts = {
        *("dataset", "task", "languages", "model", "results", "num_model_parameters", "max_sequence_length"),
        *("vocabulary_size", "merge", "generative", "generative_type", "few_shot", "validation_split"),
    }  # Those of its class BenchmarkResult, version 17.7.0.
    assert required_texts <= record.keys()
    assert record["euroeval_version"] is None and record["isogloss_version"]
    assert record["results"]["total"] == {"test_micro_f1_no_misc": 50, "test_micro_f1": 50}  # One seed.


@pytest.mark.parametrize(
    ("corpus", "split", "language", "dataset", "validation"),
    [
        ("squad", "dev", "en", "squad", False),
        ("squad", "test", "es", "xquad-es", False),
        ("mlqa", "test", "es", "mlqa-es", False),
    ],
)
def test_questions_have_euroevals_names_of_datasets_and_measures(
    tmp_path, corpus, split, language, dataset, validation
):
    rows = [
        score(value, language=language, corpus=corpus, task="qa", split=split, metric=metric)
        for metric, value in (("f1", 0.5), ("em", 0.25))
    ]
    (record,) = (json.loads(item) for item in write_form(rows, "euroeval", tmp_path / "out"))
    assert (record["dataset"], record["validation_split"]) == (dataset, validation)
    assert record["results"]["raw"] == [{"f1": 0.5, "em": 0.25}]
    assert record["results"]["total"] == {"test_f1": 50, "test_em": 25}


def test_euroeval_refuses_what_it_does_not_report_with_what_it_does(tmp_path):
    with pytest.raises(ConfigError, match="EuroEval"):
        write_results(make_measurements(scores=[*REAL, *BUILT_IN, NAMES[-1]]), "euroeval", tmp_path / "out")
    translations = {**NAMES[0], "inputs": "translated"}
    with pytest.raises(ConfigError, match="EuroEval"):
        write_results(make_measurements(scores=[translations]), "euroeval", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_json_lines_have_a_line_for_each_score_with_its_facts(tmp_path):
    (text,) = write_form([*BUILT_IN, *REAL], "json", tmp_path / "out")
    lines = [json.loads(line) for line in text.splitlines()]
    assert [line["score"] for line in lines] == [0.75, 0.75, 0.5, 0.5, 0.5]
    assert [line["split"] for line in lines][-1] == "validation"
    assert all(line["method"] and line["task"] == "nli" for line in lines)


def test_a_folder_that_is_there_and_an_unknown_form_are_refused(tmp_path):
    with pytest.raises(ConfigError, match=tmp_path.name):
        write_results(make_measurements(scores=REAL), "json", tmp_path)
    for wrong, right in (("jsonl", "json"), ("eurevl", "euroeval")):
        with pytest.raises(ConfigError, match=f"'{right}'"):
            write_results(make_measurements(scores=REAL), wrong, tmp_path / "out")
