"""Read files of annotation tools: brat's ``.ann`` with a ``.txt``, and WebAnno's and INCEpTION's TSV 3.

https://brat.nlplab.org/standoff.html and https://webanno.github.io/webanno (WebAnno TSV 3.3 file format).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from isogloss.core.errors import DataError
from isogloss.core.tag_schemes import OUTSIDE
from isogloss.data.files import File, disk_file
from isogloss.features.annotation_tools.offsets import MarkedSpan, OffsetError, TaggedText, tag_text

WEBANNO_HEADER = "#FORMAT=WebAnno TSV"
"""Beginning of the first line of WebAnno's TSV, of any version."""

ANN = ".ann"
TXT = ".txt"

WORD_COLUMN = 2
LABEL_COLUMN = 3
"""First column of annotations in WebAnno's TSV."""

NO_VALUE = "_"

_ENTITY = re.compile(r"(T\d+)\t(\S+) (\d{1,15}) (\d{1,15})((?:;\d+ \d+)*)(?:\t(.*))?")
_TOKEN = re.compile(r"\d+-\d+")
_SUBTOKEN = re.compile(r"\d+-\d+\.\d+")
_VALUE = re.compile(r"(.*?)(?:\[(\d+)\])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatedSentence:
    """A sentence annotated with an annotation tool."""

    id: str
    line: int
    lines: tuple[int, ...] = ()
    """Line number of each word."""
    tagged: TaggedText


def find_text_file(file: File) -> File:
    """Return the text file that a brat file annotates."""
    return disk_file(Path(file.plain_name).with_suffix(TXT))


def read_brat(file: File) -> Iterator[AnnotatedSentence | DataError]:
    """Yield each line of a text with its entities, or the error of an entity that does not fit."""
    spans = list[tuple[int, MarkedSpan]]()
    for line_number, line in file.lines():
        if not line.startswith("T"):
            continue  # Skip relations, events, attributes and notes.
        match = _ENTITY.fullmatch(line)
        if match is None:
            yield file.broken(line_number, f"{line[:60]!r}", "T1<tab>TYPE START END<tab>TEXT")
        elif match[5]:
            yield file.broken(
                line_number, f"{match[1]} in several parts", "one part", "Join the parts, or remove it"
            )
        else:
            spans.append((line_number, MarkedSpan(match[2], int(match[3]), int(match[4]), match[6] or None)))
    yield from _read_brat_sentences(file, spans)


def _read_brat_sentences(
    file: File, spans: Sequence[tuple[int, MarkedSpan]]
) -> Iterator[AnnotatedSentence | DataError]:
    start = 0
    stem = Path(file.base_name).stem
    read = set[MarkedSpan]()
    for line_number, line in enumerate(find_text_file(file).read(), start=1):
        stop = start + len(line)
        spans_of_line = [numbered_span for numbered_span in spans if start <= numbered_span[1].start < stop]
        read.update(span for _, span in spans_of_line)
        if line.strip():
            yield _read_brat_sentence(file, f"{stem}:{line_number}", line, start, spans_of_line)
        start = stop
    for line_number, span in spans:
        if span not in read:
            yield file.broken(
                line_number, f"{span.type} at {span.start}", f"offsets in a text of {start} characters"
            )


def _read_brat_sentence(
    file: File, name: str, line: str, start: int, spans: Sequence[tuple[int, MarkedSpan]]
) -> AnnotatedSentence | DataError:
    line_spans = list[MarkedSpan]()
    for span_line, span in spans:
        moved_span = MarkedSpan(span.type, span.start - start, span.stop - start, span.text)
        try:
            tag_text(line, [moved_span])
        except OffsetError as error:
            return file.broken(span_line, error.problem, error.expected)
        line_spans.append(moved_span)
    line_number = spans[0][0] if spans else 1
    return AnnotatedSentence(id=name, line=line_number, tagged=tag_text(line, line_spans))


def read_webanno(file: File, column: int = LABEL_COLUMN) -> Iterator[AnnotatedSentence | DataError]:
    """Yield the sentences of a file, or the error of a sentence that does not fit."""
    rows = list[tuple[int, list[str]]]()
    is_first_line = True
    for line_number, line in file.lines():
        if is_first_line and not line.startswith(WEBANNO_HEADER):
            raise file.broken(
                line_number, f"{line[:60]!r}", f"{WEBANNO_HEADER} 3", "Export it as WebAnno TSV 3"
            )
        is_first_line = False
        if line.strip() and not line.startswith("#"):
            rows.append((line_number, line.split("\t")))
        elif rows:
            yield _read_webanno_sentence(file, rows, column)
            rows = []
    if rows:
        yield _read_webanno_sentence(file, rows, column)


def _read_webanno_sentence(
    file: File, rows: Sequence[tuple[int, list[str]]], column: int
) -> AnnotatedSentence | DataError:
    for line_number, cells in rows:
        if _SUBTOKEN.fullmatch(cells[0]) and len(cells) > column and cells[column] not in (NO_VALUE, ""):
            return file.broken(
                line_number, f"{cells[column]!r} on {cells[0]}, a part of a word", "spans of whole words"
            )
        if not _TOKEN.fullmatch(cells[0]) and not _SUBTOKEN.fullmatch(cells[0]):
            return file.broken(line_number, f"{cells[0][:60]!r}", "the number of a word, as in 1-1")
    words = [(line_number, cells) for line_number, cells in rows if _TOKEN.fullmatch(cells[0])]
    for line_number, cells in words:
        if len(cells) <= max(column, WORD_COLUMN):
            return file.broken(
                line_number, f"{len(cells)} columns", f"a word, and its labels in column {column}"
            )
        if not cells[WORD_COLUMN].strip():
            return file.broken(line_number, f"{cells[WORD_COLUMN]!r}", "a word")
    tags, overlapping = read_webanno_tags([cells[column] for _, cells in words])
    return AnnotatedSentence(
        id=words[0][1][0].partition("-")[0] if words else "",
        line=rows[0][0],
        lines=tuple(line_number for line_number, _ in words),
        tagged=TaggedText([cells[WORD_COLUMN] for _, cells in words], tags, overlapping),
    )


def read_webanno_tags(cells: Sequence[str]) -> tuple[list[str], int]:
    """Return BIO tags of the cells of a sentence, and the number of spans that overlap with a longer one."""
    spans = dict[tuple[str, str], list[int]]()
    for index, cell in enumerate(cells):
        for part in cell.replace("\\_", NO_VALUE).split("|") if cell not in (NO_VALUE, "") else ():
            match = _VALUE.fullmatch(part)
            type_name, group = (match[1], match[2]) if match else (part, None)
            spans.setdefault((type_name, group or f"word {index}"), []).append(index)
    tags = [OUTSIDE] * len(cells)
    overlapping = 0
    for (type_name, _), words in sorted(spans.items(), key=lambda item: (-len(item[1]), item[1])):
        if any(tags[word] != OUTSIDE for word in words):
            overlapping += 1
            continue
        for index, word in enumerate(words):
            tags[word] = f"{'I' if index else 'B'}-{type_name}"
    return tags, overlapping


def write_webanno_cells(
    spans: Sequence[tuple[str, int, int]], words: int, next_number: int
) -> tuple[list[str], int]:
    """Return the cells of a sentence for its spans, and the next free number of a multi-word span.

    ``next_number`` is the number of its first multi-word span.
    """
    cells = [NO_VALUE] * words
    for type_name, start, stop in spans:
        is_long = stop - start > 1
        suffix = f"[{next_number}]" if is_long else ""
        next_number += is_long
        cells[start:stop] = [f"{type_name}{suffix}"] * (stop - start)
    return cells, next_number
