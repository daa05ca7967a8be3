"""Held-out text of a pretraining: its batches, its perplexity after each epoch, and languages not learned."""

import math
from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np

from isogloss.core.identity import derive
from isogloss.core.records import Value
from isogloss.encoders.family import Model
from isogloss.tasks.masked_lm import MaskedBatch, Masking, TextStream
from isogloss.training.batching import BatchSampling, perplexity

MAX_HELD_OUT = 65536
"""Maximum number of held-out subwords per language: 10,000 predictions, a standard error of 0.03 nats."""


def held_out_batches(
    stream: TextStream, sampling: BatchSampling, masking: Masking, *, seed: int, language: str
) -> list[MaskedBatch]:
    """Cut a text into disjoint blocks that begin as in training, and mask them.

    In a long text, blocks are spread evenly, with ``MAX_HELD_OUT`` subwords in total.
    """
    length = sampling.block - 2
    starts = _disjoint_starts(stream, length)
    max_blocks = max(1, MAX_HELD_OUT // length)
    if len(starts) > max_blocks:
        starts = [starts[int(index)] for index in np.linspace(0, len(starts) - 1, max_blocks)]
    rows = [[stream.block(start, length)] for start in starts]
    groups = [rows[begin : begin + sampling.rows] for begin in range(0, len(rows), sampling.rows)]
    return [
        masking.batch(group, seed=derive(seed, language, index), languages=(language,))
        for index, group in enumerate(groups)
    ]


def _disjoint_starts(stream: TextStream, length: int) -> list[int]:
    """Return the indices of starts that are at least a block apart, including the first one."""
    last_start = max(0, len(stream) - length)
    indices = [0]
    earliest = length
    while earliest <= last_start:
        index = int(np.searchsorted(stream.starts, earliest))
        if index == len(stream.starts) or stream.starts[index] > last_start:
            break
        indices.append(index)
        earliest = int(stream.starts[index]) + length
    return indices


def perplexity_rows(
    model: Model,
    held_out: Mapping[str, Sequence[MaskedBatch]],
    step: int,
    *,
    steps_per_epoch: int,
    precision: str,
) -> list[dict[str, Value]]:
    """Return a row with the perplexity of each language's held-out text."""
    return [
        {
            "step": step,
            "epoch": -(-step // steps_per_epoch),
            "language": language,
            "split": "dev",
            "metric": "perplexity",
            "score": round(perplexity(model, batches, precision=precision), 6),
        }
        for language, batches in held_out.items()
    ]


def frequency_perplexity(stream: TextStream, special: Sequence[int]) -> float:
    """Return the perplexity of guessing each subword of a text only by its frequency.

    ``special`` are subwords that are never hidden.
    """
    subwords = stream.subwords[:MAX_HELD_OUT]
    counts = np.bincount(subwords[~np.isin(subwords, special)])
    shares = counts[counts > 0] / counts.sum()
    return math.exp(-float((shares * np.log(shares)).sum()))


def plateau_warnings(
    rows: Sequence[Mapping[str, Value]], held_out: Mapping[str, TextStream], special: Sequence[int]
) -> tuple[str, ...]:
    """Warn of languages whose last perplexity is no lower than that of guessing by frequency.

    Encoders soon learn how frequent each subword is, and some seeds never learn more.
    """
    last_rows = {str(row["language"]): row for row in rows if row.get("metric") == "perplexity"}
    warnings = []
    for language, row in last_rows.items():
        if language not in held_out:
            continue
        guessing = frequency_perplexity(held_out[language], special)
        score = float(cast(float, row["score"]))
        if score >= guessing:
            warnings.append(
                f"{language}: perplexity {score:.0f} on held-out text after {row['step']:,} steps, and "
                f"guessing subwords by their frequency has {guessing:.0f}: the encoder has learned nothing "
                f"else. Train longer, with another learning rate, or replace this seed."
            )
    return tuple(warnings)
