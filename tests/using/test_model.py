"""A model answers inputs in any form, the same singly and in batches, and loads from runs and exports."""

import json
import shutil
import sys
from dataclasses import replace

import pytest

from each import each
from isogloss.core.errors import ConfigError, DataError, ModelError
from isogloss.core.identity import identity
from isogloss.core.records import read_record, write_record
from isogloss.data.examples import ParsedSentence, SentencePair, TaggedSentence
from isogloss.using import load_model
from isogloss.using.formats import FileEntry
from isogloss.using.predictor import GROUP_CHARACTERS, GROUP_SIZE, group_entries
from isogloss.using.provenance import provenance_of


def test_groups_are_of_a_number_and_a_size():
    def lengths(*characters):
        return [
            len(group) for group in group_entries(FileEntry(lines=("x" * length,)) for length in characters)
        ]

    assert lengths(*[0] * (2 * GROUP_SIZE + 1)) == [GROUP_SIZE, GROUP_SIZE, 1]
    assert lengths(1, 1, GROUP_CHARACTERS, 1, 1) == [3, 2]
    assert lengths() == []


def test_what_comes_from_python_has_the_size_of_its_texts():
    words = ("x" * (GROUP_CHARACTERS // 2),)
    entries = [
        FileEntry(lines=(), example=TaggedSentence(id=str(index), words=words, tags=())) for index in range(5)
    ]
    assert [len(group) for group in group_entries(entries)] == [2, 2, 1]


@pytest.mark.slow
def test_a_stream_says_what_all_at_once_says(make_model):
    model = make_model()
    inputs = ["Anna " * length for length in (0, 1, 90, 3)] * 80
    assert list(model.predict_stream(inputs)) == model.predict(inputs)
    assert [len(answer) for answer in model.predict(inputs[:4])] == [0, 1, 90, 3]


def test_strange_characters_have_labels_too(make_model):
    words = ["\x00", "a\x00b", "\u200b", "Việt Nam", "\U0001f600", "́", "x" * 5000]
    (labels,) = make_model().predict([words])
    assert len(labels) == len(words)


def test_a_language_is_checked(make_model):
    assert len(make_model().predict(["Anna"], language="sw")) == 1
    with pytest.raises(ConfigError, match=r"language: .*'Swahili'"):
        make_model().predict(["Anna"], language="Swahili")


def test_what_is_no_input_is_named_by_its_number(make_model):
    with pytest.raises(DataError, match=r"input 1: .*'3'"):
        make_model().predict(["a", 3])


def test_labels_of_a_corpus_are_ignored_and_examples_of_another_kind_named(make_model):
    tagged_sentence = TaggedSentence(id="a", words=("Der", "Hund"), tags=("B-PER", "O"))
    parsed_sentence = ParsedSentence(id="b", words=("Hund",), tags=("NOUN",), heads=(0,), relations=("root",))
    pair = SentencePair(id="c", first="Der Hund", second="bellt", label="1")
    tagger, classifier = make_model("upos"), make_model("nli")
    assert tagger.predict([tagged_sentence, parsed_sentence]) == tagger.predict(
        [tagged_sentence.words, parsed_sentence.words]
    )
    assert classifier.predict([pair]) == classifier.predict([(pair.first, pair.second)])
    with pytest.raises(DataError, match=r"input 1: .*SentencePair\(id='c'"):
        tagger.predict([tagged_sentence, pair])
    with pytest.raises(DataError, match="input 0:"):
        classifier.predict([tagged_sentence])


def test_a_single_text_or_mapping_has_a_single_answer(make_model):
    tagger, chooser = make_model("upos"), make_model("multiple-choice")
    choice = {"context": "Anna saw", "options": ["a dog", "hills"]}
    assert tagger.predict("the cat") == tagger.predict(["the cat"])[0]
    assert tagger.predict("the cat", scores=True) == tagger.predict(["the cat"], scores=True)[0]
    assert chooser.predict(choice) == chooser.predict([choice])[0]
    with pytest.raises(DataError, match=r"input 0: .*'the cat'"):
        make_model("nli").predict("the cat")


def test_a_stream_of_one_text_is_refused(make_model):
    with pytest.raises(DataError, match=r"inputs: .*'the cat'.*\[text\]\.$"):
        next(make_model("upos").predict_stream("the cat"))


def test_it_is_shown_in_a_line(make_model):
    title = "source-only: made-up upos en, seed 0"
    details = "task='upos', network=BertForTokenClassification, run='0123456789ab'"
    assert repr(make_model("upos")) == f"Model({title!r}, {details})"


def test_probabilities_of_words_are_those_of_their_labels(make_model):
    model = make_model()
    examples = [TaggedSentence(id="0", words=("Anna",) * count, tags=()) for count in (3, 0, 60)]
    predictions = model.predict(examples, scores=True)
    assert [prediction.answer for prediction in predictions] == model.predict(examples)
    lowest_score = 1 / len(model.task.labels)
    assert all(len(prediction.scores) == len(prediction.answer) for prediction in predictions)
    assert all(lowest_score <= score <= 1 for prediction in predictions for score in prediction.scores)
    assert model.predict([], scores=True) == []


def test_probabilities_of_pairs_sum_to_one_and_the_best_is_the_answer(make_model):
    model = make_model("nli")
    pairs = [model.kind.example(("Anna saw", "Anna " * length), str(length), "") for length in (1, 99, 5)]
    for prediction in each(model.predict(pairs, scores=True)):
        assert list(prediction.scores) == list(model.task.labels)
        assert sum(prediction.scores.values()) == pytest.approx(1)
        assert max(prediction.scores, key=prediction.scores.__getitem__) == prediction.answer


def test_a_run_and_its_export_are_the_same_model(tiny_runs, tmp_path):
    run = next(path.parent for path in sorted(tiny_runs.glob("*/model")))
    model = load_model(run, precision="float32")
    exported_model = load_model(model.export(tmp_path / "exported"), precision="float32")
    assert exported_model.provenance == model.provenance
    text = ["tuki mirne baboza"] * 3
    assert exported_model.predict(text) == model.predict(text)


@pytest.mark.parametrize("revision", ["", "@v2"])
def test_an_exported_model_on_the_hub_is_loaded_by_its_name(make_model, hub_cache, tmp_path, revision):
    model = make_model()
    hub_cache("me/tagger", model.export(tmp_path / "tagger"), revision=revision[1:] or "main")
    again = load_model(f"me/tagger{revision}", precision="float32")
    assert again.predict(["Anna saw"]) == model.predict(["Anna saw"])


def test_provenance_has_the_scores_that_were_measured(tiny_runs):
    for run in each({path.parent for path in tiny_runs.glob("*/model")}):
        provenance, weights = provenance_of(run)
        assert weights == run / "model"
        assert provenance.run == run.name
        assert {row["language"] for row in provenance.scores if row["baseline"] is None} == set(
            provenance.languages
        )
        measured_languages = {row["language"] for row in provenance.scores if row["baseline"] is not None}
        assert measured_languages >= {"qaa", "qab"}
        assert all(0 <= row["score"] <= 1 for row in provenance.scores)


def test_provenance_names_the_auxiliary_loss_and_which_weights_were_trained(tiny_runs, tmp_path):
    run = next(path.parent for path in sorted(tiny_runs.glob("*/model")))
    record = read_record(run)
    assert provenance_of(run)[0].method == record.run["method"]["kind"]
    added_fields = {"auxiliary": {"kind": "alignment-loss"}, "peft": {"kind": "lora"}}
    run_fields = {**record.run, **added_fields}
    other_folder = tmp_path / identity(run_fields)
    other_folder.mkdir()
    write_record(other_folder, replace(record, id=other_folder.name, run=run_fields))
    assert provenance_of(other_folder)[0].method == f"{record.run['method']['kind']} + alignment-loss + lora"


def test_a_damaged_neighbour_is_passed_over(tiny_runs, tmp_path):
    runs = shutil.copytree(tiny_runs, tmp_path / "runs")
    run = next(path.parent for path in sorted(runs.glob("*/model")))
    for path in runs.glob("*/record.json"):
        if path.parent != run:
            path.write_text("{")
    assert {row["baseline"] for row in provenance_of(run)[0].scores} == {None}


def test_what_is_no_model_is_refused_with_what_is_near(tiny_runs, tmp_path):
    run = next(path.parent for path in sorted(tiny_runs.glob("*/model")))
    with pytest.raises(ModelError, match=f"isogloss.*above: .*{run}"):
        load_model(run / "model")
    with pytest.raises(ModelError, match=r"\w{12}"):
        load_model(tiny_runs)
    with pytest.raises(ConfigError, match=r"load_model: precision: .*'float16'.*'float32'"):
        load_model(run, precision="float16")


def test_no_code_that_a_model_of_others_names_is_imported(make_model, tmp_path, monkeypatch):
    (tmp_path / "evil.py").write_text("raise SystemExit('imported')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    folder = make_model().export(tmp_path / "exported")
    config = folder / "config.json"
    body = json.loads(config.read_text())
    config.write_text(json.dumps({**body, "isogloss": {**body["isogloss"], "task": "evil:Task"}}))
    with pytest.raises(ConfigError, match="no task 'evil:Task'"):
        load_model(folder)
    assert "evil" not in sys.modules


def test_an_export_of_another_version_is_refused(make_model, tmp_path):
    folder = make_model().export(tmp_path / "exported")
    config = folder / "config.json"
    body = json.loads(config.read_text())
    for entry in ({"task": "upos"}, [], {**body["isogloss"], "more": 1}):
        config.write_text(json.dumps({**body, "isogloss": entry}))
        with pytest.raises(ModelError, match="'isogloss'"):
            load_model(folder)
    config.write_text(json.dumps({**body, "isogloss": {**body["isogloss"], "task": "upso"}}))
    with pytest.raises(ConfigError, match=r"'upso'.*'upos'"):
        load_model(folder)
