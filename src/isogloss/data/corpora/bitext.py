"""Bitext: parallel text of two languages, from a collection of files in any of several forms."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from isogloss.core.errors import DataError
from isogloss.data.corpus import SPLITS, About, Source, Split, cannot_write, cell, nonempty, only
from isogloss.data.examples import Example, Translation
from isogloss.data.files import File, Folder, some
from isogloss.data.formats.parallel_text import (
    LEAST_MARGIN,
    LINKS,
    count_empty,
    find_texts,
    find_treebanks,
    is_mined,
    languages_in,
    read_texts,
    two_languages,
    verse_split,
)
from isogloss.data.formats.word_links import format_links

Whole = Literal["", "train", "dev", "test", "by-verse"]

WHOLES: dict[str, Whole] = {
    "bible": "by-verse",
    "tatoeba": "test",
    "tico19": "test",
    "word-alignment": "test",
}


ALSO: dict[Split, tuple[str, ...]] = {"train": ("train", "all"), "dev": ("dev", "valid"), "test": ("test",)}
"""Names of the splits in file names; XLM and fairseq use valid."""

PUD = "pud"
"""The collection of the Parallel UD treebanks; they are test sets."""


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
    about: ClassVar[About] = About(__doc__, "https://opus.nlpl.eu", "that of the files")

    collection: str = "bitext"
    """Folder below the data folder: bible, tatoeba, tico19, word-alignment, or one of your own; or pud, the
    parallel treebanks of Universal Dependencies."""

    whole: Whole = ""
    """Split of a collection whose files name none; empty: test for known test sets, else train."""

    margin: float = LEAST_MARGIN
    """Mined pairs (WikiMatrix) with a lower margin score are left out."""

    def path(self, language: str, split: Split) -> str:
        """Return the path of a table of the two languages."""
        return f"{self.collection}/{language}.{split}.tsv"

    def find(self, folder: Folder, language: str, split: Split) -> list[File]:
        """Find all files of the pair: tables, or both sides and alignments."""
        first, second = two_languages(language)
        named = {name: self._named(folder, language, name) for name in SPLITS}
        if named[split]:
            return named[split]
        if any(named.values()):
            raise self._no_split(folder, language, split, [name for name in SPLITS if named[name]])
        files = self._find(folder, [f"{self.collection}/*"], first, second)
        if not files:
            raise self._missing(folder, language, first, second)
        if self._whole() not in ("by-verse", split):
            raise self._no_split(folder, language, split, [self._whole()])
        return files

    def choose(self, collection: str) -> "Bitext":
        """Return the bitext of another collection."""
        return replace(self, collection=collection)

    def files(self, source: Source, language: str, split: Split) -> list[File]:
        """Return the files of one split."""
        two_languages(language)
        return source.files(self, language, split)

    def read(self, source: Source, language: str, split: Split) -> Iterator[Translation]:
        """Read the pairs; ids are a table's or line numbers, with the file's name if there are several."""
        files = self.files(source, language, split)
        pairs = read_texts(files, *two_languages(language), least=self.margin)
        if self._whole() == "by-verse" and not any(_names_a_split(file) for file in files):
            pairs = (pair for pair in pairs if verse_split(pair.id) == split)
        return nonempty(pairs, files[0].name)

    def left_out(self, source: Source, language: str, split: Split) -> int:
        """Count the lines of parallel files that are not read, as one side is empty."""
        return count_empty(self.files(source, language, split))

    def write(self, examples: Iterable[Example], language: str) -> Iterator[str]:
        """Yield the lines of a table of the two languages and their links."""
        first, second = two_languages(language)
        yield f"id\t{first}\t{second}\t{LINKS}"
        ids: set[str] = set()
        for pair in only(Translation, examples, self.name):
            texts = [cell(text, self.name, pair.id) for text in (pair.id, pair.first, pair.second)]
            if not all(text.strip() for text in texts):
                raise cannot_write(self.name, repr(pair.id), "a text is empty. Leave it out")
            if pair.id in ids:
                raise cannot_write(self.name, repr(pair.id), "this id a second time; expected one of its own")
            ids.add(pair.id)
            yield "\t".join([*texts, format_links(pair, self.name)])

    def _whole(self) -> str:
        return self.whole or WHOLES.get(self.collection, "train")

    def _named(self, folder: Folder, language: str, split: Split) -> list[File]:
        """Find the files that are named for a split."""
        first, second = two_languages(language)
        files = self._find(folder, self._stems(language, split), first, second)
        return files or find_treebanks(folder, self.collection, split, first, second)

    def _stems(self, language: str, split: Split) -> list[str]:
        first, second = two_languages(language)
        pairs = (f"{first}-{second}", f"{second}-{first}")
        by_pair = [f"{pair}.{split}" for pair in pairs]
        ends = [*by_pair, *(end for name in ALSO[split] for end in (name, f"*.{name}"))]
        return [f"{self.collection}/{end}" for end in ends]

    def _find(self, folder: Folder, stems: list[str], first: str, second: str) -> list[File]:
        return next(filter(None, (find_texts(folder, stem, first, second) for stem in stems)), [])

    def _no_split(self, folder: Folder, language: str, split: Split, splits: list[str]) -> DataError:
        return DataError(
            f"{folder.name}: collection {self.collection!r} has no {split} split of bitext {language!r}; "
            f"it has {', '.join(splits)}. Choose that (--split {splits[0]}), or write the split into the "
            f"names of its files ({language}.{split}.tsv)."
        )

    def _missing(self, folder: Folder, language: str, first: str, second: str) -> DataError:
        others = [name for name in (*WHOLES, "bitext") if self._find(folder, [f"{name}/*"], first, second)]
        others += [PUD] if find_treebanks(folder, PUD, "test", first, second) else []
        tables = [table for table in folder.find([f"{self.collection}/*.tsv"]) if not is_mined(table)]
        codes = sorted({code for table in tables for code in languages_in(table)})
        facts = [
            f"{folder.name}: no bitext {language!r} in collection {self.collection!r}.",
            f"Its tables have: {some(codes)}." if codes else "",
            f"Collections that have {language!r}: {some(others)}; say collection = {others[0]!r}."
            if others
            else "",
            f"The folder holds: {some(folder.inside())}. Looked for {self.collection}/*.tsv with both columns"
            f" after one of ids, {self.collection}/NAME.{language}.{first} with NAME.{language}.{second} (or "
            f"languages exchanged) and mined {self.collection}/NAME.{language}.tsv. Put them there, or "
            f"choose another pair.",
        ]
        return DataError(" ".join(fact for fact in facts if fact))


def _names_a_split(file: File) -> bool:
    """Return whether a file's name contains a split: en-fr.dev.tsv, valid.en-fr.en."""
    parts = file.base_name.split(".")
    return any(name in parts for names in (*ALSO.values(), SPLITS) for name in names)
