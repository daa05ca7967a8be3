"""Files are read as other projects read them: texts and files of their tests, and odd files."""

import ast
import random
import re
import sys
import textwrap

import pytest

import isogloss
from isogloss.core.languages import canonical_language, spellings
from isogloss.data.files import disk_file
from isogloss.data.formats.conll import decide_layout, read_words
from isogloss.data.formats.conllu import read_conllu, read_sentences

pytestmark = pytest.mark.nightly

CONLLU = "EmilStenstrom+conllu"


@pytest.fixture
def conllu(clone_path, monkeypatch):
    """Import the package conllu from its clone."""
    monkeypatch.syspath_prepend(str(clone_path(CONLLU, ".")))
    import conllu

    yield conllu
    for name in [name for name in sys.modules if name.partition(".")[0] == "conllu"]:
        del sys.modules[name]


def words_of_conllu(conllu, text):
    """Return the words of sentences as conllu reads them, without ranges and empty nodes."""
    return [
        tuple(word["form"] for word in sentence if isinstance(word["id"], int))
        for sentence in conllu.parse(text)
    ]


def texts_in(path):
    """Yield the texts with tabs in a file of Python."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "\t" in node.value:
            yield textwrap.dedent(node.value)


def read_or_refuse(path):
    """Return the words of each sentence. None where the file is refused."""
    try:
        return [tuple(sentence.words) for sentence in read_sentences(disk_file(path))]
    except isogloss.DataError:
        return None


@pytest.mark.parametrize("file", ["tests/fixtures.py", "tests/test_integration.py"])
def test_texts_of_conllus_tests_have_the_same_words_or_are_refused(clone_path, conllu, tmp_path, file):
    path = tmp_path / "text.conllu"
    equal = 0
    for text in texts_in(clone_path(CONLLU, file)):
        path.write_text(text, encoding="utf-8")
        try:
            expected = words_of_conllu(conllu, text)
        except conllu.exceptions.ParseException:
            continue
        result = read_or_refuse(path)
        if result is not None:
            assert result == [words for words in expected if words], text
            equal += 1
    assert equal


@pytest.mark.parametrize(
    ("project", "folder"),
    [
        ("pyconll+pyconll", "tests/unit/fixtures"),
        ("ufal+conll2018", "evaluation_script/tests"),
        ("UniversalDependencies+tools", "udtools/tests/test-cases/valid"),
    ],
)
def test_files_of_other_projects_tests_have_the_words_that_conllu_reads(clone_path, conllu, project, folder):
    equal = 0
    for path in sorted(clone_path(project, folder).glob("*.conll*")):
        result = read_or_refuse(path)
        if result is not None:
            expected = words_of_conllu(conllu, path.read_text(encoding="utf-8"))
            assert result == [words for words in expected if words], path
            equal += 1
    assert equal > 3


def test_valid_files_of_the_validator_are_read_and_invalid_ones_read_or_refused(clone_path):
    folder = clone_path("UniversalDependencies+tools", "udtools/tests/test-cases")
    for path in sorted(folder.glob("valid/*.conllu")):
        list(read_conllu(disk_file(path)))
    refusal = 0
    for path in sorted(folder.glob("invalid-*/*.conllu")):
        try:
            list(read_conllu(disk_file(path)))
        except isogloss.DataError as error:
            assert path.name in str(error)
            refusal += 1
    assert refusal >= 20


def function_of(path, name):
    """Return one function of a module that cannot be imported, because it imports much else."""
    source = path.read_text(encoding="utf-8")
    [node] = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef) and node.name == name
    ]
    names = {}
    exec(compile(ast.Module([node], []), str(path), "exec"), names)
    return names[name]


LABELS = ["O", "B-PER", "I-PER", "X"]


def odd_lines(draw):
    """Return lines of a file with a word and labels on each line, with comments and odd words."""
    width = draw.randint(2, 4)
    words = ["a", "Das", "1", "…"]
    lines = []
    for _ in range(draw.randint(1, 6)):
        lines += draw.sample(["# id = 1", "# text = a b", "# newdoc", "#"], draw.randint(0, 2))
        for _ in range(draw.randint(1, 6)):
            labels = draw.choices(LABELS, k=width - 1)
            lines.append("\t".join([draw.choice(words), *labels]))
            words = ["a", "Das", "#win", "#", "# 5"]  # Not as the first word of a file.
        lines += [""] * draw.randint(1, 2)
    return lines


def test_odd_files_have_the_words_that_machamp_reads(clone_path, tmp_path):
    read_there = function_of(
        clone_path("machamp-nlp+machamp", "machamp/readers/read_sequence.py"), "seqs2data"
    )
    draw = random.Random(0)
    for index in range(300):
        path = tmp_path / f"{index}.conll"
        path.write_text("\n".join(odd_lines(draw)) + "\n", encoding="utf-8")
        expected = [[row[0] for row in sentence] for sentence, _ in read_there(str(path))]
        file = disk_file(path)
        layout = decide_layout(file, 1, listed_labels=LABELS)
        sentences = read_words(file, layout, (0, 1))
        cells = [[cells[0] for _, cells in sentence] for sentence in sentences]
        assert cells == expected, path.read_text(encoding="utf-8")


SERBO_CROATIAN = "sh"
"""Corpora of Wikipedia have both it and sr, so it stays. Its code of three letters becomes sr_Latn."""


def test_codes_of_three_letters_are_those_of_langcodes():
    langcodes = pytest.importorskip("langcodes")
    letters = "abcdefghijklmnopqrstuvwxyz"
    check_count = 0
    for language_code in (first_letter + second for first_letter in letters for second in letters):
        language = langcodes.get(language_code, normalize=False)
        if (
            not language.is_valid()
            or canonical_language(language_code) != language_code
            or language_code == SERBO_CROATIAN
        ):
            continue  # Retired codes, such as iw, have become others.
        for three in {language.to_alpha3(), language.to_alpha3("B")}:
            assert canonical_language(three) == language_code
            assert three in spellings(language_code)
            check_count += 1
    assert check_count > 150


def test_tags_of_the_examples_of_langcodes_have_its_language(clone_path):
    source = clone_path("rspeer+langcodes", "langcodes/__init__.py").read_text(encoding="utf-8")
    examples = re.findall(r">>> standardize_tag\('([^']+)'\)\n\s+'([^']+)'", source)
    assert len(examples) > 3
    differing = [
        (tag, canonical_language(tag))
        for tag, expected in examples
        if canonical_language(tag).replace("_", "-").partition("-")[0] != expected.partition("-")[0]
    ]
    assert differing == []
