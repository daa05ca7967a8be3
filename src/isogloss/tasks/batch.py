"""Encoded rows of subwords, and their collation into padded batches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import Field, dataclass, field, fields, replace
from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, Self, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from isogloss.encoders.subwords import pad_rows, padding_mask

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from isogloss.encoders.family import Model, Output

Scores: TypeAlias = "Tensor | npt.NDArray[np.float32]"
"""Raw scores [label class] of a row, by torch or by another engine."""


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Field[object]]]


AnyBatch = TypeVar("AnyBatch", bound=_Dataclass)

SEQUENCES: Final = "AutoModelForSequenceClassification"
"""Class of transformers that loads a head for whole rows."""

TOKENS: Final = "AutoModelForTokenClassification"
"""Class of transformers that loads a head for single subwords."""

IGNORED = -100
"""Label that cross entropy ignores."""

ROUNDED_TO = 8
"""Rounded batches have a multiple of this number of subwords per row."""

LABELS_ROUNDED_TO = 128
"""Rounded batches have a multiple of this number of labels."""

HEAD_OUTSIDE = -1
"""Marks a head outside of the row. Such words are ignored in the loss."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedRow:
    """One text, pair or window as the encoder reads it.

    A long sentence becomes several rows, in which each of its words is scored exactly once.
    """

    example: int
    """Index of the example among those encoded together."""

    subwords: Sequence[int]
    """Subword ids including special ones, without padding."""

    segments: Sequence[int] | None = None
    """Segment id of each subword, for encoders with segment embeddings."""

    positions: Sequence[int] = ()
    """Indices of the scored subwords, such as the first subword of each word, or empty if the row is scored
    as a whole. Consecutive indices are a ``range``, which keeps long rows small."""

    options: Sequence[int] = ()
    """Number of subwords of each option's text (multiple choice only). ``subwords`` contains these texts in
    turn, ``positions`` has the scored subword of each, and one label is the index of the right option."""

    words: Sequence[int] = ()
    """Index of the word at each scored position."""

    word_of: Sequence[int] = ()
    """Index of the word that each subword belongs to, -1 for special ones, or empty if the input has no
    words. Unlike ``words``, it includes words that are read but not scored."""

    links: tuple[tuple[int, int], ...] | None = None
    """Word links of a translation as pairs (word of the original, word of the translation)."""

    characters: Sequence[int] = ()
    """Start and end offset in the text of the subword at each scored position, two numbers per position. Only
    tasks whose answers are spans of text have them."""

    gold: Sequence[int] = ()
    """Label id at each scored position, or one for the whole row. Empty for unlabelled rows."""

    soft: Tensor | None = field(default=None, compare=False)
    """[position class]: label probabilities from a teacher (float16), 1 for each label of a set, or a number.
    It replaces ``gold``."""

    heads: tuple[int, ...] = ()
    """Head of the word at each scored position as a 1-based position number (trees only). 0 is the root, -1
    (``HEAD_OUTSIDE``) a head outside of the row. Empty for unlabelled rows."""

    @property
    def scored(self) -> int:
        """Number of scored labels."""
        return 1 if self.options else len(self.positions) or 1

    @property
    def labelled(self) -> bool:
        """Whether it has any labels: ids, probabilities, or a number."""
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

    A row that is scored as a whole is scored at its first subword unless it states a position.
    """

    subwords: Tensor
    """[batch subword], integer."""

    mask: Tensor | None
    """[batch subword], 1 at subwords of the text and 0 at padding, or None without padding."""

    segments: Tensor | None
    """[batch subword], integer."""

    rows: Tensor
    """[label], integer: row index of each scored position."""

    columns: Tensor
    """[label], integer: subword index of each scored position."""

    gold: Tensor
    """[label], integer. Empty for unlabelled batches and for soft labels."""

    heads: Tensor
    """[label], integer, as in ``EncodedRow.heads``. Empty for other tasks."""

    examples: Tensor
    """[batch], integer: example index of each row."""

    soft: Tensor | None = None
    """[label class]: label probabilities or numbers, if some row has them."""

    languages: tuple[str, ...] = ()
    """Language (or pair, as in en-sw) of the whole batch, or of each row. Empty if unspecified."""

    spans: bool = False
    """Whether the answer to a row is a span of its scored positions."""

    options: tuple[int, ...] = ()
    """Number of options of each item (multiple choice only). Each option is a row with one scored position,
    the rows of an item are adjacent, and ``gold`` has one label per item. Empty for other tasks."""

    is_rounded: bool = False
    """Whether its shape is one of few (see ``rounded``)."""

    @property
    def learned(self) -> Tensor:
        """Soft targets [label class].

        Raises ValueError for a batch without soft labels.
        """
        if self.soft is None:
            raise ValueError("a batch without soft labels has no loss of this kind.")
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
        """Number of rows of each item."""
        return self.options or (1,) * len(self.subwords)

    @property
    def items(self) -> int:
        """Number of rows, or of items with several rows each."""
        return len(self.options or self.subwords)

    @property
    def scored(self) -> int:
        """Number of scored labels."""
        return len(self.options or self.rows)

    @property
    def terms(self) -> int:
        """Number of terms that the loss averages: answers, heads in the row, or labels."""
        if self.spans:
            return len(self.subwords)
        return int((self.heads != HEAD_OUTSIDE).sum()) if len(self.heads) else self.scored

    def chosen(self, items: Sequence[int]) -> Self:
        """Return the batch of some items, in ascending order, without changing the width of rows."""
        import torch

        counts = self.rows_of_items
        ends = list(accumulate(counts))
        rows = [row for item in items for row in range(ends[item] - counts[item], ends[item])]
        row_indices = torch.tensor(rows, dtype=torch.long)
        new_indices = torch.full((len(self.subwords),), -1).index_copy(
            0, row_indices, torch.arange(len(row_indices))
        )
        inside = new_indices[self.rows] >= 0
        return replace(
            self,
            subwords=self.subwords[row_indices],
            mask=None if self.mask is None else self.mask[row_indices],
            segments=None if self.segments is None else self.segments[row_indices],
            rows=new_indices[self.rows][inside],
            columns=self.columns[inside],
            gold=self.gold[torch.tensor(list(items), dtype=torch.long) if self.options else inside]
            if len(self.gold)
            else self.gold,
            heads=self.heads[inside] if len(self.heads) else self.heads,
            examples=self.examples[row_indices],
            soft=None if self.soft is None else self.soft[inside],
            languages=tuple(self.languages[row] for row in rows)
            if len(self.languages) > 1
            else self.languages,
            options=tuple(self.options[item] for item in items) if self.options else (),
        )

    def rounded(self, *, padding: int, longest: int, words: bool) -> Self:
        """Return the batch in one of few shapes, with the same loss.

        The width of rows is the next multiple of ``ROUNDED_TO``, at most ``longest``, and all rows have a
        mask. With ``words`` the number of labels is a multiple of ``LABELS_ROUNDED_TO``, and added labels are
        ignored. Batches with soft labels, trees, spans or choices are not changed.
        """
        import torch
        from torch.nn.functional import pad

        if self.soft is not None or len(self.heads) or self.spans or self.options:
            return self
        width = self.subwords.size(1)
        padding_width = max(0, min(width + -width % ROUNDED_TO, longest) - width)
        labels = -len(self.gold) % LABELS_ROUNDED_TO if words else 0
        mask = torch.ones_like(self.subwords) if self.mask is None else self.mask
        return replace(
            self,
            subwords=pad(self.subwords, (0, padding_width), value=padding),
            mask=pad(mask, (0, padding_width)),
            segments=None if self.segments is None else pad(self.segments, (0, padding_width)),
            rows=pad(self.rows, (0, labels)),
            columns=pad(self.columns, (0, labels)),
            gold=pad(self.gold, (0, labels), value=IGNORED),
            is_rounded=True,
        )

    def inputs(self) -> dict[str, Tensor]:
        """Return the keyword arguments of the model's forward function."""
        arguments = {
            "input_ids": self.subwords,
            "attention_mask": self.mask,
            "token_type_ids": self.segments,
        }
        return {name: value for name, value in arguments.items() if value is not None}


class Inputs(Protocol):
    """The input of one forward pass."""

    @property
    def languages(self) -> tuple[str, ...]:
        """Language of the whole batch, or of each row. Empty if unspecified."""

    def inputs(self) -> dict[str, Tensor]:
        """Return the keyword arguments of the forward function."""


def forward(model: Model, batch: Inputs, **options: bool) -> Output:
    """Run an encoder, or a model with a head, on a batch on the same device, in the batch's languages."""
    from isogloss.encoders.added.active_language import active_language

    if not batch.languages:
        return model(**batch.inputs(), **options)
    with active_language(model, batch.languages):
        return model(**batch.inputs(), **options)


def sequence_scores(model: Model, batch: Batch) -> Tensor:
    """Return the scores [label class] of a sequence classifier, with transformers' head or ours."""
    from isogloss.encoders.families import family_of
    from isogloss.encoders.loading import has_own_head

    if has_own_head(model):
        return own_scores(model, batch)
    if family_of(model).is_decoder:
        return _score_last_subword(model, batch)
    scores: Tensor = forward(model, batch).logits
    return scores


def own_scores(model: Model, batch: Batch) -> Tensor:
    """Return the scores [label class] of our head, computed only at the scored positions."""
    states = forward(model.base_model, batch).last_hidden_state
    scores: Tensor = model.head(states[batch.rows, batch.columns])
    return scores


def _score_last_subword(model: Model, batch: Batch) -> Tensor:
    """Return the scores [label class] of transformers' head for decoders.

    Like transformers, it reads the state of the last subword that is not padding. Qwen pads with its end
    subword, so for Qwen the state is the one before the end.
    """
    import torch

    states = forward(model.base_model, batch).last_hidden_state
    is_text = torch.ones_like(batch.subwords)
    if batch.mask is not None:
        is_text = batch.mask
    if model.config.pad_token_id is not None:
        is_text = is_text * (batch.subwords != model.config.pad_token_id)
    places = torch.arange(is_text.size(1), device=is_text.device)
    scores: Tensor = model.score(
        states[torch.arange(len(is_text), device=is_text.device), (places * is_text).argmax(1)]
    )
    return scores


def collate(rows: Sequence[EncodedRow], *, padding: int, languages: tuple[str, ...] = ()) -> Batch:
    """Pad rows to the longest with the subword id ``padding``, making each option of a choice a row.

    ``languages`` has one for all, or one for each of ``rows``. If some rows have soft labels, the gold labels
    of the others become one-hot. Raises ValueError if only some rows have labels.
    """
    import torch

    texts = [row.texts() for row in rows]
    options = tuple(len(item_texts) for item_texts in texts) if rows[0].options else ()
    text_rows = list(chain.from_iterable(texts))
    lengths = [len(row.subwords) for row in text_rows]
    longest = max(lengths)
    positions = [row.positions or (0,) for row in text_rows]
    counts = torch.tensor([len(row_positions) for row_positions in positions])
    soft = _soft_labels(rows)
    gold = [label for row in rows for label in row.gold] if soft is None else []
    heads = [head for row in rows for head in row.heads]
    for mixture, values in (("labels", gold), ("heads", heads)):
        position_count = len(options) or int(counts.sum())
        if values and len(values) != position_count:
            raise ValueError(
                f"{len(values)} {mixture} for {position_count} positions: a batch has all {mixture} or none."
            )
    return Batch(
        subwords=pad_rows([row.subwords for row in text_rows], padding),
        mask=padding_mask(lengths) if min(lengths) < longest else None,
        segments=(
            None
            if all(row.segments is None for row in text_rows)
            else pad_rows([row.segments or (0,) * len(row.subwords) for row in text_rows], 0)
        ),
        rows=torch.repeat_interleave(torch.arange(len(text_rows)), counts),
        columns=torch.tensor([position for row_positions in positions for position in row_positions]),
        gold=torch.tensor(gold, dtype=torch.long),
        heads=torch.tensor(heads, dtype=torch.long),
        examples=torch.tensor([row.example for row in text_rows]),
        soft=soft,
        languages=_languages_of_rows(languages, options),
        spans=any(row.characters for row in rows),
        options=options,
    )


def _languages_of_rows(languages: tuple[str, ...], options: Sequence[int]) -> tuple[str, ...]:
    """Return the languages of the rows of items, given the languages of the items."""
    if len(languages) <= 1 or not options:
        return languages
    return tuple(language for language, count in zip(languages, options, strict=True) for _ in range(count))


def to_array(scores: Scores) -> npt.NDArray[np.float32]:
    """Return scores as an array in float32."""
    values: Any = scores
    if not isinstance(values, np.ndarray):
        values = values.detach().float().cpu().numpy()
    return np.asarray(values, np.float32)


def join_scores(scores: Sequence[Scores]) -> npt.NDArray[np.float32]:
    """Return the scores [label class] of all rows, of which there is at least one, as an array."""
    return np.concatenate([to_array(row_scores) for row_scores in scores])


def row_ranges(rows: int, count: int) -> list[range]:
    """Split the rows of a batch into at most ``count`` ranges of nearly equal length."""
    count = min(count, rows)
    edges = [rows * index // count for index in range(count + 1)]
    return [range(start, stop) for start, stop in pairwise(edges)]


def to_device(batch: AnyBatch, device: torch.device | str) -> AnyBatch:
    """Return a dataclass with all its tensors on a device."""
    from torch import Tensor

    tensors = {
        field.name: value.to(device, non_blocking=True)
        for field in fields(batch)
        if isinstance(value := getattr(batch, field.name), Tensor)
    }
    return replace(batch, **tensors)


def group_by_example(rows: Iterable[EncodedRow]) -> dict[int, list[EncodedRow]]:
    """Group rows by example index, so that the windows of one text stay together."""
    groups: dict[int, list[EncodedRow]] = {}
    for row in rows:
        groups.setdefault(row.example, []).append(row)
    return groups


def _soft_labels(rows: Sequence[EncodedRow]) -> Tensor | None:
    import torch
    from torch.nn.functional import one_hot

    classes = next((row.soft.size(1) for row in rows if row.soft is not None), 0)
    if not classes:
        return None
    hard = (one_hot(torch.tensor(list(row.gold)), classes) if row.soft is None else row.soft for row in rows)
    return torch.cat([labels.float() for labels in hard])
