"""Predicting the lines of a file or of standard input, as they come and a few at a time."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from isogloss.cli.display import Display
from isogloss.core.errors import DataError

LINES_TOGETHER = 256
"""Lines read, predicted and printed together: enough for full batches, few enough for any memory."""


def predict_lines(model: Path, file: Path, *, as_json: bool) -> None:
    """Print each line with what the model predicts for it; a line without words is printed as it is."""
    from isogloss.api import load_model

    loaded = load_model(model)
    display = Display(as_json=as_json)
    with _opened(file) as stream:
        numbered = enumerate(_text_lines(stream, str(file)), start=1)
        while together := list(islice(numbered, LINES_TOGETHER)):
            full = [(number, _parts(line, f"{file}:{number}", loaded.pairs)) for number, line in together]
            predicted = iter(loaded.predict([parts for _, parts in full if parts]))
            for (number, line), (_, parts) in zip(together, full, strict=True):
                answer = next(predicted) if parts else None
                _print(display, number, line, parts, answer)


def _print(display: Display, number: int, line: str, parts: list[str], answer: Any) -> None:
    if display.as_json:
        label = {"label": answer} if isinstance(answer, str) else {"labels": list(answer or ())}
        display.emit({"line": number, "words" if "labels" in label else "texts": parts, **label})
    elif not parts:
        print(line)
    else:
        print(f"{line}\t{answer if isinstance(answer, str) else ' '.join(answer)}")


def _parts(line: str, where: str, pairs: bool) -> list[str]:
    """Return the words of a sentence or the two texts of a pair; nothing for a line that is empty."""
    if not pairs or not line.strip():
        return line.split()
    parts = line.split("\t")
    if len(parts) != 2 or not all(part.strip() for part in parts):
        raise DataError(
            f"{where}: expected two texts with one tab between them, found {line[:60]!r}. Correct the line."
        )
    return parts


def _opened(file: Path) -> AbstractContextManager[TextIO]:
    if str(file) == "-":
        return nullcontext(sys.stdin)
    if not file.is_file():
        raise DataError(f"{file}: there is no such file. Give a text file, one sentence a line, or -.")
    return file.open(encoding="utf-8")


def _text_lines(stream: Iterable[str], name: str) -> Iterator[str]:
    try:
        for line in stream:
            yield line.rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise DataError(f"{name}: this is no text in UTF-8 ({error.reason}). Save it as UTF-8.") from error
