"""Datasets of the hub are files like any others: readers, fingerprints and messages cannot tell."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from huggingface_hub import constants

from each import each
from isogloss.core.errors import ConfigError, DataError
from isogloss.data.corpora.catalogue import CORPORA
from isogloss.data.corpora.texts_and_trees import Ud
from isogloss.data.data_sources import data_source
from isogloss.data.examples import ParsedSentence, Question, SentencePair, TaggedSentence
from isogloss.data.files import DiskFolder
from isogloss.data.hub_splits import hub_splits
from isogloss.features.fetching.hub_datasets import HubDatasets
from says import says

datasets = pytest.importorskip("datasets")

NLI = datasets.ClassLabel(names=["entailment", "neutral", "contradiction"])
SNLI = [("A man sleeps.", "He is awake.", 2), ("A dog.", "An animal.", 0), ("It\trains.", "Sun\nshine.", -1)]
NER = datasets.List(datasets.ClassLabel(names=["O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC"]))
UPOS = datasets.List(datasets.ClassLabel(names=["NOUN", "PUNCT", "ADP", "_", "DET", "VERB"]))
TEXTS = datasets.List(datasets.Value("string"))
ANSWERS = {"text": ["Ada"], "answer_start": [0]}


def columns(rows, *names):
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}


def make_questions(*ids):
    return {
        "id": list(ids),
        "context": ["Ada wrote it."] * len(ids),
        "question": ["Who?"] * len(ids),
        "answers": [ANSWERS] * len(ids),
    }


@pytest.fixture
def save(tmp_path: Path):
    """Save a dataset as the hub keeps it and give the folder."""

    def save(place: str, table: dict, layout: str = "0000.parquet", **features) -> HubDatasets:
        data = datasets.Dataset.from_dict(table)
        for column, kind in features.items():
            data = data.cast_column(column, kind)
        path = tmp_path / place / layout if layout[0] != "-" else tmp_path / f"{place}{layout}"
        path.parent.mkdir(parents=True, exist_ok=True)
        data.to_parquet(path)
        return HubDatasets(DiskFolder(tmp_path))

    return save


@pytest.fixture
def nli(save):
    def nli(place="facebook/xnli/de/validation", layout="0000.parquet", rows=SNLI[:2]) -> HubDatasets:
        return save(place, columns(rows, "premise", "hypothesis", "label"), layout, label=NLI)

    return nli


PAIR = SentencePair(id="1", first="A man sleeps.", second="He is awake.", label="contradiction")


@pytest.mark.parametrize(
    ("place", "layout"),
    [
        ("facebook/xnli/de/validation", "0000.parquet"),
        ("facebook/xnli/de/validation", "-00000-of-00001.parquet"),
        ("facebook/xnli/de", "xnli-validation.parquet"),
        ("xnli/de/validation", "0000.parquet"),
    ],
)
def test_pairs_are_read_in_every_layout_of_the_hub(nli, place, layout):
    pairs = list(CORPORA["xnli"].read(nli(place, layout), "de", "dev"))
    assert pairs == [PAIR, replace(PAIR, id="2", first="A dog.", second="An animal.", label="entailment")]


def test_several_parquet_files_are_one_split(nli):
    nli(layout="0000.parquet")
    assert len(list(CORPORA["xnli"].read(nli(layout="0001.parquet"), "de", "dev"))) == 4


def test_pairs_without_a_label_are_left_out_and_no_tab_breaks_a_line(nli):
    folder = nli("stanfordnlp/snli/plain_text/train", rows=[*SNLI, ("It\trains.", "Sun\nshine.", 1)])
    pairs = list(CORPORA["snli"].read(folder, "en", "train"))
    assert [pair.label for pair in pairs] == ["contradiction", "entailment", "neutral"]
    assert (pairs[-1].first, pairs[-1].second) == ("It rains.", "Sun shine.")


def test_paraphrases_get_our_labels(save):
    rows = [("a", "b", 1), ("c", "d", 0)]
    table = columns(rows, "sentence1", "sentence2", "label")
    kind = datasets.ClassLabel(names=["not_equivalent", "equivalent"])
    folder = save("nyu-mll/glue/mrpc/validation", table, label=kind)
    assert [pair.label for pair in CORPORA["mrpc"].read(folder, "en", "dev")] == ["1", "0"]
    folder = save(
        "google-research-datasets/paws-x/ko/test",
        {"id": [7, 9], **table},
        label=datasets.ClassLabel(names=["0", "1"]),
    )
    assert [pair.label for pair in CORPORA["pawsx"].read(folder, "ko", "test")] == ["1", "0"]


def test_entities_are_read(save):
    table = {"tokens": [["Ada", "Lovelace"], []], "ner_tags": [[1, 2], []]}
    folder = save("unimelb-nlp/wikiann/sw/train", table, ner_tags=NER, tokens=TEXTS)
    expected = TaggedSentence(id="1", words=("Ada", "Lovelace"), tags=("B-PER", "I-PER"))
    assert list(CORPORA["wikiann"].read(folder, "sw", "train")) == [expected]


@pytest.mark.slow
def test_part_of_speech_tags_are_read(save):
    folder = save("google/xtreme/udpos.Swahili/test", {"tokens": [["a"]], "pos_tags": [[0]]}, pos_tags=UPOS)
    with says(DataError, "'udpos'", "'sw'"):
        list(CORPORA["udpos"].read(folder, "sw", "test"))
    folder = save("google/xtreme/udpos.Thai/test", {"tokens": [["a"]], "pos_tags": [[0]]}, pos_tags=UPOS)
    assert next(CORPORA["udpos"].read(folder, "th", "test")).tags == ("NOUN",)


def test_trees_are_read_without_multi_word_ranges(save):
    table = {
        "idx": ["s1"],
        "tokens": [["Im", "In", "dem", "Haus"]],
        "upos": [[3, 2, 4, 0]],
        "head": [["None", "3", "3", "0"]],
        "deprel": [["_", "case", "det", "root"]],
    }
    folder = save("universal-dependencies/universal_dependencies/de_gsd/train", table, upos=UPOS)
    (tree,) = CORPORA["ud"].read(folder, "de", "train")
    bare_tree = replace(tree, lines=())
    assert bare_tree == ParsedSentence(
        id="s1",
        words=("In", "dem", "Haus"),
        tags=("ADP", "DET", "NOUN"),
        heads=(3, 3, 0),
        relations=("case", "det", "root"),
    )


def test_a_named_treebank_is_found(save):
    table = {"idx": ["s"], "tokens": [["ja"]], "upos": [[0]], "head": [["0"]], "deprel": [["root"]]}
    folder = save("universal-dependencies/universal_dependencies/de_pud/test", table, upos=UPOS)
    corpus = Ud(treebanks=(("de", "PUD"),))
    assert len(list(corpus.read(folder, "de", "test"))) == 1


def test_questions_are_read(save):
    save("rajpurkar/squad/plain_text/validation", make_questions("a", "b"))
    save("google/xquad/xquad.ru/validation", make_questions("x"))
    save("facebook/mlqa/mlqa.de.hi/test", make_questions("m"))
    folder = save(
        "google-research-datasets/tydiqa/secondary_task/train", make_questions("swahili-1", "english-1")
    )
    fields = {
        "squad": CORPORA["squad"].read(folder, "en", "dev"),
        "xquad": CORPORA["squad"].read(folder, "ru", "test"),
        "mlqa": replace(CORPORA["mlqa"], collection="hi").read(folder, "de", "test"),
        "tydiqa": CORPORA["tydiqa"].read(folder, "sw", "train"),
    }
    ids = {name: [question.id for question in questions] for name, questions in fields.items()}
    assert ids == {"squad": ["a", "b"], "xquad": ["x"], "mlqa": ["m"], "tydiqa": ["swahili-1"]}
    (question,) = CORPORA["squad"].read(folder, "ru", "test")
    assert isinstance(question, Question)
    assert (question.passage, question.answers) == ("Ada wrote it.", ((0, "Ada"),))


def test_an_exported_dataset_reads_the_same_from_disk(nli, tmp_path):
    folder = nli()
    (file,) = CORPORA["xnli"].files(folder, "de", "dev")
    (tmp_path / "xnli").mkdir()
    (tmp_path / "xnli/dev-de.tsv").write_text("".join(file.read()), encoding="utf-8")
    again = CORPORA["xnli"].read(DiskFolder(tmp_path), "de", "dev")
    assert list(again) == list(CORPORA["xnli"].read(folder, "de", "dev"))


def test_a_fingerprint_is_that_of_the_content(nli):
    def fingerprint(folder):
        return CORPORA["xnli"].files(folder, "de", "dev")[0].fingerprint()

    first_fingerprint = fingerprint(nli())
    assert fingerprint(nli()) == first_fingerprint
    assert fingerprint(nli(rows=SNLI[:1])) != first_fingerprint


@pytest.mark.slow
def test_what_is_not_there_is_said_as_for_a_folder(nli, tmp_path):
    with pytest.raises(DataError) as error:
        list(CORPORA["xnli"].read(nli(), "sw", "dev"))
    assert f"hub:{tmp_path}:" in str(error.value)
    assert "xnli has dev for: de." in str(error.value)
    assert nli().inside() == ["xnli"]


def test_labels_that_are_numbers_without_names_are_refused(save):
    folder = save("facebook/xnli/de/validation", columns(SNLI[:2], "premise", "hypothesis", "label"))
    with says(DataError, "'label'"):
        list(CORPORA["xnli"].read(folder, "de", "dev"))


@pytest.mark.parametrize("table", [{"premise": ["a"]}, {"other": [1]}])
def test_a_dataset_with_other_columns_is_a_data_error(save, table):
    with pytest.raises(DataError, match="facebook/xnli"):
        list(CORPORA["xnli"].read(save("facebook/xnli/de/validation", table), "de", "dev"))


def test_a_file_that_is_no_parquet_is_a_data_error(nli, tmp_path):
    folder = nli()
    (tmp_path / "facebook/xnli/de/validation/0000.parquet").write_bytes(b"no parquet")
    with pytest.raises(DataError, match=r"0000\.parquet: .*parquet"):
        list(CORPORA["xnli"].read(folder, "de", "dev"))


def test_nothing_is_written_where_the_library_keeps_what_it_loads(nli, tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    assert list(CORPORA["xnli"].read(nli(), "de", "dev"))
    assert not (tmp_path / "cache").exists() or not list((tmp_path / "cache").rglob("*.arrow"))


def test_every_place_is_one_that_its_reader_looks_for():
    everything = HubDatasets()
    for place in each(hub_splits().values()):
        assert place.corpus.files(everything, place.language, place.split)


def test_a_hub_that_cannot_be_reached_is_one_line(monkeypatch, tmp_path):
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(DataError, match="facebook/xnli@refs/convert/parquet") as error:
        list(CORPORA["xnli"].read(HubDatasets(), "sw", "dev"))
    assert "\n" not in str(error.value)


def test_without_the_library_for_parquet_the_extra_is_named(nli, monkeypatch):
    folder = nli()
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ConfigError, match=r'"isogloss\[hub\]"'):
        list(CORPORA["xnli"].read(folder, "de", "dev"))


def test_what_data_says_is_a_folder(tmp_path):
    assert data_source("") is None
    assert data_source(str(tmp_path)) == DiskFolder(tmp_path)
    assert data_source("hub") == HubDatasets()
    assert data_source(f"hub:{tmp_path}") == HubDatasets(DiskFolder(tmp_path))
    for text in (str(tmp_path / "no"), f"hub:{tmp_path}/no", "hub:"):
        with pytest.raises(DataError, match="folder"):
            data_source(text)
