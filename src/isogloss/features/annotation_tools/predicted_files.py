"""Formats of annotation tools that taggers read and write: JSON with offsets, brat, WebAnno's TSV 3."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from isogloss.core.arguments import never
from isogloss.core.errors import DataError
from isogloss.core.tag_schemes import find_spans
from isogloss.core.untrusted import parse_json
from isogloss.data.examples import TaggedSentence
from isogloss.data.files import File, numbered_objects
from isogloss.features.annotation_tools.annotation_files import (
    LABEL_COLUMN,
    WEBANNO_HEADER,
    find_text_file,
    read_webanno,
    write_webanno_cells,
)
from isogloss.features.annotation_tools.offsets import (
    OffsetError,
    Place,
    Style,
    find_style,
    find_text,
    locate_spans,
    locate_tokens,
    locate_words,
    replace_spans,
)
from isogloss.using.formats import Answered, FileEntry, InputFormat, is_object

_TASKS = "a list of JSON objects and nothing else"


def _has_spans(line: str) -> bool:
    if not is_object(line):
        return False
    try:
        body = parse_json(line, finite=False, unicode=False)
    except ValueError:
        return False
    return isinstance(body, dict) and find_style(body) is not None


def _locate_words_of_object(body: Mapping[str, Any]) -> list[Place]:
    return locate_tokens(body) or locate_words(find_text(body))


def _entry(file: File, line_number: int, line: str, body: Mapping[str, Any]) -> FileEntry:
    try:
        text = find_text(body)
        words = tuple(text[extent.start : extent.stop] for extent in _locate_words_of_object(body))
    except OffsetError as error:
        raise file.broken(line_number, error.problem, error.expected) from error
    example = TaggedSentence(id=str(body.get("id", line_number)), words=words, tags=()) if words else None
    return FileEntry(lines=(line,), example=example, body=body, original=body)


def _read_lines(file: File, _: str) -> Iterator[FileEntry]:
    for line_number, line, body in numbered_objects(file):
        yield _entry(file, line_number, line, body)


def _read_list(file: File, _: str) -> Iterator[FileEntry]:
    try:
        bodies = parse_json("".join(file.read()), finite=False, unicode=False)
    except ValueError as error:
        raise file.broken(1, f"no JSON ({error})", _TASKS) from error
    if not isinstance(bodies, list) or not all(isinstance(body, dict) for body in bodies):
        raise file.broken(1, "no list of objects", _TASKS)
    for index, body in enumerate(bodies, start=1):
        yield _entry(file, index, "", body)


def _fill_bodies(entries: Iterable[Answered]) -> Iterator[dict[str, Any]]:
    """Yield each object with the predicted spans in its own structure."""
    style: Style | None = None
    for entry, prediction in entries:
        body = entry.original or {}
        row_style = find_style(body)
        style = row_style if row_style is not None and row_style.form != "empty" else style or row_style
        if prediction is None or style is None:
            yield dict(body)
            continue
        spans = locate_spans(find_text(body), prediction.answer, _locate_words_of_object(body))
        filled_body = replace_spans(
            body, spans, row_style if row_style is not None and row_style.form == "tasks" else style
        )
        if prediction.scores is not None:
            filled_body["scores"] = [round(score, 6) for score in prediction.scores]
        yield filled_body


def _write_lines(entries: Iterable[Answered]) -> Iterator[str]:
    for body in _fill_bodies(entries):
        yield json.dumps(body, ensure_ascii=False)


def _write_list(entries: Iterable[Answered]) -> Iterator[str]:
    opening = "["
    for body in _fill_bodies(entries):
        yield opening + json.dumps(body, ensure_ascii=False)
        opening = ","
    yield "]" if opening == "," else "[]"


def _read_brat(file: File, _: str) -> Iterator[FileEntry]:
    """Read the text that a file of brat annotates, line by line. Each entry keeps where its line begins."""
    start = 0
    for line_number, line in enumerate(find_text_file(file).read(), start=1):
        words = tuple(line[extent.start : extent.stop] for extent in locate_words(line))
        example = TaggedSentence(id=str(line_number), words=words, tags=()) if words else None
        yield FileEntry(lines=(line,), example=example, body={"line": line_number, "start": start})
        start += len(line)


def _write_brat(entries: Iterable[Answered]) -> Iterator[str]:
    index = 0
    for entry, prediction in entries:
        if prediction is None or entry.body is None:
            continue
        (line,) = entry.lines
        start = entry.body["start"]
        for span in locate_spans(line, prediction.answer, locate_words(line)):
            index += 1
            offsets = f"{int(str(start)) + span.start} {int(str(start)) + span.stop}"
            yield f"T{index}\t{span.type} {offsets}\t{span.text}"


def _read_webanno(file: File, _: str) -> Iterator[FileEntry]:
    """Read the sentences of WebAnno's TSV. Lines between them are entries without an example."""
    all_lines = list(file.read())
    file = replace(file, read=lambda: iter(all_lines))
    sentences_by_line = dict[int, TaggedSentence]()
    word_lines = set[int]()
    for sentence in read_webanno(file):
        if isinstance(sentence, DataError):
            raise sentence
        words = tuple(sentence.tagged.words)
        sentences_by_line[sentence.lines[0]] = TaggedSentence(id=sentence.id, words=words, tags=())
        word_lines.update(sentence.lines)
    example: TaggedSentence | None = None
    lines = list[str]()
    for line_number, line in chain(file.lines(), [(0, "")]):
        if line_number in word_lines:
            example = sentences_by_line.get(line_number, example)
            lines.append(line)
            continue
        if lines:
            yield FileEntry(lines=tuple(lines), example=example, body={"line": line_number - len(lines)})
            lines = []
        if line_number:
            yield FileEntry(lines=(line,))


def _write_webanno(entries: Iterable[Answered]) -> Iterator[str]:
    next_index = 1
    for entry, prediction in entries:
        if prediction is None:
            yield from entry.lines
            continue
        spans = find_spans(prediction.answer)
        cells, next_index = write_webanno_cells(spans, len(entry.lines), next_index)
        yield from map(_replace_cell, entry.lines, cells)


def _replace_cell(line: str, cell: str) -> str:
    cells = line.split("\t")
    cells[LABEL_COLUMN : LABEL_COLUMN + 1] = [cell.replace(" ", "_")]
    return "\t".join(cells)


def _starts_webanno(lines: Sequence[str]) -> bool:
    return bool(lines) and lines[0].startswith(WEBANNO_HEADER)


def _is_list(line: str) -> bool:
    return line.startswith("[")


WEBANNO = InputFormat(
    name="webanno",
    matches=never,
    matches_first=_starts_webanno,
    read=_read_webanno,
    write=_write_webanno,
    holds="spans",
)
BRAT = InputFormat(
    name="brat", matches=never, read=_read_brat, write=_write_brat, holds="spans", suffixes=(".ann",)
)
OFFSETS = InputFormat(
    name="offsets",
    matches=_has_spans,
    matches_first=lambda lines: _has_spans(next(iter(lines), "")),
    read=_read_lines,
    write=_write_lines,
    holds="spans",
)
TASKS = InputFormat(
    name="tasks", matches=_is_list, read=_read_list, write=_write_list, holds="spans", suffixes=(".json",)
)
