"""Numbers that a paper prints, as a CSV file beside a recipe: each of a system, a language and a measure."""

import csv
import math
from dataclasses import fields
from io import StringIO
from pathlib import Path

from isogloss.core.errors import ConfigError, located
from isogloss.core.records import Value
from isogloss.core.run_files import Published

COLUMNS = tuple(one.name for one in fields(Published))

NEEDED = ("scale", "system", "measure")
"""Columns that no row may leave empty."""


def read_published(path: Path) -> list[dict[str, Value]]:
    """Return the rows of a file; ConfigError, with its name and line, where something does not fit."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"published: {path.name}: cannot be read ({error}). Put the file beside the recipe, or leave the "
            f"field out."
        ) from error
    reader, found = csv.reader(StringIO(text), strict=True), list[dict[str, Value]]()
    try:
        head = next(reader, [])
        if tuple(head) != COLUMNS:
            raise ConfigError(
                f"{path.name}:1: found the columns {','.join(head)}; expected {','.join(COLUMNS)}."
            )
        for cells in filter(None, reader):
            with located(f"{path.name}:{reader.line_num}"):
                found.append(_row(cells))
    except csv.Error as error:
        raise ConfigError(
            f"{path.name}:{reader.line_num}: this is no CSV ({error}). Mend the line."
        ) from error
    places = [tuple(str(row[name]) for name in COLUMNS[:5]) for row in found]
    for place in places:
        if places.count(place) > 1:
            raise ConfigError(f"{path.name}: {', '.join(place)}: it is there twice. Write each number once.")
    return found


def _row(cells: list[str]) -> dict[str, Value]:
    if len(cells) != len(COLUMNS):
        raise ConfigError(f"found {len(cells)} cells; expected {len(COLUMNS)}: {','.join(COLUMNS)}.")
    row = dict(zip(COLUMNS, map(str.strip, cells), strict=True))
    for name in NEEDED:
        if not row[name]:
            raise ConfigError(f"{name}: nothing is there; every row says it.")
    try:
        value = float(row["value"])
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ConfigError(f"value: found {cells[5]!r:.40}; expected a number such as 0.814.")
    return {**row, "value": value}
