"""Edit rules that make the lemma of a word, so that lemmas are learned as tags are.

As in UDPipe (Straka 2018, "UDPipe 2.0 Prototype at CoNLL 2018 UD Shared Task") and MaChAmp, a rule
consists of the case of the lemma and of the edits before and after the longest piece that word and lemma
share. Edits count characters from either end of the word, so that one rule serves words of any length:

- ``lower | -1`` makes dog of dogs and cat of Cats: all in lower case, without the last character;
- ``title =1 -1 +a | -2`` makes Haus of Häuser: the first letter stays, the second becomes a;
- ``is go`` makes go of went, as the two share nothing.

The rule of a word and its lemma makes exactly this lemma of this word, whatever the script. Where the
lemma is not its lower case in lower, title or upper case (iPhone, İstanbul), the edits are those of the
word as written (``keep``).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import NamedTuple

UNLISTED = "?"
"""Stands for all rules that are not in an inventory; learned as they are, and never predicted."""

NO_LEMMA = "_"
"""The lemma of a word that has none in a treebank."""

LEAST_WORDS = 2
"""Words of the training data that a rule needs to be in the inventory."""

MOST_RULES = 4_000
"""Rules of an inventory at most: the most frequent ones."""

KEEP, LITERAL = "keep", "is"

CASES: Mapping[str, Callable[[str], str]] = {
    "lower": lambda text: text,
    "title": lambda text: text[:1].title() + text[1:],
    "upper": str.upper,
}
"""Functions that restore the case of a lemma in lower case."""


@lru_cache(maxsize=100_000)
def rule_of(word: str, lemma: str) -> str:
    """Return the rule that makes this lemma of this word."""
    lowered = lemma.lower()
    for case, restored in CASES.items():
        if restored(lowered) == lemma:
            edits = _edits(word.lower(), lowered)
            return f"{case} {edits}" if edits else f"{LITERAL} {lemma}"
    edits = _edits(word, lemma)
    return f"{KEEP} {edits}" if edits else f"{LITERAL} {lemma}"


def lemma_by(rule: str, word: str) -> str | None:
    """Return the lemma that a rule makes of a word; None for a word that is too short for its edits."""
    case, _, rest = rule.partition(" ")
    if case == LITERAL:
        return rest
    if case not in (KEEP, *CASES):
        return None
    text, edits = word if case == KEEP else word.lower(), _parsed(rest)
    stop = len(text) - edits.tail
    if edits.head >= stop:
        return None
    edited = _edited(text, edits.front) + text[edits.head : stop] + _edited(text[stop:], edits.back)
    return CASES[case](edited) if case != KEEP else edited


def inventory_of(counts: Mapping[str, int]) -> tuple[str, ...]:
    """Return the rules that are learned, by the count of each: ``UNLISTED``, then the most frequent ones."""
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return (UNLISTED, *[rule for rule, count in ranked if count >= LEAST_WORDS][:MOST_RULES])


_ESCAPES = str.maketrans({" ": r"\s", "\\": r"\\"})
_ESCAPED = re.compile(r"\\(.)")


class _Edits(NamedTuple):
    front: Sequence[tuple[str, str]]
    """Operations on the beginning of a word."""
    head: int
    """Characters that these read."""
    back: Sequence[tuple[str, str]]
    tail: int


def _edits(word: str, lemma: str) -> str:
    """Return the edits around the first longest piece that both share; empty where they share nothing."""
    steps = SequenceMatcher(None, word, lemma, autojunk=False).get_opcodes()
    sizes = [stop - start if kind == "equal" else 0 for kind, start, stop, _, _ in steps]
    if not any(sizes):
        return ""
    root = sizes.index(max(sizes))
    sides = (steps[:root], steps[root + 1 :])
    front, back = (" ".join(_written(step, lemma) for step in side) for side in sides)
    return f"{front} | {back}".strip()


def _written(step: tuple[str, int, int, int, int], lemma: str) -> str:
    kind, start, stop, lemma_start, lemma_stop = step
    if kind == "equal":
        return f"={stop - start}"
    inserted = lemma[lemma_start:lemma_stop].translate(_ESCAPES)
    parts = [f"-{stop - start}"] * (stop > start) + [f"+{inserted}"] * bool(inserted)
    return " ".join(parts)


@lru_cache(maxsize=10_000)
def _parsed(edits: str) -> _Edits:
    words = edits.split(" ")
    middle = words.index("|")
    front, back = ([(word[:1], word[1:]) for word in side] for side in (words[:middle], words[middle + 1 :]))
    head, tail = (sum(int(value) for mark, value in side if mark in "=-") for side in (front, back))
    return _Edits(front, head, back, tail)


def _edited(text: str, steps: Sequence[tuple[str, str]]) -> str:
    edited, at = "", 0
    for mark, value in steps:
        if mark == "+":
            edited += _ESCAPED.sub(lambda match: " " if match[1] == "s" else match[1], value)
        else:
            edited += text[at : at + int(value)] if mark == "=" else ""
            at += int(value)
    return edited
