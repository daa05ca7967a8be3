"""Edit rules that turn a word into its lemma, so that lemmas are learned like tags.

As in UDPipe (Straka 2018, "UDPipe 2.0 Prototype at CoNLL 2018 UD Shared Task") and MaChAmp, a rule consists
of the case of the lemma and of the edits before and after the longest piece that word and lemma share. Edits
count characters from either end of the word, so one rule serves words of any length:

- ``lower | -1`` turns dogs into dog and Cats into cat: all in lower case, without the last character;
- ``title =1 -1 +a | -2`` turns Häuser into Haus: keep the first letter, replace the second by a;
- ``is go`` turns went into go, because they share nothing.

The rule of a word and its lemma turns this word into exactly this lemma, in any script. If no case function
restores the lemma from its lower case (iPhone, İstanbul), the edits apply to the word as written (``keep``).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import NamedTuple

UNLISTED = "?"
"""Stands for all rules outside an inventory. It is a class in training and is never predicted."""

NO_LEMMA = "_"
"""Lemma of words without one in a treebank."""

LEAST_WORDS = 2
"""Minimum number of training words that a rule of the inventory applies to."""

MOST_RULES = 4_000
"""Maximum number of rules in an inventory. The most frequent ones are chosen."""

KEEP = "keep"
LITERAL = "is"


def _capitalize(text: str) -> str:
    return text[:1].title() + text[1:]


CASES: Mapping[str, Callable[[str], str]] = {
    "lower": str,
    "title": _capitalize,
    "upper": str.upper,
}
"""Functions that restore the case of a lemma from its lower case."""


@lru_cache(maxsize=100_000)
def rule_of(word: str, lemma: str) -> str:
    """Return the rule that turns this word into this lemma."""
    lower_lemma = lemma.lower()
    for case, restore_case in CASES.items():
        if restore_case(lower_lemma) == lemma:
            edits = _edits(word.lower(), lower_lemma)
            return f"{case} {edits}" if edits else f"{LITERAL} {lemma}"
    edits = _edits(word, lemma)
    return f"{KEEP} {edits}" if edits else f"{LITERAL} {lemma}"


def lemma_by(rule: str, word: str) -> str | None:
    """Return the lemma of a word under a rule, or None.

    None is for a word too short for the rule's edits, and for a rule without a known case (``UNLISTED``).
    """
    case, _, argument = rule.partition(" ")
    if case == LITERAL:
        return argument
    if case not in (KEEP, *CASES):
        return None
    text = word if case == KEEP else word.lower()
    edits = _parse_edits(argument)
    stop = len(text) - edits.tail
    if edits.head >= stop:
        return None
    lemma = _apply_steps(text, edits.front) + text[edits.head : stop] + _apply_steps(text[stop:], edits.back)
    return CASES[case](lemma) if case != KEEP else lemma


def inventory_of(counts: Mapping[str, int]) -> tuple[str, ...]:
    """Return the learned rules from their counts: ``UNLISTED``, then the most frequent ones.

    Rules of fewer than ``LEAST_WORDS`` words are not included; ties are in alphabetical order.
    """
    ranking = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return (UNLISTED, *[rule for rule, count in ranking if count >= LEAST_WORDS][:MOST_RULES])


_ESCAPES = str.maketrans({" ": r"\s", "\\": r"\\"})
_ESCAPE_SEQUENCE = re.compile(r"\\(.)")


class _Edits(NamedTuple):
    front: Sequence[tuple[str, str]]
    """Operations at the beginning of a word."""
    head: int
    """Number of characters that they read."""
    back: Sequence[tuple[str, str]]
    tail: int


def _edits(word: str, lemma: str) -> str:
    """Return the edits around the first longest piece that both share, or "" if they share nothing."""
    steps = SequenceMatcher(None, word, lemma, autojunk=False).get_opcodes()
    sizes = [stop - start if kind == "equal" else 0 for kind, start, stop, _, _ in steps]
    if not any(sizes):
        return ""
    root = sizes.index(max(sizes))
    sides = (steps[:root], steps[root + 1 :])
    front, back = (" ".join(_format_step(step, lemma) for step in side) for side in sides)
    return f"{front} | {back}".strip()


def _format_step(step: tuple[str, int, int, int, int], lemma: str) -> str:
    kind, start, stop, lemma_start, lemma_stop = step
    if kind == "equal":
        return f"={stop - start}"
    insertion = lemma[lemma_start:lemma_stop].translate(_ESCAPES)
    parts = [f"-{stop - start}"] * (stop > start) + [f"+{insertion}"] * bool(insertion)
    return " ".join(parts)


@lru_cache(maxsize=10_000)
def _parse_edits(edits: str) -> _Edits:
    words = edits.split(" ")
    root = words.index("|")
    front, back = ([(word[:1], word[1:]) for word in side] for side in (words[:root], words[root + 1 :]))
    head, tail = (sum(int(value) for mark, value in side if mark in "=-") for side in (front, back))
    return _Edits(front, head, back, tail)


def _apply_steps(text: str, steps: Sequence[tuple[str, str]]) -> str:
    result = ""
    position = 0
    for mark, value in steps:
        if mark == "+":
            result += _ESCAPE_SEQUENCE.sub(lambda match: " " if match[1] == "s" else match[1], value)
        else:
            result += text[position : position + int(value)] if mark == "=" else ""
            position += int(value)
    return result
