"""Scores equal those of other projects' scripts, on random inputs of our own and on tables of their tests."""

import ast
import itertools
import random
import subprocess

import pytest

import isogloss
from isogloss.core.rows.models import total
from isogloss.core.tag_schemes import TagScheme, find_spans
from isogloss.data.files import disk_file
from isogloss.data.formats.conllu import read_conllu
from isogloss.features.alignment.scores import alignment_scores
from isogloss.features.parsing.attachment import attachment_contributions, content_contributions
from isogloss.metrics.labels import Tree, chunk_contributions, label_contributions
from isogloss.metrics.texts import (
    GoldAnswers,
    answer_f1_contributions,
    exact_match_contributions,
)

pytestmark = pytest.mark.nightly

SEQEVAL_NAMES = {"BIO": "IOB2"}
"""Names of schemes in seqeval where they differ."""


@pytest.mark.parametrize("name", ["BIO", "IOB1", "IOE1", "IOE2", "IOBES", "BILOU"])
def test_spans_of_all_short_sentences_are_those_of_seqeval(name):
    """Valid sentences have the spans of its strict mode, all sentences those of its default mode."""
    seqeval_scheme = pytest.importorskip("seqeval.scheme")
    get_entities = pytest.importorskip("seqeval.metrics.sequence_labeling").get_entities
    strict = getattr(seqeval_scheme, SEQEVAL_NAMES.get(name, name))
    marks = {"BIO": "BI", "IOB1": "IB", "IOE1": "IE", "IOE2": "IE", "IOBES": "IBES", "BILOU": "IBLU"}[name]
    scheme = TagScheme(name=name)
    tags = ["O", *(f"{mark}-{kind}" for mark in marks for kind in "XY")]
    valid = 0
    for count in range(1, 5 if len(marks) == 2 else 4):
        for sentence in map(list, itertools.product(tags, repeat=count)):
            spans = [(span.type, span.start, span.stop) for span in find_spans(sentence, scheme)]
            entities = seqeval_scheme.Entities([sentence], strict).entities[0]
            expected = [(entity.tag, entity.start, entity.end) for entity in entities]
            if are_all_in_spans(sentence, expected):
                assert spans == expected, sentence
                valid += 1
            if name in ("BIO", "IOBES"):
                expected = get_entities(sentence)
                assert spans == [(kind, start, end + 1) for kind, start, end in expected], sentence
    assert valid > 10


def are_all_in_spans(tags, spans):
    """Return whether no tag was dropped: strict mode drops spans that do not follow the scheme."""
    words = [word for _, start, stop in spans for word in range(start, stop)]
    return len(words) == sum(tag != "O" for tag in tags)


def tables_of(path, function):
    """Return the arguments of a parametrised test of another project, read without running it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef) and node.name == function:
            return ast.literal_eval(node.decorator_list[0].args[1])
    raise LookupError(function)


@pytest.mark.parametrize(
    ("function", "name"),
    [("iob1", "IOB1"), ("iob2", "BIO"), ("ioe1", "IOE1"), ("ioe2", "IOE2"), ("iobes", "IOBES")],
)
def test_spans_are_those_of_the_tables_of_seqevals_tests(clone_path, function, name):
    path = clone_path("chakki-works+seqeval", "tests/test_scheme.py")
    equal = 0
    for tokens, expected in tables_of(path, f"test_{function}_tokens"):
        spans = sorted(expected)
        if are_all_in_spans(tokens, spans):
            assert sorted(find_spans(tokens, TagScheme(name=name))) == spans, tokens
            equal += 1
    assert equal


@pytest.mark.parametrize("marks", ["BIO", "EIO"])
def test_chunks_and_accuracy_are_those_of_conlleval(clone_path, marks):
    script = clone_path("chakki-works+seqeval", "tests/conlleval.pl")
    draw = random.Random(marks)
    for _ in range(10):
        gold, predicted_tags = (
            [[random_tag(draw, marks) for _ in range(5 + sentence % 20)] for sentence in range(40)]
            for _ in range(2)
        )
        text = "".join(
            "".join(f"w w {right} {tag}\n" for right, tag in zip(*pair, strict=True)) + "\n"
            for pair in zip(gold, predicted_tags, strict=True)
        )
        try:
            output = subprocess.run(
                ["perl", str(script)], input=text, capture_output=True, text=True, check=True
            ).stdout
        except FileNotFoundError:
            pytest.skip("perl is not installed")
        numbers = output.split("\n")[1].split()
        assert 100 * total(label_contributions(gold, predicted_tags)) == pytest.approx(
            float(numbers[1].strip("%;")), abs=0.0051
        )
        assert 100 * total(chunk_contributions(gold, predicted_tags)) == pytest.approx(
            float(numbers[-1]), abs=0.0051
        )


def random_tag(draw, marks):
    mark = draw.choice(marks)
    return mark if mark == "O" else f"{mark}-{draw.choice(['PER', 'ORG', 'LOC'])}"


RELATIONS = ["nsubj", "nsubj:pass", "obj", "det", "case", "punct", "aux", "conj"]
UPOS = ["NOUN", "VERB", "DET", "PUNCT", "SYM"]


def random_treebank(draw, sizes):
    """Return trees as rows: tag, head and relation of each word."""
    return [
        [
            (draw.choice(UPOS), draw.randrange(number) if number > 1 else 0, draw.choice(RELATIONS))
            for number in range(1, size + 1)
        ]
        for size in sizes
    ]


def as_one_rooted(sentence):
    """Return the rows with one root, which the evaluation requires."""
    return [
        (tag, 0, "root") if number == 0 else (tag, head or 1, relation)
        for number, (tag, head, relation) in enumerate(sentence)
    ]


def write_treebank(path, sentences):
    lines = []
    for sentence in sentences:
        lines += [
            f"{number}\tw{number}\t_\t{tag}\t_\t_\t{head}\t{relation}\t_\t_"
            for number, (tag, head, relation) in enumerate(sentence, start=1)
        ]
        lines.append("")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_trees_are_scored_as_by_the_evaluation_of_conll_2018(clone, tmp_path):
    script = clone("ufal+conll2018", "evaluation_script/conll18_ud_eval.py")
    draw = random.Random(0)
    for _ in range(20):
        sizes = [draw.randint(1, 12) for _ in range(10)]
        paths = tmp_path / "gold.conllu", tmp_path / "system.conllu"
        for path in paths:
            write_treebank(path, map(as_one_rooted, random_treebank(draw, sizes)))
        expected = script.evaluate(*(script.load_conllu_file(str(path)) for path in paths))
        gold, system = (list(read_conllu(disk_file(path))) for path in paths)
        trees = [[Tree(tree.heads, tree.relations, tree.tags) for tree in side] for side in (gold, system)]
        uas, las = attachment_contributions(*trees, unscored_tags=())
        assert total(uas) == pytest.approx(expected["UAS"].f1)
        assert total(las) == pytest.approx(expected["LAS"].f1)
        assert total(content_contributions(*trees)) == pytest.approx(expected["CLAS"].f1)
        tags = [[tree.tags for tree in side] for side in (gold, system)]
        assert total(label_contributions(*tags)) == pytest.approx(expected["UPOS"].f1)


ODD_ANSWERS = [
    *("", " ", "the", "The The", "an apple", "A.B.C.", "don’t", "«Paris»", "Paris,", "das Haus", "ẞ"),
    *("İstanbul", "１２３", "1,234.5", "$5", "الكتاب", "北京大学", "北 京", "the-cat", "_the_", "é", "!!!"),
]


def test_odd_answers_are_scored_as_by_the_script_of_squad(clone):
    script = clone("google-research+xtreme", "third_party/evaluate_squad.py")
    for gold, answer in itertools.product(ODD_ANSWERS, repeat=2):
        gold_answers = [GoldAnswers((gold,))]
        f1 = answer_f1_contributions(gold_answers, [answer]).part[0]
        assert f1 == pytest.approx(script.f1_score(answer, gold)), (gold, answer)
        is_equal = exact_match_contributions(gold_answers, [answer]).part[0]
        assert is_equal == script.exact_match_score(answer, gold), (gold, answer)


def test_files_of_answers_are_scored_as_by_the_script_of_squad(clone):
    script = clone("google-research+xtreme", "third_party/evaluate_squad.py")
    draw = random.Random(1)
    gold = [[" ".join(draw.choices(ODD_ANSWERS[2:], k=3)) for _ in range(2)] for _ in range(80)]
    predictions = [draw.choice([right[0], right[1].upper(), right[0][3:], "x"]) for right in gold]
    questions = [
        {"id": str(number), "answers": [{"text": text} for text in right]}
        for number, right in enumerate(gold)
    ]
    answers = {str(number): answer for number, answer in enumerate(predictions)}
    expected = script.evaluate([{"paragraphs": [{"qas": questions}]}], answers)
    for metric, name in (("f1", "f1"), ("em", "exact_match")):
        comparison = isogloss.compare(predictions, predictions, gold, metric=metric, task="qa")
        assert 100 * comparison.score == pytest.approx(expected[name])


def random_links(draw, count):
    return [{(draw.randrange(6), draw.randrange(6)) for _ in range(draw.randint(1, 8))} for _ in range(count)]


def gold_links(path, script):
    """Return sure and possible links of a gold file of awesome-align, which counts words from 1."""
    sure_links, possible_links = [], []
    for line in path.read_text(encoding="utf-8").splitlines():
        links = [(text, script.parse_single_alignment(text, False, True)) for text in line.split()]
        sure_links.append({link for text, link in links if "-" in text})
        possible_links.append({link for text, link in links if "p" in text})
    return sure_links, possible_links


@pytest.mark.parametrize(
    ("pair", "aer"), [("enfr", 4.1), ("roen", 20.7), ("jaen", 37.4), ("zhen", 13.3), ("", None)]
)
def test_links_are_scored_as_by_the_script_of_awesome_align(clone, clone_path, pair, aer):
    script = clone("neulab+awesome-align", "tools/aer.py")
    draw = random.Random(2)
    sure_links = random_links(draw, 60)
    possible_links = random_links(draw, 60)
    predicted_links = random_links(draw, 60)
    if pair:
        folder = clone_path("neulab+awesome-align", "examples")
        sure_links, possible_links = gold_links(folder / f"{pair}.gold", script)
        lines = (folder / f"{pair}.awesome-align.out").read_text(encoding="utf-8").splitlines()
        predicted_links = [{script.parse_single_alignment(text) for text in line.split()} for line in lines]
    all_links = [
        sure_pair | possible_pair for sure_pair, possible_pair in zip(sure_links, possible_links, strict=True)
    ]
    precision, recall, error, f1, *_ = script.calculate_metrics(sure_links, all_links, predicted_links, 0.5)
    scores = alignment_scores(sure_links, possible_links, predicted_links)
    assert (scores.precision, scores.recall, scores.aer, scores.f1) == pytest.approx(
        (precision, recall, error, f1)
    )
    if aer is not None:
        assert 100 * scores.aer == pytest.approx(aer, abs=0.051)


def test_links_are_scored_as_by_the_script_of_simalign(clone, tmp_path):
    script = clone("cisnlp+simalign", "scripts/calc_align_score.py")
    draw = random.Random(3)
    sure_links, possible_links, predicted_links = (random_links(draw, 80) for _ in range(3))
    gold_path, path = tmp_path / "gold", tmp_path / "found"
    gold_path.write_text(
        "".join(
            f"{number}\t{write_links(sure_pair)} {write_links(possible_pair - sure_pair, 'p')}\n"
            for number, (sure_pair, possible_pair) in enumerate(zip(sure_links, possible_links, strict=True))
        )
    )
    path.write_text(
        "".join(f"{number}\t{write_links(links)}\n" for number, links in enumerate(predicted_links))
    )
    possible_there, sure_there, count = script.load_gold(str(gold_path))
    expected = script.calc_score(str(path), possible_there, sure_there, count)
    scores = alignment_scores(sure_links, possible_links, predicted_links)
    rounded_to = 0.0011
    assert (scores.precision, scores.recall, scores.f1, scores.aer) == pytest.approx(expected, abs=rounded_to)


def write_links(links, mark="-"):
    return " ".join(f"{source}{mark}{target}" for source, target in sorted(links))
