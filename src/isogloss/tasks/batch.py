"""From examples to tensors: rows of subwords, and batches of rows with the places that are scored."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol, Self

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from isogloss.encoders.language_context import active_language


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedRow:
    """One text, pair or window as the encoder sees it.

    A long sentence becomes several rows; together they score each of its words once.
    """

    example: int
    """Number of the example among those that were encoded."""

    subwords: Sequence[int]
    """With the special ones, without padding."""

    segments: Sequence[int] | None = None
    """Segment of each subword, where an encoder tells the two texts of a pair apart by it."""

    positions: Sequence[int] = ()
    """Places scored, as the first subword of each word this row owns; none when the row is scored as a
    whole. A range where they follow each other: long rows stay small."""

    words: Sequence[int] = ()
    """Number of the word at each of these places."""

    characters: Sequence[int] = ()
    """Where the subword at each of these places begins and ends in its text, two numbers a place; only for
    tasks that answer with a piece of text."""

    gold: Sequence[int] = ()
    """Label number at each of these places, or the one of the whole row; none when there are no labels."""

    soft: Tensor | None = field(default=None, compare=False)
    """[place class], float16: probabilities of the labels at these places, where a teacher gave some."""

    heads: tuple[int, ...] = ()
    """For trees: the head of the word at each of these places, as the number of a place counted from 1; 0 is
    the root, -1 a head outside the row. As many as there are labels, else none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Rows padded to the longest. ``rows`` and ``columns`` say which places are scored, row by row.

    A row that is scored as a whole is scored at its first subword.
    """

    subwords: Tensor
    """[batch subword], integer."""

    mask: Tensor | None
    """[batch subword], 1 at real subwords and 0 at padding; None when there is no padding."""

    segments: Tensor | None
    """[batch subword], integer."""

    rows: Tensor
    """[label], integer: row of each place that is scored."""

    columns: Tensor
    """[label], integer: its place in the row."""

    gold: Tensor
    """[label], integer; empty when there are no labels, or probabilities in their place."""

    heads: Tensor
    """[label], integer: head of each place within its row, counted from 1, 0 for the root, -1 for one
    outside; empty without."""

    examples: Tensor
    """[batch], integer: example of each row."""

    soft: Tensor | None = None
    """[label class]: probabilities of the labels, where some row has them."""

    languages: tuple[str, ...] = ()
    """The language (or pair, as in en-sw) of the whole batch, or of each row; none said: any."""

    def to(self, device: torch.device | str) -> Self:
        """Return the batch on a device."""
        values: dict[str, Any] = {one.name: getattr(self, one.name) for one in fields(self)}
        for name, value in values.items():
            if isinstance(value, Tensor):
                values[name] = value.to(device, non_blocking=True)
        return replace(self, **values)

    def inputs(self) -> dict[str, Tensor]:
        """Return what the forward function of an encoder, or of a model, is called with."""
        named = {
            "input_ids": self.subwords,
            "attention_mask": self.mask,
            "token_type_ids": self.segments,
        }
        return {name: value for name, value in named.items() if value is not None}


def by_example(rows: Iterable[EncodedRow]) -> dict[int, list[EncodedRow]]:
    """Group rows by the number of their example: windows of one text belong together."""
    found: dict[int, list[EncodedRow]] = {}
    for row in rows:
        found.setdefault(row.example, []).append(row)
    return found


class Inputs(Protocol):
    """What goes through an encoder in one pass."""

    @property
    def languages(self) -> tuple[str, ...]:
        """The language of the whole batch, or of each row; none said: any."""
        ...

    def inputs(self) -> dict[str, Tensor]:
        """Return what the forward function is called with."""
        ...


def forward(model: Any, batch: Inputs, **wanted: Any) -> Any:
    """Run an encoder, or a model with a head, on a batch that is on its device, in the batch's languages."""
    if not batch.languages:
        return model(**batch.inputs(), **wanted)
    with active_language(model, batch.languages):
        return model(**batch.inputs(), **wanted)


def collate(rows: Sequence[EncodedRow], *, padding: int, languages: tuple[str, ...] = ()) -> Batch:
    """Pad rows to the longest with the subword ``padding``; ValueError when only some rows have labels.

    Where some rows have probabilities for labels, gold labels become such.
    """
    lengths = [len(row.subwords) for row in rows]
    longest = max(lengths)
    places = [row.positions or (0,) for row in rows]
    counts = torch.tensor([len(row_places) for row_places in places])
    soft = _soft(rows)
    gold = [label for row in rows for label in row.gold] if soft is None else []
    heads = [head for row in rows for head in row.heads]
    for what, given in (("labels", gold), ("heads", heads)):
        if given and len(given) != int(counts.sum()):
            raise ValueError(
                f"{len(given)} {what} for {int(counts.sum())} places: a batch has all {what} or none."
            )
    padded = [list(row.subwords) + [padding] * (longest - len(row.subwords)) for row in rows]
    return Batch(
        subwords=torch.tensor(padded),
        mask=_mask(torch.tensor(lengths), longest) if min(lengths) < longest else None,
        segments=_segments(rows, longest),
        rows=torch.repeat_interleave(torch.arange(len(rows)), counts),
        columns=torch.tensor([place for row_places in places for place in row_places]),
        gold=torch.tensor(gold, dtype=torch.long),
        heads=torch.tensor(heads, dtype=torch.long),
        examples=torch.tensor([row.example for row in rows]),
        soft=soft,
        languages=languages,
    )


def _soft(rows: Sequence[EncodedRow]) -> Tensor | None:
    classes = next((row.soft.size(1) for row in rows if row.soft is not None), 0)
    if not classes:
        return None
    sure = (one_hot(torch.tensor(list(row.gold)), classes) if row.soft is None else row.soft for row in rows)
    return torch.cat([one.float() for one in sure])


def _mask(lengths: Tensor, longest: int) -> Tensor:
    return (torch.arange(longest) < lengths.unsqueeze(1)).long()


def _segments(rows: Sequence[EncodedRow], longest: int) -> Tensor | None:
    if all(row.segments is None for row in rows):
        return None
    whole = [row.segments or (0,) * len(row.subwords) for row in rows]
    return torch.tensor([list(segments) + [0] * (longest - len(segments)) for segments in whole])
