"""Texts in lines, with labels in a parallel file or one label per file, as JSON lines."""

import json
from collections.abc import Iterator
from dataclasses import replace

from isogloss.data.files import File

LABEL = "{label}"
"""Placeholder for a label in the paths of files that have one label each."""

COLUMNS = {"text": "text", "label": "label", "id": "id"}
"""Columns of the rows."""


def join_labels(texts: File, labels: File) -> File:
    """Return a file of texts and a parallel file of labels as rows.

    Reading raises DataError if the files have different numbers of lines.
    """

    def read() -> Iterator[str]:
        counts = [sum(1 for _ in file.lines()) for file in (texts, labels)]
        if counts[0] != counts[1]:  # The missing line is unknown, so all later pairs might be wrong.
            shorter, longer = (texts, labels) if counts[0] < counts[1] else (labels, texts)
            expectation = f"as many lines as {longer.name} has ({max(counts):,})"
            raise shorter.broken(min(counts), "the last line", expectation, "Restore the missing lines")
        for (line_number, text), (_, label) in zip(texts.lines(), labels.lines(), strict=True):
            yield _write_row(str(line_number - 1), text, label)

    return File(
        name=texts.name, read=read, fingerprint=lambda: f"{texts.fingerprint()}-{labels.fingerprint()}"
    )


def add_label(texts: File, label: str) -> File:
    """Return a file of texts with one label as rows.

    Their ids contain the label.
    """

    def read() -> Iterator[str]:
        for line_number, text in texts.lines():
            yield _write_row(f"{label}-{line_number - 1}", text, label)

    return replace(texts, read=read)


def _write_row(name: str, text: str, label: str) -> str:
    return json.dumps({"id": name, "text": text, "label": label}, ensure_ascii=False) + "\n"
