"""Making translations: models trained on bitext, and examples translated with their labels."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import cast

from isogloss.aligners import Aligner, AlignSetting
from isogloss.core.errors import RunError
from isogloss.core.rows import as_row
from isogloss.core.rows.training import TranslatedSplit
from isogloss.core.run_parts import with_fields
from isogloss.data.corpus import Split
from isogloss.data.examples import Example, TaggedSentence, Translation, write_examples
from isogloss.data.projection.label_projection import (
    Projection,
    Translated,
    TranslatedExamples,
    Way,
    translate_examples,
)
from isogloss.encoders import save_model
from isogloss.metrics.translation import bleu, chrf, signature
from isogloss.runs.context import EXAMPLES, RunContext, RunResult
from isogloss.runs.runs import TrainTranslator, Translate
from isogloss.training.distributed import is_main_process
from isogloss.training.setting import TranslationSetting
from isogloss.translators import TranslateSetting


def train_translator(context: RunContext, run: TrainTranslator) -> RunResult:
    """Train a translation model."""

    def read(corpus: str, split: Split, count: int) -> dict[str, list[Translation]]:
        examples = partial(context.sources.examples, corpus, split=split, examples=count)
        return {pair: cast(list[Translation], examples(pair)) for pair in run.pairs}

    setting = TranslationSetting(
        bitext=read(run.bitext, "train", run.examples),
        dev=read(run.dev, "dev", run.method.dev_sentences) if run.dev else {},
        folder=context.work(run),
        seed=run.seed,
        on_progress=context.on_progress,
    )
    method = with_fields(run.method, precision=context.resolved(run.precision))
    trained = method.train(setting)
    if is_main_process():
        save_model(trained.model, trained.tokenizer, context.store.model(run))
    return RunResult(trained.rows)


def translate(context: RunContext, run: Translate) -> RunResult:
    """Translate a split; where it is bitext, score the translations against its own."""
    originals = _originals(context, run)
    carried = translate_examples(
        originals,
        partial(_translated, context, run),
        projection=_projection(context, run),
        language=run.direction[1],
    )
    where = f"{run.corpus} {run.languages} {run.split}"
    if not carried.examples:
        raise RunError(
            f"{where}: of {len(originals)} examples no label was found again in the translation. Try other "
            f"ways (translate.answers, [align]), or another translator."
        )
    write_examples(context.store.folder(run) / EXAMPLES, carried.examples)
    row = _row(run, originals, carried)
    return RunResult([as_row(row)], tuple(_warnings(where, len(originals), carried)))


def _originals(context: RunContext, run: Translate) -> list[Example]:
    if run.start is not None:
        return context.translated(run.start)
    return context.sources.examples(
        run.corpus, run.language_read, run.split, treebanks=run.treebanks, examples=run.examples
    )


def _translated(context: RunContext, run: Translate, texts: Iterable[str]) -> Iterator[Translated]:
    source, target = run.direction
    every = list(texts)
    setting = TranslateSetting(
        source=source,
        target=target,
        model="" if run.model is None else context.encoder(run.model),
        folder=context.work(run),
        precision=context.precision,
        total=len(every),
        on_progress=context.on_progress,
    )
    return run.translator.translate(every, setting)


def _projection(context: RunContext, run: Translate) -> Projection | None:
    if run.answers is None and run.tags is None and run.links is None:
        return None
    answers = cast(tuple[Way, ...], run.answers or ())
    aligned = None if run.aligner is None else partial(_links, context, run, run.aligner)
    return Projection(answers=answers, tags=run.tags, links=run.links, find_links=aligned)


def _links(
    context: RunContext, run: Translate, aligner: Aligner, pairs: Sequence[Translation]
) -> Iterator[Iterable[tuple[int, int]]]:
    """Link the words of texts and their translations."""
    setting = AlignSetting(
        pairs=list(pairs),
        encoder="" if run.encoder is None else context.encoder(run.encoder),
        precision=context.precision,
        on_progress=context.on_progress,
    )
    return (one.links for one in aligner.align(setting))


def _row(run: Translate, originals: Sequence[Example], carried: TranslatedExamples) -> TranslatedSplit:
    tags = [tag for one in carried.examples if isinstance(one, TaggedSentence) for tag in one.tags]
    row = TranslatedSplit(
        examples=len(originals),
        translated=len(carried.examples),
        lost=len(carried.lost),
        cuts=carried.cuts,
        tagged=sum(map(bool, tags)) / len(tags) if tags else None,
    )
    references = [one.second for one in originals if isinstance(one, Translation)]
    if not references:
        return row
    written = [one.second for one in carried.examples if isinstance(one, Translation)]
    _, language = run.direction
    return replace(
        row,
        metric="chrf",
        score=chrf(references, written),
        bleu=bleu(references, written, language),
        signature=signature(language),
    )


def _warnings(split: str, originals: int, carried: TranslatedExamples) -> Iterator[str]:
    if carried.lost:
        yield (
            f"{split}: the labels of {len(carried.lost)} of {originals} examples were not found again in the "
            f"translation; these are left out."
        )
    if carried.cuts:
        yield f"{split}: texts were cut at {carried.cuts} places, as they were too long for the translator."
