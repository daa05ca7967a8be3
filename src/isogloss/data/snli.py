"""SNLI: does one English sentence entail another, contradict it, or neither; captions of photographs.

Bowman et al. (2015), "A large annotated corpus for learning natural language inference". Layouts: the
official ``snli_1.0_train.txt`` and ``.jsonl``, and plain tables ``snli_dev.tsv``. Rows whose label is "-" (no
three of five annotators agreed) are left out, as everywhere; ``left_out`` counts them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from isogloss.data.corpora import Split, only, some_at_least
from isogloss.data.examples import Example, SentencePair
from isogloss.data.files import File, Folder
from isogloss.data.layouts import english_only, every_split
from isogloss.data.pair_rows import Header
from isogloss.data.sentence_pairs import count_left_out, read_pairs, write_table

LABELS = {"entailment": "entailment", "neutral": "neutral", "contradiction": "contradiction"}

HEADER = Header(id=("pairID",), left_out=("-",))

ENGLISH = every_split(
    *(
        place + name
        for name in ("snli_1.0_{split}.txt", "snli_1.0_{split}.jsonl")
        for place in ("snli_1.0/", "snli/", "snli/snli_1.0/")
    ),
    "snli/snli_{split}.tsv",
    "nli-train-en/snli_{split}.tsv",
)


@dataclass(frozen=True, kw_only=True)
class Snli:
    """Premises and hypotheses, labelled entailment, neutral or contradiction."""

    name: ClassVar[str] = "snli"
    tasks: ClassVar[tuple[str, ...]] = ("nli",)
    url: ClassVar[str] = "https://nlp.stanford.edu/projects/snli/"
    licence: ClassVar[str] = "CC BY-SA 4.0"

    def path(self, language: str, split: Split) -> str:
        """Give the place of a file of one language."""
        return f"snli/{split}-{language}.tsv"

    def files(self, folder: Folder, language: str, split: Split) -> list[File]:
        """Find the one file of a split."""
        return english_only(folder, self.name, ENGLISH, language, split)

    def read(self, folder: Folder, language: str, split: Split) -> Iterator[SentencePair]:
        """Read the pairs that have a label; ids are the file's, else row numbers."""
        file = self.files(folder, language, split)[0]
        return some_at_least(read_pairs(file, language, LABELS, HEADER), file.name)

    def left_out(self, folder: Folder, language: str, split: Split) -> int:
        """Count the pairs without an agreed label, which are not read."""
        return count_left_out(self.files(folder, language, split)[0], language, LABELS, HEADER)

    def write(self, examples: Iterable[Example], language: str) -> Iterator[str]:  # noqa: ARG002
        """Give the lines of a table."""
        return write_table(only(SentencePair, examples, self.name), self.name, HEADER, LABELS)
