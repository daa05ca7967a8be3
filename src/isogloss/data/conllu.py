"""CoNLL-U, the format of Universal Dependencies: ten columns a word, an empty line after each sentence.

https://universaldependencies.org/format.html. What is not read (lemmas, features, multi-word ranges,
empty nodes, enhanced graphs, comments) stays in a sentence's ``lines`` and is written back untouched.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from isogloss.core.errors import DataError
from isogloss.data.corpora import cell, is_unicode, not_writable, own_id
from isogloss.data.examples import ParsedSentence
from isogloss.data.files import File

UPOS = frozenset((
    "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT",
    "SCONJ", "SYM", "VERB", "X",
))  # fmt: skip
OLD_UPOS = frozenset({"CONJ"})
"""Of UD version 1; kept as found where a treebank of that version is named."""

COLUMNS = 10
FORM, TAG, HEAD, RELATION = 1, 3, 6, 7
"""Columns that are read, counted from 0."""

_WORD = re.compile(r"[1-9][0-9]{0,8}")
_HEAD = re.compile(r"0|[1-9][0-9]{0,8}")
_RANGE_OR_EMPTY = re.compile(r"[1-9][0-9]*-[1-9][0-9]*|[0-9]+\.[1-9][0-9]*")


@dataclass(frozen=True, slots=True)
class _Word:
    line_number: int
    form: str
    tag: str
    head: int
    relation: str


def read_conllu(file: File) -> Iterator[ParsedSentence]:
    """Read the sentences. Further empty lines between two sentences are not kept.

    The id is the sent_id, else the sentence's number; a sent_id that comes again gets ``#2``, ``#3`` ….
    """
    seen: dict[str, int] = {}
    for count, block in enumerate(_blocks(file), start=1):
        lines = tuple(line for _, line in block)
        name = own_id(_sent_id(lines) or str(count), seen)
        words = _words(file, block)
        _check_tree(file, words)
        yield ParsedSentence(
            id=name,
            words=tuple(word.form for word in words),
            tags=tuple(word.tag for word in words),
            heads=tuple(word.head for word in words),
            relations=tuple(word.relation for word in words),
            lines=lines,
        )


def text_comment(sentence: ParsedSentence) -> str:
    """Return the sentence as it stood in running text, by its comment ``# text``; empty where it has none."""
    named = (line.removeprefix("#").partition("=") for line in sentence.lines if line.startswith("#"))
    return next((value.strip() for name, _, value in named if name.strip() == "text"), "")


def with_tree(
    example: ParsedSentence, heads: Sequence[int], relations: Sequence[str], *, tags: Sequence[str] = ()
) -> ParsedSentence:
    """Return the sentence with another tree, and with other tags where any are given.

    ``write_conllu`` puts them into the sentence's own lines; all else in these stays, the enhanced graph
    too. ValueError unless each word gets one of each.
    """
    lengths = {len(example.words), len(heads), len(relations), len(tags or example.words)}
    if len(lengths) > 1:
        raise ValueError(
            f"example {example.id!r}: {len(heads)} heads, {len(relations)} relations and {len(tags)} tags "
            f"for {len(example.words)} words."
        )
    return replace(example, heads=tuple(heads), relations=tuple(relations), tags=tuple(tags) or example.tags)


def write_conllu(sentences: Iterable[ParsedSentence], corpus: str) -> Iterator[str]:
    """Give the lines of a file. Where a sentence differs from its ``lines``, the sentence counts."""
    for sentence in sentences:
        lines = list((_lines if sentence.lines else _new_lines)(sentence, corpus))
        _check_reads_back(lines, sentence, corpus)
        yield from lines
        yield ""


def _blocks(file: File) -> Iterator[list[tuple[int, str]]]:
    block: list[tuple[int, str]] = []
    for number, line in file.lines():
        if line:
            block.append((number, line))
        elif block:
            yield block
            block = []
    if block:
        yield block


def _sent_id(lines: Iterable[str]) -> str:
    for line in lines:
        name, is_there, value = line.removeprefix("#").partition("=")
        if is_there and line.startswith("#") and name.strip() == "sent_id" and value.strip():
            return value.strip()
    return ""


def _words(file: File, block: list[tuple[int, str]]) -> list[_Word]:
    words: list[_Word] = []
    for number, line in block:
        if line.startswith("#"):
            continue
        columns = line.split("\t")
        if len(columns) != COLUMNS:
            raise file.broken(number, f"{len(columns)} columns in {line[:60]!r}", f"{COLUMNS}, split by tabs")
        if _WORD.fullmatch(columns[0]):
            words.append(_word(file, number, columns, len(words) + 1))
        elif not _RANGE_OR_EMPTY.fullmatch(columns[0]):
            raise file.broken(
                number, f"ID {columns[0]!r}", "a word number (3), a range (3-4) or an empty node (3.1)"
            )
    if not words:
        raise file.broken(block[0][0], "comments without words", "the words of the sentence below them")
    return words


def _word(file: File, number: int, columns: list[str], position: int) -> _Word:
    if columns[0] != str(position):
        raise file.broken(number, f"word number {columns[0]}", f"{position}, the next of the sentence")
    form, tag, head, relation = columns[FORM], columns[TAG], columns[HEAD], columns[RELATION]
    if not form:
        raise file.broken(number, "an empty FORM", "the word")
    if tag not in UPOS and tag not in OLD_UPOS:
        raise file.broken(number, f"UPOS {tag!r}", f"one of {', '.join(sorted(UPOS))}")
    if not _HEAD.fullmatch(head):
        raise file.broken(number, f"HEAD {head!r}", "0 for the root, else the number of a word")
    if relation in ("", "_"):
        raise file.broken(number, f"DEPREL {relation!r}", "a relation such as nsubj")
    return _Word(line_number=number, form=form, tag=tag, head=int(head), relation=relation)


def _check_tree(file: File, words: list[_Word]) -> None:
    """Check that the heads are one tree: in range, one root, no cycle."""
    roots = [word.line_number for word in words if word.head == 0]
    if len(roots) != 1:
        where = roots[1] if roots else words[0].line_number
        raise file.broken(where, f"{len(roots)} words with HEAD 0 in the sentence", "one root")
    state = [0] * (len(words) + 1)  # the walk that reached a word first; 0: none yet
    for start in range(1, len(words) + 1):
        node = start
        while node and not state[node]:
            state[node] = start
            word = words[node - 1]
            if word.head > len(words):
                raise file.broken(
                    word.line_number, f"HEAD {word.head}", f"at most {len(words)}, the last word"
                )
            node = word.head
        if node and state[node] == start:
            raise file.broken(words[node - 1].line_number, "a word that is below itself (a cycle)", "a tree")


def _check_reads_back(lines: list[str], sentence: ParsedSentence, corpus: str) -> None:
    """Check that a reader finds the very sentence in its lines; DataError where the format cannot hold it."""
    text = "\n".join(lines)
    if not is_unicode(text):
        raise not_writable(corpus, sentence.id, "half a surrogate pair in it. Take it out")
    file = File(f"{corpus}: cannot write example {sentence.id}", lambda: iter(text.split("\n")), str)
    read = list(read_conllu(file))
    same = len(read) == 1 and read[0].lines == tuple(lines)
    name = sentence.id if sentence.lines else read[0].id if read else ""  # an id may be none of its lines'
    if not same or replace(read[0], id=name, lines=sentence.lines) != sentence:
        raise _not_its_lines(sentence, corpus)


def _lines(sentence: ParsedSentence, corpus: str) -> Iterator[str]:
    position = 0
    for line in sentence.lines:
        columns = line.split("\t")
        if line.startswith("#") or not _WORD.fullmatch(columns[0]):
            yield line
            continue
        if position >= _length(sentence) or len(columns) != COLUMNS:
            raise _not_its_lines(sentence, corpus)
        columns[FORM] = sentence.words[position]
        columns[TAG] = sentence.tags[position]
        columns[HEAD] = str(sentence.heads[position])
        columns[RELATION] = sentence.relations[position]
        position += 1
        yield "\t".join(columns)
    if position != len(sentence.words):
        raise _not_its_lines(sentence, corpus)


def _length(sentence: ParsedSentence) -> int:
    return min(map(len, (sentence.words, sentence.tags, sentence.heads, sentence.relations)))


def _new_lines(sentence: ParsedSentence, corpus: str) -> Iterator[str]:
    yield f"# sent_id = {cell(sentence.id, corpus, sentence.id)}"
    yield f"# text = {cell(' '.join(sentence.words), corpus, sentence.id)}"
    if len({*map(len, (sentence.words, sentence.tags, sentence.heads, sentence.relations))}) != 1:
        raise not_writable(corpus, sentence.id, "words, tags, heads and relations are not as many")
    columns = zip(sentence.words, sentence.tags, sentence.heads, sentence.relations, strict=True)
    for position, (word, tag, head, relation) in enumerate(columns, start=1):
        yield f"{position}\t{cell(word, corpus, sentence.id)}\t_\t{tag}\t_\t_\t{head}\t{relation}\t_\t_"


def _not_its_lines(sentence: ParsedSentence, corpus: str) -> DataError:
    return DataError(
        f"{corpus}: cannot write example {sentence.id}: its lines do not have its {len(sentence.words)} "
        f"words; expected a line of ten columns a word. Leave lines empty to have them made anew."
    )
