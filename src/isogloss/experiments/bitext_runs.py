"""Making what comes of bitext: word alignments, and encoders that were adjusted with them."""

from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any, cast

from isogloss.aligners import Aligned, AlignSetting
from isogloss.core.records import write_text
from isogloss.core.rows import Alignment, as_row
from isogloss.core.runs import Adjust, Align
from isogloss.data.bitext import two_languages
from isogloss.data.bitext_report import check_bitext
from isogloss.data.corpora import Split
from isogloss.data.examples import Translation
from isogloss.data.files import disk_file
from isogloss.data.word_links import read_pharaoh, write_pharaoh
from isogloss.encoders import save_model
from isogloss.experiments.alignments import splits_aligned
from isogloss.experiments.workshop import WORK, Made, Workshop
from isogloss.metrics.alignment_error import alignment_scores
from isogloss.training.setting import AdjustSetting

LINKS = "links.txt"
"""The word alignments of a run: Pharaoh's format with scores, a line a translation."""


def align(shop: Workshop, run: Align) -> Made:
    """Align the words of a split; where the bitext has gold links, say how far they are from them."""
    aligner: Any = run.aligner
    read = {split: _read(shop, run, split) for split in splits_aligned(run)}
    pairs = [pair for split in read.values() for pair in split]
    setting = AlignSetting(
        pairs=pairs,
        languages=two_languages(run.languages),
        encoder=shop.encoder(run.encoder) if run.encoder is not None else "",
        precision=shop.precision,
        folder=shop.store.folder(run) / WORK,
        seed=run.seed,
        tell=shop.tell,
    )
    wanted = read[_split(run)]
    found = aligner.align(setting)[len(pairs) - len(wanted) :]
    lines = write_pharaoh(found, scores=True)
    write_text(shop.store.folder(run) / LINKS, "".join(f"{line}\n" for line in lines))
    report = check_bitext(wanted, *two_languages(run.languages))
    return Made([as_row(_row(wanted, found))], (*report.warnings, *_warnings(run, len(pairs))))


def _warnings(run: Align, pairs: int) -> Iterator[str]:
    if run.alone:
        yield (
            f"{run.bitext} {run.languages} has no training split: words were counted in the {pairs:,} pairs "
            f"of the {run.split} split alone. More text of both languages (a train split) aligns better."
        )


def bitext_of(shop: Workshop, run: Align) -> list[Translation]:
    """Read the translations a finished run aligned, with its links."""
    pairs = _read(shop, run, _split(run))
    found = read_pharaoh(disk_file(shop.store.folder(run) / LINKS), pairs)
    return [replace(pair, links=one.links, possible=()) for pair, one in zip(pairs, found, strict=True)]


def adjust(shop: Workshop, run: Adjust) -> Made:
    """Adjust an encoder."""
    method: Any = run.method
    method = replace(method, precision=shop.settled(method.precision))
    setting = AdjustSetting(
        start=shop.encoder(run.encoder),
        bitext={one.languages: bitext_of(shop, one) for one in run.aligned},
        folder=shop.store.folder(run) / WORK,
        seed=run.seed,
        tell=shop.tell,
    )
    adjusted = method.train(setting)
    save_model(adjusted.model, adjusted.tokenizer, shop.store.model(run))
    return Made(adjusted.rows, adjusted.warnings)


def _split(run: Align) -> Split:
    return cast(Split, run.split)


def _read(shop: Workshop, run: Align, split: Split) -> list[Translation]:
    examples = run.examples if split == run.split else 0
    return shop.sources.examples(run.bitext, run.languages, split, examples=examples)  # type: ignore[return-value]


def _row(pairs: list[Translation], found: list[Aligned]) -> Alignment:
    row = Alignment(pairs=len(pairs), links=sum(len(one.links) for one in found))
    known = [(pair, one.links) for pair, one in zip(pairs, found, strict=True) if pair.links is not None]
    if not known:
        return row
    scores = alignment_scores(
        [pair.links or () for pair, _ in known],
        [pair.possible for pair, _ in known],
        [links for _, links in known],
    )
    return replace(row, gold_pairs=len(known), **asdict(scores))
