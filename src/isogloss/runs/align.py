"""Word alignments of bitext: choose the alignments that the runs of a recipe read, and compute them."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import ClassVar, cast

from isogloss.aligners import ALIGNERS
from isogloss.aligners.given import GivenLinks, Unlinked
from isogloss.aligners.setting import Aligner, AlignSetting
from isogloss.core.atomic_files import write_text
from isogloss.core.errors import ConfigError, DataError, located
from isogloss.core.rows import as_row
from isogloss.core.rows.models import AlignmentRow
from isogloss.core.run_parts import Count, Named, Whole, values_of
from isogloss.data.corpus import Split
from isogloss.data.examples import Translation
from isogloss.data.files import disk_file
from isogloss.data.formats.parallel_text import two_languages
from isogloss.data.formats.word_links import Aligned, read_pharaoh, write_pharaoh
from isogloss.data.projection.bitext_report import check_bitext
from isogloss.data.sources import Sources, combined_fingerprint
from isogloss.metrics.texts import alignment_scores
from isogloss.recipes.checking import Kinds
from isogloss.recipes.recipe import Table
from isogloss.runs.estimates import Folders, scoring
from isogloss.runs.run import Encoder, Run, RunContext, RunResult, SplitRead
from isogloss.training.bitext import ALIGNED_SUBWORDS, in_subwords
from isogloss.training.memory import Machine

LINKS = "links.txt"
"""The word alignments of a run: Pharaoh's format with scores, a line a translation."""

ALIGNER_KINDS = Kinds("word aligner", ALIGNERS, "aligners", Aligner, default="fast-align", noun="aligner")


@dataclass(frozen=True, kw_only=True)
class Align(Run):
    """Make word alignments of bitext."""

    name: ClassVar[str] = "align"
    bitext: str
    """Corpus of translations."""
    languages: str
    """The pair, as in en-es. Links are pairs (word of the first language, word of the second)."""
    aligner: Aligner
    """The word aligner."""
    encoder: Encoder | None = None
    """The encoder whose states are compared, if the aligner needs one."""
    tokenizer: Encoder | None = None
    """The encoder whose subwords are linked instead of words. None for words."""
    split: Split = "train"
    """Split that is aligned. Aligners that count words also count the training split."""
    alone: bool | None = None
    """Whether words are counted only in that split, because the bitext has no training split. None if it has
    one."""
    examples: Count = 0
    """Translations of the split, drawn at random. 0 for all."""
    seed: Whole = 0
    """Seed of the aligner's random numbers."""
    data: str = ""
    """Fingerprint of the files read, set by the plan."""

    @property
    def splits(self) -> tuple[Split, ...]:
        """The splits that are aligned together, because counting words needs more text than a dev set has."""
        reads_one_split = self.split == "train" or self.alone or not counts_words(self.aligner)
        return (self.split,) if reads_one_split else ("train", self.split)

    @property
    def splits_read(self) -> tuple[SplitRead, ...]:  # noqa: D102
        sizes = {self.split: self.examples}
        return tuple(
            SplitRead(corpus=self.bitext, language=self.languages, split=split, examples=sizes.get(split, 0))
            for split in self.splits
        )

    @property
    def read_with(self) -> tuple[Run, ...]:
        """The encoder whose subwords are linked."""
        return (self.tokenizer,) if self.tokenizer else ()

    @property
    def title(self) -> str:  # noqa: D102
        units = ", subwords" if self.tokenizer else ""
        return f"{self.aligner.name}: {self.bitext} {self.languages}{units}"

    def memory(self, folders: Folders, machine: Machine) -> int | None:  # noqa: D102
        shape = self.encoder.shape(folders) if self.encoder else None
        if shape is None:
            return 0 if self.encoder is None else None
        return scoring(shape, machine)

    def read_links(self, context: RunContext) -> list[Translation]:
        """Read the aligned translations with their links."""
        pairs = self._read(context, self.split)
        word_links = read_pharaoh(
            disk_file(context.store.folder(self) / LINKS), self._split_into_units(context, pairs)
        )
        return [
            replace(pair, links=links.links, possible=())
            for pair, links in zip(pairs, word_links, strict=True)
        ]

    def make(self, context: RunContext) -> RunResult:
        """Align the words of a split, and score the alignment if the bitext has gold links."""
        split_pairs = {split: self._read(context, split) for split in self.splits}
        pairs = self._split_into_units(context, [pair for split in split_pairs.values() for pair in split])
        setting = AlignSetting(
            pairs=pairs,
            languages=two_languages(self.languages),
            encoder=self.encoder.weights(context) if self.encoder is not None else "",
            precision=context.precision,
            on_progress=context.on_progress,
        )
        begin = len(pairs) - len(split_pairs[self.split])
        alignments = self.aligner.align(setting)[begin:]
        lines = write_pharaoh(alignments)
        write_text(context.store.folder(self), LINKS, "".join(f"{line}\n" for line in lines))
        warnings = check_bitext(split_pairs[self.split], *two_languages(self.languages)).warnings
        if self.alone:
            warnings = (
                *warnings,
                f"{self.bitext} {self.languages} has no training split: words were counted in the "
                f"{len(pairs):,} pairs of the {self.split} split alone. More text of both languages (a train "
                "split) aligns better.",
            )
        rows = [] if isinstance(self.aligner, Unlinked) else [as_row(_row(pairs[begin:], alignments))]
        return RunResult(rows, tuple(warnings))

    def _read(self, context: RunContext, split: Split) -> list[Translation]:
        examples = self.examples if split == self.split else 0
        pairs = context.sources.examples(self.bitext, self.languages, split, examples=examples)
        return cast(list[Translation], pairs)

    def _split_into_units(self, context: RunContext, pairs: list[Translation]) -> list[Translation]:
        """Return translations with the units that are linked: words, or subwords instead."""
        from isogloss.encoders.tokenizers import load_tokenizer

        if self.tokenizer is None:
            return pairs
        return in_subwords(pairs, load_tokenizer(self.tokenizer.weights(context)))


def _row(pairs: list[Translation], alignments: list[Aligned]) -> AlignmentRow:
    row = AlignmentRow(pairs=len(pairs), links=sum(len(links.links) for links in alignments))
    gold = [
        (pair, links.links) for pair, links in zip(pairs, alignments, strict=True) if pair.links is not None
    ]
    if not gold:
        return row
    scores = alignment_scores(
        [pair.links or () for pair, _ in gold],
        [pair.possible for pair, _ in gold],
        [links for _, links in gold],
    )
    return replace(row, gold_pairs=len(gold), **asdict(scores))


@dataclass(frozen=True)
class AlignmentRequest:
    """Aligner (the recipe's [align] table) and split of an alignment."""

    table: Table
    split: Split = "train"
    links: bool = True
    """Whether linked words are read. If not, nothing is aligned."""
    subwords: bool = False
    """Whether subwords are linked instead of words."""
    examples: int = 0
    """Translations that are aligned. 0 for all."""


def alignments(
    request: AlignmentRequest, sources: Sources, encoder: Encoder, bitext: str, pairs: Sequence[str]
) -> tuple[Align, ...]:
    """Build the alignment of each pair of languages according to the recipe's [align] table.

    An aligner that compares states uses the original encoder, so that an adjusted encoder is not evaluated on
    alignments that it computed.
    """
    split = request.split
    aligner = aligner_of(request.table)
    aligner = aligner if request.links else Unlinked()
    with located("align"):
        encoder.original.check_layers(aligner, sources.encoders)
    subwords = request.subwords and request.links
    if subwords and not counts_words(aligner):
        raise ConfigError(
            f"word: subwords are linked by how often they co-occur, and aligner {aligner.name!r} "
            "links words. Let [align] name fast-align or eflomal, or choose another word."
        )
    runs = []
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
            fingerprints = [
                sources.fingerprint(bitext, pair, read.split, examples=read.examples)
                for read in run.splits_read
            ]
        runs.append(replace(run, data=combined_fingerprint(fingerprints)))
    return tuple(runs)


def links_subwords(method: Named) -> bool:
    """Return whether a method (or an auxiliary loss) reads links of subwords."""
    return values_of(method).get("word") == ALIGNED_SUBWORDS


def aligner_of(table: Table) -> Aligner:
    """Build the word aligner that a recipe's [align] table names."""
    with located("align"):
        return ALIGNER_KINDS.read(table)


def counts_words(aligner: Aligner) -> bool:
    """Return whether an aligner learns from the words that co-occur in the bitext."""
    return not (aligner.needs_encoder or isinstance(aligner, GivenLinks))


def _is_alone(split: Split, aligner: Aligner, sources: Sources, bitext: str, pair: str) -> bool:
    """Return whether a bitext, such as gold alignments, has no training split to count words in."""
    if split == "train" or not counts_words(aligner):
        return False
    try:
        sources.fingerprint(bitext, pair, "train")
    except DataError:
        return True
    return False
