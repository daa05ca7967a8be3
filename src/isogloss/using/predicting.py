"""Predicting for a file: read, predicted and written a few entries at a time, so memory stays what it is."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from isogloss.core.languages import check_language
from isogloss.core.progress import Progress, Tell, silent
from isogloss.data.files import File
from isogloss.using.certainty import certainty_of
from isogloss.using.formats import Answered, Entry, format_of
from isogloss.using.model import Model, in_groups

LARGEST = 1_000_000
"""Once entries have this many characters together, no further one is read before they are predicted."""


@dataclass(frozen=True, kw_only=True)
class How:
    """How a file is read and its answers are written."""

    format: str = ""
    """One of the task's formats; empty: by the file's name or first line."""

    language: str = ""
    """Language of the file; empty where it does not matter (it does where a model has language modules or
    maps)."""

    scores: bool = False
    """With probabilities."""

    as_json: bool = False
    """As JSON lines, whatever the format."""


def predict_file(model: Model, file: File, how: How, *, tell: Tell = silent, lines: int = 0) -> Iterator[str]:
    """Give the lines to write, without line ends, as the file is read.

    ``lines`` is how many lines the file has, where progress is to be told. DataError with file and line at
    a broken line; ConfigError, before anything is read, at what the task cannot do.
    """
    if how.language:
        check_language(how.language, "--language")
    model.check_languages((how.language,))
    if how.scores:
        certainty_of(model.task.name)
    chosen, file = format_of(file, model.kind, model.task.name, how.format)
    counted = _counting(file, lines, tell) if lines else file
    entries = chosen.read(counted, how.language)
    if how.language:
        entries = (_with_language(entry, how.language) for entry in entries)
    write = model.kind.json_lines if how.as_json else chosen.write or model.kind.json_lines
    return write(answered(model, entries, language=how.language, scores=how.scores))


def answered(
    model: Model, entries: Iterable[Entry], *, language: str = "", scores: bool = False
) -> Iterator[Answered]:
    """Give each entry with what the model says of the example in it."""
    for together in in_groups(entries, size=_characters, largest=LARGEST):
        examples = [entry.example for entry in together if entry.example is not None]
        predictions = iter(model.predictions(examples, language=language, scores=scores))
        for entry in together:
            yield entry, None if entry.example is None else next(predictions)


def _characters(entry: Entry) -> int:
    return sum(map(len, entry.lines))


def _with_language(entry: Entry, language: str) -> Entry:
    return entry if entry.about is None else replace(entry, about={**entry.about, "language": language})


def _counting(file: File, total: int, tell: Tell) -> File:
    """Tell how many lines of a file were read."""

    def read() -> Iterator[str]:
        for done, line in enumerate(file.read(), start=1):
            yield line
            if done % 100 == 0 or done == total:
                tell(Progress("predicting", done, total, "lines"))

    return replace(file, read=read)
