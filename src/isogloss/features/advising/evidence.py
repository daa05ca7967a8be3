"""Gains of options in target languages, measured in earlier studies, and their costs.

The shipped file, ``gains.csv``, is written by ``docs/results/advice/table.py``. Files of users have the same
columns.
"""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from isogloss.core.errors import DataError
from isogloss.core.languages import canonical_language
from isogloss.data.files import File, disk_file
from isogloss.data.formats.tables import read_csv

SHIPPED = Path(__file__).with_name("gains.csv")


class Gain(NamedTuple):
    """Points by which an option improves on the source-only model in one language: a mean over seeds."""

    task: str
    encoder: str
    option: str
    language: str
    gain: float
    """Points (of 100)."""
    seeds: int
    labels: int
    """Labelled examples of the target that the option needs."""
    hours: float
    """Computing hours on one processor core, including the source-only model."""
    needs: str = ""
    """What the option needs in addition, in a few words."""


NUMBERS = {"gain": "a number", "seeds": "a whole number", "labels": "a whole number", "hours": "0 or more"}
"""Columns that hold numbers, and what is expected there."""

MOST_DIGITS = 9
"""Digits of a number of seeds or labels."""

REQUIRED = tuple(name for name in Gain._fields if name not in Gain._field_defaults)


def read_gains(path: str | Path = "") -> list[Gain]:
    """Read a CSV file of gains: a row for each task, encoder, option and language.

    ``path`` is the file. Default: the shipped one. Raises DataError, with file and line, for a missing
    column, an empty cell, a broken number or a repeated row. Any code of a language is understood.

    Device: none. Cost: reads the file.

    >>> {gain.task for gain in isogloss.read_gains()} >= {"upos", "ner", "text-classification"}
    True
    """
    file = disk_file(Path(path) if path else SHIPPED)
    gains: list[Gain] = []
    first_lines: dict[tuple[str, ...], int] = {}
    for line_number, row in _rows(file):
        gain = _parse(file, line_number, row)
        key = (gain.task, gain.encoder, gain.option, gain.language)
        if key in first_lines:
            raise file.broken(
                line_number,
                f"{gain.option!r} in {gain.language} ({gain.task}, {gain.encoder}) again, as in line "
                f"{first_lines[key]}",
                "one row with the mean over seeds",
                "Remove a row",
            )
        first_lines[key] = line_number
        gains.append(gain)
    if not gains:
        raise DataError(f"{file.name}: no rows. Give one for each task, encoder, option and language.")
    return gains


def _rows(file: File) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the cells of each row by column. Cells of other columns are ignored."""
    lines = read_csv(file)
    line_number, header = next(lines, (1, list[str]()))
    columns = [name.strip() for name in header]
    wrong = [name for name in REQUIRED if columns.count(name) != 1]
    if wrong:
        raise file.broken(
            line_number,
            f"{columns.count(wrong[0])} columns {wrong[0]!r}",
            f"the columns {', '.join(REQUIRED)} and, if known, needs",
            "Name the columns in the first line",
        )
    for line_number, cells in lines:
        if len(cells) > len(columns):
            raise file.broken(line_number, f"{len(cells)} cells", f"{len(columns)}, one for each column")
        row = dict(zip(columns, cells, strict=False))
        yield line_number, {name: row.get(name, "").strip() for name in Gain._fields}


def _parse(file: File, line_number: int, row: dict[str, str]) -> Gain:
    for name in REQUIRED:
        if not row[name]:
            raise file.broken(line_number, f"no {name}", "a value in each column")
    gain = _number(row["gain"])
    hours = _number(row["hours"])
    seeds = _count(row["seeds"])
    labels = _count(row["labels"])
    checks = {"gain": not math.isnan(gain), "hours": hours >= 0, "seeds": seeds > 0, "labels": labels >= 0}
    for name, is_right in checks.items():
        if not is_right:
            raise file.broken(line_number, f"{name} is {row[name]!r}", NUMBERS[name])
    return Gain(
        task=row["task"],
        encoder=row["encoder"],
        option=row["option"],
        language=canonical_language(row["language"]),
        gain=gain,
        seeds=seeds,
        labels=labels,
        hours=hours,
        needs=row["needs"],
    )


def _count(text: str) -> int:
    """Return a whole number of few digits, or -1."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS else -1


def _number(text: str) -> float:
    """Return a finite number, or nan."""
    try:
        number = float(text)
    except ValueError:
        return math.nan
    return number if math.isfinite(number) else math.nan
