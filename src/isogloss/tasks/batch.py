"""Encoded rows of subwords, and their collation into padded batches."""

from collections.abc import Iterable, Sequence
from dataclasses import Field, dataclass, field, fields, replace
from itertools import accumulate, chain, pairwise
from typing import ClassVar, Final, Protocol, Self, TypeVar

import torch
from torch import Tensor
from torch.nn.functional import one_hot, pad

from isogloss.encoders.added.active_language import active_language
from isogloss.encoders.families import family_of
from isogloss.encoders.family import Model, Output
from isogloss.encoders.loading import has_own_head
from isogloss.encoders.subwords import pad_rows, padding_mask


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Field[object]]]


AnyBatch = TypeVar("AnyBatch", bound=_Dataclass)

SEQUENCES: Final = "AutoModelForSequenceClassification"
TOKENS: Final = "AutoModelForTokenClassification"
"""The class of transformers that loads a head for whole rows."""

IGNORED = -100
"""The label that cross entropy leaves out."""

ROUNDED_TO, LABELS_ROUNDED_TO = 8, 128
"""Subwords of a row, and labels of a batch, whose multiples are the shapes of rounded batches."""

HEAD_OUTSIDE = -1
"""Marks a head outside the row; such words are ignored in the loss."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedRow:
    """One text, pair or window as the encoder sees it.

    A long sentence becomes several rows, in which each of its words is scored exactly once.
    """

    example: int
    """Index of the example among those encoded together."""

    subwords: Sequence[int]
    """Subword ids including special ones, without padding."""

    segments: Sequence[int] | None = None
    """Segment id of each subword, for encoders with segment embeddings."""

    positions: Sequence[int] = ()
    """Indices of the scored subwords, such as the first subword of each word; empty when the row is scored as
    a whole. A ``range`` where they are consecutive, which keeps long rows small."""

    options: Sequence[int] = ()
    """For multiple choice: the number of subwords of each option's text. ``subwords`` has these texts one
    after the other, ``positions`` the scored subword of each; one label says which option is right."""

    words: Sequence[int] = ()
    """Index of the word at each scored position."""

    word_of: Sequence[int] = ()
    """Index of the word that each subword belongs to, -1 for special ones; empty where the input has no
    words. It says more than ``positions``: words that are read and not scored are there too."""

    links: tuple[tuple[int, int], ...] | None = None
    """Of a translation whose words are linked: pairs of a word of what was translated and one of its own."""

    characters: Sequence[int] = ()
    """Start and end offset in the text of the subword at each scored position, two numbers per position; only
    for tasks whose answers are spans of text."""

    gold: Sequence[int] = ()
    """Label id at each scored position, or one for the whole row; empty for unlabelled rows."""

    soft: Tensor | None = field(default=None, compare=False)
    """[position class]: label probabilities from a teacher (float16), 1 for each label that holds, or a
    number; instead of ``gold``."""

    heads: tuple[int, ...] = ()
    """For trees: the head of the word at each scored position as a 1-based position number; 0 is the root, -1
    (``HEAD_OUTSIDE``) a head outside the row. Empty for unlabelled rows."""

    @property
    def scored(self) -> int:
        """The number of scored labels."""
        return 1 if self.options else len(self.positions) or 1

    @property
    def labelled(self) -> bool:
        """Whether it has a label: one of a list, several, or a number."""
        return bool(self.gold) or self.soft is not None

    def texts(self) -> list["EncodedRow"]:
        """Return each option's text as a row without a label, or the row itself without options."""
        if not self.options:
            return [self]
        starts = accumulate(self.options, initial=0)
        return [
            replace(
                self,
                subwords=self.subwords[start : start + length],
                segments=None if self.segments is None else self.segments[start : start + length],
                positions=(position - start,),
                options=(),
                gold=(),
            )
            for start, length, position in zip(starts, self.options, self.positions, strict=False)
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Rows padded to the longest. ``rows`` and ``columns`` index the scored positions, row by row.

    A row that is scored as a whole is scored at its first subword unless it gives a position.
    """

    subwords: Tensor
    """[batch subword], integer."""

    mask: Tensor | None
    """[batch subword], 1 at real subwords and 0 at padding; None without padding."""

    segments: Tensor | None
    """[batch subword], integer."""

    rows: Tensor
    """[label], integer: row index of each scored position."""

    columns: Tensor
    """[label], integer: subword index of each scored position."""

    gold: Tensor
    """[label], integer; empty for unlabelled batches and for soft labels."""

    heads: Tensor
    """[label], integer: as ``EncodedRow.heads``; empty for other tasks."""

    examples: Tensor
    """[batch], integer: example index of each row."""

    soft: Tensor | None = None
    """[label class]: label probabilities or numbers, if some row has them."""

    languages: tuple[str, ...] = ()
    """The language (or pair, as in en-sw) of the whole batch, or of each row; empty for unspecified."""

    spans: bool = False
    """Whether the answer to a row is a span of its scored positions."""

    options: tuple[int, ...] = ()
    """For multiple choice: the number of options of each item. Each option is a row with one scored position,
    those of an item one after the other; ``gold`` has one label an item. Empty for other tasks."""

    is_rounded: bool = False
    """Whether its shape is one of few (``rounded``)."""

    @property
    def learned(self) -> Tensor:
        """Soft targets [label class]; ValueError for a batch without labels."""
        if self.soft is None:
            raise ValueError("a batch without labels has no loss")
        return self.soft

    def to(self, device: torch.device | str) -> Self:
        """Return the batch on a device."""
        return to_device(self, device)

    def parts(self, count: int) -> list[tuple[Self, float]]:
        """Split into at most ``count`` batches of nearly as many items, each with its share of the loss."""
        terms = self.terms
        parts = [self.chosen(items) for items in row_ranges(self.items, count)]
        return [(part, part.terms / max(1, terms)) for part in parts]

    @property
    def rows_of_items(self) -> tuple[int, ...]:
        """The number of rows of each item."""
        return self.options or (1,) * len(self.subwords)

    @property
    def items(self) -> int:
        """The number of rows, or of items with several rows each."""
        return len(self.options or self.subwords)

    @property
    def scored(self) -> int:
        """The number of scored labels."""
        return len(self.options or self.rows)

    @property
    def terms(self) -> int:
        """The number of terms that the loss averages: answers, heads in the row, or labels."""
        if self.spans:
            return len(self.subwords)
        return int((self.heads != HEAD_OUTSIDE).sum()) if len(self.heads) else self.scored

    def chosen(self, items: Sequence[int]) -> Self:
        """Return the batch of some items, in ascending order; their rows stay as wide as they are."""
        counts = self.rows_of_items
        ends = list(accumulate(counts))
        rows = [row for item in items for row in range(ends[item] - counts[item], ends[item])]
        row_numbers = torch.tensor(rows, dtype=torch.long)
        number = torch.full((len(self.subwords),), -1).index_copy(
            0, row_numbers, torch.arange(len(row_numbers))
        )
        inside = number[self.rows] >= 0
        return replace(
            self,
            subwords=self.subwords[row_numbers],
            mask=None if self.mask is None else self.mask[row_numbers],
            segments=None if self.segments is None else self.segments[row_numbers],
            rows=number[self.rows][inside],
            columns=self.columns[inside],
            gold=self.gold[torch.tensor([*items], dtype=torch.long) if self.options else inside]
            if len(self.gold)
            else self.gold,
            heads=self.heads[inside] if len(self.heads) else self.heads,
            examples=self.examples[row_numbers],
            soft=None if self.soft is None else self.soft[inside],
            languages=tuple(self.languages[row] for row in rows)
            if len(self.languages) > 1
            else self.languages,
            options=tuple(self.options[item] for item in items) if self.options else (),
        )

    def rounded(self, *, padding: int, longest: int, words: bool) -> Self:
        """Return the batch in one of few shapes, with the same loss.

        Rows are as wide as the next multiple of ``ROUNDED_TO``, at most ``longest``, and all have a mask.
        With ``words`` the number of labels is a multiple of ``LABELS_ROUNDED_TO``: those added are ignored.
        Soft labels, trees, spans and choices stay as they are.
        """
        if self.soft is not None or len(self.heads) or self.spans or self.options:
            return self
        width = self.subwords.size(1)
        added = max(0, min(width + -width % ROUNDED_TO, longest) - width)
        labels = -len(self.gold) % LABELS_ROUNDED_TO if words else 0
        mask = torch.ones_like(self.subwords) if self.mask is None else self.mask
        return replace(
            self,
            subwords=pad(self.subwords, (0, added), value=padding),
            mask=pad(mask, (0, added)),
            segments=None if self.segments is None else pad(self.segments, (0, added)),
            rows=pad(self.rows, (0, labels)),
            columns=pad(self.columns, (0, labels)),
            gold=pad(self.gold, (0, labels), value=IGNORED),
            is_rounded=True,
        )

    def inputs(self) -> dict[str, Tensor]:
        """Return the keyword arguments of the model's forward function."""
        named = {
            "input_ids": self.subwords,
            "attention_mask": self.mask,
            "token_type_ids": self.segments,
        }
        return {name: value for name, value in named.items() if value is not None}


class Inputs(Protocol):
    """The input of one forward pass."""

    @property
    def languages(self) -> tuple[str, ...]:
        """The language of the whole batch, or of each row; empty for unspecified."""

    def inputs(self) -> dict[str, Tensor]:
        """Return the keyword arguments of the forward function."""


def forward(model: Model, batch: Inputs, **options: bool) -> Output:
    """Run an encoder, or a model with a head, on a batch on the same device, in the batch's languages."""
    if not batch.languages:
        return model(**batch.inputs(), **options)
    with active_language(model, batch.languages):
        return model(**batch.inputs(), **options)


def sequence_scores(model: Model, batch: Batch) -> Tensor:
    """Return the scores [label class] of a sequence classifier of transformers, or of one of our own."""
    if has_own_head(model):
        return own_scores(model, batch)
    if family_of(model).is_decoder:
        return _score_last_subword(model, batch)
    scores: Tensor = forward(model, batch).logits
    return scores


def own_scores(model: Model, batch: Batch) -> Tensor:
    """Return the scores [label class] of a head of our own, computed at the scored positions only."""
    states = forward(model.base_model, batch).last_hidden_state
    scores: Tensor = model.head(states[batch.rows, batch.columns])
    return scores


def _score_last_subword(model: Model, batch: Batch) -> Tensor:
    """Return the scores [label class] of transformers' head for decoders.

    It reads the state of the last subword that is not padding, as transformers does: of Qwen's rows not the
    end, which is the padding as well.
    """
    states = forward(model.base_model, batch).last_hidden_state
    real = torch.ones_like(batch.subwords)
    if batch.mask is not None:
        real = batch.mask
    if model.config.pad_token_id is not None:
        real = real * (batch.subwords != model.config.pad_token_id)
    places = torch.arange(real.size(1), device=real.device)
    scores: Tensor = model.score(
        states[torch.arange(len(real), device=real.device), (places * real).argmax(1)]
    )
    return scores


def collate(rows: Sequence[EncodedRow], *, padding: int, languages: tuple[str, ...] = ()) -> Batch:
    """Pad rows to the longest with the subword id ``padding``; each option of a choice becomes a row.

    ``languages`` has one for all, or one for each of ``rows``. If some rows have soft labels, the gold labels
    of the others become one-hot. ValueError when only some rows have labels.
    """
    texts = [row.texts() for row in rows]
    options = tuple(map(len, texts)) if rows[0].options else ()
    expanded = list(chain.from_iterable(texts))
    lengths = [len(row.subwords) for row in expanded]
    longest = max(lengths)
    positions = [row.positions or (0,) for row in expanded]
    counts = torch.tensor([len(row_positions) for row_positions in positions])
    soft = _soft_labels(rows)
    gold = [label for row in rows for label in row.gold] if soft is None else []
    heads = [head for row in rows for head in row.heads]
    for what, values in (("labels", gold), ("heads", heads)):
        expected = len(options) or int(counts.sum())
        if values and len(values) != expected:
            raise ValueError(
                f"{len(values)} {what} for {expected} positions: a batch has all {what} or none."
            )
    return Batch(
        subwords=pad_rows([row.subwords for row in expanded], padding),
        mask=padding_mask(lengths) if min(lengths) < longest else None,
        segments=(
            None
            if all(row.segments is None for row in expanded)
            else pad_rows([row.segments or (0,) * len(row.subwords) for row in expanded], 0)
        ),
        rows=torch.repeat_interleave(torch.arange(len(expanded)), counts),
        columns=torch.tensor([position for row_positions in positions for position in row_positions]),
        gold=torch.tensor(gold, dtype=torch.long),
        heads=torch.tensor(heads, dtype=torch.long),
        examples=torch.tensor([row.example for row in expanded]),
        soft=soft,
        languages=_of_each(languages, options),
        spans=any(row.characters for row in rows),
        options=options,
    )


def _of_each(languages: tuple[str, ...], options: Sequence[int]) -> tuple[str, ...]:
    """Return the languages of the rows of items, from those of the items."""
    if len(languages) <= 1 or not options:
        return languages
    return tuple(language for language, count in zip(languages, options, strict=True) for _ in range(count))


def row_ranges(rows: int, count: int) -> list[range]:
    """Split the rows of a batch into at most ``count`` ranges of nearly equal length."""
    count = min(count, rows)
    return [range(*edges) for edges in pairwise(rows * number // count for number in range(count + 1))]


def to_device(batch: AnyBatch, device: torch.device | str) -> AnyBatch:
    """Return a dataclass with all its tensors on a device."""
    moved = {
        field.name: value.to(device, non_blocking=True)
        for field in fields(batch)
        if isinstance(value := getattr(batch, field.name), Tensor)
    }
    return replace(batch, **moved)


def by_example(rows: Iterable[EncodedRow]) -> dict[int, list[EncodedRow]]:
    """Group rows by example index, so that the windows of one text stay together."""
    groups: dict[int, list[EncodedRow]] = {}
    for row in rows:
        groups.setdefault(row.example, []).append(row)
    return groups


def _soft_labels(rows: Sequence[EncodedRow]) -> Tensor | None:
    classes = next((row.soft.size(1) for row in rows if row.soft is not None), 0)
    if not classes:
        return None
    hard = (one_hot(torch.tensor(list(row.gold)), classes) if row.soft is None else row.soft for row in rows)
    return torch.cat([labels.float() for labels in hard])
