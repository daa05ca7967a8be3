"""A model is scored on a user's labelled examples as on a corpus, in any container."""

from dataclasses import asdict

import pandas as pd
import pytest

import isogloss
from isogloss.core.errors import ConfigError, DataError
from isogloss.data.examples import LabelledText, Question, SentencePair, TaggedSentence
from says import says

PASSAGE = "yesterday it rained in Rome"
EXAMPLES = {
    "upos": [
        TaggedSentence(id="0", words=("the", "cat", "sat"), tags=("DET", "NOUN", "VERB")),
        TaggedSentence(id="1", words=("a", "dog"), tags=("DET", "NOUN")),
    ],
    "nli": [
        SentencePair(id="0", first="the cat", second="a dog", label="neutral"),
        SentencePair(id="1", first="it rained", second="the mat", label="entailment"),
    ],
    "text-classification": [
        LabelledText(id="0", text="the cat sat", label="sports"),
        LabelledText(id="1", text="a dog", label="politics"),
    ],
    "multi-label-classification": [
        LabelledText(id="0", text="the cat sat", label=("sports", "politics")),
        LabelledText(id="1", text="a dog", label=()),
    ],
    "qa": [
        Question(id="0", passage=PASSAGE, question="where", answers=((23, "Rome"),)),
        Question(id="1", passage=PASSAGE, question="when", answers=((0, "yesterday"), (0, "yesterday it"))),
    ],
}


def mapping_of(example, key=""):
    """Return an example as a mapping with the keys of predict and the label under a key."""
    body = asdict(example)
    if isinstance(example, TaggedSentence):
        return {"words": list(example.words), key or "tags": list(example.tags)}
    if isinstance(example, SentencePair):
        return {"text": example.first, "text_pair": example.second, key or "label": example.label}
    if isinstance(example, Question):
        texts = [text for _, text in example.answers]
        return {"question": example.question, "context": example.passage, key or "answers": texts}
    label = list(body["label"]) if isinstance(body["label"], tuple) else body["label"]
    return {"text": example.text, key or "label": label}


CONTAINERS = {
    "examples": lambda examples: examples,
    "generator": iter,
    "mappings": lambda examples: (mapping_of(value) for value in examples),
    "gold": lambda examples: [mapping_of(example, "gold") for example in examples],
    "frame": lambda examples: pd.DataFrame([mapping_of(example) for example in examples], index=[5, 3]),
}


@pytest.mark.each_value
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("task", EXAMPLES)
def test_own_examples_have_the_measures_of_the_task(make_model, task, container):
    model = make_model(task)
    [row] = model.evaluate(examples=CONTAINERS[container](EXAMPLES[task]), languages="en")
    assert {name: row[name] for name in model.measures(EXAMPLES[task]) if name != row["metric"]} | {
        row["metric"]: row["score"]
    } == model.measures(EXAMPLES[task])
    assert (row["examples"], row["language"], row["corpus"], row["baseline"]) == (2, "en", "", None)


def test_examples_of_a_corpus_have_its_score(make_model):
    model = make_model("upos")
    [expected] = model.evaluate("ud", "qaa", split="dev")
    [row] = model.evaluate(examples=isogloss.load_corpus("ud", "qaa", "dev"))
    assert {**row, **dict.fromkeys(("corpus", "language", "split", "baseline"))} == {
        **expected,
        **dict.fromkeys(("corpus", "language", "split", "baseline")),
    }


def test_a_whole_number_is_the_index_of_a_label(make_model):
    model = make_model("text-classification")
    mappings = [mapping_of(example) for example in EXAMPLES["text-classification"]]
    numbered_value = [{**row, "label": model.task.labels.index(row["label"])} for row in mappings]
    assert model.evaluate(examples=numbered_value) == model.evaluate(examples=mappings)


REFUSED = {
    "no label": ("nli", [{"text": "a", "text_pair": "b"}], ("example 0", "text, text_pair", "label")),
    "an unknown label": ("nli", [{"text": "a", "text_pair": "b", "label": "no"}], ("example 0", "'no'")),
    "an index too high": (
        "text-classification",
        [{"text": "a", "label": 0}, {"text": "a", "label": 2}],
        ("example 1", "label 2", "0 to 1"),
    ),
    "too few tags": ("upos", [{"words": ["a", "b"], "tags": ["X"]}], ("example 0", "1 labels", "2 words")),
    "a text alone": ("upos", ["a b"], ("example 0", "str", "mapping")),
    "an answer elsewhere": (
        "qa",
        [{"question": "a", "context": "b", "answers": "c"}],
        ("example 0", "'c'", "passage"),
    ),
    "an example of another task": ("upos", [EXAMPLES["qa"][0]], ("example 0",)),
    "an example without its label": (
        "upos",
        [TaggedSentence(id="0", words=("a",), tags=())],
        ("example 0", "no label"),
    ),
    "nothing": ("upos", [], ("examples", "none")),
}


@pytest.mark.parametrize("name", REFUSED)
def test_examples_without_a_label_of_the_task_are_refused(make_model, name):
    task, examples, facts = REFUSED[name]
    with says(DataError, *facts):
        make_model(task).evaluate(examples=examples)


@pytest.mark.parametrize(
    "call", [{"corpus": "ud", "languages": "qaa"}, {"languages": ["qaa", "qab"]}], ids=["corpus", "languages"]
)
def test_examples_and_a_corpus_or_several_languages_are_refused(make_model, call):
    with says(ConfigError, "evaluate", "examples"):
        make_model("upos").evaluate(examples=EXAMPLES["upos"], **call)


def test_a_model_is_scored_on_something(make_model):
    with says(ConfigError, "evaluate", "corpus", "examples"):
        make_model("upos").evaluate()
