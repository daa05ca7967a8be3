"""Mined bitext, WikiMatrix's form: on each line a margin score, a sentence and its translation; no header.

``WikiMatrix.en-es.tsv.gz`` (Schwenk et al. 2019) has the languages in its name; CCMatrix is built alike. The
margin compares a pair's similarity with that of each side's other neighbours: the higher, the likelier the
two are translations. Pairs below a threshold are left out.
"""

from collections.abc import Iterator
from math import isfinite

from isogloss.core.errors import DataError
from isogloss.data.examples import Translation
from isogloss.data.files import File, Folder

LEAST_MARGIN = 1.04
"""Schwenk et al. (2019), Sec. 4.3: a good choice for most pairs of languages."""


def find_mined(folder: Folder, stem: str, first: str, second: str) -> list[File]:
    """Find the tables of mined text whose names say the languages in this order."""
    return [file for file in folder.find([f"{stem}.{first}-{second}.tsv"]) if is_mined(file)]


def is_mined(file: File) -> bool:
    """Tell whether a table begins with a score instead of a header."""
    cells = next((line for _, line in file.lines()), "").split("\t")
    return len(cells) == 3 and _margin(cells[0]) is not None


def read_mined(file: File, *, least: float) -> Iterator[Translation]:
    """Read the pairs with at least this margin; ids are line numbers."""
    best, found = float("-inf"), False
    for number, line in file.lines():
        cells = line.split("\t")
        margin = _margin(cells[0])
        if len(cells) != 3 or margin is None or not (cells[1].strip() and cells[2].strip()):
            raise file.broken(number, f"{line[:80]!r}", "a margin score, a text and its translation")
        best = max(best, margin)
        if margin >= least:
            found = True
            yield Translation(id=str(number), first=cells[1], second=cells[2])
    if not found and best > float("-inf"):
        raise DataError(
            f"{file.name}: no pair has a margin of {least:g} or more; the highest is {best:g}. "
            f"Lower the corpus's margin, or fetch the file again."
        )


def _margin(text: str) -> float | None:
    try:
        margin = float(text)
    except ValueError:
        return None
    return margin if isfinite(margin) else None
