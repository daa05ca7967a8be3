"""Making translations: models trained on bitext, and examples translated with their labels."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

from isogloss.aligners import AlignSetting
from isogloss.core.errors import RunError
from isogloss.core.rows import TranslatedSplit, as_row
from isogloss.core.runs import TrainTranslator, Translate
from isogloss.data.corpora import Split
from isogloss.data.examples import Example, Translation, read_examples, write_examples
from isogloss.data.label_projection import (
    AnswerSearch,
    Translated,
    TranslatedExamples,
    Way,
    translate_examples,
)
from isogloss.encoders import save_model
from isogloss.experiments.run_context import WORK, RunContext, RunResult
from isogloss.experiments.translations import code_read, last_step
from isogloss.metrics.translation import bleu, chrf, signature
from isogloss.training.setting import TranslationSetting
from isogloss.translators import TranslateSetting

EXAMPLES = "examples.jsonl"
"""The translated examples of a run, a line each."""


def train_translator(context: RunContext, run: TrainTranslator) -> RunResult:
    """Train a translation model."""

    def read(corpus: str, split: Split, count: int) -> dict[str, list[Translation]]:
        return {
            pair: cast(Any, context.sources.examples(corpus, pair, split, examples=count))
            for pair in run.pairs
        }

    method: Any = run.method
    setting = TranslationSetting(
        bitext=read(run.bitext, "train", run.examples),
        dev=read(run.dev, "dev", method.dev_sentences) if run.dev else {},
        folder=context.store.folder(run) / WORK,
        seed=run.seed,
        on_progress=context.on_progress,
    )
    method = replace(method, precision=context.settled(method.precision))
    model, tokenizer, fitted = method.train(setting)
    save_model(model, tokenizer, context.store.model(run))
    return RunResult(fitted.rows)


def translate(context: RunContext, run: Translate) -> RunResult:
    """Translate a split; where it is bitext, say how near the translations are to its own."""
    originals = _originals(context, run)
    carried = translate_examples(
        originals,
        partial(_translated, context, run),
        search=_search(context, run),
        language=last_step(run.languages)[1],
    )
    if not carried.examples:
        raise RunError(
            f"{run.corpus} {run.languages} {run.split}: of {len(originals)} questions no answer was found "
            f"again in the translation. Try other ways (translate.answers), or another translator."
        )
    write_examples(context.store.folder(run) / EXAMPLES, carried.examples)
    return RunResult([as_row(_row(run, originals, carried))], tuple(_warnings(run, originals, carried)))


def translated_examples(context: RunContext, run: Translate) -> list[Example]:
    """Read what a finished run translated."""
    return list(read_examples(context.store.folder(run) / EXAMPLES))


def _originals(context: RunContext, run: Translate) -> list[Example]:
    if run.start is not None:
        return translated_examples(context, run.start)
    code = code_read(context.sources.corpus(run.corpus), run.languages)
    split = cast(Split, run.split)
    return context.sources.examples(run.corpus, code, split, treebanks=run.treebanks, examples=run.examples)


def _translated(context: RunContext, run: Translate, texts: Iterable[str]) -> Iterator[Translated]:
    translator: Any = run.translator
    source, target = last_step(run.languages)
    every = list(texts)
    setting = TranslateSetting(
        source=source,
        target=target,
        model="" if run.model is None else context.encoder(run.model),
        folder=context.store.folder(run) / WORK,
        precision=context.precision,
        total=len(every),
        on_progress=context.on_progress,
    )
    found: Iterator[Translated] = translator.translate(every, setting)
    return found


def _search(context: RunContext, run: Translate) -> AnswerSearch | None:
    if run.answers is None:
        return None
    links = None if run.aligner is None else partial(_links, context, run)
    return AnswerSearch(ways=cast(tuple[Way, ...], run.answers), find_links=links)


def _links(
    context: RunContext, run: Translate, pairs: Sequence[tuple[str, str]]
) -> Iterator[Iterable[tuple[int, int]]]:
    """Link the words of texts and their translations."""
    aligner: Any = run.aligner
    setting = AlignSetting(
        pairs=[
            Translation(id=str(number), first=one, second=other) for number, (one, other) in enumerate(pairs)
        ],
        encoder="" if run.encoder is None else context.encoder(run.encoder),
        precision=context.precision,
        folder=context.store.folder(run) / WORK / "alignment",
        on_progress=context.on_progress,
    )
    return (one.links for one in aligner.align(setting))


def _row(run: Translate, originals: Sequence[Example], carried: TranslatedExamples) -> TranslatedSplit:
    row = TranslatedSplit(
        examples=len(originals),
        translated=len(carried.examples),
        lost=len(carried.lost),
        cuts=carried.cuts,
    )
    references = [one.second for one in originals if isinstance(one, Translation)]
    if not references:
        return row
    written = [one.second for one in carried.examples if isinstance(one, Translation)]
    language = run.languages.rpartition("-")[2]
    return replace(
        row,
        metric="chrf",
        score=chrf(references, written),
        bleu=bleu(references, written, language),
        signature=signature(language),
    )


def _warnings(run: Translate, originals: Sequence[Example], carried: TranslatedExamples) -> Iterator[str]:
    where = f"{run.corpus} {run.languages} {run.split}"
    if carried.lost:
        yield (
            f"{where}: the answers to {len(carried.lost)} of {len(originals)} questions were not found again "
            f"in the translation; these questions are left out."
        )
    if carried.cuts:
        yield f"{where}: texts were cut at {carried.cuts} places, as they were too long for the translator."
