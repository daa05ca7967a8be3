"""Many encoded rows in a few arrays.

A list of rows takes some 2,700 bytes for a sentence of 36 subwords, a table some 300. Processes that are
forked share its arrays, because reading an array does not write to its memory.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, cast, overload

import numpy as np
import numpy.typing as npt

from isogloss.tasks.batch import EncodedRow

if TYPE_CHECKING:
    from torch import Tensor

    from isogloss.data.examples import Example

Integers = npt.NDArray[np.signedinteger]
Values = Sequence[int] | tuple[tuple[int, int], ...] | None

COLUMNS = (
    *("subwords", "segments", "positions", "options", "words"),
    *("word_of", "links", "characters", "gold", "heads"),
)
"""Fields of a row that are sequences of integers, or of pairs of them."""

PAIRS = "links"
"""The field with pairs."""

DEFAULTS = {name: () for name in COLUMNS if name != "subwords"} | {"segments": None, "links": None}
"""Defaults of the fields that have one."""

BLOCK = 4096
"""Examples that are encoded together. A block's rows take some 10 MB until they are in the table."""

PART = 1_000_000
"""Numbers of a column that are collected before they are stored in a smaller type."""

NUMBERS, RANGE, NONE = range(3)
"""Form in which values of a row are stored: as they are, as the ends of a range, or not at all."""


class RowTable(Sequence[EncodedRow]):
    """A sequence of rows that is stored by columns.

    Each access makes a row. It equals the row that was added, with tuples in place of lists and arrays.
    """

    def __init__(self, rows: Iterable[EncodedRow]) -> None:
        """Store rows."""
        examples = array("q")
        builders = {name: _ColumnBuilder() for name in COLUMNS}
        self._soft: dict[int, Tensor] = {}
        for index, row in enumerate(rows):
            examples.append(row.example)
            for name, builder in builders.items():
                builder.append(_flatten(name, getattr(row, name)))
            if row.soft is not None:
                self._soft[index] = row.soft
        self._examples = _compact(examples)
        self._columns = {
            name: builder.finish()
            for name, builder in builders.items()
            if name not in DEFAULTS or not builder.has_only(DEFAULTS[name])
        }

    def __len__(self) -> int:
        return len(self._examples)

    @overload
    def __getitem__(self, index: int) -> EncodedRow: ...

    @overload
    def __getitem__(self, index: slice) -> list[EncodedRow]: ...

    def __getitem__(self, index: int | slice) -> EncodedRow | list[EncodedRow]:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        position = range(len(self))[index]
        fields = {name: column[position] for name, column in self._columns.items()}
        if fields.get(PAIRS) is not None:
            numbers = fields[PAIRS]
            fields[PAIRS] = tuple(zip(numbers[::2], numbers[1::2], strict=True))
        return EncodedRow(
            example=int(self._examples[position]),
            soft=self._soft.get(position),
            **fields,
        )

    def __iter__(self) -> Iterator[EncodedRow]:
        return (self[position] for position in range(len(self)))

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays, without teachers' probabilities."""
        return self._examples.nbytes + sum(column.nbytes for column in self._columns.values())


def encode_in_blocks(
    examples: Sequence[Example], encode: Callable[[Sequence[Example]], Iterable[EncodedRow]]
) -> Iterator[EncodedRow]:
    """Encode examples a block at a time, and yield the rows of all."""
    for start in range(0, len(examples), BLOCK):
        for row in encode(examples[start : start + BLOCK]):
            yield replace(row, example=row.example + start) if start else row


@dataclass(frozen=True)
class _Column:
    """The values of one field of all rows."""

    numbers: Integers
    ends: Integers
    """End of each row's numbers. A row starts where the row before it ends."""
    kinds: npt.NDArray[np.int8]
    """NUMBERS, RANGE or NONE for each row, or one for all rows."""

    def __getitem__(self, position: int) -> Any:
        kind = self.kinds[position if len(self.kinds) > 1 else 0]
        if kind == NONE:
            return None
        start = int(self.ends[position - 1]) if position else 0
        numbers = self.numbers[start : self.ends[position]].tolist()
        return range(*numbers) if kind == RANGE else tuple(numbers)

    @property
    def nbytes(self) -> int:
        return self.numbers.nbytes + self.ends.nbytes + self.kinds.nbytes


class _ColumnBuilder:
    """Collects the values of a column, and stores full parts of them in the smallest type of integers."""

    def __init__(self) -> None:
        self._parts: list[Integers] = []
        self._stored = 0
        self._numbers = array("q")
        self._ends = array("q")
        self._kinds = bytearray()

    def append(self, values: Sequence[int] | None) -> None:
        if values is None:
            kind = NONE
        elif isinstance(values, range) and values.step == 1:
            kind = RANGE
            self._numbers.extend((values.start, values.stop))
        else:
            kind = NUMBERS
            self._numbers.extend(iter(values))  # An array of another type cannot be added at once.
        self._kinds.append(kind)
        self._ends.append(self._stored + len(self._numbers))
        if len(self._numbers) >= PART:
            self._store_part()

    def _store_part(self) -> None:
        self._parts.append(_compact(self._numbers))
        self._stored += len(self._numbers)
        self._numbers = array("q")

    def has_only(self, default: tuple[()] | None) -> bool:
        """Whether all rows have the default of their field."""
        has_numbers = bool(self._stored or self._numbers)
        return not has_numbers and set(self._kinds) <= {NONE if default is None else NUMBERS}

    def finish(self) -> _Column:
        kinds = np.frombuffer(bytes(self._kinds), dtype=np.int8)
        self._store_part()
        return _Column(
            numbers=np.concatenate(self._parts),
            ends=_compact(self._ends),
            kinds=kinds[:1] if len(set(self._kinds)) == 1 else kinds,
        )


def _flatten(name: str, values: Values) -> Sequence[int] | None:
    """Return pairs as numbers in turn, and any other values as they are."""
    if name == PAIRS and values is not None:
        return list(chain.from_iterable(cast("tuple[tuple[int, int], ...]", values)))
    return cast("Sequence[int] | None", values)


def _compact(numbers: array[int]) -> Integers:
    """Return numbers in the smallest type of integers that has them all."""
    values: Integers = np.array(numbers, dtype=np.int64)
    lowest, highest = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    fitting = (
        kind
        for kind in (np.int8, np.int16, np.int32, np.int64)
        if np.iinfo(kind).min <= lowest and highest <= np.iinfo(kind).max
    )
    return values.astype(next(fitting))
