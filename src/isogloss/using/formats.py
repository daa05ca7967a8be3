"""What a model is used on and how its answers are written: files of several formats, read entry by entry.

An entry is the smallest part of a file that is written as a whole: a line, a sentence of CoNLL-U. What is
no example (an empty line, a comment) is an entry too, so that what comes out stands beside what came in.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from torch import Tensor

from isogloss.core.errors import ConfigError, DataError, unknown_name
from isogloss.data.examples import Example
from isogloss.data.files import File, short
from isogloss.tasks import Task
from isogloss.tasks.batch import EncodedRow

LOOKED_AT = 50
"""Lines of a file that are looked at to find out its format: comments may come first."""

ENDINGS: Mapping[str, tuple[str, ...]] = {
    ".conllu": ("conllu",),
    ".txt": ("lines", "tsv"),
    ".tsv": ("tsv",),
    ".json": ("squad",),
    ".jsonl": ("jsonl",),
}
"""Formats by the end of a file's name; the first that the task has counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A part of a file: its lines as they stood, and the example in it."""

    lines: tuple[str, ...]

    example: Example | None = None
    """None where there is nothing to predict."""

    about: Mapping[str, Any] | None = None
    """What JSON lines say of it beside the answer; None where they pass it over."""

    translation: Example | None = None
    """The example's translation, for a model that mixes the two; None where there is none."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a model says of an example, and how sure it is where that was asked for."""

    answer: Any
    scores: Any = None


Answered = tuple[Entry, Prediction | None]

Probabilities = Callable[
    [Task, Sequence[Any], Sequence[EncodedRow], Sequence[Tensor], Sequence[Any]], list[Any]
]
"""From a task, examples, their rows, the raw scores of each row, and the answers."""


@dataclass(frozen=True, kw_only=True)
class Format:
    """A file format: how it is known, read and written."""

    name: str

    looks_so: Callable[[str], bool]
    """Tell by the first line that is neither empty nor a comment."""

    read: Callable[[File, str], Iterator[Entry]]
    """From a file and the language it is in; DataError with file and line."""

    write: Callable[[Iterable[Answered]], Iterator[str]] | None = None
    """Give lines without line ends; None: JSON lines."""

    has_ids: bool = False
    """Whether examples have ids of their own, by which translations are known; else by their order."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """What the inputs of some tasks have in common: words, pairs of texts, questions."""

    formats: tuple[Format, ...]
    """The first that fits is taken, else the last."""

    example: Callable[[Any, str, str], Example]
    """From a Python value, its name in messages, and its language."""

    from_json: Callable[[Mapping[str, Any], str, str], Example]
    """From a JSON object, its name in messages (file and line), and its language."""

    to_json: Callable[[Example | None, Prediction | None], dict[str, Any]]
    """What JSON says of an example and its answer."""

    answered: Callable[[Example, Any], Example] | None
    """Give an example the answer in the place of its labels; None where examples have no such place."""

    auto_class: str
    """Class of transformers that loads encoder and head; empty where there is none."""

    pipeline: str = ""
    """Pipeline of transformers that predicts the same; empty where there is none."""

    probabilities: Probabilities | None = None
    """How sure a model is of its answers: softmax of its raw outputs; None where an answer has none."""

    def json_lines(self, entries: Iterable[Answered]) -> Iterator[str]:
        """Give a JSON object for each example."""
        for entry, prediction in entries:
            if entry.about is not None:
                body = {**entry.about, **self.to_json(entry.example, prediction)}
                yield json.dumps(body, ensure_ascii=False)


def format_of(file: File, kind: Kind, task: str, wanted: str = "") -> tuple[Format, File]:
    """Return the format of a file, by what is wanted, its name or its first line, and the file to read.

    ConfigError when the task has no such format.
    """
    formats = {one.name: one for one in kind.formats}
    if wanted:
        if wanted not in formats:
            raise unknown_name("--format", f"format of task {task}", wanted, formats)
        return formats[wanted], file
    ending = next((names for end, names in ENDINGS.items() if file.plain_name.endswith(end)), ())
    if not ending:
        return _by_first_line(file, kind)
    for name in ending:
        if name in formats:
            return formats[name], file
    raise ConfigError(
        f"{file.name}: by its name this file is {ending[0]}, which task {task} does not read. "
        f"Give another file, or say its format: --format {'|'.join(formats)}."
    )


def numbered_objects(file: File) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Give number, line and object of each JSON line, empty ones left out; DataError at any other line."""
    for number, line in file.lines():
        if not line.strip():
            continue
        try:
            body = json.loads(line)
            json.dumps(body, ensure_ascii=False).encode()
        except (ValueError, RecursionError) as error:
            raise file.broken(number, f"no JSON ({error})", "a JSON object") from error
        if not isinstance(body, dict):
            raise file.broken(number, f"{line[:60]!r}", "a JSON object")
        yield number, line, body


def keys_missing(body: Mapping[str, Any], where: str, expected: str) -> DataError:
    """Build the error for an object without the keys a task needs; ``where`` is file and line."""
    found = short(f"the keys {', '.join(body) or 'none'}")
    return DataError(f"{where}: {found}; expected {expected}. Correct the line.")


def is_object(line: str) -> bool:
    """Tell whether a line may be a whole JSON object."""
    return line.startswith("{") and line.rstrip().endswith("}")


def shown(probabilities: Sequence[float]) -> list[str]:
    """Write probabilities for people."""
    return [f"{one:.4f}" for one in probabilities]


def _by_first_line(file: File, kind: Kind) -> tuple[Format, File]:
    lines, seen, first = iter(file.read()), list[str](), ""
    for line in lines:
        seen.append(line)
        first = "" if line.startswith("#") else line.strip("\r\n")
        if first.strip() or len(seen) == LOOKED_AT:
            break
    fitting = (one for one in kind.formats if first and one.looks_so(first))
    return next(fitting, kind.formats[-1]), replace(file, read=lambda: chain(seen, lines))
