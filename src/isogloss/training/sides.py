"""Texts and their translations in one batch, for training, scoring and states.

Both sides run through an encoder in one pass, the source rows first. The batch of a text without a
translation has no source rows. Windows of long texts are paired by one rule in training
(``repeated_windows``) and by a different one in scoring (``middle_windows``).

Alignments link words, but mixing works subword by subword (X-Mixup, ``attends = "links"``): every subword of
a word is linked to every subword of the words that the word is linked to. In windows, only words that both
windows show are linked. Special subwords belong to no word.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from jaxtyping import Bool
from torch import Tensor

from isogloss.core.errors import DataError
from isogloss.data.examples import Example
from isogloss.data.files import some
from isogloss.data.projection.words import WordLinks
from isogloss.encoders.family import Model
from isogloss.encoders.mixup import LINKS_NEEDED, MAKE_LINKS, MixingTrace, Mixup, mixing
from isogloss.tasks.batch import Batch, EncodedRow, collate, group_by_example, row_ranges


class RowPair(NamedTuple):
    """A row of each side, and the links (word of the source, word of the target), if any."""

    source: EncodedRow
    target: EncodedRow
    links: WordLinks | None = None


class SideShares(NamedTuple):
    """Shares of a partial batch in the full batch, for means over labels of each side, pairs, and rows."""

    source: float = 1.0
    target: float = 1.0
    pairs: float = 1.0
    rows: float = 1.0


FULL_BATCH = SideShares()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """Rows of both sides, the source rows first, and the labels of each side.

    The scored positions of ``joined`` are the source's, then the target's.
    """

    joined: Batch
    source: Batch
    """Source rows. Empty for texts without a translation."""
    target: Batch
    links: Bool[Tensor, "pair target source"] | None = None
    """Whether subwords belong to linked words. None unless the words of all pairs are linked."""
    back: bool = False
    """Whether back-translations replace all source rows of the batch."""
    shares: SideShares = FULL_BATCH

    @property
    def paired(self) -> bool:
        """Whether the target rows have source rows."""
        return len(self.source.subwords) > 0

    def to(self, device: torch.device | str) -> "Sides":
        """Return the batch on a device."""
        return replace(
            self,
            joined=self.joined.to(device),
            source=self.source.to(device),
            target=self.target.to(device),
            links=None if self.links is None else self.links.to(device),
        )

    def parts(self, count: int) -> list[tuple["Sides", float]]:
        """Split into at most ``count`` batches of similar numbers of pairs, with their shares of the loss."""
        pairs = self.source.items
        parts = []
        for rows in row_ranges(pairs, count):
            source = self.source.chosen(rows)
            target = self.target.chosen(rows)
            both_sides = self.joined.chosen([*rows, *(pairs + row for row in rows)])
            shares = SideShares(
                source.terms / self.source.terms,
                target.terms / self.target.terms,
                len(rows) / pairs,
                len(source.subwords) / len(self.source.subwords),
            )
            links = None if self.links is None else self.links[rows.start : rows.stop]
            part = Sides(joined=both_sides, source=source, target=target, links=links, shares=shares)
            parts.append((replace(part, back=self.back), 1.0))
        return parts

    def split(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        """Split scores [label class] of ``joined`` into source and target scores."""
        return scores[: self.source.scored], scores[self.source.scored :]

    def mixing(self, model: Model, mixup: Mixup) -> AbstractContextManager[MixingTrace]:
        """Let one layer mix the sides while a model runs on ``joined``.

        Without source rows, nothing is mixed.
        """
        if not self.paired:
            return nullcontext(MixingTrace())
        return mixing(model, mixup, self.joined.mask, self.joined.languages, self.links)


def collate_pairs(pairs: Sequence[RowPair], *, padding: int, languages: tuple[str, ...] = ()) -> Sides:
    """Collate pairs of rows. ``languages`` are the source and the target language."""
    sources = [pair.source for pair in pairs]
    targets = [pair.target for pair in pairs]
    both_sides = collate(
        [without_labels(row) for row in (*sources, *targets)],
        padding=padding,
        languages=tuple(language for language in languages for _ in pairs),
    )
    return Sides(
        joined=both_sides,
        source=collate(sources, padding=padding),
        target=collate(targets, padding=padding),
        links=subword_links(pairs, width=both_sides.subwords.size(1)),
    )


def collate_alone(rows: Sequence[EncodedRow], *, padding: int, language: str) -> Sides:
    """Collate rows that have no translation."""
    batch = collate(rows, padding=padding, languages=(language,))
    return Sides(joined=batch, source=batch.chosen(()), target=batch)


def without_labels(row: EncodedRow) -> EncodedRow:
    """Return a row without its labels."""
    return replace(row, gold=(), heads=(), soft=None)


def translation_rows(
    examples: Sequence[Example],
    translations: Sequence[Example],
    encode: Callable[[Sequence[Example]], Sequence[EncodedRow]],
) -> list[EncodedRow]:
    """Encode translations, matched by id, under the numbers of their examples."""
    numbers = {example.id: index for index, example in enumerate(examples)}
    matching = [translation for translation in translations if translation.id in numbers]
    return [replace(row, example=numbers[matching[row.example].id]) for row in encode(matching)]


def repeated_windows(windows: Sequence[EncodedRow], count: int) -> list[EncodedRow]:
    """Return ``count`` windows in order, which repeats each equally often, or once more.

    This is the rule of training: the side with fewer windows repeats some, so that every window is used.
    """
    return [windows[index * len(windows) // count] for index in range(count)]


def middle_windows(windows: Sequence[EncodedRow], count: int) -> list[EncodedRow]:
    """Return, for each of ``count`` windows of a text, the translation's window that contains its middle.

    This is the rule of scoring: each window of the text is scored once, and some windows of the translation
    may never be read.
    """
    return [windows[(2 * index + 1) * len(windows) // (2 * count)] for index in range(count)]


def scoring_partners(rows: Sequence[EncodedRow], translations: Sequence[EncodedRow]) -> dict[int, EncodedRow]:
    """Return, by row index, the translation's row with which each row is scored."""
    windows = group_by_example(translations)
    row_indices: dict[int, list[int]] = {}
    for index, row in enumerate(rows):
        if row.example in windows:
            row_indices.setdefault(row.example, []).append(index)
    return {
        index: partner
        for example, indices in row_indices.items()
        for index, partner in zip(indices, middle_windows(windows[example], len(indices)), strict=True)
    }


def reversed_links(links: WordLinks | None) -> WordLinks | None:
    """Return links from the target's words to the source's."""
    return None if links is None else [(target, source) for source, target in links]


def subword_links(pairs: Sequence[RowPair], *, width: int) -> Bool[Tensor, "pair target source"] | None:
    """Return which subwords of rows padded to ``width`` are linked, or None unless all pairs have links."""
    if any(pair.links is None for pair in pairs):
        return None
    batch_links = torch.zeros(len(pairs), width, width, dtype=torch.bool)
    for row, (source, target, links) in enumerate(pairs):
        sources, targets = (torch.tensor(side.word_of, dtype=torch.long) for side in (source, target))
        word_links = torch.zeros(
            _words(target.word_of, links, 1), _words(source.word_of, links, 0), dtype=torch.bool
        )
        for source_word, target_word in links or ():
            word_links[target_word, source_word] = True
        batch_links[row, : len(targets), : len(sources)] = word_links[targets][:, sources]
    return batch_links


def _words(word_of: Sequence[int], links: WordLinks | None, side: int) -> int:
    """Return one more than the number of words: index -1, of special subwords, is a word without links."""
    return 2 + max((*word_of, *(pair[side] for pair in links or ())), default=0)


def check_linked(translations: Iterable[Example], corpus: str, *, needed: str = LINKS_NEEDED) -> None:
    """Raise DataError, with ids, for translations without word links to the originals.

    ``needed`` states what the links are for.
    """
    missing = [example.id for example in translations if getattr(example, "links", None) is None]
    if missing:
        raise DataError(
            f"{corpus}: {needed}, and {len(missing)} translations have no word links (ids "
            f"{some(missing)}). {MAKE_LINKS}"
        )
