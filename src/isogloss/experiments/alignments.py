"""Word alignments: which of them a recipe's runs read, how they are made, and what comes of them."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

from isogloss.aligners import ALIGNERS, Aligned, AlignSetting
from isogloss.core.errors import DataError, unknown_name
from isogloss.core.records import write_text
from isogloss.core.rows import Alignment, as_row
from isogloss.core.run_graph import original
from isogloss.core.run_parts import keys_of, values_of, with_fields
from isogloss.core.runs import Adjust, Align, Encoder
from isogloss.data.bitext import two_languages
from isogloss.data.bitext_report import check_bitext
from isogloss.data.corpora import Split
from isogloss.data.examples import Translation
from isogloss.data.files import disk_file
from isogloss.data.sources import Sources, combined_fingerprint
from isogloss.data.word_links import read_pharaoh, write_pharaoh
from isogloss.encoders import save_model
from isogloss.experiments.recipe import Table, checked, located, refuse_unknown
from isogloss.experiments.run_context import WORK, RunContext, RunResult
from isogloss.metrics.alignment_error import alignment_scores
from isogloss.training.setting import AdjustSetting


@dataclass(frozen=True)
class Asked:
    """How words are aligned: the recipe's [align] table, the place that asks for it, and the split."""

    table: Table
    where: str
    split: Split = "train"


def alignments(
    asked: Asked, sources: Sources, encoder: Encoder, bitext: str, pairs: Sequence[str]
) -> tuple[Align, ...]:
    """Build the alignment of each pair of languages as the recipe's [align] table says it.

    An aligner that looks at states looks at those of the original encoder, so that an adjusted one is not
    measured by its own alignments.
    """
    where, aligner = asked.where, aligner_of(asked.table, asked.where)
    found = []
    for pair in pairs:
        with located(f"{where}: pairs"):
            two_languages(pair)
        with located(f"{where}: bitext"):
            sources.needs(bitext, "bitext")
            run = Align(
                bitext=bitext,
                languages=pair,
                split=asked.split,
                alone=True if _is_alone(asked.split, aligner, sources, bitext, pair) else None,
                aligner=aligner,
                encoder=original(encoder) if aligner.needs_encoder else None,
            )
            files = [sources.fingerprint(bitext, pair, one) for one in splits_aligned(run)]
        found.append(replace(run, data=combined_fingerprint(files)))
    return tuple(found)


def splits_aligned(run: Align) -> tuple[Split, ...]:
    """Return the splits that are aligned together: counting words takes more text than a dev set has."""
    aligner, split = cast(Any, run.aligner), cast(Split, run.split)
    return (split,) if aligner.needs_encoder or split == "train" or run.alone else ("train", split)


def _is_alone(split: Split, aligner: Any, sources: Sources, bitext: str, pair: str) -> bool:
    """Tell whether a bitext, such as one of gold alignments, has no training split to count words in."""
    if aligner.needs_encoder or split == "train":
        return False
    try:
        sources.fingerprint(bitext, pair, "train")
    except DataError:
        return True
    return False


def aligner_of(table: Table, where: str) -> Any:
    """Build the word aligner that a recipe's [align] table names."""
    name = table.get("name", "fast-align")
    if name not in ALIGNERS:
        raise unknown_name(f"{where}: align", "word aligner", str(name), ALIGNERS)
    kind = ALIGNERS[name]
    own = set(keys_of(kind))
    refuse_unknown(table, {"name", *own}, f"aligner {name}", f"{where}: align")
    return checked(kind, {key: table[key] for key in own & set(table)}, f"{where}: align")


LINKS = "links.txt"
"""The word alignments of a run: Pharaoh's format with scores, a line a translation."""


def align(context: RunContext, run: Align) -> RunResult:
    """Align the words of a split; where the bitext has gold links, say how far they are from them."""
    aligner: Any = run.aligner
    read = {split: _read(context, run, split) for split in splits_aligned(run)}
    pairs = [pair for split in read.values() for pair in split]
    setting = AlignSetting(
        pairs=pairs,
        languages=two_languages(run.languages),
        encoder=context.encoder(run.encoder) if run.encoder is not None else "",
        precision=context.precision,
        folder=context.store.folder(run) / WORK,
        seed=run.seed,
        on_progress=context.on_progress,
    )
    wanted = read[_split(run)]
    found = aligner.align(setting)[len(pairs) - len(wanted) :]
    lines = write_pharaoh(found, scores=True)
    write_text(context.store.folder(run) / LINKS, "".join(f"{line}\n" for line in lines))
    report = check_bitext(wanted, *two_languages(run.languages))
    return RunResult([as_row(_row(wanted, found))], (*report.warnings, *_warnings(run, len(pairs))))


def _warnings(run: Align, pairs: int) -> Iterator[str]:
    if run.alone:
        yield (
            f"{run.bitext} {run.languages} has no training split: words were counted in the {pairs:,} pairs "
            f"of the {run.split} split alone. More text of both languages (a train split) aligns better."
        )


def bitext_of(context: RunContext, run: Align) -> list[Translation]:
    """Read the translations a finished run aligned, with its links."""
    pairs = _read(context, run, _split(run))
    found = read_pharaoh(disk_file(context.store.folder(run) / LINKS), pairs)
    return [replace(pair, links=one.links, possible=()) for pair, one in zip(pairs, found, strict=True)]


def adjust(context: RunContext, run: Adjust) -> RunResult:
    """Adjust an encoder."""
    method: Any = run.method
    method = with_fields(method, precision=context.settled(values_of(method)["precision"]))
    setting = AdjustSetting(
        start=context.encoder(run.encoder),
        bitext={one.languages: bitext_of(context, one) for one in run.aligned},
        folder=context.store.folder(run) / WORK,
        seed=run.seed,
        on_progress=context.on_progress,
    )
    adjusted = method.train(setting)
    save_model(adjusted.model, adjusted.tokenizer, context.store.model(run))
    return RunResult(adjusted.rows, adjusted.warnings)


def _split(run: Align) -> Split:
    return cast(Split, run.split)


def _read(context: RunContext, run: Align, split: Split) -> list[Translation]:
    examples = run.examples if split == run.split else 0
    return context.sources.examples(run.bitext, run.languages, split, examples=examples)  # type: ignore[return-value]


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
