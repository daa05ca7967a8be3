"""Compare --predictions reads the output of evaluate --predictions, for every task and kind of corpus."""

import json
from types import SimpleNamespace

import pytest

from isogloss.data.corpora.catalogue import CORPORA
from isogloss.data.corpora.own import KNOWN
from isogloss.data.examples import ParsedSentence, TaggedSentence
from isogloss.data.files import disk_file
from isogloss.data.sources import Sources
from isogloss.features.built_in_languages import BuiltInLanguages
from isogloss.features.comparing.compared_outputs import compare_outputs
from isogloss.features.described_corpora.descriptions import describe_corpus
from isogloss.tasks import ALL_TASKS
from isogloss.using import EvaluateOptions, evaluate
from isogloss.using.kinds import kind_of
from isogloss.using.scoring import write_predictions

BUILT_IN = {"upos": "ud", "ner": "wikiann", "nli": "xnli", "paraphrase": "pawsx", "qa": "squad"}
"""A corpus of the built-in languages for each task that a built-in corpus has."""

NATIVE = [
    (name, task)
    for name, corpus in CORPORA.items()
    for task in corpus.tasks
    if task in ALL_TASKS and task != "parsing"
]

ASKED = {"context": "Ana anaimba", "question": "Nani?", "answers": {"text": ["Ana"], "answer_start": [0]}}
CHOICE = {"context": "a", "options": ["b", "c"]}


def words(*labels):
    return {"words": [f"w{index}" for index in range(len(labels))], "labels": labels}


DESCRIBED = {
    "word-tagging": ("tagging", "", [words("N", "V"), words("N")]),
    "span-tagging": ("tagging", "", [words("B-X", "O"), words("O")]),
    "lemmas": ("tagging", 'predicts = "lemma"', [words("w", "w1"), words("w0")]),
    "text-classification": ("text", "", [{"text": "a", "label": "x"}, {"text": "b", "label": "y"}]),
    "multi-label-classification": (
        *("text", 'predicts = "labels"\nlabels = ["x", "y"]'),
        [{"text": "a", "label": ["x", "y"]}, {"text": "b", "label": []}],
    ),
    "regression": ("text", 'predicts = "number"', [{"text": str(n), "label": n / 4} for n in range(5)]),
    "pair-classification": (
        *("pair", ""),
        [{"first": "a", "second": "b", "label": "x"}, {"first": "b", "second": "b", "label": "y"}],
    ),
    "nli": (
        *("pair", ""),
        [
            {"first": "a", "second": "b", "label": label}
            for label in ("entailment", "neutral", "contradiction")
        ],
    ),
    "pair-regression": (
        *("pair", 'predicts = "number"'),
        [{"first": "a", "second": str(n), "label": n / 4} for n in range(5)],
    ),
    "multiple-choice": ("choice", "", [{**CHOICE, "label": 0}, {**CHOICE, "label": 1}]),
    "choices with names": (
        *("choice", 'labels = ["A", "B"]'),
        [{**CHOICE, "label": "A"}, {**CHOICE, "label": "B"}],
    ),
    "qa": ("span", "", [ASKED, {**ASKED, "question": "Nini?"}]),
}  # fmt: skip
"""By task the kind of a described corpus, more of its description, and its rows."""


def right(example):
    """Return the answer that is right for an example."""
    if isinstance(example, TaggedSentence | ParsedSentence):
        return example.tags
    return example.answers[0][1] if hasattr(example, "answers") else example.label


def compare_neighbours(name, task, examples, tmp_path):
    """Write the right answers, and the neighbours' answers as a second system. Compare both."""
    model = SimpleNamespace(kind=kind_of(ALL_TASKS[task]), task=ALL_TASKS[task])
    options = EvaluateOptions(corpus=name, languages=("qaa",), split="dev")
    ours = [right(example) for example in examples]
    theirs = (
        [tags[:1] * len(tags) for tags in ours]
        if ALL_TASKS[task].labels_are == "word"
        else [*ours[1:], ours[0]]
    )
    for folder, answers in (("a", ours), ("b", theirs)):
        write_predictions(model, options, "qaa", examples, answers, tmp_path / folder)
    files = [disk_file(path) for folder in "ab" for path in (tmp_path / folder).rglob("*.jsonl")]
    (row,) = compare_outputs(files[:1], files[1]).rows
    return row


@pytest.mark.parametrize(("name", "task"), NATIVE)
def test_predictions_on_every_corpus_of_ours_are_compared(name, task, tmp_path):
    examples = list(CORPORA[BUILT_IN[task]].read(BuiltInLanguages(), "qaa", "dev"))[:6]
    if task == "upos" and name != "ud":
        examples = [TaggedSentence(id=read.id, words=read.words, tags=read.tags) for read in examples]
    result = compare_neighbours(name, task, examples, tmp_path)
    assert (result["paired_by"], result["language"], result["examples"]) == ("id", "qaa", 6)
    assert result["score"] == 1 > result["baseline_score"]
    assert len([path for path in (tmp_path / "a").rglob("*") if path.is_file()]) == 2


@pytest.mark.parametrize("options", DESCRIBED)
def test_predictions_on_every_kind_of_described_corpus_are_compared(options, tmp_path, monkeypatch):
    kind, more, rows = DESCRIBED[options]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    for split in ("train", "dev"):
        (tmp_path / f"{split}-qaa.jsonl").write_text(text)
    (tmp_path / "own.toml").write_text(f'kind = "{kind}"\n{more}\nfiles = "{{split}}-{{language}}.jsonl"\n')
    corpus = describe_corpus(tmp_path / "own.toml")
    monkeypatch.setitem(KNOWN, "own", corpus)
    task = {"choices with names": "multiple-choice"}.get(options, options)
    assert corpus.tasks == (task,)
    examples = list(corpus.read(None, "qaa", "dev"))
    result = compare_neighbours("own", task, examples, tmp_path)
    assert (result["paired_by"], result["language"], result["examples"]) == ("id", "qaa", len(rows))
    assert result["score"] == pytest.approx(1)
    path = tmp_path / "a" / "own" / "dev-qaa.jsonl"
    (tmp_path / "dev-qaa.jsonl").write_text(path.read_text())
    assert list(corpus.read(None, "qaa", "dev")) == examples


def test_the_table_has_every_task():
    assert {*DESCRIBED, *(task for _, task in NATIVE)} - {"choices with names"} == set(ALL_TASKS) - {
        "parsing"
    }


def test_a_described_corpus_of_questions_is_answered_in_json_lines(make_model, tmp_path, monkeypatch):
    (tmp_path / "test-sw.jsonl").write_text(
        "".join(json.dumps({**ASKED, "context": "Ana anaimba " * n}) + "\n" for n in (1, 2))
    )
    (tmp_path / "own.toml").write_text('kind = "span"\nfiles = "{split}-{language}.jsonl"\n')
    monkeypatch.setitem(KNOWN, "own", describe_corpus(tmp_path / "own.toml"))
    options = EvaluateOptions(corpus="own", languages=("sw",))
    (row,) = evaluate(make_model("qa"), options, Sources(), predictions=tmp_path / "out")
    (file,) = (path for path in (tmp_path / "out").rglob("*") if path.is_file())
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(line["id"], line["language"], line["gold"]) for line in lines] == [
        ("0", "sw", ["Ana"]),
        ("1", "sw", ["Ana"]),
    ]
    (compared_row,) = compare_outputs([disk_file(file)], disk_file(file)).rows
    assert compared_row["score"] == pytest.approx(row["score"])
