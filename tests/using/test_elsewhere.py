"""Models that isogloss did not make: read, asked, and scored, with labels matched by name."""

import pytest
import torch

from isogloss.core.errors import ConfigError, ModelError
from isogloss.data.sources import Sources
from isogloss.encoders import load_tokenizer
from isogloss.experiments.descriptions import known_as
from isogloss.metrics.labels import span_f1
from isogloss.using import load_model

SPANS = ("B-LOC", "I-LOC", "O", "B-PER", "I-PER", "I-ORG", "B-ORG", "B-MISC", "I-MISC")


@pytest.fixture
def elsewhere(bert_folder, tmp_path):
    """Save a model of transformers with a head and labels, as its own scripts would."""
    import transformers

    def make(auto_class, labels, name="theirs"):
        names = {"id2label": dict(enumerate(labels)), "num_labels": len(labels)} if labels else {}
        with torch.random.fork_rng():
            torch.manual_seed(5)
            model = getattr(transformers, auto_class).from_pretrained(bert_folder, **names)
        model.save_pretrained(tmp_path / name)
        load_tokenizer(str(bert_folder)).save_pretrained(tmp_path / name)
        return model.eval(), tmp_path / name

    return make


def test_words_are_tagged_as_transformers_tags_them(elsewhere):
    theirs, folder = elsewhere("AutoModelForTokenClassification", SPANS)
    model = load_model(folder)
    assert (model.task.name, model.task.labels) == ("span-tagging", SPANS)
    words = ["the", "cat", "happened"]
    encoded = model.tokenizer(words, is_split_into_words=True, return_tensors="pt")
    with torch.no_grad():
        best = theirs(**encoded).logits[0].argmax(-1).tolist()
    places = [encoded.word_ids().index(number) for number in range(3)]
    (found,) = model.predict([words])
    assert [tag[2:] for tag in found] == [SPANS[best[place]][2:] for place in places]


@pytest.mark.slow
def test_texts_pairs_and_questions_are_told_apart_by_head_and_labels(elsewhere):
    for auto_class, labels, task in (
        ("AutoModelForTokenClassification", ("NOUN", "VERB"), "word-tagging"),
        ("AutoModelForSequenceClassification", ("sports", "politics"), "text-classification"),
        (
            "AutoModelForSequenceClassification",
            ("CONTRADICTION", "neutral", "Entailment"),
            "pair-classification",
        ),
        ("AutoModelForQuestionAnswering", (), "qa"),
    ):
        _, folder = elsewhere(auto_class, labels, name=f"{task}-{len(labels)}")
        assert load_model(folder).task.name == task
    assert load_model(folder).predict([["what happened", "the cat happened"]])


@pytest.mark.slow
def test_labels_are_matched_with_those_of_a_corpus_by_name(elsewhere):
    _, folder = elsewhere("AutoModelForTokenClassification", [label.lower() for label in SPANS])
    model = load_model(folder)
    assert model.task.name == "word-tagging"  # b-loc is no BIO
    _, folder = elsewhere("AutoModelForTokenClassification", SPANS)
    (row,) = load_model(folder).evaluate("wikiann", ["qaa"], split="dev")
    examples = Sources().examples("wikiann", "qaa", "dev")
    predicted = load_model(folder).predict([one.words for one in examples])
    assert row["score"] == pytest.approx(span_f1([one.tags for one in examples], predicted), abs=1e-3)
    _, folder = elsewhere(
        "AutoModelForSequenceClassification", ("CONTRADICTION", "neutral", "Entailment"), "nli"
    )
    (row,) = load_model(folder).evaluate("xnli", ["qaa"], split="dev")
    known = {"CONTRADICTION": "contradiction", "neutral": "neutral", "Entailment": "entailment"}
    pairs = Sources().examples("xnli", "qaa", "dev")
    answers = load_model(folder).predict([[one.first, one.second] for one in pairs])
    assert row["score"] == sum(known[a] == p.label for a, p in zip(answers, pairs, strict=True)) / len(pairs)


def test_a_corpus_of_ones_own_is_enough(elsewhere, tmp_path):
    (tmp_path / "sw-test.tsv").write_text(
        "label\ttext\nsports\tthe cat\npolitics\ta casing\n", encoding="utf-8"
    )
    (tmp_path / "news.toml").write_text('kind = "text"\nfiles = "{language}-{split}.tsv"\n', encoding="utf-8")
    name = known_as(str(tmp_path / "news.toml"))
    _, folder = elsewhere("AutoModelForSequenceClassification", ("POLITICS", "SPORTS"))
    (row,) = load_model(folder).evaluate(name, ["sw"])
    assert row["score"] in (0.0, 0.5, 1.0)


def test_labels_that_do_not_match_and_folders_without_a_head_are_told(elsewhere, bert_folder):
    _, folder = elsewhere("AutoModelForTokenClassification", SPANS[:5])
    with pytest.raises(ConfigError, match=r"it lacks B-ORG, I-ORG\. Choose a model"):
        load_model(folder).evaluate("wikiann", ["qaa"])
    with pytest.raises(ConfigError, match="corpus 'xnli' holds nli, not span-tagging"):
        load_model(folder).evaluate("xnli", ["qaa"])
    with pytest.raises(ModelError, match="nor a model that isogloss exported"):
        load_model(bert_folder)
