"""The Bible as text: the verses of one language of a table of parallel text."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from isogloss.core.errors import DataError, did_you_mean
from isogloss.data.corpus import About, CorpusDefaults, Source, Split, cannot_write, cell, nonempty, only
from isogloss.data.examples import Example, TextLine
from isogloss.data.files import File, Folder, some
from isogloss.features.parallel_text.forms import column_of, languages_in, read_rows, verse_split

_TABLES = ("bible/*.tsv",)


@dataclass(frozen=True, kw_only=True)
class Bible(CorpusDefaults):
    """The Bible as text: the verses of one language of a verse-aligned table (``bible/*.tsv``).

    One verse in 25 is held out as dev and one as test, by its reference (``parallel_text.verse_split``), the
    same in all languages: an encoder pretrained on train can be tested on verses that it has not read in any
    language. The same table provides translation pairs as corpus bitext, collection bible, in the same
    splits.
    """

    name: ClassVar[str] = "bible"
    tasks: ClassVar[tuple[str, ...]] = ("text",)
    about: ClassVar[About] = About(__doc__, "https://github.com/BibleNLP/ebible", "that of each translation")

    def path(self, language: str, split: Split) -> str:  # noqa: ARG002
        """Return the path of a table with one language.

        It is the same for all splits, because a verse's split follows from its reference.
        """
        return f"bible/{language}.tsv"

    def find(self, folder: Folder, language: str, split: Split) -> list[File]:  # noqa: ARG002
        """Find the first table that has the language.

        Raises DataError, naming the existing languages, if none exists.
        """
        tables = folder.find(_TABLES)
        for table in tables:
            if column_of(language, languages_in(table)):
                return [table]
        languages = sorted({name for table in tables for name in languages_in(table)})
        contents = f"It has: {some(languages)}" if languages else f"The folder holds: {some(folder.inside())}"
        raise DataError(
            f"{folder.name}: no table {_TABLES[0]} with a column for language {language!r}."
            f"{did_you_mean(language, languages)} {contents}. Choose a different one, or add a table with it."
        )

    def read(self, source: Source, language: str, split: Split) -> Iterator[TextLine]:
        """Yield the verses of a split.

        Ids are references, as in GEN 1:1.
        """
        file = self.files(source, language, split)[0]
        return nonempty(_verses(file, language, split), file.name)

    def write(self, examples: Iterable[Example], language: str) -> Iterator[str]:
        """Yield the lines of a table with one language."""
        yield f"verse\t{language}"
        references: set[str] = set()
        for verse in only(TextLine, examples, self.name):
            if not verse.id or verse.id in references or not verse.text.strip():
                raise cannot_write(self.name, verse.id, "expected a unique reference and a text")
            references.add(verse.id)
            yield f"{cell(verse.id, self.name, verse.id)}\t{cell(verse.text, self.name, verse.id)}"


def _verses(file: File, language: str, split: Split) -> Iterator[TextLine]:
    books: dict[str, int] = {}
    for row in read_rows(file, [language]):
        document = books.setdefault(row.id.partition(" ")[0], len(books))
        if verse_split(row.id) == split:
            yield TextLine(id=row.id, text=row.texts[0], document=document)


BIBLE = Bible()
"""The corpus, for the table of corpora."""
