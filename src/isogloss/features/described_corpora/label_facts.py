"""Decide how the labels of a file are read: which are missing, and whether numbers are positions.

Labels that look like spellings of one are reported.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator

from isogloss.data.formats.label_cells import MISSING, NUMBER, UNKNOWN_CLASS, LabelFacts, read_cell_text

MAYBE_MISSING = frozenset({"None", "NA", "nil", "-", "?", "_", ".", "-1", "NONE", "na", "--"})
"""Labels that may stand for missing ones. They are read as labels and reported."""


NLI = frozenset({"entailment", "neutral", "contradiction"})


_INVISIBLE = re.compile("[\u200b-\u200f\u2060\ufeff\u00ad]")


_QUOTES = "\"'`“”„‘’«»"


_LOOKALIKES = str.maketrans("аеорсухіјѕВКМНТΑΒΕΖΗΙΚΜΝΟΡΤΥΧο", "aeopcyxijsBKMHTABEZHIKMNOPTYXo")
"""Cyrillic and Greek letters that look like Latin ones."""


_NUMBER_SPELLING = re.compile(r"0*(\d+)(\.0*)?")


Fold = Callable[[str], str]


def decide_labels(
    cells: Counter[tuple[str, bool]], labels: Collection[str], *, are_stated: bool, are_pairs: bool = False
) -> LabelFacts:
    """Decide how the labels of a file are read.

    ``cells`` counts texts of cells, and whether each is a number in JSON. Numbers are labels if each is in
    the inventory, else positions if each is one, else labels. ``are_stated``: a description lists the
    inventory. ``are_pairs``: examples are pairs, so labels may be the labels of NLI.
    """
    counts = Counter[str]()
    for (text, _), count in cells.items():
        counts[text] += count
    inventory = list(labels)
    stated_labels = labels if are_stated else ()
    missing = _find_missing_texts(counts, cells, stated_labels, are_pairs=are_pairs)
    texts = [text for text in counts if text not in missing]
    remarks = list(_describe_missing(counts, missing, stated_labels))
    written_as_numbers = [text for text in texts if cells[text, True]]
    texts = written_as_numbers or texts  # Texts among numbers of JSON are misspellings and are ignored.
    all_numbers = bool(texts) and all(NUMBER.match(text) for text in texts)
    numbers = [int(float(text)) for text in texts] if all_numbers else []
    fit_labels = all(text in labels for text in texts)
    fit_positions = bool(numbers) and max(numbers) < len(labels)
    differ = fit_positions and any(
        inventory[position] != text for position, text in zip(numbers, texts, strict=True)
    )
    is_numeric = bool(labels) and all(NUMBER.match(label) for label in labels)
    if are_stated and is_numeric and fit_positions and differ:
        readings = ("labels", "positions") if fit_labels else ("positions in labels", "labels")
        remarks.append(f"numbers read as {readings[0]}, not as {readings[1]}")
    are_positions = fit_positions and not fit_labels
    if all_numbers and not fit_labels and not fit_positions and not is_numeric:
        are_positions = bool(labels)  # A number beyond the inventory is an error with its line.
    return LabelFacts(are_positions=are_positions, missing=missing, remarks=tuple(remarks))


def _find_missing_texts(
    counts: Counter[str], cells: Counter[tuple[str, bool]], inventory: Collection[str], *, are_pairs: bool
) -> frozenset[str]:
    """Return the texts that stand for missing labels in a file."""
    missing = {text for text in MISSING if text not in inventory}
    other_texts = counts.keys() - missing - MAYBE_MISSING
    if are_pairs and other_texts and other_texts <= NLI:
        missing |= {text for text in MAYBE_MISSING if text not in inventory}
    may_be_hidden = cells[UNKNOWN_CLASS, True] or not other_texts
    if (
        UNKNOWN_CLASS not in inventory
        and may_be_hidden
        and not any(NUMBER.match(text) for text in other_texts)
    ):
        missing.add(UNKNOWN_CLASS)
    return frozenset(missing)


def _describe_missing(
    counts: Counter[str], missing: Collection[str], inventory: Collection[str]
) -> Iterator[str]:
    for text in sorted(MAYBE_MISSING.difference(missing, inventory)):
        if count := counts[text]:
            rows = f"{count:,} row{'s' * (count > 1)}"
            yield f"{rows} with the label {text}, which programs write where a label is missing"


def describe_type(cell: object) -> str:
    """Return the type of a label's cell as "texts", "numbers" or "truth values".

    Other cells and missing labels have "".
    """
    if isinstance(cell, list) and len(cell) == 1:
        return describe_type(cell[0])
    if not read_cell_text(cell):
        return ""
    types = {str: "texts", bool: "truth values", int: "numbers", float: "numbers"}
    return types.get(type(cell), "")


def describe_types(counts: Counter[str]) -> Iterator[str]:
    """Yield a remark if the labels have several types."""
    if len(counts) > 1:
        yield "labels of several types: " + ", ".join(f"{count:,} {name}" for name, count in counts.items())


def describe_spellings(labels: Iterable[str]) -> Iterator[str]:
    """Yield remarks on labels that look like spellings of one."""
    case_groups = _groups(labels, _fold_case)
    yield from (
        f"labels that differ only in case or width: {', '.join(spellings)}" for spellings in case_groups
    )
    for spellings in _groups(labels, _fold_spelling):
        if spellings not in case_groups:
            names = ", ".join(_show_label(label) for label in spellings)
            yield f"labels that look like spellings of one: {names}"


def _groups(labels: Iterable[str], fold: Fold) -> list[list[str]]:
    groups = defaultdict[str, list[str]](list)
    for label in labels:
        groups[fold(label)].append(label)
    return [spellings for spellings in groups.values() if len(spellings) > 1]


def _fold_case(label: str) -> str:
    return unicodedata.normalize("NFKC", label).casefold()


def _fold_spelling(label: str) -> str:
    """Return a label without invisible differences: case, width, quotes, spaces and zeros of numbers."""
    text = _INVISIBLE.sub("", unicodedata.normalize("NFKC", label))
    text = " ".join(text.strip(_QUOTES).split()).translate(_LOOKALIKES).casefold()
    match = _NUMBER_SPELLING.fullmatch(text)
    return match[1] if match else text


def _show_label(label: str) -> str:
    """Return a label, with escapes if it has invisible characters."""
    return ascii(label) if _INVISIBLE.search(label) or not label.isprintable() else label
