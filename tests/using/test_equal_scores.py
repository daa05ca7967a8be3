"""`evaluate` and `compare` give equal scores to tags in every scheme and notation, and to lemmas."""

import json
import random
from types import SimpleNamespace

import pytest

import isogloss
from each import each
from isogloss.core.errors import ConfigError
from isogloss.core.tag_schemes import find_spans
from isogloss.data.corpora.own import KNOWN
from isogloss.data.examples import Question
from isogloss.data.files import disk_file
from isogloss.data.sources import Sources
from isogloss.features.comparing.compared_outputs import compare_outputs
from isogloss.features.described_corpora.descriptions import describe_corpus
from isogloss.metrics.labels import repair
from isogloss.tasks import find_task
from isogloss.using import EvaluateOptions
from isogloss.using.kinds import kind_of
from isogloss.using.provenance import fitting_task
from isogloss.using.scoring import write_predictions
from tagged_files import TYPED, UNTYPED, Notation, small_spans

SENTENCES = 12
OPTIONS = EvaluateOptions(corpus="own", languages=("sw",))


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    """Describe rows as a test split."""

    def describe(rows, body=""):
        path = tmp_path / "test.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        text = f'kind = "tagging"\nfiles = {{ test = "test.jsonl" }}\nlanguages = ["sw"]\n{body}'
        (tmp_path / "own.toml").write_text(text, encoding="utf-8")
        own_corpus = describe_corpus(tmp_path / "own.toml")
        monkeypatch.setitem(KNOWN, "own", own_corpus)
        return own_corpus

    return describe


@pytest.mark.parametrize("notation", [*TYPED[::97], *UNTYPED[::17]], ids=str)
def test_tags_have_equal_scores_in_evaluate_and_compare(notation, corpus, tmp_path):
    check_scores(notation, corpus, tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("notations", [TYPED, UNTYPED], ids=["typed", "untyped"])
def test_tags_of_every_notation_have_equal_scores_in_evaluate_and_compare(notations, corpus, tmp_path):
    for notation in each(notations):
        check_scores(notation, corpus, tmp_path)


def check_scores(notation: Notation, corpus, tmp_path):
    """Compare the scores of a task, of the file that `evaluate` writes, and of tags in the notation."""
    draw = random.Random(str(notation))
    spans = [small_spans(notation), *(draw_spans(notation, draw) for _ in range(SENTENCES - 1))]
    gold_tags = [notation.tags(of_sentence) for of_sentence in spans]
    rows = [{"words": words_of(tags), "labels": tags} for tags in gold_tags]
    own_corpus = corpus(rows)
    (name,) = own_corpus.tasks
    task = fitting_task(find_task(name, own_corpus.labels), "own", Sources())
    examples = list(own_corpus.read(None, "sw", "test"))
    gold = task.gold(examples)
    answers = [change_tags(tags, task.labels, draw) for tags in gold]
    expected = {measure: part_total(part) for measure, part in task.contributions(gold, answers).items()}
    model = SimpleNamespace(kind=kind_of(task), task=task, provenance=SimpleNamespace(run="a"))
    output_file = write_predictions(model, OPTIONS, "sw", examples, answers, tmp_path / "out")
    for measure, score in expected.items():
        (row,) = compare_outputs([disk_file(output_file)], disk_file(output_file), measure=measure).rows
        assert row["score"] == pytest.approx(score), (notation, measure)
    in_notation = [convert_tags(tags, notation) for tags in answers]
    comparison = isogloss.compare(in_notation, gold_tags, gold_tags)
    assert (comparison["metric"], comparison["score"]) == ("span_f1", pytest.approx(expected["span_f1"])), (
        notation
    )
    assert comparison["baseline_score"] == 1, notation


def part_total(part):
    """Return a score of contributions."""
    numerators, denominators = part
    return sum(numerators) / (sum(denominators) or 1)


def draw_spans(notation, draw):
    """Return spans in a random order. In their own order, each scheme shows."""
    spans = small_spans(notation)
    draw.shuffle(spans)
    return spans


def change_tags(tags, labels, draw):
    """Return BIO tags of which about a third differ."""
    changed_tags = [draw.choice(labels) if draw.random() < 1 / 3 else tag for tag in tags]
    return repair(changed_tags)


def convert_tags(tags, notation):
    """Write BIO tags in a notation."""
    spans = find_spans(tags)
    stops = [span.start for span in spans[1:]] + [len(tags)]
    sized_spans = [
        (span.type, span.stop - span.start, stop - span.stop) for span, stop in zip(spans, stops, strict=True)
    ]
    prefix_length = spans[0].start if spans else len(tags)
    return [notation.outside] * prefix_length + notation.tags(sized_spans)


def words_of(tags):
    """Return a word for each tag."""
    return [f"w{number}" for number in range(len(tags))]


@pytest.mark.parametrize("stated", ["predictions", "gold"])
def test_lemmas_have_equal_scores_in_evaluate_and_compare(stated, corpus, tmp_path):
    gold = [("go", "_", "be"), ("_",), ("dog",)]
    own_corpus = corpus(
        [{"words": words_of(tags), "labels": list(tags)} for tags in gold], 'predicts = "lemma"\n'
    )
    assert own_corpus.tasks == ("lemmas",)
    task = find_task("lemmas")
    examples = list(own_corpus.read(None, "sw", "test"))
    answers = [("go", "x", "is"), ("y",), ("dogs",)]
    expected = part_total(task.contributions(gold, answers)["accuracy"])
    assert expected == 3 / 5
    model = SimpleNamespace(kind=kind_of(task), task=task, provenance=SimpleNamespace(run="a"))
    output_file = write_predictions(model, OPTIONS, "sw", examples, answers, tmp_path / "out")
    lines = [json.loads(line) for line in output_file.read_text(encoding="utf-8").splitlines()]
    gold_file = None
    if stated == "gold":
        gold_lines = [{key: line[key] for key in line if key != "labels"} for line in lines]
        gold_file = disk_file(write_lines(tmp_path / "gold.jsonl", gold_lines))
        answer_rows = [
            {"id": line["id"], "language": "sw", "labels": labels}
            for line, labels in zip(lines, answers, strict=True)
        ]
        output_file = write_lines(tmp_path / "answers.jsonl", answer_rows)
    (row,) = compare_outputs([disk_file(output_file)], disk_file(output_file), gold=gold_file).rows
    assert (row["task"], row["score"]) == ("lemmas", expected)


def write_lines(path, rows):
    """Write objects as JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_lemmas_in_lists_are_compared_as_evaluate_scores_them():
    gold = [["go", "_"]]
    comparison = isogloss.compare([["go", "x"]], [["be", "_"]], gold, task="lemmas")
    assert (comparison["score"], comparison["baseline_score"]) == (1, 0.5)


@pytest.mark.parametrize("language", ["zh", "de", ""])
def test_answers_have_equal_scores_in_evaluate_and_compare(language, tmp_path):
    passage = "北京是中国的首都。 Der Hund."
    answers = [((0, "北京是"),), ((11, "Der Hund"),)]
    examples = [
        Question(id=str(number), passage=passage, question="?", answers=gold, language=language)
        for number, gold in enumerate(answers)
    ]
    predictions = ["北京", "Hund"]
    task = find_task("qa")
    expected = {
        measure: part_total(part)
        for measure, part in task.contributions(task.gold(examples), predictions).items()
    }
    model = SimpleNamespace(kind=kind_of(task), task=task, provenance=SimpleNamespace(run="a"))
    options = EvaluateOptions(corpus="squad", languages=(language or "zh",), split="dev")
    output_file = write_predictions(model, options, language or "zh", examples, predictions, tmp_path)
    file = disk_file(output_file.with_suffix(".jsonl"))
    (row,) = compare_outputs([file], file).rows
    main, *_ = expected
    assert row["measure"] == (f"mlqa_{main}" if language else main)
    assert row["score"] == pytest.approx(expected[main])


@pytest.mark.parametrize("form", ["jsonl", "json"])
def test_a_description_states_the_languages_whose_answers_have_own_rules(form, tmp_path):
    passage = "北京是中国的首都"
    rows = {"id": "q", "question": "?", "answers": [{"text": "北京是", "answer_start": 0}]}
    squad = {"data": [{"title": "t", "paragraphs": [{"context": passage, "qas": [rows]}]}]}
    row = {"context": passage, "question": "?", "answers": {"text": ["北京是"], "answer_start": [0]}}
    (tmp_path / f"zh.{form}").write_text(json.dumps(row if form == "jsonl" else squad), encoding="utf-8")
    text = f'kind = "span"\nfiles = {{ test = "{{language}}.{form}" }}\nlanguages = ["zh"]\n'
    scores = {}
    for rules in ("", 'own_rules = ["zh"]\n'):
        (tmp_path / "own.toml").write_text(text + rules, encoding="utf-8")
        examples = list(describe_corpus(tmp_path / "own.toml").read(None, "zh", "test"))
        task = find_task("qa")
        scores[rules] = task.score(task.gold(examples), ["北京"])
    assert list(scores.values()) == [0, pytest.approx(4 / 5)]


@pytest.mark.parametrize(("kind", "language"), [("span", "th"), ("text", "zh")])
def test_other_languages_and_kinds_have_no_own_rules(kind, language, tmp_path):
    text = f'kind = "{kind}"\nfiles = "a.jsonl"\nlanguages = ["zh"]\nown_rules = ["{language}"]\n'
    (tmp_path / "own.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"own_rules: .*(ar, de|span)"):
        describe_corpus(tmp_path / "own.toml")
