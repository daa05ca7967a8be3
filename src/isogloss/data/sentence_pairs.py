"""Labelled sentence pairs, read from the rows of a file and written as tab-separated rows.

Without ids of their own, examples are numbered from 1 within their language, so that rows of parallel corpora
have equal ids in all languages.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from isogloss.core.errors import DataError, did_you_mean
from isogloss.data.corpora import cell, labelled, with_mark
from isogloss.data.examples import SentencePair
from isogloss.data.files import File
from isogloss.data.pair_rows import Header, Row, is_header, named, read_rows

HEADER = Header()

NONE = ("-", "", None)
"""What stands for no label."""


def read_pairs(
    file: File,
    part: str,
    labels: Mapping[str, str],
    header: Header = HEADER,
    *,
    translated: bool = False,
    unlabelled: bool = False,
) -> Iterator[SentencePair]:
    """Read the rows of one part (a language); ``labels`` maps each spelling of a label to it.

    Only where ``unlabelled`` may a file have no labels at all: they are empty texts then. Rows that lost
    their label in translation (XTREME's files have some) are left out; they count as rows all the same.
    """
    left_out = _left_out(labels, header, translated=translated)
    for row in read_rows(file, part, header, translated=translated):
        if left_out(row):
            continue
        if row.label is None and not unlabelled:
            raise _no_labels(file, header)
        label = "" if row.label is None else labels.get(row.label)
        if label is None:
            raise _no_label(file, row, labels)
        yield SentencePair(id=row.id, first=row.first, second=row.second, label=label)


def count_left_out(
    file: File, part: str, labels: Mapping[str, str], header: Header = HEADER, *, translated: bool = False
) -> int:
    """Count the rows of one part that ``read_pairs`` leaves out for want of a label."""
    left_out = _left_out(labels, header, translated=translated)
    return sum(left_out(row) for row in read_rows(file, part, header, translated=translated))


def _left_out(labels: Mapping[str, str], header: Header, *, translated: bool) -> Callable[[Row], bool]:
    if translated:
        return lambda row: row.label is not None and row.label not in labels
    return lambda row: row.label in header.left_out


def languages_in(file: File) -> Iterator[str]:
    """Give each language of a file as it first comes; none where the file has no column for it."""
    found: set[str] = set()
    place: int | None = None
    for number, line in file.lines():
        if number == 1 and is_header(line.split("\t"), HEADER):
            place = named(file, line.split("\t"), HEADER).part
        if place is None:
            return
        row = line.split("\t", place + 1)
        if number > 1 and len(row) > place and row[place] not in found:
            found.add(row[place])
            yield row[place]


def write_pairs(pairs: Iterable[SentencePair], corpus: str) -> Iterator[str]:
    """Give the rows in XTREME's layout: first, second, label; a header only where a text looks like one."""
    return with_mark(_nameless(pairs, corpus))


def _nameless(pairs: Iterable[SentencePair], corpus: str) -> Iterator[str]:
    for number, pair in enumerate(pairs):
        row = [cell(text, corpus, pair.id) for text in (pair.first, pair.second, pair.label)]
        if number == 0 and is_header(row, HEADER):
            yield f"{HEADER.first[0]}\t{HEADER.second[0]}\t{HEADER.label[0]}"
        yield "\t".join(row)


def write_table(
    pairs: Iterable[SentencePair], corpus: str, header: Header, spelled: Mapping[str, str]
) -> Iterator[str]:
    """Give a header and the rows, ids among them where the corpus has a column for them."""
    ids = header.id[:1]
    yield "\t".join([*ids, header.first[0], header.second[0], header.label[0]])
    for pair in labelled(spelled, pairs, corpus):
        texts = (*(pair.id for _ in ids), pair.first, pair.second, spelled[pair.label])
        yield "\t".join(cell(text, corpus, pair.id) for text in texts)


def _no_labels(file: File, header: Header) -> DataError:
    return file.broken(
        1,
        f"a header without {' or '.join(header.label)}, or rows of two texts alone",
        "labels: only a test split may lack them",
        "Take the official file, which has them",
    )


def _no_label(file: File, row: Row, labels: Mapping[str, str]) -> DataError:
    expected = f"one of {', '.join(labels)}"
    if row.label in NONE:
        advice = "Take the rows without a label out of the file"
        return file.broken(row.number, f"no label ({row.label!r})", expected, advice)
    near = did_you_mean(row.label or "", labels).strip()
    return file.broken(row.number, f"label {row.label!r}", expected, f"{near} Correct the line".strip())
