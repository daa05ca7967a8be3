"""Tagged text as the Brown corpus has it: a sentence a line, a tag after each word, as in dog/NOUN."""

from collections.abc import Iterable, Iterator

from isogloss.plugins import (
    Cells,
    DataError,
    ExampleColumns,
    File,
    FileEntry,
    Format,
    InputFormat,
    Prediction,
    TaggedSentence,
)

MARK = "/"


def read_rows(file: File, table: ExampleColumns) -> Iterator[Cells | DataError]:
    """Yield words and labels of each line that has words, or the error of a word without a tag."""
    del table
    for line_number, line in file.lines():
        cells = [cell.rpartition(MARK) for cell in line.split()]
        if not cells:
            continue
        if all(word and tag for word, _, tag in cells):
            columns = {"words": [word for word, *_ in cells], "labels": [tag for *_, tag in cells]}
            yield Cells(line_number, columns)
        else:
            yield file.broken(line_number, f"{line[:60]!r}", f"words with tags, as in dog{MARK}NOUN")


def read_sentences(file: File, language: str) -> Iterator[FileEntry]:
    """Yield the sentence of each line, without tags."""
    del language
    for line_number, line in file.lines():
        words = tuple(line.split())
        sentence = TaggedSentence(id=str(line_number), words=words, tags=()) if words else None
        yield FileEntry(lines=(line,), example=sentence, body={"line": line_number})


def write_tags(entries: Iterable[tuple[FileEntry, Prediction | None]]) -> Iterator[str]:
    """Yield each line with the predicted tags of its words."""
    for entry, prediction in entries:
        words = entry.lines[0].split()
        tags = prediction.answer if prediction else [""] * len(words)
        yield " ".join(f"{word}{MARK}{tag}" for word, tag in zip(words, tags, strict=True))


SLASHED = Format(columns={"tagging": {"words": "words", "labels": "labels"}}, read_rows=read_rows)
"""Files with labels, for a corpus with format = "slashed"."""

SLASHED_INPUT = InputFormat(
    name="slashed", matches=str.isspace, read=read_sentences, write=write_tags, holds="words"
)
"""Files without labels, for isogloss predict. They are recognised by .slashed, not by their first line."""
