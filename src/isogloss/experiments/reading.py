"""What a run reads: the splits it will ask for, and where it asks for more examples than there are."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast

from isogloss.core.run_graph import source_of
from isogloss.core.runs import Align, FineTune, Measure, Run, TrainTranslator, Translate
from isogloss.data.corpora import Split, is_translation
from isogloss.data.sources import Sources, Treebanks, built_in_size
from isogloss.diagnostics import ON_BITEXT
from isogloss.experiments.alignments import splits_aligned
from isogloss.experiments.translations import code_read
from isogloss.tasks import TASKS
from isogloss.training.inputs import ORIGINAL_INPUTS, codes_read


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
    if diagnostic.subject in ON_BITEXT or (diagnostic.subject == "parallel" and _is_bitext(run.corpus)):
        first, *others = run.languages
        return [f"{first}-{other}" for other in others]
    if diagnostic.subject == "text":
        return list(run.languages)
    model = next((subject for subject in run.subjects if isinstance(subject, FineTune)), None)
    inputs, source = run.inputs or ORIGINAL_INPUTS, source_of(model) if model else ()
    return [code for one in run.languages for code in codes_read(inputs, one, source)]


def _is_bitext(corpus: str) -> bool:
    return TASKS.keys().isdisjoint(Sources().corpus(corpus).tasks)


def _reading(run: FineTune | Measure, language: str, split: Split, examples: int) -> Reading:
    treebanks = tuple(pair for pair in run.treebanks if pair[0] == language)
    return Reading(corpus=run.corpus, language=language, split=split, treebanks=treebanks, examples=examples)


KINDS = {"train": "training", "dev": "development", "test": "test"}


def fewer_than_asked(run: Run, sources: Sources) -> Iterator[str]:
    """Say for each split a run reads whether it has fewer examples than the run asks for."""
    for split in splits_read(run):
        if _is_counted(split, sources):
            yield from _told(split, _size(split, sources))


def fewer_in_plan(runs: Iterable[Run]) -> list[str]:
    """Say the same once for all runs of a plan, where it is known without reading: of built-in corpora."""
    splits = dict.fromkeys(split for run in runs for split in splits_read(run))
    known = {split: built_in_size(split.corpus, split.language, split.split) for split in splits}
    told = [_told(split, size) for split, size in known.items() if size is not None and split.examples]
    return list(dict.fromkeys(text for some in told for text in some))


def _is_counted(split: Reading, sources: Sources) -> bool:
    """Leave out what is not limited, and translations: what these lost is told where they were made."""
    labelled = "bitext" not in sources.corpus(split.corpus).tasks
    return bool(split.examples) and not (labelled and is_translation(split.language))


def _size(split: Reading, sources: Sources) -> int:
    """Count a split's examples, as far as they are asked for."""
    known = built_in_size(split.corpus, split.language, split.split)
    if known is not None:
        return known
    read = sources.stream(split.corpus, split.language, split.split, treebanks=split.treebanks)
    return sum(1 for _ in islice(read, split.examples))


def _told(split: Reading, size: int) -> Iterator[str]:
    if size < split.examples:
        yield (
            f"asked for {split.examples:,} {KINDS[split.split]} examples of {split.language} in "
            f"{split.corpus}: there are {size:,}; all were read."
        )
