"""Where sentences end in running text, by punctuation alone, in the scripts of the corpora read here."""

import re
from itertools import pairwise

_CLOSERS = "\"'”’»)\\]」』】）"
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\[\"'“‘«])(?:\w|[A-Z][a-z]|(?:\w\.)+\w|Mrs|Drs?|Sra?|etc|vgl|bzw|usw|approx|Prof|Gen|Rev|Capt|"
    r"Jan|Feb|Aug|Sept?|Oct|Nov|Dec|Inc|Ltd|Mme|Mlle)\.$"
)
"""What ends in a full stop and rarely ends a sentence: initials, titles, months."""

_LONGEST = 12
"""Characters before an end, itself included, in which an abbreviation is looked for."""

_WITH_SPACE = re.compile(rf"[.!?…؟۔।॥።][.!?…]*[{_CLOSERS}]*(?=\s)")
_NOT_SPACE = re.compile(r"\S")
_WITHOUT = re.compile(rf"[。！？｡][。！？｡]*[{_CLOSERS}]*")


def sentences_in(text: str) -> list[str]:
    """Split text into sentences, without the white space between them; text that has no end is one."""
    ends = {match.end() for match in _WITH_SPACE.finditer(text) if _is_end(text, match)}
    ends |= {match.end() for match in _WITHOUT.finditer(text)}
    places = [0, *sorted(ends), len(text)]
    parts = [text[start:end].strip() for start, end in pairwise(places)]
    return [part for part in parts if part]


def is_abbreviation(text: str, start: int, end: int) -> bool:
    """Whether this part of a text ends in a full stop of an initial, a title or a month."""
    return _ABBREVIATION.search(text[max(start, end - _LONGEST) : end]) is not None


def _is_end(text: str, match: re.Match[str]) -> bool:
    after = _NOT_SPACE.search(text, match.end())
    if after and after[0].islower():
        return False
    return match[0] != "." or not is_abbreviation(text, 0, match.end())
