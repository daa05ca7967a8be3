"""Text as one long row of subwords per language, kept on disk and mapped into memory.

A corpus larger than memory streams through; a training that resumes finds its text tokenized already.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from isogloss.core.errors import DataError
from isogloss.core.records import writing

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

LINES_AT_ONCE = 2000
"""Lines tokenized in one call: enough to keep the tokenizer busy, little memory."""


@dataclass(frozen=True)
class TextStream:
    """Subwords of a text, each line closed by the separator, and the places where reading may start."""

    subwords: np.ndarray
    starts: np.ndarray

    def __len__(self) -> int:
        return len(self.subwords)

    def block(self, place: int, length: int) -> np.ndarray:
        """Give ``length`` subwords from the start with number ``place`` on; the last ones where text ends."""
        start = min(int(self.starts[place]), max(0, len(self.subwords) - length))
        return np.asarray(self.subwords[start : start + length])


def write_stream(
    lines: Iterable[str], tokenizer: "PreTrainedTokenizerFast", folder: Path, *, longest: int
) -> TextStream:
    """Tokenize lines into ``folder`` (under temporary names, renamed when whole); return the stream.

    Reading may start at each line and, in long ones, after every ``longest`` subwords. DataError when there
    is nothing to read.
    """
    subwords, starts = folder / ".subwords.tmp", folder / ".starts.tmp"
    total = 0
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        subwords.write_bytes(b"")
        starts.write_bytes(b"")
    for ids in _in_groups(lines, tokenizer):
        flat, first = _joined([line for line in ids if line], tokenizer.sep_token_id, longest)
        with writing(folder), subwords.open("ab") as file, starts.open("ab") as places:
            file.write(flat.tobytes())
            places.write((first + total).tobytes())
        total += len(flat)
    if not total:
        raise DataError(f"{folder.name}: the text of this language is empty. Leave the language out.")
    with writing(folder):
        starts.replace(folder / "starts.bin")
        subwords.replace(folder / "subwords.bin")
    return open_stream(folder)


def _joined(lines: list[list[int]], separator: int, longest: int) -> tuple[np.ndarray, np.ndarray]:
    """Join lines, each closed by the separator; return them and the places where reading may start."""
    lengths = np.array([len(line) for line in lines], dtype=np.int64)
    ends = np.cumsum(lengths + 1)
    flat = np.empty(int(lengths.sum()) + len(lines), dtype=np.int32)
    real = np.ones(len(flat), dtype=bool)
    real[ends - 1] = False
    flat[real] = np.fromiter(chain.from_iterable(lines), dtype=np.int32, count=int(lengths.sum()))
    flat[~real] = separator
    parts = -(-lengths // longest)
    number = np.arange(int(parts.sum())) - np.repeat(np.cumsum(parts) - parts, parts)
    return flat, np.repeat(ends - lengths - 1, parts) + number * longest


def is_stream(folder: Path) -> bool:
    """Tell whether a whole stream is there."""
    return (folder / "subwords.bin").exists()


def open_stream(folder: Path) -> TextStream:
    """Map a stream that was written."""
    subwords = np.memmap(folder / "subwords.bin", dtype=np.int32, mode="r")
    return TextStream(subwords, np.fromfile(folder / "starts.bin", dtype=np.int64))


def subwords_of(lines: Iterable[str], tokenizer: "PreTrainedTokenizerFast") -> Iterator[list[int]]:
    """Tokenize lines in groups, without special subwords."""
    return chain.from_iterable(_in_groups(lines, tokenizer))


def _in_groups(lines: Iterable[str], tokenizer: "PreTrainedTokenizerFast") -> Iterator[list[list[int]]]:
    rest, backend = iter(lines), tokenizer.backend_tokenizer
    while group := list(islice(rest, LINES_AT_ONCE)):
        yield [one.ids for one in backend.encode_batch_fast(group, add_special_tokens=False)]
