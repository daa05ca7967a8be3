"""Every variant of a good file is read as that file, reported or refused, and never misread in silence."""

import json
from collections import Counter

import pytest

from isogloss.core.errors import ConfigError, DataError
from isogloss.features.described_corpora.contents import inspect_splits
from isogloss.features.described_corpora.descriptions import describe_corpus

PEOPLE = {"PER": 2, "LOC": 2}
ROWS = [("Ana", "B-PER"), ("Li", "I-PER"), ("saw", "O"), ("Oslo", "B-LOC"), ("", "")]
ROWS += [("Bo", "B-PER"), ("went", "O"), ("to", "O"), ("Rio", "B-LOC"), ("", "")]

HASHES = [
    "#",
    "# ",
    "# id = 1",
    "#id=1",
    "# text: Ana saw",
    "#\turl",
    "# sent 1",
    "## two",
    "#### x",
    "# a b c",
]
HASHES += ["#begin", "# newdoc id = d1", "# É", "#-*-", "# O", "# Ana O", "#1", "# 1", "#!", "#Ana"]
OTHERS = [
    "-DOCSTART- -X- O",
    "-DOCSTART-",
    "-DOCSTART-\tO",
    "% c",
    "// c",
    ";; c",
    "-- c",
    "<!-- c -->",
    "* c",
]
OTHERS += ["'''", "REM c", "! c"]

TYPOS = [
    "B_PER",
    "b-PER",
    "B-PER.",
    "B--PER",
    "BPER",
    "-PER",
    "B-",
    "B",
    "B.PER",
    "0",
    "o",
    "BB-PER",
    "X-PER",
]
TYPOS += ["B PER", "PER-B", "PER", "B-per", "B/PER", "B:PER"]

SIGNS = [",", ";", "|", "/", "+", "&", "^", "#", "__", ":"]

COLUMNS = {
    "1, 2, 3": lambda word, line, sentence: str(word + 1),
    "0, 1, 2": lambda word, line, sentence: str(word),
    "running": lambda word, line, sentence: str(line),
    "sentence": lambda word, line, sentence: str(sentence),
    "1-1": lambda word, line, sentence: f"{sentence}-{word + 1}",
    "1.1": lambda word, line, sentence: f"{sentence}.{word + 1}",
    "t1": lambda word, line, sentence: f"t{line}",
    "01": lambda word, line, sentence: f"{word + 1:02}",
    "s1w1": lambda word, line, sentence: f"s{sentence}w{word + 1}",
    "offsets": lambda word, line, sentence: f"{5 * line}-{5 * line + 4}",
    "document": lambda word, line, sentence: "doc7",
    "language": lambda word, line, sentence: "en",
    "underscores": lambda word, line, sentence: "_",
    "tags": lambda word, line, sentence: ["B-PER", "I-PER", "O", "B-LOC"][line % 4],
}

MISSING = ["", "None", "NA", "N/A", "n/a", "nil", "NaT", "-", "?", "_", ".", "[]", "{}", "null", "nan", "NaN"]
MISSING += ["#N/A", "<NA>", "NULL", "NONE", "na", "--", "[null]", "-1"]

CELLS = [None, [], {}, [None], ["pos"], ["pos", "neg"], {"a": 1}, {"choices": ["pos"]}, 0, False, 1.0]
CELLS += [True, -1, float("nan"), "", " ", [[0, 1, "X"]]]

SPELLINGS = [
    ("1", "1.0"),
    ("1", "01"),
    ("pos", "Pos"),
    ("pos", "pos\u200b"),
    ("pos", "\ufeffpos"),
    ("pos", '"pos"'),
]
SPELLINGS += [
    ("a b", "a  b"),
    ("pos", "роs"),
    ("pos", "ｐｏｓ"),
    ("pos", "'pos'"),
    ("0", "0.0"),
    ("é", "e\u0301"),
]
SPELLINGS += [("pos", "pos\u00ad"), ("pos", "pos\u2060"), ("pos", "POS"), ("2", "002"), ("pos", "“pos”")]

ANSWERS = {
    "Hindi": ("वह जहाँ था", "हाँ"),
    "Hebrew": ("הוא בא לכןהיום", "כן"),
    "Bengali": ("একটি নাটক", "না"),
    "Telugu": ("వాడు అవునుగా", "అవును"),
    "Amharic": ("እሱአዎን አለ", "አዎ"),
    "Arabic": ("هو نعمات هنا", "نعم"),
    "Korean": ("오늘아니오늘", "아니"),
    "English": ("northern lights", "no"),
    "accent": ("the cafe\u0301s", "cafe"),
}


@pytest.fixture
def judge(tmp_path):
    """Judge a file: right, reported, refused or silent."""

    def judge(name, content, body, expected):
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        text = f'files = {{ train = "{name}" }}\nlanguages = ["en"]\n{body}'
        (tmp_path / "own.toml").write_text(text, encoding="utf-8")
        try:
            (contents,) = inspect_splits(describe_corpus(tmp_path / "own.toml"))
        except (ConfigError, DataError):
            return "refused"
        if contents.errors:
            return "refused"
        if dict(contents.labels) == expected:
            return "right"
        return "reported" if contents.remarks else "silent"

    return judge


TAGGING = 'kind = "tagging"\nformat = "conll"\n'


def write_words(separator="\t", rows=ROWS):
    return "".join(f"{word}{separator}{tag}\n" if word else "\n" for word, tag in rows)


def list_comments():
    for separator in ("\t", " "):
        lines = write_words(separator).splitlines(keepends=True)
        for comment in (*HASHES, *OTHERS):
            for place in (0, 5, 2, len(lines)):
                yield "c.txt", "".join([*lines[:place], f"{comment}\n", *lines[place:]]), TAGGING, PEOPLE


def list_line_ends():
    for separator in ("\t", " "):
        text = write_words(separator)
        for end in ("\r\n", "\r", "\n\n", f"{separator}\n", " \n", "\t\n"):
            yield "c.txt", text.replace("\n", end), TAGGING, PEOPLE
        for whole_text in ("\ufeff" + text, text.rstrip("\n"), text + "\n\n\n", "\n\n" + text, text + " \n"):
            yield "c.txt", whole_text, TAGGING, PEOPLE
        yield "c.txt", text.encode("utf-16"), TAGGING, PEOPLE


def list_typos():
    for letters in ("BIIB", "BIES", "BILU", "BMES"):
        first_letter, inner, last_letter, single = letters
        spans = [
            ("Ana", f"{first_letter}-PER"),
            ("de", f"{inner}-PER"),
            ("Li", f"{last_letter}-PER"),
            ("saw", "O"),
        ]
        rows = [*spans, ("Oslo", f"{single}-LOC"), ("", "")] * 4
        for typo in TYPOS:
            changed_rows = [*rows, ("Bo", typo), ("ran", "O"), ("", "")]
            expected = {"PER": 5, "LOC": 4} if typo == f"{single}-PER" else None
            yield "c.txt", write_words("\t", changed_rows), TAGGING, expected


def list_pairs_of_tags():
    for sign in SIGNS:
        yield "c.txt", write_words("\t", [("Bo", f"B-PER{sign}B-ORG"), *ROWS]), TAGGING, None


def list_columns():
    for make in COLUMNS.values():
        words = list[str]()
        word = sentence = 0
        for line, (text, tag) in enumerate(ROWS * 3):
            words.append(f"{make(word, line, sentence)}\t{text}\t{tag}\n" if text else "\n")
            word = word + 1 if text else 0
            sentence += not text
        yield "c.txt", "".join(words), TAGGING, None


def list_missing_labels():
    for suffix, separator in (("csv", ","), ("tsv", "\t")):
        for missing in MISSING:
            rows = [("text", "label"), ("a", "pos"), ("b", "neg"), ("c", missing), ("d", "pos")]
            text = "".join(f"{separator.join(row)}\n" for row in rows)
            yield f"c.{suffix}", text, 'kind = "text"\n', None


def list_json_cells():
    for cell in CELLS:
        rows = [{"text": "a", "label": "pos"}, {"text": "b", "label": "neg"}, {"text": "c", "label": cell}]
        yield "c.jsonl", "".join(json.dumps(row) + "\n" for row in rows), 'kind = "text"\n', None


def list_structures():
    for shape in (
        lambda x: [x, x],
        lambda x: {"choices": [x]},
        lambda x: [[x]],
        lambda x: [1, 0],
        lambda x: {"x": x},
    ):
        rows = [
            {"text": text, "label": shape(label)} for text, label in zip("abcd", ["p", "n"] * 2, strict=True)
        ]
        yield "c.jsonl", "".join(json.dumps(row) + "\n" for row in rows), 'kind = "text"\n', None


def list_spellings():
    for first_spelling, second in SPELLINGS:
        rows = [
            {"text": text, "label": label}
            for text, label in zip("abc", [first_spelling, second, "x"], strict=True)
        ]
        yield "c.jsonl", "".join(json.dumps(row) + "\n" for row in rows), 'kind = "text"\n', None


def list_answers():
    for context, answer in ANSWERS.values():
        row = {"context": context, "question": "?", "answers": [answer]}
        yield "c.jsonl", json.dumps(row) + "\n", 'kind = "span"\n', None


KINDS = {
    "comments": list_comments,
    "line ends": list_line_ends,
    "typos": list_typos,
    "two tags in a cell": list_pairs_of_tags,
    "columns that are no words": list_columns,
    "missing labels": list_missing_labels,
    "labels in JSON": list_json_cells,
    "lists and objects": list_structures,
    "two spellings": list_spellings,
    "answers inside words": list_answers,
}


@pytest.mark.parametrize("kind", KINDS)
def test_no_variant_of_a_file_is_misread_in_silence(kind, judge):
    step = 1 if kind not in ("comments", "typos", "missing labels") else 7
    variants = list(KINDS[kind]())[::step]
    assert [variant for variant in variants if judge(*variant) == "silent"] == []


@pytest.mark.nightly
def test_no_variant_of_any_kind_is_misread_in_silence(judge):
    counts = {kind: Counter(judge(*variant) for variant in variants()) for kind, variants in KINDS.items()}
    assert {kind: count["silent"] for kind, count in counts.items()} == dict.fromkeys(KINDS, 0), counts
