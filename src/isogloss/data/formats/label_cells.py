"""Read the cells of labels: their text, missing labels, numbers, and spellings of one label.

A label is a text or a number. Numbers may be labels themselves or positions in the inventory, which
``decide_labels`` decides once for a file. Lists and objects are no labels, but a list of one label is read as
that label.
"""

import ast
import json
import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

MISSING = frozenset({
    "", "nan", "NaN", "null", "NULL", "<NA>", "#N/A", "NaT", "N/A", "n/a", "[]", "{}", "[null]",
})  # fmt: skip
"""Ways in which programs write a missing label. Each may be a label of a stated inventory."""

MAYBE_MISSING = frozenset({"None", "NA", "nil", "-", "?", "_", ".", "-1", "NONE", "na", "--"})
"""Labels that may be missing ones: they are read as labels and reported."""

UNKNOWN_CLASS = "-1"
"""How ``datasets`` writes that a label is hidden."""

NLI = frozenset({"entailment", "neutral", "contradiction"})

NUMBER = re.compile(r"\d{1,9}(?=(\.0)?$)")
"""A label that may be a position in the inventory."""

MAX_TEXT_SHOWN = 60

_STRUCTURED = re.compile(r"\s*(\[.*\]|\{.*\})\s*", re.DOTALL)
_INVISIBLE = re.compile("[\u200b-\u200f\u2060\ufeff\u00ad]")
_QUOTES = "\"'`“”„‘’«»"
_LOOKALIKES = str.maketrans("аеорсухіјѕВКМНТΑΒΕΖΗΙΚΜΝΟΡΤΥΧο", "aeopcyxijsBKMHTABEZHIKMNOPTYXo")
"""Cyrillic and Greek letters that look like Latin ones."""
_NUMBER_SPELLING = re.compile(r"0*(\d+)(\.0*)?")

Fold = Callable[[str], str]


@dataclass(frozen=True, kw_only=True)
class LabelFacts:
    """How the labels of a file are read. It is decided from all labels of the file."""

    are_positions: bool = False
    """Whether numbers are positions in the inventory."""
    missing: frozenset[str] = MISSING
    """The texts of missing labels."""
    remarks: tuple[str, ...] = ()


PLAIN_LABELS = LabelFacts()


def read_cell_text(cell: object) -> str:
    """Return the text of a cell; empty for null and nan, and that of the label in a list of one."""
    if isinstance(cell, list) and len(cell) == 1 and not isinstance(cell[0], list | dict):
        return read_cell_text(cell[0])
    if cell is None or (isinstance(cell, float) and math.isnan(cell)) or cell in ([], {}):
        return ""
    return str(cell).strip()


def describe_structure(cell: object) -> str:
    """Return "a list" or "an object" for a cell that is no single label; else an empty text."""
    if isinstance(cell, str):
        cell = _parsed(cell)
    if isinstance(cell, dict) and cell:
        return "an object"
    if isinstance(cell, list) and (len(cell) > 1 or (cell and isinstance(cell[0], list | dict))):
        return "a list"
    return ""


def _parsed(text: str) -> object:
    """Return the list or object that a text spells in JSON or Python; else the text.

    A text that spells a list of one label stays a text of its own: it is no single label either.
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


def decide_labels(
    cells: Counter[tuple[str, bool]], labels: Collection[str], *, are_stated: bool, of_pairs: bool = False
) -> LabelFacts:
    """Decide how the labels of a file are read.

    ``cells`` counts texts of cells, and whether each is a number in JSON. Numbers are labels where each is in
    the inventory, else positions where each is one, else labels. ``are_stated``: a description lists the
    inventory. ``of_pairs``: labels may be those of NLI.
    """
    counts = Counter[str]()
    for (text, _), number in cells.items():
        counts[text] += number
    stated = labels if are_stated else ()
    missing = _find_missing_texts(counts, cells, stated, of_pairs=of_pairs)
    texts = [text for text in counts if text not in missing]
    remarks = list(_describe_missing(counts, missing, stated))
    written_as_numbers = [text for text in texts if cells[text, True]]
    texts = written_as_numbers or texts  # A misspelled text among numbers of JSON decides nothing.
    all_numbers = bool(texts) and all(map(NUMBER.match, texts))
    numbers = [int(float(text)) for text in texts] if all_numbers else []
    fit_labels = all(text in labels for text in texts)
    fit_positions = bool(numbers) and max(numbers) < len(labels)
    inventory = list(labels)
    differ = fit_positions and any(
        inventory[number] != text for number, text in zip(numbers, texts, strict=True)
    )
    is_numeric = bool(labels) and all(map(NUMBER.match, labels))
    if are_stated and is_numeric and fit_positions and differ:
        chosen, other = ("labels", "positions") if fit_labels else ("positions in labels", "labels")
        remarks.append(f"numbers read as {chosen}, not as {other}")
    are_positions = fit_positions and not fit_labels
    if all_numbers and not fit_labels and not fit_positions and not is_numeric:
        are_positions = bool(labels)  # A number beyond the inventory is an error with its line.
    return LabelFacts(are_positions=are_positions, missing=missing, remarks=tuple(remarks))


def _find_missing_texts(
    counts: Counter[str], cells: Counter[tuple[str, bool]], stated: Collection[str], *, of_pairs: bool
) -> frozenset[str]:
    """Return the texts that are missing labels in a file."""
    missing = {text for text in MISSING if text not in stated}
    others = counts.keys() - missing - MAYBE_MISSING
    if of_pairs and others and others <= NLI:
        missing |= {text for text in MAYBE_MISSING if text not in stated}
    numbered = cells[UNKNOWN_CLASS, True] or not others
    if UNKNOWN_CLASS not in stated and numbered and not any(map(NUMBER.match, others)):
        missing.add(UNKNOWN_CLASS)
    return frozenset(missing)


def _describe_missing(
    counts: Counter[str], missing: Collection[str], stated: Collection[str]
) -> Iterator[str]:
    for text in sorted(MAYBE_MISSING - {*missing} - {*stated}):
        if number := counts[text]:
            rows = f"{number:,} row{'s' * (number > 1)}"
            yield f"{rows} with the label {text}, which programs write for no label"


def describe_type(cell: object) -> str:
    """Return what a cell is: a text, a number or a truth value; empty for other cells and missing labels."""
    if isinstance(cell, list) and len(cell) == 1:
        return describe_type(cell[0])
    if not read_cell_text(cell):
        return ""
    types = {str: "texts", bool: "truth values", int: "numbers", float: "numbers"}
    return types.get(type(cell), "")


def describe_types(counts: Counter[str]) -> Iterator[str]:
    """Yield of which types labels are, if of several."""
    if len(counts) > 1:
        yield "labels of several types: " + ", ".join(f"{count:,} {name}" for name, count in counts.items())


def describe_spellings(labels: Iterable[str]) -> Iterator[str]:
    """Yield which labels look like spellings of one."""
    by_case = _groups(labels, _fold_case)
    yield from (f"labels that differ in case or width alone: {', '.join(spellings)}" for spellings in by_case)
    for spellings in _groups(labels, _fold_spelling):
        if spellings not in by_case:
            yield f"labels that look like spellings of one: {', '.join(map(_shown, spellings))}"


def _groups(labels: Iterable[str], fold: Fold) -> list[list[str]]:
    groups = defaultdict[str, list[str]](list)
    for label in labels:
        groups[fold(label)].append(label)
    return [spellings for spellings in groups.values() if len(spellings) > 1]


def _fold_case(label: str) -> str:
    return unicodedata.normalize("NFKC", label).casefold()


def _fold_spelling(label: str) -> str:
    """Return a label without what is not seen: its case, width, quotes, spaces and zeros of numbers."""
    text = _INVISIBLE.sub("", unicodedata.normalize("NFKC", label))
    text = " ".join(text.strip(_QUOTES).split()).translate(_LOOKALIKES).casefold()
    number = _NUMBER_SPELLING.fullmatch(text)
    return number[1] if number else text


def _shown(label: str) -> str:
    """Return a label, with escapes where it has invisible characters."""
    return ascii(label) if _INVISIBLE.search(label) or not label.isprintable() else label


def find_label(text: str, labels: Sequence[str]) -> str:
    """Return the label at a position of the inventory, or the text for other numbers."""
    number = int(float(text))
    return labels[number] if 0 <= number < len(labels) else text
