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
from isogloss.data.label_projection import AnswerSearch, Carried, Way, translate_examples
from isogloss.data.translated_text import Translated
from isogloss.encoders import save_model
from isogloss.experiments.translations import code_read, last_step
from isogloss.experiments.workshop import WORK, Made, Workshop
from isogloss.metrics.translation import bleu, chrf, signature
from isogloss.training.setting import TranslationSetting
from isogloss.translators import TranslateSetting

EXAMPLES = "examples.jsonl"
"""The translated examples of a run, a line each."""


def train_translator(shop: Workshop, run: TrainTranslator) -> Made:
    """Train a translation model."""

    def read(corpus: str, split: Split, count: int) -> dict[str, list[Translation]]:
        return {
            pair: cast(Any, shop.sources.examples(corpus, pair, split, examples=count)) for pair in run.pairs
        }

    method: Any = run.method
    setting = TranslationSetting(
        bitext=read(run.bitext, "train", run.examples),
        dev=read(run.dev, "dev", method.dev_sentences) if run.dev else {},
        folder=shop.store.folder(run) / WORK,
        seed=run.seed,
        tell=shop.tell,
    )
    method = replace(method, precision=shop.settled(method.precision))
    model, tokenizer, fitted = method.train(setting)
    save_model(model, tokenizer, shop.store.model(run))
    return Made(fitted.rows)


def translate(shop: Workshop, run: Translate) -> Made:
    """Translate a split; where it is bitext, say how near the translations are to its own."""
    originals = _originals(shop, run)
    carried = translate_examples(
        originals,
        partial(_translated, shop, run),
        search=_search(shop, run),
        language=last_step(run.languages)[1],
    )
    if not carried.examples:
        raise RunError(
            f"{run.corpus} {run.languages} {run.split}: of {len(originals)} questions no answer was found "
            f"again in the translation. Try other ways (translate.answers), or another translator."
        )
    write_examples(shop.store.folder(run) / EXAMPLES, carried.examples)
    return Made([as_row(_row(run, originals, carried))], tuple(_warnings(run, originals, carried)))


def translated_examples(shop: Workshop, run: Translate) -> list[Example]:
    """Read what a finished run translated."""
    return list(read_examples(shop.store.folder(run) / EXAMPLES))


def _originals(shop: Workshop, run: Translate) -> list[Example]:
    if run.start is not None:
        return translated_examples(shop, run.start)
    code = code_read(shop.sources.corpus(run.corpus), run.languages)
    split = cast(Split, run.split)
    return shop.sources.examples(run.corpus, code, split, treebanks=run.treebanks, examples=run.examples)


def _translated(shop: Workshop, run: Translate, texts: Iterable[str]) -> Iterator[Translated]:
    translator: Any = run.translator
    source, target = last_step(run.languages)
    every = list(texts)
    setting = TranslateSetting(
        source=source,
        target=target,
        model="" if run.model is None else shop.encoder(run.model),
        folder=shop.store.folder(run) / WORK,
        precision=shop.precision,
        total=len(every),
        tell=shop.tell,
    )
    found: Iterator[Translated] = translator.translate(every, setting)
    return found


def _search(shop: Workshop, run: Translate) -> AnswerSearch | None:
    if run.answers is None:
        return None
    links = None if run.aligner is None else partial(_links, shop, run)
    return AnswerSearch(ways=cast(tuple[Way, ...], run.answers), find_links=links)


def _links(
    shop: Workshop, run: Translate, pairs: Sequence[tuple[str, str]]
) -> Iterator[Iterable[tuple[int, int]]]:
    """Link the words of texts and their translations."""
    aligner: Any = run.aligner
    setting = AlignSetting(
        pairs=[
            Translation(id=str(number), first=one, second=other) for number, (one, other) in enumerate(pairs)
        ],
        encoder="" if run.encoder is None else shop.encoder(run.encoder),
        precision=shop.precision,
        folder=shop.store.folder(run) / WORK / "alignment",
        tell=shop.tell,
    )
    return (one.links for one in aligner.align(setting))


def _row(run: Translate, originals: Sequence[Example], carried: Carried) -> TranslatedSplit:
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


def _warnings(run: Translate, originals: Sequence[Example], carried: Carried) -> Iterator[str]:
    where = f"{run.corpus} {run.languages} {run.split}"
    if carried.lost:
        yield (
            f"{where}: the answers to {len(carried.lost)} of {len(originals)} questions were not found again "
            f"in the translation; these questions are left out."
        )
    if carried.cuts:
        yield f"{where}: texts were cut at {carried.cuts} places, as they were too long for the translator."
