"""Bitext: parallel text of two languages, from a collection of files in any of several forms."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from isogloss.core.errors import ConfigError, DataError
from isogloss.data.corpora import SPLITS, Split, cell, not_writable, only, some_at_least
from isogloss.data.examples import Example, Translation
from isogloss.data.files import File, Folder
from isogloss.data.layouts import some
from isogloss.data.parallel_text import (
    LEAST_MARGIN,
    LINKS,
    find_gold,
    find_lines,
    find_mined,
    find_split_last,
    find_treebanks,
    is_mined,
    languages_in,
    read_gold,
    read_lines,
    read_mined,
    read_rows,
    read_treebanks,
    verse_split,
)
from isogloss.data.word_links import NO_LINKS, flipped, format_links, linked

Whole = Literal["", "train", "dev", "test", "by-verse"]

WHOLES: dict[str, Whole] = {
    "bible": "by-verse",
    "tatoeba": "test",
    "tico19": "test",
    "word-alignment": "test",
}


ALSO: dict[Split, tuple[str, ...]] = {"train": ("train", "all"), "dev": ("dev", "valid"), "test": ("test",)}
"""What files call the splits, after isogloss's own name for it: XLM and fairseq say valid."""

PUD = "pud"
"""The collection of the Parallel UD treebanks; they are test sets."""


@dataclass(frozen=True, slots=True)
class _Text:
    """One parallel text: its files, and its pairs with ids that are unique in it."""

    files: list[File]
    read: Callable[[], Iterator[Translation]]


@dataclass(frozen=True, kw_only=True)
class Bitext:
    """Bitext: parallel text of two languages, written ``en-fr``, from one collection.

    A collection is a folder below the data folder with tables, pairs of files or tables of mined text in it
    (all ``parallel_text``), or the name of treebanks that are parallel: pud. The pair is found in either
    order. Files named for a split (``en-fr.dev.tsv``, ``dev.en-fr.en``, ``en-fr.en.valid``) are that split. A
    collection without such names is one whole: the Bible is split by verse, known test sets are test,
    anything else is train.
    """

    name: ClassVar[str] = "bitext"
    tasks: ClassVar[tuple[str, ...]] = ("bitext",)
    about: ClassVar[str] = __doc__
    url: ClassVar[str] = "https://opus.nlpl.eu"
    licence: ClassVar[str] = "that of the files"
    after_colon: ClassVar[str] = "collection"

    collection: str = "bitext"
    """Folder below the data folder: bible, tatoeba, tico19, word-alignment, or one of your own; or pud, the
    parallel treebanks of Universal Dependencies."""

    whole: Whole = ""
    """What a collection is whose files name no split; empty: test for known test sets, else train."""

    margin: float = LEAST_MARGIN
    """Mined pairs (WikiMatrix) with a lower margin score are left out."""

    def path(self, language: str, split: Split) -> str:
        """Give the place of a table of the two languages."""
        return f"{self.collection}/{language}.{split}.tsv"

    def files(self, folder: Folder, language: str, split: Split) -> list[File]:
        """Find all files of the pair: tables, or both sides and alignments."""
        texts, _ = self._texts(folder, language, split)
        return [file for text in texts for file in text.files]

    def read(self, folder: Folder, language: str, split: Split) -> Iterator[Translation]:
        """Read the pairs; ids are a table's or line numbers, with the file's name if there are several."""
        texts, by_verse = self._texts(folder, language, split)
        pairs = _numbered(texts)
        if by_verse:
            pairs = (pair for pair in pairs if verse_split(pair.id) == split)
        return some_at_least(pairs, texts[0].files[0].name)

    def write(self, examples: Iterable[Example], language: str) -> Iterator[str]:
        """Give the lines of a table of the two languages and their links."""
        first, second = two_languages(language)
        yield f"id\t{first}\t{second}\t{LINKS}"
        seen: set[str] = set()
        for pair in only(Translation, examples, self.name):
            texts = [cell(text, self.name, pair.id) for text in (pair.id, pair.first, pair.second)]
            if not all(text.strip() for text in texts):
                raise not_writable(self.name, repr(pair.id), "a text is empty. Leave it out")
            if pair.id in seen:
                raise not_writable(self.name, repr(pair.id), "this id a second time; expected one of its own")
            seen.add(pair.id)
            yield "\t".join([*texts, format_links(pair, self.name)])

    def _texts(self, folder: Folder, language: str, split: Split) -> tuple[list[_Text], bool]:
        """Find the texts of a split, and tell whether their verses are still to be split."""
        first, second = two_languages(language)
        named = {name: self._named(folder, language, name) for name in SPLITS}
        if named[split]:
            return named[split], False
        if any(named.values()):
            raise self._no_split(folder, language, split, [name for name in SPLITS if named[name]])
        texts = self._find(folder, [f"{self.collection}/*"], first, second)
        if not texts:
            raise self._missing(folder, language, first, second)
        whole = self.whole or WHOLES.get(self.collection, "train")
        if whole not in ("by-verse", split):
            raise self._no_split(folder, language, split, [whole])
        return texts, whole == "by-verse"

    def _named(self, folder: Folder, language: str, split: Split) -> list[_Text]:
        """Find the texts whose files are named for a split."""
        first, second = two_languages(language)
        found = self._find(folder, self._stems(language, split), first, second)
        return found or _treebanks(folder, self.collection, split, first, second)

    def _stems(self, language: str, split: Split) -> list[str]:
        first, second = two_languages(language)
        pairs = (f"{first}-{second}", f"{second}-{first}")
        own = [f"{pair}.{split}" for pair in pairs]
        ends = [*own, *(end for name in ALSO[split] for end in (name, f"*.{name}"))]
        return [f"{self.collection}/{end}" for end in ends]

    def _find(self, folder: Folder, stems: list[str], first: str, second: str) -> list[_Text]:
        for stem in stems:
            texts = (
                _tables(folder, stem, first, second)
                or _parallel(folder, stem, first, second)
                or _mined(folder, stem, (first, second), least=self.margin)
            )
            if texts:
                return texts
        return []

    def _no_split(self, folder: Folder, language: str, split: Split, there: list[str]) -> DataError:
        return DataError(
            f"{folder.name}: collection {self.collection!r} has no {split} split of bitext {language!r}; "
            f"it has {', '.join(there)}. Choose that split, or, if its files name none, say what they are: "
            f'whole = "{split}".'
        )

    def _missing(self, folder: Folder, language: str, first: str, second: str) -> DataError:
        others = [name for name in (*WHOLES, "bitext") if self._find(folder, [f"{name}/*"], first, second)]
        others += [PUD] if _treebanks(folder, PUD, "test", first, second) else []
        tables = [table for table in folder.find([f"{self.collection}/*.tsv"]) if not is_mined(table)]
        there = sorted({code for table in tables for code in languages_in(table)})
        facts = [
            f"{folder.name}: no bitext {language!r} in collection {self.collection!r}.",
            f"Its tables have: {some(there)}." if there else "",
            f"Collections that have {language!r}: {some(others)}; say collection = {others[0]!r}."
            if others
            else "",
            f"The folder holds: {some(folder.inside())}. Looked for {self.collection}/*.tsv with both columns"
            f", {self.collection}/NAME.{language}.{first} with NAME.{language}.{second} (or languages "
            f"exchanged) and mined {self.collection}/NAME.{language}.tsv. Put them there, or choose another "
            f"pair.",
        ]
        return DataError(" ".join(fact for fact in facts if fact))


def two_languages(pair: str) -> tuple[str, str]:
    """Take ``en-fr`` apart; ConfigError for anything else."""
    first, hyphen, second = pair.partition("-")
    if not (first and hyphen and second) or "-" in second or first == second:
        raise ConfigError(
            f"corpus bitext: {pair!r} is no pair of languages; expected two with a hyphen, as in en-fr."
        )
    return first, second


def _tables(folder: Folder, stem: str, first: str, second: str) -> list[_Text]:
    tables = (file for file in folder.find([f"{stem}.tsv"]) if {first, second} <= set(languages_in(file)))
    return [_Text(files=[table], read=_table_reader(table, first, second)) for table in tables]


def _table_reader(table: File, first: str, second: str) -> Callable[[], Iterator[Translation]]:
    languages = languages_in(table)
    backwards = languages.index(second) < languages.index(first)

    def read() -> Iterator[Translation]:
        for row in read_rows(table, [second, first] if backwards else [first, second]):
            pair = Translation(id=row.id, first=row.texts[0], second=row.texts[1])
            if row.links:
                pair = linked(pair, "" if row.links == NO_LINKS else row.links, table, row.number)
            yield flipped(pair) if backwards else pair

    return read


def _mined(folder: Folder, stem: str, pair: tuple[str, str], *, least: float) -> list[_Text]:
    for (one, two), turn in ((pair, _as_is), (pair[::-1], flipped)):
        tables = find_mined(folder, stem, one, two)
        if tables:
            return [
                _Text([table], _turned(lambda files: read_mined(files[0], least=least), [table], turn))
                for table in tables
            ]
    return []


def _treebanks(folder: Folder, name: str, split: Split, first: str, second: str) -> list[_Text]:
    files = find_treebanks(folder, name, split, first, second)
    return [_Text(files, lambda: read_treebanks(files))] if files else []


def _parallel(folder: Folder, stem: str, first: str, second: str) -> list[_Text]:
    for one, two, turn in ((first, second, _as_is), (second, first, flipped)):
        found = find_lines(folder, stem, one, two) or find_split_last(folder, stem, one, two)
        texts = [_Text(files, _turned(read_lines, files, turn)) for files in found]
        if not texts and stem.endswith("/*"):
            texts = [
                _Text(files, _turned(read_gold, files, turn)) for files in find_gold(folder, stem, one, two)
            ]
        if texts:
            return texts
    return []


def _turned(
    read: Callable[[list[File]], Iterator[Translation]],
    files: list[File],
    turn: Callable[[Translation], Translation],
) -> Callable[[], Iterator[Translation]]:
    return lambda: map(turn, read(files))


def _as_is(pair: Translation) -> Translation:
    return pair


def _numbered(texts: list[_Text]) -> Iterator[Translation]:
    for text in texts:
        name = text.files[0].plain_name.replace("\\", "/").rpartition("/")[2]
        for pair in text.read():
            yield pair if len(texts) == 1 else replace(pair, id=f"{name}:{pair.id}")
