"""MultiNLI: SNLI's question about English of ten genres, the training data of XNLI.

Williams et al. (2018), "A Broad-Coverage Challenge Corpus for Sentence Understanding through Inference". Dev
is the official ``dev_matched`` (the genres of train). The labels of the official tests are not public, so
test is ``dev_mismatched`` (other genres). Layouts: ``multinli_1.0_train.txt`` and ``.jsonl``, and GLUE's
``MNLI``. Rows whose label is "-" are left out; ``left_out`` counts them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from isogloss.data.corpora import Split, only, some_at_least
from isogloss.data.examples import Example, SentencePair
from isogloss.data.files import File, Folder
from isogloss.data.layouts import Layouts, english_only
from isogloss.data.pair_rows import Header
from isogloss.data.sentence_pairs import count_left_out, read_pairs, write_table

LABELS = {"entailment": "entailment", "neutral": "neutral", "contradiction": "contradiction"}

HEADER = Header(id=("pairID",), left_out=("-",))

NAMES: dict[Split, str] = {"train": "train", "dev": "dev_matched", "test": "dev_mismatched"}
"""What the official files call our splits."""

_OFFICIAL = ("multinli_1.0/multinli_1.0_", "multinli/multinli_1.0_", "xnli/multinli_1.0/multinli_1.0_")
ENGLISH: Layouts = {
    split: (
        *(place + name + end for end in (".txt", ".jsonl") for place in _OFFICIAL),
        f"MNLI/{name}.tsv",
        f"glue_data/MNLI/{name}.tsv",
    )
    for split, name in NAMES.items()
}


@dataclass(frozen=True, kw_only=True)
class MultiNli:
    """Premises and hypotheses, labelled entailment, neutral or contradiction."""

    name: ClassVar[str] = "multinli"
    tasks: ClassVar[tuple[str, ...]] = ("nli",)
    url: ClassVar[str] = "https://cims.nyu.edu/~sbowman/multinli/"
    licence: ClassVar[str] = "OANC's, CC BY-SA 3.0 and others, by genre"

    def path(self, language: str, split: Split) -> str:
        """Give the place of a file of one language."""
        return f"multinli/{split}-{language}.tsv"

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
