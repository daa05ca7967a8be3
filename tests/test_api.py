"""The Python interface: few names, cheap to import, and everything the command line does."""

import sys

import pytest

import isogloss
from isogloss import api
from isogloss.core.errors import ConfigError, DataError, IsoglossError, ModelError
from isogloss.data.corpora.catalogue import CORPORA
from isogloss.features.built_in_languages import BuiltInLanguages
from tiny import RUNS, tiny

PUBLIC = [
    "AdjustTable",
    "Advice",
    "AdvisedOption",
    "AlignmentLoss",
    "Choice",
    "ComparableText",
    "Compared",
    "Comparison",
    "ConfigError",
    "DataError",
    "DivergedError",
    "EncoderTable",
    "ExpectedScore",
    "Gain",
    "GridTable",
    "InputError",
    "IsoglossError",
    "LabelConsistency",
    "LabelledText",
    "MeasureTable",
    "MetaLearner",
    "MethodTable",
    "MissingPackageError",
    "MixingTrace",
    "MixupLoss",
    "Model",
    "ModelError",
    "NearestSource",
    "Outcome",
    "ParsedSentence",
    "PlannedRun",
    "Prediction",
    "PretrainTable",
    "Progress",
    "Question",
    "Recipe",
    "Record",
    "Regret",
    "Report",
    "Result",
    "RunError",
    "Search",
    "SentencePair",
    "SourceCandidate",
    "States",
    "StorageError",
    "Study",
    "TaggedSentence",
    "TextLine",
    "TextModel",
    "TextTokenizer",
    "Translation",
    "Trial",
    "WordLinks",
    "__version__",
    "adjust",
    "advise",
    "align",
    "anisotropy",
    "average",
    "calibration_error",
    "cka",
    "compare",
    "compare_outputs",
    "compare_runs",
    "consistency",
    "corpus",
    "deltas",
    "ensemble_projection",
    "expected_score",
    "fit_temperature",
    "fusing",
    "gradient_conflict",
    "held_out_regret",
    "language_gates",
    "list_parts",
    "load_corpus",
    "load_encoder",
    "load_model",
    "measured_gains",
    "mine",
    "mix_language_adapters",
    "mixing",
    "move",
    "path",
    "perturb_parts",
    "plane",
    "project_labels",
    "random_direction",
    "rank_sources",
    "rank_sources_by_states",
    "read",
    "read_gains",
    "reorder_questions",
    "representation_map",
    "retrieval",
    "run",
    "score_bound",
    "score_parts",
    "search",
    "shift_adapter",
    "silver_labels",
    "states",
    "strip_parts",
    "swap_parts",
    "word_distances",
]


@pytest.fixture(scope="module")
def models(tiny_runs, pair_model):
    """A tagger, and one that labels pairs."""
    return [isogloss.load_model(folder) for folder in (min(tiny_runs.glob("*/model")).parent, pair_model)]


def test_the_public_names_are_those_promised():
    assert dir(isogloss) == sorted(isogloss.__all__) == PUBLIC
    assert sorted(api.__all__) == [
        "Result",
        "Study",
        "corpus",
        "read",
        "report",
        "report_alone",
        "run",
    ]


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_had_and_explained(name):
    assert getattr(isogloss, name).__doc__


def test_a_name_that_is_not_public_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"'isogloss'.*'train'"):
        _ = isogloss.train


def test_every_error_of_the_package_is_caught_by_one_name():
    assert issubclass(ConfigError, isogloss.IsoglossError)
    with pytest.raises(isogloss.IsoglossError, match=r"'quickstrt'.*'quickstart'"):
        isogloss.run("quickstrt")


@pytest.mark.slow
def test_a_run_gives_records_and_a_report_and_prints_nothing(tmp_path, capfd):
    heard = []
    result = isogloss.run(
        tiny(tmp_path),
        out=tmp_path / "runs",
        scale="least",
        changes={"title": "Mine"},
        jobs=1,
        on_progress=heard.append,
        report=False,
    )
    assert result.out == tmp_path / "runs"
    assert not (result.out / "report.html").exists()
    assert result.report.html.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert sorted(record.id for record in result.records) == sorted(result.outcome.made)
    assert {"fine-tune", "measure"} == {record.kind for record in result.records}
    assert heard and all(0 <= item.done <= item.total for item in heard)
    assert capfd.readouterr() == ("", "")


@pytest.mark.nightly
@pytest.mark.slow
def test_what_is_done_is_not_done_again(tiny_runs):
    result = isogloss.run(tiny_runs.parent / "tiny.toml", out=tiny_runs)
    assert (len(result.outcome.done), len(result.records), result.outcome.made) == (RUNS, RUNS, [])


@pytest.mark.slow
def test_a_tagger_labels_every_word(models):
    tagger, _ = models
    labels = tagger.predict([["tuki", "mirne"], "tuki mirne", (), "x " * 300])
    assert [len(label) for label in labels] == [2, 2, 0, 300]
    assert labels[0] == labels[1]
    assert {label for item in labels for label in item} <= set(tagger.task.labels)


def test_pairs_get_one_label(models):
    _, pairs = models
    labels = pairs.predict([("tuki mirne", "tuki"), ["a", "b " * 500]])
    assert len(labels) == 2
    assert set(labels) <= set(pairs.task.labels)


def test_a_prediction_does_not_depend_on_its_neighbours(models):
    tagger, _ = models
    sentences = [["tuki"] * count for count in (1, 30, 7)]
    assert tagger.predict(sentences) == [tagger.predict([sentence])[0] for sentence in sentences]
    assert tagger.predict(iter(sentences)) == tagger.predict(sentences)
    assert tagger.predict([]) == []


def test_a_model_scores_examples_of_a_corpus(models, tiny_runs):
    tagger, _ = models
    examples = list(CORPORA["wikiann"].read(BuiltInLanguages(), "qaa", "dev"))[:8]
    assert 0 <= tagger.score(examples) <= 1
    assert [len(prediction) for prediction in tagger.predict(examples)] == [
        len(example.words) for example in examples
    ]


@pytest.mark.parametrize("wrong", ["one text", ("one",), ("one", "two", "three")])
def test_what_is_no_pair_is_refused(models, wrong):
    with pytest.raises(DataError, match="input 1:"):
        models[1].predict([("a", "b"), wrong])


@pytest.mark.parametrize("wrong", [["a", ""], ["a", " "], ["a", 3]])
def test_what_is_no_word_is_refused(models, wrong):
    with pytest.raises(DataError, match="input 0:"):
        models[0].predict([wrong])


def test_only_a_finished_fine_tuning_is_loaded(tiny_runs, tmp_path):
    with pytest.raises(ModelError, match="finished"):
        isogloss.load_model(tmp_path)
    finished_parents = [path.parent for path in sorted(tiny_runs.glob("*/record.json"))]
    measured_path = next(path for path in finished_parents if not (path / "model").exists())
    with pytest.raises(ModelError, match="fine-tune:"):
        isogloss.load_model(measured_path)
    assert issubclass(ModelError, IsoglossError)


@pytest.mark.parametrize("name", ["Study", "run"])
def test_a_public_name_is_the_same_object_everywhere(name):
    assert getattr(isogloss, name) is getattr(sys.modules["isogloss.api"], name)


def test_comparisons_are_a_frame_with_a_row_for_each_language(tiny_runs):
    compared_runs = isogloss.compare_runs(tiny_runs, against="source-only", points=5)
    assert list(compared_runs.frame["language"]) == ["qaa", "qab"]
    assert (compared_runs.frame["p_value"] <= compared_runs.frame["p_holm"]).all()
    assert compared_runs.notes == []
    assert "<table" in compared_runs._repr_html_()
    with pytest.raises(ConfigError, match=r"encoder,.*'nothing'"):
        isogloss.compare_runs([tiny_runs], against="nothing")
    with pytest.raises(ConfigError, match=r"^compare:"):
        isogloss.compare_outputs(["a.jsonl"])
