"""Kinds of described corpora: the parts of an example, where they stand in each format, and the task."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from isogloss.data.formats.tables import Columns, FileFormat

Kind = Literal["tagging", "text", "pair", "choice", "span", "bitext", "raw"]
Predicts = Literal["label", "labels", "number"]
"""What the label of a text or pair is: one of an inventory, any number of them, or a number."""

SUFFIXES: Mapping[str, FileFormat] = {
    ".txt": "conll", ".conll": "conll", ".conllu": "conllu", ".tsv": "tsv", ".csv": "csv",
    ".jsonl": "jsonl", ".json": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet",
}  # fmt: skip


class Form(NamedTuple):
    """What a kind of corpus needs of a row, and the example it makes of it."""

    columns: Mapping[FileFormat, Columns]
    """Default columns by format."""
    tasks: Mapping[Predicts, str]
    """The task of its labels; that of tagging depends on the labels."""
    more: tuple[str, ...] = ()
    """Optional parts, which the description must name a column for."""
    several: tuple[str, ...] = ()
    """Parts that several columns may hold."""
    suffixes: Mapping[str, FileFormat] = SUFFIXES
    """The format of a file whose description names none."""


_BY_NAME = ("tsv", "csv", "jsonl", "json", "parquet")
BY_WORD = ("conll", "conllu")
"""Formats with a line a word."""


def _named(*names: str) -> dict[FileFormat, Columns]:
    return {one: {name: name for name in names} for one in _BY_NAME}  # type: ignore[misc]


FORMS: Mapping[Kind, Form] = {
    "tagging": Form(
        {
            "conll": {"word": 0, "label": -1},
            "conllu": {"word": "FORM", "label": "UPOS"},
            **_named("words", "labels"),
        },
        {"label": ""},
        ("annotated",),
    ),
    "text": Form(
        _named("text", "label"),
        {"label": "text-classification", "labels": "multi-label-classification", "number": "regression"},
    ),
    "pair": Form(
        _named("first", "second", "label"), {"label": "pair-classification", "number": "pair-regression"}
    ),
    "choice": Form(
        _named("context", "options", "label"),
        {"label": "multiple-choice"},
        ("question", "prompt"),
        ("context", "options"),
    ),
    "span": Form(
        {"squad": {}, **_named("context", "question", "answers")},
        {"label": "qa"},
        ("start",),
        suffixes={**SUFFIXES, ".json": "squad"},
    ),
    "bitext": Form({"lines": {"first": 0, "second": 0}, **_named("first", "second")}, {"label": "bitext"}),
    "raw": Form({"lines": {"text": 0}, **_named("text")}, {"label": "text"}),
}
