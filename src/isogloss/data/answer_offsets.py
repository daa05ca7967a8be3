"""Answers that do not stand where their offset says: found again where there is no doubt, and told of.

Offsets go wrong when white space was tidied after they were counted, or when they count bytes or UTF-16
units instead of characters. An answer is put right only where one place remains.
"""

import re
from collections.abc import Iterable, Iterator

from isogloss.data.examples import Example, Question

_SPACE = r"\s+"

NEAR = 3
"""An answer that stands in several places is at the only one so few characters from its offset."""

SHOWN = 3
"""More repairs than this are not all told in words."""


def places(passage: str, answer: str) -> list[tuple[int, str]]:
    """Return where an answer stands, and how: any white space may be between its words."""
    words = [re.escape(word) for word in answer.split()]
    found = re.finditer(f"(?=({_SPACE.join(words)}))", passage) if words else ()  # ahead: they may overlap
    return [(match.start(), match[1]) for match in found]


def surely_meant(passage: str, start: int, found: list[tuple[int, str]]) -> tuple[int, str] | None:
    """Return the one place, of those found, that an offset can mean; None where that is not clear."""
    for likely in (
        found,
        [one for one in found if start in _other_counts(passage[: one[0]])],
        [one for one in found if abs(one[0] - start) <= NEAR],
    ):
        if len(likely) == 1:
            return likely[0]
    return None


def repairs_told(examples: Iterable[Example], where: str) -> str:
    """Say which answers were put right while examples were read; empty when none was."""
    repaired = list(_repaired(examples))
    if not repaired:
        return ""
    shown = "; ".join(f"question {one.id}: {one.repaired}" for one in repaired[:SHOWN])
    rest = f"; and {len(repaired) - SHOWN} more" if len(repaired) > SHOWN else ""
    return (
        f"{where}: answers that did not stand at their offset, found again: {len(repaired)} ({shown}{rest})."
    )


def _other_counts(before: str) -> tuple[int, int]:
    """Count what is before a place in bytes of UTF-8 and in units of UTF-16."""
    return len(before.encode()), len(before.encode("utf-16-le")) // 2


def _repaired(examples: Iterable[Example]) -> Iterator[Question]:
    return (one for one in examples if isinstance(one, Question) and one.repaired)
