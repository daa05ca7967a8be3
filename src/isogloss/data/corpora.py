"""What a corpus is: a name, the task it has labels for, and a reader from files to examples."""

from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any, ClassVar, Literal, Protocol, TypeVar

from isogloss.core.errors import DataError
from isogloss.data.examples import Example
from isogloss.data.files import File, Folder

Split = Literal["train", "dev", "test"]
SPLITS: tuple[Split, ...] = ("train", "dev", "test")

Kind = TypeVar("Kind", bound=Example)

AFTER_COLON = {"after colon": True}
"""Metadata of the field that a recipe gives after the corpus's name: "bitext:bible", "mlqa:en"."""


class Corpus(Protocol):
    """A corpus or format, one per file of this package."""

    name: ClassVar[str]
    tasks: ClassVar[tuple[str, ...]]
    """Names of the tasks it has labels for (upos, parsing, nli …); "text" or "bitext" where it has none."""
    url: ClassVar[str]
    licence: ClassVar[str]

    def path(self, language: str, split: Split) -> str:
        """Give the place, below a data folder, of a file that ``write`` makes and ``read`` finds."""
        ...

    def files(self, folder: Folder, language: str, split: Split) -> list[File]:
        """Find the files of one split; DataError with the folder and what is there when there are none."""
        ...

    def read(self, folder: Folder, language: str, split: Split) -> Iterator[Example]:
        """Read one split, in file order; DataError with file and line at the first broken line."""
        ...

    def write(self, examples: Iterable[Example], language: str) -> Iterator[str]:
        """Give the lines (without line ends) of a file in the corpus's native format."""
        ...


def field_after_colon(corpus: Any) -> str:
    """Return the name of the field that a recipe gives after a corpus's name; empty when it has none."""
    return next((one.name for one in fields(corpus) if one.metadata.get("after colon")), "")


def only(kind: type[Kind], examples: Iterable[Example], corpus: str) -> Iterator[Kind]:
    """Give the examples on, each checked to be of the kind that the corpus holds."""
    for example in examples:
        if not isinstance(example, kind):
            raise DataError(
                f"{corpus}: cannot write a {type(example).__name__} ({example.id}); it holds {kind.__name__}."
            )
        yield example


def some_at_least(examples: Iterator[Kind], file: str) -> Iterator[Kind]:
    """Give the examples on; DataError if there are none."""
    empty = True
    for example in examples:
        empty = False
        yield example
    if empty:
        raise DataError(
            f"{file}:1: the split is empty; expected at least one example. "
            f"Fetch it again, or choose another split."
        )


def cell(text: str, corpus: str, example: str) -> str:
    """Return a text that may stand between tabs on a line of its own; DataError for any other."""
    if "\t" in text or "\n" in text or "\r" in text:
        raise DataError(
            f"{corpus}: cannot write example {example}: {text[:40]!r} has a tab or line end in it; "
            f"expected text of one line. Replace it by a space."
        )
    return text
