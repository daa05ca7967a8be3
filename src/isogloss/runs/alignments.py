"""Word alignments: which of them a recipe's runs read, and how they are made."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from isogloss.aligners import ALIGNERS, Aligned, Aligner, AlignSetting
from isogloss.aligners.given import Unlinked
from isogloss.core.errors import ConfigError, DataError, located
from isogloss.core.records import write_text
from isogloss.core.rows import as_row
from isogloss.core.rows.training import Alignment
from isogloss.core.run_parts import Named, values_of
from isogloss.data.corpus import Split
from isogloss.data.examples import Translation
from isogloss.data.formats.parallel_text import two_languages
from isogloss.data.formats.word_links import write_pharaoh
from isogloss.data.projection.bitext_report import check_bitext
from isogloss.data.sources import Sources, combined_fingerprint
from isogloss.metrics.alignment_error import alignment_scores
from isogloss.recipes.checking import Kinds
from isogloss.recipes.recipe import Table
from isogloss.runs.context import LINKS, RunContext, RunResult
from isogloss.runs.encoder_runs import Align, Encoder, counts_words
from isogloss.runs.encoders import check_layers_read
from isogloss.training.bitext import ALIGNED_SUBWORDS

ALIGNER_KINDS = Kinds("word aligner", ALIGNERS, default="fast-align", noun="aligner")


@dataclass(frozen=True)
class AlignmentRequest:
    """How words are aligned: the recipe's [align] table, and the split."""

    table: Table
    split: Split = "train"
    links: bool = True
    """Whether linked words are read; otherwise nothing is aligned."""
    subwords: bool = False
    """Whether subwords are linked in place of words."""
    examples: int = 0
    """Translations that are aligned; 0 for all."""


def alignments(
    request: AlignmentRequest, sources: Sources, encoder: Encoder, bitext: str, pairs: Sequence[str]
) -> tuple[Align, ...]:
    """Build the alignment of each pair of languages as the recipe's [align] table says it.

    An aligner that compares states takes those of the original encoder, so that an adjusted one is not
    measured by its own alignments.
    """
    split, aligner = request.split, aligner_of(request.table)
    aligner = aligner if request.links else Unlinked()
    with located("align"):
        check_layers_read(aligner, encoder.original, sources.encoders)
    subwords = request.subwords and request.links
    if subwords and not counts_words(aligner):
        raise ConfigError(
            f"word: subwords are linked by how often they co-occur, and aligner {aligner.name!r} "
            "links words. Let [align] name fast-align or eflomal, or choose another word."
        )
    found = []
    for pair in pairs:
        with located("pairs"):
            two_languages(pair)
        with located("bitext"):
            sources.needs(bitext, "bitext")
            run = Align(
                bitext=bitext,
                languages=pair,
                split=split,
                alone=True if _is_alone(split, aligner, sources, bitext, pair) else None,
                aligner=aligner,
                encoder=encoder.original if aligner.needs_encoder else None,
                tokenizer=encoder.original if subwords else None,
                examples=request.examples,
            )
            read, fingerprint = run.splits_read, sources.fingerprint
            files = [fingerprint(bitext, pair, one.split, examples=one.examples) for one in read]
        found.append(replace(run, data=combined_fingerprint(files)))
    return tuple(found)


def links_subwords(method: Named) -> bool:
    """Return whether a method (or an auxiliary loss) reads links of subwords."""
    return values_of(method).get("word") == ALIGNED_SUBWORDS


def aligner_of(table: Table) -> Aligner:
    """Build the word aligner that a recipe's [align] table names."""
    with located("align"):
        return ALIGNER_KINDS.read(table)


def _is_alone(split: Split, aligner: Aligner, sources: Sources, bitext: str, pair: str) -> bool:
    """Return whether a bitext, such as one of gold alignments, has no training split to count words in."""
    if split == "train" or not counts_words(aligner):
        return False
    try:
        sources.fingerprint(bitext, pair, "train")
    except DataError:
        return True
    return False


def align(context: RunContext, run: Align) -> RunResult:
    """Align the words of a split; where the bitext has gold links, score the alignment against them."""
    read = {split: context.bitext(run, split) for split in run.splits}
    pairs = context.to_align(run, [pair for split in read.values() for pair in split])
    setting = AlignSetting(
        pairs=pairs,
        languages=two_languages(run.languages),
        encoder=context.encoder(run.encoder) if run.encoder is not None else "",
        precision=context.precision,
        on_progress=context.on_progress,
    )
    wanted = read[run.split]
    first = len(pairs) - len(wanted)
    found = run.aligner.align(setting)[first:]
    lines = write_pharaoh(found)
    write_text(context.store.folder(run) / LINKS, "".join(f"{line}\n" for line in lines))
    warnings = check_bitext(wanted, *two_languages(run.languages)).warnings
    if run.alone:
        warnings = (
            *warnings,
            f"{run.bitext} {run.languages} has no training split: words were counted in the {len(pairs):,} "
            f"pairs of the {run.split} split alone. More text of both languages (a train "
            "split) aligns better.",
        )
    rows = [] if isinstance(run.aligner, Unlinked) else [as_row(_row(pairs[first:], found))]
    return RunResult(rows, tuple(warnings))


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
