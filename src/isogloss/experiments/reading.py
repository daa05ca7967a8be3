"""What a run reads: the splits of labelled examples and of bitext it will ask for."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from isogloss.core.runs import FineTune, Measure, Run, source_of
from isogloss.data.corpora import Split
from isogloss.data.sources import Treebanks
from isogloss.experiments.inputs import AS_THEY_ARE, codes_read


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
        method: Any = run.method
        reads = method.reads(run.source, run.target)
        for code in reads.train:
            yield _reading(run, code, "train", run.examples)
        for code in reads.dev:
            yield _reading(run, code, "dev", run.dev_examples)
    elif isinstance(run, Measure) and run.corpus and run.data:
        first, *others = run.languages
        models = [subject for subject in run.subjects if isinstance(subject, FineTune)]
        codes = [f"{first}-{other}" for other in others]
        if models:
            source = source_of(models[0])
            codes = [
                code for one in run.languages for code in codes_read(run.inputs or AS_THEY_ARE, one, source)
            ]
        for code in dict.fromkeys(codes):
            yield _reading(run, code, cast(Split, run.split), run.examples)


def _reading(run: FineTune | Measure, language: str, split: Split, examples: int) -> Reading:
    treebanks = tuple(pair for pair in run.treebanks if pair[0] == language)
    return Reading(corpus=run.corpus, language=language, split=split, treebanks=treebanks, examples=examples)
