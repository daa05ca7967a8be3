"""Read cells with labels: their text, missing labels, and numbers.

A label is a text or a number. Numbers may be labels themselves or positions in the inventory, as
``LabelFacts`` states. Lists and objects are not labels, but a list with one label is read as that label.
"""

import ast
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

MISSING = frozenset({
    "", "nan", "NaN", "null", "NULL", "<NA>", "#N/A", "NaT", "N/A", "n/a", "[]", "{}", "[null]",
})  # fmt: skip
"""Texts that programs write for a missing label. Each may be a label of a stated inventory."""

UNKNOWN_CLASS = "-1"
"""Text of a hidden label in the library datasets."""

NUMBER = re.compile(r"\d{1,9}(?=(\.0)?$)")
"""A label that may be a position in the inventory."""

_STRUCTURED = re.compile(r"\s*(\[.*\]|\{.*\})\s*", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class LabelFacts:
    """Rules for reading the labels of a file, decided from all of its labels."""

    are_positions: bool = False
    """Whether numbers are positions in the inventory."""
    missing: frozenset[str] = MISSING
    """Texts of missing labels."""
    remarks: tuple[str, ...] = ()


PLAIN_LABELS = LabelFacts()


def read_cell_text(cell: object) -> str:
    """Return the text of a cell.

    null and nan are "", and a list of one label is read as that label.
    """
    if isinstance(cell, list) and len(cell) == 1 and not isinstance(cell[0], list | dict):
        return read_cell_text(cell[0])
    if cell is None or (isinstance(cell, float) and math.isnan(cell)) or cell in ([], {}):
        return ""
    return str(cell).strip()


def describe_structure(cell: object) -> str:
    """Return "a list" or "an object" for a cell that is not a single label, else ""."""
    if isinstance(cell, str):
        cell = _parse_structure(cell)
    if isinstance(cell, dict) and cell:
        return "an object"
    if isinstance(cell, list) and (len(cell) > 1 or (cell and isinstance(cell[0], list | dict))):
        return "a list"
    return ""


def _parse_structure(text: str) -> object:
    """Return the list or object that a text spells in JSON or Python, else the text.

    A text that spells a list of one is returned as a list of two, because only a real list of one is read as
    its label.
    """
    if not _STRUCTURED.fullmatch(text):
        return text
    for parse in (json.loads, ast.literal_eval):
        try:
            value: object = parse(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        is_single = isinstance(value, list) and len(value) == 1 and value[0] is not None
        return [value, value] if is_single else value
    return text


def find_label(text: str, labels: Sequence[str]) -> str:
    """Return the label at a position of the inventory, or the text for a number beyond it."""
    position = int(float(text))
    return labels[position] if 0 <= position < len(labels) else text
