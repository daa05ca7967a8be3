"""Tags that mark spans of words: B-X begins a span of type X, I-X continues it, O is outside.

Predicted tags may be invalid. They are read as the CoNLL-2000 scorer reads them: an I- tag that continues
nothing begins a span.
"""

from collections.abc import Sequence
from typing import NamedTuple

OUTSIDE = "O"


class Span(NamedTuple):
    """Words ``start`` to ``stop`` (excluded) are of one type."""

    type: str
    start: int
    stop: int


def repair(tags: Sequence[str]) -> tuple[str, ...]:
    """Turn every I-X that does not follow B-X or I-X of the same type into B-X; all else stays.

    The result is valid, has the same spans, and repairing it again changes nothing.
    """
    types = [_type(tag) for tag in tags]
    return tuple(
        f"B-{type_}" if tag[0] == "I" and last != type_ else tag
        for tag, type_, last in zip(tags, types, ["", *types], strict=False)
    )


def spans(tags: Sequence[str]) -> list[Span]:
    """List the spans of a sentence from left to right, of invalid tags those of the repaired ones."""
    found: list[Span] = []
    start = 0
    valid = (*repair(tags), OUTSIDE)
    for place, (last, tag) in enumerate(zip((OUTSIDE, *valid), valid, strict=False)):
        if last != OUTSIDE and tag[0] != "I":
            found.append(Span(_type(last), start, place))
        if tag[0] == "B":
            start = place
    return found


def _type(tag: str) -> str:
    """Return the type of a tag, nothing for O; ValueError for what is no tag of this scheme."""
    if tag == OUTSIDE:
        return ""
    prefix, _, name = tag.partition("-")
    if prefix not in ("B", "I") or not name:
        raise ValueError(f"{tag!r} is no BIO tag: use O, B-TYPE and I-TYPE.")
    return name
