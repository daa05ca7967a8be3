"""Parallel text as two files with a translation on each line, word alignments in a third.

Moses' and OPUS's names: ``NAME.en-de.en``, ``NAME.en-de.de``, alignments ``NAME.en-de.align`` (0-based, as in
0-0 1-2). XLM's ``en-de.en.train``, ``en-de.de.train`` have the split last. Tatoeba's
``tatoeba.deu-eng.deu`` are named like Moses', with codes of ISO 639-3. Gold alignments also come as
``enfr.src-tgt`` (``a b ||| c d``) with ``enfr.gold`` (1-based, ``p`` for possible).
"""

from collections.abc import Iterator
from itertools import zip_longest

from isogloss.core.errors import DataError
from isogloss.data.examples import Translation
from isogloss.data.files import File, Folder
from isogloss.data.word_links import linked

THREE_LETTERS = {
    "ar": "ara", "bg": "bul", "bn": "ben", "de": "deu", "el": "ell", "en": "eng", "es": "spa", "et": "est",
    "eu": "eus", "fa": "pes", "fi": "fin", "fr": "fra", "he": "heb", "hi": "hin", "hu": "hun", "id": "ind",
    "it": "ita", "ja": "jpn", "jv": "jav", "ka": "kat", "kk": "kaz", "ko": "kor", "ml": "mal", "mr": "mar",
    "nl": "nld", "pl": "pol", "pt": "por", "ru": "rus", "sw": "swh", "ta": "tam", "te": "tel", "th": "tha",
    "tl": "tgl", "tr": "tur", "uk": "ukr", "ur": "urd", "vi": "vie", "zh": "cmn",
}  # fmt: skip
"""Tatoeba's codes, which name single languages where ISO 639-1 names groups (cmn, pes, swh)."""

BETWEEN = " ||| "


def find_lines(folder: Folder, stem: str, first: str, second: str) -> list[list[File]]:
    """Find first, second and (if there) alignment file of each parallel text, in this order of languages."""
    for one, two in dict.fromkeys([(first, second), (_three(first), _three(second))]):
        base = f"{stem}.{one}-{two}"
        firsts, seconds, links = (_by_stem(folder, base, end) for end in (one, two, "align"))
        for alone in firsts.keys() ^ seconds.keys():
            there, absent = (one, two) if alone in firsts else (two, one)
            raise DataError(
                f"{alone}.{there}: its translation {alone}.{absent} is not there; expected both. "
                f"Put it beside, or take this file away."
            )
        if firsts:
            return [
                [firsts[name], seconds[name], *([links[name]] if name in links else [])] for name in firsts
            ]
    return []


def find_split_last(folder: Folder, stem: str, first: str, second: str) -> list[list[File]]:
    """Find first and second file of XLM's names, given a folder and a split, as in bitext/train."""
    place, _, split = stem.rpartition("/")
    sides = [folder.find([f"{place}/{first}-{second}.{side}.{split}"]) for side in (first, second)]
    return [[side[0] for side in sides]] if all(sides) else []


def read_lines(files: list[File]) -> Iterator[Translation]:
    """Read line by line; ids are line numbers."""
    rows = zip_longest(*(file.lines() for file in files))
    for number, row in enumerate(rows, start=1):
        if None in row:
            raise _unequal(files, number)
        for file, numbered in zip(files[:2], row, strict=False):
            if not numbered[1].strip():
                raise file.broken(number, "an empty line", f"the partner of line {number} of {files[0].name}")
        pair = Translation(id=str(number), first=row[0][1], second=row[1][1])
        yield linked(pair, row[2][1], files[2], number) if len(files) > 2 else pair


def find_gold(folder: Folder, stem: str, first: str, second: str) -> list[list[File]]:
    """Find ``enfr.src-tgt`` and ``enfr.gold`` in this order of languages."""
    place = stem.rpartition("/")[0]
    texts, links = (folder.find([f"{place}/{first}{second}.{end}"]) for end in ("src-tgt", "gold"))
    return [[texts[0], *links[:1]]] if texts else []


def read_gold(files: list[File]) -> Iterator[Translation]:
    """Read lines ``a b ||| c d`` with their gold alignments, if there are any; ids are line numbers."""
    for number, row in enumerate(zip_longest(*(file.lines() for file in files)), start=1):
        if None in row:
            raise _unequal(files, number)
        sides = row[0][1].split(BETWEEN)
        if len(sides) != 2 or not all(side.strip() for side in sides):
            raise files[0].broken(
                number, f"{len(sides)} sides in {row[0][1][:60]!r}", "two with words, as in 'a b ||| c d'"
            )
        pair = Translation(id=str(number), first=sides[0].strip(), second=sides[1].strip())
        yield linked(pair, row[1][1], files[1], number, first_is=1) if len(files) > 1 else pair


def _unequal(files: list[File], number: int) -> DataError:
    """Build the error for files that do not end together; each is read to its end to say how long it is."""
    counts = [sum(1 for _ in file.lines()) for file in files]
    ends = next(file for file, count in zip(files, counts, strict=True) if count < number)
    there = ", ".join(f"{file.name} has {count}" for file, count in zip(files, counts, strict=True))
    return ends.broken(
        number,
        f"the file ends; {there} lines",
        f"the partner of line {number} of {files[0].name}, and as many lines in each file",
        "Fetch or make these files again, together",
    )


def _by_stem(folder: Folder, base: str, end: str) -> dict[str, File]:
    return {file.plain_name.removesuffix(f".{end}"): file for file in folder.find([f"{base}.{end}"])}


def _three(code: str) -> str:
    return THREE_LETTERS.get(code, code)
