"""Tokenized text on disk: one array of subword ids per language, memory-mapped.

Corpora may be larger than memory, and a resumed training does not tokenize again.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

import numpy as np

from isogloss.core.atomic_files import make_folder, sweep_folder, temporary_beside, writing
from isogloss.core.errors import DataError
from isogloss.core.interruption import stop_if_lost
from isogloss.encoders.family import Tokenizer

LINES_PER_CALL = 2000
"""Lines per call of the tokenizer: enough to keep its threads busy, with little memory."""


@dataclass(frozen=True)
class TextStream:
    """Subword ids of a text, with a separator after each line, and the offsets where a block may start."""

    subwords: np.ndarray
    starts: np.ndarray

    def __len__(self) -> int:
        return len(self.subwords)

    def block(self, index: int, length: int) -> np.ndarray:
        """Return ``length`` subwords from start ``index`` on, or the last ones near the end of the text."""
        start = min(int(self.starts[index]), max(0, len(self.subwords) - length))
        return np.asarray(self.subwords[start : start + length])


def write_stream(lines: Iterable[str], tokenizer: Tokenizer, folder: Path, *, longest: int) -> TextStream:
    """Tokenize lines into ``folder`` (temporary files, renamed when complete); return the stream.

    Blocks may start at each line and, within long lines, after every ``longest`` subwords. DataError for
    empty text.
    """
    subwords, starts = (temporary_beside(folder / name, "tmp") for name in ("subwords.bin", "starts.bin"))
    total = 0
    with writing(folder):
        make_folder(folder)
        sweep_folder(folder)
        subwords.write_bytes(b"")
        starts.write_bytes(b"")
    for ids in _tokenized(lines, tokenizer):
        flat, first = _join([line for line in ids if line], tokenizer.sep_token_id, longest)
        with writing(folder), subwords.open("ab") as file, starts.open("ab") as offsets:
            file.write(flat.tobytes())
            offsets.write((first + total).tobytes())
        total += len(flat)
    if not total:
        raise DataError(f"{folder.name}: the text of this language is empty. Leave the language out.")
    stop_if_lost()
    with writing(folder):
        starts.replace(folder / "starts.bin")
        subwords.replace(folder / "subwords.bin")
    return open_stream(folder)


def _join(lines: list[list[int]], separator: int, longest: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the ids of all lines, with a separator after each, and the offsets where a block may start."""
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
    """Return whether a folder contains a complete stream."""
    return (folder / "subwords.bin").exists()


def open_stream(folder: Path) -> TextStream:
    """Memory-map a stream."""
    subwords = np.memmap(folder / "subwords.bin", dtype=np.int32, mode="r")
    return TextStream(subwords, np.fromfile(folder / "starts.bin", dtype=np.int64))


def subwords_of(lines: Iterable[str], tokenizer: Tokenizer) -> Iterator[list[int]]:
    """Yield the subword ids of each line, without special subwords; lines are tokenized in groups."""
    return chain.from_iterable(_tokenized(lines, tokenizer))


def _tokenized(lines: Iterable[str], tokenizer: Tokenizer) -> Iterator[list[list[int]]]:
    rest, backend = iter(lines), tokenizer.backend_tokenizer
    while group := list(islice(rest, LINES_PER_CALL)):
        yield [encoding.ids for encoding in backend.encode_batch_fast(group, add_special_tokens=False)]
