"""MRPC, the Microsoft Research Paraphrase Corpus: do two English sentences of the news say the same.

Dolan and Brockett (2005), "Automatically Constructing a Corpus of Sentential Paraphrases". Layouts: the
official ``msr_paraphrase_train.txt`` and ``msr_paraphrase_test.txt`` (there is no official dev), GLUE's
``MRPC/train.tsv``, and ``msr-para-train.tsv``, which holds 500 training pairs back as ``msr-para-val.tsv``.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from isogloss.data.corpora import Split, only, some_at_least
from isogloss.data.examples import Example, SentencePair
from isogloss.data.files import File, Folder
from isogloss.data.layouts import Layouts, english_only
from isogloss.data.pair_rows import Header
from isogloss.data.sentence_pairs import read_pairs, write_table

LABELS = {"0": "0", "1": "1"}
"""1: a paraphrase."""

HEADER = Header(first=("#1 String",), second=("#2 String",), label=("Quality",), id=())
"""Pairs have no id in any layout; GLUE's test file has no labels."""

_PLACES = ("mrpc/", "MRPC/", "glue_data/MRPC/")
_FILES: Layouts = {
    "train": ("msr_paraphrase_train.txt", "train.tsv", "msr-para-train.tsv"),
    "dev": ("dev.tsv", "msr-para-val.tsv"),
    "test": ("msr_paraphrase_test.txt", "test.tsv", "msr-para-test.tsv"),
}
ENGLISH: Layouts = {
    split: tuple(place + file for place in _PLACES for file in files) for split, files in _FILES.items()
}


@dataclass(frozen=True, kw_only=True)
class Mrpc:
    """Sentence pairs, labelled 1 (paraphrase) or 0."""

    name: ClassVar[str] = "mrpc"
    tasks: ClassVar[tuple[str, ...]] = ("paraphrase",)
    url: ClassVar[str] = "https://www.microsoft.com/en-us/download/details.aspx?id=52398"
    licence: ClassVar[str] = "Microsoft Research Shared Source licence (non-commercial)"

    def path(self, language: str, split: Split) -> str:
        """Give the place of a file of one language."""
        return f"mrpc/{split}-{language}.tsv"

    def files(self, folder: Folder, language: str, split: Split) -> list[File]:
        """Find the one file of a split."""
        return english_only(folder, self.name, ENGLISH, language, split)

    def read(self, folder: Folder, language: str, split: Split) -> Iterator[SentencePair]:
        """Read the pairs, numbered from 1."""
        file = self.files(folder, language, split)[0]
        pairs = read_pairs(file, language, LABELS, HEADER, unlabelled=split == "test")
        return some_at_least(pairs, file.name)

    def write(self, examples: Iterable[Example], language: str) -> Iterator[str]:  # noqa: ARG002
        """Give the lines of a table."""
        return write_table(only(SentencePair, examples, self.name), self.name, HEADER, LABELS)
