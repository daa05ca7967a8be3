"""Text as one long row of subwords per language, kept on disk and mapped into memory.

A corpus larger than memory streams through; a training that resumes finds its text tokenized already.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

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


def write_stream(lines: Iterable[str], tokenizer: Any, folder: Path, *, longest: int) -> TextStream:
    """Tokenize lines into ``folder`` (under temporary names, renamed when whole); return the stream."""
    folder.mkdir(parents=True, exist_ok=True)
    starts: list[int] = []
    total = 0
    temporary = folder / ".subwords.tmp"
    with temporary.open("wb") as file:
        for ids in subwords_of(lines, tokenizer):
            if ids:
                starts += range(total, total + len(ids), longest)
                file.write(np.array([*ids, tokenizer.sep_token_id], dtype=np.int32).tobytes())
                total += len(ids) + 1
    with (folder / ".starts.tmp").open("wb") as file:
        np.array(starts, dtype=np.int64).tofile(file)
    (folder / ".starts.tmp").rename(folder / "starts.bin")
    temporary.rename(folder / "subwords.bin")
    return open_stream(folder)


def is_stream(folder: Path) -> bool:
    """Tell whether a whole stream is there."""
    return (folder / "subwords.bin").exists()


def open_stream(folder: Path) -> TextStream:
    """Map a stream that was written."""
    subwords = np.memmap(folder / "subwords.bin", dtype=np.int32, mode="r")
    return TextStream(subwords, np.fromfile(folder / "starts.bin", dtype=np.int64))


def subwords_of(lines: Iterable[str], tokenizer: Any) -> Iterator[list[int]]:
    """Tokenize lines in groups, without special subwords."""
    rest = iter(lines)
    while group := list(islice(rest, LINES_AT_ONCE)):
        encodings = tokenizer.backend_tokenizer.encode_batch_fast(group, add_special_tokens=False)
        yield from (encoding.ids for encoding in encodings)
