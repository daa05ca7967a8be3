"""Texts in lines, whose labels are the lines of another file or whose file has one label, as JSON lines."""

import json
from collections.abc import Iterator
from dataclasses import replace

from isogloss.data.files import File

LABEL = "{label}"
"""Stands for a label in the paths of files that have one label each."""

COLUMNS = {"text": "text", "label": "label", "id": "id"}
"""The columns of the rows."""


def join_labels(texts: File, labels: File) -> File:
    """Return two parallel files as rows; reading raises DataError where one is longer."""

    def read() -> Iterator[str]:
        counts = [sum(1 for _ in file.lines()) for file in (texts, labels)]
        if counts[0] != counts[1]:  # Which line is missing is unknown: all later pairs might be wrong.
            short, long = (texts, labels) if counts[0] < counts[1] else (labels, texts)
            expected = f"as many lines as {long.name} has ({max(counts):,})"
            raise short.broken(min(counts), "the last line", expected, "Restore the lines that are missing")
        for (number, text), (_, label) in zip(texts.lines(), labels.lines(), strict=True):
            yield _write_row(str(number - 1), text, label)

    return File(
        name=texts.name, read=read, fingerprint=lambda: f"{texts.fingerprint()}-{labels.fingerprint()}"
    )


def add_label(texts: File, label: str) -> File:
    """Return a file whose texts have one label as rows; their ids contain the label."""

    def read() -> Iterator[str]:
        for number, text in texts.lines():
            yield _write_row(f"{label}-{number - 1}", text, label)

    return replace(texts, read=read)


def _write_row(name: str, text: str, label: str) -> str:
    return json.dumps({"id": name, "text": text, "label": label}, ensure_ascii=False) + "\n"
