"""Habits of sentences, names and code are as rare as in optuna and peft; tests/prose.py counts them."""

import ast
import json

import pytest

from prose import (
    EXCEPTIONS,
    GROUPS,
    KINDS,
    PEERS,
    Area,
    Place,
    allowed_rates,
    excesses,
    find_habits,
    find_names,
    judge_code,
    paragraphs,
    rates,
    read_group,
    read_module,
    texts,
)


@pytest.mark.slow
@pytest.mark.every_case
@pytest.mark.parametrize("group", GROUPS)
def test_no_habit_is_more_frequent_than_allowed(group):
    excesses_above = list(excesses(read_group(group), allowed_rates(group)))
    assert not excesses_above, "\n".join([*excesses_above, "Rewrite some; see tests/prose.py."])


SENTENCES = {
    "that of": "the loss is that of the task",
    "X alone": "only by the seed alone",
    "left out": "1 when left out",
    "of its own, beside": "a head of its own",
    "made": "described corpora are made again",
    "another": "the result has another form",
    "stands, lies": "links that stand in the bitext",
    "is no X": "sw is no corpus",
    "so many": "at least so many passes",
    "told, says which": "the header says which columns",
    "looks at": "no label is looked at",
    "goes on": "the run goes on where it was",
    "anew": "weights are normalised anew",
    "brings": "what mixing brings us",
    "asked for": "a method is asked for its data",
    "holds": "a mask holds the weights",
    "takes of, gives it": "a run takes what it needs",
    "clause with there is": "the languages that there are",
    "the one, the other": "labels in the one than in the other",
    "of which": "files of which a copy exists",
    "and no X": "one seed, and no test",
    "too at the end": "decoders mix, too.",
    "starts with of": "Of each sentence.",
    "summary with semicolon": "Return a map; ConfigError without one.",
    "summary is a clause": "What an evaluation has of its examples.",
    "Return what": "Return what a run took.",
    "long sentence": "word " * 36,
}
NAMES = {
    "name: participle": "chosen = 1",
    "name: adjective": "def f(other): 2",
    "name: preposition": "lambda over: 2",
    "name: pronoun": "[1 for one in x]",
    "name: verb": "with x as reads: pass",
    "name: of_…": "(of_seed := 1)",
    "name: number": "for number in x: pass",
    "name: code": "match x:\n    case [code, *_]: pass",
    "name: m": "try: pass\nexcept E as m: pass",
    "function: participle": "def linked(): 2",
    "function: preposition": "def below_layer(): 2",
}
CODE = {
    "two statements in one": "a, b = 1, x",
    "nested conditional": "1 if a else 2 if b else 3",
    "conditional part of a dict": "a | (b if c else d)",
    "[*x]": "[*x]",
    "map or filter": "map(f, x)",
    "lambda": "lambda x: x",
    "Any": "def f(x: Any): pass",
    "x[a][b] by position": "x[a][0]",
    "private attribute of another object": "x._a",
}


def test_every_kind_has_an_example():
    assert {*SENTENCES, *NAMES, *CODE} == set(KINDS)


@pytest.mark.parametrize(("kind", "text"), SENTENCES.items())
def test_habits_of_sentences_count(kind, text):
    assert kind in {kind for kind, _ in find_habits(text, is_docstring=True)}


@pytest.mark.parametrize(("kind", "program"), NAMES.items())
def test_names_and_functions_count_however_they_are_bound(kind, program):
    assert [kind] == [kind for kind, _, _ in find_names(ast.parse(program))]


@pytest.mark.parametrize(("kind", "program"), CODE.items())
def test_dense_code_counts(kind, program):
    assert kind in {judge_code(node) for node in ast.walk(ast.parse(program))}


@pytest.mark.parametrize(
    "program",
    ["seed = 1", "class C:\n    chosen: str", "a, b = b, a", "def read_rows(): 2", "{**a, **b}", "self._a"],
)
def test_plain_names_and_code_do_not_count(program):
    tree = ast.parse(program)
    assert list(find_names(tree)) == []
    assert {judge_code(node) for node in ast.walk(tree)} == {None}


def test_texts_are_docstrings_messages_and_comments():
    program = '"""A."""\nclass C:\n    x: int\n    """B."""\nraise E_Error(f"no {x} " + "here")  # reason\n'
    found_texts = [text for _, text, _ in texts(program, ast.parse(program))]
    assert sorted(found_texts) == ["A.", "B.", "no X here", "reason"]


def test_paragraphs_join_lines_and_skip_code():
    page = "# Title\n\nFirst\nline.\n- item\n\n```\ncode\n```\n| a | b |\n"
    assert list(paragraphs(page)) == [(1, "# Title"), (3, "First line."), (5, "- item"), (10, "| a | b |")]


def test_a_kind_above_the_allowed_rate_is_reported_with_its_places(tmp_path):
    path = tmp_path / "module.py"
    path.write_text("chosen = 1\nshown = 2\n", encoding="utf-8")
    area = Area()
    read_module(area, path, path)
    assert rates([area])["name: participle"] == 10_000
    limits = allowed_rates("src")
    (excess,) = excesses({"data": area}, limits)
    assert excess.startswith("name: participle: 10000.0, at most 27.3:")
    assert "module.py:2: shown" in excess
    assert list(excesses({"data": area}, limits | {"name: participle": 10_000})) == []


def test_allowed_rates_are_twice_the_larger_peer_or_one():
    peers = json.loads(PEERS.read_text(encoding="utf-8"))
    participles = max(peer["rates"]["name: participle"] for peer in peers.values())
    assert allowed_rates("src")["name: participle"] == 2 * participles
    assert allowed_rates("src")["X alone"] == 1


@pytest.mark.parametrize("group", ["tests", "scripts"])
def test_tests_and_scripts_are_compared_with_those_of_peers_as_well(group):
    peers = json.loads(PEERS.read_text(encoding="utf-8"))
    package_rate = max(peer["rates"]["lambda"] for peer in peers.values())
    group_rate = max(peer[f"rates of {group}"].get("lambda", 0) for peer in peers.values())
    assert group_rate > package_rate
    assert allowed_rates(group)["lambda"] == 2 * group_rate
    assert allowed_rates("src")["lambda"] == 2 * package_rate


def test_exceptions_are_of_known_kinds_and_say_why():
    rows = json.loads(EXCEPTIONS.read_text(encoding="utf-8"))
    assert {row["kind"] for row in rows} <= set(KINDS)
    assert all(row["reason"] for row in rows)
    area = Area()
    area.add(Place(row["kind"], EXCEPTIONS, 1, row["text"]) for row in rows)
    assert area.counts() == {}
