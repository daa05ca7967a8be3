"""Formats of files that models predict: read entry by entry, and written with the answers.

An entry is the smallest unit of a file that is written as a whole: a line, a sentence of CoNLL-U. Empty lines
and comments are entries without an example, so that the output is parallel to the input.

Tables of texts, or of pairs, have a header: a row keeps its characters and gets a column of labels.
"""

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from isogloss.core.errors import ConfigError, DataError, check_named
from isogloss.core.registry import Registry
from isogloss.data.column_names import FIRST, SECOND, TEXT_NAMES
from isogloss.data.examples import Example, LabelledText, SentencePair
from isogloss.data.files import File, short, some
from isogloss.data.formats.tables import LONGEST_CELL
from isogloss.tasks.batch import EncodedRow, Scores
from isogloss.tasks.task import Answer, Task

INSPECTED = 50
"""Lines of a file that are inspected to detect its format: comments may come first."""

PLAIN_TEXT = "lines"
"""The format of plain text, which any file might be."""

ENDINGS: Mapping[str, tuple[str, ...]] = {
    ".conllu": ("conllu",),
    ".txt": ("lines", "tsv"),
    ".tsv": ("tsv",),
    ".csv": ("csv",),
    ".jsonl": ("jsonl",),
}
"""Formats by the end of a file's name, besides ``INPUT_FORMATS``. The first that the task reads is used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    """A unit of a file: its unchanged lines, and the example in it."""

    lines: tuple[str, ...]

    example: Example | None = None
    """None for a unit without an example."""

    body: Mapping[str, object] | None = None
    """Keys of its JSON object in addition to the answer. None if JSON lines do not contain it."""

    original: Mapping[str, object] | None = None
    """The object that its line is in JSON, if it is one."""

    translation: Example | None = None
    """The example's translation, for a model that mixes the two, if any."""

    separator: str = "\t"
    """Separator of a line and the labels that are added to it."""

    names: tuple[str, ...] = ()
    """In the header of a table, the names of columns that may be added."""


SHOWN_SCORES = 3
"""Probabilities of a prediction that are printed."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """The predicted answer for an example, and its probabilities if requested."""

    answer: Answer
    scores: Any = None

    def __repr__(self) -> str:
        """Return the answer and the most probable labels."""
        scores = self.scores
        if not isinstance(scores, Mapping) or len(scores) <= SHOWN_SCORES:
            return f"Prediction({self.answer!r:.200})" if scores is None else _short_prediction(self)
        names = sorted(scores, key=scores.__getitem__, reverse=True)[:SHOWN_SCORES]
        text = ", ".join(f"{name!r:.40}: {scores[name]:.4f}" for name in names)
        return f"Prediction({self.answer!r:.80}, scores={{{text}, … {len(scores)} labels}})"


def _short_prediction(prediction: "Prediction") -> str:
    return f"Prediction({prediction.answer!r:.80}, scores={prediction.scores!r:.180})"


Answered = tuple[FileEntry, Prediction | None]

Probabilities = Callable[
    [Task, Sequence[Example], Sequence[EncodedRow], Sequence[Scores], Sequence[Answer]], Sequence[object]
]
"""From a task, examples, their rows, the raw scores of each row, and the answers."""


def softmax(scores: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Return the probabilities of classes [… class] from raw scores."""
    exact = scores.astype(np.float64)
    powers = np.exp(exact - exact.max(axis=-1, keepdims=True))
    probabilities: npt.NDArray[np.float64] = powers / powers.sum(axis=-1, keepdims=True)
    return probabilities


def sigmoid(scores: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Return the probability of each label from raw scores."""
    probabilities: npt.NDArray[np.float64] = np.exp(-np.logaddexp(0, -scores.astype(np.float64)))
    return probabilities


@dataclass(frozen=True, kw_only=True)
class InputFormat:
    """A file format: how it is recognised, read and written."""

    name: str

    matches: Callable[[str], bool]
    """Whether the first line that is neither empty nor a comment is of this format."""

    read: Callable[..., Iterator[FileEntry]]
    """Reads a file of a language with an option. Raises DataError with file and line."""

    write: Callable[[Iterable[Answered]], Iterator[str]] | None = None
    """Yields lines without line ends. None: JSON lines."""

    matches_lines: Callable[[Sequence[str]], bool] | None = None
    """Whether the first lines of a file that looks like plain text are of this format. None: never."""

    matches_first: Callable[[Sequence[str]], bool] | None = None
    """Whether the first lines of a file are of this format whatever its name says. None: never."""

    option: Literal["", "column", "text"] = ""
    """The option that selects columns, by number for words, by name for texts."""

    has_ids: bool = False
    """Whether examples have ids, which identify their translations. If not, their order does."""

    holds: str = ""
    """The units in it, for a format that is read by each form with these units (``InputForm.holds``)."""

    suffixes: tuple[str, ...] = ()
    """Ends of the names of its files, for a format that a feature or a package adds."""


@dataclass(frozen=True, kw_only=True)
class InputForm:
    """A form of inputs, shared by tasks: words, pairs of texts, questions."""

    formats: tuple[InputFormat, ...]
    """Own formats. The first that matches is taken, else the last."""

    sample: object
    """The smallest input."""

    example: Callable[[object, str, str], Example]
    """From a Python value (an example loses its labels), the name of the example, and its language."""

    from_json: Callable[[Mapping[str, object], str, str], Example]
    """From a JSON object, the name of the example (file and line), and its language."""

    to_json: Callable[[Example | None, Prediction | None], dict[str, object]]
    """From an example and its answer to a JSON object."""

    answered: Callable[[Any, Answer], Example] | None
    """Returns an example with the answer as its labels. None if examples have no labels."""

    auto_class: str
    """Class of transformers that loads encoder and head. Empty if there is none."""

    hub_tag: str = ""
    """Task of such a model on the Hugging Face hub. Empty without ``auto_class``."""

    pipeline: str = ""
    """Pipeline of transformers with the same predictions. Empty if there is none."""

    probabilities: Probabilities | None = None
    """Probabilities of answers: softmax of the raw outputs. None without probabilities."""

    holds: tuple[str, ...] = ()
    """Units of the formats of features and packages that are read, too."""

    read_gold: Callable[[Any, Any], Example] | None = None
    """From an example and its gold answer to the labelled example. None: its tags, or its label."""

    def json_lines(self, entries: Iterable[Answered]) -> Iterator[str]:
        """Yield a JSON object for each example."""
        for entry, prediction in entries:
            if entry.body is not None:
                yield _as_json(entry, {**entry.body, **self.to_json(entry.example, prediction)})


def _as_json(entry: FileEntry, body: Mapping[str, object]) -> str:
    """Return the object as JSON. If its keys stay the same, new keys are added at the end of its line."""
    original = entry.original
    new_values = {key: value for key, value in body.items() if original is None or original.get(key) != value}
    if original is None or new_values.keys() & original.keys():
        return json.dumps(body, ensure_ascii=False)
    more = json.dumps(new_values, ensure_ascii=False)[1:-1]
    return f"{entry.lines[0].rstrip()[:-1]}{', ' if more else ''}{more}}}"


INPUT_FORMATS: Registry[InputFormat] = Registry(
    {}, "input_formats", "isogloss.using.formats:InputFormat", features="input-formats"
)
"""Formats that features and packages add. The suffix of a package's format is its name."""


def list_formats(kind: InputForm, name: str = "") -> tuple[InputFormat, ...]:
    """Return the formats of a form of inputs.

    Those of features come first, then the package's format with this name, then the form's own.
    """
    names = [*INPUT_FORMATS.places, *([name] if name in INPUT_FORMATS else [])]
    added_formats = [INPUT_FORMATS[added_name] for added_name in dict.fromkeys(names)]
    own_names = {format_.name for format_ in kind.formats}
    fitting = [
        format_ for format_ in added_formats if format_.holds in kind.holds and format_.name not in own_names
    ]
    return (*fitting, *kind.formats)


def _list_names_by_ending(file: File) -> tuple[str, ...]:
    """Return the names of the formats that the end of a file's name shows."""
    names = [
        name
        for name in sorted(INPUT_FORMATS)
        for suffix in (INPUT_FORMATS[name].suffixes if name in INPUT_FORMATS.places else (f".{name}",))
        if file.plain_name.endswith(suffix)
    ]
    return next((names_ for end, names_ in ENDINGS.items() if file.plain_name.endswith(end)), tuple(names))


def format_of(file: File, kind: InputForm, task: str, name: str = "") -> tuple[InputFormat, File]:
    """Return the format of a file, as requested, by its name or by its first line, and the file to read.

    ConfigError if the task has no such format.
    """
    ending = _list_names_by_ending(file)
    added_name = name or next(iter(ending), "")
    formats = {format_.name: format_ for format_ in list_formats(kind, added_name)}
    kind = replace(kind, formats=tuple(formats.values()))
    if name:
        check_named("--format", f"format of task {task}", formats, name)
        return formats[name], file
    content_format, file = _find_by_first_lines(file, kind)
    if content_format is not None:
        return content_format, file
    if not ending:
        return _unless_lines_match(*_find_by_first_line(file, kind), kind)
    for candidate in ending:
        if candidate in formats:
            return _unless_lines_match(formats[candidate], file, kind)
    raise ConfigError(
        f"{file.name}: by its name this file is {ending[0]}, which task {task} does not read. "
        f"Give another file, or say its format: --format {'|'.join(formats)}."
    )


def _find_by_first_lines(file: File, kind: InputForm) -> tuple[InputFormat | None, File]:
    """Return the format that only the first lines show, if any, and the file to read."""
    if not any(format_.matches_first for format_ in kind.formats):
        return None, file
    lines = iter(file.read())
    first_lines = list(islice(lines, 1))
    stripped_lines = [line.rstrip("\r\n") for line in first_lines]
    matching = (
        format_
        for format_ in kind.formats
        if format_.matches_first is not None and format_.matches_first(stripped_lines)
    )
    return next(matching, None), replace(file, read=lambda: chain(first_lines, lines))


def _unless_lines_match(choice: InputFormat, file: File, kind: InputForm) -> tuple[InputFormat, File]:
    """Return the format that the first lines match, if the file would be read as plain text otherwise."""
    if choice.name != PLAIN_TEXT:
        return choice, file
    lines = iter(file.read())
    first_lines = list(islice(lines, INSPECTED))
    stripped_lines = [line.rstrip("\r\n") for line in first_lines]
    matching = (
        format_
        for format_ in kind.formats
        if format_.matches_lines is not None and format_.matches_lines(stripped_lines)
    )
    return next(matching, choice), replace(file, read=lambda: chain(first_lines, lines))


def keys_missing(body: Mapping[str, object], expected: str) -> DataError:
    """Return the error for an object that lacks keys."""
    keys = short(f"the keys {', '.join(body) or 'none'}")
    return DataError(f"{keys}; expected {expected}. Correct the line.")


def is_object(line: str) -> bool:
    """Return whether a line looks like a JSON object."""
    return line.startswith("{") and line.rstrip().endswith("}")


def format_probabilities(probabilities: Sequence[float]) -> list[str]:
    """Return probabilities as text with four decimals."""
    return [f"{probability:.4f}" for probability in probabilities]


def _find_by_first_line(file: File, kind: InputForm) -> tuple[InputFormat, File]:
    lines, read_lines, first_line = iter(file.read()), list[str](), ""
    for line in lines:
        read_lines.append(line)
        first_line = "" if line.startswith("#") else line.strip("\r\n")
        if first_line.strip() or len(read_lines) == INSPECTED:
            break
    fitting = (format_ for format_ in kind.formats if first_line and format_.matches(first_line))
    return next(fitting, kind.formats[-1]), replace(file, read=lambda: chain(read_lines, lines))


TEXT_COLUMNS = (TEXT_NAMES,)
PAIR_COLUMNS = (("first", *FIRST), ("second", *SECOND))
"""Usual names of the columns of texts, in any case. The first in the header is used."""

ADDED = (("label", "predicted"), ("scores", "predicted_scores"))
"""Names of the added columns. The first that is not in the header is used."""


class _WordColumns(NamedTuple):
    separator: str
    width: int
    columns: Sequence[int]
    """Indices of the columns of texts."""
    names: tuple[str, ...] = ()
    """Names of the columns to add. None without a header."""


def read_table(
    file: File, _: str, text: str = "", *, pairs: bool = False, has_quotes: bool = False
) -> Iterator[FileEntry]:
    """Read one or two texts per row, from the columns ``text`` (names or numbers) or those with usual names.

    With ``has_quotes``, cells are as in CSV. Others are separated by tabs, and pairs may have no header and
    are the first two columns.
    """
    lines = iter(file.read())
    first_line = next(lines, "")
    separator = "\t"
    if has_quotes:
        separator = ";" if first_line.count(";") > first_line.count(",") else ","
    columns: Sequence[Sequence[str]] = PAIR_COLUMNS if pairs else TEXT_COLUMNS
    if text:
        columns = [[name.strip().casefold()] for name in (text.split(",") if pairs else [text])]
    if pairs and len(columns) != len(PAIR_COLUMNS):
        raise ConfigError(f"--text {text!r}: expected the names of two columns, as in first,second.")
    table: _WordColumns | None = None
    for line_number, line, cells in _records(
        file, chain([first_line] if first_line else [], lines), separator
    ):
        if not line.strip():
            yield FileEntry(lines=(line,), body={"line": line_number})
        elif table is None:
            table = _table(file, line_number, cells, separator, columns)
            names = table.names
            yield (
                FileEntry(lines=(line,), names=names, separator=separator)
                if names
                else _row(file, line_number, line, cells, table)
            )
        else:
            yield _row(file, line_number, line, cells, table)


def _records(file: File, lines: Iterable[str], separator: str) -> Iterator[tuple[int, str, list[str]]]:
    """Yield number, characters (but for the last line feed) and cells of each record."""
    record, line_number = list[str](), 1
    csv.field_size_limit(LONGEST_CELL)
    record_lines = (record.append(line) or line for line in lines)  # type: ignore[func-returns-value]
    quoting: Literal[0, 3] = csv.QUOTE_NONE if separator == "\t" else csv.QUOTE_MINIMAL
    reader = csv.reader(record_lines, delimiter=separator, quoting=quoting, strict=True)
    try:
        for cells in reader:
            yield line_number, "".join(record).removesuffix("\n"), cells
            record.clear()
            line_number = reader.line_num + 1
    except csv.Error as error:
        raise file.broken(line_number, str(error), "cells as CSV writes them") from error


def _table(
    file: File, line_number: int, cells: Sequence[str], separator: str, columns: Sequence[Sequence[str]]
) -> _WordColumns:
    if all(line_number.isdecimal() and int(line_number) < len(cells) for line_number, *_ in columns):
        return _WordColumns(separator, len(cells), [int(line_number) for line_number, *_ in columns])
    header = [cell.strip().casefold() for cell in cells]
    names = [next((name for name in usual if name in header), "") for usual in columns]
    if columns is PAIR_COLUMNS and separator == "\t" and not all(names):
        return _WordColumns(separator, max(len(cells), 2), (0, 1))
    if not all(names):
        lacking = " or ".join(columns[names.index("")][:2])
        expected = f"the texts' column; the header has {some(cells)}"
        advice = "Say which: --text COLUMN (of pairs with a comma; numbers from 0 without a header)"
        raise file.broken(line_number, f"a header without {lacking}", expected, advice)
    new_columns = tuple(next((name for name in pair if name not in header), "") for pair in ADDED)
    if not all(new_columns):
        raise file.broken(
            line_number, "the columns label and predicted", "one of them to be free", "Rename one"
        )
    return _WordColumns(separator, len(cells), [header.index(name) for name in names], new_columns)


def _row(file: File, line_number: int, line: str, cells: Sequence[str], table: _WordColumns) -> FileEntry:
    texts = [cells[column] for column in table.columns if column < len(cells)]
    is_whole, is_blank = len(cells) == table.width, not all(text.strip() for text in texts)
    if not is_whole or (is_blank and len(texts) > 1):
        expected = "two texts" if is_whole else f"{table.width} columns as in the first row"
        if (table.width, table.separator) == (2, "\t"):
            expected = "two texts with one tab between them"
        text = f"{'a blank text in ' if is_whole else ''}{line[:60]!r}"
        raise file.broken(line_number, text, expected, "Take the row out" if is_whole else "Correct the line")
    entry = FileEntry(lines=(line,), body={"line": line_number}, separator=table.separator)
    if len(texts) > 1:
        return replace(
            entry, example=SentencePair(id=str(line_number), first=texts[0], second=texts[1], label="")
        )
    return (
        entry
        if is_blank
        else replace(entry, example=LabelledText(id=str(line_number), text=texts[0], label=""))
    )


def write_table(entries: Iterable[Answered]) -> Iterator[str]:
    """Yield the rows with their labels, below the names of the new columns.

    Rows without a text have empty cells.
    """
    pending_entries = list[FileEntry]()
    width = 0  # The number of new columns is known at the first prediction.
    for entry, prediction in entries:
        cells = answer_cells(prediction)
        if cells and not width:
            width = len(cells)
            yield from (_with_cells(row, width) for row in pending_entries)
        if width:
            yield _with_cells(entry, width, cells)
        else:
            pending_entries.append(entry)
    if not width:
        yield from (_with_cells(row, 1) for row in pending_entries)


def _with_cells(entry: FileEntry, width: int, cells: Sequence[str] = ()) -> str:
    (line,) = entry.lines
    if not line.strip():
        return line
    cells = cells or entry.names[:width] or [""] * width
    if entry.separator != "\t":
        special_characters = (entry.separator, '"', "\n")
        cells = [
            f'"{cell.replace(chr(34), chr(34) * 2)}"'
            if any(mark in cell for mark in special_characters)
            else cell
            for cell in cells
        ]
    body = line.removesuffix("\r")
    return entry.separator.join([body, *cells]) + line[len(body) :]


def answer_cells(prediction: Prediction | None) -> list[str]:
    """Return the label, several with commas between, and the probabilities of all, if any."""
    if prediction is None:
        return []
    answer = prediction.answer
    label = ",".join(answer) if isinstance(answer, tuple) else str(answer)
    if prediction.scores is None:
        return [label]
    return [label, " ".join(f"{name}={score:.4f}" for name, score in prediction.scores.items())]
