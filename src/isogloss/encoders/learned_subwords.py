"""Subwords learned from text, and the files of tokenizers that have them.

Learning is deterministic in every process, although the trainers of ``tokenizers`` number and weigh pieces in
the order of a randomly seeded hash table.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from isogloss.core.atomic_files import disk_error, reading_error, write_text
from isogloss.core.errors import ConfigError, StorageError

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

SMALLEST_COUNT = 2
"""Fewest occurrences of a learned subword."""

ROUNDS = 2
"""Re-estimations of the Unigram probabilities. More change little."""

ModelJson = dict[str, Any]
"""The entry "model" of tokenizer.json: the vocabulary, and the merges of BPE."""


def unigram_pieces(
    lines: Sequence[str],
    size: int,
    special: Sequence[str],
    make: Callable[[ModelJson | None], "Tokenizer"],
) -> ModelJson:
    """Return a Unigram model of at most ``size`` subwords: special ones, then learned pieces."""
    from tokenizers import Tokenizer, models, trainers

    blank = make(None)
    merging = Tokenizer(models.BPE())
    merging.pre_tokenizer = blank.pre_tokenizer
    if blank.normalizer:
        merging.normalizer = blank.normalizer
    trainer = trainers.BpeTrainer(
        vocab_size=max(0, size - len(special)), min_frequency=SMALLEST_COUNT, show_progress=False
    )
    merging.train_from_iterator(lines, trainer)
    numbers: dict[str, int] = merging.get_vocab()
    pieces = sorted(numbers, key=numbers.__getitem__)
    words = Counter(word for line in lines for word in line.split())
    counts = _count_subwords(merging, words, len(pieces))
    for _ in range(ROUNDS):
        tokenizer = make({"vocab": _with_log_probabilities(special, pieces, counts)})
        counts = _count_subwords(tokenizer, words, len(special) + len(pieces))[len(special) :]
    return {"vocab": _with_log_probabilities(special, pieces, counts)}


def _count_subwords(tokenizer: "Tokenizer", words: Counter[str], size: int) -> np.ndarray:
    """Count the uses of each subword, as integers: their sums do not depend on the order."""
    encodings = tokenizer.encode_batch_fast(list(words), add_special_tokens=False)
    counts = np.zeros(size, dtype=np.int64)
    for encoding, count in zip(encodings, words.values(), strict=True):
        np.add.at(counts, encoding.ids, count)
    return counts


def _with_log_probabilities(
    special: Sequence[str], pieces: Sequence[str], counts: np.ndarray
) -> list[tuple[str, float]]:
    """Return each piece with its log probability, counting an unused piece as used once."""
    floor_counts = np.maximum(counts, 1)
    total = math.log(max(1, floor_counts.sum()))
    pieces_with_weights = [
        (piece, math.log(count) - total) for piece, count in zip(pieces, floor_counts, strict=True)
    ]
    return [(name, 0.0) for name in special] + pieces_with_weights


def check_size(count: int, size: int, field: str, *, content: str = "with the special ones ") -> None:
    """Raise ConfigError, naming the field to raise, if ``count`` exceeds ``size`` subwords."""
    if count > size:
        raise ConfigError(
            f"vocabulary: {size} subwords are too few for the characters of this text, which {content}take "
            f"{count}. Raise {field}, to several times that."
        )


def write_tokenizer(tokenizer: "PreTrainedTokenizerFast", path: Path) -> None:
    """Write a trained tokenizer to one file, atomically."""
    write_text(path.parent, path.name, tokenizer.backend_tokenizer.to_str())


@contextmanager
def reading(path: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the content of a file written by ``write_tokenizer``.

    Raises StorageError for a damaged file.
    """
    try:
        yield json.loads(path.read_text(encoding="utf-8"))
    except Exception as error:  # tokenizers raises plain exceptions.
        if failure := disk_error(error):
            raise reading_error(path, failure) from error
        raise StorageError(f"{path}: this tokenizer is damaged. Delete the folder and run again.") from error
