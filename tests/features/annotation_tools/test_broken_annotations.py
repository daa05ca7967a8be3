"""A broken file of an annotation tool is an error with its place, or all of its spans are read."""

import json
from collections.abc import Iterator
from copy import deepcopy

import pytest

from annotated_files import JSON_TOOLS, TEXTS, body_of, offsets_of, write_annotated
from isogloss.core.errors import DataError
from isogloss.core.tag_schemes import find_spans
from isogloss.features.described_corpora.contents import inspect_splits
from isogloss.features.described_corpora.descriptions import describe_corpus
from says import says

LATIN = (TEXTS["Latin"][0], offsets_of("Latin"))

WRONG = (None, 7, -1, 1.5, True, "x", "", [], {}, [1], {"a": 1})
REMOVED = object()

Place = tuple[str | int, ...]

SPANS_OF = {
    "doccano": ("label",),
    "spacy": ("entities",),
    "objects": ("entities",),
    "prodigy": ("spans",),
    "datasets": ("entities",),
    "label-studio": ("annotations", 0, "result"),
}
"""The place of the spans of a text."""


@pytest.fixture
def corpus(tmp_path):
    """Describe a file as a test split."""

    def describe(file, body):
        text = f'kind = "tagging"\nfiles = {{ test = "{file.name}" }}\nlanguages = ["en"]\n{body}'
        (tmp_path / "own.toml").write_text(text, encoding="utf-8")
        return describe_corpus(tmp_path / "own.toml")

    return describe


def places_in(value: object, place: Place = ()) -> Iterator[Place]:
    """Yield the keys that lead to each value inside a JSON value."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield (*place, key)
        yield from places_in(part, (*place, key))


def with_change(body: dict, place: Place, value: object) -> dict:
    """Return a body in which one value is another, or is removed."""
    result = deepcopy(body)
    holder = result
    for key in place[:-1]:
        holder = holder[key]
    if value is REMOVED:
        del holder[place[-1]]
    else:
        holder[place[-1]] = value
    return result


def leaves_spans_out(tool: str, place: Place, value: object) -> bool:
    """Return whether a change says that spans are not there, or makes a result one of another kind."""
    spans = SPANS_OF[tool]
    if spans[: len(place)] == place:
        return value in ([], REMOVED)
    inside = place[: len(spans)] == spans and tool != "datasets"
    is_span = len(place) == len(spans) + 1 and value is REMOVED
    is_other = tool == "label-studio" and place[-1] in (0, 1, "value") and value in ({}, {"a": 1})
    return inside and (is_span or is_other)


@pytest.mark.parametrize("position", [0, 1])
@pytest.mark.parametrize("tool", JSON_TOOLS)
def test_a_wrong_value_is_an_error_or_changes_no_span(tmp_path, corpus, tool, position):
    body = body_of(LATIN, tool)
    form = "json" if tool == "label-studio" else "jsonl"
    file = tmp_path / f"texts.{form}"
    errors = 0
    for place in places_in(body):
        for value in (*WRONG, REMOVED):
            bodies = [body_of(LATIN, tool)]
            bodies.insert(position, with_change(body, place, value))
            lines = [json.dumps(bodies)] if form == "json" else [json.dumps(each) for each in bodies]
            file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            try:
                described_corpus = corpus(file, f'annotated = "offsets"\nformat = "{form}"\n')
                examples = list(described_corpus.read(None, "en", "test"))
                (contents,) = inspect_splits(described_corpus)
                assert not contents.errors
            except DataError as error:
                assert file.name in str(error)
                errors += 1
                continue
            counts = [len(find_spans(example.tags or ())) for example in examples]
            is_left_out = leaves_spans_out(tool, place, value)
            assert counts[1 - position] == 2
            assert counts[position] < 2 if is_left_out else counts[position] == 2, (place, value)
    assert errors > 80


BROKEN = {
    "brat, no tabs": ("brat", ("T1\t", "T1 "), ("texts.ann:1", "T1 PER 0 6")),
    "brat, a span in parts": ("brat", ("PER 0 6", "PER 0 3;4 6"), ("texts.ann:1", "T1", "several parts")),
    "brat, behind the text": ("brat", ("PER 0 6", "PER 900 906"), ("texts.ann:1", "PER at 900", "22")),
    "brat, a number too long": (
        "brat",
        ("PER 0 6", f"PER 0 {'6' * 5000}"),
        ("texts.ann:1", "T1", "PER 0 66", "START"),
    ),
    "brat, the wrong way round": ("brat", ("PER 0 6", "PER 6 0"), ("texts.ann:1", "6-0")),
    "brat, another text": ("brat", ("\tAna Li", "\tBob Li"), ("texts.ann:1", "Bob Li")),
    "webanno, another file": ("webanno", ("#FORMAT=WebAnno TSV 3.3", "word\ttag"), ("texts.tsv:1", "TSV 3")),
    "webanno, a subword": ("webanno", ("\n1-2\t", "\n1-1.1\t"), ("texts.tsv:7", "PER[1]", "1-1.1")),
    "webanno, no number": ("webanno", ("\n1-2\t", "\nx\t"), ("texts.tsv:7", "'x'", "1-1")),
    "webanno, no labels": ("webanno", ("\tPER[1]\t\n1-2", "\n1-2"), ("texts.tsv:6", "3 columns", "column 3")),
    "webanno, no word": ("webanno", ("\tLi\t", "\t \t"), ("texts.tsv:7", "' '", "a word")),
}
"""Tool, a change of the text of its file, and the facts that the error has."""


@pytest.mark.parametrize(("tool", "change", "facts"), BROKEN.values(), ids=BROKEN)
def test_a_broken_line_is_an_error_with_its_number(tmp_path, corpus, tool, change, facts):
    file, body = write_annotated(tmp_path, tool, [LATIN])
    text = file.read_text(encoding="utf-8")
    assert text.count(change[0]) >= 1
    file.write_text(text.replace(*change, 1), encoding="utf-8")
    with says(DataError, *facts):
        list(corpus(file, body).read(None, "en", "test"))


def test_of_overlapping_spans_of_webanno_the_longest_is_read(tmp_path, corpus):
    file, body = write_annotated(tmp_path, "webanno", [LATIN])
    text = file.read_text(encoding="utf-8").replace("PER[1]", "PER[1]|ORG", 1)
    file.write_text(text, encoding="utf-8")
    (contents,) = inspect_splits(corpus(file, body))
    assert not contents.errors and contents.labels == {"PER": 1, "LOC": 1}
    assert "1 " in " ".join(remark for remark in contents.remarks if "overlap" in remark)
