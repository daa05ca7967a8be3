"""What a run reads: the splits of labelled examples and of bitext it will ask for."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from isogloss.core.run_graph import source_of
from isogloss.core.runs import Align, FineTune, Measure, Run, TrainTranslator, Translate
from isogloss.data.corpora import Split
from isogloss.data.sources import Sources, Treebanks
from isogloss.diagnostics import ON_BITEXT
from isogloss.experiments.alignments import splits_aligned
from isogloss.experiments.translations import code_read
from isogloss.tasks import TASKS
from isogloss.training.inputs import AS_THEY_ARE, codes_read


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The first examples (0: all) of one split."""

    corpus: str
    language: str
    split: Split
    treebanks: Treebanks = ()
    examples: int


def splits_read(run: Run) -> Iterator[Reading]:
    """Give the splits a run reads; raw text that is trained on, which has no labels, is left out.

    What a run reads with its words aligned is read by the alignment, what is translated by the translation.
    """
    if isinstance(run, FineTune):
        method: Any = run.method
        reads = method.reads(run.source, run.target)
        wanted = [_reading(run, code, "train", run.examples) for code in reads.train]
        wanted += [_reading(run, code, "dev", run.dev_examples) for code in reads.dev]
        yield from _not_made(run, wanted)
    elif isinstance(run, Align):
        for split in splits_aligned(run):
            examples = run.examples if split == run.split else 0
            yield Reading(corpus=run.bitext, language=run.languages, split=split, examples=examples)
    elif isinstance(run, Measure) and run.corpus and run.data:
        split = cast(Split, run.split)
        yield from _not_made(
            run, [_reading(run, one, split, run.examples) for one in dict.fromkeys(_codes(run))]
        )
    elif isinstance(run, Translate | TrainTranslator):
        yield from _for_translation(run)


def _not_made(run: FineTune | Measure, wanted: list[Reading]) -> Iterator[Reading]:
    """Leave out what is translated by a run."""
    made = {(one.languages, one.split) for one in run.translated or ()}
    return (one for one in wanted if (one.language, one.split) not in made)


def _for_translation(run: Translate | TrainTranslator) -> Iterator[Reading]:
    if isinstance(run, TrainTranslator):
        for pair in run.pairs:
            yield Reading(corpus=run.bitext, language=pair, split="train", examples=run.examples)
            if run.dev:
                yield Reading(corpus=run.dev, language=pair, split="dev", examples=0)
    elif run.start is None:
        code = code_read(Sources().corpus(run.corpus), run.languages)
        yield Reading(
            corpus=run.corpus,
            language=code,
            split=cast(Split, run.split),
            treebanks=run.treebanks,
            examples=run.examples,
        )


def _codes(run: Measure) -> list[str]:
    """List the languages, or pairs of them, that a measurement reads."""
    diagnostic: Any = run.diagnostic
    if diagnostic.over in ON_BITEXT or (diagnostic.over == "parallel" and _is_bitext(run.corpus)):
        first, *others = run.languages
        return [f"{first}-{other}" for other in others]
    if diagnostic.over == "text":
        return list(run.languages)
    model = next((subject for subject in run.subjects if isinstance(subject, FineTune)), None)
    inputs, source = run.inputs or AS_THEY_ARE, source_of(model) if model else ()
    return [code for one in run.languages for code in codes_read(inputs, one, source)]


def _is_bitext(corpus: str) -> bool:
    return TASKS.keys().isdisjoint(Sources().corpus(corpus).tasks)


def _reading(run: FineTune | Measure, language: str, split: Split, examples: int) -> Reading:
    treebanks = tuple(pair for pair in run.treebanks if pair[0] == language)
    return Reading(corpus=run.corpus, language=language, split=split, treebanks=treebanks, examples=examples)
