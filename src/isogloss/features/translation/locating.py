"""Locate answers in translations by marks, by word links, or by the answer's own translation.

None where the position is ambiguous.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from isogloss.data.projection.words import Answer, SpanLink, tokenize, word_offsets


class MarkerPair(NamedTuple):
    """Markers around an answer, and regular expressions of their translations."""

    left: str
    right: str
    lefts: str
    """Regular expression of the left marker's translations."""
    rights: str


MARKS = (
    MarkerPair("[", "]", r"[\[［【]", r"[\]］】]"),
    MarkerPair("<b>", "</b>", r"<\s*[bB]\s*>", r"<\s*/\s*[bB]\s*>"),
    MarkerPair("“", "”", r"[\"“„«»”「『]", r"[\"“”»«」』]"),
)
"""Pairs of markers in the order in which they are tried.

Brackets and tags survive translation best (Chen et al. 2023, "EasyProject", Section 4), then quotes.
"""


_NO_SPACE_BEFORE = re.compile(r"[,.;:!?…)\]}»”%、。，！？：；]")


def add_marks(passage: str, answer: Answer, mark: MarkerPair) -> str | None:
    """Return a passage with marks around an answer, or None if the passage already contains such marks."""
    if re.search(f"{mark.lefts}|{mark.rights}", passage):
        return None
    start, text = answer
    stop = start + len(text)
    return passage[:start] + mark.left + passage[start:stop] + mark.right + passage[stop:]


def remove_marks(translation: str, mark: MarkerPair) -> tuple[str, Answer] | None:
    """Remove the marks from a translation, and return it with the answer between them.

    None is returned unless the translation has exactly one pair of marks around a text.
    """
    lefts = list(re.finditer(mark.lefts, translation))
    left_mark = lefts[0] if lefts else None
    all_rights = list(re.finditer(mark.rights, translation))
    rights = [match for match in all_rights if left_mark and match.start() >= left_mark.end()]
    if left_mark is None or len(rights) != 1 or len({match.span() for match in (*lefts, *all_rights)}) != 2:
        return None
    left = translation[: left_mark.start()]
    right = translation[rights[0].end() :]
    inner = translation[left_mark.end() : rights[0].start()]
    answer = inner.strip()
    if not answer:
        return None
    start = left.rstrip() + _gap(left, inner)
    gap = _gap(inner, right)
    if _NO_SPACE_BEFORE.match(right.lstrip()) and not right[:1].isspace():
        gap = ""  # The space belonged to the mark.
    return start + answer + gap + right.lstrip(), (len(start), answer)


def _gap(left: str, right: str) -> str:
    """Return a space if either part had one at the joint, else ""."""
    inside = bool(left.strip() and right.strip())
    return " " if inside and (left[-1].isspace() or right[0].isspace()) else ""


def locate_by_text(answer: str, translation: str) -> Answer | None:
    """Return the only occurrence of a translated answer, or None without exactly one.

    Case is ignored, and the occurrence must begin and end at word boundaries.
    """
    core = answer.strip().rstrip(".。").strip()
    if not core:
        return None
    pattern = rf"{_border(core[0])}{re.escape(core)}{_border(core[-1])}"
    matches = list(re.finditer(pattern, translation, re.IGNORECASE))
    return (matches[0].start(), matches[0][0]) if len(matches) == 1 else None


def _border(letter: str) -> str:
    """Return the regular expression of a word boundary, or "" for scripts that do not separate words."""
    separates_words = letter.isalnum() and not re.match(
        r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\uffee]", letter
    )
    return r"\b" if separates_words else ""


def span_links(text: str, translation: str, links: Iterable[tuple[int, int]]) -> list[SpanLink]:
    """Turn links between word indices into links between character offsets."""
    sources, targets = (word_offsets(tokenize(side), side) for side in (text, translation))
    return [(sources[i], targets[j]) for i, j in links]
