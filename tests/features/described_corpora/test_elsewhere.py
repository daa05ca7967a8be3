"""Models that isogloss did not make: read, asked, and scored, with labels matched by name."""

import json

import pytest
import torch

import isogloss
from annotated_files import TOOLS, marked_texts, write_annotated
from isogloss.core.errors import ConfigError, ModelError
from isogloss.core.rows.models import total
from isogloss.data.examples import TaggedSentence
from isogloss.data.files import File, disk_file
from isogloss.data.sources import Sources
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.described_corpora.descriptions import describe_corpus
from isogloss.metrics.labels import span_contributions
from isogloss.using import load_model
from isogloss.using.formats import FileEntry
from isogloss.using.predicting import PredictOptions, predict_file
from isogloss.using.scoring import EvaluateOptions, evaluate

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
    encoding = model.tokenizer(words, is_split_into_words=True, return_tensors="pt")
    with torch.no_grad():
        best_labels = theirs(**encoding).logits[0].argmax(-1).tolist()
    places = [encoding.word_ids().index(number) for number in range(3)]
    (tags,) = model.predict([words])
    assert [tag[2:] for tag in tags] == [SPANS[best_labels[place]][2:] for place in places]


@pytest.mark.slow
def test_it_is_called_as_it_was_asked_for(elsewhere, hub_cache, monkeypatch):
    _, folder = elsewhere("AutoModelForTokenClassification", SPANS)
    hub_cache("me/their-tagger", folder, revision="v2")
    monkeypatch.chdir(folder)
    for source, run, name in (
        (folder, "theirs", "theirs"),
        (".", "theirs", "theirs"),
        ("me/their-tagger@v2", "their-tagger", "me/their-tagger@v2"),
    ):
        provenance = load_model(source).provenance
        assert (provenance.run, provenance.title) == (run, f"fine-tuned elsewhere: {name}")


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


@pytest.mark.nightly
@pytest.mark.slow
def test_labels_are_matched_with_those_of_a_corpus_by_name(elsewhere):
    _, folder = elsewhere("AutoModelForTokenClassification", [label.lower() for label in SPANS])
    model = load_model(folder)
    assert (model.task.name, model.task.labels[0]) == ("span-tagging", "B-loc")
    _, folder = elsewhere("AutoModelForTokenClassification", SPANS)
    (row,) = load_model(folder).evaluate("wikiann", ["qaa"], split="dev")
    examples = Sources().examples("wikiann", "qaa", "dev")
    predictions = load_model(folder).predict([example.words for example in examples])
    expected = total(span_contributions([example.tags for example in examples], predictions))
    assert row["score"] == pytest.approx(expected, abs=1e-3)
    _, folder = elsewhere(
        "AutoModelForSequenceClassification", ("CONTRADICTION", "neutral", "Entailment"), "nli"
    )
    (row,) = load_model(folder).evaluate("xnli", "qaa", split="dev")
    labels_by_name = {"CONTRADICTION": "contradiction", "neutral": "neutral", "Entailment": "entailment"}
    pairs = Sources().examples("xnli", "qaa", "dev")
    answers = load_model(folder).predict([[pair.first, pair.second] for pair in pairs])
    assert row["score"] == sum(
        labels_by_name[a] == p.label for a, p in zip(answers, pairs, strict=True)
    ) / len(pairs)


TYPES = ("LOC", "PER", "ORG")
INVENTORIES = {
    "IOBES": ["O", *(f"{letter}-{name}" for letter in "BIES" for name in TYPES)],
    "BILOU": ["O", *(f"{letter}-{name}" for letter in "BILU" for name in TYPES)],
    "BMES": ["O", *(f"{letter}-{name}" for letter in "BMES" for name in TYPES)],
    "B_PER": ["0", *(f"{letter}_{name}" for letter in "BI" for name in TYPES)],
    "PER-B": ["O", *(f"{name}-{letter}" for letter in "BI" for name in TYPES)],
}


@pytest.mark.parametrize("name", ["IOBES", pytest.param("BMES", marks=pytest.mark.slow), "PER-B"])
def test_a_tagger_in_another_scheme_is_scored_as_compare_scores_its_answers(elsewhere, tmp_path, name):
    check_scheme(elsewhere, tmp_path, name)


@pytest.mark.nightly
@pytest.mark.parametrize("name", INVENTORIES)
def test_a_tagger_in_any_scheme_is_scored_as_compare_scores_its_answers(elsewhere, tmp_path, name):
    check_scheme(elsewhere, tmp_path, name)


def check_scheme(elsewhere, tmp_path, name):
    _, folder = elsewhere("AutoModelForTokenClassification", INVENTORIES[name])
    model = load_model(folder)
    assert model.task.name == "span-tagging"
    options = EvaluateOptions(corpus="wikiann", languages=("qaa",), split="dev")
    (row,) = evaluate(model, options, Sources(), predictions=tmp_path / "answers")
    (answers,) = (tmp_path / "answers").rglob("*.jsonl")
    copy = answers.with_name("copy.jsonl")
    copy.write_bytes(answers.read_bytes())
    comparison = isogloss.compare_outputs([answers, copy]).frame
    assert row["score"] == pytest.approx(comparison["score"][0], abs=1e-3)
    _, scores = next(iter(predict_scores(model)))
    assert all(0 <= score <= 1 for score in scores)


def predict_scores(model):
    for entry, prediction in model.predict_entries(
        [FileEntry(lines=(), example=TaggedSentence(id="1", words=("the", "cat"), tags=()))], scores=True
    ):
        yield entry, prediction.scores


@pytest.mark.parametrize(
    "tool", ["doccano", *(pytest.param(tool, marks=pytest.mark.slow) for tool in TOOLS if tool != "doccano")]
)
def test_a_tagger_writes_the_format_of_an_annotation_tool(elsewhere, tmp_path, tool):
    _, folder = elsewhere("AutoModelForTokenClassification", INVENTORIES["IOBES"])
    model = load_model(folder)
    file, body = write_annotated(tmp_path, tool, marked_texts(["Latin", "Ethiopic", "Nothing"]))
    written_lines = list(predict_file(model, disk_file(file), PredictOptions()))
    file.write_text("".join(f"{line}\n" for line in written_lines), encoding="utf-8")
    text = f'kind = "tagging"\nfiles = {{ test = "{file.name}" }}\nlanguages = ["en"]\n{body}'
    (tmp_path / f"{tool}.toml").write_text(text, encoding="utf-8")
    examples = list(describe_corpus(tmp_path / f"{tool}.toml").read(None, "en", "test"))
    predictions = model.predict([example.words for example in examples])
    assert [example.tags or ("O",) * len(example.words) for example in examples] == list(
        map(tuple, predictions)
    )


def test_labels_without_names_are_refused_with_the_file_that_names_them(elsewhere):
    _, folder = elsewhere("AutoModelForTokenClassification", ["LABEL_0", "LABEL_1"])
    with pytest.raises(ConfigError, match=r"LABEL_0, LABEL_1.*config\.json \(id2label\)"):
        load_model(folder).evaluate("wikiann", ["qaa"])


def test_the_card_of_its_export_does_not_say_what_it_was_trained_on(elsewhere, tmp_path):
    _, folder = elsewhere("AutoModelForTokenClassification", SPANS)
    card = (load_model(folder).export(tmp_path / "out") / "README.md").read_text()
    assert "Its training data and their licence are unknown to isogloss" in card
    assert "**span-tagging**, exported by isogloss" in card
    assert "Apache" not in card and "built-in" not in card and "\nlicense:" not in card


def test_a_corpus_of_ones_own_is_enough(elsewhere, tmp_path):
    (tmp_path / "sw-test.tsv").write_text(
        "label\ttext\nsports\tthe cat\npolitics\ta casing\n", encoding="utf-8"
    )
    (tmp_path / "news.toml").write_text('kind = "text"\nfiles = "{language}-{split}.tsv"\n', encoding="utf-8")
    _, folder = elsewhere("AutoModelForSequenceClassification", ("POLITICS", "SPORTS"))
    (row,) = load_model(folder).evaluate(str(tmp_path / "news.toml"), ["sw"])
    assert row["score"] in (0.0, 0.5, 1.0)
    assert load_model(folder).evaluate("news", "sw") == [row]


def test_labels_that_do_not_match_and_folders_without_a_head_are_told(elsewhere, bert_folder):
    _, folder = elsewhere("AutoModelForTokenClassification", SPANS[:5])
    with pytest.raises(ConfigError, match="lacks B-ORG, I-ORG"):
        load_model(folder).evaluate("wikiann", ["qaa"])
    with pytest.raises(ConfigError, match=r"'xnli'.*nli.*span-tagging"):
        load_model(folder).evaluate("xnli", ["qaa"])
    with pytest.raises(ModelError, match=r"encoder.*BertForMaskedLM"):
        load_model(bert_folder)


# Options, several labels, numbers


def answers(task, folder, inputs):
    """Return predictions of a model, and each raw output of its head, by the encoding of transformers."""
    model = load_model(folder, precision="float32")
    assert model.task.name == task
    return model, model.predict(inputs)


@pytest.mark.parametrize("family", ["bert", "xlm_roberta"])
def test_a_head_for_options_is_read_as_one_score_for_each(family, request, tmp_path):
    import transformers

    base = request.getfixturevalue(f"{family}_folder")
    with torch.random.fork_rng():
        torch.manual_seed(5)
        theirs = transformers.AutoModelForMultipleChoice.from_pretrained(base).eval()
        for parameter in theirs.parameters():  # Poolers and biases, too, must be theirs.
            parameter.data.add_(0.05 * torch.randn_like(parameter))
    theirs.save_pretrained(tmp_path)
    tokenizer = load_tokenizer(str(base))
    tokenizer.save_pretrained(tmp_path)
    options = ["the cat", "a casing happened", "slowly"]
    model, (answer,) = answers(
        "multiple-choice", tmp_path, [{"context": "Anna saw Rome", "options": options}]
    )
    encoding = tokenizer(["Anna saw Rome"] * 3, options, padding=True, return_tensors="pt")
    with torch.no_grad():
        expected = theirs(**{name: tensor[None] for name, tensor in encoding.items()}).logits[0]
    (scored_answer,) = model.predict([{"context": "Anna saw Rome", "options": options}], scores=True)
    assert list(scored_answer.scores.values()) == pytest.approx(expected.softmax(-1).tolist(), abs=1e-5)
    assert answer == int(expected.argmax())
    first_head, second_head = (model.task.head(tmp_path, seed=seed).state_dict() for seed in (0, 1))
    # The method `given` needs equal heads.
    assert all(torch.equal(weight, second_head[name]) for name, weight in first_head.items())


@pytest.mark.slow
def test_several_labels_and_numbers_are_known_by_the_config(elsewhere, tmp_path):
    from transformers import AutoConfig

    texts = ["what happened", "the cat happened"]
    for problem, labels in (
        ("multi_label_classification", ("joy", "fear", "anger")),
        ("regression", ("LABEL_0",)),
        (None, ("LABEL_0",)),  # One score alone is a number, as in transformers.
    ):
        theirs, folder = elsewhere("AutoModelForSequenceClassification", labels, name=f"{problem}")
        config = AutoConfig.from_pretrained(folder)
        config.problem_type = problem
        config.save_pretrained(folder)
        many = problem == "multi_label_classification"
        model, predictions = answers("multi-label-classification" if many else "regression", folder, texts)
        with torch.no_grad():
            raw = theirs(**model.tokenizer(texts, padding=True, return_tensors="pt")).logits
        lines = [f"{text}\n" for text in texts]
        file = File("texts.txt", lambda lines=lines: iter(lines), lambda: "")
        written_answers = [line.split("\t")[1] for line in predict_file(model, file, PredictOptions())]
        assert written_answers == [",".join(answer) if many else str(answer) for answer in predictions]
        as_json = map(json.loads, predict_file(model, file, PredictOptions(as_json=True)))
        assert [line["label"] for line in as_json] == [
            list(answer) if many else answer for answer in predictions
        ]
        if many:
            assert predictions == [
                tuple(name for name, logit in zip(labels, row, strict=True) if logit > 0) for row in raw
            ]
        else:
            assert predictions == pytest.approx(raw[:, 0].tolist(), abs=1e-5)
    (tmp_path / "sw-test.tsv").write_text("first\tsecond\tlabel\na\tb\t1\nc\td\t2.5\n", encoding="utf-8")
    (tmp_path / "sts.toml").write_text(
        'kind = "pair"\npredicts = "number"\nfiles = { test = "{language}-test.tsv" }\n', encoding="utf-8"
    )
    (row,) = model.evaluate(str(tmp_path / "sts.toml"), ["sw"])
    assert (row["metric"], abs(row["score"]), abs(row["pearson"])) == ("spearman", 1, pytest.approx(1))
    with pytest.raises(ConfigError, match=r"'xnli'.*nli.*regression"):
        model.evaluate("xnli", ["qaa"])
