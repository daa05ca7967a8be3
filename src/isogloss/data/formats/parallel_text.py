"""Parallel text in the usual forms of publication.

Tables: a header (``verse<TAB>en<TAB>de``), then an id and a text for each language; an empty cell: no
translation. A column ``links`` is no language but holds the word alignments of a table of two languages.

Two files with a translation on each line, word alignments in a third. Moses' and OPUS's names:
``NAME.en-de.en``, ``NAME.en-de.de``, alignments ``NAME.en-de.align`` (0-based, as in 0-0 1-2). XLM's
``en-de.en.train``, ``en-de.de.train`` have the split last. Tatoeba's ``tatoeba.deu-eng.deu`` are named like
Moses', with codes of ISO 639-3. Gold alignments also come as ``enfr.src-tgt`` (``a b ||| c d``) with
``enfr.gold`` (1-based, ``p`` for possible).

Mined text, WikiMatrix's form: on each line a margin score, a sentence and its translation; no header.
``WikiMatrix.en-es.tsv.gz`` (Schwenk et al. 2019) has the languages in its name, as CCMatrix does. The margin
compares a pair's similarity with that of each side's other neighbours: the higher, the likelier the two are
translations. Pairs below a threshold are left out.

Two treebanks of Universal Dependencies that share their sentences' sent_ids, as the Parallel UD treebanks:
UD_English-PUD and UD_German-PUD are a thousand sentences of news and Wikipedia in translation (Zeman et al.
2017, Section 3).
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product, zip_longest
from math import isfinite
from zlib import crc32

from isogloss.core.errors import ConfigError, DataError, did_you_mean
from isogloss.core.languages import spellings
from isogloss.data.corpus import Split
from isogloss.data.examples import Translation
from isogloss.data.files import File, Folder, short
from isogloss.data.formats.conllu import read_conllu, text_comment, ud_paths
from isogloss.data.formats.word_links import NO_LINKS, flipped, linked
from isogloss.data.projection.parallel_examples import matched
from isogloss.data.projection.words import detokenize

LINKS = "links"

HELD_OUT_ONE_IN = 25
"""Of 25 verses one is dev and one is test (4 % each, some 1,200 of a whole Bible)."""

BETWEEN = " ||| "

LEAST_MARGIN = 1.04
"""Schwenk et al. (2019), Sec. 4.3: a good choice for most pairs of languages."""


@dataclass(frozen=True, slots=True)
class ParallelRow:
    """The cells of the requested languages, in that order, and of the links column."""

    number: int
    id: str
    texts: tuple[str, ...]
    links: str


def two_languages(pair: str, corpus: str = "bitext") -> tuple[str, str]:
    """Split a pair such as ``en-fr``; ConfigError for anything else."""
    first, hyphen, second = pair.partition("-")
    if not (first and hyphen and second) or "-" in second or first == second:
        raise ConfigError(
            f"corpus {corpus}: {pair!r} is no pair of languages; expected two with a hyphen, as in en-fr."
        )
    return first, second


def find_texts(folder: Folder, stem: str, first: str, second: str) -> list[File]:
    """Find the files of the parallel texts of two languages, in either order, in one of the forms.

    Files of one text come together: both sides, then alignments, if any.
    """
    tables = folder.find([f"{stem}.tsv"])
    tables = [file for file in tables if all(column_of(code, languages_in(file)) for code in (first, second))]
    if tables:
        return tables
    orders = ((first, second), (second, first))
    forms = [_find_lines, _find_split_last, *([_find_gold] if stem.endswith("/*") else [])]
    searches = (*product(orders, forms), *product(orders, [_find_mined]))
    return next(filter(None, (find(folder, stem, *order) for order, find in searches)), [])


def read_texts(files: list[File], first: str, second: str, *, least: float) -> Iterator[Translation]:
    """Read the pairs of all texts, the first language first.

    Ids are a table's or line numbers, with the file's name where there are several texts. Mined pairs have
    at least the margin ``least``.
    """
    texts = list(_texts(files))
    for text in texts:
        for pair in _read_text(text, first, second, least):
            yield pair if len(texts) == 1 else replace(pair, id=f"{text[0].base_name}:{pair.id}")


def count_empty(files: list[File]) -> int:
    """Count the pairs of lines, in files of lines, of which one side is empty."""
    texts = (
        text
        for text in _texts(files)
        if len(text) > 1 and not text[0].plain_name.endswith(("src-tgt", "conllu"))
    )
    sides = (zip(text[0].lines(), text[1].lines(), strict=False) for text in texts)
    return sum(not (line.strip() and other.strip()) for text in sides for (_, line), (_, other) in text)


def _texts(files: list[File]) -> Iterator[list[File]]:
    """Group the files of each text by their names."""
    text: list[File] = []
    for file in files:
        ends = [part.plain_name.rpartition(".")[2] for part in (*text, file)]
        is_complete = ends[0] in ("tsv", "src-tgt") or len(text) > 1
        if text and is_complete and ends[-1] not in ("gold", "align"):
            yield text
            text = []
        text = [*text, file]
    if text:
        yield text


def _read_text(text: list[File], first: str, second: str, least: float) -> Iterator[Translation]:
    name = text[0].base_name
    if name.endswith(".conllu"):
        return read_treebanks(text)
    if name.endswith(".tsv") and not is_mined(text[0]):
        return _read_table(text[0], first, second)
    if name.endswith(".tsv"):
        pairs = read_mined(text[0], least=least)
    elif name.endswith(".src-tgt"):
        pairs = read_gold(text)
    else:
        pairs = read_lines(text)
    return map(flipped, pairs) if _is_reversed(name, first, second) else pairs


def _is_reversed(name: str, first: str, second: str) -> bool:
    """Return whether the last pair of languages in a file's name is in the other order."""

    def position(source: str, target: str) -> int:
        pairs = product(spellings(source), spellings(target))
        ends = (f".{code}{end}" for code, other in pairs for end in (f"-{other}.", f"{other}.src-tgt"))
        return max(f".{name}".rfind(end) for end in ends)

    return position(second, first) > position(first, second)


def _read_table(table: File, first: str, second: str) -> Iterator[Translation]:
    languages = languages_in(table)
    backwards = languages.index(column_of(second, languages)) < languages.index(column_of(first, languages))
    for row in read_rows(table, [second, first] if backwards else [first, second]):
        pair = Translation(id=row.id, first=row.texts[0], second=row.texts[1])
        if row.links:
            pair = linked(pair, "" if row.links == NO_LINKS else row.links, table, row.number)
        yield flipped(pair) if backwards else pair


def languages_in(file: File) -> list[str]:
    """Return the languages of the header."""
    header = next((line for _, line in file.lines()), "").split("\t")
    return [name for name in header[1:] if name != LINKS]


def column_of(language: str, names: Collection[str]) -> str:
    """Return how a header spells a language; empty where it lacks it."""
    return next((code for code in spellings(language) if code in names), "")


def read_rows(file: File, languages: Sequence[str], *, partial: bool = False) -> Iterator[ParallelRow]:
    """Read the rows that have a text in each of the languages, with ``partial`` those that have any."""
    enough = any if partial else all
    lines = file.lines()
    header = next(lines, (1, ""))[1].split("\t")
    positions = [_position(file, header, language) for language in languages]
    links = _links(file, header)
    ids: set[str] = set()
    for number, line in lines:
        row = line.split("\t")
        if len(row) != len(header):
            raise file.broken(number, f"{len(row)} columns", f"{len(header)}, as in the header")
        if not row[0] or row[0] in ids:
            raise file.broken(
                number, f"the id {row[0]!r} {'a second time' if row[0] else ''}", "an id of its own"
            )
        ids.add(row[0])
        texts = tuple(row[position] if row[position].strip() else "" for position in positions)
        if enough(texts):
            yield ParallelRow(
                number=number, id=row[0], texts=texts, links=row[links] if links is not None else ""
            )


def verse_split(verse: str) -> Split:
    """Return the split of a verse, by its reference alone: the same in every language and table."""
    residue = crc32(verse.encode()) % HELD_OUT_ONE_IN
    return "test" if residue == 0 else "dev" if residue == 1 else "train"


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
    column = column_of(language, languages)
    if not column:
        raise DataError(
            f"{file.name}:1: no column for language {language!r}.{did_you_mean(language, languages)} "
            f"It has: {short(', '.join(languages)) or 'none'}. Choose one of these."
        )
    return header.index(column, 1)


def _find_lines(folder: Folder, stem: str, first: str, second: str) -> list[File]:
    """Find first, second and optional alignment file of each parallel text, in this order of languages."""
    for codes in spelled_pairs(folder, f"{stem}.*-*.*", first, second):
        base = f"{stem}.{'-'.join(codes)}"
        firsts, seconds, links = (
            {file.plain_name.removesuffix(f".{end}"): file for file in folder.find([f"{base}.{end}"])}
            for end in (*codes, "align")
        )
        for name in firsts.keys() ^ seconds.keys():
            present, absent = codes if name in firsts else codes[::-1]
            raise DataError(
                f"{name}.{present}: its translation {name}.{absent} does not exist; expected both. "
                f"Put it into the same folder, or remove this file."
            )
        if firsts:
            return [side[name] for name in firsts for side in (firsts, seconds, links) if name in side]
    return []


def _find_split_last(folder: Folder, stem: str, first: str, second: str) -> list[File]:
    """Find first and second file of XLM's names, given a folder and a split, as in bitext/train."""
    parent, _, split = stem.rpartition("/")
    for pair in spelled_pairs(folder, f"{parent}/*-*.*.{split}", first, second):
        sides = [folder.find([f"{parent}/{'-'.join(pair)}.{side}.{split}"]) for side in pair]
        if all(sides):
            return [side[0] for side in sides]
    return []


def read_lines(files: list[File]) -> Iterator[Translation]:
    """Read line by line, without pairs that have an empty side; ids are line numbers."""
    rows = zip_longest(*(file.lines() for file in files))
    for number, row in enumerate(rows, start=1):
        if None in row:
            raise _unequal(files, number)
        first, second, *links = (text for _, text in row)
        if first.strip() and second.strip():
            pair = Translation(id=str(number), first=first, second=second)
            yield linked(pair, links[0], files[2], number) if links else pair


def _find_gold(folder: Folder, stem: str, first: str, second: str) -> list[File]:
    """Find ``enfr.src-tgt`` and ``enfr.gold`` in this order of languages."""
    parent = stem.rpartition("/")[0]
    stems = [f"{parent}/{''.join(pair)}" for pair in product(spellings(first), spellings(second))]
    texts, links = (folder.find(f"{stem}.{end}" for stem in stems) for end in ("src-tgt", "gold"))
    return [*texts[:1], *links[:1]] if texts else []


def read_gold(files: list[File]) -> Iterator[Translation]:
    """Read lines ``a b ||| c d`` with their gold alignments, if any; ids are line numbers."""
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
    """Build the error for files of different lengths, which are read to their ends to be counted."""
    counts = [sum(1 for _ in file.lines()) for file in files]
    ends = next(file for file, count in zip(files, counts, strict=True) if count < number)
    other = next(file for file in files if file is not ends)
    lengths = ", ".join(f"{file.name} has {count}" for file, count in zip(files, counts, strict=True))
    return ends.broken(
        number,
        f"the file ends; {lengths} lines",
        f"the partner of line {number} of {other.name}, and as many lines in each file",
        "Fetch or make these files again, together",
    )


def spelled_pairs(folder: Folder, pattern: str, first: str, second: str) -> list[tuple[str, str]]:
    """Return the spellings of two languages, joined by a hyphen, in the names of files that match."""
    names = [f".{file.base_name}" for file in folder.find([pattern])]
    pairs = product(spellings(first), spellings(second))
    return [pair for pair in pairs if any(f".{'-'.join(pair)}." in name for name in names)]


def _find_mined(folder: Folder, stem: str, first: str, second: str) -> list[File]:
    """Find the tables of mined text whose names have the languages in this order."""
    pairs = spelled_pairs(folder, f"{stem}.*-*.tsv", first, second)
    tables = (folder.find([f"{stem}.{'-'.join(pair)}.tsv"]) for pair in pairs)
    return next(filter(None, ([file for file in files if is_mined(file)] for files in tables)), [])


def is_mined(file: File) -> bool:
    """Return whether a table begins with a score instead of a header."""
    cells = next((line for _, line in file.lines()), "").split("\t")
    return len(cells) == 3 and _margin(cells[0]) is not None


def read_mined(file: File, *, least: float) -> Iterator[Translation]:
    """Read the pairs with at least this margin; ids are line numbers."""
    best = float("-inf")
    for number, line in file.lines():
        cells = line.split("\t")
        margin = _margin(cells[0])
        if len(cells) != 3 or margin is None or not (cells[1].strip() and cells[2].strip()):
            raise file.broken(number, f"{line[:80]!r}", "a margin score, a text and its translation")
        best = max(best, margin)
        if margin >= least:
            yield Translation(id=str(number), first=cells[1], second=cells[2])
    if float("-inf") < best < least:
        raise DataError(
            f"{file.name}: no pair has a margin of {least:g} or more; the highest is {best:g}. "
            f"Lower the corpus's margin, or fetch the file again."
        )


def _margin(text: str) -> float | None:
    try:
        margin = float(text)
    except ValueError:
        return None
    return margin if isfinite(margin) else None


def find_treebanks(folder: Folder, name: str, split: Split, first: str, second: str) -> list[File]:
    """Find the treebanks of this name (pud) of both languages; none unless both exist."""
    sides = [folder.find(ud_paths(name, language, split)) for language in (first, second)]
    return [side[0] for side in sides] if name.isalnum() and all(sides) else []


def read_treebanks(files: list[File]) -> Iterator[Translation]:
    """Match the sentences by sent_id, in the order of the first; DataError where one has no match."""
    first, second = map(read_conllu, files)
    for sides in matched(first, second, names=(files[0].name, files[1].name)):
        texts = [text_comment(sentence) or detokenize(sentence.words) for sentence in sides]
        words = sides[0].words, sides[1].words
        yield Translation(id=sides[0].id, first=texts[0], second=texts[1], words=words)
