"""The run that aligns the words of bitext."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import ClassVar, cast

from isogloss.aligners.setting import Aligner, AlignSetting
from isogloss.core.atomic_files import write_text
from isogloss.core.rows import as_row
from isogloss.core.run_parts import Count, Whole
from isogloss.data.corpus import Split, two_languages
from isogloss.data.examples import Translation
from isogloss.data.files import disk_file
from isogloss.data.formats.word_links import Aligned, read_pharaoh
from isogloss.features.alignment.bitext_report import check_bitext
from isogloss.features.alignment.given_links import GivenLinks, Unlinked
from isogloss.features.alignment.rows import AlignmentRow
from isogloss.features.alignment.scores import alignment_scores
from isogloss.runs.estimates import Folders, scoring
from isogloss.runs.run import Encoder, LinkedBitext, Run, RunContext, RunResult, SplitRead
from isogloss.training.memory import Machine

LINKS = "links.txt"
"""The word alignments of a run: Pharaoh's format with scores, a line a translation."""


@dataclass(frozen=True, kw_only=True)
class Align(LinkedBitext):
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
        from isogloss.features.alignment.subwords import in_subwords

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


def counts_words(aligner: Aligner) -> bool:
    """Return whether an aligner learns from the words that co-occur in the bitext."""
    return not (aligner.needs_encoder or isinstance(aligner, GivenLinks))


def write_pharaoh(alignments: Iterable[Aligned]) -> Iterator[str]:
    """Yield a line for each pair, with scores (six significant digits) if the pair has them."""
    for alignment in alignments:
        links = [f"{i}-{j}" for i, j in alignment.links]
        if alignment.scores:
            links = [f"{link}:{score:.6g}" for link, score in zip(links, alignment.scores, strict=True)]
        yield " ".join(links)
