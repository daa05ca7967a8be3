"""Labelled sentence pairs as tab-separated rows, with a header or (XTREME) first, second, label without one.

Columns are found by their header, whichever of the names in use it has; quotes are ordinary characters.
Without an ``id`` column, examples are numbered from 1 within their language, so that rows of parallel corpora
have equal ids in all languages.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from isogloss.data.corpora import cell, with_mark
from isogloss.data.examples import SentencePair
from isogloss.data.files import File

FIRST = ("sentence1", "premise")
SECOND = ("sentence2", "hypo", "hypothesis")
LABEL = ("gold_label", "label")
LANGUAGE = "language"
ID = "id"


@dataclass(frozen=True, slots=True)
class _Columns:
    width: int
    first: int = 0
    second: int = 1
    label: int = 2
    language: int | None = None
    id: int | None = None


def read_pairs(file: File, language: str, labels: Mapping[str, str]) -> Iterator[SentencePair]:
    """Read the rows of one language; ``labels`` maps each spelling that may stand there to its label."""
    columns = _Columns(width=3)
    seen: set[str] = set()
    count = 0
    for number, line in file.lines():
        row = line.split("\t")
        if number == 1 and any(name in row for name in FIRST):
            columns = _header(file, row)
            continue
        if len(row) != columns.width:
            raise file.broken(
                number, f"{len(row)} columns in {line[:60]!r}", f"{columns.width}, split by tabs"
            )
        if columns.language is not None and row[columns.language] != language:
            continue
        count += 1
        label = labels.get(row[columns.label])
        if label is None:
            raise _no_label(file, number, row[columns.label], labels)
        name = str(count) if columns.id is None else _new_id(file, number, row[columns.id], seen)
        yield SentencePair(id=name, first=row[columns.first], second=row[columns.second], label=label)


def languages_in(file: File) -> list[str]:
    """Give the languages of a file with a language column, sorted; none where it has no such column."""
    found: set[str] = set()
    columns = _Columns(width=3)
    for number, line in file.lines():
        if number == 1 and any(name in line.split("\t") for name in FIRST):
            columns = _header(file, line.split("\t"))
        if columns.language is None:
            return []
        row = line.split("\t", columns.language + 1)
        if number > 1 and len(row) > columns.language:
            found.add(row[columns.language])
    return sorted(found)


def write_pairs(pairs: Iterable[SentencePair], corpus: str) -> Iterator[str]:
    """Give the rows in XTREME's layout: first, second, label; a header only where a text looks like one."""
    return with_mark(_rows(pairs, corpus))


def _rows(pairs: Iterable[SentencePair], corpus: str) -> Iterator[str]:
    for number, pair in enumerate(pairs):
        row = [cell(text, corpus, pair.id) for text in (pair.first, pair.second, pair.label)]
        if number == 0 and any(name in row for name in FIRST):
            yield f"{FIRST[0]}\t{SECOND[0]}\t{LABEL[0]}"
        yield "\t".join(row)


def _header(file: File, row: list[str]) -> _Columns:
    named = [name for name in row if name]
    if len(set(named)) < len(named):
        raise file.broken(1, f"a column twice in the header {', '.join(row)}", "each column once")
    return _Columns(
        width=len(row),
        first=_position(file, row, FIRST),
        second=_position(file, row, SECOND),
        label=_position(file, row, LABEL),
        language=row.index(LANGUAGE) if LANGUAGE in row else None,
        id=row.index(ID) if ID in row else None,
    )


def _new_id(file: File, number: int, name: str, seen: set[str]) -> str:
    if not name or name in seen:
        raise file.broken(number, f"the id {name!r}{' a second time' if name else ''}", "an id of its own")
    seen.add(name)
    return name


def _position(file: File, row: list[str], names: tuple[str, ...]) -> int:
    for name in names:
        if name in row:
            return row.index(name)
    raise file.broken(1, f"a header without {' or '.join(names)}: {', '.join(row)}", "that column")


def _no_label(file: File, number: int, label: str, labels: Mapping[str, str]) -> Exception:
    expected = f"one of {', '.join(labels)}"
    if label in ("-", ""):
        return file.broken(
            number, f"no label ({label!r})", expected, "Take the rows without a label out of the file"
        )
    return file.broken(number, f"label {label!r}", expected)
