"""Pairs of texts and a label for each: rows split by tabs, JSON lines."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from isogloss.core.errors import DataError
from isogloss.data.examples import Example, SentencePair
from isogloss.data.files import File
from isogloss.data.pairs import Header
from isogloss.using.formats import (
    Answered,
    Entry,
    Format,
    Kind,
    Prediction,
    is_object,
    keys_missing,
    numbered_objects,
)

ADDED = ("predicted", "scores")
"""Names of the columns that are added to a file with a header."""

TEXTS = (("text", "text_pair"), ("first", "second"))
"""Names of the texts in an object; "texts" is a list of both."""


def pairs() -> Kind:
    """Make the kind of tasks that label pairs of texts."""
    return Kind(
        formats=(
            Format(name="jsonl", looks_so=is_object, read=_read_objects),
            Format(name="tsv", looks_so=bool, read=_read_tsv, write=_write_tsv),
        ),
        example=pair,
        of_object=_of_object,
        told=_told,
        answered=_answered,
        auto_class="AutoModelForSequenceClassification",
        pipeline="text-classification",
    )


def pair(value: Any, where: str, language: str = "") -> SentencePair:  # noqa: ARG001
    """Make a pair of two texts."""
    two = isinstance(value, list | tuple) and len(value) == 2
    if not two or not all(isinstance(text, str) for text in value):
        raise DataError(f"{where}: expected two texts (first, second), found {str(value)[:60]!r}.")
    first, second = value
    return SentencePair(id=where, first=first, second=second, label="")


def _told(example: Example | None, prediction: Prediction | None) -> dict[str, Any]:
    told: dict[str, Any] = {"texts": [], "label": None}
    if isinstance(example, SentencePair):
        told["texts"] = [example.first, example.second]
    if prediction is not None:
        told["label"] = prediction.answer
        if prediction.scores is not None:
            told["scores"] = {label: round(score, 6) for label, score in prediction.scores.items()}
    return told


def _answered(example: Any, answer: str) -> Example:
    filled: Example = replace(example, label=answer)
    return filled


def _read_tsv(file: File, _: str) -> Iterator[Entry]:
    """Read the texts of the first two columns, or of those that a header names; all rows are of one width."""
    columns: tuple[int, int] = (0, 1)
    width = 0
    for number, line in file.lines():
        row = line.split("\t")
        if not line.strip():
            yield Entry(lines=(line,), about={"line": number})
        elif number == 1 and (header := _header(row)):
            columns, width = header, len(row)
            yield Entry(lines=(line,))
        else:
            width = width or max(len(row), 2)
            texts = [row[column] for column in columns if column < len(row)]
            if len(row) != width or not all(text.strip() for text in texts):
                raise file.broken(number, f"{line[:60]!r}", _expected(width))
            example = SentencePair(id=str(number), first=texts[0], second=texts[1], label="")
            yield Entry(lines=(line,), example=example, about={"line": number})


def _expected(width: int) -> str:
    if width == 2:
        return "two texts with one tab between them"
    return f"{width} columns as in the first row, two of them texts"


def _header(row: Sequence[str]) -> tuple[int, int] | None:
    """Return the places of the texts if a row is a header."""
    first = next((row.index(name) for name in Header().first if name in row), None)
    second = next((row.index(name) for name in Header().second if name in row), None)
    return None if first is None or second is None else (first, second)


def _write_tsv(entries: Iterable[Answered]) -> Iterator[str]:
    header: str | None = None  # Its new columns are known once something was predicted.
    for number, (entry, prediction) in enumerate(entries):
        added = _columns(prediction)
        if number == 0 and prediction is None and _header(entry.lines[0].split("\t")):
            header = entry.lines[0]
            continue
        if header is not None and added:
            yield "\t".join([header, *ADDED[: len(added)]])
            header = None
        yield "\t".join([*entry.lines, *added])
    if header is not None:
        yield f"{header}\t{ADDED[0]}"


def _columns(prediction: Prediction | None) -> list[str]:
    """Return the label, and the probability of each where that was asked for."""
    if prediction is None:
        return []
    if prediction.scores is None:
        return [prediction.answer]
    scores = " ".join(f"{label}={score:.4f}" for label, score in prediction.scores.items())
    return [prediction.answer, scores]


def _read_objects(file: File, language: str) -> Iterator[Entry]:
    for number, line, body in numbered_objects(file):
        example = _of_object(body, f"{file.name}:{number}", language)
        yield Entry(lines=(line,), example=example, about=body)


def _of_object(body: Mapping[str, Any], where: str, language: str) -> SentencePair:
    names = next((names for names in TEXTS if set(names) <= body.keys()), None)
    value = body.get("texts") if names is None else [body[name] for name in names]
    if value is None:
        raise keys_missing(body, where, "text and text_pair, or texts")
    return pair(value, where, language)
