"""Raw text: one sentence or paragraph a line, an empty line between documents.

All ``rawtext/sw/*.txt`` are one corpus, in the order of their names, and its train split. Text to measure on
is in ``rawtext/sw/dev/*.txt`` and ``rawtext/sw/test/*.txt``, where there is any.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from isogloss.data.corpora import Split, cell, not_writable, only, some_at_least, with_mark
from isogloss.data.examples import Example, TextLine
from isogloss.data.files import File, Folder
from isogloss.data.layouts import Layouts, locate

LAYOUTS: Layouts = {
    "train": ("rawtext/{language}/*.txt", "text/{language}/*.txt"),
    "dev": ("rawtext/{language}/dev/*.txt", "text/{language}/dev/*.txt"),
    "test": ("rawtext/{language}/test/*.txt", "text/{language}/test/*.txt"),
}


@dataclass(frozen=True, kw_only=True)
class RawText:
    """Lines of text, for masked language modelling."""

    name: ClassVar[str] = "rawtext"
    tasks: ClassVar[tuple[str, ...]] = ("text",)
    url: ClassVar[str] = ""
    licence: ClassVar[str] = "that of the files"

    def path(self, language: str, split: Split) -> str:
        """Give the place of a language's text."""
        return (
            f"rawtext/{language}/train.txt" if split == "train" else f"rawtext/{language}/{split}/{split}.txt"
        )

    def files(self, folder: Folder, language: str, split: Split) -> list[File]:
        """Find all files of the language, sorted by name."""
        return locate(folder, self.name, LAYOUTS, language, split)

    def read(self, folder: Folder, language: str, split: Split) -> Iterator[TextLine]:
        """Read all lines; an id is the file's name and line number, and a file begins a new document."""
        return _documents(self.files(folder, language, split))

    def write(self, examples: Iterable[Example], language: str) -> Iterator[str]:  # noqa: ARG002
        """Give the lines of a file, an empty one where the document changes."""
        return with_mark(self._lines(only(TextLine, examples, self.name)))

    def _lines(self, lines: Iterable[TextLine]) -> Iterator[str]:
        document = None
        for line in lines:
            if not line.text.strip():
                raise not_writable(self.name, line.id, "its text is empty. Leave it out")
            if document not in (None, line.document):
                yield ""
            document = line.document
            yield cell(line.text, self.name, line.id)


def _documents(files: list[File]) -> Iterator[TextLine]:
    document = 0
    for file in files:
        for line in some_at_least(_lines(file, document), file.name):
            yield line
            document = line.document
        document += 1


def _lines(file: File, document: int) -> Iterator[TextLine]:
    name = file.plain_name.replace("\\", "/").rpartition("/")[2].removesuffix(".txt")
    begun = ended = False
    for number, text in file.lines():
        if not text.strip():
            ended = begun
            continue
        document += ended
        begun, ended = True, False
        yield TextLine(id=f"{name}:{number}", text=text, document=document)
