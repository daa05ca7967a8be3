"""Rows of two sides that belong together, and batches in which both run through an encoder in one pass."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from isogloss.tasks.batch import Batch, EncodedRow, collate

Row = TypeVar("Row", bound="EncodedRow | Labelled")


@dataclass(frozen=True, slots=True)
class Labelled:
    """A row with its gold labels, or with probabilities in their place."""

    row: EncodedRow
    soft: Tensor | None = None
    """[place class], float16: probabilities of the labels at the row's places."""

    @property
    def example(self) -> int:
        """Number of the row's example."""
        return self.row.example


@dataclass(frozen=True, slots=True)
class PairedRow:
    """A source row and its translation; ``back`` is what may take the source's place."""

    source: Labelled
    target: Labelled
    back: Labelled | None = None

    def __len__(self) -> int:
        """Return the subwords of the longer side."""
        return max(len(self.source.row.subwords), len(self.target.row.subwords))


def paired_rows(
    sources: Iterable[Labelled], targets: Iterable[Labelled], backs: Iterable[Labelled] = ()
) -> list[PairedRow]:
    """Pair the rows of examples that have equal numbers, in their order.

    A long text has several windows, and its translation may have more or fewer: the side with fewer gives
    some of them twice, so that neighbours meet and none is left out.
    """
    there, others, again = by_example(sources), by_example(targets), by_example(backs)
    found: list[PairedRow] = []
    for example, rows in there.items():
        translated, back = others.get(example, []), again.get(example, [])
        if not translated:
            continue
        count = max(len(rows), len(translated))
        backs_of = spread(back, count) if back else [None] * count
        found += map(PairedRow, spread(rows, count), spread(translated, count), backs_of)
    return found


def by_example(rows: Iterable[Row]) -> dict[int, list[Row]]:
    """Group rows by the number of their example."""
    found: dict[int, list[Row]] = {}
    for row in rows:
        found.setdefault(row.example, []).append(row)
    return found


def spread(rows: Sequence[Row], count: int) -> list[Row]:
    """Give ``count`` of these rows in their order, each as often as the others or once more."""
    return [rows[place * len(rows) // count] for place in range(count)]


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a batch: its rows alone, with labels."""

    batch: Batch
    soft: Tensor | None = None
    """[label class]: probabilities of the labels, where some row has no gold."""

    @property
    def places(self) -> int:
        """Number of places that are scored."""
        return len(self.batch.columns)

    def to(self, device: torch.device | str) -> "Side":
        """Return it on a device."""
        soft = None if self.soft is None else self.soft.to(device, non_blocking=True)
        return Side(self.batch.to(device), soft)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedBatch:
    """Rows of both sides, the source's first, and each side alone.

    The places of ``both`` are those of the source, then those of the target.
    """

    both: Batch
    source: Side
    target: Side
    languages: tuple[str, ...] = ()
    """Of each row of both the language (or pair, as in en-sw)."""

    def to(self, device: torch.device | str) -> "PairedBatch":
        """Return the batch on a device."""
        return PairedBatch(
            both=self.both.to(device),
            source=self.source.to(device),
            target=self.target.to(device),
            languages=self.languages,
        )

    def split(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        """Split scores [label class] of ``both`` into those of source and target."""
        return scores[: self.source.places], scores[self.source.places :]


def collate_sides(
    sources: Sequence[Labelled], targets: Sequence[Labelled], *, padding: int, labels: int
) -> PairedBatch:
    """Put as many rows of each side into one batch; ``labels`` is the number of classes."""
    rows = [replace(one.row, gold=(), heads=()) for one in (*sources, *targets)]
    return PairedBatch(
        both=collate(rows, padding=padding),
        source=collate_side(sources, padding=padding, labels=labels),
        target=collate_side(targets, padding=padding, labels=labels),
    )


def collate_side(rows: Sequence[Labelled], *, padding: int, labels: int) -> Side:
    """Put rows into one batch, with probabilities for labels where some row has no gold."""
    if all(one.soft is None for one in rows):
        return Side(collate([one.row for one in rows], padding=padding))
    soft = [_gold(one.row, labels) if one.soft is None else one.soft.float() for one in rows]
    return Side(collate([replace(one.row, gold=()) for one in rows], padding=padding), torch.cat(soft))


def _gold(row: EncodedRow, labels: int) -> Tensor:
    return one_hot(torch.tensor(list(row.gold)), labels).float()
