"""What a run reads: the splits of labelled examples and of bitext it will ask for."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from isogloss.core.runs import FineTune, Measure, Run
from isogloss.data.corpora import Split
from isogloss.data.sources import Treebanks


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The first examples (0: all) of one split."""

    corpus: str
    language: str
    split: Split
    treebanks: Treebanks
    examples: int


def splits_read(run: Run) -> Iterator[Reading]:
    """Give the splits a fine-tuning or a measurement reads; raw text, which has no labels, is left out."""
    if isinstance(run, FineTune):
        for language in (*run.source, *run.target):
            yield _reading(run, language, "train", run.examples)
            yield _reading(run, language, "dev", run.dev_examples)
    elif isinstance(run, Measure) and run.corpus and run.data:
        first, *others = run.languages
        of_models = any(isinstance(subject, FineTune) for subject in run.subjects)
        for language in run.languages if of_models else [f"{first}-{other}" for other in others]:
            yield _reading(run, language, cast(Split, run.split), run.examples)


def _reading(run: FineTune | Measure, language: str, split: Split, examples: int) -> Reading:
    treebanks = tuple(pair for pair in run.treebanks if pair[0] == language)
    return Reading(corpus=run.corpus, language=language, split=split, treebanks=treebanks, examples=examples)
