"""XTREME's part-of-speech corpus: the universal tags of all UD 2.5 treebanks of a language.

Hu et al. (2020), "XTREME: A Massively Multilingual Multi-task Benchmark …".
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from isogloss.data.conllu import UPOS
from isogloss.data.corpora import Split, only, some_at_least
from isogloss.data.examples import Example, TaggedSentence
from isogloss.data.files import File, Folder
from isogloss.data.layouts import every_split, locate
from isogloss.data.tagged_lines import read_tagged, write_tagged

LAYOUTS = every_split("udpos/{split}-{language}.tsv", "udpos-xtreme/{split}-{language}.tsv")


@dataclass(frozen=True, kw_only=True)
class UdPos:
    """Words with universal part-of-speech tags."""

    name: ClassVar[str] = "udpos"
    tasks: ClassVar[tuple[str, ...]] = ("upos",)
    url: ClassVar[str] = "https://github.com/google-research/xtreme"
    licence: ClassVar[str] = "that of each treebank (CC BY-SA or CC BY-NC-SA)"

    def path(self, language: str, split: Split) -> str:
        """Give the place in XTREME's layout."""
        return f"udpos/{split}-{language}.tsv"

    def files(self, folder: Folder, language: str, split: Split) -> list[File]:
        """Find the one file of a split."""
        return locate(folder, self.name, LAYOUTS, language, split)

    def read(self, folder: Folder, language: str, split: Split) -> Iterator[TaggedSentence]:
        """Read the sentences, numbered from 1."""
        file = self.files(folder, language, split)[0]
        return some_at_least(read_tagged(file, UPOS), file.name)

    def write(self, examples: Iterable[Example], language: str) -> Iterator[str]:  # noqa: ARG002
        """Give the lines of a file."""
        return write_tagged(only(TaggedSentence, examples, self.name), self.name, UPOS)
