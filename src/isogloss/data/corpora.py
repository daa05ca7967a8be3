"""What a corpus is: a name, the task it has labels for, and a reader from files to examples."""

from collections.abc import Collection, Iterable, Iterator
from typing import Literal, Protocol, TypeVar

from isogloss.core.errors import DataError
from isogloss.data.examples import Example, SentencePair
from isogloss.data.files import File, FilePlace, Folder, is_unicode

Split = Literal["train", "dev", "test"]
SPLITS: tuple[Split, ...] = ("train", "dev", "test")

MARK = "\ufeff"

Kind = TypeVar("Kind", bound=Example)


class Corpus(Protocol):
    """A corpus: one of the catalogue's, or several read as one."""

    @property
    def name(self) -> str:
        """Name in recipes and in the table of corpora."""
        ...

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the tasks it has labels for (upos, parsing, nli …); "text" or "bitext" for none."""
        ...

    @property
    def about(self) -> str:
        """What it is, whose, and in which forms it is read."""
        ...

    @property
    def after_colon(self) -> str:
        """Name of the field that a recipe gives after the name ("bitext:bible"); empty for none."""
        ...

    @property
    def url(self) -> str:
        """Where it comes from."""
        ...

    @property
    def licence(self) -> str:
        """What its files may be used for."""
        ...

    def path(self, language: str, split: Split) -> str:
        """Give the place, below a data folder, of a file that ``write`` makes and ``read`` finds."""
        ...

    def find(self, folder: Folder, language: str, split: Split) -> list[File]:
        """Find the files of one split on disk; DataError with what is there when there are none."""
        ...

    def files(self, source: "Source", language: str, split: Split) -> list[File]:
        """Give the files of one split, wherever they come from; DataError when there are none."""
        ...

    def read(self, source: "Source", language: str, split: Split) -> Iterator[Example]:
        """Read one split, in file order; DataError with file and line at the first broken line."""
        ...

    def write(self, examples: Iterable[Example], language: str) -> Iterator[str]:
        """Give the lines (without line ends) of a file in the corpus's native format."""
        ...


class Source(FilePlace, Protocol):
    """Where corpora come from: a folder on disk, the built-in languages, Hugging Face datasets."""

    def files(self, corpus: Corpus, language: str, split: Split) -> list[File]:
        """Give the files of one split in the corpus's format; DataError with what is there when none are."""
        ...


def only(kind: type[Kind], examples: Iterable[Example], corpus: str) -> Iterator[Kind]:
    """Give the examples on, each checked to be of the kind that the corpus holds."""
    for example in examples:
        if not isinstance(example, kind):
            raise DataError(
                f"{corpus}: cannot write a {type(example).__name__} ({example.id}); it holds {kind.__name__}."
            )
        yield example


def labelled(labels: Collection[str], pairs: Iterable[SentencePair], corpus: str) -> Iterator[SentencePair]:
    """Give the pairs on, each checked to have one of the labels."""
    for pair in pairs:
        if pair.label not in labels:
            known = ", ".join(labels)
            raise not_writable(corpus, pair.id, f"label {pair.label!r}; expected one of {known}")
        yield pair


def own_id(name: str, seen: dict[str, int]) -> str:
    """Give the name, or, if an example has it already, the first free one of ``name#2``, ``name#3`` …."""
    new = name
    while new in seen:
        seen[name] += 1
        new = f"{name}#{seen[name]}"
    seen[new] = 1
    return new


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
        raise not_writable(
            corpus,
            example,
            f"{text[:40]!r} has a tab or line end in it; expected text of one line. Replace it by a space",
        )
    if not is_unicode(text):
        raise not_writable(corpus, example, f"{text[:40]!r} has half a surrogate pair in it. Take it out")
    return text


def not_writable(corpus: str, example: str, reason: str) -> DataError:
    """Build the error for an example that the corpus's format cannot hold."""
    return DataError(f"{corpus}: cannot write example {example}: {reason}.")


def with_mark(lines: Iterable[str]) -> Iterator[str]:
    """Give the lines on; if the first begins with a byte order mark, with a second one before it.

    Readers take one off, here as elsewhere; so a text that begins with U+FEFF keeps its own.
    """
    for number, line in enumerate(lines):
        yield MARK + line if number == 0 and line.startswith(MARK) else line
