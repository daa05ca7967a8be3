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
    show = _emit if as_json else _print
    with _opened(file) as stream:
        numbered = enumerate(_text_lines(stream, str(file)), start=1)
        while together := list(islice(numbered, LINES_TOGETHER)):
            full = [_parts(line, f"{file}:{number}", loaded.pairs) for number, line in together]
            predicted = iter(loaded.predict([parts for parts in full if parts]))
            for (number, line), parts in zip(together, full, strict=True):
                show(number, line, parts, next(predicted) if parts else None, loaded.pairs)


def _print(_number: int, line: str, parts: list[str], answer: Any, pairs: bool) -> None:
    print(f"{line}\t{answer if pairs else ' '.join(answer)}" if parts else line, flush=True)


def _emit(number: int, _line: str, parts: list[str], answer: Any, pairs: bool) -> None:
    labels = {"texts": parts, "label": answer} if pairs else {"words": parts, "labels": list(answer or ())}
    Display(as_json=True).emit({"line": number, **labels})


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
