"""Labelled pairs of texts, in rows split by tabs or a JSON object a line (.jsonl).

Columns are found by their header, whichever of the names in use it has; quotes are ordinary characters.
Without a header the columns are first, second, label; in XTREME's files of translations, the first two are
repeated in the language they were written in: first, second, first translated, second translated, label.
Without ids of their own, examples are numbered from 1 within their language, so that rows of parallel corpora
have equal ids in all languages.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from isogloss.core.errors import DataError, did_you_mean
from isogloss.core.languages import spellings
from isogloss.data.corpus import (
    ENGLISH,
    Layouts,
    Source,
    Split,
    cell,
    is_translation,
    labelled,
    locate,
    missing,
    nonempty,
    not_english,
    only,
    paths,
    unique_id,
    with_byte_order_mark,
)
from isogloss.data.examples import Example, SentencePair
from isogloss.data.files import File, Folder, numbered_objects, some


@dataclass(frozen=True, kw_only=True)
class Header:
    """Column names that a corpus uses in the header of its files."""

    first: tuple[str, ...] = ("sentence1", "premise")
    second: tuple[str, ...] = ("sentence2", "hypo", "hypothesis")
    label: tuple[str, ...] = ("gold_label", "label")
    id: tuple[str, ...] = ("id",)
    part: str = "language"
    """Column to filter by; files without it are read whole."""
    left_out: tuple[str, ...] = ()
    """Labels of rows without agreement among annotators, which are skipped and counted."""


HEADER = Header()

NONE = ("-", "", None)
"""Spellings of a missing label."""


@dataclass(frozen=True, kw_only=True)
class PairCorpus:
    """A corpus of labelled text pairs."""

    name: str
    tasks: tuple[str, ...]
    about: str
    url: str
    licence: str
    labels: Mapping[str, str]
    """Labels by spelling."""
    layouts: Layouts
    translations: Layouts = field(default_factory=dict)
    all_languages: Layouts = field(default_factory=dict)
    """Files of all languages, with a language column; preferred where they have the language."""
    header: Header = HEADER
    parts: Mapping[Split, str] = field(default_factory=dict)
    """Names of the splits in a file of all of them, in the column ``header.part``."""
    unlabelled: tuple[Split, ...] = ()
    """Splits that may lack labels: such a file can be predicted, not scored."""
    after_colon: str = ""
    collection: str = ""
    """Part of the corpus to read, where it has several."""

    def path(self, language: str, split: Split) -> str:
        """Return the path of a file of one language, or of a translation."""
        translated = paths(self.translations, language, split) if is_translation(language) else []
        return (*translated, f"{self.name}/{split}-{language}.tsv")[0]

    def find(self, folder: Folder, language: str, split: Split) -> list[File]:
        """Find the file of a split: the one of all languages if it has this one, else the language's own."""
        if self.translations and is_translation(language):
            return locate(folder, self.name, self.translations, language, split)
        together = folder.find(self.all_languages.get(split, ()))
        spelled = spellings(language)
        if together and any(one in spelled for one in languages_in(together[0])):  # looks no further than it
            return together
        layouts = self._layouts()
        own = folder.find(paths(layouts, language, split))
        if own:
            return own
        if together:
            there = sorted(languages_in(together[0]))
            raise DataError(
                f"{together[0].name}: no rows of language {language!r}.{did_you_mean(language, there)} "
                f"It has: {some(there)}. Choose one of these, or add a file {self.path(language, split)}."
            )
        raise (not_english if self._is_english() else missing)(folder, self.name, layouts, language, split)

    def files(self, source: Source, language: str, split: Split) -> list[File]:
        """Return the files of one split."""
        return source.files(self, language, split)

    def read(self, source: Source, language: str, split: Split) -> Iterator[SentencePair]:
        """Read the pairs of one language that have a label; ids are the file's, else row numbers."""
        file = self.files(source, language, split)[0]
        return nonempty(self.read_file(file, language, split), file.name)

    def read_file(self, file: File, language: str, split: Split) -> Iterator[SentencePair]:
        """Read the pairs of one file.

        Rows that lost their label in translation (XTREME's files have some) are left out; they count as rows
        all the same. Labels are empty texts where a test file has none at all. DataError for a blank text in
        a row to measure on.
        """
        for row in self._rows(file, language, split):
            if self._is_left_out(row, language):
                continue
            if row.label is None and split not in self.unlabelled:
                raise _no_labels(file, self.header)
            label = "" if row.label is None else self.labels.get(row.label)
            if label is None:
                raise _no_label(file, row, self.labels)
            # Translated training data has rows that lost a text; whoever measures on one measures nothing.
            if split != "train" and not (row.first.strip() and row.second.strip()):
                raise file.broken(
                    row.number, "a text that is blank", "two texts", "Give it, or take the row out"
                )
            yield SentencePair(id=row.id, first=row.first, second=row.second, label=label)

    def left_out(self, source: Source, language: str, split: Split) -> int:
        """Count the rows that are not read: annotators did not agree, or a translation lost the label."""
        if not (self.header.left_out or self._repeats(language)):
            return 0
        file = self.files(source, language, split)[0]
        return sum(self._is_left_out(row, language) for row in self._rows(file, language, split))

    def write(self, examples: Iterable[Example], language: str) -> Iterator[str]:  # noqa: ARG002
        """Yield the lines of a table; XTREME's layout for multilingual corpora."""
        spelled: dict[str, str] = {}
        for spelling, label in self.labels.items():
            spelled.setdefault(label, spelling)
        pairs = labelled(spelled, only(SentencePair, examples, self.name), self.name)
        if self._is_english():
            return _table(pairs, self.name, self.header, spelled)
        return with_byte_order_mark(_nameless(pairs, self.name))

    def _layouts(self) -> Layouts:
        """Return the layouts of the collection that is read."""
        return {
            split: tuple(one.replace("{collection}", self.collection) for one in layouts)
            for split, layouts in self.layouts.items()
        }

    def _is_english(self) -> bool:
        """Return whether the official files are English only."""
        return self.layouts["test"][0].endswith(ENGLISH)

    def _rows(self, file: File, language: str, split: Split) -> Iterator["_Row"]:
        part = (self.parts[split],) if split in self.parts else spellings(language)
        return _rows(file, part, self.header, translated=self._repeats(language))

    def _is_left_out(self, row: "_Row", language: str) -> bool:
        if self._repeats(language):
            return row.label is not None and row.label not in self.labels
        return row.label in self.header.left_out

    def _repeats(self, language: str) -> bool:
        """Return whether rows may also have the texts in their original language."""
        return bool(self.translations) and is_translation(language)


@dataclass(frozen=True, slots=True)
class _Row:
    """A row: line number, id, texts and raw label."""

    number: int
    id: str
    first: str
    second: str
    label: str | None
    """None where the file has no labels at all."""


@dataclass(frozen=True, slots=True)
class _Columns:
    """Positions of the cells in a row."""

    width: int
    first: int = 0
    second: int = 1
    label: int | None = None
    part: int | None = None
    id: int | None = None


_NAMELESS = {3: _Columns(width=3, label=2), 2: _Columns(width=2)}
"""Columns by width for files without a header; XTREME removes the labels of tests."""

_TRANSLATED = _NAMELESS | {5: _Columns(5, first=2, second=3, label=4), 4: _Columns(4, first=2, second=3)}


def languages_in(file: File) -> Iterator[str]:
    """Yield the languages of a file in order of appearance; none without a language column."""
    found: set[str] = set()
    place: int | None = None
    for number, line in file.lines():
        if number == 1 and _is_header(line.split("\t"), HEADER):
            place = _named(file, line.split("\t"), HEADER).part
        if place is None:
            return
        row = line.split("\t", place + 1)
        if number > 1 and len(row) > place and row[place] not in found:
            found.add(row[place])
            yield row[place]


def _nameless(pairs: Iterable[SentencePair], corpus: str) -> Iterator[str]:
    for number, pair in enumerate(pairs):
        row = [cell(text, corpus, pair.id) for text in (pair.first, pair.second, str(pair.label))]
        if number == 0 and _is_header(row, HEADER):
            yield f"{HEADER.first[0]}\t{HEADER.second[0]}\t{HEADER.label[0]}"
        yield "\t".join(row)


def _table(
    pairs: Iterable[SentencePair], corpus: str, header: Header, spelled: Mapping[str, str]
) -> Iterator[str]:
    """Yield a header and rows, with ids where the corpus has an id column."""
    ids = header.id[:1]
    yield "\t".join([*ids, header.first[0], header.second[0], header.label[0]])
    for pair in pairs:
        texts = (*(pair.id for _ in ids), pair.first, pair.second, spelled[str(pair.label)])
        yield "\t".join(cell(text, corpus, pair.id) for text in texts)


def _rows(file: File, part: tuple[str, ...], header: Header, *, translated: bool = False) -> Iterator[_Row]:
    """Read the rows of one part, by any of its names, numbered from 1 where they have no ids of their own.

    An id that comes again gets ``#2``, ``#3`` …. ``translated`` files may repeat the texts in the language
    they were written in.
    """
    if file.plain_name.endswith(".jsonl"):
        yield from _objects(file, header)
        return
    columns, count, seen = _NAMELESS[3], 0, dict[str, int]()
    for number, line in file.lines():
        row = line.split("\t")
        if number == 1 and _is_header(row, header):
            columns = _named(file, row, header)
            continue
        if number == 1:
            columns = (_TRANSLATED if translated else _NAMELESS).get(len(row), columns)
        if len(row) != columns.width and translated and number > 1:
            row = [""] * columns.width  # XTREME's translations have such rows: they have no label then
        if len(row) != columns.width:
            raise file.broken(
                number, f"{len(row)} columns in {line[:60]!r}", f"{columns.width}, split by tabs"
            )
        if columns.part is None or row[columns.part] in part:
            count += 1
            yield _Row(
                number=number,
                id=str(count) if columns.id is None else _unique(file, number, row[columns.id], seen),
                first=row[columns.first],
                second=row[columns.second],
                label=None if columns.label is None else row[columns.label],
            )


def _is_header(row: list[str], header: Header) -> bool:
    """Return whether a row is a header."""
    return any(name in row for name in header.first)


def _named(file: File, row: list[str], header: Header) -> _Columns:
    """Find the columns that a header names; DataError without both texts."""
    first, second = _place(row, header.first), _place(row, header.second)
    if first is None or second is None:
        found = f"a header without {' or '.join(header.second)}: {', '.join(row)}"
        raise file.broken(1, found, "that column")
    names = [name for name in row if name]
    if len(set(names)) < len(names):
        raise file.broken(1, f"a column twice in the header {', '.join(row)}", "each column once")
    return _Columns(
        width=len(row),
        first=first,
        second=second,
        label=_place(row, header.label),
        part=_place(row, (header.part,)),
        id=_place(row, header.id),
    )


def _place(row: list[str], names: tuple[str, ...]) -> int | None:
    return next((row.index(name) for name in names if name in row), None)


def _objects(file: File, header: Header) -> Iterator[_Row]:
    seen: dict[str, int] = {}
    for number, _, thing in numbered_objects(file):
        name = _value(thing, header.id) or str(number)
        yield _Row(
            number=number,
            id=unique_id(name, seen),
            first=_text(file, number, thing, header.first),
            second=_text(file, number, thing, header.second),
            label=_value(thing, header.label),
        )


def _value(thing: dict[str, object], names: tuple[str, ...]) -> str | None:
    value = next((thing[name] for name in names if name in thing), None)
    return value if isinstance(value, str) else None


def _text(file: File, number: int, thing: dict[str, object], names: tuple[str, ...]) -> str:
    text = _value(thing, names)
    if text is None:
        there = ", ".join(map(repr, thing))
        raise file.broken(number, f"no text {' or '.join(names)} among {there}", "that text")
    return text


def _unique(file: File, number: int, name: str, seen: dict[str, int]) -> str:
    if not name:
        raise file.broken(number, "an empty id", "one of the pair's own")
    return unique_id(name, seen)


def _no_labels(file: File, header: Header) -> DataError:
    return file.broken(
        1,
        f"a header without {' or '.join(header.label)}, or rows of two texts alone",
        "labels: only a test split may lack them",
        "Take the official file, which has them",
    )


def _no_label(file: File, row: _Row, labels: Mapping[str, str]) -> DataError:
    expected = f"one of {', '.join(labels)}"
    if row.label in NONE:
        advice = "Take the rows without a label out of the file"
        return file.broken(row.number, f"no label ({row.label!r})", expected, advice)
    near = did_you_mean(row.label or "", labels).strip()
    return file.broken(row.number, f"label {row.label!r}", expected, f"{near} Correct the line".strip())
