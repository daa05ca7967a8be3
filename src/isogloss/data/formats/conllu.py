"""The format CoNLL-U, and the paths of the treebanks of Universal Dependencies.

https://universaldependencies.org/format.html: ten columns for each word, an empty line after each sentence.
Content that is not read (lemmas, features, multi-word ranges, empty nodes, enhanced graphs, comments) remains
in a sentence's ``lines`` and is written back unchanged.

A file to be labelled may have only words in its columns: ``read_blocks`` returns its sentences with every
line, including empty ones, and ``with_columns`` fills in columns.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter

from isogloss.core.errors import DataError
from isogloss.core.languages import spellings
from isogloss.data.corpus import TREEBANKS, Split, cannot_write, cell, unique_id
from isogloss.data.examples import ParsedSentence
from isogloss.data.files import File, is_unicode

UPOS = frozenset((
    "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT",
    "SCONJ", "SYM", "VERB", "X",
))  # fmt: skip
OLD_UPOS = frozenset({"CONJ"})
"""Tags of UD version 1, which such treebanks keep."""

COLUMNS = 10
NAMES = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
FORM = NAMES.index("FORM")
LEMMA = NAMES.index("LEMMA")
TAG = NAMES.index("UPOS")
HEAD = NAMES.index("HEAD")
RELATION = NAMES.index("DEPREL")
MISC = NAMES.index("MISC")
"""Column of ``SpaceAfter=No|…``."""

NOTHING = "_"

ROOT = "root"
"""Relation of the only word whose head is ``ROOT_HEAD``."""

ROOT_HEAD = "0"

WITH_KEYS = ("FEATS", "MISC")
"""Columns with keys and values."""

_WORD = re.compile(r"[1-9][0-9]{0,8}")
_HEAD = re.compile(r"0|[1-9][0-9]{0,8}")
_RANGE_OR_EMPTY = re.compile(r"[1-9][0-9]*-[1-9][0-9]*|[0-9]+\.[1-9][0-9]*")


Row = tuple[int, list[str]]
"""Line number and columns of a word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Unchanged lines and their words: a sentence, or the empty line after one."""

    number: int
    """Number of the first line."""
    lines: tuple[str, ...]
    rows: tuple[Row, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """Words of the sentence, or () for a block of comments or an empty line."""
        return tuple(columns[FORM] for _, columns in self.rows)

    @property
    def sent_id(self) -> str:
        """Id of the sentence, or "" without one."""
        return _comment(self.lines, "sent_id")


def read_blocks(file: File) -> Iterator[Block]:
    """Yield every line of a file, sentence by sentence.

    Raises DataError at a malformed line.
    """
    start = 1
    lines = list[str]()
    rows = list[Row]()
    for line_number, line in file.lines():
        if not line.strip():
            if lines:
                yield Block(number=start, lines=tuple(lines), rows=tuple(rows))
            yield Block(number=line_number, lines=(line,))
            start = line_number + 1
            lines = []
            rows = []
            continue
        lines.append(line)
        if not line.startswith("#"):
            rows += _row(file, line_number, line, len(rows) + 1)
    if lines:
        yield Block(number=start, lines=tuple(lines), rows=tuple(rows))


def read_sentences(file: File) -> Iterator[Block]:
    """Yield the sentences of a file without checking their tags and trees.

    Raises DataError for a sentence without words.
    """
    for block in read_blocks(file):
        if block.lines[0].strip():
            if not block.rows:
                expectation = "the words of the sentence below them"
                raise file.broken(block.number, "comments without words", expectation)
            yield block


def read_conllu(file: File) -> Iterator[ParsedSentence]:
    """Yield the sentences of a file with checked tags and trees.

    Additional empty lines are dropped. The id is the sent_id, or else the index of the sentence from 1. A
    repeated sent_id gets ``#2``, ``#3`` …. Raises DataError, with the line, for tags outside of UPOS and for
    heads that are not a tree.
    """
    counts: dict[str, int] = {}
    for count, block in enumerate(read_sentences(file), start=1):
        for row in block.rows:
            _check_row(file, row)
        _check_tree(file, block.rows)
        yield ParsedSentence(
            id=unique_id(block.sent_id or str(count), counts),
            words=block.words,
            tags=tuple(columns[TAG] for _, columns in block.rows),
            heads=tuple(int(columns[HEAD]) for _, columns in block.rows),
            relations=tuple(columns[RELATION] for _, columns in block.rows),
            lines=block.lines,
            where=f"{file.name}:{block.number}",
        )


def make_cell_reader(column: int | str) -> Callable[[Sequence[str]], str]:
    """Return a function from a row to its cell in a column, or to the value of a key as in ``MISC:NER``."""
    if isinstance(column, int):
        return itemgetter(column)
    name, _, key = column.partition(":")
    index = NAMES.index(name)
    return partial(_find_value, index, key) if key else itemgetter(index)


def _find_value(index: int, key: str, row: Sequence[str]) -> str:
    pairs = (part.partition("=") for part in row[index].split("|"))
    return next((value for part, _, value in pairs if part == key), NOTHING)


def is_column(column: int | str) -> bool:
    """Return whether CoNLL-U has a column, or a column with keys as in ``FEATS:Case``."""
    if isinstance(column, int):
        return -COLUMNS <= column < COLUMNS
    name, _, key = column.partition(":")
    return column in NAMES or (name in WITH_KEYS and bool(key))


def text_comment(sentence: ParsedSentence) -> str:
    """Return the sentence's text from its comment ``# text``, or "" without one."""
    return _comment(sentence.lines, "text")


def with_columns(lines: Sequence[str], columns: Mapping[int, Sequence[str]]) -> Iterator[str]:
    """Yield a sentence's lines with columns (by index from 0) filled in, one value for each word."""
    values = zip(*columns.values(), strict=True)
    for line in lines:
        cells = line.split("\t")
        if _WORD.fullmatch(cells[0]):
            for column, value in zip(columns, next(values), strict=True):
                cells[column] = value
        yield "\t".join(cells)


def with_misc(lines: Sequence[str], key: str, values: Sequence[str]) -> Iterator[str]:
    """Yield a sentence's lines with ``key=value`` in the last column of each word, after its other keys."""
    remaining = iter(values)
    for line in lines:
        cells = line.split("\t")
        if _WORD.fullmatch(cells[0]):
            parts = (part for part in cells[MISC].split("|") if part not in ("", NOTHING))
            other_parts = [part for part in parts if part.partition("=")[0] != key]
            cells[MISC] = "|".join([*other_parts, f"{key}={next(remaining)}"])
        yield "\t".join(cells)


def with_tree(example: ParsedSentence, heads: Sequence[int], relations: Sequence[str]) -> ParsedSentence:
    """Return the sentence with a different tree.

    ``write_conllu`` writes heads and relations into the sentence's own lines, whose other content, including
    the enhanced graph, stays. Raises ValueError unless each word has one head and one relation.
    """
    if len({len(example.words), len(heads), len(relations)}) > 1:
        raise ValueError(
            f"example {example.id!r}: {len(heads)} heads and {len(relations)} relations for "
            f"{len(example.words)} words."
        )
    return replace(example, heads=tuple(heads), relations=tuple(relations))


def write_conllu(sentences: Iterable[ParsedSentence], corpus: str) -> Iterator[str]:
    """Yield the lines of a file.

    If a sentence differs from its ``lines``, the sentence is written. Raises DataError for sentences that the
    format cannot represent.
    """
    for sentence in sentences:
        lines = list((_own_lines if sentence.lines else _new_lines)(sentence, corpus))
        _check_reads_back(lines, sentence, corpus)
        yield from lines
        yield ""


def _comment(lines: Iterable[str], key: str) -> str:
    for line in lines:
        name, _, value = line.removeprefix("#").partition("=")
        if line.startswith("#") and name.strip() == key and value.strip():
            return value.strip()
    return ""


def _row(file: File, line_number: int, line: str, position: int) -> list[Row]:
    """Return the word of a line, or an empty list for a multi-word range or an empty node."""
    columns = line.split("\t")
    if len(columns) != COLUMNS:
        raise file.broken(
            line_number, f"{len(columns)} columns in {line[:60]!r}", f"{COLUMNS}, split by tabs"
        )
    if _RANGE_OR_EMPTY.fullmatch(columns[0]):
        return []
    if not _WORD.fullmatch(columns[0]):
        expectation = "a word number (3), a range (3-4) or an empty node (3.1)"
        raise file.broken(line_number, f"ID {columns[0]!r}", expectation)
    if columns[0] != str(position):
        raise file.broken(line_number, f"word number {columns[0]}", f"{position}, the next of the sentence")
    if not columns[FORM]:
        raise file.broken(line_number, "an empty FORM", "the word")
    return [(line_number, columns)]


def _check_row(file: File, row: Row) -> None:
    line_number, columns = row
    if columns[TAG] not in UPOS and columns[TAG] not in OLD_UPOS:
        raise file.broken(line_number, f"UPOS {columns[TAG]!r}", f"one of {', '.join(sorted(UPOS))}")
    if not _HEAD.fullmatch(columns[HEAD]):
        raise file.broken(line_number, f"HEAD {columns[HEAD]!r}", "0 for the root, else the number of a word")
    if columns[RELATION] in ("", NOTHING):
        raise file.broken(line_number, f"DEPREL {columns[RELATION]!r}", "a relation such as nsubj")


def _check_tree(file: File, rows: Sequence[Row]) -> None:
    """Check that the heads are one tree: in range, one root with the relation root, no cycle."""
    heads = [int(columns[HEAD]) for _, columns in rows]
    roots = [line for (line, _), head in zip(rows, heads, strict=True) if head == 0]
    if len(roots) != 1:
        line = roots[1] if roots else rows[0][0]
        raise file.broken(line, f"{len(roots)} words with HEAD 0 in the sentence", "one root")
    for line, columns in rows:
        is_root = columns[HEAD] == ROOT_HEAD
        if is_root != (columns[RELATION].partition(":")[0] == ROOT):
            expectation = f"DEPREL {ROOT} for HEAD {ROOT_HEAD}, and only for it"
            raise file.broken(line, f"DEPREL {columns[RELATION]!r} with HEAD {columns[HEAD]}", expectation)
    state = [0] * (len(rows) + 1)  # Start of the walk that reached a word first, or 0.
    for start in range(1, len(rows) + 1):
        node = start
        while node and not state[node]:
            state[node] = start
            line, _ = rows[node - 1]
            node = heads[node - 1]
            if node > len(rows):
                raise file.broken(line, f"HEAD {node}", f"at most {len(rows)}, the last word")
        if node and state[node] == start:
            raise file.broken(rows[node - 1][0], "a word that depends on itself (a cycle)", "a tree")


def _check_reads_back(lines: list[str], sentence: ParsedSentence, corpus: str) -> None:
    """Raise DataError if the lines do not read back as the sentence."""
    text = "\n".join(lines)
    if not is_unicode(text):
        raise cannot_write(corpus, sentence.id, "half a surrogate pair in it. Remove it")
    file = File(f"{corpus}: cannot write example {sentence.id}", lambda: iter(text.split("\n")), str)
    sentences = list(read_conllu(file))
    if len(sentences) != 1 or sentences[0].lines != tuple(lines):
        raise _not_its_lines(sentence, corpus)
    name = sentence.id if sentence.lines else sentences[0].id  # The id may differ from the lines' sent_id.
    if replace(sentences[0], id=name, lines=sentence.lines) != sentence:
        raise _not_its_lines(sentence, corpus)


def _own_lines(sentence: ParsedSentence, corpus: str) -> Iterator[str]:
    columns: dict[int, Sequence[str]] = {
        FORM: sentence.words,
        TAG: sentence.tags,
        HEAD: [str(head) for head in sentence.heads],
        RELATION: sentence.relations,
    }
    rows = [row for line in sentence.lines if _WORD.fullmatch((row := line.split("\t"))[0])]
    has_values = all(len(values) == len(rows) for values in columns.values())
    if not has_values or any(len(row) != COLUMNS for row in rows):
        raise _not_its_lines(sentence, corpus)
    return with_columns(sentence.lines, columns)


def _new_lines(sentence: ParsedSentence, corpus: str) -> Iterator[str]:
    yield f"# sent_id = {cell(sentence.id, corpus, sentence.id)}"
    yield f"# text = {cell(' '.join(sentence.words), corpus, sentence.id)}"
    columns = (sentence.words, sentence.tags, sentence.heads, sentence.relations)
    if len({len(column) for column in columns}) != 1:
        raise cannot_write(corpus, sentence.id, "numbers of words, tags, heads and relations differ")
    for position, (word, tag, head, relation) in enumerate(zip(*columns, strict=True), start=1):
        yield f"{position}\t{cell(word, corpus, sentence.id)}\t_\t{tag}\t_\t_\t{head}\t{relation}\t_\t_"


def _not_its_lines(sentence: ParsedSentence, corpus: str) -> DataError:
    return DataError(
        f"{corpus}: cannot write example {sentence.id}: its lines do not have its {len(sentence.words)} "
        f"words; expected a line of ten columns for each word. Remove lines to create new ones."
    )


def ud_paths(treebank: str, language: str, split: Split) -> list[str]:
    """Return the path patterns of a treebank, by name or folder (``UD_*/sme_giella-ud-test.conllu``)."""
    # Treebanks have no scripts in their names.
    names = [name for name in spellings(language) if name == language or name.isalpha()]
    folders = [treebank] if "/" in treebank else [f"{parent}UD_*" for parent in TREEBANKS]
    suffix = "*" if "/" in treebank else f"_{treebank.lower()}"
    return [f"{folder}/{name}{suffix}-ud-{split}.conllu" for folder in folders for name in names]
