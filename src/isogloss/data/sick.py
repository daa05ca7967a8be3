"""SICK: SNLI's question about English sentences made from captions by rule, with negation and passives.

Marelli et al. (2014), "A SICK cure for the evaluation of compositional distributional semantic models".
Layouts: the shared task's ``SICK_train.txt``, ``SICK_trial.txt`` (dev) and ``SICK_test_annotated.txt``, and
the later ``SICK.txt`` with all splits in one file.
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

LABELS = {"ENTAILMENT": "entailment", "NEUTRAL": "neutral", "CONTRADICTION": "contradiction"}
SPELLED = {label: spelling for spelling, label in LABELS.items()}

HEADER = Header(
    first=("sentence_A",),
    second=("sentence_B",),
    label=("entailment_judgment", "entailment_label"),
    id=("pair_ID",),
    part="SemEval_set",
)

PARTS: dict[Split, str] = {"train": "TRAIN", "dev": "TRIAL", "test": "TEST"}
"""What SICK.txt calls our splits."""

_PLACES = ("sick/", "SICK/", "sick2014/", "nli-train-en/sick2014/")
_FILES: dict[Split, str] = {"train": "SICK_train", "dev": "SICK_trial", "test": "SICK_test_annotated"}
ENGLISH: Layouts = {
    split: (*(f"{place}{name}.txt" for place in _PLACES), *(f"{place}SICK.txt" for place in _PLACES))
    for split, name in _FILES.items()
}


@dataclass(frozen=True, kw_only=True)
class Sick:
    """Premises and hypotheses, labelled entailment, neutral or contradiction."""

    name: ClassVar[str] = "sick"
    tasks: ClassVar[tuple[str, ...]] = ("nli",)
    url: ClassVar[str] = "https://zenodo.org/records/2787612"
    licence: ClassVar[str] = "CC BY-NC-SA 3.0"

    def path(self, language: str, split: Split) -> str:
        """Give the place of a file of one language."""
        return f"sick/{split}-{language}.tsv"

    def files(self, folder: Folder, language: str, split: Split) -> list[File]:
        """Find the one file of a split, or the one of all splits."""
        return english_only(folder, self.name, ENGLISH, language, split)

    def read(self, folder: Folder, language: str, split: Split) -> Iterator[SentencePair]:
        """Read the pairs of one split."""
        file = self.files(folder, language, split)[0]
        return some_at_least(read_pairs(file, PARTS[split], LABELS, HEADER), file.name)

    def write(self, examples: Iterable[Example], language: str) -> Iterator[str]:  # noqa: ARG002
        """Give the lines of a table."""
        return write_table(only(SentencePair, examples, self.name), self.name, HEADER, SPELLED)
