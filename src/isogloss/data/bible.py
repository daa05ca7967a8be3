"""The Bible as text: the verses of one language of a verse-aligned table (``bible/*.tsv``).

One verse in 25 is held out as dev and one as test, by its reference (``parallel_table.verse_split``), in all
languages alike: what is pretrained on train can be tested on pairs it has seen in no language. The same
table gives translation pairs as corpus bitext, collection bible, split alike.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from isogloss.core.errors import DataError, did_you_mean
from isogloss.data.corpora import Split, cell, not_writable, only, some_at_least
from isogloss.data.examples import Example, TextLine
from isogloss.data.files import File, Folder
from isogloss.data.layouts import some
from isogloss.data.parallel_table import languages_in, read_rows, verse_split

TABLES = ("bible/*.tsv",)


@dataclass(frozen=True, kw_only=True)
class Bible:
    """The verses of one language, a document for each book."""

    name: ClassVar[str] = "bible"
    tasks: ClassVar[tuple[str, ...]] = ("text",)
    url: ClassVar[str] = "https://github.com/BibleNLP/ebible"
    licence: ClassVar[str] = "that of each translation"

    def path(self, language: str, split: Split) -> str:  # noqa: ARG002
        """Give the place of a table with one language; the verses know their splits."""
        return f"bible/{language}.tsv"

    def files(self, folder: Folder, language: str, split: Split) -> list[File]:  # noqa: ARG002
        """Find the first table that has the language."""
        tables = folder.find(TABLES)
        for table in tables:
            if language in languages_in(table):
                return [table]
        there = sorted({code for table in tables for code in languages_in(table)})
        has = f"It has: {some(there)}" if there else f"The folder holds: {some(folder.inside())}"
        raise DataError(
            f"{folder.name}: no table {TABLES[0]} with a column for language {language!r}."
            f"{did_you_mean(language, there)} {has}. Choose another language, or add a table with it."
        )

    def read(self, folder: Folder, language: str, split: Split) -> Iterator[TextLine]:
        """Read the verses of a split; ids are references, as in GEN 1:1."""
        file = self.files(folder, language, split)[0]
        return some_at_least(_verses(file, language, split), file.name)

    def write(self, examples: Iterable[Example], language: str) -> Iterator[str]:
        """Give the lines of a table with one language."""
        yield f"verse\t{language}"
        seen: set[str] = set()
        for verse in only(TextLine, examples, self.name):
            if not verse.id or verse.id in seen or not verse.text.strip():
                raise not_writable(self.name, verse.id, "expected a reference of its own and a text")
            seen.add(verse.id)
            yield f"{cell(verse.id, self.name, verse.id)}\t{cell(verse.text, self.name, verse.id)}"


def _verses(file: File, language: str, split: Split) -> Iterator[TextLine]:
    books: dict[str, int] = {}
    for row in read_rows(file, [language]):
        document = books.setdefault(row.id.partition(" ")[0], len(books))
        if verse_split(row.id) == split:
            yield TextLine(id=row.id, text=row.texts[0], document=document)
