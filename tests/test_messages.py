"""Tests name facts of error messages. Only the snapshot contains wordings, and only of existing tests."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import says
from isogloss.core.errors import ConfigError

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src" / "isogloss"
ALLOWED = {
    "pip install sentencepiece protobuf": "a command to type",
    "not on this machine": "the reason why a test is skipped",
    "that are read as": "the title of a layout",
    "how states are made": "the name of a case",
}
"""Words that a message and a test have in common, with the reason why they are not its wording."""
SIZE = 4
"""Number of consecutive words that are a wording. Fewer words are often a fact, such as a name."""
PLAIN_TEXT = re.compile(r"[A-Za-z,'’\s]+")


def test_every_wording_is_of_a_test():
    assert says.without_test() == set()


def test_a_fact_that_is_missing_is_named():
    with pytest.raises(AssertionError, match="'qab'"), says.says(ConfigError, "'qaa'", "'qab'"):
        raise ConfigError("no language 'qaa'")


def test_another_wording_is_missed():
    with pytest.raises(AssertionError, match="--record-messages"), says.says(ConfigError, "'qaa'"):
        raise ConfigError("no language 'qaa'")


def test_folders_of_the_day_are_no_part_of_a_wording(tmp_path, monkeypatch):
    monkeypatch.setattr(says, "RECORDED", {})
    monkeypatch.setattr(says, "WORDINGS", tmp_path / "messages.json")
    monkeypatch.setattr(says, "is_recorded_anew", True)
    says.check_wording(f"{tmp_path}/a.tsv:1: an empty line", "a.tsv:1")
    assert list(says.RECORDED.values()) == ["TMP/a.tsv:1: an empty line"]


def test_no_test_repeats_the_wording_of_a_message():
    messages = {words for path in SOURCE.rglob("*.py") for words in find_words_of_messages(parse(path))}
    repetitions = [
        (f"{path.relative_to(TESTS)}:{line}", words)
        for path in TESTS.rglob("*.py")
        if path.name != Path(__file__).name
        for line, words in find_repetitions(parse(path), messages)
    ]
    wordings = [(place, words) for place, words in repetitions if words not in ALLOWED]
    assert wordings == [], "assert facts, or use says or check_wording"
    assert {words for _, words in repetitions} == ALLOWED.keys(), "allowed words that no test has"


@pytest.mark.parametrize("message", ["'no folder at this place.'", "f'{path}: no folder at this place.'"])
@pytest.mark.parametrize(
    "assertion",
    [
        "assert 'no folder at this place' in message",
        r"with pytest.raises(InputError, match=r'a\.tsv: no\ folder at this place'): read()",
        "with says(InputError, 'a.tsv', 'there is no folder at this place'): read()",
        "assert f'{path}: no folder at this place' in message",
    ],
)
def test_a_repeated_wording_is_found_with_its_line(message, assertion):
    messages = set(find_words_of_messages(ast.parse(f"raise InputError({message})")))
    repetitions = list(find_repetitions(ast.parse(f"import pytest\n{assertion}"), messages))
    assert repetitions == [(2, "no folder at this"), (2, "folder at this place")]


@pytest.mark.parametrize(
    "program",
    [
        "assert 'a.tsv: … --data' in message",
        "assert 'no folder at 3 places' in message",
        "'No folder at this place: a docstring.'",
        "# no folder at this place",
    ],
)
def test_facts_docstrings_and_comments_are_no_wording(program):
    messages = set(find_words_of_messages(ast.parse("raise InputError('no folder at this place')")))
    assert list(find_repetitions(ast.parse(program), messages)) == []


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def find_words_of_messages(program: ast.Module) -> Iterator[str]:
    """Yield all consecutive words in the texts of errors that a module raises or builds."""
    for node in ast.walk(program):
        if isinstance(node, ast.Raise) or (isinstance(node, ast.Call) and is_error(node.func)):
            for _, text in find_texts(node):
                yield from split_words(text)


def is_error(function: ast.expr) -> bool:
    return ast.unparse(function).endswith("Error")


def find_repetitions(program: ast.Module, messages: set[str]) -> Iterator[tuple[int, str]]:
    """Yield the line and the words of each text that repeats consecutive words of a message."""
    for line, text in find_texts(program):
        for words in split_words(text.replace("\\ ", " ")):
            if words in messages:
                yield line, words


def find_texts(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the texts below a node with their lines, except docstrings. Values in a text become braces."""
    skipped_parts: set[ast.AST] = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Expr):
            skipped_parts.add(part.value)
        elif isinstance(part, ast.JoinedStr):
            skipped_parts.update(part.values)
            texts = [str(value.value) if isinstance(value, ast.Constant) else "{}" for value in part.values]
            yield part.lineno, "".join(texts)
        elif isinstance(part, ast.Constant) and isinstance(part.value, str) and part not in skipped_parts:
            yield part.lineno, part.value


def split_words(text: str) -> Iterator[str]:
    """Yield each ``SIZE`` consecutive plain words of a text."""
    for plain_text in PLAIN_TEXT.findall(text):
        words = [word.strip(",") for word in plain_text.split()]
        for start in range(len(words) - SIZE + 1):
            yield " ".join(words[start : start + SIZE])
