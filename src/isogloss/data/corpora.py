"""What a corpus is: a name, the task it has labels for, and a reader from files to examples."""

from collections.abc import Iterable, Iterator
from typing import ClassVar, Literal, Protocol

from isogloss.data.examples import Example
from isogloss.data.files import File, Folder

Split = Literal["train", "dev", "test"]
SPLITS: tuple[Split, ...] = ("train", "dev", "test")


class Corpus(Protocol):
    """A corpus or format, one per file of this package."""

    name: ClassVar[str]
    task: ClassVar[str]
    """Name of the task it has labels for (upos, ner, nli …), "text" or "bitext" where it has none."""
    url: ClassVar[str]
    licence: ClassVar[str]

    def files(self, folder: Folder, language: str, split: Split) -> list[File]:
        """Find the files of one split; DataError with the folder and what is there when there are none."""
        ...

    def read(self, folder: Folder, language: str, split: Split) -> Iterator[Example]:
        """Read one split, in file order; DataError with file and line at the first broken line."""
        ...

    def write(self, examples: Iterable[Example], language: str) -> Iterator[str]:
        """Give the lines (without line ends) of a file in the corpus's native format."""
        ...
