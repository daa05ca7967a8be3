"""CAD-NLI: pairs of SNLI that people changed as little as turns the label, in English.

Kaushik et al. (2020), "Learning the Difference that Makes a Difference with Counterfactually-Augmented Data".
It derives from SNLI, its test pairs from SNLI's test: whoever trains on the one must not test on the other.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from isogloss.data.corpora import AFTER_COLON, Split, only, some_at_least
from isogloss.data.examples import Example, SentencePair
from isogloss.data.files import File, Folder
from isogloss.data.layouts import Layouts, english_only, every_split
from isogloss.data.pair_rows import Header
from isogloss.data.sentence_pairs import read_pairs, write_table

LABELS = {"entailment": "entailment", "neutral": "neutral", "contradiction": "contradiction"}

HEADER = Header(id=())


@dataclass(frozen=True, kw_only=True)
class CadNli:
    """Premises and hypotheses, labelled entailment, neutral or contradiction."""

    name: ClassVar[str] = "cad-nli"
    tasks: ClassVar[tuple[str, ...]] = ("nli",)
    url: ClassVar[str] = "https://github.com/acmi-lab/counterfactually-augmented-data"
    licence: ClassVar[str] = "Apache-2.0"

    collection: str = field(default="all_combined", metadata=AFTER_COLON)
    """all_combined, original, revised_combined, revised_hypothesis or revised_premise: an official folder."""

    def path(self, language: str, split: Split) -> str:
        """Give the place of a file of one language."""
        return f"cad-nli/{split}-{language}.tsv"

    def files(self, folder: Folder, language: str, split: Split) -> list[File]:
        """Find the one file of a split."""
        return english_only(folder, self.name, self._english(), language, split)

    def read(self, folder: Folder, language: str, split: Split) -> Iterator[SentencePair]:
        """Read the pairs, numbered from 1."""
        file = self.files(folder, language, split)[0]
        return some_at_least(read_pairs(file, language, LABELS, HEADER), file.name)

    def write(self, examples: Iterable[Example], language: str) -> Iterator[str]:  # noqa: ARG002
        """Give the lines of a table."""
        return write_table(only(SentencePair, examples, self.name), self.name, HEADER, LABELS)

    def _english(self) -> Layouts:
        return every_split(
            f"counterfactually-augmented-data/NLI/{self.collection}/{{split}}.tsv",
            f"cad-nli/{self.collection}/{{split}}.tsv",
            f"cad-nli/NLI/{self.collection}/{{split}}.tsv",
            f"nli-train-en/cad_nli_{self.collection}_{{split}}.tsv",
        )
