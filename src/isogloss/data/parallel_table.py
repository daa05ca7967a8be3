"""Tables of parallel text: a header, then an id and a text for each language; an empty cell: no translation.

The header names the columns (``verse<TAB>en<TAB>de``); a column ``links`` is no language but holds the word
alignments of a table of two languages.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from zlib import crc32

from isogloss.core.errors import DataError, did_you_mean
from isogloss.data.corpora import Split
from isogloss.data.files import File, short

LINKS = "links"

HELD_OUT_ONE_IN = 25
"""Of 25 verses one is dev and one is test (4 % each, some 1,200 of a whole Bible)."""


@dataclass(frozen=True, slots=True)
class Row:
    """The cells of some languages, in the order asked for, and the words of its links column."""

    number: int
    id: str
    texts: tuple[str, ...]
    links: str


def languages_in(file: File) -> list[str]:
    """Give the languages of the header."""
    header = next((line for _, line in file.lines()), "").split("\t")
    return [name for name in header[1:] if name != LINKS]


def read_rows(file: File, languages: Sequence[str]) -> Iterator[Row]:
    """Read the rows that have a text in each of the languages; the others say that they have none."""
    lines = file.lines()
    header = next(lines, (1, ""))[1].split("\t")
    positions = [_position(file, header, language) for language in languages]
    links = _links(file, header)
    seen: set[str] = set()
    for number, line in lines:
        row = line.split("\t")
        if len(row) != len(header):
            raise file.broken(number, f"{len(row)} columns", f"{len(header)}, as in the header")
        if not row[0] or row[0] in seen:
            raise file.broken(
                number, f"the id {row[0]!r} {'a second time' if row[0] else ''}", "an id of its own"
            )
        seen.add(row[0])
        texts = tuple(row[position] for position in positions)
        if all(text.strip() for text in texts):
            yield Row(number=number, id=row[0], texts=texts, links=row[links] if links is not None else "")


def verse_split(verse: str) -> Split:
    """Tell the split of a verse by its reference alone: the same in every language and every table."""
    place = crc32(verse.encode()) % HELD_OUT_ONE_IN
    return "test" if place == 0 else "dev" if place == 1 else "train"


def _links(file: File, header: list[str]) -> int | None:
    names = header[1:]
    if len(set(names)) < len(names):
        raise file.broken(1, f"a column twice in {', '.join(names)}", "each language once")
    if LINKS not in names:
        return None
    if len(names) != 3:
        raise file.broken(1, f"links in a table of {', '.join(names)}", "two languages and links")
    return header.index(LINKS, 1)


def _position(file: File, header: list[str], language: str) -> int:
    languages = [name for name in header[1:] if name != LINKS]
    if language not in languages:
        raise DataError(
            f"{file.name}:1: no column for language {language!r}.{did_you_mean(language, languages)} "
            f"It has: {short(', '.join(languages)) or 'none'}. Choose one of these."
        )
    return header.index(language, 1)
