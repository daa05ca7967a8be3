"""Parallel text in the usual forms of publication.

Tables: a header (``verse<TAB>en<TAB>de``), then an id and a text for each language. An empty cell has no
translation. A column ``links`` contains the word alignments of a table of two languages.

Two files with a translation on each line, and word alignments in a third. Moses' and OPUS's names:
``NAME.en-de.en``, ``NAME.en-de.de``, alignments ``NAME.en-de.align`` (0-based, as in 0-0 1-2). XLM's
``en-de.en.train``, ``en-de.de.train`` have the split last. Tatoeba's ``tatoeba.deu-eng.deu`` are named like
Moses', with codes of ISO 639-3. Gold alignments may also have the form ``enfr.src-tgt`` (``a b ||| c d``)
with ``enfr.gold`` (1-based, ``p`` for possible).

Mined text in WikiMatrix's form: on each line a margin score, a sentence and its translation, without a
header. ``WikiMatrix.en-es.tsv.gz`` (Schwenk et al. 2019) has the languages in its name, as does CCMatrix. The
margin compares a pair's similarity with the similarities of each side's other neighbours: the higher, the
likelier the two are translations. Pairs below a threshold are skipped.

Two treebanks of Universal Dependencies with shared sent_ids, such as the Parallel UD treebanks:
UD_English-PUD and UD_German-PUD are a thousand sentences of news and Wikipedia in translation (Zeman et al.
2017, Section 3).
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product, zip_longest
from math import isfinite
from zlib import crc32

from isogloss.core.errors import DataError, did_you_mean
from isogloss.core.languages import spellings
from isogloss.data.corpus import Split
from isogloss.data.examples import Translation
from isogloss.data.files import File, Folder, short
from isogloss.data.formats.conllu import read_conllu, text_comment, ud_paths
from isogloss.data.projection.parallel_examples import match_by_id
from isogloss.data.projection.words import detokenize
from isogloss.features.parallel_text.gold_links import NO_LINKS, add_gold_links, flip_languages

LINKS = "links"

HELD_OUT_ONE_IN = 25
"""One in 25 verses is dev and one in 25 is test (4 % each, some 1,200 of a whole Bible)."""

BETWEEN = " ||| "

LEAST_MARGIN = 1.04
"""Default minimum margin, a good choice for most pairs of languages (Schwenk et al. 2019, Section 4.3)."""


@dataclass(frozen=True, slots=True)
class ParallelRow:
    """Cells of the requested languages, in that order, and of the links column."""

    number: int
    id: str
    texts: tuple[str, ...]
    links: str


def find_texts(folder: Folder, stem: str, source: str, target: str) -> list[File]:
    """Find the files of the parallel texts of two languages, in either order, in any of the forms.

    Files of one text are adjacent: both sides, then alignments, if any.
    """
    tables = folder.find([f"{stem}.tsv"])
    languages = (source, target)
    tables = [file for file in tables if all(column_of(name, languages_in(file)) for name in languages)]
    if tables:
        return tables
    orders = ((source, target), (target, source))
    forms = [_find_lines, _find_split_last, *([_find_gold] if stem.endswith("/*") else [])]
    searches = (*product(orders, forms), *product(orders, [_find_mined]))
    results = (find(folder, stem, *order) for order, find in searches)
    return next((files for files in results if files), [])


def read_texts(files: list[File], source: str, target: str, *, min_margin: float) -> Iterator[Translation]:
    """Yield the pairs of all texts, the first language first.

    Ids come from a table or are line numbers, prefixed by the file's name for several texts. Mined pairs have
    at least the margin ``min_margin``.
    """
    texts = list(_texts(files))
    for text in texts:
        for pair in _read_text(text, source, target, min_margin):
            yield pair if len(texts) == 1 else replace(pair, id=f"{text[0].base_name}:{pair.id}")


def count_empty(files: list[File]) -> int:
    """Count the pairs with an empty side in files with a translation on each line."""
    texts = (
        text
        for text in _texts(files)
        if len(text) > 1 and not text[0].plain_name.endswith(("src-tgt", "conllu"))
    )
    sides = (zip(text[0].lines(), text[1].lines(), strict=False) for text in texts)
    return sum(
        not (source_line.strip() and target_line.strip())
        for text in sides
        for (_, source_line), (_, target_line) in text
    )


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


def _read_text(text: list[File], source: str, target: str, min_margin: float) -> Iterator[Translation]:
    name = text[0].base_name
    if name.endswith(".conllu"):
        return read_treebanks(text)
    if name.endswith(".tsv") and not is_mined(text[0]):
        return _read_table(text[0], source, target)
    if name.endswith(".tsv"):
        pairs = read_mined(text[0], min_margin=min_margin)
    elif name.endswith(".src-tgt"):
        pairs = read_gold(text)
    else:
        pairs = read_lines(text)
    return (flip_languages(pair) for pair in pairs) if _is_reversed(name, source, target) else pairs


def _is_reversed(name: str, source: str, target: str) -> bool:
    """Return whether the last pair of languages in a file's name is in the other order."""

    def position(source: str, target: str) -> int:
        pairs = product(spellings(source), spellings(target))
        ends = (end for i, j in pairs for end in (f".{i}-{j}.", f".{i}{j}.src-tgt"))
        return max(f".{name}".rfind(end) for end in ends)

    return position(target, source) > position(source, target)


def _read_table(table: File, source: str, target: str) -> Iterator[Translation]:
    languages = languages_in(table)
    backwards = languages.index(column_of(target, languages)) < languages.index(column_of(source, languages))
    for row in read_rows(table, [target, source] if backwards else [source, target]):
        pair = Translation(id=row.id, first=row.texts[0], second=row.texts[1])
        if row.links:
            pair = add_gold_links(pair, "" if row.links == NO_LINKS else row.links, table, row.number)
        yield flip_languages(pair) if backwards else pair


def languages_in(file: File) -> list[str]:
    """Return the languages of the header."""
    header = next((line for _, line in file.lines()), "").split("\t")
    return [name for name in header[1:] if name != LINKS]


def column_of(language: str, names: Collection[str]) -> str:
    """Return the spelling of a language in a header, or "" if the header lacks it."""
    return next((spelling for spelling in spellings(language) if spelling in names), "")


def read_rows(file: File, languages: Sequence[str], *, partial: bool = False) -> Iterator[ParallelRow]:
    """Yield the rows that have a text in each of the languages, or in any of them with ``partial``.

    Raises DataError for broken lines and repeated ids.
    """
    enough = any if partial else all
    lines = file.lines()
    header = next(lines, (1, ""))[1].split("\t")
    positions = [_position(file, header, language) for language in languages]
    links = _links(file, header)
    ids: set[str] = set()
    for line_number, line in lines:
        row = line.split("\t")
        if len(row) != len(header):
            raise file.broken(line_number, f"{len(row)} columns", f"{len(header)}, as in the header")
        if not row[0] or row[0] in ids:
            raise file.broken(
                line_number, f"the id {row[0]!r} {'a second time' if row[0] else ''}", "a unique id"
            )
        ids.add(row[0])
        texts = tuple(row[position] if row[position].strip() else "" for position in positions)
        if enough(texts):
            yield ParallelRow(
                number=line_number, id=row[0], texts=texts, links=row[links] if links is not None else ""
            )


def verse_split(verse: str) -> Split:
    """Return the split of a verse, which depends only on its reference.

    It is the same in every language and table.
    """
    residue = crc32(verse.encode()) % HELD_OUT_ONE_IN
    splits: dict[int, Split] = {0: "test", 1: "dev"}
    return splits.get(residue, "train")


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


def _find_lines(folder: Folder, stem: str, source: str, target: str) -> list[File]:
    """Find first, second and optional alignment file of each parallel text, in this order of languages."""
    for codes in spelled_pairs(folder, f"{stem}.*-*.*", source, target):
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


def _find_split_last(folder: Folder, stem: str, source: str, target: str) -> list[File]:
    """Find the first and second file with XLM's names, given a folder and a split, as in bitext/train."""
    parent, _, split = stem.rpartition("/")
    for pair in spelled_pairs(folder, f"{parent}/*-*.*.{split}", source, target):
        sides = [folder.find([f"{parent}/{'-'.join(pair)}.{side}.{split}"]) for side in pair]
        if all(sides):
            return [side[0] for side in sides]
    return []


def read_lines(files: list[File]) -> Iterator[Translation]:
    """Yield the pairs of lines, without pairs that have an empty side.

    Ids are line numbers. Raises DataError for files of different lengths.
    """
    rows = zip_longest(*(file.lines() for file in files))
    for line_number, row in enumerate(rows, start=1):
        if None in row:
            raise _length_error(files, line_number)
        source, target, *links = (text for _, text in row)
        if source.strip() and target.strip():
            pair = Translation(id=str(line_number), first=source, second=target)
            yield add_gold_links(pair, links[0], files[2], line_number) if links else pair


def _find_gold(folder: Folder, stem: str, source: str, target: str) -> list[File]:
    """Find ``enfr.src-tgt`` and ``enfr.gold`` in this order of languages."""
    parent = stem.rpartition("/")[0]
    stems = [f"{parent}/{''.join(pair)}" for pair in product(spellings(source), spellings(target))]
    texts, links = (folder.find(f"{stem}.{end}" for stem in stems) for end in ("src-tgt", "gold"))
    return [*texts[:1], *links[:1]] if texts else []


def read_gold(files: list[File]) -> Iterator[Translation]:
    """Yield the pairs of lines ``a b ||| c d`` with their gold alignments, if any.

    Ids are line numbers.
    """
    for line_number, row in enumerate(zip_longest(*(file.lines() for file in files)), start=1):
        if None in row:
            raise _length_error(files, line_number)
        sides = row[0][1].split(BETWEEN)
        if len(sides) != 2 or not all(side.strip() for side in sides):
            raise files[0].broken(
                line_number,
                f"{len(sides)} sides in {row[0][1][:60]!r}",
                "two with words, as in 'a b ||| c d'",
            )
        pair = Translation(id=str(line_number), first=sides[0].strip(), second=sides[1].strip())
        yield add_gold_links(pair, row[1][1], files[1], line_number, first_is=1) if len(files) > 1 else pair


def _length_error(files: list[File], line_number: int) -> DataError:
    """Build the error for files of different lengths, which are read to their ends to count lines."""
    counts = [sum(1 for _ in file.lines()) for file in files]
    shortest = next(file for file, count in zip(files, counts, strict=True) if count < line_number)
    partner = next(file for file in files if file is not shortest)
    lengths = ", ".join(f"{file.name} has {count}" for file, count in zip(files, counts, strict=True))
    return shortest.broken(
        line_number,
        f"the file ends; {lengths} lines",
        f"the partner of line {line_number} of {partner.name}, and as many lines in each file",
        "Fetch or create these files again, together",
    )


def spelled_pairs(folder: Folder, pattern: str, source: str, target: str) -> list[tuple[str, str]]:
    """Return the spellings of two languages, joined by a hyphen, in the names of matching files."""
    names = [f".{file.base_name}" for file in folder.find([pattern])]
    pairs = product(spellings(source), spellings(target))
    return [pair for pair in pairs if any(f".{'-'.join(pair)}." in name for name in names)]


def _find_mined(folder: Folder, stem: str, source: str, target: str) -> list[File]:
    """Find the tables of mined text whose names have the languages in this order."""
    pairs = spelled_pairs(folder, f"{stem}.*-*.tsv", source, target)
    tables = (folder.find([f"{stem}.{'-'.join(pair)}.tsv"]) for pair in pairs)
    mined_tables = ([file for file in files if is_mined(file)] for files in tables)
    return next((files for files in mined_tables if files), [])


def is_mined(file: File) -> bool:
    """Return whether a table begins with a score instead of a header."""
    cells = next((line for _, line in file.lines()), "").split("\t")
    return len(cells) == 3 and _margin(cells[0]) is not None


def read_mined(file: File, *, min_margin: float) -> Iterator[Translation]:
    """Yield the pairs with a margin of at least ``min_margin``.

    Ids are line numbers. Raises DataError if every pair has a lower margin.
    """
    highest = float("-inf")
    for line_number, line in file.lines():
        cells = line.split("\t")
        margin = _margin(cells[0])
        if len(cells) != 3 or margin is None or not (cells[1].strip() and cells[2].strip()):
            raise file.broken(line_number, f"{line[:80]!r}", "a margin score, a text and its translation")
        highest = max(highest, margin)
        if margin >= min_margin:
            yield Translation(id=str(line_number), first=cells[1], second=cells[2])
    if float("-inf") < highest < min_margin:
        raise DataError(
            f"{file.name}: no pair has a margin of {min_margin:g} or more; the highest is {highest:g}. "
            f"Lower the corpus's margin, or fetch the file again."
        )


def _margin(text: str) -> float | None:
    try:
        margin = float(text)
    except ValueError:
        return None
    return margin if isfinite(margin) else None


def find_treebanks(folder: Folder, name: str, split: Split, source: str, target: str) -> list[File]:
    """Find the treebanks of this name (pud) of both languages, or none unless both exist."""
    sides = [folder.find(ud_paths(name, language, split)) for language in (source, target)]
    return [side[0] for side in sides] if name.isalnum() and all(sides) else []


def read_treebanks(files: list[File]) -> Iterator[Translation]:
    """Match the sentences by sent_id, in the order of the first file.

    Raises DataError if a sentence has no match.
    """
    source, target = files
    names = (source.name, target.name)
    for sides in match_by_id(read_conllu(source), read_conllu(target), names=names):
        texts = [text_comment(sentence) or detokenize(sentence.words) for sentence in sides]
        words = sides[0].words, sides[1].words
        yield Translation(id=sides[0].id, first=texts[0], second=texts[1], words=words)
