"""Corpora of text: lines of files, and the verses of one language of a table of parallel text."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from isogloss.core.errors import DataError, did_you_mean
from isogloss.data.corpus import (
    About,
    CorpusDefaults,
    Layouts,
    Source,
    Split,
    cannot_write,
    cell,
    locate,
    nonempty,
    only,
    with_byte_order_mark,
)
from isogloss.data.examples import Example, TextLine
from isogloss.data.files import File, Folder, some
from isogloss.data.formats.parallel_text import column_of, languages_in, read_rows, verse_split

_TEXTS: Layouts = {
    "train": ("rawtext/{language}/*.txt", "text/{language}/*.txt"),
    "dev": ("rawtext/{language}/dev/*.txt", "text/{language}/dev/*.txt"),
    "test": ("rawtext/{language}/test/*.txt", "text/{language}/test/*.txt"),
}

_TABLES = ("bible/*.tsv",)


@dataclass(frozen=True, kw_only=True)
class RawText(CorpusDefaults):
    """Raw text: one sentence or paragraph a line, an empty line between documents.

    All ``rawtext/sw/*.txt`` are one corpus, in the order of their names, and its train split. Text to measure
    on is in ``rawtext/sw/dev/*.txt`` and ``rawtext/sw/test/*.txt``, if anywhere.
    """

    name: ClassVar[str] = "rawtext"
    tasks: ClassVar[tuple[str, ...]] = ("text",)
    about: ClassVar[About] = About(__doc__, "", "that of the files")

    def path(self, language: str, split: Split) -> str:
        """Return the path of a language's text."""
        return (
            f"rawtext/{language}/train.txt" if split == "train" else f"rawtext/{language}/{split}/{split}.txt"
        )

    def find(self, folder: Folder, language: str, split: Split) -> list[File]:
        """Find all files of the language, sorted by name."""
        return locate(folder, self.name, _TEXTS, language, split)

    def read(self, source: Source, language: str, split: Split) -> Iterator[TextLine]:
        """Read all lines; an id is the file's name and line number, and a file begins a new document."""
        return _documents(self.files(source, language, split))

    def write(self, examples: Iterable[Example], language: str) -> Iterator[str]:  # noqa: ARG002
        """Yield the lines of a file, an empty one where the document changes."""
        return with_byte_order_mark(self._lines(only(TextLine, examples, self.name)))

    def _lines(self, lines: Iterable[TextLine]) -> Iterator[str]:
        document = None
        for line in lines:
            if not line.text.strip():
                raise cannot_write(self.name, line.id, "its text is empty. Leave it out")
            if document not in (None, line.document):
                yield ""
            document = line.document
            yield cell(line.text, self.name, line.id)


@dataclass(frozen=True, kw_only=True)
class Bible(CorpusDefaults):
    """The Bible as text: the verses of one language of a verse-aligned table (``bible/*.tsv``).

    One verse in 25 is held out as dev and one as test, by its reference (``parallel_text.verse_split``), the
    same in all languages: an encoder pretrained on train can be tested on verses that it has read in no
    language. The same table gives translation pairs as corpus bitext, collection bible, in the same splits.
    """

    name: ClassVar[str] = "bible"
    tasks: ClassVar[tuple[str, ...]] = ("text",)
    about: ClassVar[About] = About(__doc__, "https://github.com/BibleNLP/ebible", "that of each translation")

    def path(self, language: str, split: Split) -> str:  # noqa: ARG002
        """Return the path of a table with one language; the split of a verse follows from its reference."""
        return f"bible/{language}.tsv"

    def find(self, folder: Folder, language: str, split: Split) -> list[File]:  # noqa: ARG002
        """Find the first table that has the language."""
        tables = folder.find(_TABLES)
        for table in tables:
            if column_of(language, languages_in(table)):
                return [table]
        codes = sorted({code for table in tables for code in languages_in(table)})
        contents = f"It has: {some(codes)}" if codes else f"The folder holds: {some(folder.inside())}"
        raise DataError(
            f"{folder.name}: no table {_TABLES[0]} with a column for language {language!r}."
            f"{did_you_mean(language, codes)} {contents}. Choose another language, or add a table with it."
        )

    def read(self, source: Source, language: str, split: Split) -> Iterator[TextLine]:
        """Read the verses of a split; ids are references, as in GEN 1:1."""
        file = self.files(source, language, split)[0]
        return nonempty(_verses(file, language, split), file.name)

    def write(self, examples: Iterable[Example], language: str) -> Iterator[str]:
        """Yield the lines of a table with one language."""
        yield f"verse\t{language}"
        references: set[str] = set()
        for verse in only(TextLine, examples, self.name):
            if not verse.id or verse.id in references or not verse.text.strip():
                raise cannot_write(self.name, verse.id, "expected a reference of its own and a text")
            references.add(verse.id)
            yield f"{cell(verse.id, self.name, verse.id)}\t{cell(verse.text, self.name, verse.id)}"


def _documents(files: list[File]) -> Iterator[TextLine]:
    document = 0
    for file in files:
        for line in nonempty(_lines(file, document), file.name):
            yield line
            document = line.document
        document += 1


def _lines(file: File, document: int) -> Iterator[TextLine]:
    name = file.base_name.removesuffix(".txt")
    begun = ended = False
    for number, text in file.lines():
        if not text.strip():
            ended = begun
            continue
        document += ended
        begun, ended = True, False
        yield TextLine(id=f"{name}:{number}", text=text, document=document)


def _verses(file: File, language: str, split: Split) -> Iterator[TextLine]:
    books: dict[str, int] = {}
    for row in read_rows(file, [language]):
        document = books.setdefault(row.id.partition(" ")[0], len(books))
        if verse_split(row.id) == split:
            yield TextLine(id=row.id, text=row.texts[0], document=document)
