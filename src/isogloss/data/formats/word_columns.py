"""Separate columns of words from columns of numbers, identifiers, offsets, tags and constants."""

import re
from collections.abc import Iterable, Sequence
from itertools import islice
from os.path import commonprefix

from isogloss.core.tag_schemes import TagCounts, find_misfit

MAX_SENTENCES = 1_000
"""Number of sentences that decide whether a column contains words."""

SAME = 10
"""Number of words that must be equal, or begin equally, before their column counts as something else."""

MIN_WORDS = 2
"""Minimum number of words for a decision."""

MIN_IDENTIFIERS = 3
"""Minimum number of words with one shape in a column of identifiers."""

HEADINGS = frozenset({"token", "tokens", "word", "words", "form"})
"""Names of columns of words in a header."""

LABEL_HEADINGS = frozenset(
    {"label", "labels", "tag", "tags", "ne", "ner", "ner_tag", "ner_tags", "pos", "upos"}
)
"""Names of columns of labels in a header."""

_LANGUAGE = re.compile(r"[a-z]{2,3}(-[a-z-]+)?:")
"""Language code that the original WikiANN writes before each word."""

_DIGITS = re.compile(r"\d+")
_NUMBERS = re.compile(r"#([-.:/,]#)*")
_IDENTIFIER = re.compile(r"([^\W\d_]{1,4}[-_.]?#){1,3}")


def describe_other_column(sentences: Iterable[Sequence[str]]) -> str:
    """Return a description of the content of a column without words.

    A column that may contain words has "".
    """
    distinct = dict[str, None]()
    shapes = set[str]()
    length = 0
    counts_words = True
    tags = TagCounts()
    for cells in islice(sentences, MAX_SENTENCES):
        distinct.update(dict.fromkeys(cells))
        shapes.update(_DIGITS.sub("#", cell) for cell in cells)
        counts_words = counts_words and list(cells) == [str(index) for index in range(1, len(cells) + 1)]
        length += len(cells)
        tags.add(cells)
    if length < MIN_WORDS:
        return ""
    example = next(iter(distinct))[:60]
    prefix = _LANGUAGE.match(commonprefix(list(distinct)))  # noqa: RUF071
    contents = {
        "the numbers of words (1, 2, 3 …)": counts_words,
        f"nothing but {example!r}": len(distinct) == 1 and length >= SAME,
        f"{prefix and prefix[0]!r} before each word": prefix is not None and length >= SAME,
        "numbers or offsets": all(_NUMBERS.fullmatch(shape) for shape in shapes),
        f"identifiers such as {example!r}": length >= MIN_IDENTIFIERS and _are_identifiers(shapes),
        "tags of spans": 2 * len(distinct) <= length and _are_tags(tags, list(distinct)),
    }
    return next((content for content, is_so in contents.items() if is_so), "")


def _are_identifiers(shapes: set[str]) -> bool:
    return len(shapes) == 1 and _IDENTIFIER.fullmatch(next(iter(shapes))) is not None


def _are_tags(counts: TagCounts, distinct: Sequence[str]) -> bool:
    scheme = counts.decide()
    return scheme.marks_spans and scheme.has_types and find_misfit(distinct, scheme) is None


def is_header(cells: Sequence[str], label: str) -> bool:
    """Return whether the cells of a first line are names of columns, given its cell in the label column."""
    names = [cell.strip().casefold() for cell in cells]
    is_label = label.strip().casefold() in LABEL_HEADINGS or not LABEL_HEADINGS.isdisjoint(names[1:])
    return len(names) > 1 and names[0] in HEADINGS and is_label
