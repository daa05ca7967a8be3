"""Python rows are a corpus: mappings, a dataset with named labels, a frame."""

from dataclasses import replace

import pandas as pd
import pytest

import isogloss
from isogloss.core.errors import ConfigError, DataError
from isogloss.data.examples import LabelledText, Question, TaggedSentence
from isogloss.data.sources import Sources

ROWS = [{"text": "Mvua ilinyesha.", "label": "weather"}, {"text": "Timu ilishinda.", "label": "sport"}]
READ = [LabelledText(id=str(n), text=row["text"], label=row["label"]) for n, row in enumerate(ROWS)]
LABELS = ("weather", "sport")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def dataset():
    datasets = pytest.importorskip("datasets")
    features = datasets.Features(
        {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=list(LABELS))}
    )
    return datasets.Dataset.from_list(
        [{**row, "label": LABELS.index(row["label"])} for row in ROWS], features
    )


@pytest.mark.parametrize("make", [lambda: ROWS, lambda: iter(ROWS), dataset, lambda: pd.DataFrame(ROWS)])
def test_rows_of_any_kind_are_the_same_corpus(make, cache):
    facts = {"name": "own-news", "kind": "text", "labels": list(LABELS)}
    corpus = isogloss.corpus(facts, rows={"sw": {"train": make(), "test": ROWS[:1]}})
    assert (corpus.name, corpus.labels, dict(corpus.languages)) == ("own-news", LABELS, {"sw": "sw"})
    assert Sources().examples("own-news", "sw", "train") == READ
    assert Sources().examples("own-news", "sw", "test") == READ[:1]
    first_fingerprint = Sources().fingerprint("own-news", "sw", "train")
    again = isogloss.corpus(facts, rows={"sw": {"train": ROWS, "test": ROWS[:1]}})
    assert again == corpus
    assert Sources().fingerprint("own-news", "sw", "train") == first_fingerprint
    assert len(list(cache.glob("isogloss/corpora/*"))) == 1
    isogloss.corpus(facts, rows={"sw": {"train": ROWS[::-1], "test": ROWS[:1]}})
    assert Sources().fingerprint("own-news", "sw", "train") != first_fingerprint


def test_columns_and_lists_of_named_labels():
    datasets = pytest.importorskip("datasets")
    tags = datasets.List(datasets.ClassLabel(names=["O", "B-PER", "I-PER"]))
    features = datasets.Features({"tokens": datasets.List(datasets.Value("string")), "ner_tags": tags})
    rows = datasets.Dataset.from_list([{"tokens": ["Ana", "Li", "anaimba"], "ner_tags": [1, 2, 0]}], features)
    facts = {"name": "own-names", "kind": "tagging", "columns": {"words": "tokens", "labels": "ner_tags"}}
    corpus = isogloss.corpus(facts, rows={"sw": {"train": rows}})
    assert corpus.tasks == ("span-tagging",)
    expected = TaggedSentence(id="0", words=("Ana", "Li", "anaimba"), tags=("B-PER", "I-PER", "O"))
    assert Sources().examples("own-names", "sw", "train") == [expected]


@pytest.mark.parametrize("streamed_value", [False, True])
@pytest.mark.parametrize("label", ["ner_tags", "upos", "pos_tags", "labels"])
def test_a_dataset_dict_needs_no_table_of_columns_and_no_other_names_of_splits(label, streamed_value):
    datasets = pytest.importorskip("datasets")
    tags = datasets.List(datasets.ClassLabel(names=["O", "B-PER", "I-PER"]))
    features = datasets.Features({"tokens": datasets.List(datasets.Value("string")), label: tags})
    rows = datasets.Dataset.from_list([{"tokens": ["Ana", "Li", "anaimba"], label: [1, 2, 0]}], features)
    rows = rows.to_iterable_dataset() if streamed_value else rows
    splits = {"train": rows, "validation": rows, "test": rows}
    splits = datasets.IterableDatasetDict(splits) if streamed_value else datasets.DatasetDict(splits)
    corpus = isogloss.corpus(
        {"name": f"own-{label}-{streamed_value}", "kind": "tagging"}, rows={"en": splits}
    )
    expected = TaggedSentence(id="0", words=("Ana", "Li", "anaimba"), tags=("B-PER", "I-PER", "O"))
    for split in ("train", "dev", "test"):
        assert Sources().examples(corpus.name, "en", split) == [expected]


def test_pairs_have_the_names_of_the_field_too():
    for index, (first_name, second) in enumerate([("premise", "hypothesis"), ("sentence1", "sentence2")]):
        rows = [{first_name: "Jua.", second: "Mvua.", "label": "contradiction"}]
        isogloss.corpus({"name": f"own-pairs-{index}", "kind": "pair"}, rows={"sw": {"validation": rows}})
        (pair,) = Sources().examples(f"own-pairs-{index}", "sw", "dev")
        assert (pair.first, pair.second, pair.label) == ("Jua.", "Mvua.", "contradiction")


def test_names_that_are_first_in_use_change_no_identity(tmp_path):
    """The names of parts that were the only ones go before others, in rows and in the digest of a corpus."""
    pair = [{"words": ["a"], "tokens": ["b"], "labels": ["X"], "ner_tags": ["Y"]}]
    facts = {"name": "own-both", "kind": "tagging"}
    corpus = isogloss.corpus(facts, rows={"sw": {"train": pair}})
    assert Sources().examples("own-both", "sw", "train")[0].words == ("a",)
    columns = {"words": "words", "labels": "labels"}
    names = replace(corpus, columns=columns)
    assert names._digest == corpus._digest
    assert names != corpus


def test_two_names_of_one_split_are_refused():
    rows = {"sw": {"dev": ROWS, "validation": ROWS}}
    with pytest.raises(ConfigError, match=r"rows\['sw'\]\['validation'\]:.*'validation'.*'dev'"):
        isogloss.corpus({"name": "own-twice", "kind": "text"}, rows=rows)


def test_questions_and_several_labels_of_a_dataset():
    datasets = pytest.importorskip("datasets")
    answers = {"text": ["Ada"], "answer_start": [0]}
    rows = datasets.Dataset.from_list(
        [{"context": "Ada aliandika.", "question": "Nani?", "answers": answers}]
    )
    corpus = isogloss.corpus({"name": "own-asked", "kind": "span"}, rows={"sw": {"train": rows}})
    expected = Question(id="0", passage="Ada aliandika.", question="Nani?", answers=((0, "Ada"),))
    assert (corpus.tasks, Sources().examples("own-asked", "sw", "train")) == (("qa",), [expected])
    felt = datasets.List(datasets.ClassLabel(names=["fear", "joy"]))
    features = datasets.Features({"text": datasets.Value("string"), "label": felt})
    rows = datasets.Dataset.from_list([{"text": "a", "label": [1, 0]}, {"text": "b", "label": []}], features)
    facts = {"name": "own-felt", "kind": "text", "predicts": "labels"}
    corpus = isogloss.corpus(facts, rows={"sw": {"train": rows}})
    assert corpus.labels == ("fear", "joy")
    assert [example.label for example in Sources().examples("own-felt", "sw", "train")] == [
        ("joy", "fear"),
        (),
    ]


@pytest.mark.parametrize(
    ("messages", "rows", "error", "message"),
    [
        ({"kind": "text"}, None, ConfigError, "mapping"),
        (
            {"kind": "text"},
            {"sw": {"tset": ROWS}},
            ConfigError,
            r"rows\['sw'\]:.*'tset'.*'test'",
        ),
        (
            {"kind": "text", "files": "x"},
            {"sw": {"train": ROWS}},
            ConfigError,
            "files:",
        ),
        (
            {"kind": "text"},
            {"sw": {"train": [*ROWS, "x"]}},
            DataError,
            r"rows\['sw'\]\['train'\]:.*2: 'x'",
        ),
        (
            {"kind": "text"},
            {"sw": {"train": [{"text": "a"}]}},
            DataError,
            r"^rows\['sw'\]\['train'\]\[0\]:.*'label'.*'labels'",
        ),
        ({"kind": "txt"}, {"sw": {"train": ROWS}}, ConfigError, "'text'"),
        ({"kind": "text", "label": []}, {"sw": {"train": ROWS}}, ConfigError, "'labels'"),
    ],
)
def test_what_is_no_corpus_is_said_with_its_place(messages, rows, error, message):
    with pytest.raises(error, match=message):
        isogloss.corpus(messages, rows=rows)
    with pytest.raises(ConfigError, match="Give either"):
        isogloss.corpus("topics.toml", rows={"sw": {"train": ROWS}})


@pytest.mark.parametrize("format_name", ["pandas", "numpy", "arrow", "torch"])
@pytest.mark.parametrize("streamed_value", [False, True])
def test_a_formatted_dataset_has_the_rows_of_one_without_a_format(format_name, streamed_value):
    rows = dataset()
    rows = rows.to_iterable_dataset() if streamed_value else rows
    try:
        rows = rows.with_format(format_name)
    except ValueError:
        pytest.skip(f"no format {format_name} here")
    corpus = isogloss.corpus(
        {"name": f"own-{format_name}-{streamed_value}", "kind": "text"}, rows={"sw": {"train": rows}}
    )
    assert Sources().examples(corpus.name, "sw", "train") == READ


@pytest.mark.parametrize("kind", ["text", "pair"])
@pytest.mark.parametrize("column", ["label", "labels"])
def test_labels_have_the_name_of_transformers_too(kind, column):
    texts = {"text": {"text": "Jua."}, "pair": {"first": "Jua.", "second": "Mvua."}}[kind]
    rows = [{**texts, column: "yes"}, {**texts, column: "no"}]
    corpus = isogloss.corpus({"name": f"own-{kind}-{column}", "kind": kind}, rows={"sw": {"train": rows}})
    assert [example.label for example in Sources().examples(corpus.name, "sw", "train")] == ["yes", "no"]


def test_languages_may_be_stated_where_they_are_those_of_the_rows():
    for stated_language in ("sw", ["sw"], ["swh_Latn"]):
        facts = {"name": "own-stated", "kind": "text", "languages": stated_language}
        assert list(isogloss.corpus(facts, rows={"sw": {"train": ROWS}}).languages) == ["sw"]
    for stated_language in (["sw", "en"], ["en"], 1):
        with pytest.raises(ConfigError, match=r"languages: .*sw"):
            isogloss.corpus({"kind": "text", "languages": stated_language}, rows={"sw": {"train": ROWS}})
