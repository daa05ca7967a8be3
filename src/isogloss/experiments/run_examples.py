"""The examples that runs read: from corpora, or as runs before them translated or aligned them."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

from isogloss.core.run_graph import source_of
from isogloss.core.runs import FineTune, Measure
from isogloss.data.examples import Example, Translation
from isogloss.encoders.mixup import load_mixup
from isogloss.experiments.alignments import bitext_of
from isogloss.experiments.run_context import RunContext
from isogloss.experiments.translation_runs import translated_examples
from isogloss.tasks import TASKS
from isogloss.training.evaluation import PAIRED, codes_read
from isogloss.training.states import BitextSentences, ParallelExamples, ParallelText


def run_examples(
    context: RunContext, run: FineTune | Measure, language: str, split: Any, count: int
) -> list[Example]:
    """Read the first examples (0: all) of a language or, where it is a pair, of its translation."""
    for made in run.translated or ():
        if (made.languages, made.split) == (language, split):
            return translated_examples(context, made)
    return context.sources.examples(run.corpus, language, split, treebanks=run.treebanks, examples=count)


def run_bitext(context: RunContext, run: Measure, pair: str) -> list[Translation]:
    """Read the translations of a pair, with their links where the run has word alignments."""
    aligned = next((one for one in run.aligned or () if one.languages == pair), None)
    if aligned is not None:
        return bitext_of(context, aligned)
    return context.sources.examples(run.corpus, pair, run.split, examples=run.examples)  # type: ignore[arg-type, return-value]


def parallel_text(context: RunContext, run: Measure, warn: Callable[[str], None]) -> ParallelText:
    """Give what a measurement looks at in several languages: bitext, or parallel examples."""
    tasks = [one for one in context.sources.corpus(run.corpus).tasks if one in TASKS] if run.corpus else []
    if not tasks:
        return BitextSentences(partial(run_bitext, context, run))

    def read(language: str) -> list[Example]:
        return run_examples(context, run, language, run.split, run.examples)

    model = next((one for one in run.subjects if isinstance(one, FineTune)), None)
    own = model.task if model is not None and model.task in tasks else tasks[0]
    found = ParallelExamples(task=TASKS[own], read=read, name=f"{run.corpus} {run.split}", warn=warn)
    if model is None or run.inputs != PAIRED:
        return found
    source = source_of(model)

    @cache
    def translations(language: str) -> list[Example]:
        _, *pairs = codes_read(PAIRED, language, source)
        return read(pairs[0]) if pairs else []

    mixup = load_mixup(context.store.model(model))
    return replace(found, translations=translations, mixup=mixup, source=source[0])
