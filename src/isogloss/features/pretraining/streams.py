"""Tokenized text on disk: one memory-mapped array of subword ids per language.

Corpora may be larger than memory, and a resumed training does not tokenize again.
"""

import os
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import numpy as np

from isogloss.core.atomic_files import make_folder, sweep_folder, temporary_name, writing
from isogloss.core.errors import DataError
from isogloss.core.processes import stop_if_lost
from isogloss.core.shared_files import append_file, is_file, open_new_file, rename
from isogloss.encoders.family import Tokenizer
from isogloss.tasks.masked_lm import TextStream, tokenize_groups


def write_stream(lines: Iterable[str], tokenizer: Tokenizer, folder: Path, *, longest: int) -> TextStream:
    """Tokenize lines into ``folder`` and return the stream.

    Temporary files are renamed when complete. Blocks may start at each line and, within long lines, after
    every ``longest`` subwords. Raises DataError for empty text.
    """
    subwords = temporary_name("subwords.bin", "tmp")
    starts = temporary_name("starts.bin", "tmp")
    total = 0
    with writing(folder):
        make_folder(folder)
        sweep_folder(folder)
        for name in (subwords, starts):
            os.close(open_new_file(folder, name))
    for ids in tokenize_groups(lines, tokenizer):
        flat, line_starts = _join([line for line in ids if line], tokenizer.sep_token_id, longest)
        with writing(folder):
            append_file(folder, subwords, flat.tobytes())
            append_file(folder, starts, (line_starts + total).tobytes())
        total += len(flat)
    if not total:
        raise DataError(f"{folder.name}: the text of this language is empty. Remove the language.")
    stop_if_lost()
    with writing(folder):
        rename(folder, starts, "starts.bin")
        rename(folder, subwords, "subwords.bin")
    return open_stream(folder)


def _join(lines: list[list[int]], separator: int, longest: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the ids of all lines, with a separator after each, and the offsets of possible block starts."""
    lengths = np.array([len(line) for line in lines], dtype=np.int64)
    ends = np.cumsum(lengths + 1)
    flat = np.empty(int(lengths.sum()) + len(lines), dtype=np.int32)
    is_text = np.ones(len(flat), dtype=bool)
    is_text[ends - 1] = False
    flat[is_text] = np.fromiter(chain.from_iterable(lines), dtype=np.int32, count=int(lengths.sum()))
    flat[~is_text] = separator
    parts = -(-lengths // longest)
    part_indices = np.arange(int(parts.sum())) - np.repeat(np.cumsum(parts) - parts, parts)
    return flat, np.repeat(ends - lengths - 1, parts) + part_indices * longest


def is_stream(folder: Path) -> bool:
    """Return whether a folder contains a complete stream."""
    return is_file(folder, "subwords.bin")


def open_stream(folder: Path) -> TextStream:
    """Memory-map a stream."""
    subwords = np.memmap(folder / "subwords.bin", dtype=np.int32, mode="r")
    return TextStream(subwords, np.fromfile(folder / "starts.bin", dtype=np.int64))
